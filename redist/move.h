/* SPDX-License-Identifier: MIT
 * Moves arrays from the sources to the targets, all of them in one exchange. */
#ifndef PLIANT_REDIST_MOVE_H
#define PLIANT_REDIST_MOVE_H

#include <stdint.h>

#include <mpi.h>

#include "common/status.h"
#include "redist/layout.h"
#include "redist/view.h"

typedef struct pl_array {
    const pl_layout_t *layout;
    pl_view_t source, target; /* bytes == 0 where this rank is not one; they must not overlap */
} pl_array_t;

typedef struct pl_move_stats {
    int64_t kept;     /* bytes copied from this rank to itself */
    int64_t sent;     /* bytes sent to others */
    int64_t received; /* bytes received from others */
    int rounds;       /* exchanges it took */
} pl_move_stats_t;

/* Most bytes from one rank to another in one round, and most bytes of send or of receive
 * buffer on one rank. Equal on all ranks; smaller values make more rounds. */
extern int64_t pl_move_chunk_bytes;
extern int64_t pl_move_buffer_bytes;

/* Collective over comm, whose ranks 0..max(ns, nt)-1 are the processes (more ranks may take part
 * and have no data). The same arrays in the same order on all ranks. method: a name of
 * common/methods.h, NULL for the default. Cells without an origin keep the target's own value.
 * stats may be NULL. On error, the same on all ranks, targets may be half written; sources are
 * never written. PL_ERR_INVALID (method, layout, a view shorter than its layout), PL_ERR_NOMEM,
 * PL_ERR_MPI. */
pl_status_t pl_move_arrays(const char *method, const pl_array_t *arrays, int count, int ns, int nt,
                           MPI_Comm comm, pl_move_stats_t *stats);

#endif
