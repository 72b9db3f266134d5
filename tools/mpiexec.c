/* SPDX-License-Identifier: MIT */
#include "tools/mpiexec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/command.h"

#define LIBRARY       "libpliant.so"
#define CHECK_SECONDS 10

/* Absolute path of a program as execvp would find it. */
static bool find_in_path(const char *name, char *out, size_t size)
{
    const char *at = getenv("PATH");

    if (strchr(name, '/')) {
        char *real = realpath(name, NULL);
        bool found = real && access(real, X_OK) == 0 && strlen(name) < size;

        free(real);
        if (found) /* the name as given: mpiexec may be a link that looks at its name */
            snprintf(out, size, "%s", name);
        return found;
    }
    while (at && *at) {
        size_t length = strcspn(at, ":");

        if (length > 0 && snprintf(out, size, "%.*s/%s", (int)length, at, name) < (int)size &&
            access(out, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* What `PATH --version` prints, standard error included; false if it cannot be run. */
static bool read_version(const char *path, char *out, size_t size)
{
    int ends[2], status;
    size_t used = 0;
    ssize_t got;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDONLY);

        dup2(null, STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        alarm(CHECK_SECONDS); /* stays over exec */
        execl(path, path, "--version", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (child > 0 &&
           ((got = read(ends[0], out + used, size - 1 - used)) > 0 || (got < 0 && errno == EINTR)))
        used += got > 0 ? (size_t)got : 0; /* what does not fit is not needed: read gives 0 then */
    out[used] = 0;
    close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child &&
           !(WIFEXITED(status) && WEXITSTATUS(status) == 127) && used > 0;
}

/* NULL if path is right, else what it is. */
static const char *what_is_wrong(const char *path)
{
    static const char *const foreign[] = {"Open MPI", "OpenRTE", "Open RTE", "PRRTE", "prterun"};
    char version[16384];

    if (!read_version(path, version, sizeof version))
        return "does not answer to --version";
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (strstr(version, foreign[i]))
            return "is Open MPI's, and libpliant works with MPICH and its relatives";
    return NULL;
}

pl_status_t pl_mpiexec_find(const char *wanted, char *out, size_t size)
{
    const char *const names[] = {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"};
    char path[PATH_MAX], seen[PATH_MAX] = "";
    const char *wrong = NULL;

    for (size_t i = 0; i < (wanted ? 1 : sizeof names / sizeof *names); i++) {
        if (!find_in_path(wanted ? wanted : names[i], path, sizeof path))
            continue;
        wrong = what_is_wrong(path);
        if (!wrong && strlen(path) < size) {
            snprintf(out, size, "%s", path);
            return PL_OK;
        }
        memcpy(seen, path, sizeof seen);
    }
    if (wrong)
        pl_complain("%s %s; give the path of MPICH's mpiexec with --mpiexec", seen, wrong);
    else if (wanted)
        pl_complain("%s: no such program", wanted);
    else
        pl_complain("no mpiexec in PATH; install MPICH, or give its path with --mpiexec");
    return PL_ERR_INVALID;
}

static pl_status_t check_library(const char *path, char *out, size_t size)
{
    char *real = realpath(path, NULL);
    pl_status_t status = PL_ERR_INVALID;

    if (!real || access(real, R_OK) != 0)
        pl_complain("%s: %s", path, strerror(errno));
    else if (strpbrk(real, ": \t\n"))
        pl_complain("%s: LD_PRELOAD cannot hold a path with a blank or a colon", real);
    else if (strlen(real) < size)
        status = PL_OK;
    if (status == PL_OK)
        snprintf(out, size, "%s", real);
    free(real);
    return status;
}

pl_status_t pl_library_find(const char *wanted, char *out, size_t size)
{
    static const char *const places[] = {"", "../lib/", "../lib64/"};
    char self[PATH_MAX], path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (wanted)
        return check_library(wanted, out, size);
    self[length > 0 ? length : 0] = 0;
    slash = strrchr(self, '/');
    if (slash)
        slash[1] = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (snprintf(path, sizeof path, "%s%s" LIBRARY, self, places[i]) < (int)sizeof path &&
            access(path, R_OK) == 0)
            return check_library(path, out, size);
    pl_complain(LIBRARY " is neither beside %spliant nor in ../lib; give its path with --library",
                self);
    return PL_ERR_INVALID;
}
