/* SPDX-License-Identifier: MIT
 * The program's paths and open files, for files*.c only. A *run* is one run of main; in a trial the
 * old run's files and the new one's are in the table side by side. */
#ifndef PLIANT_INTERPOSE_FILES_TABLE_H
#define PLIANT_INTERPOSE_FILES_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* No program opens such a name. */
#define PL_PATH_STANDARD "\001"

typedef struct pl_path {
    struct pl_path *next; /* same bucket */
    char *name;           /* absolute; of standard descriptors: PL_PATH_STANDARD and a digit */
    int opens;            /* by this run so far */
    int opens_before;     /* by the old run, in a trial */
    bool made;            /* by the program, in this or an earlier run */
    bool known;           /* opened in a run that counted */
    int shadow;           /* descriptor of the trial's scratch copy, or -1 */
    off_t copied;         /* bytes the scratch started with */
    bool append;          /* all opens of the scratch were in append mode */
    bool settled;         /* the scratch's content has gone where it belongs */
    bool fresh;           /* ... which was a new file */
} pl_path_t;

typedef struct pl_file {
    pl_path_t *path;
    int order; /* the how-manieth open of this path in its run, from 0 */
    int copy;  /* 0, or the how-manieth duplicate */
    int run;   /* that opened it; files that stay are handed on to the next run */
    int fd;
    FILE *stream; /* or NULL */
    int flags;    /* of open() */
    mode_t mode;
    bool runtime;     /* opened by the Fortran run-time library, whose state stays the old one's */
    bool done;        /* at a commit: closed, to be removed from the table */
    off_t position;   /* at a commit: where the stream is to stand, -1: as the descriptor */
    int stream_state; /* ... and its end-of-file and error flags */
    dev_t device;     /* to see that the descriptor is still this file's */
    ino_t inode;
} pl_file_t;

typedef struct pl_files {
    bool active; /* hooks record */
    bool in_trial;
    int run;
    pl_file_t *file;
    int count, room;
    int made_directories; /* mkdir calls that the trial only pretended */
    pthread_mutex_t lock; /* recursive */
} pl_files_t;

extern pl_files_t pl_files;

/* The record of a path, made if it is new; NULL: out of memory, or no such directory. */
pl_path_t *pl_path_get(int directory, const char *name);
/* Calls visit for each path. */
void pl_path_each(void (*visit)(pl_path_t *path));

/* Notes an open of this run. Out of memory: the file is not tracked (logged). */
void pl_file_opened(pl_path_t *path, int fd, FILE *stream, int flags, mode_t mode, bool runtime);
/* Notes that descriptor `to` is now a duplicate of `from`. */
void pl_file_copied(int from, int to);
void pl_file_closed(int fd);
/* Notes what its descriptor leads to now. */
void pl_file_identify(pl_file_t *file);
/* This run's file with that descriptor, or NULL. */
pl_file_t *pl_file_by_fd(int fd);
/* Forgets files whose descriptor was closed or taken by something else behind our back. */
void pl_file_check_all(int run);
void pl_file_remove(pl_file_t *file);

static inline bool pl_path_is_standard(const pl_path_t *path)
{
    return path->name[0] == PL_PATH_STANDARD[0];
}

static inline bool pl_flags_write(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_TRUNC | O_CREAT));
}

#endif
