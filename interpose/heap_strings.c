/* SPDX-License-Identifier: MIT
 * Functions of the C library that return memory which their caller owns: when the program calls
 * them, the memory is the program's. */
/* Plain declarations only: the inline versions of the C library's headers are in the way of hooks.
 */
#undef _FORTIFY_SOURCE
#define __NO_INLINE__ 1
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "interpose/chain.h"
#include "interpose/heap.h"
#include "interpose/hook.h"
#include "interpose/modules.h"

enum { FIRST_LINE = 120 };

static void *allocate(size_t size, uint64_t chain)
{
    void *p = pl_heap_allocate(size, 16, chain);
    if (!p)
        errno = ENOMEM;
    return p;
}

static char *copy(const char *text, size_t length, uint64_t chain)
{
    char *to = allocate(length + 1, chain);
    return to ? memcpy(to, text, length) : NULL;
}

PL_HOOK char *strdup(const char *text)
{
    if (!pl_module_is_program(PL_CALLER))
        return PL_REAL(strdup)(text);
    return copy(text, strlen(text), PL_CALLER_CHAIN);
}

PL_HOOK char *strndup(const char *text, size_t most)
{
    if (!pl_module_is_program(PL_CALLER))
        return PL_REAL(strndup)(text, most);
    return copy(text, strnlen(text, most), PL_CALLER_CHAIN);
}

__attribute__((format(printf, 2, 0))) static int print(char **out, const char *format, va_list args,
                                                       uint64_t chain)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : allocate((size_t)length + 1, chain);
    if (!text)
        return -1;
    length = vsnprintf(text, (size_t)length + 1, format, args);
    *out = text;
    return length;
}

PL_HOOK int vasprintf(char **out, const char *format, va_list args)
{
    if (!pl_module_is_program(PL_CALLER))
        return PL_REAL(vasprintf)(out, format, args);
    return print(out, format, args, PL_CALLER_CHAIN);
}

PL_HOOK int asprintf(char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = pl_module_is_program(PL_CALLER) ? print(out, format, args, PL_CALLER_CHAIN)
                                                 : PL_REAL(vasprintf)(out, format, args);
    va_end(args);
    return length;
}

/* What -D_FORTIFY_SOURCE calls. */
int __vasprintf_chk(char **out, int flag, const char *format, va_list args);
PL_HOOK int __vasprintf_chk(char **out, int flag, const char *format, va_list args)
{
    if (!pl_module_is_program(PL_CALLER))
        return PL_REAL(__vasprintf_chk)(out, flag, format, args);
    return print(out, format, args, PL_CALLER_CHAIN);
}

int __asprintf_chk(char **out, int flag, const char *format, ...);
PL_HOOK int __asprintf_chk(char **out, int flag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = pl_module_is_program(PL_CALLER)
                     ? print(out, format, args, PL_CALLER_CHAIN)
                     : PL_REAL(__vasprintf_chk)(out, flag, format, args);
    va_end(args);
    return length;
}

/* The C library only grows what it is given. */
static void first_line(char **line, size_t *room, uint64_t chain)
{
    if (!line || !room || *line)
        return;
    *line = pl_heap_allocate(FIRST_LINE, 16, chain);
    *room = *line ? FIRST_LINE : 0;
}

PL_HOOK ssize_t getdelim(char **line, size_t *room, int delimiter, FILE *stream)
{
    if (pl_module_is_program(PL_CALLER))
        first_line(line, room, PL_CALLER_CHAIN);
    return PL_REAL(getdelim)(line, room, delimiter, stream);
}

PL_HOOK ssize_t getline(char **line, size_t *room, FILE *stream)
{
    if (pl_module_is_program(PL_CALLER))
        first_line(line, room, PL_CALLER_CHAIN);
    return PL_REAL(getdelim)(line, room, '\n', stream);
}

PL_HOOK ssize_t __getdelim(char **line, size_t *room, int delimiter, FILE *stream)
    __attribute__((alias("getdelim")));
