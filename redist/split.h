/* SPDX-License-Identifier: MIT
 * Which rank owns which units of a global sequence: prefix sums, or a closed form where all own
 * equally many. Counted, because the layouts proposed for one array share it. */
#ifndef PLIANT_REDIST_SPLIT_H
#define PLIANT_REDIST_SPLIT_H

#include <stdint.h>

typedef struct pl_split {
    int refs;
    int ranks;
    int64_t total;   /* units in all */
    int64_t each;    /* units per rank until the total is used up; < 0: see first */
    int64_t first[]; /* ranks + 1 prefix sums */
} pl_split_t;

/* Rank r owns bytes[r] - surplus bytes, which the unit divides. NULL: out of memory. */
pl_split_t *pl_split_make(const int64_t *bytes, int ranks, int64_t surplus, int64_t unit);
/* Every rank owns `each` units, the last ones fewer when the total is used up. NULL: out of memory.
 */
pl_split_t *pl_split_uniform(int ranks, int64_t each, int64_t total);
pl_split_t *pl_split_keep(pl_split_t *split);
void pl_split_drop(pl_split_t *split);

/* First unit of a rank; rank == ranks gives the total. */
int64_t pl_split_first(const pl_split_t *split, int rank);

/* First rank that owns something above or at unit: its owner; `ranks` beyond the end, 0 below 0. */
int pl_split_find(const pl_split_t *split, int64_t unit);

#endif
