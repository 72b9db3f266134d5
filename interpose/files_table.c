/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "interpose/files_table.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

enum { BUCKETS = 1024 };

pl_files_t pl_files = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
static pl_path_t *buckets[BUCKETS];

static unsigned hash_of(const char *name)
{
    unsigned hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % BUCKETS;
}

static bool make_absolute(int directory, const char *name, char out[PATH_MAX])
{
    size_t used = 0;
    if (name[0] != '/' && name[0] != PL_PATH_STANDARD[0]) {
        if (directory == AT_FDCWD) {
            if (!getcwd(out, PATH_MAX))
                return false;
        } else {
            char link[32];
            snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
            ssize_t length = readlink(link, out, PATH_MAX - 1);
            if (length < 0)
                return false;
            out[length] = '\0';
        }
        used = strlen(out);
        if (used + 1 >= PATH_MAX)
            return false;
        out[used++] = '/';
    }
    size_t bytes = strlen(name) + 1;
    if (used + bytes > PATH_MAX)
        return false;
    memcpy(out + used, name, bytes);
    return true;
}

pl_path_t *pl_path_get(int directory, const char *name)
{
    char absolute[PATH_MAX];
    if (!name || !make_absolute(directory, name, absolute))
        return NULL;
    pl_path_t **bucket = &buckets[hash_of(absolute)];
    for (pl_path_t *p = *bucket; p; p = p->next)
        if (!strcmp(p->name, absolute))
            return p;
    pl_path_t *path = calloc(1, sizeof *path);
    if (!path || !(path->name = strdup(absolute))) {
        free(path);
        PL_WARN("out of memory: file %s is not followed", absolute);
        return NULL;
    }
    path->shadow = -1;
    path->next = *bucket;
    *bucket = path;
    return path;
}

void pl_path_each(void (*visit)(pl_path_t *path))
{
    for (int i = 0; i < BUCKETS; i++)
        for (pl_path_t *p = buckets[i]; p; p = p->next)
            visit(p);
}

void pl_file_identify(pl_file_t *file)
{
    struct stat st = {0};
    fstat(file->fd, &st);
    file->device = st.st_dev;
    file->inode = st.st_ino;
}

static pl_file_t *add(pl_path_t *path, int fd)
{
    if (pl_files.count == pl_files.room) {
        int room = pl_files.room ? pl_files.room * 2 : 32;
        pl_file_t *larger = realloc(pl_files.file, (size_t)room * sizeof *larger);
        if (!larger) {
            PL_WARN("out of memory: file %s is not followed", path->name);
            return NULL;
        }
        pl_files.file = larger;
        pl_files.room = room;
    }
    pl_file_t *file = &pl_files.file[pl_files.count++];
    *file = (pl_file_t){.path = path, .fd = fd, .run = pl_files.run, .position = -1};
    pl_file_identify(file);
    return file;
}

void pl_file_opened(pl_path_t *path, int fd, FILE *stream, int flags, mode_t mode, bool runtime)
{
    pl_file_closed(fd); /* whatever had this number before */
    pl_file_t *file = add(path, fd);
    if (!file)
        return;
    file->order = path->opens++;
    file->stream = stream;
    file->flags = flags;
    file->mode = mode;
    file->runtime = runtime;
    if (!pl_files.in_trial)
        path->known = true;
}

static int copies_of(const pl_file_t *file)
{
    int last = 0;
    for (int i = 0; i < pl_files.count; i++) {
        const pl_file_t *f = &pl_files.file[i];
        if (f->path == file->path && f->order == file->order && f->run == file->run)
            last = f->copy > last ? f->copy : last;
    }
    return last;
}

void pl_file_copied(int from, int to)
{
    if (from == to)
        return;
    pl_file_closed(to);
    pl_file_t *original = pl_file_by_fd(from);
    if (!original)
        return;
    pl_file_t copy = *original;
    pl_file_t *file = add(copy.path, to);
    if (!file)
        return;
    file->order = copy.order;
    file->flags = copy.flags;
    file->mode = copy.mode;
    file->runtime = copy.runtime;
    file->copy = copies_of(&copy) + 1;
}

pl_file_t *pl_file_by_fd(int fd)
{
    for (int i = pl_files.count - 1; i >= 0; i--)
        if (pl_files.file[i].fd == fd && pl_files.file[i].run == pl_files.run)
            return &pl_files.file[i];
    return NULL;
}

/* Keeps the order of the others. */
void pl_file_remove(pl_file_t *file)
{
    pl_file_t *end = pl_files.file + pl_files.count;
    memmove(file, file + 1, (size_t)(end - file - 1) * sizeof *file);
    pl_files.count--;
}

void pl_file_closed(int fd)
{
    pl_file_t *file = pl_file_by_fd(fd);
    if (file)
        pl_file_remove(file);
}

void pl_file_check_all(int run)
{
    for (int i = pl_files.count - 1; i >= 0; i--) {
        pl_file_t *file = &pl_files.file[i];
        struct stat st;
        if (file->run == run &&
            (fstat(file->fd, &st) != 0 || st.st_dev != file->device || st.st_ino != file->inode))
            pl_file_remove(file);
    }
}
