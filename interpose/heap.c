/* SPDX-License-Identifier: MIT
 * Blocks are carved one after the other from the arena of a generation and never split or joined,
 * so the arena can be walked and an address found by bisection. A free block waits in the list of
 * its size class. */
#include "interpose/heap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>

#include "common/log.h"
#include "interpose/controls.h"
#include "interpose/heap_arena.h"

enum { COMPLAINTS_MAX = 10 };

uintptr_t pl_heap_base;
uintptr_t pl_heap_span;
pl_heap_t pl_heap;

int pl_heap_class(size_t size)
{
    if (size <= PL_FINE_LIMIT)
        return size <= 16 ? 1 : (int)((size + 15) / 16);
    size_t last = size - 1;
    int top = 63 - __builtin_clzll(last);
    int quarter = (int)(last >> (top - 2)) & 3;
    return PL_FINE_CLASSES + (top - 10) * 4 + quarter + 1;
}

size_t pl_heap_class_bytes(int class_)
{
    if (class_ <= PL_FINE_CLASSES)
        return (size_t)class_ * 16;
    int step = class_ - PL_FINE_CLASSES - 1;
    int top = 10 + step / 4;
    return ((size_t)1 << top) + ((size_t)(step % 4 + 1) << (top - 2));
}

static bool commit(uint8_t **committed, const uint8_t *need, const uint8_t *limit, size_t step)
{
    size_t missing = (size_t)(need - *committed);
    size_t bytes = missing > step ? missing : step;

    bytes = (bytes + PL_COMMIT_UNIT - 1) & ~(size_t)(PL_COMMIT_UNIT - 1);
    if (bytes > (size_t)(limit - *committed))
        bytes = (size_t)(limit - *committed);
    if (bytes < missing || mprotect(*committed, bytes, PROT_READ | PROT_WRITE) != 0)
        return false;
    *committed += bytes;
    return true;
}

static bool index_block(pl_arena_t *arena, pl_header_t *block)
{
    uintptr_t page = (uintptr_t)block / PL_INDEX_PAGE;
    if (arena->entries > 0 && (uintptr_t)arena->index[arena->entries - 1] / PL_INDEX_PAGE == page)
        return true;
    uint8_t *end = (uint8_t *)(arena->index + arena->entries + 1);
    if (end > arena->index_committed &&
        !commit(&arena->index_committed, end, arena->index_limit, PL_COMMIT_UNIT))
        return false;
    arena->index[arena->entries++] = block;
    return true;
}

/* A block at the end of what is in use: its memory is zero. */
static pl_header_t *carve(pl_arena_t *arena, int class_)
{
    size_t bytes = sizeof(pl_header_t) + pl_heap_class_bytes(class_);
    if (bytes > (size_t)(arena->limit - arena->top))
        return NULL;
    if (bytes > (size_t)(arena->committed - arena->top)) {
        size_t step = (size_t)(arena->top - arena->base) / 8;
        step = step < PL_COMMIT_LEAST  ? PL_COMMIT_LEAST
               : step > PL_COMMIT_MOST ? PL_COMMIT_MOST
                                       : step;
        if (!commit(&arena->committed, arena->top + bytes, arena->limit, step))
            return NULL;
    }
    pl_header_t *block = (pl_header_t *)arena->top;
    if (!index_block(arena, block))
        return NULL;
    arena->top += bytes;
    block->class_ = (uint32_t)class_;
    return block;
}

/* A block taken from the free list still holds old bytes: those of a small one up to anywhere,
 * those of a large one within `size`, unless its pages went back to the system. */
static pl_header_t *reuse(pl_arena_t *arena, int class_)
{
    pl_header_t *block = arena->free[class_];
    if (!block)
        return NULL;
    arena->free[class_] = block->next;
    if (class_ >= PL_LARGE_CLASS && (block->flags & PL_BLOCK_DIRTY)) {
        arena->kept -= block->size;
        if (!PL_OFF(zerofill))
            memset(block + 1, 0, block->size);
    }
    return block;
}

/* The common case: a small block that was in use before. */
static inline pl_header_t *take_small(pl_arena_t *arena, size_t size)
{
    size_t class_ = size ? (size + 15) / 16 : 1;
    pl_header_t *block = arena->free[class_];
    if (!block)
        return NULL;
    arena->free[class_] = block->next;
    block->size = size;
    block->id = ++pl_heap.last_id;
    block->flags = PL_BLOCK_LIVE;
    if (!PL_OFF(zerofill))
        memset(block + 1, 0, class_ * 16);
    return block;
}

