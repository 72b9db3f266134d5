/* SPDX-License-Identifier: MIT */
/* Conjugate gradients on a generated sparse matrix: rows in blocks, p gathered with Allgatherv. The
 * right-hand side grows every 40 iterations, so that there is always something left to solve.
 * usage: cg_allgatherv [iterations] [rows] [lines every] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct csr {
    int first, rows;
    int *start, *column;
    double *value;
} csr_t;

static double coupling(int i, int j, int n)
{
    int low = i < j ? i : j;
    int distance = abs(i - j);

    if (i < 0 || j < 0 || i >= n || j >= n)
        return 0.0;
    if (distance == 1 || (distance == 4 && low % 3 == 0))
        return 1.0 + 0.25 * (low % 5);
    return 0.0;
}

static void make_row(csr_t *a, int row, int n)
{
    static const int offsets[] = {-4, -1, 1, 4};
    int i = a->first + row;
    int at = a->start[row];
    double diagonal = 0.05;

    for (int k = 0; k < 4; k++) {
        double w = coupling(i, i + offsets[k], n);

        if (w == 0.0)
            continue;
        a->column[at] = i + offsets[k];
        a->value[at++] = -w;
        diagonal += w;
    }
    a->column[at] = i;
    a->value[at++] = diagonal;
    a->start[row + 1] = at;
}

static void make_matrix(csr_t *a, int first, int rows, int n)
{
    size_t entries = 0;

    for (int i = first; i < first + rows; i++)
        entries += 1 + (coupling(i, i - 4, n) != 0) + (coupling(i, i - 1, n) != 0) +
                   (coupling(i, i + 1, n) != 0) + (coupling(i, i + 4, n) != 0);
    a->first = first;
    a->rows = rows;
    a->start = malloc((rows + 1) * sizeof *a->start);
    a->column = malloc(entries * sizeof *a->column);
    a->value = malloc(entries * sizeof *a->value);
    a->start[0] = 0;
    for (int row = 0; row < rows; row++)
        make_row(a, row, n);
}

static void multiply(const csr_t *a, const double *p, double *out)
{
    for (int row = 0; row < a->rows; row++) {
        double sum = 0.0;

        for (int k = a->start[row]; k < a->start[row + 1]; k++)
            sum += a->value[k] * p[a->column[k]];
        out[row] = sum;
    }
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0.0, total;

    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

static double checksum(const double *x, int first, int rows)
{
    double sum = 0.0, total;

    for (int i = 0; i < rows; i++)
        sum += x[i] * (1 + (first + i) % 97);
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

/* Adds to the right-hand side, hence to the residual, and starts a new direction. */
static double load_step(double *r, double *p, int first, int rows, int it)
{
    for (int i = 0; i < rows; i++) {
        r[i] += ((first + i) * 13 % 31 - 15) * 0.001 * (it % 7 + 1);
        p[i] = r[i];
    }
    return dot(r, r, rows);
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 300;
    int n = argc > 2 ? atoi(argv[2]) : 8009;
    int every = argc > 3 ? atoi(argv[3]) : 25;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *counts = malloc(size * sizeof *counts), *displs = malloc(size * sizeof *displs);
    for (int r = 0; r < size; r++) {
        counts[r] = n / size + (r < n % size);
        displs[r] = r ? displs[r - 1] + counts[r - 1] : 0;
    }
    int rows = counts[rank], first = displs[rank];
    csr_t a;
    make_matrix(&a, first, rows, n);
    double *x = calloc(rows, sizeof *x), *r = malloc(rows * sizeof *r);
    double *p = malloc(rows * sizeof *p), *ap = malloc(rows * sizeof *ap);
    double *gathered = malloc(n * sizeof *gathered);
    for (int i = 0; i < rows; i++)
        p[i] = r[i] = ((first + i) * 37 % 101 - 50) * 0.02;
    double rr = dot(r, r, rows);
    if (rank == 0)
        printf("cg_allgatherv: %d rows, %d iterations, |r|^2 %.8e\n", n, iterations, rr);
    for (int it = 1; it <= iterations; it++) {
        MPI_Allgatherv(p, rows, MPI_DOUBLE, gathered, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD);
        multiply(&a, gathered, ap);
        double alpha = rr / dot(p, ap, rows);
        for (int i = 0; i < rows; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
        }
        double next = dot(r, r, rows);
        for (int i = 0; i < rows; i++)
            p[i] = r[i] + next / rr * p[i];
        rr = next;
        if (it % 40 == 0)
            rr = load_step(r, p, first, rows, it);
        if (rank == 0 && it % every == 0) {
            printf("iteration %d |r|^2 %.9e\n", it, rr);
            fflush(stdout);
        }
    }
    double sx = checksum(x, first, rows), sr = checksum(r, first, rows);
    if (rank == 0)
        printf("result |r|^2 %.9e checksum x %.10e r %.8e\n", rr, sx, sr);
    MPI_Finalize();
    return 0;
}
