/* SPDX-License-Identifier: MIT
 * Uses fields of glibc's FILE which its public headers declare and its ABI keeps: a stream whose
 * descriptor now leads elsewhere must not trust the offset and the data it remembers, and stdio
 * has no call for that. */
#include <fcntl.h>

#include "interpose/files_standard.h"

#include <stdint.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/log.h"
#include "interpose/files_scratch.h"
#include "interpose/heap.h"
#include "interpose/hook.h"

/* Flags of FILE that its header does not name. */
#define USER_BUFFER 0x0001
#define UNBUFFERED  0x0002
#define BY_LINE     0x0200
#define OUTCOME     (_IO_EOF_SEEN | _IO_ERR_SEEN)

typedef struct standard {
    int kept;       /* duplicate of the descriptor, -1: it was closed */
    FILE copy;      /* of the stream */
    off_t position; /* of standard input, -1: cannot seek */
    char *unread;   /* of standard input: what was read ahead */
    size_t unread_bytes;
} standard_t;

static standard_t standard[3];
static int muted = -1;
static int no_input = -1; /* stands in for standard input that cannot be read again */
static bool was_open[3];
static off_t input_start = -1;

FILE *pl_standard_stream(int fd)
{
    return fd == 0 ? stdin : fd == 1 ? stdout : stderr;
}

int pl_stream_state(const FILE *stream)
{
    return stream->_flags & OUTCOME;
}

void pl_stream_place(FILE *stream, off_t position, int state)
{
    __fpurge(stream);
    stream->_offset = -1;
    if (position >= 0 && fseeko(stream, position, SEEK_SET) != 0)
        PL_WARN("cannot put a stream back to position %ld: %m", (long)position);
    stream->_flags = (stream->_flags & ~OUTCOME) | state;
}

