/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "interpose/files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "interpose/files_scratch.h"
#include "interpose/files_standard.h"
#include "interpose/files_table.h"
#include "interpose/hook.h"

static char last_words[256];

static bool is_standard_stream(const FILE *stream)
{
    return stream == stdin || stream == stdout || stream == stderr;
}

static void note_standard(void)
{
    for (int fd = 0; fd < 3; fd++) {
        char name[4] = {PL_PATH_STANDARD[0], (char)('0' + fd), '\0'};
        pl_path_t *path = pl_standard_was_open(fd) ? pl_path_get(AT_FDCWD, name) : NULL;
        if (path)
            pl_file_opened(path, fd, pl_standard_stream(fd), fd == 0 ? O_RDONLY : O_WRONLY, 0,
                           false);
    }
}

void pl_files_start(void)
{
    pthread_mutex_lock(&pl_files.lock);
    if (!pl_files.active) {
        pl_standard_start();
        note_standard();
        pl_files.active = true;
    }
    pthread_mutex_unlock(&pl_files.lock);
}

static void begin_path(pl_path_t *path)
{
    path->opens_before = path->opens;
    path->opens = 0;
}

pl_status_t pl_files_trial_begin(void)
{
    pthread_mutex_lock(&pl_files.lock);
    fflush(NULL);
    pl_file_check_all(pl_files.run);
    pl_file_t *input = pl_file_by_fd(0);
    bool original_input = input && pl_path_is_standard(input->path) && input->copy == 0;
    pl_status_t status = pl_standard_begin();
    if (status == PL_OK) {
        last_words[0] = '\0';
        pl_files.run++;
        pl_files.in_trial = true;
        pl_path_each(begin_path);
        note_standard();
        if (original_input)
            pl_standard_rewind_input();
    }
    pthread_mutex_unlock(&pl_files.lock);
    return status;
}

/* --- commit --------------------------------------------------------------------------------------
 */

/* The old run's file that a new one stands for; a duplicate that only the new run made stands for
 * the file it is a duplicate of. */
static pl_file_t *counterpart(const pl_file_t *file)
{
    pl_file_t *found = NULL;
    for (int i = 0; i < pl_files.count; i++) {
        pl_file_t *old = &pl_files.file[i];
        if (old->run == pl_files.run || old->path != file->path || old->order != file->order)
            continue;
        if (old->copy == file->copy)
            return old;
        if (!found)
            found = old;
    }
    return found;
}

static int descriptor_of_old(const pl_file_t *old)
{
    return old->fd < 3 ? pl_standard_kept(old->fd) : old->fd;
}

static void close_file(pl_file_t *file)
{
    if (file->stream && !is_standard_stream(file->stream))
        PL_REAL(fclose)(file->stream);
    else if (file->fd >= 3)
        PL_REAL(close)(file->fd);
    file->done = true;
}

/* The new descriptor becomes the old open file. What the old stream has read ahead does not count.
 */
static pl_status_t join(pl_file_t *file, pl_file_t *old)
{
    if (PL_REAL(dup2)(descriptor_of_old(old), file->fd) < 0) {
        PL_ERROR("cannot go on with %s: %m", file->path->name);
        return PL_ERR_IO;
    }
    file->device = old->device;
    file->inode = old->inode;
    file->flags = old->flags;
    if (old->stream && !is_standard_stream(old->stream)) {
        file->stream_state = pl_stream_state(old->stream);
        if ((old->flags & O_ACCMODE) != O_WRONLY)
            file->position = ftello(old->stream);
    }
    return PL_OK;
}

static off_t scratch_position(const pl_file_t *file)
{
    return file->stream ? ftello(file->stream) : lseek(file->fd, 0, SEEK_CUR);
}

static pl_file_t *original_of(pl_file_t *file)
{
    for (pl_file_t *f = pl_files.file; f < file; f++)
        if (f->run == file->run && f->path == file->path && f->order == file->order && !f->done)
            return f;
    return NULL;
}

/* A file that this process opens for the first time, in a trial that counts. */
static pl_status_t make_real(pl_file_t *file)
{
    pl_path_t *path = file->path;
    if (path->shadow < 0)
        return PL_OK;
    pl_file_t *original = original_of(file);
    if (original) {
        file->device = original->device;
        file->inode = original->inode;
        return PL_REAL(dup2)(original->fd, file->fd) < 0 ? PL_ERR_IO : PL_OK;
    }
    off_t position = scratch_position(file);
    pl_status_t status = pl_scratch_settle(path, file->mode);
    if (status != PL_OK)
        return status;
    int fd = PL_REAL(open)(path->name, file->flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW));
    if (fd < 0 || PL_REAL(dup2)(fd, file->fd) < 0) {
        PL_ERROR("cannot open %s: %m", path->name);
        status = PL_ERR_IO;
    }
    if (fd >= 0)
        PL_REAL(close)(fd);
    pl_file_identify(file);
    /* What was there before the process opened it must not be overwritten. */
    bool at_end = !path->fresh && (file->flags & (O_TRUNC | O_APPEND));
    file->position = lseek(file->fd, at_end ? 0 : position, at_end ? SEEK_END : SEEK_SET);
    return status;
}

