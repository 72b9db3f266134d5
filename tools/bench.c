/* SPDX-License-Identifier: MIT
 * `pliant bench overhead`: what it costs a program that Pliant stands beside it. */
#include "tools/bench.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/number.h"
#include "tools/command.h"
#include "tools/mpiexec.h"

enum { KEY_MPIEXEC = 0x1000, KEY_LIBRARY, KEY_LAUNCHES, KEY_ROUNDS, KEY_ONLY, KEY_CHECK };
enum { CALL, HEAP };

static const double most_per_call = 100, most_per_pair = 150, most_ratio = 1.01;
static const double exact_ratio = 0.004; /* as much as two bare jobs may differ */

static const struct {
    int kind;
    const char *title;
} cases[PL_BENCH_CASES] = {
#define CASE(id, kind, frames, per, title, statement) {kind, title},
#include "tools/bench/cases.def"
#undef CASE
};

static const char *const job_title[PL_BENCH_JOBS] = {
    [PL_BENCH_BARE] = "bare",
    [PL_BENCH_BARE_AGAIN] = "bare again (how exact this is)",
    [PL_BENCH_PRELOADED] = "preloaded",
    [PL_BENCH_CONTROL] = "preloaded, control file",
    [PL_BENCH_POOL] = "preloaded, control file, 2 parked",
};

typedef struct overhead {
    const char *what, *mpiexec, *library;
    long launches, rounds;
    bool no_instructions, no_loop, check;
    bool missed; /* a goal */
} overhead_t;

static long number(struct argp_state *state, const char *name, const char *text, long most)
{
    long value;
    if (pl_number_parse(text, strlen(text), 1, most, &value) != PL_OK)
        argp_error(state, "--%s: '%s' is not valid; valid is a number from 1 to %ld", name, text,
                   most);
    return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    overhead_t *o = state->input;

    switch (key) {
    case KEY_MPIEXEC:
        o->mpiexec = arg;
        return 0;
    case KEY_LIBRARY:
        o->library = arg;
        return 0;
    case KEY_LAUNCHES:
        o->launches = number(state, "launches", arg, 100);
        return 0;
    case KEY_ROUNDS:
        o->rounds = number(state, "rounds", arg, 100000);
        return 0;
    case KEY_ONLY:
        o->no_loop = strcmp(arg, "instructions") == 0;
        o->no_instructions = strcmp(arg, "loop") == 0;
        if (!o->no_loop && !o->no_instructions)
            argp_error(state, "--only: '%s' is not valid; valid are instructions and loop", arg);
        return 0;
    case KEY_CHECK:
        o->check = true;
        return 0;
    case ARGP_KEY_ARG:
        if (o->what || strcmp(arg, "overhead") != 0)
            argp_error(state, "'%s' is not valid; there is one benchmark: overhead", arg);
        o->what = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->what)
            argp_error(state, "which benchmark? There is one: pliant bench overhead");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The benchmark programs are beside this executable (build folder) or in ../libexec. */
static pl_status_t find_programs(char out[PATH_MAX])
{
    static const char *const places[] = {"bench", "../libexec/pliant"};
    char self[PATH_MAX], path[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    self[length > 0 ? length : 0] = 0;
    slash = strrchr(self, '/');
    if (slash)
        slash[1] = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s/overhead_loop", self, places[i]);
        if (access(path, X_OK) == 0 && strlen(path) < PATH_MAX) {
            *strrchr(path, '/') = 0;
            memcpy(out, path, strlen(path) + 1);
            return PL_OK;
        }
    }
    pl_complain("the benchmark programs are neither in %sbench nor in ../libexec/pliant (a build "
                "with sanitizers has none)",
                self);
    return PL_ERR_INVALID;
}

static const char *verdict(overhead_t *o, bool met)
{
    o->missed |= !met;
    return met ? "" : "  above the goal";
}

static void print_counts(overhead_t *o, const pl_bench_count_t *counts, int kind)
{
    double most = kind == CALL ? most_per_call : most_per_pair;

    printf("\nInstructions per %s; goal: at most %.0f more\n",
           kind == CALL ? "call" : "malloc/free", most);
    printf("  %-38s %8s %8s %10s %8s\n", "", "bare", "extra",
           kind == CALL ? "at a round" : "zeroing", kind == CALL ? "every" : "");
    for (int i = 0; i < PL_BENCH_CASES; i++) {
        const pl_bench_count_t *c = &counts[i];
        if (cases[i].kind != kind)
            continue;
        printf("  %-38s %8.0f %8.1f", cases[i].title, c->bare, c->extra);
        if (c->round > 0)
            printf(" %10.0f %8.0f", c->round, c->every);
        else if (kind == CALL)
            printf(" %10s %8s", "-", "-");
        else
            printf(" %10.1f %8s", c->zeroing, "");
        printf("%s\n", verdict(o, c->extra - c->zeroing <= most));
    }
}

/* Two processes that wait for each other in a loop need two idle processors. */
static void warn_of_load(double load)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (load > 0 && load + 2 > (double)processors + 0.5)
        printf("  The times and `to bare` are not to be trusted: %ld processors, and the load was "
               "%.1f before the "
               "measurement\n",
               processors, load);
}

