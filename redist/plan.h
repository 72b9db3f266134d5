/* SPDX-License-Identifier: MIT
 * What one rank sends and receives to bring one array from the sources to the targets: Algorithm 1
 * of the redistribution papers, in time and memory proportional to the overlaps. */
#ifndef PLIANT_REDIST_PLAN_H
#define PLIANT_REDIST_PLAN_H

#include <stdint.h>

#include "common/status.h"
#include "redist/layout.h"

typedef struct pl_piece {
    int peer;
    int64_t
        offset; /* bytes in this rank's array: the source's for sends, the target's for receives */
    int64_t bytes;
} pl_piece_t;

/* Pieces by rising peer, at most one per peer, none empty; pieces to itself are in both lists. */
typedef struct pl_plan {
    pl_piece_t *send, *recv;
    int sends, recvs;
    int64_t kept;  /* bytes of the piece to itself */
    int64_t moved; /* bytes received from others */
} pl_plan_t;

/* PL_ERR_NOMEM, PL_ERR_INVALID (a kind that is not distributed, a negative rank). A rank that is
 * neither a source nor a target has no pieces. */
pl_status_t pl_plan_make(const pl_layout_t *layout, int rank, pl_plan_t *out);
void pl_plan_free(pl_plan_t *plan);

#endif
