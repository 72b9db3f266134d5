/* SPDX-License-Identifier: MIT
 * A scratch is a memory file. Opening it again through /proc gives the program a descriptor with an
 * offset and an access mode of its own. */
#include <fcntl.h>

#include "interpose/files_scratch.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "interpose/controls.h"
#include "interpose/hook.h"

enum { HIGH = 200 };

int pl_files_move_high(int fd)
{
    if (fd < 0)
        return -1;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

static bool copy_all(int from, int to)
{
    char buffer[16384];
    ssize_t n;
    while ((n = sendfile(to, from, NULL, 1 << 30)) > 0)
        ;
    if (n == 0)
        return true;
    while ((n = read(from, buffer, sizeof buffer)) > 0)
        if (write(to, buffer, (size_t)n) != n)
            return false;
    return n == 0;
}

static bool parent_is_writable(const char *name)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(name, '/');
    size_t length = slash && slash > name ? (size_t)(slash - name) : 1;
    memcpy(parent, name, length);
    parent[length] = '\0';
    return access(parent, W_OK) == 0;
}

static int make_scratch(const char *name, bool with_content)
{
    int scratch = pl_files_move_high(memfd_create("pliant-scratch", MFD_CLOEXEC));
    if (scratch < 0 || !with_content)
        return scratch;
    int real = PL_REAL(open)(name, O_RDONLY | O_CLOEXEC);
    bool copied = real >= 0 && copy_all(real, scratch);
    int why = errno;
    if (real >= 0)
        close(real);
    if (copied)
        return scratch;
    /* A file that may be written but not read starts empty. */
    if (real < 0 && why == EACCES)
        return scratch;
    close(scratch);
    errno = why;
    return -1;
}

/* May the program open it so, if there were no trial? Sets errno. */
static bool is_allowed(const pl_path_t *path, int flags, bool exists)
{
    if (exists && (flags & O_CREAT) && (flags & O_EXCL) && !path->made) {
        errno = EEXIST;
        return false;
    }
    if (exists)
        return access(path->name, W_OK) == 0;
    if (!(flags & O_CREAT)) {
        errno = ENOENT;
        return false;
    }
    return pl_files.made_directories > 0 || parent_is_writable(path->name);
}

static pl_redirect_t redirect_to(const pl_path_t *path, char proc[32])
{
    snprintf(proc, 32, "/proc/self/fd/%d", path->shadow);
    return PL_REDIRECT_SCRATCH;
}

pl_redirect_t pl_scratch_redirect(pl_path_t *path, int flags, char proc[32])
{
    struct stat st;

    if (PL_OFF(scratch) || !pl_files.in_trial || (!pl_flags_write(flags) && path->shadow < 0))
        return PL_REDIRECT_NONE;
    if (path->shadow >= 0) {
        if ((flags & O_CREAT) && (flags & O_EXCL)) {
            errno = EEXIST;
            return PL_REDIRECT_FAIL;
        }
        if (pl_flags_write(flags))
            path->append &= (flags & O_APPEND) != 0;
        return redirect_to(path, proc);
    }
    bool exists = stat(path->name, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return PL_REDIRECT_NONE;
    if (!is_allowed(path, flags, exists))
        return PL_REDIRECT_FAIL;
    bool empty = !exists || (flags & (O_TRUNC | O_EXCL));
    path->shadow = make_scratch(path->name, !empty);
    if (path->shadow < 0)
        return PL_REDIRECT_FAIL;
    path->copied = empty ? 0 : lseek(path->shadow, 0, SEEK_END);
    path->append = (flags & (O_APPEND | O_TRUNC)) == O_APPEND;
    return redirect_to(path, proc);
}

void pl_scratch_drop(pl_path_t *path)
{
    if (path->shadow >= 0)
        close(path->shadow);
    path->shadow = -1;
    path->copied = 0;
    path->append = path->settled = path->fresh = false;
}

static void make_parents(const char *name)
{
    char part[PATH_MAX];
    for (const char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        memcpy(part, name, (size_t)(slash - name));
        part[slash - name] = '\0';
        PL_REAL(mkdir)(part, 0777);
    }
}

pl_status_t pl_scratch_settle(pl_path_t *path, mode_t mode)
{
    bool exists = access(path->name, F_OK) == 0;
    bool append = exists && !path->known && path->append;

    if (path->settled || (exists && !append))
        return PL_OK;
    if (!exists)
        make_parents(path->name);
    int real =
        PL_REAL(open)(path->name, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : 0), mode);
    /* sendfile() does not write to a descriptor in append mode: copy_all falls back. */
    bool done = real >= 0 && lseek(path->shadow, append ? path->copied : 0, SEEK_SET) >= 0 &&
                copy_all(path->shadow, real);
    if (real >= 0)
        done &= close(real) == 0;
    if (!done) {
        PL_ERROR("cannot write %s, opened while the size changed: %m", path->name);
        return PL_ERR_IO;
    }
    path->settled = true;
    path->fresh = !exists;
    path->made |= !exists;
    return PL_OK;
}
