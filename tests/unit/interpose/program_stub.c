/* SPDX-License-Identifier: MIT
 * Linked into the tests of hooks, in the place of interpose/modules.c and chain.c: the executable
 * is the program, and a call's chain is its return address. */
#include <stdint.h>

#include "interpose/chain.h"
#include "interpose/modules.h"

extern const char __executable_start[], etext[];

bool pl_module_is_program(const void *code_address)
{
    uintptr_t address = (uintptr_t)code_address;
    return address >= (uintptr_t)__executable_start && address < (uintptr_t)etext;
}

const pl_module_t *pl_module_of(uintptr_t address)
{
    (void)address;
    return NULL;
}

uint64_t pl_chain_here(const void *return_address, const void *stack)
{
    (void)stack;
    return (uint64_t)(uintptr_t)return_address;
}
