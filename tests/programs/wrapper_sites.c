/* SPDX-License-Identifier: MIT */
/* Every reduction goes through one function, global_sum(), called from a loop in set-up and from
 * several places in the main loop: a diffusion with a moving source.
 * usage: wrapper_sites [steps] [cells] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MODES = 12 };

typedef struct field {
    int first, cells, rank, size;
    double *u, *next, *source;
} field_t;

__attribute__((noinline)) double global_sum(double part)
{
    double total;

    MPI_Allreduce(&part, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

static double moment(const field_t *f, int power)
{
    double sum = 0.0;

    for (int i = 1; i <= f->cells; i++) {
        double weight = 1.0;

        for (int k = 0; k < power; k++)
            weight *= (f->first + i) * 1e-3;
        sum += f->u[i] * weight;
    }
    return global_sum(sum);
}

/* The source is built from modes, each scaled to the same total: a loop of reductions. */
static void make_source(field_t *f)
{
    for (int m = 0; m < MODES; m++) {
        double sum = 0.0;

        for (int i = 1; i <= f->cells; i++)
            sum += ((f->first + i) * (m + 3)) % 41;
        double scale = 1.0 / global_sum(sum);
        for (int i = 1; i <= f->cells; i++)
            f->source[i] += scale * (((f->first + i) * (m + 3)) % 41);
    }
}

static void exchange(field_t *f)
{
    int left = f->rank > 0 ? f->rank - 1 : MPI_PROC_NULL;
    int right = f->rank + 1 < f->size ? f->rank + 1 : MPI_PROC_NULL;

    MPI_Sendrecv(&f->u[1], 1, MPI_DOUBLE, left, 5, &f->u[f->cells + 1], 1, MPI_DOUBLE, right, 5,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&f->u[f->cells], 1, MPI_DOUBLE, right, 6, &f->u[0], 1, MPI_DOUBLE, left, 6,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double diffuse(field_t *f, double strength)
{
    double change = 0.0, *swap;

    exchange(f);
    for (int i = 1; i <= f->cells; i++) {
        f->next[i] =
            f->u[i] + 0.2 * (f->u[i - 1] - 2 * f->u[i] + f->u[i + 1]) + strength * f->source[i];
        change += (f->next[i] - f->u[i]) * (f->next[i] - f->u[i]);
    }
    swap = f->u;
    f->u = f->next;
    f->next = swap;
    return global_sum(change);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 200;
    int n = argc > 2 ? atoi(argv[2]) : 15013;
    field_t f;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &f.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &f.size);
    f.first = (int)((long)n * f.rank / f.size);
    f.cells = (int)((long)n * (f.rank + 1) / f.size) - f.first;
    f.u = calloc(f.cells + 2, sizeof *f.u);
    f.next = calloc(f.cells + 2, sizeof *f.next);
    f.source = calloc(f.cells + 2, sizeof *f.source);
    for (int i = 1; i <= f.cells; i++)
        f.u[i] = ((f.first + i) * 7) % 23;
    make_source(&f);
    if (f.rank == 0)
        printf("wrapper_sites: %d cells, %d modes\n", n, MODES);
    double change = 0.0, mean = moment(&f, 0);
    for (int step = 1; step <= steps; step++) {
        change = diffuse(&f, 0.5 + 1e-6 * mean);
        mean = moment(&f, 0);
        if (step % 3 == 0)
            mean += 1e-3 * moment(&f, 2);
        if (f.rank == 0 && step % 20 == 0)
            printf("step %d change %.8e mean %.10e\n", step, change, mean);
    }
    double first = moment(&f, 1), second = moment(&f, 2);
    if (f.rank == 0)
        printf("result change %.8e moments %.10e %.10e\n", change, first, second);
    MPI_Finalize();
    return 0;
}
