/* SPDX-License-Identifier: MIT
 * How libpliant's replacements of C library functions are written. */
#ifndef PLIANT_INTERPOSE_HOOK_H
#define PLIANT_INTERPOSE_HOOK_H

#include <dlfcn.h>

/* A function the program calls instead of the C library's. */
#define PL_HOOK __attribute__((visibility("default")))

/* Within a hook itself (not in what it calls): where it returns to, the stack pointer then (the two
 * words between are the saved frame pointer and the return address), and the caller's chain. */
#define PL_CALLER       __builtin_return_address(0)
#define PL_CALLER_STACK ((const char *)__builtin_frame_address(0) + 2 * sizeof(void *))
#define PL_CALLER_CHAIN pl_chain_here(PL_CALLER, PL_CALLER_STACK)

static inline void *pl_hook_next(void **slot, const char *name)
{
    if (!*slot)
        *slot = dlsym(RTLD_NEXT, name);
    return *slot;
}

/* The function that a hook stands in front of; looked up once. */
#define PL_REAL(name)                                                                              \
    __extension__({                                                                                \
        static void *slot_;                                                                        \
        (__typeof__(&(name)))pl_hook_next(&slot_, #name);                                          \
    })

#endif
