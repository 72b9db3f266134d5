/* SPDX-License-Identifier: MIT */
/* Jacobi sweeps on a matrix of rows that are allocated one by one (double **).
 * usage: jacobi_rows [iterations] [rows] [columns] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct grid {
    int first, rows, columns; /* rows: without the two ghost rows */
    double **u, **next;
} grid_t;

static double **allocate(int rows, int columns)
{
    double **m = malloc(rows * sizeof *m);

    for (int i = 0; i < rows; i++)
        m[i] = malloc(columns * sizeof **m);
    return m;
}

static void release(double **m, int rows)
{
    for (int i = 0; i < rows; i++)
        free(m[i]);
    free(m);
}

static void start(grid_t *g, int n)
{
    g->u = allocate(g->rows + 2, g->columns);
    g->next = allocate(g->rows + 2, g->columns);
    for (int i = 0; i < g->rows + 2; i++) {
        int global = g->first + i - 1;

        for (int j = 0; j < g->columns; j++) {
            double value = global < 0 || global >= n ? j % 11 : (global * 29 + j * j) % 73;

            g->u[i][j] = g->next[i][j] = value;
        }
    }
}

static void exchange(const grid_t *g, int above, int below)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];

    MPI_Irecv(g->u[0], g->columns, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(g->u[g->rows + 1], g->columns, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(g->u[g->rows], g->columns, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(g->u[1], g->columns, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
}

static double sweep(grid_t *g)
{
    double largest = 0.0;

    for (int i = 1; i <= g->rows; i++)
        for (int j = 1; j < g->columns - 1; j++) {
            double value = 0.2 * (g->u[i][j] + g->u[i - 1][j] + g->u[i + 1][j] + g->u[i][j - 1] +
                                  g->u[i][j + 1]);
            double change = value > g->u[i][j] ? value - g->u[i][j] : g->u[i][j] - value;

            if (change > largest)
                largest = change;
            g->next[i][j] = value;
        }
    double **swap = g->u;
    g->u = g->next;
    g->next = swap;
    return largest;
}

static double checksum(const grid_t *g)
{
    double sum = 0.0, total = 0.0;

    for (int i = 1; i <= g->rows; i++)
        for (int j = 0; j < g->columns; j++)
            sum += g->u[i][j] * (1 + ((g->first + i) * 7 + j * 3) % 89);
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 300;
    int n = argc > 2 ? atoi(argv[2]) : 127;
    int rank, size, it = 0;
    grid_t g = {.columns = argc > 3 ? atoi(argv[3]) : 120};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    g.rows = n / size + (rank < n % size);
    g.first = rank * (n / size) + (rank < n % size ? rank : n % size);
    start(&g, n);
    if (rank == 0)
        printf("jacobi_rows: %d x %d\n", n, g.columns);
    while (it++ < iterations) {
        double change;

        exchange(&g, rank > 0 ? rank - 1 : MPI_PROC_NULL,
                 rank + 1 < size ? rank + 1 : MPI_PROC_NULL);
        change = sweep(&g);
        MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0 && it % 20 == 0)
            printf("iteration %d largest change %.15e\n", it, change);
    }
    double total = checksum(&g);
    if (rank == 0)
        printf("result checksum %.10e\n", total);
    release(g.u, g.rows + 2);
    release(g.next, g.rows + 2);
    MPI_Finalize();
    return 0;
}
