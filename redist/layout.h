/* SPDX-License-Identifier: MIT
 * How one array lies over the sources and over the targets, as far as its sizes tell.
 *
 * In a layout the array is a global sequence of units. Rank r owns the units first(r) up to
 * first(r + 1), stored behind `lo` units; `hi` units follow. In a halo those are ghosts, copies of
 * the neighbours' units or, at both ends, the physical boundary. In an offsets layout (row
 * pointers) lo is 1, the rank's constant base, and what is owned are the differences to the element
 * before. */
#ifndef PLIANT_REDIST_LAYOUT_H
#define PLIANT_REDIST_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "redist/view.h"

typedef enum pl_kind {
#define LAYOUT(name, text) PL_KIND_##name,
#include "redist/layouts.def"
#undef LAYOUT
    PL_KIND_COUNT
} pl_kind_t;

typedef enum pl_side { PL_SOURCE, PL_TARGET } pl_side_t;

typedef struct pl_sizes {
    int ns, nt;
    const int64_t *source,
        *target; /* bytes on every source and on every target; 0 where it has none */
} pl_sizes_t;

struct pl_split;

typedef struct pl_layout {
    pl_kind_t kind;
    int ns, nt;
    int64_t unit;   /* bytes; every boundary is a multiple of it */
    int64_t lo, hi; /* units below and above the owned ones, on every rank */
    int64_t global; /* units owned in all */
    int64_t sure;   /* padded block: those below it are no padding; else = global */
    struct pl_split *source, *target; /* who owns what; shared between copies, counted */
} pl_layout_t;

/* Text of a kind ("padded block"), never NULL. */
const char *pl_kind_text(pl_kind_t kind);

/* Every mapping the sizes allow, no two alike, the likelier first. `unit` is 0 (found from the
 * sizes) or forced in bytes, e.g. the length of a row; a forced unit that does not divide the sizes
 * allows none. *out is an array of *count layouts, to be freed with pl_layout_free; NULL and 0 when
 * there is none. PL_ERR_NOMEM, PL_ERR_INVALID. */
pl_status_t pl_layout_propose(const pl_sizes_t *sizes, int64_t unit, pl_layout_t **out, int *count);
void pl_layout_free(pl_layout_t *layouts, int count);

/* A copy that outlives the array `from` is in; release it with pl_layout_drop. Not thread-safe. */
void pl_layout_copy(const pl_layout_t *from, pl_layout_t *to);
void pl_layout_drop(pl_layout_t *layout);

/* First unit rank owns and how many, in units of the global array. */
int64_t pl_layout_owned_first(const pl_layout_t *layout, pl_side_t side, int rank);
int64_t pl_layout_owned_count(const pl_layout_t *layout, pl_side_t side, int rank);

/* Bytes in front of the owned part in a rank's memory. */
int64_t pl_layout_skip(const pl_layout_t *layout);

/* Where byte `offset` of a target's array comes from. Ghosts come from the owner of that unit;
 * beyond the ends, from the first or last source's own ghosts. *owned: the byte is in the target's
 * owned part. In an offsets layout it is the difference that comes from there. False when nothing
 * comes: padding, or an offsets array's base. */
bool pl_layout_origin(const pl_layout_t *layout, int target, int64_t offset, int *source,
                      int64_t *source_offset, bool *owned);

/* Position-weighted hash of what rank owns. The wrapping sum over all sources equals the one over
 * all targets if the global array is the same bit for bit, and with overwhelming probability only
 * then. */
uint64_t pl_layout_hash(const pl_layout_t *layout, pl_side_t side, int rank, const pl_view_t *view);

#endif
