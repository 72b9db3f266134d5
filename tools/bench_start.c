/* SPDX-License-Identifier: MIT */
#include "tools/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/options.h"
#include "tools/command.h"

void pl_bench_path(const pl_bench_t *bench, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", bench->folder, name);
}

static _Noreturn void become(const char *log, char *const argv[], const char *control,
                             unsigned seconds)
{
    int null = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

    setpgid(0, 0);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    for (int i = 0; i < PL_OPTION_COUNT; i++)
        unsetenv(pl_option_info[i].name);
    if (control)
        setenv(pl_option_info[PL_OPTION_control].name, control, 1);
    alarm(seconds); /* stays over exec */
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

pid_t pl_bench_start(const pl_bench_t *bench, char *const argv[], const char *control,
                     unsigned seconds)
{
    char log[PATH_MAX];
    pid_t child;

    pl_bench_path(bench, "log", log);
    fflush(NULL);
    child = fork();
    if (child == 0)
        become(log, argv, control, seconds);
    if (child < 0)
        pl_complain("cannot start %s: %s", argv[0], strerror(errno));
    return child;
}

int pl_bench_wait(pid_t child)
{
    int status;

    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void pl_bench_complain(const pl_bench_t *bench, const char *what)
{
    char path[PATH_MAX], line[512];
    FILE *log;

    pl_complain("%s; the last it printed:", what);
    pl_bench_path(bench, "log", path);
    log = fopen(path, "r");
    if (log && fseek(log, -1500, SEEK_END) == 0 && fgets(line, sizeof line, log) == NULL)
        rewind(log);
    while (log && fgets(line, sizeof line, log))
        fprintf(stderr, "    %s", line);
    if (log)
        fclose(log);
}
