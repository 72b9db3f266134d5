/* SPDX-License-Identifier: MIT
 * What a process looked like at the return of a call: stack, registers, data and heap. Taken at the
 * baseline arrival of a site, and again when a resize is about to happen. */
#ifndef PLIANT_INTERPOSE_SNAPSHOT_H
#define PLIANT_INTERPOSE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "interpose/border.h"
#include "interpose/chain.h"
#include "interpose/heap.h"
#include "interpose/image.h"
#include "redist/sample.h"

enum {
    PL_REGISTERS = 6,
    PL_SMALL_OBJECT = 1 << 20, /* bytes; up to here a heap object is compared word by word */
    PL_COPIED_OBJECT =
        1 << 16, /* up to here the baseline keeps a copy, beyond samples and a hash */
    PL_SAMPLES = 384,
};

/* A live heap object. */
typedef struct pl_record {
    pl_block_t block;
    uint32_t order;       /* among the live ones of its chain, by age */
    bool permanent;       /* made before main: the same memory in every run of main */
    uint64_t hash;        /* of its bytes */
    uint8_t *copy;        /* owned, may be NULL */
    pl_sample_t *samples; /* owned, may be NULL */
    int sample_count;
} pl_record_t;

typedef struct pl_snapshot {
    const pl_chain_t *chain;
    uintptr_t stack;                  /* the caller's stack pointer */
    uint64_t registers[PL_REGISTERS]; /* r15 r14 r13 r12 rbx rbp, as in pl_frame */
    uint8_t *frame_copy;              /* from the stub's frame to pl_chain_floor: owned */
    size_t frame_bytes;
    uint8_t *stack_copy; /* in frame_copy: from `stack` to pl_chain_top */
    size_t stack_bytes;
    pl_image_t image;
    pl_record_t *records; /* by chain, then by order */
    int64_t record_count;
} pl_snapshot_t;

typedef enum pl_snapshot_use {
    PL_SNAPSHOT_BASELINE, /* heap objects as copies, or samples and hashes */
    PL_SNAPSHOT_NOW,      /* heap objects stay where they are; only permanent ones are copied */
} pl_snapshot_use_t;

pl_status_t pl_snapshot_take(const pl_chain_t *chain, const struct pl_frame *frame,
                             pl_snapshot_use_t use, pl_snapshot_t **out);
void pl_snapshot_free(pl_snapshot_t *snapshot);

/* Hash of memory, the same on every rank. */
uint64_t pl_hash_bytes(const void *bytes, size_t count);

#endif
