/* SPDX-License-Identifier: MIT
 * Generations and walks of the program's heap. */
#include "interpose/heap_arena.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/log.h"

#define LARGEST_SHIFT  38 /* 256 GiB for one arena */
#define SMALLEST_SHIFT 28

_Thread_local bool pl_heap_holding;

void pl_heap_lock_slowly(void)
{
    while (atomic_exchange_explicit(&pl_heap.lock, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &pl_heap.lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void pl_heap_wake(void)
{
    syscall(SYS_futex, &pl_heap.lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void pl_heap_recover(void)
{
    if (pl_heap_holding)
        pl_heap_unlock();
}

/* Compilers store a 4-byte counter over the lower half of an old pointer. Blocks begin where the
 * lower half of an address is no small number, so that such a word does not look like a pointer to
 * one. */
#define FOUR_GIB   ((uintptr_t)1 << 32)
#define NO_COUNTER ((uintptr_t)16 << 20)

static void arena_init(pl_arena_t *arena, int generation)
{
    size_t bytes = (size_t)1 << pl_heap.arena_shift;
    size_t index_bytes = bytes / PL_INDEX_PAGE * sizeof(pl_header_t *);

    memset(arena, 0, sizeof *arena);
    uint8_t *range = (uint8_t *)pl_heap_base + (size_t)(arena - pl_heap.arena) * bytes;
    arena->base = range;
    if (bytes >= 4 * FOUR_GIB)
        arena->base = (uint8_t *)(((uintptr_t)range + FOUR_GIB - 1) & ~(FOUR_GIB - 1)) + NO_COUNTER;
    arena->top = arena->committed = arena->base;
    arena->limit = range + bytes - index_bytes;
    arena->index = (pl_header_t **)arena->limit;
    arena->index_committed = arena->limit;
    arena->index_limit = range + bytes;
    arena->generation = generation;
}

pl_status_t pl_heap_reserve(void)
{
    void *range = MAP_FAILED;
    int shift = LARGEST_SHIFT;

    for (; shift >= SMALLEST_SHIFT; shift--) {
        range = mmap(NULL, (size_t)PL_ARENAS << shift, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range != MAP_FAILED)
            break;
    }
    if (range == MAP_FAILED) {
        PL_ERROR("no address range for the program's heap: %m");
        return PL_ERR_NOMEM;
    }
    pl_heap_base = (uintptr_t)range;
    pl_heap_span = (uintptr_t)PL_ARENAS << shift;
    pl_heap.arena_shift = shift;
    for (int i = 0; i < PL_ARENAS; i++)
        arena_init(&pl_heap.arena[i], i == 0 ? 0 : -1);
    pl_heap.current = pl_heap.arena;
    return PL_OK;
}

pl_arena_t *pl_heap_arena_by_number(int generation)
{
    for (int i = 0; i < PL_ARENAS; i++)
        if (pl_heap_span && generation >= 0 && pl_heap.arena[i].generation == generation)
            return &pl_heap.arena[i];
    return NULL;
}

pl_status_t pl_heap_start(void)
{
    pl_heap_lock();
    pl_status_t status = pl_heap.current ? PL_OK : pl_heap_reserve();
    bool first = !pl_heap.started;
    pl_heap.started = status == PL_OK;
    pl_heap_unlock();
    if (status == PL_OK && first && pthread_atfork(pl_heap_lock, pl_heap_unlock, pl_heap_unlock))
        status = PL_ERR_NOMEM;
    return status;
}

static pl_header_t *next_block(pl_header_t *block)
{
    return (pl_header_t *)((uint8_t *)(block + 1) + pl_heap_class_bytes((int)block->class_));
}

/* The program may have written past the end of a block: a walk then ends early. */
static bool is_sound(const pl_arena_t *arena, const pl_header_t *block)
{
    return (uint8_t *)block < arena->top && block->class_ > 0 && block->class_ < PL_CLASSES;
}

/* The header of what lives in a block that begins here, or NULL. */
static pl_header_t *resident(pl_header_t *block)
{
    if (block->flags & PL_BLOCK_STUB)
        block = (pl_header_t *)((uint8_t *)block + (size_t)(block->flags >> PL_BLOCK_SHIFT) * 16);
    return block->flags & PL_BLOCK_LIVE ? block : NULL;
}

static bool is_visible(const pl_header_t *header)
{
    return !(header->flags & (uint32_t)PL_BLOCK_GONE << (pl_heap.current - pl_heap.arena));
}

int pl_heap_open(void)
{
    int generation = PL_ERR_LIMIT;

    pl_heap_lock();
    for (int i = 1; i < PL_ARENAS && pl_heap.started; i++) {
        pl_arena_t *zero = pl_heap.arena, *arena = &pl_heap.arena[i];
        if (arena->generation >= 0)
            continue;
        for (pl_header_t *b = (pl_header_t *)zero->base; is_sound(zero, b); b = next_block(b)) {
            pl_header_t *header = resident(b);
            if (header)
                header->flags &= ~((uint32_t)PL_BLOCK_GONE << i);
        }
        generation = ++pl_heap.last_generation;
        arena_init(arena, generation);
        pl_heap.current = arena;
        break;
    }
    pl_heap_unlock();
    return generation;
}

int pl_heap_current(void)
{
    return pl_heap.current ? pl_heap.current->generation : 0;
}

pl_status_t pl_heap_select(int generation)
{
    pl_heap_lock();
    pl_arena_t *arena = pl_heap_arena_by_number(generation);
    if (arena)
        pl_heap.current = arena;
    pl_heap_unlock();
    return arena ? PL_OK : PL_ERR_INVALID;
}

pl_status_t pl_heap_protect(int generation, bool read_only)
{
    pl_status_t status = PL_ERR_INVALID;

    pl_heap_lock();
    pl_arena_t *arena = pl_heap_arena_by_number(generation);
    if (arena && generation > 0) {
        size_t bytes = (size_t)(arena->committed - arena->base);
        int protection = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
        status = bytes && mprotect(arena->base, bytes, protection) != 0 ? PL_ERR_NOMEM : PL_OK;
        if (status == PL_OK)
            arena->read_only = read_only;
    }
    pl_heap_unlock();
    return status;
}

/* Puts a reserved, empty range in the place of memory in use. */
static bool give_back(uint8_t *from, const uint8_t *to)
{
    if (from == to)
        return true;
    return mmap(from, (size_t)(to - from), PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

pl_status_t pl_heap_drop(int generation)
{
    pl_status_t status = PL_ERR_INVALID;

    pl_heap_lock();
    pl_arena_t *arena = pl_heap_arena_by_number(generation);
    if (arena && generation > 0 && arena != pl_heap.current) {
        bool done = give_back(arena->base, arena->committed);
        done &= give_back((uint8_t *)arena->index, arena->index_committed);
        status = done ? PL_OK : PL_ERR_NOMEM;
        if (done)
            arena_init(arena, -1);
    }
    pl_heap_unlock();
    return status;
}

static pl_block_t describe(pl_header_t *header)
{
    return (pl_block_t){.address = header + 1,
                        .size = (int64_t)header->size,
                        .chain = header->chain,
                        .id = header->id};
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const pl_block_t *)a)->id, y = ((const pl_block_t *)b)->id;
    return (x > y) - (x < y);
}

int64_t pl_heap_list(int generation, pl_block_t *out, int64_t max)
{
    int64_t count = 0;
    bool sorted = true;

    pl_heap_lock();
    pl_arena_t *arena = pl_heap_arena_by_number(generation);
    if (!arena) {
        pl_heap_unlock();
        return PL_ERR_INVALID;
    }
    for (pl_header_t *b = (pl_header_t *)arena->base; is_sound(arena, b); b = next_block(b)) {
        pl_header_t *header = resident(b);
        if (!header || !is_visible(header))
            continue;
        if (count < max) {
            out[count] = describe(header);
            sorted &= count == 0 || out[count - 1].id < out[count].id;
        }
        count++;
    }
    pl_heap_unlock();
    if (count <= max && !sorted)
        qsort(out, (size_t)count, sizeof *out, by_id);
    return count;
}

/* The last block that begins at or before `address` in an arena that has blocks before it. */
static pl_header_t *block_at(const pl_arena_t *arena, const uint8_t *address)
{
    size_t low = 0, high = arena->entries;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((const uint8_t *)arena->index[middle] <= address)
            low = middle;
        else
            high = middle;
    }
    pl_header_t *block = arena->index[low];
    while (is_sound(arena, block) && (const uint8_t *)next_block(block) <= address)
        block = next_block(block);
    return is_sound(arena, block) ? block : NULL;
}

bool pl_heap_find(const void *p, pl_block_t *out)
{
    /* The byte before p: it is in the right block also when p is a block's end. */
    const uint8_t *before = (const uint8_t *)p - 1;
    bool found = false;

    if (!pl_heap_owns(before))
        return false;
    pl_heap_lock();
    const pl_arena_t *arena = pl_heap_arena_of(before);
    if (arena->generation >= 0 && before >= arena->base && before < arena->top) {
        pl_header_t *block = block_at(arena, before);
        pl_header_t *header = block ? resident(block) : NULL;
        if (header && is_visible(header) && before + 1 >= (uint8_t *)(header + 1) &&
            before < (uint8_t *)(header + 1) + header->size) {
            found = true;
            if (out)
                *out = describe(header);
        }
    }
    pl_heap_unlock();
    return found;
}

int pl_heap_generation_of(const void *p)
{
    return pl_heap_owns(p) ? pl_heap_arena_of(p)->generation : -1;
}
