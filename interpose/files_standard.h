/* SPDX-License-Identifier: MIT
 * Standard input, output and error across a trial, for files*.c only. Their descriptors and C
 * streams are the same objects in the old run and in the new one. */
#ifndef PLIANT_INTERPOSE_FILES_STANDARD_H
#define PLIANT_INTERPOSE_FILES_STANDARD_H

#include <stdbool.h>
#include <stdio.h>

#include "common/status.h"

/* Before main: which of them are open, and where standard input stands. */
void pl_standard_start(void);
bool pl_standard_was_open(int fd);

/* Keeps descriptors and streams, sends output to memory, standard input back to where main found
 * it (if it can seek). All streams have been flushed. */
pl_status_t pl_standard_begin(void);
void pl_standard_rewind_input(void);
/* In a trial: did the program read from standard input that cannot be read again? */
bool pl_standard_input_missed(void);

/* The kept descriptor, or -1. */
int pl_standard_kept(int fd);
FILE *pl_standard_stream(int fd);

/* Puts the descriptor back. */
void pl_standard_unmute(int fd);
/* Puts the streams back, all as they were (rollback) or only where they stood (commit). */
void pl_standard_put_streams(bool rollback);
/* Before the program's heap goes: standard streams (flushed) must not use buffers in it. */
void pl_standard_forget_buffers(void);
/* Copies the last line of the muted output. */
void pl_standard_last_line(char *out, size_t size);
void pl_standard_end(void);

/* Forgets what a stream has buffered and where it thinks it is; seeks if position is not -1. */
void pl_stream_place(FILE *stream, off_t position, int state);
/* End-of-file and error flags. */
int pl_stream_state(const FILE *stream);

#endif
