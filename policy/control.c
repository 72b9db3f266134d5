/* SPDX-License-Identifier: MIT */
#include "policy/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RECENT_NS  50000000L /* a second write may leave the same time stamp: look again */
#define CONFIRM_NS 20000000L /* a write that is under way has ended by then */

_Static_assert(PL_CONTROL_BYTES_MAX == 64 * 1024, "a message names it");

typedef enum refusal {
    REFUSAL_NONE,
    REFUSAL_TYPE,
    REFUSAL_OWNER,
    REFUSAL_MODE,
    REFUSAL_SIZE,
    REFUSAL_BINARY,
    REFUSAL_ERROR,
} refusal_t;

/* What one call of pl_control_poll works with. */
typedef struct look {
    pl_control_t *control;
    pl_control_report_f report;
    void *arg;
    struct stat file;
    size_t size; /* of control->text */
    pl_request_t *out;
    int max, count;
    bool told; /* something was reported */
} look_t;

__attribute__((format(printf, 5, 6))) static void tell(look_t *look, pl_log_level_t level, int line,
                                                       const char *id, const char *format, ...)
{
    char text[PL_CONTROL_PATH_MAX + 400];
    pl_control_report_t report = {.level = level, .line = line, .id = id, .text = text};
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    look->told = true;
    if (look->report)
        look->report(look->arg, &report);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool same_content(const struct stat *a, const struct stat *b)
{
    return same_file(a, b) && a->st_size == b->st_size && same_time(&a->st_mtim, &b->st_mtim);
}

static bool same_version(const struct stat *a, const struct stat *b)
{
    return same_content(a, b) && a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
           same_time(&a->st_ctim, &b->st_ctim);
}

static int64_t nanoseconds_between(const struct timespec *from, const struct timespec *to)
{
    return ((int64_t)to->tv_sec - from->tv_sec) * 1000000000 + (to->tv_nsec - from->tv_nsec);
}

static uint64_t hash_bytes(const char *text, size_t size)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

pl_status_t pl_control_open(const char *path, const struct timespec *start, pl_control_t *out)
{
    size_t length = strlen(path), prefix = 0;

    if (length == 0)
        return PL_ERR_INVALID;
    memset(out, 0, sizeof *out);
    if (path[0] != '/') {
        if (!getcwd(out->path, sizeof out->path))
            return PL_ERR_IO;
        prefix = strlen(out->path);
        out->path[prefix++] = '/'; /* over the final zero; what follows is checked */
    }
    if (prefix + length >= sizeof out->path)
        return PL_ERR_INVALID;
    memcpy(out->path + prefix, path, length + 1);
    out->owner = geteuid();
    out->start = *start;
    out->first = true;
    return PL_OK;
}

static refusal_t check_file(const pl_control_t *control, const struct stat *file)
{
    if (!S_ISREG(file->st_mode))
        return REFUSAL_TYPE;
    if (file->st_uid != control->owner && file->st_uid != 0)
        return REFUSAL_OWNER;
    if (file->st_mode & (S_IWGRP | S_IWOTH))
        return REFUSAL_MODE;
    if (file->st_size > PL_CONTROL_BYTES_MAX)
        return REFUSAL_SIZE;
    return REFUSAL_NONE;
}

static void explain(look_t *look, refusal_t why)
{
    const char *path = look->control->path;
    const struct stat *file = &look->file;

    switch (why) {
    case REFUSAL_TYPE:
        tell(look, PL_LOG_WARN, 0, "", "control file %s ignored: it is %s, not a regular file",
             path,
             S_ISLNK(file->st_mode)   ? "a symbolic link"
             : S_ISDIR(file->st_mode) ? "a directory"
                                      : "a device, pipe or socket");
        break;
    case REFUSAL_OWNER:
        tell(
            look, PL_LOG_WARN, 0, "",
            "control file %s ignored: it belongs to user %u; valid is a file of user %u or of root",
            path, (unsigned)file->st_uid, (unsigned)look->control->owner);
        break;
    case REFUSAL_MODE:
        tell(look, PL_LOG_WARN, 0, "",
             "control file %s ignored: others may write to it (mode %04o); use chmod go-w", path,
             (unsigned)(file->st_mode & 07777));
        break;
    case REFUSAL_SIZE:
        tell(look, PL_LOG_WARN, 0, "",
             "control file %s ignored: it is larger than 64 KiB (%lld bytes)", path,
             (long long)file->st_size);
        break;
    case REFUSAL_BINARY:
        tell(look, PL_LOG_WARN, 0, "",
             "control file %s ignored: it holds binary data; valid is text, one request a line",
             path);
        break;
    default:
        tell(look, PL_LOG_WARN, 0, "", "control file %s ignored: cannot be read: %m", path);
    }
}

/* Reports a refusal of the whole file once per version. A large file that grows, or a directory in
 * use, has a new version all the time: those once per file. */
static void refuse(look_t *look, refusal_t why)
{
    pl_control_t *control = look->control;
    bool busy = why == REFUSAL_SIZE || S_ISDIR(look->file.st_mode);
    bool told =
        control->refused == (int)why && (busy ? same_file(&control->refused_at, &look->file)
                                              : same_version(&control->refused_at, &look->file));

    if (!told)
        explain(look, why);
    control->refused = (int)why;
    control->refused_at = look->file;
    control->waiting = false;
}

/* Reads the file into control->text. O_NONBLOCK: it may have become a pipe since lstat. */
static refusal_t read_file(look_t *look)
{
    pl_control_t *control = look->control;
    int fd = open(control->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    refusal_t why =
        fd < 0 || fstat(fd, &look->file) != 0 ? REFUSAL_ERROR : check_file(control, &look->file);
    int error;

    look->size = 0;
    while (why == REFUSAL_NONE && look->size < sizeof control->text) {
        ssize_t got = read(fd, control->text + look->size, sizeof control->text - look->size);

        if (got == 0)
            break;
        if (got > 0)
            look->size += (size_t)got;
        else if (errno != EINTR)
            why = REFUSAL_ERROR;
    }
    if (why == REFUSAL_NONE && look->size > PL_CONTROL_BYTES_MAX)
        why = REFUSAL_SIZE;
    error = errno;
    if (fd >= 0)
        close(fd);
    errno = error; /* for the message */
    return why;
}

static bool is_binary(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool blank = text[i] == '\t' || text[i] == '\r' || text[i] == '\n';

        if ((text[i] >= 0 && text[i] < ' ' && !blank) || text[i] == 0x7F)
            return true;
    }
    return false;
}

/* True if the content has been the same for a while; else it has to be looked at again. */
static bool is_confirmed(look_t *look)
{
    pl_control_t *control = look->control;
    uint64_t hash = hash_bytes(control->text, look->size);
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!control->waiting || control->wait_hash != hash) {
        control->waiting = true;
        control->wait_hash = hash;
        control->wait_since = now;
    } else if (nanoseconds_between(&control->wait_since, &now) >= CONFIRM_NS) {
        control->waiting = false;
        return true;
    }
    control->again = true;
    return false;
}

