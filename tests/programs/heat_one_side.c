/* SPDX-License-Identifier: MIT */
/* A pulse carried round a ring by an upwind scheme: one ghost cell, on the left side only.
 * usage: heat_one_side [steps] [cells] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double mass(const double *u, int cells)
{
    double sum = 0.0, total;

    for (int i = 1; i <= cells; i++)
        sum += u[i];
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

static double moment(const double *u, int cells, int first)
{
    double sum = 0.0, total;

    for (int i = 1; i <= cells; i++)
        sum += u[i] * (first + i);
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 500;
    int n = argc > 2 ? atoi(argv[2]) : 30011;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int cells = n / size, first = rank * cells;
    if (rank == size - 1)
        cells = n - first; /* the last one takes the rest */
    double *u = malloc((cells + 1) * sizeof *u);
    double *old = malloc((cells + 1) * sizeof *old);
    for (int i = 0; i <= cells; i++) {
        int global = (first + i - 1 + n) % n;

        u[i] = old[i] = 1.0 + global % 13 + (global > n / 3 && global < n / 2 ? 40.0 : 0.0);
    }
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    double total = mass(u, cells);
    if (rank == 0)
        printf("heat_one_side: %d cells, mass %.10e\n", n, total);
    for (int step = 1; step <= steps; step++) {
        double *swap = old;

        old = u;
        u = swap;
        MPI_Sendrecv(&old[cells], 1, MPI_DOUBLE, right, 0, &old[0], 1, MPI_DOUBLE, left, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 1; i <= cells; i++)
            u[i] = old[i] - 0.6 * (old[i] - old[i - 1]) + 1e-6 * old[i];
        total = mass(u, cells);
        if (step % 50 == 0) {
            double at = moment(u, cells, first);

            if (rank == 0)
                printf("step %d mass %.10e centre %.10e\n", step, total, at / total);
        }
    }
    double at = moment(u, cells, first);
    if (rank == 0)
        printf("result mass %.10e centre %.10e\n", total, at / total);
    free(u);
    free(old);
    MPI_Finalize();
    return 0;
}
