/* SPDX-License-Identifier: MIT */
/* A loop without a call that all processes make together: "farm" deals tasks out to workers by
 * messages, "halves" uses collectives on two halves of the processes only.
 * usage: no_point [iterations] [farm|halves] [work] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long work = 20000;

static long task(long number)
{
    long value = number;

    for (long k = 0; k < work; k++)
        value = (value * 1103515245 + 12345 + k) % 2147483647;
    return value;
}

/* Rank 0 hands out task after task; a negative number sends a worker home. */
static long farm_master(long tasks, int size)
{
    long total = 0, next = 0, answer[2], quit = -1;
    int busy = 0;
    MPI_Status status;

    for (int r = 1; r < size; r++) {
        MPI_Send(next < tasks ? &next : &quit, 1, MPI_LONG, r, 0, MPI_COMM_WORLD);
        busy += next < tasks;
        next += next < tasks;
    }
    while (busy > 0) {
        MPI_Recv(answer, 2, MPI_LONG, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
        total += answer[1] % 1000003 * (answer[0] + 1);
        MPI_Send(next < tasks ? &next : &quit, 1, MPI_LONG, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
        busy -= next >= tasks;
        next += next < tasks;
    }
    for (; next < tasks; next++) /* alone */
        total += task(next) % 1000003 * (next + 1);
    return total;
}

static void farm_worker(void)
{
    long number, answer[2];

    for (;;) {
        MPI_Recv(&number, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (number < 0)
            return;
        answer[0] = number;
        answer[1] = task(number);
        MPI_Send(answer, 2, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    }
}

static long halves(long iterations, int rank, int size)
{
    long sum = 0, total = 0, seed;
    int half_rank;
    MPI_Comm half;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &half_rank);
    for (long it = 0; it < iterations; it++) {
        seed = half_rank == 0 ? task(it) : 0;
        MPI_Bcast(&seed, 1, MPI_LONG, 0, half);
        for (long i = rank; i < 12; i += size)
            sum += task(seed + i) % 1000003 * (i + 1);
    }
    MPI_Comm_free(&half);
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    long iterations = argc > 1 ? atol(argv[1]) : 500;
    int rank, size, farm = argc <= 2 || strcmp(argv[2], "farm") == 0;
    long total = 0;

    if (argc > 3)
        work = atol(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        printf("no_point: %s\n", farm ? "farm" : "halves");
        fflush(stdout);
    }
    if (!farm)
        total = halves(iterations, rank, size);
    else if (rank == 0)
        total = farm_master(iterations, size);
    else
        farm_worker();
    if (rank == 0)
        printf("result %ld\n", total);
    MPI_Finalize();
    return 0;
}
