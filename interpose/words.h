/* SPDX-License-Identifier: MIT
 * The word difference: every word of stack, registers, data and small heap objects is compared with
 * the baseline on all sources, and the targets take over what changed (design: "Difference").
 *
 *   unchanged                     the target's own value is right
 *   changed, equal on all sources replicated: the target takes it, pointers translated
 *   changed and different         private: survivors keep their own
 */
#ifndef PLIANT_INTERPOSE_WORDS_H
#define PLIANT_INTERPOSE_WORDS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "interpose/match.h"
#include "interpose/snapshot.h"
#include "interpose/space.h"

typedef enum pl_segment_kind {
    PL_SEGMENT_FRAME,
    PL_SEGMENT_REGISTERS,
    PL_SEGMENT_IMAGE,
    PL_SEGMENT_OBJECT,
} pl_segment_kind_t;

/* A stretch of words that means the same on every process; the list is the same on all. */
typedef struct pl_segment {
    pl_segment_kind_t kind;
    int index;     /* of the frame (0 is the innermost), region or object */
    size_t page;   /* image: page of the region */
    int64_t first; /* its first word in the vectors */
    int64_t bytes;
    bool variable; /* a frame whose length is not the same everywhere */
    /* where it is on this process: as a source now and at the baseline, as a target. NULL: not
     * there, or (source, image) all zero. */
    const uint8_t *now, *base;
    uint8_t *here;
} pl_segment_t;

/* What all sources together say about one word. Masks have one bit per byte of the word. */
typedef struct pl_verdict {
    uint8_t changed, changed_beyond_root, differs;
    uint8_t flags;
} pl_verdict_t;

enum {
    PL_FLAG_POINTER = 1,   /* a pointer on some source */
    PL_FLAG_FOREIGN = 2,   /* a pointer into foreign memory on some source */
    PL_FLAG_MOVED = 4,     /* a pointer whose offset changed on some source */
    PL_FLAG_DANGLING = 16, /* looks like a pointer into freed memory on some source */
    PL_FLAG_OFFSETS = 32, /* into one object everywhere, but at different offsets */
    PL_FLAG_NATURE = 8,    /* private by nature: differs among the targets as set-up runs */
};

typedef struct pl_words {
    pl_segment_t *segments;
    int segment_count;
    int64_t count;                  /* words in all */
    pl_word_t *now, *base;          /* this process's, as a source */
    uint64_t *lead_now, *lead_base; /* rank 0's */
    uint8_t *lead_kind;             /* now kind | base kind << 4 */
    pl_verdict_t *verdict;
    int stack_array; /* changed bytes of variable-length arrays on the stack, most on any source */
} pl_words_t;

typedef struct pl_words_input {
    MPI_Comm comm;
    int ns, nt;
    pl_match_t *match;
    const bool *by_words;                   /* per object: compare it word by word */
    const pl_snapshot_t *now, *base, *here; /* NULL where this process has no such role */
    const pl_space_t *now_space, *base_space;
} pl_words_input_t;

/* Collective. PL_ERR_LIMIT: too much data to compare. */
pl_status_t pl_words_compare(const pl_words_input_t *input, pl_words_t *out);
void pl_words_free(pl_words_t *words);

/* Writes what the sources' words make of the targets'. registers: of the target's frame, updated.
 * survivor: this process is a source too. Returns how many pointers could not be translated outside
 * of the stack. */
int pl_words_inject(const pl_words_t *words, const pl_space_t *here_space, bool survivor,
                    uint64_t *registers);

#endif
