/* SPDX-License-Identifier: MIT
 * A loop of 8-byte Allreduce for `pliant bench overhead`. Several of these jobs live at a time, and
 * only the one that is told to run uses the processor: each rank reads from FOLDER/JOB.RANK how
 * many batches to run (0: end), and rank 0 answers in FOLDER/JOB.back. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "overhead_loop.h"

static int open_pipe(const char *prefix, const char *end, int flags)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", prefix, end);
    int fd = open(path, flags);
    if (fd < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return fd;
}

/* VmRSS and RssAnon of this process in KiB. */
static void read_memory(struct loop_answer *answer)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "VmRSS: %d", &answer->resident);
        sscanf(line, "RssAnon: %d", &answer->anonymous);
    }
    if (status)
        fclose(status);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double batch(int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm),
                    MPI_Comm comm)
{
    double mine = 1, all = 0, start = MPI_Wtime();
    for (int i = 0; i < BATCH_CALLS; i++)
        allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
    return (MPI_Wtime() - start) / BATCH_CALLS;
}

/* Seconds per call, once through a preloaded library and once past it: medians of batches in turn,
 * which a process that is in the way for some milliseconds hardly changes. */
static void run(int batches, MPI_Comm copy, struct loop_answer *answer)
{
    static double through[MOST_BATCHES], past[MOST_BATCHES];

    if (batches > MOST_BATCHES)
        batches = MOST_BATCHES;
    for (int b = -WARM_BATCHES; b < batches; b++) {
        through[b < 0 ? 0 : b] = batch(MPI_Allreduce, MPI_COMM_WORLD);
        past[b < 0 ? 0 : b] = batch(PMPI_Allreduce, copy);
    }
    qsort(through, (size_t)batches, sizeof *through, compare);
    qsort(past, (size_t)batches, sizeof *past, compare);
    answer->seconds = through[batches / 2];
    answer->seconds_past = past[batches / 2];
}

int main(int argc, char **argv)
{
    char number[16];
    int rank, batches, answers = -1;
    MPI_Comm copy;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (argc != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(number, sizeof number, "%d", rank);
    int orders = open_pipe(argv[1], number, O_RDONLY);
    if (rank == 0)
        answers = open_pipe(argv[1], "back", O_WRONLY);
    while (read(orders, &batches, sizeof batches) == (ssize_t)sizeof batches && batches > 0) {
        struct loop_answer answer = {0};
        run(batches, copy, &answer);
        read_memory(&answer);
        if (rank == 0 && write(answers, &answer, sizeof answer) != (ssize_t)sizeof answer)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
