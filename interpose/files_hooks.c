/* SPDX-License-Identifier: MIT
 * Calls of the program that open, close or change files. */
/* Plain declarations only: the inline versions of the C library's headers are in the way of hooks.
 */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/files_scratch.h"
#include "interpose/files_table.h"
#include "interpose/hook.h"
#include "interpose/modules.h"

/* The Fortran run-time library opens on the program's behalf. */
static bool is_runtime(const void *caller)
{
    const pl_module_t *module = pl_module_of((uintptr_t)caller);
    return module && module->owner == PL_OWNER_FORTRAN;
}

static bool is_followed(const void *caller)
{
    return pl_files.active && (pl_module_is_program(caller) || is_runtime(caller));
}

static bool pretends(const void *caller)
{
    return __builtin_expect(pl_files.in_trial, 0) && is_followed(caller);
}

/* --- descriptors -------------------------------------------------------------------------------
 */

static int open_followed(int directory, const char *name, int flags, mode_t mode, bool runtime)
{
    pthread_mutex_lock(&pl_files.lock);
    char proc[32];
    bool special = (flags & (O_PATH | O_DIRECTORY)) || (flags & O_TMPFILE) == O_TMPFILE;
    pl_path_t *path = special ? NULL : pl_path_get(directory, name);
    pl_redirect_t redirect = path ? pl_scratch_redirect(path, flags, proc) : PL_REDIRECT_NONE;
    bool exists = path && (flags & O_CREAT) && access(path->name, F_OK) == 0;
    int fd = -1;

    if (redirect == PL_REDIRECT_SCRATCH)
        fd = PL_REAL(open)(proc, flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW));
    else if (redirect == PL_REDIRECT_NONE)
        fd = PL_REAL(openat)(directory, name, flags, mode);
    if (fd >= 0 && path) {
        if (redirect == PL_REDIRECT_NONE && (flags & O_CREAT) && !exists)
            path->made = true;
        pl_file_opened(path, fd, NULL, flags, mode, runtime);
    }
    pthread_mutex_unlock(&pl_files.lock);
    return fd;
}

static int open_any(int directory, const char *name, int flags, mode_t mode, const void *caller)
{
    if (!is_followed(caller))
        return PL_REAL(openat)(directory, name, flags, mode);
    return open_followed(directory, name, flags, mode, is_runtime(caller));
}

static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* For variadic hooks: the mode, if there is one. */
#define MODE(flags)                                                                                \
    __extension__({                                                                                \
        mode_t mode_ = 0;                                                                          \
        if (has_mode(flags)) {                                                                     \
            va_list args_;                                                                         \
            va_start(args_, flags);                                                                \
            mode_ = va_arg(args_, mode_t);                                                         \
            va_end(args_);                                                                         \
        }                                                                                          \
        mode_;                                                                                     \
    })

PL_HOOK int open(const char *name, int flags, ...)
{
    return open_any(AT_FDCWD, name, flags, MODE(flags), PL_CALLER);
}

PL_HOOK int openat(int directory, const char *name, int flags, ...)
{
    return open_any(directory, name, flags, MODE(flags), PL_CALLER);
}

PL_HOOK int creat(const char *name, mode_t mode)
{
    return open_any(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, mode, PL_CALLER);
}

/* What -D_FORTIFY_SOURCE calls. */
int __open_2(const char *name, int flags);
PL_HOOK int __open_2(const char *name, int flags)
{
    return open_any(AT_FDCWD, name, flags, 0, PL_CALLER);
}

int __openat_2(int directory, const char *name, int flags);
PL_HOOK int __openat_2(int directory, const char *name, int flags)
{
    return open_any(directory, name, flags, 0, PL_CALLER);
}

PL_HOOK int open64(const char *name, int flags, ...) __attribute__((alias("open")));
PL_HOOK int openat64(int directory, const char *name, int flags, ...)
    __attribute__((alias("openat")));
PL_HOOK int creat64(const char *name, mode_t mode) __attribute__((alias("creat")));
PL_HOOK int __open64_2(const char *name, int flags) __attribute__((alias("__open_2")));
PL_HOOK int __openat64_2(int directory, const char *name, int flags)
    __attribute__((alias("__openat_2")));

PL_HOOK int close(int fd)
{
    if (is_followed(PL_CALLER)) {
        pthread_mutex_lock(&pl_files.lock);
        pl_file_closed(fd);
        pthread_mutex_unlock(&pl_files.lock);
    }
    return PL_REAL(close)(fd);
}

static int copied(int from, int to, const void *caller)
{
    if (to >= 0 && is_followed(caller)) {
        pthread_mutex_lock(&pl_files.lock);
        pl_file_copied(from, to);
        pthread_mutex_unlock(&pl_files.lock);
    }
    return to;
}

PL_HOOK int dup(int fd)
{
    return copied(fd, PL_REAL(dup)(fd), PL_CALLER);
}

PL_HOOK int dup2(int from, int to)
{
    return copied(from, PL_REAL(dup2)(from, to), PL_CALLER);
}

PL_HOOK int dup3(int from, int to, int flags)
{
    return copied(from, PL_REAL(dup3)(from, to, flags), PL_CALLER);
}

/* --- C streams -----------------------------------------------------------------------------------
 */

