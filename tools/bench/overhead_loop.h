/* SPDX-License-Identifier: MIT
 * What overhead_loop and the tool that starts it say to each other. */
#ifndef PLIANT_TOOLS_BENCH_OVERHEAD_LOOP_H
#define PLIANT_TOOLS_BENCH_OVERHEAD_LOOP_H

/* A turn is so many batches of calls after some that do not count: the processes have just been
 * woken. A batch is long against the clock, and has rounds of agreement in it. */
enum { BATCH_CALLS = 128, WARM_BATCHES = 8, TURN_BATCHES = 32, MOST_BATCHES = 1024 };

struct loop_answer {
    double seconds;          /* per call of MPI_Allreduce, the median of the batches */
    double seconds_past;     /* of PMPI_Allreduce on a copy of the world: no preloaded library */
    int resident, anonymous; /* KiB */
};

#endif
