/* SPDX-License-Identifier: MIT
 * What is known of library functions by name: that they keep no pointer they are given, and which
 * arguments they read through. */
#ifndef PLIANT_INTERPOSE_LIVENESS_CALLEE_H
#define PLIANT_INTERPOSE_LIVENESS_CALLEE_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/liveness_code.h"

/* One letter per integer argument in a register:
 *   -  not a pointer, or not used as one
 *   o  an object that is only written
 *   i  an int that is written for sure
 *   w  elements that are written for sure
 *   r  an object it may read, of unknown extent
 *   s  what MPI sends: elements of the type from here on (unless MPI_BOTTOM)
 *   c  how many elements, t of which type
 *   k  a buffer that is used until a request is completed
 *   q  as many requests as n says, one if there is no n (of an MPI of MPICH's family: ints)
 * What is missing at the end is '-'. */
typedef struct pl_callee {
    const char *name;
    const char *arguments;
    bool leaves_memory; /* reads and writes nothing but through its arguments */
    bool stops;         /* does not return */
    bool returns_argument;
} pl_callee_t;

/* General registers of the first six integer arguments. */
extern const int8_t pl_argument_registers[6];

/* May it read through its i-th argument, which it has? */
static inline bool pl_callee_reads(const pl_callee_t *callee, int i)
{
    char letter = callee->arguments[i];
    return letter == 'r' || letter == 's' || letter == 'k' || letter == 'q';
}

/* The name of the external function that a call or jump ends at, NULL: not external or not known.
 * Valid as long as the module is loaded. */
const char *pl_callee_name(const pl_insn_t *call);

/* What is known of a function of this name, or NULL. */
const pl_callee_t *pl_callee_find(const char *name);

/* It may return a second time, or go on elsewhere: setjmp, longjmp, vfork, ... */
bool pl_callee_returns_twice(const char *name);

#endif