void pl_standard_start(void)
{
    for (int fd = 0; fd < 3; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    input_start = lseek(0, 0, SEEK_CUR);
}

bool pl_standard_was_open(int fd)
{
    return was_open[fd];
}

int pl_standard_kept(int fd)
{
    return standard[fd].kept;
}

static void keep_input(standard_t *s)
{
    s->position = ftello(stdin);
    s->unread = NULL;
    s->unread_bytes = 0;
    if (s->position >= 0 || stdin->_IO_read_ptr >= stdin->_IO_read_end)
        return;
    size_t bytes = (size_t)(stdin->_IO_read_end - stdin->_IO_read_ptr);
    s->unread = malloc(bytes);
    if (!s->unread) {
        PL_WARN("out of memory: standard input may lose %zu bytes", bytes);
        return;
    }
    memcpy(s->unread, stdin->_IO_read_ptr, bytes);
    s->unread_bytes = bytes;
}

/* What set-up read from a pipe is gone. The run in a trial must not take what the program will read
 * later; one byte shows whether it tries. */
static void hide_input(void)
{
    if (!was_open[0] || input_start >= 0)
        return;
    no_input = pl_files_move_high(memfd_create("pliant-no-input", MFD_CLOEXEC));
    if (no_input < 0 || write(no_input, "\n", 1) != 1 || lseek(no_input, 0, SEEK_SET) != 0)
        PL_WARN("cannot keep a trial from standard input: %m");
    else
        PL_REAL(dup2)(no_input, 0);
    pl_stream_place(stdin, -1, 0);
}

bool pl_standard_input_missed(void)
{
    return no_input >= 0 && lseek(no_input, 0, SEEK_CUR) > 0;
}

pl_status_t pl_standard_begin(void)
{
    muted = pl_files_move_high(memfd_create("pliant-muted", MFD_CLOEXEC));
    if (muted < 0) {
        PL_WARN("cannot mute a trial: %m");
        return PL_ERR_IO;
    }
    for (int fd = 0; fd < 3; fd++) {
        standard_t *s = &standard[fd];
        s->kept = fcntl(fd, F_DUPFD_CLOEXEC, 200);
        s->copy = *pl_standard_stream(fd);
    }
    keep_input(&standard[0]);
    hide_input();
    for (int fd = 1; fd < 3; fd++)
        if (was_open[fd])
            PL_REAL(dup2)(muted, fd);
    return PL_OK;
}

void pl_standard_rewind_input(void)
{
    if (input_start >= 0)
        pl_stream_place(stdin, input_start, 0);
}

void pl_standard_unmute(int fd)
{
    if (standard[fd].kept >= 0)
        PL_REAL(dup2)(standard[fd].kept, fd);
    else
        PL_REAL(close)(fd);
}

static void drop_buffer(FILE *stream)
{
    stream->_IO_buf_base = stream->_IO_buf_end = NULL;
    stream->_IO_read_base = stream->_IO_read_ptr = stream->_IO_read_end = NULL;
    stream->_IO_write_base = stream->_IO_write_ptr = stream->_IO_write_end = NULL;
    stream->_flags &= ~USER_BUFFER;
}

/* A buffer given by setvbuf() lies in the program's memory: it goes with it. */
static void put_buffer(FILE *stream, const FILE *copy, bool rollback)
{
    bool users = stream->_flags & USER_BUFFER;
    const char *base = stream->_IO_buf_base;

    if (!rollback) {
        if (users && pl_heap_owns(base) && pl_heap_generation_of(base) != pl_heap_current())
            drop_buffer(stream);
        return;
    }
    if (base == copy->_IO_buf_base)
        return;
    if (users)
        drop_buffer(stream);
    if (copy->_flags & USER_BUFFER) {
        if (!users)
            free(stream->_IO_buf_base);
        drop_buffer(stream);
        stream->_IO_buf_base = copy->_IO_buf_base;
        stream->_IO_buf_end = copy->_IO_buf_end;
        stream->_flags |= USER_BUFFER;
    }
}

void pl_standard_forget_buffers(void)
{
    for (int fd = 0; fd < 3; fd++) {
        FILE *stream = pl_standard_stream(fd);
        if ((stream->_flags & USER_BUFFER) && pl_heap_owns(stream->_IO_buf_base))
            drop_buffer(stream);
    }
}

static void put_unread(const standard_t *s)
{
    size_t room = (size_t)(stdin->_IO_buf_end - stdin->_IO_buf_base);
    bool untouched =
        stdin->_IO_read_ptr == s->copy._IO_read_ptr && stdin->_IO_read_end == s->copy._IO_read_end;
    if (untouched || !s->unread)
        return;
    if (room < s->unread_bytes) {
        PL_WARN("standard input loses %zu bytes that were read ahead", s->unread_bytes);
        return;
    }
    __fpurge(stdin);
    memcpy(stdin->_IO_buf_base, s->unread, s->unread_bytes);
    stdin->_IO_read_base = stdin->_IO_read_ptr = stdin->_IO_buf_base;
    stdin->_IO_read_end = stdin->_IO_buf_base + s->unread_bytes;
}

void pl_standard_put_streams(bool rollback)
{
    const int how = UNBUFFERED | BY_LINE;

    for (int fd = 0; fd < 3; fd++) {
        FILE *stream = pl_standard_stream(fd);
        standard_t *s = &standard[fd];
        put_buffer(stream, &s->copy, rollback);
        /* Output goes on where the descriptor is, which others may share. */
        if (fd > 0 || s->position >= 0)
            pl_stream_place(stream, fd == 0 ? s->position : -1, s->copy._flags & OUTCOME);
        else
            put_unread(s);
        if (rollback)
            stream->_flags = (stream->_flags & ~how) | (s->copy._flags & how);
    }
}

void pl_standard_last_line(char *out, size_t size)
{
    char tail[1024];
    off_t end = lseek(muted, 0, SEEK_END);
    off_t from = end > (off_t)sizeof tail ? end - (off_t)sizeof tail : 0;
    ssize_t bytes = end > 0 ? pread(muted, tail, sizeof tail, from) : 0;

    while (bytes > 0 && strchr("\n\r \t", tail[bytes - 1]))
        bytes--;
    ssize_t start = bytes;
    while (start > 0 && tail[start - 1] != '\n')
        start--;
    size_t length = bytes > start ? (size_t)(bytes - start) : 0;
    if (length >= size)
        length = size - 1;
    memcpy(out, tail + (bytes > 0 ? start : 0), length);
    out[length] = '\0';
}

void pl_standard_end(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (standard[fd].kept >= 0)
            PL_REAL(close)(standard[fd].kept);
        standard[fd].kept = -1;
        free(standard[fd].unread);
        standard[fd].unread = NULL;
    }
    PL_REAL(close)(muted);
    muted = -1;
    if (no_input >= 0)
        PL_REAL(close)(no_input);
    no_input = -1;
}
