/* SPDX-License-Identifier: MIT */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

pl_log_level_t pl_log_level = PL_LOG_WARN;
static int log_fd = STDERR_FILENO;
static int log_rank = -1;

void pl_log_setup(int fd, int rank)
{
    log_fd = fd;
    log_rank = rank;
}

void pl_log_write(pl_log_level_t level, const char *format, ...)
{
    static const char *const prefix[] = {"error: ", "warning: ", "", ""};
    char line[1024];
    int saved_errno = errno;
    int used = log_rank < 0
                   ? snprintf(line, sizeof line, "pliant: %s", prefix[level])
                   : snprintf(line, sizeof line, "pliant[%d]: %s", log_rank, prefix[level]);
    va_list args;

    va_start(args, format);
    errno = saved_errno; /* for %m */
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    if (more > 0)
        used += more;
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    line[used++] = '\n';
    if (write(log_fd, line, (size_t)used) < 0) {
        /* nowhere left to say so */
    }
    errno = saved_errno;
}
