/* SPDX-License-Identifier: MIT */
/* Conjugate gradients on a symmetric matrix that rank 0 reads from a Matrix Market file and deals
 * out with Scatterv; p travels by Gatherv and Bcast. The right-hand side grows every 20 iterations.
 * usage: cg_matrix_market iterations FILE.mtx */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct matrix {
    int n, *start, *column;
    double *value;
} matrix_t;

typedef struct entry {
    int row, column;
    double value;
} entry_t;

static int rank, size, *counts, *displs;

static void give_up(const char *what)
{
    fprintf(stderr, "cg_matrix_market: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static entry_t *read_entries(FILE *in, int n, int stored, int *count)
{
    entry_t *all = malloc(2 * (size_t)stored * sizeof *all);

    *count = 0;
    for (int k = 0; k < stored; k++) {
        entry_t e;

        if (fscanf(in, "%d %d %lf", &e.row, &e.column, &e.value) != 3 || e.row < 1 || e.row > n ||
            e.column < 1 || e.column > e.row)
            give_up("bad entry");
        e.row--;
        e.column--;
        all[(*count)++] = e;
        if (e.row != e.column)
            all[(*count)++] = (entry_t){e.column, e.row, e.value};
    }
    return all;
}

/* On rank 0 only. */
static matrix_t read_matrix(const char *path)
{
    matrix_t m;
    char line[256];
    int columns, stored, count;
    FILE *in = fopen(path, "r");

    if (in == NULL || fgets(line, sizeof line, in) == NULL ||
        strcmp(line, "%%MatrixMarket matrix coordinate real symmetric\n") != 0)
        give_up("no symmetric Matrix Market file");
    while (fgets(line, sizeof line, in) != NULL && line[0] == '%')
        continue;
    if (sscanf(line, "%d %d %d", &m.n, &columns, &stored) != 3 || m.n != columns)
        give_up("bad sizes");
    entry_t *all = read_entries(in, m.n, stored, &count);
    fclose(in);
    m.start = calloc(m.n + 2, sizeof *m.start);
    m.column = malloc(count * sizeof *m.column);
    m.value = malloc(count * sizeof *m.value);
    for (int k = 0; k < count; k++)
        m.start[all[k].row + 2]++;
    for (int i = 2; i <= m.n; i++)
        m.start[i] += m.start[i - 1];
    for (int k = 0; k < count; k++) {
        int at = m.start[all[k].row + 1]++;

        m.column[at] = all[k].column;
        m.value[at] = all[k].value;
    }
    free(all);
    return m;
}

/* Deals out blocks of rows; start is relative to the own block afterwards. */
static matrix_t deal(matrix_t all)
{
    matrix_t mine = {.n = all.n};
    int *entries = malloc(size * sizeof *entries), *from = malloc(size * sizeof *from), many;

    for (int r = 0; r < size && rank == 0; r++) {
        from[r] = all.start[displs[r]];
        entries[r] = all.start[displs[r] + counts[r]] - from[r];
    }
    MPI_Scatter(entries, 1, MPI_INT, &many, 1, MPI_INT, 0, MPI_COMM_WORLD);
    mine.start = malloc((counts[rank] + 1) * sizeof *mine.start);
    mine.column = malloc(many * sizeof *mine.column);
    mine.value = malloc(many * sizeof *mine.value);
    MPI_Scatterv(all.start, counts, displs, MPI_INT, mine.start, counts[rank], MPI_INT, 0,
                 MPI_COMM_WORLD);
    MPI_Scatterv(all.column, entries, from, MPI_INT, mine.column, many, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatterv(all.value, entries, from, MPI_DOUBLE, mine.value, many, MPI_DOUBLE, 0,
                 MPI_COMM_WORLD);
    for (int i = counts[rank] - 1; i >= 0; i--)
        mine.start[i] -= mine.start[0];
    mine.start[counts[rank]] = many;
    free(entries);
    free(from);
    return mine;
}

static void split_rows(int n)
{
    counts = malloc(size * sizeof *counts);
    displs = malloc(size * sizeof *displs);
    for (int r = 0; r < size; r++) {
        displs[r] = (int)((long)n * r / size);
        counts[r] = (int)((long)n * (r + 1) / size) - displs[r];
    }
}

static double dot(const double *a, const double *b)
{
    double sum = 0.0;

    for (int i = 0; i < counts[rank]; i++)
        sum += a[i] * b[i];
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void multiply(const matrix_t *a, const double *p, double *whole, double *out)
{
    MPI_Gatherv(p, counts[rank], MPI_DOUBLE, whole, counts, displs, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Bcast(whole, a->n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; i++) {
        out[i] = 0.0;
        for (int k = a->start[i]; k < a->start[i + 1]; k++)
            out[i] += a->value[k] * whole[a->column[k]];
    }
}

/* Adds to the right-hand side, hence to the residual, and starts a new direction. */
static double load_step(double *r, double *p, int it)
{
    for (int i = 0; i < counts[rank]; i++) {
        r[i] += ((displs[rank] + i) * 11 % 19 - 9) * 0.01 * (it % 7 + 1);
        p[i] = r[i];
    }
    return dot(r, r);
}

static double solve(const matrix_t *a, double *x, int iterations)
{
    int rows = counts[rank];
    double *r = malloc(rows * sizeof *r), *p = malloc(rows * sizeof *p);
    double *ap = malloc(rows * sizeof *ap), *whole = malloc(a->n * sizeof *whole);

    for (int i = 0; i < rows; i++) {
        x[i] = 0.0;
        p[i] = r[i] = 1.0 + (displs[rank] + i) % 17 * 0.125;
    }
    double rr = dot(r, r);
    for (int it = 1; it <= iterations; it++) {
        multiply(a, p, whole, ap);
        double alpha = rr / dot(p, ap);
        for (int i = 0; i < rows; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
        }
        double next = dot(r, r);
        for (int i = 0; i < rows; i++)
            p[i] = r[i] + next / rr * p[i];
        rr = next;
        if (it % 20 == 0)
            rr = load_step(r, p, it);
        if (rank == 0 && it % 10 == 0)
            printf("iteration %d |r|^2 %.6e\n", it, rr);
    }
    free(r);
    free(p);
    free(ap);
    free(whole);
    return rr;
}

int main(int argc, char **argv)
{
    matrix_t all = {0};
    double sum = 0.0, total;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3)
        give_up("usage: cg_matrix_market iterations FILE.mtx");
    if (rank == 0)
        all = read_matrix(argv[2]);
    MPI_Bcast(&all.n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    split_rows(all.n);
    if (rank == 0)
        printf("cg_matrix_market: %d rows, %d entries\n", all.n, all.start[all.n]);
    matrix_t mine = deal(all);
    free(all.start);
    free(all.column);
    free(all.value);
    double *x = malloc(counts[rank] * sizeof *x);
    double rr = solve(&mine, x, atoi(argv[1]));
    for (int i = 0; i < counts[rank]; i++)
        sum += x[i] * (1 + (displs[rank] + i) % 89);
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("result |r|^2 %.6e checksum %.9e\n", rr, total);
    MPI_Finalize();
    return 0;
}
