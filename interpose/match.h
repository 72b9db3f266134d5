/* SPDX-License-Identifier: MIT
 * Which heap object of one process is which of another: objects are matched by call chain and order
 * among the live ones of that chain at the baseline. */
#ifndef PLIANT_INTERPOSE_MATCH_H
#define PLIANT_INTERPOSE_MATCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "interpose/snapshot.h"
#include "interpose/space.h"

/* An object as all processes see it; the list is the same on all of them. */
typedef struct pl_object {
    uint64_t chain;
    uint32_t order;
    bool born;   /* made after the baseline on some source */
    bool reborn; /* freed and made again since the baseline on some source */
    bool permanent;
    bool changed;             /* content differs from the baseline on some source */
    bool changed_beyond_root; /* ... on a source other than rank 0 */
    bool rows;                /* one of a list of rows: moved as part of its group */
    int64_t *source, *target; /* bytes on each source and target, -1: not there */
    int sources, targets;     /* how many have it */
    /* of this process, NULL where it is not there */
    const pl_record_t *now, *base; /* as a source */
    const pl_record_t *here;       /* as a target */
    pl_record_t *made;             /* owned: `here` of an object made for the resize */
} pl_object_t;

typedef struct pl_match {
    int ns, nt;
    pl_object_t *objects; /* by chain, then order */
    int count;
    int64_t *sizes; /* storage of all size lists */
} pl_match_t;

/* Collective over comm, whose first ns ranks are sources and first nt targets (nt 0: no targets
 * yet). now and base are NULL on a process that is no source, here on one that is no target. */
pl_status_t pl_match_make(MPI_Comm comm, int ns, int nt, const pl_snapshot_t *now,
                          const pl_snapshot_t *base, const pl_snapshot_t *here, pl_match_t *out);
void pl_match_free(pl_match_t *match);

/* The address spaces this process has: as a source now and at the baseline, as a target. */
pl_status_t pl_match_spaces(const pl_match_t *match, const pl_snapshot_t *now,
                            const pl_snapshot_t *base, const pl_snapshot_t *here,
                            pl_space_t *now_space, pl_space_t *base_space, pl_space_t *here_space);

/* Makes an object that was born on the sources on this target too, of `bytes` bytes. */
pl_status_t pl_match_make_here(pl_object_t *object, int64_t bytes);

#endif
