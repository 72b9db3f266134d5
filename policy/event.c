/* SPDX-License-Identifier: MIT */
#include "policy/event.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"

#define LINE_MAX_BYTES  65536
#define TAIL_MAX_BYTES  64 /* what closes an event after the list of buffers */
#define PATH_BYTES      4200
#define SECONDS_PER_DAY 86400

static char line_buffer[LINE_MAX_BYTES];

pl_status_t pl_event_path(const char *control_path, const char *suffix, char *out, size_t size)
{
    if (strlen(control_path) + strlen(suffix) >= size)
        return PL_ERR_LIMIT;
    snprintf(out, size, "%s%s", control_path, suffix);
    return PL_OK;
}

/* "2025-01-31T23:59:59.123Z", without gmtime: it takes locks and looks at the environment. The
 * calendar is counted in years that begin on 1 March, so that a leap day is the last of its year.
 */
static void format_time(const struct timespec *time, char *out, size_t size)
{
    long days = (long)(time->tv_sec / SECONDS_PER_DAY) + 719468; /* since 0000-03-01 */
    long second = (long)(time->tv_sec % SECONDS_PER_DAY);
    long era = days / 146097, day_of_era = days % 146097;
    long year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    long day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    long month = (5 * day_of_year + 2) / 153; /* 0 is March */
    long day = day_of_year - (153 * month + 2) / 5 + 1;
    long year = year_of_era + era * 400 + (month >= 10);

    snprintf(out, size, "%04ld-%02ld-%02ldT%02ld:%02ld:%02ld.%03ldZ", year,
             month < 10 ? month + 3 : month - 9, day, second / 3600, second / 60 % 60, second % 60,
             (long)(time->tv_nsec / 1000000));
}

static void write_time(pl_json_t *json)
{
    struct timespec now;
    char text[160]; /* more than any year needs, as the compiler wants to see */

    clock_gettime(CLOCK_REALTIME, &now);
    format_time(&now, text, sizeof text);
    pl_json_string(json, "time", text);
}

static pl_status_t write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t done = write(fd, text, size);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return PL_ERR_IO;
        text += done; /* a short write happens on a full disk only */
        size -= (size_t)done;
    }
    return PL_OK;
}

static pl_status_t append_line(const char *control_path, const pl_json_t *json)
{
    char path[PATH_BYTES];
    struct stat file;
    pl_status_t status = pl_event_path(control_path, PL_EVENT_SUFFIX, path, sizeof path);
    int fd;

    if (status != PL_OK || !pl_json_ok(json))
        return PL_ERR_LIMIT;
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
              0600);
    if (fd < 0)
        return errno == ELOOP || errno == EISDIR || errno == ENXIO ? PL_ERR_REFUSED : PL_ERR_IO;
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_uid != geteuid())
        status = PL_ERR_REFUSED;
    else
        status = write_all(fd, json->buffer, json->used);
    if (close(fd) != 0 && status == PL_OK)
        status = PL_ERR_IO;
    return status;
}

static void write_seconds(pl_json_t *json, const pl_event_seconds_t *seconds)
{
    pl_json_open(json, "seconds", '{');
    pl_json_number(json, "agree", seconds->agree);
    pl_json_number(json, "acquire", seconds->acquire);
    pl_json_number(json, "capture", seconds->capture);
    pl_json_number(json, "setup", seconds->setup);
    pl_json_number(json, "redistribute", seconds->redistribute);
    pl_json_number(json, "inject", seconds->inject);
    pl_json_number(json, "total", seconds->total);
    pl_json_close(json, '}');
}

static void write_private(pl_json_t *json, const pl_resize_event_t *event)
{
    pl_json_integer(json, "private_words", event->private_words);
    pl_json_open(json, "private", '[');
    for (int i = 0; event->private_list && i < event->private_listed && i < PL_EVENT_PRIVATE_MAX;
         i++)
        pl_json_string(json, NULL, event->private_list[i]);
    pl_json_close(json, ']');
}

