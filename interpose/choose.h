/* SPDX-License-Identifier: MIT
 * Chooses a layout for each distributed array: proposals from sizes, tested on samples that the
 * sources kept at the baseline; then where receives landed and what arrays of one size family
 * agree on. */
#ifndef PLIANT_INTERPOSE_CHOOSE_H
#define PLIANT_INTERPOSE_CHOOSE_H

#include "interpose/arrays.h"

/* Sets fate, evidence, layout and move of every case that is DISTRIBUTED so far. Collective. */
pl_status_t pl_choose_layouts(MPI_Comm comm, const pl_match_t *match, const pl_snapshot_t *base,
                              pl_array_case_t *cases, int count);

#endif
