/* SPDX-License-Identifier: MIT
 * What a program's set-up would give for any number of processes: the tests' independent idea of a
 * distributed array, every byte coded with its global position. */
#ifndef PLIANT_TESTS_REDIST_MODEL_H
#define PLIANT_TESTS_REDIST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "redist/layout.h"

/* How the program deals n units to np ranks. */
typedef enum model_rule {
    MODEL_FRONT,    /* the remainder to the first ranks, one each */
    MODEL_BACK,     /* all of the remainder to the last rank */
    MODEL_BALANCED, /* r * n / np */
    MODEL_CEIL,     /* ceil(n / np) each, allocated in full */
    MODEL_RAGGED,   /* anything, some ranks empty */
    MODEL_LAST,     /* everything on the last rank */
    MODEL_RULES
} model_rule_t;

typedef struct model {
    pl_kind_t kind; /* BLOCK, PADDED (with MODEL_CEIL), HALO, OFFSETS (unit 4 or 8) */
    model_rule_t rule;
    int64_t n, unit; /* units in all; bytes of one */
    int64_t lo, hi;  /* ghost units of a HALO */
    uint64_t seed;   /* arrays of another seed have other contents and cuts */
} model_t;

enum { MODEL_UNTOUCHED = 0xAA };

int64_t model_first(const model_t *model, int np, int rank);
int64_t model_bytes(const model_t *model, int np, int rank);

/* The array's contents on a rank. In padding, which no layout may write: MODEL_UNTOUCHED. */
void model_fill(const model_t *model, int np, int rank, void *memory);

/* Whether a proposal is the decomposition the model has, by its fields. */
bool model_is(const model_t *model, const pl_layout_t *layout);

/* A fixed pseudo-random sequence. */
uint64_t model_random(uint64_t *state);

#endif
