/* SPDX-License-Identifier: MIT
 * State of the C library's random generators (random, rand, drand48 and their kind): flat, may be
 * sent to another process of the same program. */
#ifndef PLIANT_INTERPOSE_RANDOM_H
#define PLIANT_INTERPOSE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct pl_random_state {
    int32_t random[64];          /* first word: type and position */
    struct drand48_data drand48; /* all fields beyond the type's length are zero */
} pl_random_state_t;

void pl_random_get(pl_random_state_t *out);

/* Puts a state into the array random() uses now (which the program may have chosen with initstate).
 * If that array is of another type, a private one of Pliant is used from then on. */
void pl_random_put(const pl_random_state_t *state);

bool pl_random_equal(const pl_random_state_t *a, const pl_random_state_t *b);

/* The array random() uses; and: use that array with this state. */
char *pl_random_array(void);
void pl_random_use(char *array, const pl_random_state_t *state);

#endif
