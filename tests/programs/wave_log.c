/* SPDX-License-Identifier: MIT */
/* Explicit wave equation; the state is one struct on the heap. Rank 0 keeps two files: a log that
 * stays open from set-up on, and a trace that is opened, appended to and closed again each time.
 * usage: wave_log [steps] [points] [log file] [trace file] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct wave {
    int rank, size;
    int first, points; /* own points, at index 1 .. points */
    int step, lines;
    double *before, *now, *after;
    double energy;
    FILE *log;
    const char *trace;
} wave_t;

static wave_t *wave_create(int n, const char *log, const char *trace)
{
    wave_t *w = calloc(1, sizeof *w);

    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->size);
    w->first = (int)((long)n * w->rank / w->size);
    w->points = (int)((long)n * (w->rank + 1) / w->size) - w->first;
    w->before = calloc(w->points + 2, sizeof(double));
    w->now = calloc(w->points + 2, sizeof(double));
    w->after = calloc(w->points + 2, sizeof(double));
    w->trace = trace;
    for (int i = 1; i <= w->points; i++) {
        int global = w->first + i - 1;

        w->now[i] = global > 0 && global < n - 1 ? ((global * 61) % 127 - 63) * 0.01 : 0.0;
        w->before[i] = w->now[i];
    }
    if (w->rank == 0) {
        FILE *empty = fopen(trace, "w");

        w->log = fopen(log, "w");
        if (w->log == NULL || empty == NULL || fclose(empty) != 0) {
            perror("wave_log");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        fprintf(w->log, "# wave of %d points\n", n);
        printf("wave_log: %d points\n", n);
    }
    return w;
}

static void wave_step(wave_t *w, int n)
{
    int left = w->rank > 0 ? w->rank - 1 : MPI_PROC_NULL;
    int right = w->rank < w->size - 1 ? w->rank + 1 : MPI_PROC_NULL;
    double energy = 0.0, *swap;

    MPI_Sendrecv(&w->now[1], 1, MPI_DOUBLE, left, 0, &w->now[w->points + 1], 1, MPI_DOUBLE, right,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&w->now[w->points], 1, MPI_DOUBLE, right, 0, &w->now[0], 1, MPI_DOUBLE, left, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 1; i <= w->points; i++) {
        int global = w->first + i - 1;

        if (global == 0 || global == n - 1)
            continue;
        w->after[i] =
            2 * w->now[i] - w->before[i] + 0.25 * (w->now[i - 1] - 2 * w->now[i] + w->now[i + 1]);
        energy += (w->after[i] - w->now[i]) * (w->after[i] - w->now[i]);
    }
    swap = w->before;
    w->before = w->now;
    w->now = w->after;
    w->after = swap;
    w->step++;
    MPI_Allreduce(&energy, &w->energy, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void wave_report(wave_t *w)
{
    FILE *trace;

    w->lines++;
    if (w->rank != 0)
        return;
    fprintf(w->log, "%d %d %.9e\n", w->lines, w->step, w->energy);
    if (w->lines % 4 == 0) {
        trace = fopen(w->trace, "a");
        fprintf(trace, "step %d, third value %.15e, log at %ld\n", w->step, w->now[3],
                ftell(w->log));
        fclose(trace);
        printf("step %d energy %.9e\n", w->step, w->energy);
    }
}

static double wave_checksum(const wave_t *w)
{
    double sum = 0.0, total;

    for (int i = 1; i <= w->points; i++)
        sum += (w->now[i] - 0.5 * w->before[i]) * (1 + (w->first + i) % 113);
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 400;
    int n = argc > 2 ? atoi(argv[2]) : 20011;

    MPI_Init(&argc, &argv);
    wave_t *w = wave_create(n, argc > 3 ? argv[3] : "wave.log", argc > 4 ? argv[4] : "wave.trace");
    while (w->step < steps) {
        wave_step(w, n);
        if (w->step % 5 == 0)
            wave_report(w);
    }
    double total = wave_checksum(w);
    if (w->rank == 0) {
        fprintf(w->log, "# end at step %d after %d lines\n", w->step, w->lines);
        fclose(w->log);
        printf("result step %d lines %d checksum %.9e\n", w->step, w->lines, total);
    }
    free(w->before);
    free(w->now);
    free(w->after);
    free(w);
    MPI_Finalize();
    return 0;
}