/* The header that describes a payload aligned more strictly than its block: it stands right in
 * front of the payload, and a stub at the block's start leads to it. */
static pl_header_t *align_block(pl_header_t *block, size_t align)
{
    uintptr_t payload = (uintptr_t)(block + 1);
    if (payload % align == 0)
        return block;
    payload = (payload + sizeof *block + align - 1) & ~(uintptr_t)(align - 1);
    pl_header_t *header = (pl_header_t *)payload - 1;
    uint32_t offset = (uint32_t)(((uintptr_t)header - (uintptr_t)block) / 16);

    *header = (pl_header_t){.class_ = block->class_, .flags = offset << PL_BLOCK_SHIFT};
    header->flags |= PL_BLOCK_ALIGNED;
    block->flags = offset << PL_BLOCK_SHIFT | PL_BLOCK_STUB;
    return header;
}

/* Called with the lock held. */
static pl_header_t *take(pl_arena_t *arena, size_t size, size_t align)
{
    size_t room = align <= 16 ? size : size + align + sizeof(pl_header_t);
    if (room > PL_LARGEST || align > PL_LARGEST_ALIGN)
        return NULL;
    int class_ = pl_heap_class(room);
    pl_header_t *block = reuse(arena, class_);
    bool clear = block && class_ < PL_LARGE_CLASS && !PL_OFF(zerofill);
    if (!block)
        block = carve(arena, class_);
    if (!block)
        return NULL;
    block->flags = 0;
    if (align > 16)
        block = align_block(block, align);
    block->size = size;
    block->id = ++pl_heap.last_id;
    block->flags |= PL_BLOCK_LIVE;
    if (clear)
        memset(block + 1, 0, (size + 15) & ~(size_t)15);
    return block;
}

static inline void *allocate_in(pl_arena_t *arena, size_t size, size_t align, uint64_t chain)
{
    pl_header_t *block = NULL;
    if (size <= PL_FINE_LIMIT && align <= 16)
        block = take_small(arena, size);
    if (!block)
        block = take(arena, size, align);
    if (!block)
        return NULL;
    block->chain = chain;
    return block + 1;
}

void *pl_heap_allocate(size_t size, size_t align, uint64_t chain)
{
    pl_heap_lock();
    void *p = NULL;
    if (pl_heap.current || pl_heap_reserve() == PL_OK)
        p = allocate_in(pl_heap.current, size, align, chain);
    pl_heap_unlock();
    return p;
}

static __attribute__((cold, noinline)) pl_header_t *complain(const void *p, const char *call)
{
    static int complaints;
    if (complaints++ < COMPLAINTS_MAX)
        PL_WARN("%s of %p ignored, which is no live block of the program", call, p);
    return NULL;
}

/* The header of a live payload, or NULL with a warning: never touch what is not ours. */
static inline pl_header_t *header_of(const pl_arena_t *arena, const void *p, const char *call)
{
    pl_header_t *header = (pl_header_t *)p - 1;
    if ((uintptr_t)p % 16 == 0 && (uint8_t *)header >= arena->base && (uint8_t *)p < arena->top &&
        (header->flags & PL_BLOCK_LIVE) && header->class_ > 0 && header->class_ < PL_CLASSES)
        return header;
    return complain(p, call);
}

static size_t offset_of(const pl_header_t *header)
{
    return header->flags & PL_BLOCK_ALIGNED ? (size_t)(header->flags >> PL_BLOCK_SHIFT) * 16 : 0;
}

static size_t capacity_of(const pl_header_t *header)
{
    return pl_heap_class_bytes((int)header->class_) - offset_of(header);
}

/* Gives whole pages of zeroed-on-demand memory back and clears the ragged ends. */
static void wipe(void *from, void *to)
{
    uintptr_t low = ((uintptr_t)from + PL_INDEX_PAGE - 1) & ~(uintptr_t)(PL_INDEX_PAGE - 1);
    uintptr_t high = (uintptr_t)to & ~(uintptr_t)(PL_INDEX_PAGE - 1);
    int saved_errno = errno;

    if (low >= high || madvise((void *)low, high - low, MADV_DONTNEED) != 0) {
        memset(from, 0, (size_t)((uint8_t *)to - (uint8_t *)from));
    } else {
        memset(from, 0, low - (uintptr_t)from);
        memset((void *)high, 0, (uintptr_t)to - high);
    }
    errno = saved_errno;
}

