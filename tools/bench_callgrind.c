/* SPDX-License-Identifier: MIT
 * Instructions of every case of bench/cases.def, bare and with libpliant, read from the profiles
 * that callgrind writes at the program's marks. */
#include "tools/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/overhead_cases.h"
#include "tools/command.h"

/* What pl_arrive calls when something is due; its callees are the cost of a round. */
#define ROUND_FUNCTION "pl_resize_tick"
#define MOST_SECONDS   120

static const int per[PL_BENCH_CASES] = {
#define CASE(id, kind, frames, per, title, statement) per,
#include "tools/bench/cases.def"
#undef CASE
};

typedef struct profile {
    double total;
    double rounds, rounds_total; /* how many, and their instructions */
    double zeroing;              /* instructions of memset */
} profile_t;

/* "calls=COUNT LINE" is followed by "LINE INSTRUCTIONS": what these calls cost altogether. */
static void add_calls(FILE *in, const char *line, bool in_round, profile_t *out)
{
    char next[4096];
    double calls = strtod(line + strlen("calls="), NULL), cost;

    if (fgets(next, sizeof next, in) && in_round && sscanf(next, "%*s %lf", &cost) == 1) {
        out->rounds += calls;
        out->rounds_total += cost;
    }
}

static pl_status_t read_profile(const pl_bench_t *bench, const char *name, int number,
                                profile_t *out)
{
    char file[64], path[PATH_MAX], line[4096];
    profile_t p = {0};
    bool in_round = false, in_memset = false, complete = false;
    double cost;

    snprintf(file, sizeof file, "%s.%d", name, number);
    pl_bench_path(bench, file, path);
    FILE *in = fopen(path, "r");
    if (!in) {
        pl_complain("%s: %s", path, strerror(errno));
        return PL_ERR_IO;
    }
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "fn=", 3) == 0)
            in_memset = strncmp(line + 3, "__memset", 8) == 0;
        else if (strncmp(line, "cfn=", 4) == 0)
            in_round = strcmp(line + 4, ROUND_FUNCTION) == 0;
        else if (strncmp(line, "calls=", 6) == 0)
            add_calls(in, line, in_round, &p);
        else if (in_memset && sscanf(line, "%*d %lf", &cost) == 1)
            p.zeroing += cost;
        else if (sscanf(line, "totals: %lf", &p.total) == 1)
            complete = true;
    }
    fclose(in);
    if (!complete) {
        pl_complain("%s is no complete profile of callgrind", path);
        return PL_ERR_IO;
    }
    *out = p;
    return PL_OK;
}

static pl_status_t profile(const pl_bench_t *bench, const char *program, const char *control)
{
    char path[2 * PATH_MAX], out[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", bench->programs, program);
    /* callgrind counts a string instruction once per byte: have memset and memcpy use others. */
    setenv("GLIBC_TUNABLES",
           "glibc.cpu.x86_rep_stosb_threshold=16777216:glibc.cpu.x86_rep_movsb_threshold=16777216",
           1);
    snprintf(out, sizeof out, "--callgrind-out-file=%s/%s", bench->folder, program);
    char *const argv[] = {"valgrind",
                          "--tool=callgrind",
                          "--compress-strings=no",
                          "--compress-pos=no",
                          "--dump-before=mark",
                          out,
                          path,
                          NULL};
    pid_t child = pl_bench_start(bench, argv, control, MOST_SECONDS);
    if (child < 0)
        return PL_ERR_IO;
    if (pl_bench_wait(child) != 0) {
        pl_bench_complain(bench, "valgrind --tool=callgrind failed");
        return PL_ERR_IO;
    }
    return PL_OK;
}

static bool has_valgrind(const pl_bench_t *bench)
{
    char *const argv[] = {"valgrind", "--version", NULL};
    pid_t child = pl_bench_start(bench, argv, NULL, MOST_SECONDS);
    return child > 0 && pl_bench_wait(child) == 0;
}

static pl_status_t count_case(const pl_bench_t *bench, const char *bare, const char *with, int i,
                              pl_bench_count_t *out)
{
    profile_t b[2], w[2];
    double n = CASE_ITERATIONS * (double)per[i];

    for (int pass = 1; pass <= 2; pass++)
        if (read_profile(bench, bare, CASE_PROFILE(i, pass), &b[pass - 1]) != PL_OK ||
            read_profile(bench, with, CASE_PROFILE(i, pass), &w[pass - 1]) != PL_OK)
            return PL_ERR_IO;
    double rounds = w[0].rounds + w[1].rounds;
    double ordinary[2] = {w[0].total - w[0].rounds_total, w[1].total - w[1].rounds_total};

    *out = (pl_bench_count_t){.bare = (b[1].total - b[0].total) / n};
    out->zeroing = (w[1].zeroing - w[0].zeroing - b[1].zeroing + b[0].zeroing) / n;
    out->extra = (ordinary[1] - ordinary[0]) / n - out->bare;
    if (rounds > 0) {
        out->round = out->extra + (w[0].rounds_total + w[1].rounds_total) / rounds;
        out->every = 3 * n / rounds;
    }
    return PL_OK;
}

pl_status_t pl_bench_instructions(const pl_bench_t *bench, pl_bench_count_t out[PL_BENCH_CASES])
{
    static const char bare[] = "overhead_cases", with[] = "overhead_cases_pliant";
    pl_bench_count_t counts[PL_BENCH_CASES];
    char control[PATH_MAX];

    if (!has_valgrind(bench))
        return PL_NONE;
    pl_bench_path(bench, "control.callgrind", control);
    if (profile(bench, bare, NULL) != PL_OK || profile(bench, with, control) != PL_OK)
        return PL_ERR_IO;
    for (int i = 0; i < PL_BENCH_CASES; i++)
        if (count_case(bench, bare, with, i, &counts[i]) != PL_OK)
            return PL_ERR_IO;
    memcpy(out, counts, sizeof counts);
    return PL_OK;
}
