/* SPDX-License-Identifier: MIT
 * What heap.c (blocks) and heap_arena.c (generations, walks) share; nobody else includes it. */
#ifndef PLIANT_INTERPOSE_HEAP_ARENA_H
#define PLIANT_INTERPOSE_HEAP_ARENA_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/single_threaded.h>

#include "interpose/heap.h"

/* Size classes: steps of 16 bytes up to 1 KiB, then four per doubling. */
#define PL_FINE_LIMIT   1024
#define PL_FINE_CLASSES 64
#define PL_CLASSES      216
#define PL_LARGEST      ((size_t)1 << 46)

/* Blocks of 128 KiB and more are "large": zero beyond `size`, and their pages go back when free. */
#define PL_LARGE_CLASS   92
#define PL_KEEP_DIRTY    ((uint64_t)16 << 20) /* bytes of free large blocks not yet given back */
#define PL_LARGEST_ALIGN ((size_t)128 << 20)

#define PL_INDEX_PAGE   4096
#define PL_COMMIT_UNIT  (64u << 10)
#define PL_COMMIT_LEAST ((size_t)1 << 20)
#define PL_COMMIT_MOST  ((size_t)64 << 20)

#define PL_ARENAS (PL_HEAP_OPEN_MAX + 1)

enum {
    PL_BLOCK_LIVE = 1,
    PL_BLOCK_DIRTY = 2,   /* free, with old bytes within `size` */
    PL_BLOCK_STUB = 4,    /* the header is further on, see PL_BLOCK_SHIFT */
    PL_BLOCK_ALIGNED = 8, /* the block begins further back */
    PL_BLOCK_GONE = 16,   /* << arena index: freed by the generation in that arena */
    PL_BLOCK_SHIFT = 8,   /* of the distance between stub and header, in 16 bytes */
};
_Static_assert(PL_BLOCK_GONE << (PL_ARENAS - 1) < 1 << PL_BLOCK_SHIFT, "flags overlap");

typedef struct pl_header {
    uint64_t size;
    union {
        uint64_t chain;
        struct pl_header *next; /* of a free block */
    };
    uint64_t id;
    uint32_t class_;
    uint32_t flags;
} pl_header_t;
_Static_assert(sizeof(pl_header_t) == 32, "payloads are 16-aligned");

typedef struct pl_arena {
    int generation; /* -1: not in use */
    bool read_only;
    uint8_t *base, *top, *committed, *limit;
    /* First block that begins in each page in which one does, by address. */
    pl_header_t **index;
    size_t entries;
    uint8_t *index_committed, *index_limit;
    uint64_t kept; /* dirty bytes of free large blocks */
    pl_header_t *free[PL_CLASSES];
} pl_arena_t;

typedef struct pl_heap {
    pl_arena_t *current;
    bool started;
    int last_generation;
    uint64_t last_id;
    int arena_shift; /* log2 of the address range of one arena */
    atomic_int lock; /* 0 free, 1 held, 2 held and waited for */
    pl_arena_t arena[PL_ARENAS];
} pl_heap_t;

extern pl_heap_t pl_heap;
extern _Thread_local bool pl_heap_holding __attribute__((tls_model("initial-exec")));

int pl_heap_class(size_t size);
size_t pl_heap_class_bytes(int class_);

/* Reserves the address range and opens generation 0. With the lock held. */
pl_status_t pl_heap_reserve(void);
pl_arena_t *pl_heap_arena_by_number(int generation);

static inline pl_arena_t *pl_heap_arena_of(const void *p)
{
    return &pl_heap.arena[((uintptr_t)p - pl_heap_base) >> pl_heap.arena_shift];
}

void pl_heap_lock_slowly(void);
void pl_heap_wake(void);

static inline void pl_heap_lock(void)
{
    int expected = 0;
    if (__libc_single_threaded)
        atomic_store_explicit(&pl_heap.lock, 1, memory_order_relaxed);
    else if (!atomic_compare_exchange_strong_explicit(&pl_heap.lock, &expected, 1,
                                                      memory_order_acquire, memory_order_relaxed))
        pl_heap_lock_slowly();
    pl_heap_holding = true;
}

static inline void pl_heap_unlock(void)
{
    pl_heap_holding = false;
    if (__libc_single_threaded)
        atomic_store_explicit(&pl_heap.lock, 0, memory_order_relaxed);
    else if (atomic_exchange_explicit(&pl_heap.lock, 0, memory_order_release) == 2)
        pl_heap_wake();
}

#endif
