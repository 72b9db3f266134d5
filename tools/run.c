/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/number.h"
#include "common/options.h"
#include "policy/plan.h"
#include "tools/jobs.h"
#include "tools/mpiexec.h"

enum { KEY_OPTION = 0x1000, KEY_MAX = 0x2000, KEY_MPIEXEC, KEY_LIBRARY };

#define OWN_OPTIONS 4
#define NAME_BYTES  32

typedef struct run {
    pl_options_t options;
    bool given[PL_OPTION_COUNT]; /* on the command line */
    long max;
    const char *mpiexec, *library;
    char **program; /* and its arguments, closed by NULL */
} run_t;

/* "PLIANT_SETUP_LIMIT" is --setup-limit here. */
static void make_name(const char *variable, char *out)
{
    const char *at = variable + strlen("PLIANT_");
    size_t length = 0;

    for (; at[length] && length < NAME_BYTES - 1; length++)
        out[length] = at[length] == '_' ? '-' : (char)tolower((unsigned char)at[length]);
    out[length] = 0;
}

/* Every PLIANT_* variable is an option too; a few more exist here only. */
static const struct argp_option *make_options(void)
{
    static const struct argp_option own[OWN_OPTIONS] = {
        {"max", KEY_MAX, "N", 0, "Processes to start, the most the program can grow to; default NS",
         1},
        {"mpiexec", KEY_MPIEXEC, "PATH", 0,
         "MPICH's mpiexec; default: mpiexec.mpich, mpiexec.hydra or mpiexec in PATH", 1},
        {"library", KEY_LIBRARY, "FILE", 0, "libpliant.so; default: the one installed with pliant",
         1},
        {0},
    };
    static struct argp_option options[PL_OPTION_COUNT + OWN_OPTIONS];
    static char names[PL_OPTION_COUNT][NAME_BYTES];

    for (int i = 0; i < PL_OPTION_COUNT; i++) {
        make_name(pl_option_info[i].name, names[i]);
        options[i] = (struct argp_option){
            .name = names[i],
            .key = i == PL_OPTION_processes ? 'n' : KEY_OPTION + i,
            .arg = pl_option_info[i].metavar,
            .doc = pl_option_info[i].help,
            .group = 1,
        };
    }
    memcpy(options + PL_OPTION_COUNT, own, sizeof own);
    return options;
}

static void set_option(run_t *run, pl_option_index_t index, const char *text,
                       struct argp_state *state)
{
    char error[PL_OPTION_ERROR_MAX], name[NAME_BYTES];

    make_name(pl_option_info[index].name, name);
    if (pl_options_set(&run->options, index, text, error, sizeof error) != PL_OK)
        argp_error(state, "--%s: %s", name, error);
    run->given[index] = true;
}

static void check_arguments(run_t *run, struct argp_state *state)
{
    char error[PL_OPTION_ERROR_MAX];
    int steps;

    if (!run->program)
        argp_error(state, "the program is missing: pliant run -n NS -- PROGRAM [ARG...]");
    if (run->options.processes < 1)
        argp_error(state, "-n NS is missing: how many processes the program has at first");
    if (run->max == 0)
        run->max = run->options.processes;
    if (run->max < run->options.processes)
        argp_error(state, "--max %ld is less than -n %d", run->max, run->options.processes);
    if (pl_plan_parse(run->options.plan, NULL, PL_PLAN_STEPS_MAX, &steps, error, sizeof error) !=
        PL_OK)
        argp_error(state, "--plan: %s", error);
    for (char **arg = run->program; arg && *arg; arg++)
        if (strcmp(*arg, ":") == 0)
            argp_error(state, "an argument ':' would begin a second program, which Pliant cannot "
                              "resize");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    run_t *run = state->input;

    switch (key) {
    case 'n':
        set_option(run, PL_OPTION_processes, arg, state);
        return 0;
    case KEY_MAX:
        if (pl_number_parse(arg, strlen(arg), 1, 1000000, &run->max) != PL_OK)
            argp_error(state, "--max: '%s' is not valid; valid is a number from 1 to 1000000", arg);
        return 0;
    case KEY_MPIEXEC:
        run->mpiexec = arg;
        return 0;
    case KEY_LIBRARY:
        run->library = arg;
        return 0;
    case ARGP_KEY_ARG:
        run->program = &state->argv[state->next - 1];
        state->next = state->argc; /* the rest is the program's */
        return 0;
    case ARGP_KEY_END:
        check_arguments(run, state);
        return 0;
    default:
        if (key < KEY_OPTION || key >= KEY_OPTION + PL_OPTION_COUNT)
            return ARGP_ERR_UNKNOWN;
        set_option(run, (pl_option_index_t)(key - KEY_OPTION), arg, state);
        return 0;
    }
}

