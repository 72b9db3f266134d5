/* SPDX-License-Identifier: MIT
 * A folder of its own for each test, and files in it. */
#ifndef PLIANT_TESTS_UNIT_POLICY_FOLDER_H
#define PLIANT_TESTS_UNIT_POLICY_FOLDER_H

#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64];
static char control_path[128]; /* <folder>/control */

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/pliant-test-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(control_path, sizeof control_path, "%s/control", folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* flags: O_TRUNC or O_APPEND. */
static inline void put_bytes(const char *path, int flags, const char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

static inline void put_text(const char *path, int flags, const char *text)
{
    put_bytes(path, flags, text, strlen(text));
}

static inline void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

#endif
