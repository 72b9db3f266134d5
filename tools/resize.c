/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/methods.h"
#include "common/number.h"
#include "common/options.h"
#include "policy/request.h"
#include "tools/events.h"
#include "tools/jobs.h"

#define POLL_MS      50
#define ENDED_MS     1000  /* how long the job must be seen ended: its last event may come late */
#define APPEND_BYTES 32768 /* a control file larger than that is begun anew */
#define MARGIN_S     10.0  /* added to the limits of the library for the default waiting time */

enum { KEY_WAIT = 0x1000 };

typedef struct resize {
    long size; /* 0: not given yet */
    const char *control, *method;
    bool wait;
    double seconds; /* to wait; negative: the default */
} resize_t;

static bool is_number(const char *text)
{
    double value;

    return text && pl_number_parse_seconds(text, strlen(text), &value) == PL_OK;
}

/* --wait takes its seconds as "--wait=5" and as "--wait 5", where 5 is not the size. */
static void parse_wait(resize_t *resize, char *arg, struct argp_state *state)
{
    resize->wait = true;
    if (!arg && state->next < state->argc && is_number(state->argv[state->next])) {
        const char *after = state->next + 1 < state->argc ? state->argv[state->next + 1] : NULL;

        if (resize->size > 0 || is_number(after))
            arg = state->argv[state->next++];
    }
    if (arg && pl_number_parse_seconds(arg, strlen(arg), &resize->seconds) != PL_OK)
        argp_error(state, "--wait: '%s' is not a number of seconds", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    resize_t *resize = state->input;
    pl_method_t method;

    switch (key) {
    case 'c':
        resize->control = arg;
        return 0;
    case 'm':
        if (pl_method_parse(arg, &method) != PL_OK)
            argp_error(state, "--method: '%s' is not valid; valid: %s", arg, pl_method_names());
        resize->method = arg;
        return 0;
    case KEY_WAIT:
        parse_wait(resize, arg, state);
        return 0;
    case ARGP_KEY_ARG:
        if (resize->size > 0)
            argp_error(state, "one number of processes is expected, found '%s' too", arg);
        if (pl_number_parse(arg, strlen(arg), 1, PL_REQUEST_SIZE_MAX, &resize->size) != PL_OK)
            argp_error(state, "'%s' is not a number of processes from 1 to %d", arg,
                       PL_REQUEST_SIZE_MAX);
        return 0;
    case ARGP_KEY_END:
        if (resize->size == 0)
            argp_error(state, "the number of processes is missing: pliant resize N");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Replaces the file by the line alone. */
static pl_status_t replace_file(const char *path, const char *line)
{
    char temporary[PATH_MAX];
    size_t length = strlen(line);
    bool good;
    int fd;

    if (snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid()) >=
        (int)sizeof temporary)
        return PL_ERR_LIMIT;
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return PL_ERR_IO;
    good = write(fd, line, length) == (ssize_t)length;
    good = close(fd) == 0 && good && rename(temporary, path) == 0;
    if (!good)
        unlink(temporary);
    return good ? PL_OK : PL_ERR_IO;
}

/* Adds the line by one write, so that requests of others that wait there are not lost. */
static pl_status_t append_file(int fd, off_t size, const char *line)
{
    char text[PL_REQUEST_LINE_MAX + 2], last = '\n';
    int length;

    if (size > 0 && pread(fd, &last, 1, size - 1) != 1)
        return PL_ERR_IO;
    length = snprintf(text, sizeof text, "%s%s", last == '\n' ? "" : "\n", line);
    return write(fd, text, (size_t)length) == length ? PL_OK : PL_ERR_IO;
}

static pl_status_t send_line(const char *path, const char *line)
{
    int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat file;
    pl_status_t status;

    if (fd < 0)
        return errno == ENOENT ? replace_file(path, line) : PL_ERR_IO;
    if (fstat(fd, &file) != 0)
        status = PL_ERR_IO;
    else if (!S_ISREG(file.st_mode))
        status = (errno = EINVAL, PL_ERR_REFUSED);
    else if (file.st_size > APPEND_BYTES)
        status = replace_file(path, line);
    else
        status = append_file(fd, file.st_size, line);
    close(fd);
    return status;
}

static void make_line(const resize_t *resize, char *id, size_t id_size, char *line, size_t size)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(id, id_size, "%llx-%x", (unsigned long long)now.tv_sec * 1000000000 + now.tv_nsec,
             (unsigned)getpid());
    snprintf(line, size, "resize %ld%s%s id=%s\n", resize->size, resize->method ? " method=" : "",
             resize->method ? resize->method : "", id);
}

static int print_outcome(const json_t *event)
{
    const char *outcome = pl_events_text(event, "outcome");
    const char *reason = pl_events_text(event, "reason");

    if (strcmp(outcome, "committed") == 0) {
        printf("committed: %lld -> %lld processes in %.3f s\n", pl_events_integer(event, "from"),
               pl_events_integer(event, "to"),
               json_number_value(json_object_get(json_object_get(event, "seconds"), "total")));
        return EXIT_COMMITTED;
    }
    printf("%s: %s\n", strcmp(outcome, "rolled_back") == 0 ? "rolled back" : outcome, reason);
    return EXIT_REFUSED;
}

static bool has_ended(const pl_job_t *job)
{
    json_t *status;
    bool ended;

    if (job->pid > 0)
        return !pl_jobs_alive(job);
    status = pl_events_status(job->control);
    ended = strcmp(pl_events_text(status, "state"), "finished") == 0;
    json_decref(status);
    return ended;
}

static int wait_for_outcome(const pl_job_t *job, const char *id, long offset, double seconds)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    int64_t start = now_ms(), ended = -1;

    for (;;) {
        int64_t now = now_ms();
        json_t *event = pl_events_find(job->control, id, &offset);

        if (event) {
            int status = print_outcome(event);

            json_decref(event);
            return status;
        }
        if (!has_ended(job))
            ended = -1;
        else if (ended < 0)
            ended = now;
        else if (now - ended > ENDED_MS) {
            pl_complain("the program has ended without answering the request");
            return EXIT_REFUSED;
        }
        if ((double)(now - start) > seconds * 1000) {
            pl_complain("no answer within %g s; the request stays in force", seconds);
            return EXIT_TIME_OUT;
        }
        nanosleep(&pause, NULL);
    }
}