/* The flags of open() a mode stands for; -1: not one that this C library knows. */
static int flags_of(const char *mode)
{
    int flags = mode[0] == 'r'   ? O_RDONLY
                : mode[0] == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
                : mode[0] == 'a' ? O_WRONLY | O_CREAT | O_APPEND
                                 : -1;
    for (const char *m = mode + 1; flags >= 0 && *m && *m != ','; m++) {
        if (*m == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        if (*m == 'x')
            flags |= O_EXCL;
    }
    return flags;
}

/* A scratch exists already: x would refuse it. */
static void without_x(const char *mode, char *out, size_t size)
{
    size_t used = 0;
    for (; *mode && *mode != ',' && used + 1 < size; mode++)
        if (*mode != 'x')
            out[used++] = *mode;
    for (; *mode && used + 1 < size; mode++)
        out[used++] = *mode;
    out[used] = '\0';
}

/* `reopened` NULL: fopen, else freopen. */
static FILE *open_stream(const char *name, const char *mode, FILE *reopened, bool runtime)
{
    int flags = flags_of(mode);
    char proc[32], plain[64];

    pthread_mutex_lock(&pl_files.lock);
    pl_path_t *path = flags < 0 ? NULL : pl_path_get(AT_FDCWD, name);
    pl_redirect_t redirect = path ? pl_scratch_redirect(path, flags, proc) : PL_REDIRECT_NONE;
    bool exists = path && (flags & O_CREAT) && access(path->name, F_OK) == 0;
    if (redirect == PL_REDIRECT_SCRATCH) {
        without_x(mode, plain, sizeof plain);
        name = proc;
        mode = plain;
    }
    if (reopened)
        pl_file_closed(fileno(reopened));
    FILE *stream = NULL;
    if (redirect == PL_REDIRECT_FAIL && reopened) {
        int why = errno;
        fclose(reopened);
        errno = why;
    } else if (redirect != PL_REDIRECT_FAIL) {
        stream = reopened ? PL_REAL(freopen)(name, mode, reopened) : PL_REAL(fopen)(name, mode);
    }
    if (stream && path) {
        if (redirect == PL_REDIRECT_NONE && (flags & O_CREAT) && !exists)
            path->made = true;
        pl_file_opened(path, fileno(stream), stream, flags, 0666, runtime);
    }
    pthread_mutex_unlock(&pl_files.lock);
    return stream;
}

PL_HOOK FILE *fopen(const char *name, const char *mode)
{
    if (!is_followed(PL_CALLER))
        return PL_REAL(fopen)(name, mode);
    return open_stream(name, mode, NULL, is_runtime(PL_CALLER));
}

PL_HOOK FILE *freopen(const char *name, const char *mode, FILE *stream)
{
    if (!name || !is_followed(PL_CALLER))
        return PL_REAL(freopen)(name, mode, stream);
    return open_stream(name, mode, stream, is_runtime(PL_CALLER));
}

PL_HOOK FILE *fopen64(const char *name, const char *mode) __attribute__((alias("fopen")));
PL_HOOK FILE *freopen64(const char *name, const char *mode, FILE *stream)
    __attribute__((alias("freopen")));

PL_HOOK FILE *fdopen(int fd, const char *mode)
{
    FILE *stream = PL_REAL(fdopen)(fd, mode);
    if (stream && is_followed(PL_CALLER)) {
        pthread_mutex_lock(&pl_files.lock);
        pl_file_t *file = pl_file_by_fd(fd);
        if (file)
            file->stream = stream;
        pthread_mutex_unlock(&pl_files.lock);
    }
    return stream;
}

PL_HOOK int fclose(FILE *stream)
{
    if (stream && is_followed(PL_CALLER)) {
        pthread_mutex_lock(&pl_files.lock);
        pl_file_closed(fileno(stream));
        pthread_mutex_unlock(&pl_files.lock);
    }
    return PL_REAL(fclose)(stream);
}

/* --- changes to the file system: a trial says success and does nothing
 * ---------------------------- */

#define CHANGE(name, parameters, arguments)                                                        \
    PL_HOOK int name parameters                                                                    \
    {                                                                                              \
        if (pretends(PL_CALLER))                                                                   \
            return 0;                                                                              \
        return PL_REAL(name) arguments;                                                            \
    }

CHANGE(rename, (const char *from, const char *to), (from, to))
CHANGE(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
CHANGE(rmdir, (const char *name), (name))
CHANGE(truncate, (const char *name, off_t size), (name, size))
CHANGE(link, (const char *from, const char *to), (from, to))
CHANGE(symlink, (const char *from, const char *to), (from, to))
CHANGE(chmod, (const char *name, mode_t mode), (name, mode))
PL_HOOK int truncate64(const char *name, off64_t size) __attribute__((alias("truncate")));

static int pretend_unlink(int directory, const char *name)
{
    pthread_mutex_lock(&pl_files.lock);
    pl_path_t *path = pl_path_get(directory, name);
    if (path)
        pl_scratch_drop(path);
    pthread_mutex_unlock(&pl_files.lock);
    return 0;
}

PL_HOOK int unlink(const char *name)
{
    return pretends(PL_CALLER) ? pretend_unlink(AT_FDCWD, name) : PL_REAL(unlink)(name);
}

PL_HOOK int unlinkat(int directory, const char *name, int flags)
{
    return pretends(PL_CALLER) ? pretend_unlink(directory, name)
                               : PL_REAL(unlinkat)(directory, name, flags);
}

PL_HOOK int remove(const char *name)
{
    return pretends(PL_CALLER) ? pretend_unlink(AT_FDCWD, name) : PL_REAL(remove)(name);
}

PL_HOOK int mkdir(const char *name, mode_t mode)
{
    if (!pretends(PL_CALLER))
        return PL_REAL(mkdir)(name, mode);
    pl_files.made_directories++;
    return 0;
}

PL_HOOK int mkdirat(int directory, const char *name, mode_t mode)
{
    if (!pretends(PL_CALLER))
        return PL_REAL(mkdirat)(directory, name, mode);
    pl_files.made_directories++;
    return 0;
}
