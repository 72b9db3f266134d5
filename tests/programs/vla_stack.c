/* SPDX-License-Identifier: MIT */
/* Variable-length arrays on the stack, in main (one entry a process) and in a function that comes and
 * goes between the collectives (one entry an element): a replicated field relaxed in blocks.
 * usage: vla_stack [steps] [elements] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* New values of the own part; returns how much they differ from the old ones. */
static double sweep(const double *field, int n, int first, int mine, const double *weight,
                    double *out)
{
    double scratch[mine + 1], change = 0.0;

    for (int i = 0; i < mine; i++) {
        int at = first + i;
        double left = field[(at + n - 1) % n], right = field[(at + 1) % n];

        scratch[i] = field[at] + weight[i] * (0.5 * (left + right) - field[at]);
        change += (scratch[i] - field[at]) * (scratch[i] - field[at]);
    }
    for (int i = 0; i < mine; i++)
        out[i] = scratch[i];
    return change;
}

static double relax(double *field, int n, int rank, const int *counts, const int *displs,
                    const double *weight, double *own)
{
    int mine = counts[rank];
    double change = sweep(field, n, displs[rank], mine, weight, own);

    MPI_Allgatherv(own, mine, MPI_DOUBLE, field, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return change;
}

static void age(double *weight, int mine, int first, int step)
{
    for (int i = 0; i < mine; i++)
        weight[i] += 1e-4 * ((first + i + step) % 5 - 2);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 200;
    int n = argc > 2 ? atoi(argv[2]) : 4001;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int counts[size], displs[size];
    for (int r = 0; r < size; r++) {
        displs[r] = (int)((long)n * r / size);
        counts[r] = (int)((long)n * (r + 1) / size) - displs[r];
    }
    double *field = malloc(n * sizeof *field);
    double *weight = malloc(counts[rank] * sizeof *weight);
    double *own = malloc(counts[rank] * sizeof *own);
    for (int i = 0; i < n; i++)
        field[i] = (i * 19) % 53;
    for (int i = 0; i < counts[rank]; i++)
        weight[i] = 0.3 + 0.001 * ((displs[rank] + i) % 100);
    if (rank == 0)
        printf("vla_stack: %d elements\n", n);
    double change = 0.0;
    for (int step = 1; step <= steps; step++) {
        change = relax(field, n, rank, counts, displs, weight, own);
        age(weight, counts[rank], displs[rank], step);
        if (rank == 0 && step % 20 == 0)
            printf("step %d change %.10e\n", step, change);
    }
    double sum = 0.0, part = 0.0, total = 0.0;
    for (int i = 0; i < n; i++)
        sum += field[i] * (1 + i % 71);
    for (int i = 0; i < counts[rank]; i++)
        part += weight[i] * (1 + (displs[rank] + i) % 67);
    MPI_Reduce(&part, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("result change %.10e field %.14e weights %.10e\n", change, sum, total);
    free(field);
    free(weight);
    free(own);
    MPI_Finalize();
    return 0;
}