static double default_seconds(void)
{
    static pl_options_t options;

    if (pl_options_load(environ, &options, NULL, NULL) != PL_OK)
        return MARGIN_S;
    return options.limit + options.setup_limit + MARGIN_S;
}

static int request_resize(const resize_t *resize)
{
    char id[PL_REQUEST_ID_MAX], line[PL_REQUEST_LINE_MAX];
    double seconds = resize->seconds < 0 ? default_seconds() : resize->seconds;
    pl_job_t job;
    long offset;

    if (pl_jobs_find(resize->control, &job) != PL_OK)
        return EXIT_USAGE;
    make_line(resize, id, sizeof id, line, sizeof line);
    offset = pl_events_size(job.control);
    if (send_line(job.control, line) != PL_OK) {
        pl_complain("cannot write to %s: %s", job.control, strerror(errno));
        return EXIT_REFUSED;
    }
    if (!resize->wait) {
        printf("requested: %ld processes, id %s\n", resize->size, id);
        return EXIT_COMMITTED;
    }
    return wait_for_outcome(&job, id, offset, seconds);
}

int pl_command_resize(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"control", 'c', "FILE", 0,
         "Control file of the program; default: PLIANT_CONTROL, else that of the only program "
         "started by `pliant run`",
         0},
        {"method", 'm', "METHOD", 0, "How data moves; default: the program's", 0},
        {"wait", KEY_WAIT, "SECONDS", OPTION_ARG_OPTIONAL,
         "Wait for the outcome and print it; default: as long as the limits of the library allow",
         0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "N",
        .doc =
            "Asks a running program to go on with N processes."
            "\vExit status: 0 committed (without --wait: handed over), 1 refused or rolled back, "
            "2 wrong usage, 3 no answer in time.",
    };
    resize_t resize = {.seconds = -1};

    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &resize) != 0)
        return EXIT_USAGE;
    return request_resize(&resize);
}
