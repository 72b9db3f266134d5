/* SPDX-License-Identifier: MIT */
/* The loop of the programs whose point is their set-up: numbers in blocks, each mixed with the
 * total of all. Integer arithmetic: one wrong element changes every later total. */
#ifndef MIXER_H
#define MIXER_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct mixer {
    long n, first, mine;
    long *value;
} mixer_t;

static inline void mixer_create(mixer_t *m, long n)
{
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    m->n = n;
    m->first = n * rank / size;
    m->mine = n * (rank + 1) / size - m->first;
    m->value = malloc((m->mine + 1) * sizeof *m->value);
    for (long i = 0; i < m->mine; i++)
        m->value[i] = (m->first + i) * 7919 % 10007;
}

static inline void mixer_step(mixer_t *m, long total)
{
    for (long i = 0; i < m->mine; i++)
        m->value[i] = (m->value[i] * 31 + total % 977 + m->first + i) % 10007;
}

static __attribute__((noinline)) long mixer_sum(const mixer_t *m)
{
    long sum = 0, total;

    for (long i = 0; i < m->mine; i++)
        sum += m->value[i] * (1 + (m->first + i) % 103);
    MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

/* Runs the loop and prints progress and result on rank 0. */
static inline void mixer_run(mixer_t *m, int iterations)
{
    long total = 0;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int it = 1; it <= iterations; it++) {
        mixer_step(m, total);
        total = mixer_sum(m);
        if (rank == 0 && it % 20 == 0) {
            printf("iteration %d total %ld\n", it, total);
            fflush(stdout);
        }
    }
    if (rank == 0)
        printf("result %ld\n", total);
    free(m->value);
}

#endif
