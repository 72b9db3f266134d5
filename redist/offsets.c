/* SPDX-License-Identifier: MIT */
#include "redist/offsets.h"

#include <string.h>

/* Arithmetic in 64 bits is right for 4-byte elements too: only the low half is kept. */
static uint64_t load(const pl_view_t *array, int64_t index, int64_t unit)
{
    uint64_t value = 0;

    pl_view_read(array, index * unit, &value, unit);
    return value;
}

void pl_offsets_difference(const pl_view_t *array, int64_t unit, void *differences)
{
    char *out = differences;
    uint64_t before = 0;

    for (int64_t i = 0; i < array->bytes / unit; i++) {
        uint64_t value = load(array, i, unit), difference = i ? value - before : 0;

        memcpy(out + i * unit, &difference, (size_t)unit);
        before = value;
    }
}

void pl_offsets_sum(const pl_view_t *array, int64_t unit, const void *differences)
{
    const char *in = differences;
    uint64_t value = array->bytes >= unit ? load(array, 0, unit) : 0;

    for (int64_t i = 1; i < array->bytes / unit; i++) {
        uint64_t difference = 0;

        memcpy(&difference, in + i * unit, (size_t)unit);
        value += difference;
        pl_view_write(array, i * unit, &value, unit);
    }
}
