/* SPDX-License-Identifier: MIT
 * The test of a layout on samples. */
#ifndef PLIANT_REDIST_CHECK_H
#define PLIANT_REDIST_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "redist/layout.h"
#include "redist/sample.h"
#include "redist/view.h"

/* Numbers of samples; sum them over the targets. */
typedef struct pl_check {
    int64_t agree;          /* owned by a source, and equal at this target */
    int64_t distinct_agree; /* those of them that tell something: not of the commonest value, or
                               beside another value, so that a shifted layout would disagree */
    int64_t disagree;       /* owned by a source, and different at this target */
    int64_t ghost_agree;    /* in a source's ghosts or possible padding: equal at this target */
    int64_t ghost_disagree; /* ... or different: ghosts that were stale, or a wrong split */
    int64_t reach_agree;    /* what a source owns, in a ghost of this target: equal */
    int64_t reach_disagree; /* ... or different */
} pl_check_t;

/* Tests a layout on the samples of all sources (by source; a source's by rising offset): what they
 * become on target my_target is compared with my_array. Every sample is counted by one target at
 * most. In an offsets layout differences of neighbouring elements are compared, and a negative one
 * always disagrees: offsets do not fall. */
void pl_layout_check(const pl_layout_t *layout, const pl_sample_t *const *samples_of_source,
                     const int *n_of_source, int my_target, const pl_view_t *my_array,
                     pl_check_t *out);

/* Equal values: the same 8 bytes, or ordinary doubles that differ by 1e-9 of their size at most, or
 * pairs of ordinary floats that differ by a few units in the last place. Integers look like no
 * ordinary double or float and are compared exactly. */
bool pl_near(uint64_t a, uint64_t b);

#endif
