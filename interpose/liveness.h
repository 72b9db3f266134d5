/* SPDX-License-Identifier: MIT
 * Is a word of the stack, or a callee-saved register, dead when an MPI call returns? Read off the
 * machine code of the frames of its call chain. "Dead" is said only if no path can read the word:
 * what is not understood, and what may be reached through an address that got to unknown places,
 * is "unknown". Assumed of the program: no access outside the objects it has, and the usual
 * calling convention. x86-64 only: elsewhere all is unknown. Not thread-safe; for rare use, since
 * functions are decoded (well below a millisecond per hundred instructions). */
#ifndef PLIANT_INTERPOSE_LIVENESS_H
#define PLIANT_INTERPOSE_LIVENESS_H

#include <stddef.h>
#include <stdint.h>

#include "interpose/chain.h"

typedef enum pl_life { PL_LIFE_DEAD, PL_LIFE_LIVE, PL_LIFE_UNKNOWN } pl_life_t;

/* Of `bytes` bytes from `offset` below the end of frame `frame` of the chain (0 is innermost), when
 * control returns to chain->address[0]. The frame's end is where the next frame starts: the address
 * after its own return address; for main, pl_chain_top. why: the reason, for messages. */
pl_life_t pl_life_of_stack(const pl_chain_t *chain, int frame, int64_t offset, int bytes, char *why,
                           size_t size);

/* Of a register, by its index among r15 r14 r13 r12 rbx rbp. */
pl_life_t pl_life_of_register(const pl_chain_t *chain, int reg, char *why, size_t size);

#endif