/* mpiexec's arguments; -genv sets the ranks' environment and not mpiexec's own. */
typedef struct command_line {
    char **argv;
    int count;
    bool failed;
} command_line_t;

static void add(command_line_t *line, const char *text)
{
    line->argv[line->count] = strdup(text);
    if (!line->argv[line->count++])
        line->failed = true;
}

static void add_variable(command_line_t *line, const char *name, const char *value)
{
    add(line, "-genv");
    add(line, name);
    add(line, value);
}

static void add_preload(command_line_t *line, const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    char *both = NULL;

    if (!before || !*before) {
        add_variable(line, "LD_PRELOAD", library);
        return;
    }
    if (asprintf(&both, "%s:%s", before, library) < 0) {
        line->failed = true;
        return;
    }
    add_variable(line, "LD_PRELOAD", both);
    free(both);
}

static char **make_command(const run_t *run, const char *mpiexec, const char *library)
{
    command_line_t line = {0};
    char text[PL_OPTION_TEXT_MAX];
    size_t arguments = 0;

    while (run->program[arguments])
        arguments++;
    line.argv = calloc(arguments + 3 * (PL_OPTION_COUNT + 2) + 1, sizeof *line.argv);
    if (!line.argv)
        return NULL;
    add(&line, mpiexec);
    add(&line, "-n");
    snprintf(text, sizeof text, "%ld", run->max);
    add(&line, text);
    add_preload(&line, library);
    for (int i = 0; i < PL_OPTION_COUNT; i++) {
        if (!run->given[i])
            continue;
        pl_options_format(&run->options, (pl_option_index_t)i, text, sizeof text);
        add_variable(&line, pl_option_info[i].name, text);
    }
    for (size_t i = 0; i < arguments; i++)
        add(&line, run->program[i]);
    return line.failed ? NULL : line.argv;
}

static pl_status_t start(run_t *run)
{
    char mpiexec[PATH_MAX], library[PATH_MAX];
    const char *wanted = run->options.control[0] ? run->options.control : NULL;
    char **command;
    pl_job_t job;

    if (pl_mpiexec_find(run->mpiexec, mpiexec, sizeof mpiexec) != PL_OK ||
        pl_library_find(run->library, library, sizeof library) != PL_OK ||
        pl_jobs_prepare(wanted, run->program[0], &job) != PL_OK || pl_jobs_record(&job) != PL_OK)
        return PL_ERR_REFUSED;
    snprintf(run->options.control, sizeof run->options.control, "%s", job.control);
    run->given[PL_OPTION_control] = true;
    run->given[PL_OPTION_processes] = true;
    command = make_command(run, mpiexec, library);
    if (!command) {
        pl_complain("out of memory");
        return PL_ERR_NOMEM;
    }
    fprintf(stderr, "pliant: control file %s\n", job.control);
    fflush(NULL);
    execv(mpiexec, command);
    pl_complain("cannot start %s: %s", mpiexec, strerror(errno));
    return PL_ERR_IO;
}

int pl_command_run(int argc, char **argv)
{
    static run_t run;
    struct argp argp = {
        .options = make_options(),
        .parser = parse,
        .args_doc = "-n NS -- PROGRAM [ARG...]",
        .doc =
            "Starts an MPI program so that its number of processes can be changed while it runs."
            "\vEach option but --max, --mpiexec and --library can also be given as an environment "
            "variable: --setup-limit is PLIANT_SETUP_LIMIT. `pliant options` lists them. The "
            "exit status is the program's.",
    };

    if (pl_options_load(environ, &run.options, pl_complain_option, NULL) != PL_OK)
        return EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run) != 0)
        return EXIT_USAGE;
    start(&run);
    return EXIT_USAGE;
}
