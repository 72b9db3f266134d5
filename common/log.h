/* SPDX-License-Identifier: MIT
 * Messages to the program's standard error: one write(2) per line, no stdio, no allocation, so that
 * it may be used inside any hook. Nothing is ever written to standard output. */
#ifndef PLIANT_COMMON_LOG_H
#define PLIANT_COMMON_LOG_H

typedef enum pl_log_level {
    PL_LOG_ERROR, /* something is broken */
    PL_LOG_WARN,  /* the user must know: a refusal, an unknown variable */
    PL_LOG_INFO,  /* what Pliant does: a resize and its outcome */
    PL_LOG_DEBUG, /* why it does it */
} pl_log_level_t;

extern pl_log_level_t pl_log_level; /* messages above it are dropped; PL_LOG_WARN at first */

/* Descriptor for messages (a private copy of standard error), and the rank shown in the prefix;
 * rank -1 shows none. */
void pl_log_setup(int fd, int rank);

void pl_log_write(pl_log_level_t level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define PL_LOG(level, ...)                                                                         \
    do {                                                                                           \
        if ((level) <= pl_log_level)                                                               \
            pl_log_write(level, __VA_ARGS__);                                                      \
    } while (0)
#define PL_ERROR(...) PL_LOG(PL_LOG_ERROR, __VA_ARGS__)
#define PL_WARN(...)  PL_LOG(PL_LOG_WARN, __VA_ARGS__)
#define PL_INFO(...)  PL_LOG(PL_LOG_INFO, __VA_ARGS__)
#define PL_DEBUG(...) PL_LOG(PL_LOG_DEBUG, __VA_ARGS__)

#endif
