/* SPDX-License-Identifier: MIT
 * One address space at one moment, for turning pointers into something that means the same in
 * another process, and back. */
#ifndef PLIANT_INTERPOSE_SPACE_H
#define PLIANT_INTERPOSE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"

typedef enum pl_word_kind {
    PL_WORD_VALUE,    /* no pointer: the bits */
    PL_WORD_OBJECT,   /* into a matched heap object: object << 40 | offset */
    PL_WORD_END,      /* to the end of one: object << 40 */
    PL_WORD_STACK,    /* into main's stack: distance from its top */
    PL_WORD_MODULE,   /* into code or data of a module: module id << 32 | offset */
    PL_WORD_FOREIGN,  /* into memory that is not the program's: means nothing elsewhere */
    PL_WORD_DANGLING, /* looks like an address of freed memory: the bits, as for a value */
} pl_word_kind_t;

typedef struct pl_word {
    uint64_t value;
    uint8_t kind; /* pl_word_kind_t */
} pl_word_t;

/* Where an object lies in this space. */
typedef struct pl_place {
    uintptr_t address;
    int64_t bytes;
    int object; /* index, the same on all ranks; -1: not matched */
} pl_place_t;

typedef struct pl_space {
    pl_place_t *by_address; /* owned */
    int count;
    int *index_of_object; /* into by_address, -1: not here; owned */
    int objects;
    uintptr_t stack; /* lowest address of main's live stack */
    uintptr_t (*foreign)[2];
    int foreigns;
} pl_space_t;

/* places are copied. stack: the stack pointer at the call. */
pl_status_t pl_space_make(const pl_place_t *places, int count, int objects, uintptr_t stack,
                          pl_space_t *out);
void pl_space_free(pl_space_t *space);

pl_word_t pl_space_word(const pl_space_t *space, uint64_t bits);

/* The bits of a word in this space; false if what it points to is not here. */
bool pl_space_bits(const pl_space_t *space, pl_word_t word, uint64_t *bits);

/* Object and offset of a word of kind OBJECT or END (whose offset is not kept). */
static inline int pl_word_object(pl_word_t word)
{
    return (int)(word.value >> 40);
}

static inline int64_t pl_word_offset(pl_word_t word)
{
    return (int64_t)(word.value & (((uint64_t)1 << 40) - 1));
}

static inline bool pl_word_is_pointer(uint8_t kind)
{
    return kind != PL_WORD_VALUE && kind != PL_WORD_DANGLING;
}

#endif
