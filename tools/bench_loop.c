/* SPDX-License-Identifier: MIT
 * The loop of 8-byte Allreduce, bare and preloaded. All jobs live at the same time; they take turns
 * of a few milliseconds, so that whatever disturbs the machine disturbs all of them alike. */
#include "tools/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/bench/overhead_loop.h"
#include "tools/command.h"

enum { RANKS = 2, PARKED = 2, MOST_SECONDS = 600, PATIENCE_MS = 60000 };

typedef struct job {
    pid_t pid; /* of mpiexec; 0: not running */
    int orders[RANKS], answers;
} job_t;

/* What a job's turns gave, one number a turn. */
typedef struct measured {
    double *seconds, *within;
} measured_t;

static const struct {
    const char *name, *requests;
    bool preload, pool;
} kind[PL_BENCH_JOBS] = {
    [PL_BENCH_BARE] = {.name = "bare"},
    [PL_BENCH_BARE_AGAIN] = {.name = "again"},
    [PL_BENCH_PRELOADED] = {.name = "preloaded", .preload = true},
    [PL_BENCH_CONTROL] = {.name = "control", .preload = true, .requests = "control.requests"},
    [PL_BENCH_POOL] = {.name = "pool", .preload = true, .requests = "pool.requests", .pool = true},
};

/* A named pipe that can be opened at once, whoever else has it open. */
static int make_pipe(const pl_bench_t *bench, const char *name, const char *end)
{
    char file[64], path[PATH_MAX];

    snprintf(file, sizeof file, "%s.%s", name, end);
    pl_bench_path(bench, file, path);
    unlink(path);
    int fd = mkfifo(path, 0600) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        pl_complain("%s: %s", path, strerror(errno));
    return fd;
}

static pid_t launch(const pl_bench_t *bench, pl_bench_job_t which)
{
    char count[16], prefix[PATH_MAX], program[2 * PATH_MAX], control[PATH_MAX];
    char *argv[24];
    int n = 0;

    snprintf(count, sizeof count, "%d", RANKS + (kind[which].pool ? PARKED : 0));
    pl_bench_path(bench, kind[which].name, prefix);
    snprintf(program, sizeof program, "%s/overhead_loop", bench->programs);
    if (kind[which].requests)
        pl_bench_path(bench, kind[which].requests, control);
    argv[n++] = (char *)bench->mpiexec;
    argv[n++] = "-n";
    argv[n++] = count;
    if (kind[which].preload) {
        argv[n++] = "-genv", argv[n++] = "LD_PRELOAD", argv[n++] = (char *)bench->library;
    }
    if (kind[which].pool) {
        argv[n++] = "-genv", argv[n++] = "PLIANT_PROCESSES", argv[n++] = "2";
    }
    argv[n++] = program;
    argv[n++] = prefix;
    argv[n] = NULL;
    return pl_bench_start(bench, argv, kind[which].requests ? control : NULL, MOST_SECONDS);
}

static pl_status_t begin(const pl_bench_t *bench, pl_bench_job_t which, job_t *job)
{
    bool made = true;

    for (int r = 0; r < RANKS; r++) {
        char end[16];
        snprintf(end, sizeof end, "%d", r);
        job->orders[r] = make_pipe(bench, kind[which].name, end);
        made &= job->orders[r] >= 0;
    }
    job->answers = make_pipe(bench, kind[which].name, "back");
    if (!made || job->answers < 0)
        return PL_ERR_IO;
    pid_t pid = launch(bench, which);
    job->pid = pid > 0 ? pid : 0;
    return pid > 0 ? PL_OK : PL_ERR_IO;
}

static void order(const job_t *job, int batches)
{
    for (int r = 0; r < RANKS; r++)
        if (job->orders[r] >= 0 && write(job->orders[r], &batches, sizeof batches) < 0)
            pl_complain("cannot write to a benchmark program: %s", strerror(errno));
}

static pl_status_t turn(const pl_bench_t *bench, const job_t *job, struct loop_answer *answer)
{
    struct pollfd wait = {.fd = job->answers, .events = POLLIN};

    order(job, TURN_BATCHES);
    if (poll(&wait, 1, PATIENCE_MS) != 1 ||
        read(job->answers, answer, sizeof *answer) != (ssize_t)sizeof *answer) {
        pl_bench_complain(bench, "a benchmark program does not answer");
        return PL_ERR_IO;
    }
    return PL_OK;
}

