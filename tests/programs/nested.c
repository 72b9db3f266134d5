/* SPDX-License-Identifier: MIT */
/* Implicit heat equation: in each time step an inner conjugate gradient iteration runs until it has
 * converged; reductions in both loops.
 * usage: nested [steps] [cells] */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size, first, cells, left, right;
static double *r, *p, *ap, *rhs;

static double dot(const double *a, const double *b)
{
    double sum = 0.0, total;

    for (int i = 1; i <= cells; i++)
        sum += a[i] * b[i];
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

/* out = (1 + 2c) v - c (neighbours), c = 4 */
static void apply(double *v, double *out)
{
    MPI_Sendrecv(&v[1], 1, MPI_DOUBLE, left, 1, &v[cells + 1], 1, MPI_DOUBLE, right, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&v[cells], 1, MPI_DOUBLE, right, 2, &v[0], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 1; i <= cells; i++)
        out[i] = 9.0 * v[i] - 4.0 * (v[i - 1] + v[i + 1]);
}

static int solve(double *u)
{
    int iterations = 0;

    apply(u, ap);
    for (int i = 1; i <= cells; i++)
        p[i] = r[i] = rhs[i] - ap[i];
    double rr = dot(r, r), goal = 1e-8 * rr;
    while (rr > goal) {
        apply(p, ap);
        double alpha = rr / dot(p, ap);
        for (int i = 1; i <= cells; i++) {
            u[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
        }
        double next = dot(r, r);
        for (int i = 1; i <= cells; i++)
            p[i] = r[i] + next / rr * p[i];
        rr = next;
        iterations++;
    }
    return iterations;
}

static double *vector(void)
{
    return calloc(cells + 2, sizeof(double));
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 30;
    int n = argc > 2 ? atoi(argv[2]) : 9001;
    int all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    cells = n / size + (rank < n % size);
    first = rank * (n / size) + (rank < n % size ? rank : n % size);
    left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    double *u = vector();
    r = vector();
    p = vector();
    ap = vector();
    rhs = vector();
    for (int i = 1; i <= cells; i++)
        u[i] = 10.0 * sin(0.01 * (first + i)) + (first + i) % 5;
    if (rank == 0)
        printf("nested: %d cells\n", n);
    for (int step = 1; step <= steps; step++) {
        for (int i = 1; i <= cells; i++)
            rhs[i] = u[i] + 0.1 * ((first + i + step) % 9 - 4);
        int iterations = solve(u);
        double norm = sqrt(dot(u, u));
        all += iterations;
        if (rank == 0)
            printf("step %d: %d iterations, norm %.9e\n", step, iterations, norm);
    }
    double sum = 0.0, total;
    for (int i = 1; i <= cells; i++)
        sum += u[i] * (1 + (first + i) % 61);
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("result iterations %d checksum %.8e\n", all, total);
    MPI_Finalize();
    return 0;
}
