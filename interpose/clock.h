/* SPDX-License-Identifier: MIT
 * Clocks the program reads. In a trial they answer the time of the first entry of main plus the
 * time since the trial began, so that the start time a program notes in set-up stays right.
 * MPI_Wtime, clock_gettime (wall clocks), gettimeofday, time, timespec_get. */
#ifndef PLIANT_INTERPOSE_CLOCK_H
#define PLIANT_INTERPOSE_CLOCK_H

/* Notes the time at which main begins for the first time. */
void pl_clock_first_entry(void);

void pl_clock_trial_begin(void);
void pl_clock_trial_end(void); /* real time again: after a commit as after a rollback */

#endif