/* The goal is judged by the ratio within a job, which is exact on a busy machine too; and by the
 * one to the bare job where two bare jobs do not differ. */
static bool loop_goal_met(const pl_bench_ratio_t *jobs, int job)
{
    double differ = jobs[PL_BENCH_BARE_AGAIN].ratio - 1;
    bool exact = differ < exact_ratio && -differ < exact_ratio;

    if (job == PL_BENCH_BARE || job == PL_BENCH_BARE_AGAIN)
        return true;
    return jobs[job].within <= most_ratio && (!exact || jobs[job].ratio <= most_ratio);
}

static void print_loop(overhead_t *o, const pl_bench_ratio_t *jobs, double load)
{
    printf(
        "\n8-byte Allreduce on 2 processes, %ld launches of %ld turns; goal: at most %.2f times "
        "the bare time\n"
        "Within: against the same processes' calls past libpliant, in turn with those through it\n",
        o->launches, o->rounds, most_ratio);
    printf("  %-33s %8s %7s %7s %17s %9s %9s\n", "", "us/call", "within", "to bare", "launches",
           "resident", "anonymous");
    for (int j = 0; j < PL_BENCH_JOBS; j++) {
        const pl_bench_ratio_t *r = &jobs[j];
        printf("  %-33s %8.3f %7.4f %7.4f %8.4f - %.4f %5d KiB %5d KiB%s\n", job_title[j],
               r->seconds * 1e6, r->within, r->ratio, r->low, r->high, r->resident, r->anonymous,
               verdict(o, loop_goal_met(jobs, j)));
    }
    warn_of_load(load);
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    char path[PATH_MAX];
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static pl_status_t measure_instructions(overhead_t *o, const pl_bench_t *bench)
{
    pl_bench_count_t counts[PL_BENCH_CASES];
    pl_status_t status = pl_bench_instructions(bench, counts);

    if (status == PL_OK) {
        print_counts(o, counts, CALL);
        print_counts(o, counts, HEAP);
    } else if (status == PL_NONE) {
        pl_complain("valgrind is not installed: no instructions are counted (Debian: apt-get "
                    "install valgrind)");
        o->missed = true;
        status = PL_OK;
    }
    fflush(stdout);
    return status;
}

static pl_status_t measure_loop(overhead_t *o, const pl_bench_t *bench)
{
    pl_bench_ratio_t jobs[PL_BENCH_JOBS];
    double load = 0;

    getloadavg(&load, 1);
    pl_status_t status = pl_bench_loop(bench, (int)o->launches, (int)o->rounds, jobs);

    if (status == PL_OK)
        print_loop(o, jobs, load);
    return status;
}

static int run(overhead_t *o)
{
    pl_bench_t bench = {.folder = "/tmp/pliant-bench-XXXXXX"};
    pl_status_t status;

    if (pl_mpiexec_find(o->mpiexec, bench.mpiexec, sizeof bench.mpiexec) != PL_OK ||
        pl_library_find(o->library, bench.library, sizeof bench.library) != PL_OK ||
        find_programs(bench.programs) != PL_OK)
        return EXIT_USAGE;
    if (!mkdtemp(bench.folder)) {
        pl_complain("%s: %s", bench.folder, strerror(errno));
        return EXIT_USAGE;
    }
    status = o->no_instructions ? PL_OK : measure_instructions(o, &bench);
    if (status == PL_OK && !o->no_loop)
        status = measure_loop(o, &bench);
    remove_folder(bench.folder);
    if (status != PL_OK)
        return EXIT_USAGE;
    return o->check && o->missed ? 1 : 0;
}

int pl_command_bench(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"check", KEY_CHECK, NULL, 0, "Exit with status 1 if a goal is missed", 0},
        {"launches", KEY_LAUNCHES, "N", 0, "How often the loop's programs are started; default 3",
         0},
        {"rounds", KEY_ROUNDS, "N", 0, "Turns of each program in a launch; default 100", 0},
        {"only", KEY_ONLY, "HALF", 0, "Measure one half only: instructions, or loop", 0},
        {"mpiexec", KEY_MPIEXEC, "PATH", 0, "MPICH's mpiexec", 0},
        {"library", KEY_LIBRARY, "FILE", 0,
         "libpliant.so to preload into the loop; default: the one installed with pliant", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "overhead",
        .doc = "Measures what it costs a program that Pliant stands beside it: instructions per "
               "MPI call and per malloc/free (with valgrind), the time of a loop of 8-byte "
               "Allreduce, and memory, each against the bare program in the same run."
               "\vExit status: 0 measured, 1 a goal is missed (with --check), 2 it cannot be "
               "measured.",
    };
    overhead_t o = {.launches = 3, .rounds = 100};

    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return EXIT_USAGE;
    return run(&o);
}