static void mark_used(look_t *look, size_t used)
{
    look->control->used = used;
    look->control->used_hash = hash_bytes(look->control->text, used);
    look->control->taken = true;
    look->control->taken_at = look->file;
}

/* Reads the lines from start on; stops at out's end or at an unfinished line. */
static void take_lines(look_t *look, size_t start)
{
    pl_control_t *control = look->control;
    size_t at = start;
    int line = 1;

    for (size_t i = 0; i < start; i++)
        line += control->text[i] == '\n';
    while (at < look->size) {
        const char *text = control->text + at;
        const char *newline = memchr(text, '\n', look->size - at);
        size_t length = newline ? (size_t)(newline - text) : look->size - at;
        char error[300];
        pl_request_t request;
        pl_status_t status;

        if (!newline && !is_confirmed(look))
            break;
        status = pl_request_parse(text, length, &request, error, sizeof error);
        if (status == PL_OK && look->count == look->max) {
            control->again = true;
            break;
        }
        if (status == PL_OK) {
            request.line = line;
            if (!request.id[0])
                snprintf(request.id, sizeof request.id, "request-%lu", ++control->requests);
            look->out[look->count++] = request;
        } else if (status != PL_NONE) {
            tell(look, PL_LOG_WARN, line, request.id, "%s", error);
        }
        at += length + (newline != NULL);
        line++;
    }
    mark_used(look, at);
}

