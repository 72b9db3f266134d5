/* SPDX-License-Identifier: MIT
 * The program's open files. Opens and closes by the program's modules are recorded (path,
 * descriptor, C stream, the how-manieth open of this path), so that a trial - set-up run again -
 * leaves the files of the world alone, and a commit joins the files of the old run to those of the
 * new one.
 *
 * In a trial
 * - standard output and error go to a memory file that is dropped;
 * - what is opened for writing is a scratch copy in memory (empty if truncated); reading what
 *   the trial wrote reads the scratch;
 * - O_EXCL succeeds for files the program itself has made before;
 * - unlink, rename, mkdir, rmdir, truncate and their kind do nothing and say success. */
#ifndef PLIANT_INTERPOSE_FILES_H
#define PLIANT_INTERPOSE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

/* Before main's first run: from now on the program's files are followed. */
void pl_files_start(void);

/* Starts a trial: what is open now is the old run's. Flushes all C streams. Call it before the old
 * heap generation is made read-only. PL_ERR_IO: nothing has changed. */
pl_status_t pl_files_trial_begin(void);

/* The trial counts. Each new file with a counterpart in the old run (same path, same order) gets
 * the old one's open file and position; the old descriptor is closed. Old files without one
 * stay open under their number. New files without one are made for real from their scratch; an
 * existing file is never truncated then: appends are added to it, else writing goes on at its end.
 * Output of the trial is dropped. Call it while both heap generations are writable (stream buffers
 * may lie there). PL_ERR_IO: some file could not be made or joined (logged); the rest is done. */
pl_status_t pl_files_commit(void);

/* The trial did not happen: its files are closed, output goes where it went before. Call it before
 * the trial's heap generation is dropped. */
void pl_files_rollback(void);

/* For a process that leaves the world: flushes and closes all files the program has open, except
 * standard input, output and error, which are flushed. */
void pl_files_retire(void);

/* The last line that a trial printed before it was rolled back ("" if none); always terminated. */
void pl_files_last_words(char *out, size_t size);

/* In a trial: has the program tried to read standard input that was a pipe, and is gone? */
bool pl_files_input_missed(void);

#endif
