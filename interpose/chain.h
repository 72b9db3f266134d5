/* SPDX-License-Identifier: MIT
 * Call chains: the return addresses from a call up to main, relative to their modules, name the
 * place of a call on every rank and in every run of main. libunwind finds a chain once; after that
 * it is recognised by comparing the return addresses on the stack with the remembered ones. */
#ifndef PLIANT_INTERPOSE_CHAIN_H
#define PLIANT_INTERPOSE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_CHAIN_DEPTH = 48 };

typedef struct pl_chain {
    uint64_t hash;             /* of the module-relative return addresses, never 0 */
    uintptr_t stack;           /* the caller's stack pointer after the call returned */
    int depth;                 /* return addresses in `address` */
    bool complete;             /* the chain ends in main's caller, within PL_CHAIN_DEPTH */
    struct pl_chain *next;     /* same bucket */
    struct pl_chain *follower; /* a guess: the one asked for after this one; never NULL */
    struct pl_site *site;      /* what sites.c keeps of it, NULL: none */
    uintptr_t address[PL_CHAIN_DEPTH + 1]; /* return addresses, innermost first, then 0 */
    uintptr_t slot[PL_CHAIN_DEPTH]; /* where on the stack each is; slot[0] is the call's own */
} pl_chain_t;

/* The last chain that was asked for; never NULL. */
extern __thread pl_chain_t *pl_chain_last
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline bool pl_chain_matches(const pl_chain_t *c, uintptr_t address, uintptr_t stack)
{
    if (c->address[0] != address || c->stack != stack)
        return false;
    for (int i = 1; c->address[i]; i++)
        if (*(const uintptr_t *)c->slot[i] != c->address[i])
            return false;
    return true;
}

/* The first half of pl_chain_find, for code that every call goes through: it calls nothing. The
 * chain if it is the one that came after pl_chain_last the last time, else NULL. */
static inline pl_chain_t *pl_chain_guess(const void *return_address, const void *stack)
{
    pl_chain_t *guess = pl_chain_last->follower;
    bool right = pl_chain_matches(guess, (uintptr_t)return_address, (uintptr_t)stack);
    return __builtin_expect(right, 1) ? guess : NULL;
}

/* The chain of a call that will return to return_address with the stack pointer `stack`. Must be
 * called (through any number of frames of libpliant) from within that call. Never NULL. */
pl_chain_t *pl_chain_find(const void *return_address, const void *stack);

/* Its hash. */
uint64_t pl_chain_here(const void *return_address, const void *stack);

/* True if a fresh walk by libunwind gives the same chain. */
bool pl_chain_verify(const pl_chain_t *chain);

/* "solve+0x1f2 < main+0x80" for messages; module-relative where there is no symbol. */
void pl_chain_describe(const pl_chain_t *chain, char *text, size_t size);

/* The end of the stack that belongs to main: main's frame ends below it. Set at the entry. */
extern uintptr_t pl_chain_top;
/* The end of what main's return needs: our own frame that called it lies between the two. */
extern uintptr_t pl_chain_floor;

#endif
