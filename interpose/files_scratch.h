/* SPDX-License-Identifier: MIT
 * Scratch copies of files that a trial opens for writing, for files*.c only. */
#ifndef PLIANT_INTERPOSE_FILES_SCRATCH_H
#define PLIANT_INTERPOSE_FILES_SCRATCH_H

#include "common/status.h"
#include "interpose/files_table.h"

typedef enum pl_redirect {
    PL_REDIRECT_NONE,    /* open the real file */
    PL_REDIRECT_SCRATCH, /* open the name written to `proc`, without O_CREAT and O_EXCL */
    PL_REDIRECT_FAIL,    /* as errno says */
} pl_redirect_t;

/* Where an open of this path with these flags goes now. */
pl_redirect_t pl_scratch_redirect(pl_path_t *path, int flags, char proc[32]);

/* Forgets the scratch of a path. */
void pl_scratch_drop(pl_path_t *path);

/* Puts the content of a scratch into the real file, for a process that has not opened this path in
 * a run that counted: a file that is not there is made; what was appended is appended, unless the
 * path is known from an earlier run; else nothing. Once per path and trial. PL_ERR_IO: logged. */
pl_status_t pl_scratch_settle(pl_path_t *path, mode_t mode);

/* A duplicate of fd with a number that programs do not expect; fd is closed. -1 stays -1. */
int pl_files_move_high(int fd);

#endif