static void release_any(pl_arena_t *arena, pl_header_t *header)
{
    size_t offset = offset_of(header);
    uint32_t class_ = header->class_;
    size_t used = offset + header->size;
    pl_header_t *block = (pl_header_t *)((uint8_t *)header - offset);

    header->flags = 0;
    block->flags = PL_BLOCK_DIRTY;
    block->size = used;
    if (class_ >= PL_LARGE_CLASS) {
        if (arena->kept + used <= PL_KEEP_DIRTY) {
            arena->kept += used;
        } else {
            wipe(block + 1, (uint8_t *)(block + 1) + used);
            block->flags = 0;
        }
    }
    block->next = arena->free[class_];
    arena->free[class_] = block;
}

static inline void release(pl_arena_t *arena, pl_header_t *header)
{
    uint32_t class_ = header->class_;
    if (class_ >= PL_LARGE_CLASS || header->flags != PL_BLOCK_LIVE) {
        release_any(arena, header);
        return;
    }
    header->flags = 0;
    header->next = arena->free[class_];
    arena->free[class_] = header;
}

/* A block of generation 0 comes back with the next run of main: it is only hidden from this one. */
static void hide(pl_header_t *header)
{
    header->flags |= PL_BLOCK_GONE << (pl_heap.current - pl_heap.arena);
}

static bool is_permanent(const pl_arena_t *arena)
{
    return pl_heap.started && arena == pl_heap.arena;
}

void pl_heap_free(void *p)
{
    pl_heap_lock();
    pl_arena_t *arena = pl_heap_arena_of(p);
    pl_header_t *header = arena->read_only ? NULL : header_of(arena, p, "free");
    if (header && is_permanent(arena))
        hide(header);
    else if (header)
        release(arena, header);
    pl_heap_unlock();
}

static bool resize_in_place(const pl_arena_t *arena, pl_header_t *header, size_t size)
{
    size_t capacity = capacity_of(header);
    uint8_t *payload = (uint8_t *)(header + 1);

    if (is_permanent(arena) || arena->read_only || size > capacity)
        return false;
    if (capacity > PL_FINE_LIMIT && size < capacity / 4)
        return false;
    if (size > header->size && header->class_ < PL_LARGE_CLASS)
        memset(payload + header->size, 0, size - header->size);
    if (size < header->size && header->class_ >= PL_LARGE_CLASS)
        wipe(payload + size, payload + header->size);
    header->size = size;
    header->id = ++pl_heap.last_id;
    return true;
}

/* The copy is made without the lock: it may be large, and the old block is the caller's. */
static void *move(pl_arena_t *arena, pl_header_t *header, size_t size, uint64_t chain)
{
    size_t kept = header->size < size ? header->size : size;
    void *to = allocate_in(pl_heap.current, size, 16, chain);
    bool may_free = !arena->read_only;
    pl_heap_unlock();
    if (to) {
        memcpy(to, header + 1, kept);
        if (may_free)
            pl_heap_free(header + 1);
    }
    return to;
}

void *pl_heap_resize(void *p, size_t size, uint64_t chain)
{
    pl_heap_lock();
    pl_arena_t *arena = pl_heap_arena_of(p);
    pl_header_t *header = header_of(arena, p, "realloc");
    if (!header) {
        pl_heap_unlock();
        return NULL;
    }
    if (chain == 0)
        chain = header->chain;
    if (!resize_in_place(arena, header, size))
        return move(arena, header, size, chain);
    header->chain = chain;
    pl_heap_unlock();
    return p;
}

size_t pl_heap_size(const void *p)
{
    pl_heap_lock();
    pl_header_t *header = header_of(pl_heap_arena_of(p), p, "malloc_usable_size");
    size_t size = header ? header->size : 0;
    pl_heap_unlock();
    return size;
}

void *pl_heap_make(int generation, int64_t size, uint64_t chain)
{
    void *p = NULL;
    pl_heap_lock();
    pl_arena_t *arena = pl_heap_arena_by_number(generation);
    if (arena && !arena->read_only && size >= 0)
        p = allocate_in(arena, (size_t)size, 16, chain);
    pl_heap_unlock();
    return p;
}

void pl_heap_unmake(void *p)
{
    if (!p || !pl_heap_owns(p))
        return;
    pl_heap_lock();
    pl_arena_t *arena = pl_heap_arena_of(p);
    pl_header_t *header = arena->read_only ? NULL : header_of(arena, p, "release");
    if (header)
        release(arena, header);
    pl_heap_unlock();
}
