/* SPDX-License-Identifier: MIT */
#include "redist/split.h"

#include <stdbool.h>
#include <stdlib.h>

pl_split_t *pl_split_uniform(int ranks, int64_t each, int64_t total)
{
    pl_split_t *split = malloc(sizeof *split);

    if (!split)
        return NULL;
    *split = (pl_split_t){.refs = 1, .ranks = ranks, .total = total, .each = each};
    return split;
}

pl_split_t *pl_split_make(const int64_t *bytes, int ranks, int64_t surplus, int64_t unit)
{
    bool equal = true;

    for (int r = 1; r < ranks && equal; r++)
        equal = bytes[r] == bytes[0];
    if (equal) {
        int64_t each = (bytes[0] - surplus) / unit;

        return pl_split_uniform(ranks, each, each * ranks);
    }
    pl_split_t *split = malloc(sizeof *split + ((size_t)ranks + 1) * sizeof *split->first);
    if (!split)
        return NULL;
    *split = (pl_split_t){.refs = 1, .ranks = ranks, .each = -1};
    split->first[0] = 0;
    for (int r = 0; r < ranks; r++)
        split->first[r + 1] = split->first[r] + (bytes[r] - surplus) / unit;
    split->total = split->first[ranks];
    return split;
}

pl_split_t *pl_split_keep(pl_split_t *split)
{
    split->refs++;
    return split;
}

void pl_split_drop(pl_split_t *split)
{
    if (split && --split->refs == 0)
        free(split);
}

int64_t pl_split_first(const pl_split_t *split, int rank)
{
    if (split->each < 0)
        return split->first[rank];
    int64_t first = split->each * rank;
    return first < split->total ? first : split->total;
}

int pl_split_find(const pl_split_t *split, int64_t unit)
{
    int low = 0, high = split->ranks - 1;

    if (unit < 0)
        return 0;
    if (unit >= split->total)
        return split->ranks;
    if (split->each >= 0)
        return (int)(unit / split->each);
    while (low < high) {
        int middle = low + (high - low) / 2;

        if (split->first[middle + 1] > unit)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
