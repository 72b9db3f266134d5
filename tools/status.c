/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/events.h"
#include "tools/jobs.h"

typedef struct show {
    const char *control;
    bool json;
} show_t;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    show_t *show = state->input;

    switch (key) {
    case 'c':
        show->control = arg;
        return 0;
    case 'j':
        show->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "no argument is expected, found '%s'", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_line(const char *label, const char *text)
{
    if (*text)
        printf("%-10s %s\n", label, text);
}

static void print_status(const pl_job_t *job, const json_t *status)
{
    const char *outcome = pl_events_text(status, "last_outcome");
    const char *reason = pl_events_text(status, "last_reason");

    print_line("control", job->control);
    print_line("program", job->program);
    print_line("state", pl_events_text(status, "state"));
    printf("%-10s %lld, at most %lld\n", "processes", pl_events_integer(status, "size"),
           pl_events_integer(status, "pool"));
    print_line("growth", pl_events_text(status, "growth_capped"));
    printf("%-10s %lld committed, %lld refused, %lld rolled back\n", "resizes",
           pl_events_integer(status, "resizes_committed"),
           pl_events_integer(status, "resizes_refused"),
           pl_events_integer(status, "resizes_rolled_back"));
    if (*outcome)
        printf("%-10s %s%s%s\n", "last", outcome, *reason ? ": " : "", reason);
}

int pl_command_status(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"control", 'c', "FILE", 0,
         "Control file of the program; default: PLIANT_CONTROL, else that of the only program "
         "started by `pliant run`",
         0},
        {"json", 'j', NULL, 0, "Print the status as JSON", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc = "Shows the state of a running program: its size, how far it can grow, its resizes."
               "\vExit status: 0 shown, 1 the program has told no status yet, 2 wrong usage.",
    };
    show_t show = {0};
    json_t *status;
    pl_job_t job;

    if (argp_parse(&argp, argc, argv, 0, NULL, &show) != 0 ||
        pl_jobs_find(show.control, &job) != PL_OK)
        return EXIT_USAGE;
    status = pl_events_status(job.control);
    if (!status) {
        pl_complain("no status beside %s yet", job.control);
        return EXIT_REFUSED;
    }
    if (show.json) {
        json_dumpf(status, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        putchar('\n');
    } else {
        print_status(&job, status);
    }
    json_decref(status);
    return 0;
}
