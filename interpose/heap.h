/* SPDX-License-Identifier: MIT
 * The program's heap. Allocations made by the program's own modules come from an arena of the
 * current *generation* (one run of main); those of all other code stay in the C library's heap.
 * Every block carries its size, the hash of the call chain that made it and an identity, and is
 * filled with zeros, so that two processes can compare their heaps.
 *
 * Generation 0 holds what exists before main. It is permanent: after pl_heap_start() its blocks are
 * never recycled or moved; a free only hides the block from the generation that freed it, since
 * the next run of main starts with it again.
 *
 * Up to PL_HEAP_OPEN_MAX generations besides generation 0 exist at a time. All functions are
 * thread-safe; those below that change generations expect to be called by one thread. */
#ifndef PLIANT_INTERPOSE_HEAP_H
#define PLIANT_INTERPOSE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

#define PL_HEAP_OPEN_MAX 3

typedef struct pl_block {
    void *address;
    int64_t size;   /* bytes asked for */
    uint64_t chain; /* hash of the call chain, pl_chain_here() */
    uint64_t id;    /* grows with every allocation, also when realloc keeps the place */
} pl_block_t;

/* Ends generation 0. Call once, before the first pl_heap_open(). */
pl_status_t pl_heap_start(void);

/* True when the program's calls of malloc end up here (it may bring its own allocator). */
bool pl_heap_is_hooked(void);

/* Opens a new generation and makes it current; its number, or a negative pl_status_t
 * (PL_ERR_LIMIT: too many are open). Blocks of generation 0 are all visible to it. */
int pl_heap_open(void);

/* Number of the current generation. */
int pl_heap_current(void);

/* Makes an existing generation current again (rollback). */
pl_status_t pl_heap_select(int generation);

/* Makes all blocks of a generation read-only, or writable again. While it is read-only the
 * program's frees of its blocks are ignored, and realloc moves them away. Not for generation 0. */
pl_status_t pl_heap_protect(int generation, bool read_only);

/* Gives the whole generation back to the system. Not the current one, not generation 0. */
pl_status_t pl_heap_drop(int generation);

/* Live blocks of a generation in the order of their identities. Returns how many there are;
 * `out` is filled only if they fit into `max` (0: just count). Unknown generation: negative
 * pl_status_t. For generation 0: those the current generation has not freed. */
int64_t pl_heap_list(int generation, pl_block_t *out, int64_t max);

/* The live block of any generation that contains p, or that ends at p (no other block begins
 * there). Cheap for addresses outside of the arenas; otherwise a bisection. `out` may be NULL. */
bool pl_heap_find(const void *p, pl_block_t *out);

/* The generation whose arena p lies in, or -1. */
int pl_heap_generation_of(const void *p);

/* An allocation on the engine's behalf in any generation that is not read-only: zero-filled, with
 * the given chain; NULL if out of memory. pl_heap_unmake() frees one for good, also in
 * generation 0; NULL is allowed. */
void *pl_heap_make(int generation, int64_t size, uint64_t chain);
void pl_heap_unmake(void *p);

/* After leaving a hook by a jump out of a signal handler: sets free what the interrupted call of
 * this thread held. */
void pl_heap_recover(void);

/* --- for heap_hooks.c --- */

/* Bounds of the reserved range: p is in an arena if (uintptr_t)p - pl_heap_base < pl_heap_span. */
extern uintptr_t pl_heap_base;
extern uintptr_t pl_heap_span;

static inline bool pl_heap_owns(const void *p)
{
    return (uintptr_t)p - pl_heap_base < pl_heap_span;
}

/* From the current generation; `align` is a power of two, 16 at least. NULL if out of memory. */
void *pl_heap_allocate(size_t size, size_t align, uint64_t chain);
void pl_heap_free(void *p);
/* chain 0 keeps the block's own. */
void *pl_heap_resize(void *p, size_t size, uint64_t chain);
size_t pl_heap_size(const void *p);

#endif
