/* SPDX-License-Identifier: MIT
 * The heart of a resize, when sources and targets stand at the same place: objects are matched,
 * arrays get their layouts, words are compared; then, unless something forbids it, data moves. */
#ifndef PLIANT_INTERPOSE_EXCHANGE_H
#define PLIANT_INTERPOSE_EXCHANGE_H

#include <mpi.h>
#include <stddef.h>

#include "common/status.h"
#include "interpose/arrays.h"
#include "interpose/match.h"
#include "interpose/snapshot.h"
#include "interpose/private.h"
#include "interpose/words.h"
#include "policy/event.h"

enum { PL_MAX_BUFFERS = 256 };

typedef struct pl_exchange {
    /* in: */
    MPI_Comm comm; /* of all sources and targets */
    int ns, nt;
    const pl_snapshot_t *now, *base; /* of a source */
    const pl_snapshot_t *first;      /* of a target at its arrival before, or NULL */
    MPI_Comm target_comm;            /* of a target */
    pl_snapshot_t *here_owned;       /* of a target; NULL: this process is none */
    const char *method;
    /* out: */
    uint64_t registers[PL_REGISTERS]; /* of the target's frame */
    double move_seconds;
    int64_t bytes_moved, bytes_kept;
    pl_match_t match;
    pl_arrays_t arrays;
    pl_words_t words;
    pl_private_count_t found;
    pl_space_t space[3];
    pl_event_buffer_t buffers[PL_MAX_BUFFERS];
    char private_text[PL_EVENT_PRIVATE_MAX][80];
    const char *private_list[PL_EVENT_PRIVATE_MAX];
    int private_listed;
} pl_exchange_t;

/* Collective. PL_OK: the targets' memory and `registers` are those of the sources' state.
 * PL_ERR_REFUSED: nothing has been written that a rollback does not undo; reason says why. The same
 * result on all processes. */
pl_status_t pl_exchange_run(pl_exchange_t *x, char *reason, size_t size);
void pl_exchange_free(pl_exchange_t *x);

/* What an event says of it; points into x. */
void pl_exchange_describe(pl_exchange_t *x, pl_resize_event_t *event);

#endif