static pl_status_t commit_new(pl_file_t *file)
{
    pl_file_t *old = counterpart(file);

    if (old && file->runtime) {
        /* The run-time library gets its old state back, and with it the old descriptor. */
        close_file(file);
        return PL_OK;
    }
    if (old)
        return join(file, old);
    if (pl_path_is_standard(file->path) && file->copy > 0) {
        int kept = pl_standard_kept(file->path->name[1] - '0');
        return kept >= 0 && PL_REAL(dup2)(kept, file->fd) >= 0 ? PL_OK : PL_ERR_IO;
    }
    if (file->path->opens_before > file->order) {
        /* The old run has closed it since. */
        close_file(file);
        if (file->fd < 3)
            PL_REAL(close)(file->fd);
        return PL_OK;
    }
    return make_real(file);
}

static bool was_joined(const pl_file_t *old)
{
    for (int i = 0; i < pl_files.count; i++) {
        pl_file_t *file = &pl_files.file[i];
        if (file->run == pl_files.run && !file->done && counterpart(file) == old)
            return true;
    }
    return false;
}

/* Old files: closed where a new one has taken over (the streams hold nothing to flush), else they
 * stay. Those that stay on a standard descriptor need it back. */
static void settle_old(void)
{
    for (int i = 0; i < pl_files.count; i++) {
        pl_file_t *old = &pl_files.file[i];
        if (old->run == pl_files.run)
            continue;
        if (was_joined(old))
            old->done = true;
        else if (old->fd < 3)
            pl_standard_unmute(old->fd);
    }
    for (int i = 0; i < pl_files.count; i++)
        if (pl_files.file[i].run != pl_files.run && pl_files.file[i].done)
            close_file(&pl_files.file[i]);
}

static pl_status_t commit_status;

/* Written and closed again within set-up, by a process that had not done so before. */
static void commit_path(pl_path_t *path)
{
    if (path->shadow >= 0 && path->opens_before == 0 && !path->settled &&
        pl_scratch_settle(path, 0666) != PL_OK)
        commit_status = PL_ERR_IO;
    pl_scratch_drop(path);
    if (path->opens < path->opens_before)
        path->opens = path->opens_before;
    path->known |= path->opens > 0;
}

static void place_streams(void)
{
    for (int i = 0; i < pl_files.count; i++) {
        pl_file_t *file = &pl_files.file[i];
        if (file->run == pl_files.run && !file->done && file->stream &&
            !is_standard_stream(file->stream) && (counterpart(file) || file->path->shadow >= 0))
            pl_stream_place(file->stream, file->position, file->stream_state);
    }
    pl_standard_put_streams(false);
}

static void trial_over(void)
{
    pl_standard_end();
    pl_files.made_directories = 0;
    pl_files.in_trial = false;
}

pl_status_t pl_files_commit(void)
{
    pthread_mutex_lock(&pl_files.lock);
    fflush(NULL);
    pl_file_check_all(pl_files.run);
    commit_status = PL_OK;
    for (int i = 0; i < pl_files.count; i++)
        if (pl_files.file[i].run == pl_files.run && commit_new(&pl_files.file[i]) != PL_OK)
            commit_status = PL_ERR_IO;
    settle_old();
    place_streams();
    pl_path_each(commit_path);
    for (int i = pl_files.count - 1; i >= 0; i--) {
        pl_files.file[i].run = pl_files.run;
        pl_files.file[i].position = -1;
        if (pl_files.file[i].done)
            pl_file_remove(&pl_files.file[i]);
    }
    trial_over();
    pl_status_t status = commit_status;
    pthread_mutex_unlock(&pl_files.lock);
    return status;
}

/* --- other ends
 * ------------------------------------------------------------------------------------ */

static void undo_path(pl_path_t *path)
{
    path->opens = path->opens_before;
    pl_scratch_drop(path);
}

void pl_files_rollback(void)
{
    pthread_mutex_lock(&pl_files.lock);
    fflush(NULL);
    pl_standard_last_line(last_words, sizeof last_words);
    pl_file_check_all(pl_files.run);
    for (int i = pl_files.count - 1; i >= 0; i--) {
        if (pl_files.file[i].run != pl_files.run)
            continue;
        close_file(&pl_files.file[i]);
        pl_file_remove(&pl_files.file[i]);
    }
    for (int fd = 0; fd < 3; fd++)
        pl_standard_unmute(fd);
    pl_standard_put_streams(true);
    pl_path_each(undo_path);
    pl_files.run--;
    trial_over();
    pthread_mutex_unlock(&pl_files.lock);
}

static void retire_path(pl_path_t *path)
{
    if (!pl_path_is_standard(path))
        path->opens = 0;
}

void pl_files_retire(void)
{
    pthread_mutex_lock(&pl_files.lock);
    fflush(NULL);
    pl_file_check_all(pl_files.run);
    for (int i = pl_files.count - 1; i >= 0; i--) {
        pl_file_t *file = &pl_files.file[i];
        if (file->fd < 3)
            continue;
        close_file(file);
        pl_file_remove(file);
    }
    pl_path_each(retire_path);
    pl_standard_forget_buffers();
    pthread_mutex_unlock(&pl_files.lock);
}

void pl_files_last_words(char *out, size_t size)
{
    if (size > 0)
        snprintf(out, size, "%s", last_words);
}

bool pl_files_input_missed(void)
{
    return pl_files.in_trial && pl_standard_input_missed();
}
