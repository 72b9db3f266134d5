/* SPDX-License-Identifier: MIT
 * A small engine for tests of the parts that carry state over: it stands in for entry.c, sites.c
 * and transaction.c, without MPI calls of the program, files and trials that can fail. It lives in
 * a shared library as libpliant does; the test executable is the program. */
#ifndef PLIANT_TESTS_UNIT_ENGINE_ENGINE_H
#define PLIANT_TESTS_UNIT_ENGINE_ENGINE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "interpose/chain.h"
#include "interpose/private.h"
#include "interpose/words.h"

typedef int (*engine_program_t)(int argc, char **argv, char **envp);

enum {
    ENGINE_BASELINE = 2, /* arrival of the baseline */
    ENGINE_RESULTS = 8,
};

/* Once, first of all in main. */
void engine_setup(void);

typedef struct engine_plan {
    MPI_Comm comm; /* of max(ns, nt) processes */
    int ns, nt;
    int arrival; /* at which the resize happens, more than ENGINE_BASELINE */
} engine_plan_t;

typedef struct engine_outcome {
    pl_private_count_t found;
    int lost;                      /* pointers that could not be translated */
    bool finished;                 /* the program ran to its end on this process after the resize */
    double result[ENGINE_RESULTS]; /* what it reported */
} engine_outcome_t;

/* Runs the program; at engine_point() number plan->arrival of each of the ns processes it is begun
 * again on nt, and goes on there with its state. */
void engine_run(engine_program_t program, const engine_plan_t *plan, engine_outcome_t *out);

/* Calls program as libpliant calls main, without any plan. */
void engine_call(engine_program_t program);

/* --- called by the program --- */

void engine_point(void); /* the collective at which it is resized */
int engine_rank(void);
int engine_size(void);
void *engine_allocate(size_t bytes);
void engine_free(void *p);
void engine_report(int index, double value); /* the test's globals are put back in the end */

/* The chain of this call. */
pl_chain_t *engine_chain(void);
/* Does a fresh walk confirm the chain of this call? spoil: of a chain that is another one. */
bool engine_verify(bool spoil);

#endif
