/* SPDX-License-Identifier: MIT
 * Runs the statements of cases.def for `pliant bench overhead`, on one process under callgrind,
 * which writes a new file whenever mark() is entered. Built twice: as it is, and linked with
 * libpliant in front of the MPI library. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#include "overhead_cases.h"

static double mine = 1, all;
static MPI_Request request;
static MPI_Comm copy;
static void *a, *b, *c, *d;
static uint32_t random_state = 1;

__attribute__((noinline)) void mark(void)
{
    __asm__ volatile("");
}

/* The compiler must neither drop an allocation nor turn a call into a jump. */
#define KEEP(x) __asm__ volatile("" : "+r"(x) : : "memory")

static inline void *fill(void *p)
{
    KEEP(p);
    return p;
}

static inline void drop(void *p)
{
    free(p);
}

static inline void *random_place(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    switch (random_state >> 29) {
    case 0:
        return fill(malloc(100));
    case 1:
        return fill(malloc(101));
    case 2:
        return fill(malloc(102));
    case 3:
        return fill(malloc(103));
    case 4:
        return fill(malloc(104));
    case 5:
        return fill(malloc(105));
    case 6:
        return fill(malloc(106));
    default:
        return fill(malloc(107));
    }
}

#define CASE(id, kind, frames, per, title, statement)                                              \
    static __attribute__((noinline)) int inner_##id(int i)                                         \
    {                                                                                              \
        statement;                                                                                 \
        KEEP(i);                                                                                   \
        return i;                                                                                  \
    }                                                                                              \
    static __attribute__((noinline)) int outer_##id(int i)                                         \
    {                                                                                              \
        i = inner_##id(i);                                                                         \
        KEEP(i);                                                                                   \
        return i;                                                                                  \
    }
#include "cases.def"
#undef CASE

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
/* Once to get warm, then n and 2 n times: the difference is that of n. */
#define CASE(id, kind, frames, per, title, statement)                                              \
    for (int pass = 0; pass < 3; pass++) {                                                         \
        long count = pass == 2 ? 2 * CASE_ITERATIONS : CASE_ITERATIONS;                            \
        mark();                                                                                    \
        for (long i = 0; i < count; i++) {                                                         \
            if (frames == 1) {                                                                     \
                statement;                                                                         \
            } else {                                                                               \
                outer_##id((int)i);                                                                \
            }                                                                                      \
        }                                                                                          \
        mark();                                                                                    \
    }
#include "cases.def"
#undef CASE
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
