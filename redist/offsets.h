/* SPDX-License-Identifier: MIT
 * Arrays of offsets (row pointers) move as differences of neighbours. */
#ifndef PLIANT_REDIST_OFFSETS_H
#define PLIANT_REDIST_OFFSETS_H

#include <stdint.h>

#include "redist/view.h"

/* differences[i] = element i - element i - 1; the first is 0. unit is 4 or 8 bytes; the buffer has
 * as many elements as the array. */
void pl_offsets_difference(const pl_view_t *array, int64_t unit, void *differences);

/* Elements from the second on = the one before + differences[i]; the array's first element stays.
 */
void pl_offsets_sum(const pl_view_t *array, int64_t unit, const void *differences);

#endif
