/* SPDX-License-Identifier: MIT
 * State of the process outside the program's memory that set-up may rely on: working directory,
 * umask, environment, arguments, signal handlers and mask, interval timers, getopt, locale,
 * floating-point control, random generators. Captured at the first entry of main (for re-entries)
 * and at the start of a trial (for the rollback). */
#ifndef PLIANT_INTERPOSE_PROCESS_H
#define PLIANT_INTERPOSE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "common/status.h"
#include "interpose/random.h"

/* Strings copied together with the array that points to them. */
typedef struct pl_strings {
    char **array;    /* where the program sees it */
    char **pointers; /* its entries, `count` of them, and a NULL */
    char *text;      /* contents, one after the other, each terminated */
    int count;
} pl_strings_t;

typedef struct pl_process_state {
    bool pristine; /* captured before main had run */
    int directory; /* descriptor of the working directory */
    unsigned mask; /* umask */
    pl_strings_t environment;
    pl_strings_t arguments;
    struct sigaction action[65]; /* by signal number */
    sigset_t blocked;
    struct itimerval timer[3];
    int optind_, opterr_, optopt_;
    char *optarg_;
    char *locale;
    unsigned mxcsr;
    uint16_t x87;
    char *random_array; /* the array random() uses */
    pl_random_state_t random;
} pl_process_state_t;

/* Where main's arguments are, and which signals are Pliant's own (bit n-1 for signal n). Call it
 * before the first capture. */
void pl_process_setup(int argc, char **argv, uint64_t own_signals);

/* Fills `out`; the first capture of all counts as made before main. PL_ERR_NOMEM, PL_ERR_IO:
 * nothing is held. To be released with pl_process_release(). */
pl_status_t pl_process_capture(pl_process_state_t *out);

/* Puts a captured state back; may be repeated. Restore the program's image first (getopt's
 * variables may live there), and call it while all heap generations that the program used since are
 * still there and writable. */
void pl_process_restore(const pl_process_state_t *state);

void pl_process_release(pl_process_state_t *state);

#endif