static pl_status_t end(const pl_bench_t *bench, job_t *job, bool in_order)
{
    pl_status_t status = PL_OK;

    if (job->pid && in_order)
        order(job, 0);
    else if (job->pid)
        kill(-job->pid, SIGTERM);
    if (job->pid && pl_bench_wait(job->pid) != 0 && in_order) {
        pl_bench_complain(bench, "a benchmark program failed");
        status = PL_ERR_IO;
    }
    for (int r = 0; r < RANKS; r++)
        if (job->orders[r] >= 0)
            close(job->orders[r]);
    if (job->answers >= 0)
        close(job->answers);
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Whoever runs finds the caches as the one before left them: no job always follows the same. */
static void shuffle(int *order)
{
    static uint32_t state = 1;

    for (int i = PL_BENCH_JOBS - 1; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        int other = (int)((state >> 16) % (unsigned)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static pl_status_t take_turns(const pl_bench_t *bench, const job_t *jobs, int rounds,
                              measured_t m[PL_BENCH_JOBS], pl_bench_ratio_t *out)
{
    struct loop_answer answer;
    int sequence[PL_BENCH_JOBS];

    for (int j = 0; j < PL_BENCH_JOBS; j++)
        sequence[j] = j;
    for (int i = -1; i < rounds; i++) { /* the first to get warm */
        shuffle(sequence);
        for (int k = 0; k < PL_BENCH_JOBS; k++) {
            int j = sequence[k];
            if (turn(bench, &jobs[j], &answer) != PL_OK)
                return PL_ERR_IO;
            m[j].seconds[i < 0 ? 0 : i] = answer.seconds;
            m[j].within[i < 0 ? 0 : i] = answer.seconds / answer.seconds_past;
            out[j].resident = answer.resident;
            out[j].anonymous = answer.anonymous;
        }
    }
    return PL_OK;
}

static pl_status_t one_launch(const pl_bench_t *bench, int rounds, measured_t m[PL_BENCH_JOBS],
                              pl_bench_ratio_t *out)
{
    job_t jobs[PL_BENCH_JOBS];
    pl_status_t status = PL_OK;

    for (int j = 0; j < PL_BENCH_JOBS; j++)
        jobs[j] = (job_t){.orders = {-1, -1}, .answers = -1};
    for (int j = 0; j < PL_BENCH_JOBS && status == PL_OK; j++)
        status = begin(bench, (pl_bench_job_t)j, &jobs[j]);
    if (status == PL_OK)
        status = take_turns(bench, jobs, rounds, m, out);
    for (int j = 0; j < PL_BENCH_JOBS; j++) {
        pl_status_t ended = end(bench, &jobs[j], status == PL_OK);
        status = status == PL_OK ? ended : status;
    }
    return status;
}

/* The medians of one launch. */
static void summarise(measured_t m[PL_BENCH_JOBS], double *ratios, int rounds,
                      pl_bench_ratio_t out[PL_BENCH_JOBS])
{
    for (int j = PL_BENCH_JOBS - 1; j >= 0; j--) { /* the bare one last: median sorts */
        for (int i = 0; i < rounds; i++)
            ratios[i] = m[j].seconds[i] / m[PL_BENCH_BARE].seconds[i];
        out[j].ratio = median(ratios, rounds);
        out[j].within = median(m[j].within, rounds);
        out[j].seconds = median(m[j].seconds, rounds);
    }
}

static void conclude(int launches, pl_bench_ratio_t one[][PL_BENCH_JOBS],
                     pl_bench_ratio_t out[PL_BENCH_JOBS])
{
    double seconds[launches], within[launches], ratio[launches];

    for (int j = 0; j < PL_BENCH_JOBS; j++) {
        for (int l = 0; l < launches; l++) {
            seconds[l] = one[l][j].seconds;
            within[l] = one[l][j].within;
            ratio[l] = one[l][j].ratio;
        }
        out[j] = one[0][j];
        out[j].seconds = median(seconds, launches);
        out[j].within = median(within, launches);
        out[j].ratio = median(ratio, launches);
        out[j].low = ratio[0];
        out[j].high = ratio[launches - 1];
    }
}

pl_status_t pl_bench_loop(const pl_bench_t *bench, int launches, int rounds,
                          pl_bench_ratio_t out[PL_BENCH_JOBS])
{
    pl_bench_ratio_t one[launches][PL_BENCH_JOBS];
    size_t n = (size_t)rounds;
    double *memory = calloc(n * (2 * PL_BENCH_JOBS + 1), sizeof *memory);
    measured_t m[PL_BENCH_JOBS];
    pl_status_t status = memory ? PL_OK : PL_ERR_NOMEM;

    for (size_t j = 0; memory && j < PL_BENCH_JOBS; j++)
        m[j] = (measured_t){memory + 2 * n * j, memory + 2 * n * j + n};
    for (int l = 0; l < launches && status == PL_OK; l++) {
        status = one_launch(bench, rounds, m, one[l]);
        if (status == PL_OK)
            summarise(m, memory + 2 * n * PL_BENCH_JOBS, rounds, one[l]);
    }
    free(memory);
    if (status == PL_OK)
        conclude(launches, one, out);
    return status;
}
