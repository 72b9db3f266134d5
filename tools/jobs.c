/* SPDX-License-Identifier: MIT */
#include "tools/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/event.h"
#include "tools/command.h"

#define RECORD_SUFFIX  ".job"
#define SKIP_6         " %*s %*s %*s %*s %*s %*s" /* of /proc/PID/stat: field 4 to 21 are 18 */
#define CONTROL_HEADER "# pliant: one request a line, e.g.  resize 4   or   cancel\n"

/* The folder's path; made if it is not there, and refused if others could write to it. */
static pl_status_t find_folder(char *out, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct stat folder;
    int length;

    if (runtime && *runtime == '/' && access(runtime, W_OK | X_OK) == 0)
        length = snprintf(out, size, "%s/pliant", runtime);
    else
        length = snprintf(out, size, "/tmp/pliant-%u", (unsigned)geteuid());
    if (length >= (int)size)
        return PL_ERR_LIMIT;
    if (mkdir(out, 0700) != 0 && errno != EEXIST) {
        pl_complain("cannot make the folder %s: %s", out, strerror(errno));
        return PL_ERR_IO;
    }
    if (lstat(out, &folder) != 0 || !S_ISDIR(folder.st_mode) || folder.st_uid != geteuid() ||
        (folder.st_mode & (S_IWGRP | S_IWOTH))) {
        pl_complain("%s is not a folder of this user alone; remove it, or set XDG_RUNTIME_DIR",
                    out);
        return PL_ERR_REFUSED;
    }
    return PL_OK;
}

/* When a process was started, in ticks since boot: tells it from a later one of the same number. */
static long long start_of(int pid)
{
    char path[64], text[1024];
    const char *at;
    long long start;
    char state;
    FILE *file;
    size_t size;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return -1;
    size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    at = strrchr(text, ')'); /* the name before it may hold anything */
    if (!at || sscanf(at + 1, " %c" SKIP_6 SKIP_6 SKIP_6 " %lld", &state, &start) != 2)
        return -1;
    if (state == 'Z') /* ended, only its parent has not looked yet */
        return -1;
    return start;
}

static bool read_record(const char *path, pl_job_t *out, bool *alive)
{
    json_t *root = json_load_file(path, 0, NULL);
    const char *control = NULL, *program = NULL;
    json_int_t start = -1;
    bool good = root &&
                json_unpack(root, "{s:i, s:I, s:s, s:s}", "pid", &out->pid, "start", &start,
                            "control", &control, "program", &program) == 0 &&
                strlen(control) < sizeof out->control;

    if (good) {
        snprintf(out->control, sizeof out->control, "%s", control);
        snprintf(out->program, sizeof out->program, "%s", program);
        *alive = start_of(out->pid) == start;
    }
    json_decref(root);
    return good;
}

/* Removes the record of an ended job, and the files of a control file we chose ourselves. */
static void forget(const char *folder, const char *record, const pl_job_t *job)
{
    static const char *const suffixes[] = {"", PL_EVENT_SUFFIX, PL_STATUS_SUFFIX,
                                           PL_STATUS_SUFFIX ".tmp"};
    char path[PATH_MAX];
    size_t length = strlen(folder);

    unlink(record);
    if (strncmp(job->control, folder, length) != 0 || job->control[length] != '/')
        return;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (pl_event_path(job->control, suffixes[i], path, sizeof path) == PL_OK)
            unlink(path);
}

static int scan(const char *folder, pl_job_t *out, bool clean)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    int count = 0;

    while (directory && (entry = readdir(directory)) && count < PL_JOBS_MAX) {
        size_t length = strlen(entry->d_name);
        char path[PATH_MAX];
        pl_job_t job;
        bool alive = false;

        if (length <= strlen(RECORD_SUFFIX) ||
            strcmp(entry->d_name + length - strlen(RECORD_SUFFIX), RECORD_SUFFIX) != 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            !read_record(path, &job, &alive))
            continue;
        if (alive)
            out[count++] = job;
        else if (clean)
            forget(folder, path, &job);
    }
    if (directory)
        closedir(directory);
    return count;
}

int pl_jobs_list(pl_job_t *out)
{
    char folder[PATH_MAX];

    return find_folder(folder, sizeof folder) == PL_OK ? scan(folder, out, false) : 0;
}

bool pl_jobs_alive(const pl_job_t *job)
{
    pl_job_t *jobs = malloc(PL_JOBS_MAX * sizeof *jobs);
    int count = jobs ? pl_jobs_list(jobs) : 0;
    bool alive = false;

    for (int i = 0; i < count; i++)
        alive = alive || jobs[i].pid == job->pid;
    free(jobs);
    return alive;
}

