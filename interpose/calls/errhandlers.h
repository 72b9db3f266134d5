/* SPDX-License-Identifier: MIT
 * Error handlers in a trial: every object must return errors, so that they can be undone, while the
 * program sees the handlers it set. At the commit they are put in force. */
#ifndef PLIANT_INTERPOSE_CALLS_ERRHANDLERS_H
#define PLIANT_INTERPOSE_CALLS_ERRHANDLERS_H

#include <mpi.h>

/* A trial begins. The caller has made MPI_COMM_WORLD, MPI_COMM_SELF and the trial's world return
 * errors; their handlers for the program are MPI's default until it sets others. */
void pl_errhandlers_begin(void);

/* The trial is committed: sets on each object made in it, on pl_world and on MPI_COMM_SELF what the
 * program expects. pl_trial_active must be false. */
void pl_errhandlers_commit(void);

/* The trial is rolled back: forgets. */
void pl_errhandlers_drop(void);

/* For the wrappers: a window was made in a trial. */
void pl_errhandlers_made_window(MPI_Win win);

#endif
