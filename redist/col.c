/* SPDX-License-Identifier: MIT */
#include "redist/col.h"

#include <limits.h>
#include <stdlib.h>

#include "common/log.h"

typedef struct half {
    int *counts, *places;
    char *buffer;
} half_t;

typedef struct col {
    MPI_Comm comm;
    int ranks;
    half_t out, in;
    int64_t chunk; /* bytes per stream and round */
    int64_t rounds;
} col_t;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Displacements are ints, so a buffer is never larger. */
static int64_t buffer_limit(void)
{
    return smaller(larger(pl_move_buffer_bytes, 1), INT_MAX);
}

static pl_status_t open_half(half_t *half, int ranks, const pl_flow_t *flow)
{
    /* Before the agreement the chunk is not known, but it is not above limit / peers, or it is 1.
     */
    int64_t bytes = smaller(flow->bytes, larger(buffer_limit(), flow->peers));

    half->counts = calloc((size_t)ranks, sizeof(int));
    half->places = calloc((size_t)ranks, sizeof(int));
    half->buffer = malloc((size_t)bytes + 1);
    return half->counts && half->places && half->buffer ? PL_OK : PL_ERR_NOMEM;
}

static void close_half(half_t *half)
{
    free(half->counts);
    free(half->places);
    free(half->buffer);
}

/* One reduction tells all ranks the size of the rounds, their number, and whether anybody failed.
 */
static pl_status_t agree(col_t *col, const pl_exchange_t *exchange, pl_status_t status)
{
    enum { MOST, PEERS, ERROR, FIELDS };
    int64_t all[FIELDS] = {
        [MOST] = larger(exchange->out.most, exchange->in.most),
        [PEERS] = larger(exchange->out.peers, exchange->in.peers),
        [ERROR] = -(int64_t)status,
    };

    if (PMPI_Allreduce(MPI_IN_PLACE, all, FIELDS, MPI_INT64_T, MPI_MAX, col->comm) != MPI_SUCCESS)
        return PL_ERR_MPI;
    if (all[ERROR] > 0)
        return (pl_status_t)-all[ERROR];
    col->chunk = smaller(pl_move_chunk_bytes, buffer_limit() / larger(all[PEERS], 1));
    col->chunk = larger(col->chunk, 1);
    col->rounds = all[MOST] / col->chunk + (all[MOST] % col->chunk > 0);
    return PL_OK;
}

/* Sets counts and places of a round; returns the bytes. */
static int64_t lay_out(const col_t *col, half_t *half, const pl_flow_t *flow)
{
    int64_t place = 0;

    for (int i = 0; i < flow->peers; i++) {
        const pl_stream_t *stream = &flow->streams[i];

        half->counts[stream->peer] = (int)smaller(stream->bytes, col->chunk);
        half->places[stream->peer] = (int)place;
        place += half->counts[stream->peer];
    }
    return place;
}

static pl_status_t run_round(col_t *col, pl_exchange_t *exchange, pl_move_stats_t *stats)
{
    pl_flow_t *out = &exchange->out, *in = &exchange->in;

    stats->sent += lay_out(col, &col->out, out);
    stats->received += lay_out(col, &col->in, in);
    for (int i = 0; i < out->peers; i++) {
        pl_stream_t *stream = &out->streams[i];

        pl_flow_pack(out, stream, col->out.buffer + col->out.places[stream->peer],
                     col->out.counts[stream->peer]);
    }
    if (PMPI_Alltoallv(col->out.buffer, col->out.counts, col->out.places, MPI_BYTE, col->in.buffer,
                       col->in.counts, col->in.places, MPI_BYTE, col->comm) != MPI_SUCCESS)
        return PL_ERR_MPI;
    for (int i = 0; i < in->peers; i++) {
        pl_stream_t *stream = &in->streams[i];

        pl_flow_unpack(in, stream, col->in.buffer + col->in.places[stream->peer],
                       col->in.counts[stream->peer]);
    }
    stats->rounds++;
    return PL_OK;
}

pl_status_t pl_col_run(pl_exchange_t *exchange, pl_status_t status, MPI_Comm comm,
                       pl_move_stats_t *stats)
{
    col_t col = {.comm = comm};

    if (PMPI_Comm_size(comm, &col.ranks) != MPI_SUCCESS)
        return PL_ERR_MPI;
    if (status == PL_OK)
        status = open_half(&col.out, col.ranks, &exchange->out);
    if (status == PL_OK)
        status = open_half(&col.in, col.ranks, &exchange->in);
    status = agree(&col, exchange, status);
    for (int64_t round = 0; status == PL_OK && round < col.rounds; round++)
        status = run_round(&col, exchange, stats);
    if (status == PL_ERR_MPI)
        PL_ERROR("MPI failed while data moved");
    close_half(&col.out);
    close_half(&col.in);
    return status;
}
