/* SPDX-License-Identifier: MIT
 * Private words: changed since the baseline, and different on different processes. Harmless if
 * nobody will read them, which the machine code tells for the stack; else a reason to refuse. */
#ifndef PLIANT_INTERPOSE_PRIVATE_H
#define PLIANT_INTERPOSE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/chain.h"
#include "interpose/match.h"
#include "interpose/words.h"

typedef struct pl_private_count {
    int dead;        /* words of stack and registers that are private, but nobody will read them */
    int stack;       /* ... and that somebody may read */
    int data;        /* private words of static data and heap objects, not excused */
    int data_places; /* static words and heap objects those are in */
    char stack_example[240]; /* where the first of stack is, and who reads it */
    char example[200];       /* where the first of data is */
    bool example_object;     /* ... is it in a heap object? */
} pl_private_count_t;

/* Is this word private? */
bool pl_words_private(const pl_words_t *words, const pl_segment_t *segment, int64_t word);

/* Counts them. chain: of this process, for what the machine code tells. Excused in data: foreign
 * and dangling pointers, and what changed on rank 0 alone, which survives every resize. */
void pl_words_count(const pl_words_t *words, const pl_match_t *match, const pl_chain_t *chain,
                    pl_private_count_t *out);

/* Text of a word's place, e.g. "stack of frame 1 at -0x28" or "data of the executable +0x4010". */
void pl_words_describe(const pl_segment_t *segment, const pl_match_t *match, int64_t word,
                       char *text, size_t size);

#endif
