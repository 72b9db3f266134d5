/* SPDX-License-Identifier: MIT */
#include "redist/exchange.h"

#include <stdbool.h>
#include <stdlib.h>

pl_status_t pl_exchange_open(int rank, int arrays, pl_exchange_t *out)
{
    pl_view_t *views = calloc(2 * (size_t)arrays + 1, sizeof *views);

    if (!views)
        return PL_ERR_NOMEM;
    *out = (pl_exchange_t){.rank = rank, .arrays = arrays, .views = views};
    out->out.views = views;
    out->in.views = views + arrays;
    return PL_OK;
}

void pl_exchange_close(pl_exchange_t *exchange)
{
    free(exchange->out.pieces);
    free(exchange->out.streams);
    free(exchange->in.pieces);
    free(exchange->in.streams);
    free(exchange->views);
    *exchange = (pl_exchange_t){0};
}

static bool fits(const pl_piece_t *pieces, int count, const pl_view_t *view)
{
    for (int i = 0; i < count; i++)
        if (pieces[i].offset < 0 || pieces[i].offset + pieces[i].bytes > view->bytes)
            return false;
    return true;
}

static bool append(pl_flow_t *flow, int array, const pl_piece_t *piece)
{
    if (flow->count == flow->capacity) {
        int capacity = flow->capacity ? 2 * flow->capacity : 16;
        pl_stream_piece_t *pieces = realloc(flow->pieces, (size_t)capacity * sizeof *pieces);

        if (!pieces)
            return false;
        flow->pieces = pieces;
        flow->capacity = capacity;
    }
    flow->pieces[flow->count++] =
        (pl_stream_piece_t){piece->peer, array, piece->offset, piece->bytes};
    return true;
}

static const pl_piece_t *piece_with(const pl_piece_t *pieces, int count, int peer)
{
    for (int i = 0; i < count; i++)
        if (pieces[i].peer == peer)
            return &pieces[i];
    return NULL;
}

static bool append_others(pl_flow_t *flow, int array, const pl_piece_t *pieces, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (pieces[i].peer != rank && !append(flow, array, &pieces[i]))
            return false;
    return true;
}

pl_status_t pl_exchange_add(pl_exchange_t *exchange, int array, const pl_plan_t *plan,
                            const pl_view_t *source, const pl_view_t *target)
{
    int rank = exchange->rank;
    const pl_piece_t *kept_from = piece_with(plan->send, plan->sends, rank);
    const pl_piece_t *kept_to = piece_with(plan->recv, plan->recvs, rank);

    if (!fits(plan->send, plan->sends, source) || !fits(plan->recv, plan->recvs, target))
        return PL_ERR_INVALID;
    if (!append_others(&exchange->out, array, plan->send, plan->sends, rank) ||
        !append_others(&exchange->in, array, plan->recv, plan->recvs, rank))
        return PL_ERR_NOMEM;
    exchange->views[array] = *source;
    exchange->views[exchange->arrays + array] = *target;
    if (kept_from && kept_to) {
        pl_view_copy(target, kept_to->offset, source, kept_from->offset, kept_to->bytes);
        exchange->kept += kept_to->bytes;
    }
    return PL_OK;
}

static int by_peer(const void *a, const void *b)
{
    const pl_stream_piece_t *x = a, *y = b;

    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return (x->array > y->array) - (x->array < y->array);
}

static pl_status_t make_streams(pl_flow_t *flow)
{
    flow->streams = calloc((size_t)flow->count + 1, sizeof *flow->streams);
    if (!flow->streams)
        return PL_ERR_NOMEM;
    if (flow->count > 1)
        qsort(flow->pieces, (size_t)flow->count, sizeof *flow->pieces, by_peer);
    for (int i = 0; i < flow->count; i++) {
        const pl_stream_piece_t *piece = &flow->pieces[i];

        if (flow->peers == 0 || flow->streams[flow->peers - 1].peer != piece->peer)
            flow->streams[flow->peers++] = (pl_stream_t){.peer = piece->peer, .piece = piece};
        flow->streams[flow->peers - 1].bytes += piece->bytes;
        flow->bytes += piece->bytes;
    }
    for (int i = 0; i < flow->peers; i++)
        if (flow->streams[i].bytes > flow->most)
            flow->most = flow->streams[i].bytes;
    return PL_OK;
}

pl_status_t pl_exchange_seal(pl_exchange_t *exchange)
{
    pl_status_t status = make_streams(&exchange->out);

    return status == PL_OK ? make_streams(&exchange->in) : status;
}

/* How much of the current piece can pass, and its place; steps to the next piece behind it. */
static int64_t advance(pl_stream_t *stream, int64_t bytes, int *array, int64_t *offset)
{
    const pl_stream_piece_t *piece = stream->piece;
    int64_t part = piece->bytes - stream->done;

    if (part > bytes)
        part = bytes;
    *array = piece->array;
    *offset = piece->offset + stream->done;
    stream->bytes -= part;
    stream->done += part;
    if (stream->done == piece->bytes) {
        stream->piece++;
        stream->done = 0;
    }
    return part;
}

void pl_flow_pack(const pl_flow_t *flow, pl_stream_t *stream, void *buffer, int64_t bytes)
{
    char *at = buffer;

    while (bytes > 0) {
        int array;
        int64_t offset, part = advance(stream, bytes, &array, &offset);

        pl_view_read(&flow->views[array], offset, at, part);
        at += part;
        bytes -= part;
    }
}

void pl_flow_unpack(const pl_flow_t *flow, pl_stream_t *stream, const void *buffer, int64_t bytes)
{
    const char *at = buffer;

    while (bytes > 0) {
        int array;
        int64_t offset, part = advance(stream, bytes, &array, &offset);

        pl_view_write(&flow->views[array], offset, at, part);
        at += part;
        bytes -= part;
    }
}
