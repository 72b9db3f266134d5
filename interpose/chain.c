/* SPDX-License-Identifier: MIT */
#include "interpose/chain.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "interpose/modules.h"
#include "interpose/unwind.h"

enum { BUCKETS = 4096, CHUNK = 1 << 20, MAX_CHAINS = 1 << 17 };

uintptr_t pl_chain_top, pl_chain_floor;

static _Atomic(pl_chain_t *) buckets[BUCKETS];
static pl_chain_t nowhere = {.follower = &nowhere}; /* no call returns to address 0 */
__thread pl_chain_t *pl_chain_last = &nowhere;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static char *chunk, *chunk_end;
static int chain_count;

static inline size_t bucket_of(uintptr_t address, uintptr_t stack)
{
    return ((address * 0x9e3779b97f4a7c15u) ^ (stack >> 4)) % BUCKETS;
}

/* Fills a chain by walking the stack from here outwards; frames of libpliant are skipped. */
static void walk(pl_chain_t *c, uintptr_t address, uintptr_t stack)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t ip, sp;
    bool inside = false;

    c->depth = 0;
    c->complete = false;
    c->stack = stack;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    do {
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        unw_get_reg(&cursor, UNW_REG_SP, &sp);
        if (!inside && ip == address && sp == stack)
            inside = true;
        if (!inside)
            continue;
        if (pl_module_is_self(ip)) {
            c->complete = true;
            break;
        }
        if (c->depth == PL_CHAIN_DEPTH)
            break;
        c->address[c->depth] = ip;
        c->slot[c->depth++] = sp - 8;
    } while (unw_step(&cursor) > 0);
    if (c->depth == 0) { /* no unwind information: the call's own return address must do */
        c->address[0] = address;
        c->slot[0] = stack - 8;
        c->depth = 1;
    }
    uint64_t hash = 5381;
    for (int i = 0; i < c->depth; i++) {
        const pl_module_t *m = pl_module_of(c->address[i]);
        uint64_t place = m ? ((uint64_t)m->id << 32) ^ (c->address[i] - m->base) : c->address[i];
        hash = (hash ^ place) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    c->hash = hash ? hash : 1;
}

/* Records live for ever and come from our own pages: this runs inside malloc. */
static pl_chain_t *new_record(void)
{
    if (chain_count == MAX_CHAINS)
        return NULL;
    if ((size_t)(chunk_end - chunk) < sizeof(pl_chain_t)) {
        chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED) {
            chunk = chunk_end = NULL;
            return NULL;
        }
        chunk_end = chunk + CHUNK;
    }
    pl_chain_t *record = (pl_chain_t *)chunk;
    chunk += sizeof *record;
    chain_count++;
    return record;
}

static pl_chain_t *learn(uintptr_t address, uintptr_t stack)
{
    static __thread pl_chain_t overflow; /* when the table is full: slow, still right */
    pl_chain_t found;

    memset(&found, 0, sizeof found);
    found.follower = &nowhere;
    walk(&found, address, stack);
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
    }
    pl_chain_t *record = new_record();
    if (record) {
        _Atomic(pl_chain_t *) *bucket = &buckets[bucket_of(address, stack)];
        *record = found;
        record->next = atomic_load_explicit(bucket, memory_order_relaxed);
        atomic_store_explicit(bucket, record, memory_order_release);
    }
    atomic_flag_clear_explicit(&lock, memory_order_release);
    if (!record) {
        overflow = found;
        return &overflow;
    }
    return record;
}

static pl_chain_t *look_up(uintptr_t address, uintptr_t stack)
{
    pl_chain_t *c = atomic_load_explicit(&buckets[bucket_of(address, stack)], memory_order_acquire);
    for (; c; c = c->next)
        if (pl_chain_matches(c, address, stack))
            return c;
    return learn(address, stack);
}

/* The guess was wrong. */
static __attribute__((noinline)) pl_chain_t *find_slowly(const void *return_address,
                                                         const void *stack)
{
    pl_chain_t *c = look_up((uintptr_t)return_address, (uintptr_t)stack);
    pl_chain_last->follower = c;
    pl_chain_last = c;
    return c;
}

pl_chain_t *pl_chain_find(const void *return_address, const void *stack)
{
    pl_chain_t *c = pl_chain_guess(return_address, stack);

    if (!c)
        return find_slowly(return_address, stack);
    pl_chain_last = c;
    return c;
}

uint64_t pl_chain_here(const void *return_address, const void *stack)
{
    pl_chain_t *c = pl_chain_guess(return_address, stack);

    if (!c)
        return find_slowly(return_address, stack)->hash;
    pl_chain_last = c;
    return c->hash;
}

bool pl_chain_verify(const pl_chain_t *chain)
{
    pl_chain_t fresh;
    memset(&fresh, 0, sizeof fresh);
    walk(&fresh, chain->address[0], chain->stack);
    return fresh.hash == chain->hash && fresh.depth == chain->depth &&
           fresh.complete == chain->complete;
}

void pl_chain_describe(const pl_chain_t *chain, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < chain->depth && i < 4 && used + 1 < size; i++) {
        Dl_info info;
        uintptr_t at = chain->address[i] - 1; /* inside the call instruction */
        const pl_module_t *m = pl_module_of(at);
        int n;
        if (dladdr((void *)at, &info) && info.dli_sname)
            n = snprintf(text + used, size - used, "%s%s+0x%lx", i ? " < " : "", info.dli_sname,
                         (unsigned long)(at + 1 - (uintptr_t)info.dli_saddr));
        else
            n = snprintf(text + used, size - used, "%s0x%lx", i ? " < " : "",
                         (unsigned long)(m ? at + 1 - m->base : at + 1));
        used += n > 0 ? (size_t)n : 0;
    }
}
