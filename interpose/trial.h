/* SPDX-License-Identifier: MIT
 * A trial: the targets run the program's set-up again under the new size. Whatever goes wrong on
 * any of them must end the trial on all of them, with nothing left behind.
 *
 * Blocking calls of a trial poll, so that they can give up. In front of a collective stands a
 * gate: a non-blocking reduction of what each rank is about to do; a member that comes to another
 * call, or never comes, is noticed there. Each process of the union (sources and targets) reports
 * exactly once; when all have, everybody knows the outcome. */
#ifndef PLIANT_INTERPOSE_TRIAL_H
#define PLIANT_INTERPOSE_TRIAL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/border.h"

enum { PL_REASON_MAX = 400 };

/* Once per process, before the first trial: signal handlers. */
void pl_trial_setup(void);
/* Signals a trial uses, bit n-1 for signal n. */
uint64_t pl_trial_signals(void);

/* Starts a trial among the first max(ns, nt) processes of the pool, which `all` consists of. world
 * is the program's world in the trial (MPI_COMM_NULL on a process that is only a source). */
void pl_trial_begin(MPI_Comm all, MPI_Comm world, int ns, int nt, double limit_seconds);

/* This process has done its part. Returns true when all have, false when some process failed; a
 * process that fails later on still can (pl_trial_fail) until pl_trial_end. Collective. */
bool pl_trial_vote(void);

/* The trial fails on this process, for this reason: goes to the frame above main. */
_Noreturn void pl_trial_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At the frame above main, or on a pure source whose vote was negative: reports the failure if this
 * process has not reported yet, and cleans up what was left on the trial's communicators. True:
 * they are clean and can be freed; false: they must be leaked. */
bool pl_trial_settle(void);

/* The trial is over (committed or settled): ordinary calls again. */
void pl_trial_end(void);

/* The trial fails because this process will not come to the resize point; another might do. */
_Noreturn void pl_trial_miss(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* After settling: did it fail for that reason only? The same on all processes. */
bool pl_trial_elsewhere(void);

/* Why it failed: the reason of the process that failed first, "" if none. */
const char *pl_trial_reason(void);

/* A communicator made by the program in the trial: called by handles.c. */
void pl_trial_comm_made(MPI_Comm comm);

/* Were all members of the gate passed last at the same site? (Optimisers duplicate call places.) */
bool pl_trial_uniform(void);

#endif
