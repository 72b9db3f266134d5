/* SPDX-License-Identifier: MIT
 * Samples of an array, drawn where they tell something. */
#ifndef PLIANT_REDIST_SAMPLE_H
#define PLIANT_REDIST_SAMPLE_H

#include <stdint.h>

#include "redist/view.h"

typedef struct pl_sample {
    int64_t offset; /* bytes, a multiple of 4 */
    uint64_t value; /* the 8 bytes there; zeros beyond the end of the array */
} pl_sample_t;

/* Writes at most max samples, by rising offset, and returns how many. Drawn the same way every time
 * from the two ends, from places where the value changes (both sides of them), from rare values,
 * and evenly. Long arrays are looked at in a bounded number of places. No sample of an empty array.
 */
int pl_sample_take(const pl_view_t *view, pl_sample_t *out, int max);

#endif