/* Content that was there before the program began is not meant for it. */
static bool is_stale(look_t *look)
{
    bool first = look->control->first;

    look->control->first = false;
    return first && nanoseconds_between(&look->file.st_mtim, &look->control->start) > 0;
}

static void skip_stale(look_t *look)
{
    const char *text = look->control->text, *end = text + look->size;
    bool requests = false;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline ? newline : end;
        pl_request_t request;
        char error[1];

        if (pl_request_parse(text, (size_t)(line_end - text), &request, error, sizeof error) !=
            PL_NONE)
            requests = true;
        text = line_end + 1;
    }
    if (requests)
        tell(look, PL_LOG_INFO, 0, "",
             "control file %s: what was written before the program started is ignored",
             look->control->path);
    mark_used(look, look->size);
}

/* The file ends where it was read to. It is asked for again if it was replaced by the same text, or
 * written again; but a new time stamp may also be the first that is seen of a longer text. */
static bool is_rewritten(look_t *look)
{
    pl_control_t *control = look->control;

    if (!same_file(&control->taken_at, &look->file))
        return true;
    return !same_content(&control->taken_at, &look->file) && is_confirmed(look);
}

static void take_content(look_t *look)
{
    pl_control_t *control = look->control;
    bool continues = control->taken && control->used <= look->size &&
                     hash_bytes(control->text, control->used) == control->used_hash;

    /* An empty file may be one that is just being rewritten: what was taken stays known. */
    if (look->size == 0)
        return;
    if (continues && control->used < look->size)
        take_lines(look, control->used);
    else if (!continues || is_rewritten(look))
        take_lines(look, 0);
}

static void look_at_file(look_t *look)
{
    pl_control_t *control = look->control;
    refusal_t why = check_file(control, &look->file);
    struct timespec now;
    int64_t age;

    control->again = false;
    if (why == REFUSAL_NONE)
        why = read_file(look);
    if (why == REFUSAL_NONE && is_binary(control->text, look->size))
        why = REFUSAL_BINARY;
    if (why == REFUSAL_ERROR && errno == ENOENT)
        return;
    control->known = true;
    control->seen = look->file;
    clock_gettime(CLOCK_REALTIME, &now);
    age = nanoseconds_between(&look->file.st_mtim, &now);
    if (age > -RECENT_NS && age < RECENT_NS)
        control->again = true;
    if (why != REFUSAL_NONE) {
        refuse(look, why);
        return;
    }
    control->refused = REFUSAL_NONE;
    if (is_stale(look))
        skip_stale(look);
    else
        take_content(look);
}

pl_status_t pl_control_poll(pl_control_t *control, pl_request_t *out, int max, int *count,
                            pl_control_report_f report, void *arg)
{
    look_t look = {.control = control, .report = report, .arg = arg, .out = out, .max = max};
    int saved_errno = errno;

    if (lstat(control->path, &look.file) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) {
            memset(&look.file, 0, sizeof look.file);
            refuse(&look, REFUSAL_ERROR);
        } else {
            control->first = false;
            control->refused = REFUSAL_NONE;
            memset(&control->taken_at, 0, sizeof control->taken_at);
        }
        control->known = false;
    } else if (control->again || !control->known || !same_version(&control->seen, &look.file)) {
        look_at_file(&look);
    }
    errno = saved_errno;
    if (look.count == 0 && !look.told)
        return PL_NONE;
    *count = look.count;
    return PL_OK;
}
