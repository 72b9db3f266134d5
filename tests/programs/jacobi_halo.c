/* SPDX-License-Identifier: MIT */
/* Jacobi sweeps on a plate: rows in blocks, one array with a ghost row on each side, pointers
 * swapped every iteration.
 * usage: jacobi_halo [iterations] [rows] [columns] [lines every] */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int columns;

static void exchange(double *u, int rows, int up, int down)
{
    MPI_Sendrecv(u + columns, columns, MPI_DOUBLE, up, 1, u + (rows + 1) * columns, columns,
                 MPI_DOUBLE, down, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(u + rows * columns, columns, MPI_DOUBLE, down, 2, u, columns, MPI_DOUBLE, up, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double sweep(const double *u, double *next, int rows)
{
    double change = 0.0;

    for (int i = 1; i <= rows; i++) {
        const double *row = u + i * columns;
        double *out = next + i * columns;

        for (int j = 1; j < columns - 1; j++) {
            out[j] = 0.25 * (row[j - columns] + row[j + columns] + row[j - 1] + row[j + 1]);
            change += (out[j] - row[j]) * (out[j] - row[j]);
        }
    }
    return change;
}

static void start(double *u, double *next, int rows, int first, int n)
{
    for (int i = 0; i <= rows + 1; i++) {
        int global = first + i - 1;

        for (int j = 0; j < columns; j++) {
            double value = 0.0;

            if (global < 0)
                value = 100.0 + j % 7; /* the hot edge */
            else if (global < n)
                value = (global * 131 + j * 17) % 89;
            u[i * columns + j] = next[i * columns + j] = value;
        }
    }
}

static double checksum(const double *u, int rows, int first)
{
    double sum = 0.0, total = 0.0;

    for (int i = 1; i <= rows; i++)
        for (int j = 0; j < columns; j++)
            sum += u[i * columns + j] * (1 + ((first + i) * 13 + j) % 101);
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 400;
    int n = argc > 2 ? atoi(argv[2]) : 203;
    int every = argc > 4 ? atoi(argv[4]) : 25;
    int rank, size;

    columns = argc > 3 ? atoi(argv[3]) : 150;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int first = (int)((long)n * rank / size);
    int rows = (int)((long)n * (rank + 1) / size) - first;
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    double *u = malloc((size_t)(rows + 2) * columns * sizeof *u);
    double *next = malloc((size_t)(rows + 2) * columns * sizeof *next);
    start(u, next, rows, first, n);
    if (rank == 0)
        printf("jacobi_halo: plate of %d x %d, %d iterations\n", n, columns, iterations);
    for (int it = 1; it <= iterations; it++) {
        double change, local;

        exchange(u, rows, up, down);
        local = sweep(u, next, rows);
        double *swap = u;
        u = next;
        next = swap;
        MPI_Allreduce(&local, &change, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0 && it % every == 0) {
            printf("iteration %5d  change %.9e\n", it, sqrt(change));
            fflush(stdout);
        }
    }
    double total = checksum(u, rows, first);
    if (rank == 0)
        printf("result checksum %.10e\n", total);
    free(u);
    free(next);
    MPI_Finalize();
    return 0;
}
