/* SPDX-License-Identifier: MIT
 * What overhead_loop and the tool that starts it say to each other. */
#ifndef PLIANT_TOOLS_BENCH_OVERHEAD_LOOP_H
#define PLIANT_TOOLS_BENCH_OVERHEAD_LOOP_H

/* Calls before the clock starts: the processes have just been woken. */
enum { WARM_CALLS = 1000 };

struct loop_answer {
    double seconds;
    int resident, anonymous; /* KiB */
};

#endif
