/* SPDX-License-Identifier: MIT
 * All pieces of all arrays one rank exchanges with others, as one stream of bytes per peer, and the
 * buffers to exchange them in rounds. What every method of moving data works on. */
#ifndef PLIANT_REDIST_EXCHANGE_H
#define PLIANT_REDIST_EXCHANGE_H

#include <stdint.h>

#include "common/status.h"
#include "redist/plan.h"
#include "redist/view.h"

typedef struct pl_stream_piece {
    int peer, array;
    int64_t offset, bytes;
} pl_stream_piece_t;

/* The pieces to or from one peer; a sender's and its receiver's have the same bytes in the same
 * order. */
typedef struct pl_stream {
    int peer;
    int64_t bytes; /* left */
    const pl_stream_piece_t *piece;
    int64_t done; /* bytes of *piece that have passed */
} pl_stream_t;

typedef struct pl_flow {
    pl_stream_piece_t *pieces;
    pl_stream_t *streams;   /* by rising peer */
    int count, capacity;    /* pieces */
    int peers;              /* streams */
    int64_t bytes, most;    /* in all, in one stream */
    const pl_view_t *views; /* by array */
} pl_flow_t;

typedef struct pl_exchange {
    int rank, arrays;
    pl_flow_t out, in;
    pl_view_t *views; /* arrays sources, arrays targets */
    int64_t kept;
} pl_exchange_t;

/* An empty exchange of so many arrays. */
pl_status_t pl_exchange_open(int rank, int arrays, pl_exchange_t *out);
void pl_exchange_close(pl_exchange_t *exchange);

/* Adds the plan of array number `array`, whose memory is source and target. PL_ERR_INVALID when a
 * view is too short for the plan. */
pl_status_t pl_exchange_add(pl_exchange_t *exchange, int array, const pl_plan_t *plan,
                            const pl_view_t *source, const pl_view_t *target);

/* Makes the streams; nothing can be added after it. */
pl_status_t pl_exchange_seal(pl_exchange_t *exchange);

/* Next bytes of a stream: out of the sources' arrays into a buffer, or back into the targets'. */
void pl_flow_pack(const pl_flow_t *flow, pl_stream_t *stream, void *buffer, int64_t bytes);
void pl_flow_unpack(const pl_flow_t *flow, pl_stream_t *stream, const void *buffer, int64_t bytes);

#endif
