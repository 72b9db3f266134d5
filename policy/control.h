/* SPDX-License-Identifier: MIT
 * The control file: text, one request a line.
 *
 *     resize N [method=M] [id=WORD]
 *     cancel
 *     # a comment; blank lines are ignored
 *
 * It may be written by `echo resize 4 > FILE`, `echo resize 4 >> FILE`, with or without the final
 * newline, or replaced by rename. Whatever somebody puts there, the program is not harmed: what is
 * wrong is reported, the rest ignored. Used by one thread of one process. */
#ifndef PLIANT_POLICY_CONTROL_H
#define PLIANT_POLICY_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "common/log.h"
#include "common/status.h"
#include "policy/request.h"

#define PL_CONTROL_PATH_MAX  4096
#define PL_CONTROL_BYTES_MAX 65536 /* a larger file is refused */

/* Something to tell the user. */
typedef struct pl_control_report {
    pl_log_level_t level; /* PL_LOG_WARN: a refusal; PL_LOG_INFO: for information */
    int line;             /* line of the file, from 1; 0: about the file as a whole */
    const char *id;       /* id= of a bad line where it could be read, else "" */
    const char *text;     /* what was wrong and what is valid; valid during the call */
} pl_control_report_t;

typedef void (*pl_control_report_f)(void *arg, const pl_control_report_t *report);

/* Owned by the caller; no clean-up needed. Large (64 KiB): keep it in static storage. The fields
 * are pl_control_poll's own, except path. */
typedef struct pl_control {
    char path[PL_CONTROL_PATH_MAX]; /* absolute: the program may change its directory */
    uid_t owner;                    /* who may own the file, besides root */
    struct timespec start;
    bool first; /* content found at the first look may be older than the program */
    bool again; /* look although nothing seems changed */
    bool known; /* seen is the version looked at last */
    struct stat seen;
    int refused; /* why the file was refused last, 0: it was not */
    struct stat refused_at;
    bool taken; /* used bytes were taken from version taken_at */
    struct stat taken_at;
    size_t used; /* bytes taken, and their hash */
    uint64_t used_hash;
    bool waiting; /* this content is to be seen again before it is believed */
    uint64_t wait_hash;
    struct timespec wait_since;
    unsigned long requests; /* without an id= so far */
    char text[PL_CONTROL_BYTES_MAX + 1];
} pl_control_t;

/* Prepares to look at path; does not look yet, the file need not exist. start is the time of the
 * program's start (CLOCK_REALTIME): content written before it is ignored as stale, with a report
 * for information. PL_ERR_INVALID: empty or too long a path; PL_ERR_IO: no working directory. */
pl_status_t pl_control_open(const char *path, const struct timespec *start, pl_control_t *out);

/* Looks at the file. A request without id= gets "request-1", "request-2", ... as its id.
 * PL_NONE: nothing new. PL_OK: out[0..*count) are the new requests in order, at
 * most max; what is left over comes with the next call; *count is 0 if there was only something to
 * report. Never fails otherwise: a file that cannot be used is reported (once per version) and
 * ignored. When nothing has changed it costs one lstat. An unfinished last line is taken only if
 * still the same at a later call, 20 ms
 * or more on. Content that continues what was taken before is read from there; other content is
 * read from its start, also when it is a new writing of the same text. */
pl_status_t pl_control_poll(pl_control_t *control, pl_request_t *out, int max, int *count,
                            pl_control_report_f report, void *arg);

#endif
