/* SPDX-License-Identifier: MIT
 * malloc and its kind. The caller decides where a new block comes from, the address where an old
 * one goes: libc may grow or free a block of the program and the other way round. These run before
 * any constructor and inside signal handlers' victims: no stdio, no dlsym on the way to memory. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "interpose/chain.h"
#include "interpose/heap.h"
#include "interpose/hook.h"
#include "interpose/modules.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

#define PAGE ((size_t)4096)

/* A size no allocator grants: pl_heap_is_hooked() asks for it to see who answers. */
#define PROBE_SIZE (SIZE_MAX - 4095)
static bool probed;

static __attribute__((cold)) void *no_memory(size_t size)
{
    if (size == PROBE_SIZE)
        probed = true;
    errno = ENOMEM;
    return NULL;
}

bool pl_heap_is_hooked(void)
{
    int saved_errno = errno;
    void *(*allocate)(size_t);

    *(void **)&allocate = dlsym(RTLD_DEFAULT, "malloc");
    probed = false;
    if (allocate)
        __libc_free(allocate(PROBE_SIZE));
    errno = saved_errno;
    return probed;
}

static size_t libc_size(void *p)
{
    return PL_REAL(malloc_usable_size)(p);
}

static inline void *allocate(size_t size, size_t align, uint64_t chain)
{
    void *p = pl_heap_allocate(size, align, chain);
    return p ? p : no_memory(size);
}

PL_HOOK void *malloc(size_t size)
{
    if (size > PTRDIFF_MAX)
        return no_memory(size);
    if (!pl_module_is_program(PL_CALLER))
        return __libc_malloc(size);
    return allocate(size, 16, PL_CALLER_CHAIN);
}

PL_HOOK void free(void *p)
{
    if (pl_heap_owns(p))
        pl_heap_free(p);
    else
        __libc_free(p);
}

PL_HOOK void *calloc(size_t count, size_t size)
{
    size_t total;
    if (!pl_module_is_program(PL_CALLER))
        return __libc_calloc(count, size);
    if (__builtin_mul_overflow(count, size, &total) || total > PTRDIFF_MAX)
        return no_memory(0);
    return allocate(total, 16, PL_CALLER_CHAIN);
}

/* A block that libc made (getline, realpath ...) and the program now grows becomes the program's.
 */
static void *adopt(void *p, size_t size, uint64_t chain)
{
    size_t old = libc_size(p);
    void *to = allocate(size, 16, chain);
    if (to) {
        memcpy(to, p, old < size ? old : size);
        __libc_free(p);
    }
    return to;
}

static void *resize(void *p, size_t size, bool program, uint64_t chain)
{
    if (size > PTRDIFF_MAX)
        return no_memory(0);
    if (p && pl_heap_owns(p)) {
        if (size == 0) {
            pl_heap_free(p);
            return NULL;
        }
        void *to = pl_heap_resize(p, size, chain);
        return to ? to : no_memory(0);
    }
    if (!program || (p && size == 0))
        return __libc_realloc(p, size);
    return p ? adopt(p, size, chain) : allocate(size, 16, chain);
}

PL_HOOK void *realloc(void *p, size_t size)
{
    bool program = pl_module_is_program(PL_CALLER);
    return resize(p, size, program, program ? PL_CALLER_CHAIN : 0);
}

PL_HOOK void *reallocarray(void *p, size_t count, size_t size)
{
    bool program = pl_module_is_program(PL_CALLER);
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return no_memory(0);
    return resize(p, total, program, program ? PL_CALLER_CHAIN : 0);
}

static void *aligned(size_t align, size_t size, bool program, uint64_t chain)
{
    if (align > PTRDIFF_MAX || size > PTRDIFF_MAX)
        return no_memory(0);
    if (!program)
        return __libc_memalign(align, size);
    size_t power = 16;
    while (power < align)
        power *= 2;
    return allocate(size, power, chain);
}

PL_HOOK void *memalign(size_t align, size_t size)
{
    bool program = pl_module_is_program(PL_CALLER);
    return aligned(align, size, program, program ? PL_CALLER_CHAIN : 0);
}

PL_HOOK void *aligned_alloc(size_t align, size_t size)
{
    bool program = pl_module_is_program(PL_CALLER);
    return aligned(align, size, program, program ? PL_CALLER_CHAIN : 0);
}

PL_HOOK int posix_memalign(void **out, size_t align, size_t size)
{
    bool program = pl_module_is_program(PL_CALLER);
    int saved_errno = errno;

    if (align % sizeof(void *) || align == 0 || (align & (align - 1)))
        return EINVAL;
    void *p = aligned(align, size, program, program ? PL_CALLER_CHAIN : 0);
    errno = saved_errno;
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

PL_HOOK void *valloc(size_t size)
{
    bool program = pl_module_is_program(PL_CALLER);
    return aligned(PAGE, size, program, program ? PL_CALLER_CHAIN : 0);
}

PL_HOOK void *pvalloc(size_t size)
{
    bool program = pl_module_is_program(PL_CALLER);
    size_t pages = size > PTRDIFF_MAX ? size : (size + PAGE - 1) & ~(PAGE - 1);
    return aligned(PAGE, pages, program, program ? PL_CALLER_CHAIN : 0);
}

PL_HOOK size_t malloc_usable_size(void *p)
{
    if (!p)
        return 0;
    return pl_heap_owns(p) ? pl_heap_size(p) : libc_size(p);
}