static pl_status_t create_control(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat file;

    if (fd >= 0) {
        bool written = write(fd, CONTROL_HEADER, strlen(CONTROL_HEADER)) > 0;

        close(fd);
        return written ? PL_OK : PL_ERR_IO;
    }
    if (errno != EEXIST || lstat(path, &file) != 0) {
        pl_complain("cannot create the control file %s: %s", path, strerror(errno));
        return PL_ERR_IO;
    }
    if (!S_ISREG(file.st_mode) || (file.st_uid != geteuid() && file.st_uid != 0) ||
        (file.st_mode & (S_IWGRP | S_IWOTH))) {
        pl_complain("the control file %s must be a regular file of this user that nobody else can "
                    "write to",
                    path);
        return PL_ERR_REFUSED;
    }
    return PL_OK;
}

static void choose_name(const char *folder, const char *program, char *out, size_t size)
{
    char name[41];
    size_t length = 0;

    for (; program[length] && length < sizeof name - 1; length++)
        name[length] = strchr("/ \t\n\"'\\$*?;&|<>()", program[length]) ? '_' : program[length];
    name[length] = 0;
    snprintf(out, size, "%s/%s-%d", folder, name, (int)getpid());
}

static pl_status_t make_absolute(const char *path, char *out, size_t size)
{
    char directory[PATH_MAX] = "";

    if (path[0] != '/' && !getcwd(directory, sizeof directory))
        return PL_ERR_IO;
    if (snprintf(out, size, "%s%s%s", directory, path[0] == '/' ? "" : "/", path) >= (int)size)
        return PL_ERR_LIMIT;
    return PL_OK;
}

pl_status_t pl_jobs_prepare(const char *wanted, const char *program, pl_job_t *out)
{
    char folder[PATH_MAX - 64];
    pl_job_t *jobs = malloc(PL_JOBS_MAX * sizeof *jobs);
    pl_status_t status = find_folder(folder, sizeof folder);
    const char *slash = strrchr(program, '/');

    if (status == PL_OK && jobs)
        scan(folder, jobs, true);
    free(jobs);
    if (status != PL_OK)
        return status;
    memset(out, 0, sizeof *out);
    out->pid = (int)getpid();
    snprintf(out->program, sizeof out->program, "%s", slash ? slash + 1 : program);
    if (!wanted)
        choose_name(folder, out->program, out->control, sizeof out->control);
    else if ((status = make_absolute(wanted, out->control, sizeof out->control)) != PL_OK)
        pl_complain("the path of the control file is too long");
    return status == PL_OK ? create_control(out->control) : status;
}

pl_status_t pl_jobs_record(const pl_job_t *job)
{
    char folder[PATH_MAX - 64], path[PATH_MAX];
    json_t *root;
    bool good;

    if (find_folder(folder, sizeof folder) != PL_OK)
        return PL_ERR_IO;
    snprintf(path, sizeof path, "%s/%d" RECORD_SUFFIX, folder, job->pid);
    root =
        json_pack("{s:i, s:I, s:s, s:s}", "pid", job->pid, "start", (json_int_t)start_of(job->pid),
                  "control", job->control, "program", job->program);
    good = root && json_dump_file(root, path, JSON_COMPACT) == 0;
    json_decref(root);
    if (!good)
        pl_complain("cannot write %s: %s", path, strerror(errno));
    return good ? PL_OK : PL_ERR_IO;
}

static pl_status_t find_only(const pl_job_t *jobs, int count, pl_job_t *out)
{
    if (count == 1) {
        *out = jobs[0];
        return PL_OK;
    }
    if (count == 0) {
        pl_complain("no program started by `pliant run` is running; name its control file with "
                    "--control");
        return PL_ERR_INVALID;
    }
    pl_complain("%d programs are running; choose one:", count);
    for (int i = 0; i < count; i++)
        fprintf(stderr, "  %-20s --control %s\n", jobs[i].program, jobs[i].control);
    return PL_ERR_INVALID;
}

pl_status_t pl_jobs_find(const char *control, pl_job_t *out)
{
    pl_job_t *jobs = malloc(PL_JOBS_MAX * sizeof *jobs);
    int count = jobs ? pl_jobs_list(jobs) : 0;
    pl_status_t status = PL_OK;

    if (!control || !*control)
        control = getenv("PLIANT_CONTROL");
    if (control && *control) {
        memset(out, 0, sizeof *out);
        status = make_absolute(control, out->control, sizeof out->control);
        if (status != PL_OK)
            pl_complain("the path of the control file is too long");
        for (int i = 0; i < count; i++)
            if (strcmp(jobs[i].control, out->control) == 0)
                *out = jobs[i];
    } else {
        status = find_only(jobs, count, out);
    }
    free(jobs);
    return status;
}
