/* SPDX-License-Identifier: MIT
 * Counts what a process has in flight: a resize needs nothing in flight anywhere. The wrappers
 * count; the sums over all processes tell. [wrappers] */
#ifndef PLIANT_INTERPOSE_QUIESCENCE_H
#define PLIANT_INTERPOSE_QUIESCENCE_H

#include <mpi.h>

typedef struct pl_quiet {
    long requests; /* started and not yet seen complete by the program; persistent: active ones */
    long sent;     /* point-to-point messages sent, on any communicator */
    long received; /* receives posted, cancelled ones taken off */
    long locks;    /* open epochs: lock, lock_all, start, post */
    long rma;      /* one-sided operations since the last synchronisation of their window */
} pl_quiet_t;

/* The live counters. All processes are quiet when requests, locks and rma are 0 everywhere and the
 * sums of sent and received are equal. */
extern pl_quiet_t pl_quiet __attribute__((visibility("hidden")));

/* A copy of the counters, after looking whether requests which the program freed are done now. */
void pl_quiescence_get(pl_quiet_t *quiet);

/* Around a trial: save the counters (and start again from zero), and put them back if it is
 * rolled back. A commit needs neither: the trial's counters are then the program's. */
void pl_quiescence_save(pl_quiet_t *saved);
void pl_quiescence_restore(const pl_quiet_t *saved);

/* Frees the requests which the program freed before they were done; call it before
 * PMPI_Finalize. */
void pl_quiescence_finish(void);

/* --- for the wrappers ------------------------------------------------------------------------ */

/* A request was started; in a trial it is kept with the handles of the generation. */
void pl_request_started_slow(MPI_Request request);

/* Requests which the program has cancelled and not yet completed. */
extern int pl_cancelled __attribute__((visibility("hidden")));

/* The program cancelled a request; whether that worked is known from its status only. */
void pl_request_cancelled(MPI_Request request);
/* A request is complete, with this status. */
void pl_request_settle_cancelled(MPI_Request request, const MPI_Status *status);

/* The program freed a request that may still be at work: it stays counted until it is done.
 * *request becomes MPI_REQUEST_NULL. */
int pl_request_orphan(MPI_Request *request);

/* An operation on a window, and a synchronisation which completes all of this process's
 * operations on it. */
void pl_rma_operation(MPI_Win win);
void pl_rma_synchronised(MPI_Win win);

#endif