/* Buffers come last: those that do not fit are left out and counted. */
static void write_buffers(pl_json_t *json, const pl_resize_event_t *event)
{
    int count = event->buffers ? event->buffer_count : 0;
    int written = 0;

    pl_json_open(json, "buffers", '[');
    json->size -= TAIL_MAX_BYTES;
    for (; written < count; written++) {
        const pl_event_buffer_t *buffer = &event->buffers[written];
        pl_json_t mark = *json;

        pl_json_open(json, NULL, '{');
        pl_json_string(json, "name", buffer->name);
        pl_json_string(json, "kind", buffer->kind);
        pl_json_string(json, "evidence", buffer->evidence);
        pl_json_integer(json, "bytes", buffer->bytes);
        pl_json_bool(json, "moved", buffer->moved);
        pl_json_close(json, '}');
        if (!pl_json_ok(json)) {
            pl_json_rewind(json, &mark);
            break;
        }
    }
    json->size += TAIL_MAX_BYTES;
    pl_json_close(json, ']');
    if (written < count)
        pl_json_integer(json, "buffers_omitted", count - written);
}

static void finish_line(pl_json_t *json)
{
    pl_json_close(json, '}');
    pl_json_raw(json, "\n");
}

pl_status_t pl_event_append_resize(const char *control_path, const pl_resize_event_t *event)
{
    pl_json_t json;

    pl_json_init(&json, line_buffer, sizeof line_buffer);
    pl_json_open(&json, NULL, '{');
    pl_json_string(&json, "event", "resize");
    write_time(&json);
    pl_json_string(&json, "id", event->id);
    pl_json_integer(&json, "from", event->from);
    pl_json_integer(&json, "to", event->to);
    pl_json_string(&json, "outcome", event->outcome);
    pl_json_string(&json, "reason", event->reason);
    pl_json_string(&json, "method", event->method);
    pl_json_string(&json, "site", event->site);
    pl_json_integer(&json, "arrival", event->arrival);
    if (event->line > 0)
        pl_json_integer(&json, "line", event->line);
    write_seconds(&json, &event->seconds);
    pl_json_integer(&json, "bytes_moved", event->bytes_moved);
    pl_json_integer(&json, "bytes_kept", event->bytes_kept);
    write_private(&json, event);
    write_buffers(&json, event);
    finish_line(&json);
    return append_line(control_path, &json);
}

pl_status_t pl_event_append_bad_line(const char *control_path, int line, const char *id,
                                     const char *reason)
{
    pl_json_t json;

    pl_json_init(&json, line_buffer, sizeof line_buffer);
    pl_json_open(&json, NULL, '{');
    pl_json_string(&json, "event", "request");
    write_time(&json);
    pl_json_string(&json, "id", id);
    pl_json_string(&json, "outcome", "refused");
    pl_json_integer(&json, "line", line);
    pl_json_string(&json, "reason", reason);
    finish_line(&json);
    return append_line(control_path, &json);
}

static void format_status(pl_json_t *json, const pl_status_info_t *info)
{
    pl_json_init(json, line_buffer, sizeof line_buffer);
    pl_json_open(json, NULL, '{');
    write_time(json);
    pl_json_string(json, "state", info->state);
    pl_json_integer(json, "size", info->size);
    pl_json_integer(json, "pool", info->pool);
    pl_json_integer(json, "pid", info->pid);
    pl_json_integer(json, "resizes_committed", info->resizes_committed);
    pl_json_integer(json, "resizes_refused", info->resizes_refused);
    pl_json_integer(json, "resizes_rolled_back", info->resizes_rolled_back);
    pl_json_string(json, "last_id", info->last_id);
    pl_json_string(json, "last_outcome", info->last_outcome);
    pl_json_string(json, "last_reason", info->last_reason);
    pl_json_string(json, "growth_capped", info->cap_reason);
    finish_line(json);
}

pl_status_t pl_status_write(const char *control_path, const pl_status_info_t *info)
{
    char path[PATH_BYTES], temporary[PATH_BYTES];
    pl_status_t status = pl_event_path(control_path, PL_STATUS_SUFFIX, path, sizeof path);
    pl_json_t json;
    int fd;

    format_status(&json, info);
    if (status != PL_OK || !pl_json_ok(&json) ||
        pl_event_path(path, ".tmp", temporary, sizeof temporary) != PL_OK)
        return PL_ERR_LIMIT;
    unlink(temporary); /* of a job that was killed while it wrote */
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return PL_ERR_IO;
    status = write_all(fd, json.buffer, json.used);
    if (close(fd) != 0)
        status = PL_ERR_IO;
    if (status == PL_OK && rename(temporary, path) != 0)
        status = PL_ERR_IO;
    if (status != PL_OK)
        unlink(temporary);
    return status;
}
