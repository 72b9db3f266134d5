/* SPDX-License-Identifier: MIT
 * The two halves of `pliant bench overhead`, and how they start programs. */
#ifndef PLIANT_TOOLS_BENCH_H
#define PLIANT_TOOLS_BENCH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/status.h"

typedef struct pl_bench {
    char folder[64];         /* for files of this run */
    char programs[PATH_MAX]; /* folder of the benchmark programs */
    char library[PATH_MAX];
    char mpiexec[PATH_MAX];
} pl_bench_t;

/* Starts argv[0] (found in PATH) in a process group of its own, without any PLIANT_* variable of
 * ours but PLIANT_CONTROL=control (NULL: none), its output in the file FOLDER/log. The process ends
 * after `seconds` at the latest. Returns its number, or -1. */
pid_t pl_bench_start(const pl_bench_t *bench, char *const argv[], const char *control,
                     unsigned seconds);

/* Waits for it; its exit status, 127 if it could not be started, -1 if a signal ended it. */
int pl_bench_wait(pid_t child);

/* Complains that a program failed, with what it printed last. */
void pl_bench_complain(const pl_bench_t *bench, const char *what);

/* Path of a file in the folder of this run. */
void pl_bench_path(const pl_bench_t *bench, const char *name, char path[PATH_MAX]);

/* ---- instructions ---- */

typedef enum pl_bench_case {
#define CASE(id, kind, frames, per, title, statement) PL_BENCH_##id,
#include "tools/bench/cases.def"
#undef CASE
    PL_BENCH_CASES
} pl_bench_case_t;

typedef struct pl_bench_count {
    double bare;    /* instructions per call or malloc/free pair */
    double extra;   /* more with Pliant, at an ordinary arrival */
    double zeroing; /* part of extra: new blocks are filled with zeros */
    double round; /* more with Pliant at an arrival where a round of agreement ends and the next one
                   * begins; 0: no such arrival */
    double every; /* a round comes every so many arrivals */
} pl_bench_count_t;

/* Counts every case on one process under callgrind, with a control file. PL_NONE: no valgrind. */
pl_status_t pl_bench_instructions(const pl_bench_t *bench, pl_bench_count_t out[PL_BENCH_CASES]);

/* ---- the loop of 8-byte Allreduce ---- */

typedef enum pl_bench_job {
    PL_BENCH_BARE,
    PL_BENCH_BARE_AGAIN, /* tells how exact the ratios are */
    PL_BENCH_PRELOADED,  /* no control file: nothing can be asked for */
    PL_BENCH_CONTROL,
    PL_BENCH_POOL, /* control file, and two processes parked */
    PL_BENCH_JOBS
} pl_bench_job_t;

typedef struct pl_bench_ratio {
    double seconds;          /* per call: the median */
    double ratio;            /* to the bare job at the same time: the median */
    double within;           /* to the same loop of the same processes past libpliant: the median */
    double low, high;        /* of the launches' medians */
    int resident, anonymous; /* KiB of rank 0 */
} pl_bench_ratio_t;

/* All jobs live at the same time and run in turn, `rounds` times in each of `launches` launches. */
pl_status_t pl_bench_loop(const pl_bench_t *bench, int launches, int rounds,
                          pl_bench_ratio_t out[PL_BENCH_JOBS]);

#endif
