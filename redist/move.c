/* SPDX-License-Identifier: MIT */
#include "redist/move.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/methods.h"
#include "redist/col.h"
#include "redist/exchange.h"
#include "redist/offsets.h"
#include "redist/plan.h"

int64_t pl_move_chunk_bytes = INT64_C(64) << 20;
int64_t pl_move_buffer_bytes = INT64_C(256) << 20;

typedef pl_status_t run_t(pl_exchange_t *exchange, pl_status_t status, MPI_Comm comm,
                          pl_move_stats_t *stats);

static run_t *const methods[PL_METHOD_COUNT] = {
    [PL_METHOD_COL] = pl_col_run,
};

typedef struct move {
    const pl_array_t *arrays;
    int count, rank, ns, nt;
    pl_exchange_t exchange;
    void **scratch; /* per array two: differences of source and target, NULL where none */
} move_t;

/* Replaces the memory of an offsets array by differences (source) or room for them (target). */
static pl_status_t use_differences(const pl_array_t *array, void **scratch, pl_view_t *source,
                                   pl_view_t *target)
{
    scratch[0] = calloc(1, (size_t)source->bytes + 1);
    scratch[1] = calloc(1, (size_t)target->bytes + 1);
    if (!scratch[0] || !scratch[1])
        return PL_ERR_NOMEM;
    pl_offsets_difference(&array->source, array->layout->unit, scratch[0]);
    *source = (pl_view_t){.base = scratch[0], .bytes = source->bytes};
    *target = (pl_view_t){.base = scratch[1], .bytes = target->bytes};
    return PL_OK;
}

static pl_status_t add_array(move_t *move, int i)
{
    const pl_array_t *array = &move->arrays[i];
    pl_view_t source = array->source, target = array->target;
    pl_plan_t plan;
    pl_status_t status = PL_OK;

    if (array->layout->ns != move->ns || array->layout->nt != move->nt)
        return PL_ERR_INVALID;
    if (array->layout->kind == PL_KIND_OFFSETS)
        status = use_differences(array, &move->scratch[2 * (size_t)i], &source, &target);
    if (status != PL_OK)
        return status;
    status = pl_plan_make(array->layout, move->rank, &plan);
    if (status != PL_OK)
        return status;
    status = pl_exchange_add(&move->exchange, i, &plan, &source, &target);
    pl_plan_free(&plan);
    return status;
}

static pl_status_t prepare(move_t *move)
{
    pl_status_t status = pl_exchange_open(move->rank, move->count, &move->exchange);

    move->scratch = calloc(2 * (size_t)move->count + 1, sizeof *move->scratch);
    if (!move->scratch)
        status = PL_ERR_NOMEM;
    for (int i = 0; i < move->count && status == PL_OK; i++)
        status = add_array(move, i);
    return status == PL_OK ? pl_exchange_seal(&move->exchange) : status;
}

static void finish(move_t *move, pl_status_t status)
{
    for (int i = 0; move->scratch && i < move->count; i++) {
        void **scratch = &move->scratch[2 * (size_t)i];

        if (status == PL_OK && scratch[1])
            pl_offsets_sum(&move->arrays[i].target, move->arrays[i].layout->unit, scratch[1]);
        free(scratch[0]);
        free(scratch[1]);
    }
    free(move->scratch);
    pl_exchange_close(&move->exchange);
}

static pl_status_t find_method(const char *text, pl_method_t *method)
{
    *method = PL_METHOD_DEFAULT;
    if (!text || pl_method_parse(text, method) == PL_OK)
        return PL_OK;
    PL_ERROR("unknown method '%s', valid: %s", text, pl_method_names());
    return PL_ERR_INVALID;
}

pl_status_t pl_move_arrays(const char *method, const pl_array_t *arrays, int count, int ns, int nt,
                           MPI_Comm comm, pl_move_stats_t *stats)
{
    move_t move = {.arrays = arrays, .count = count, .ns = ns, .nt = nt};
    pl_move_stats_t moved = {0};
    pl_method_t number;

    if (find_method(method, &number) != PL_OK)
        return PL_ERR_INVALID;
    if (PMPI_Comm_rank(comm, &move.rank) != MPI_SUCCESS)
        return PL_ERR_MPI;
    pl_status_t status = methods[number](&move.exchange, prepare(&move), comm, &moved);
    moved.kept = move.exchange.kept;
    finish(&move, status);
    if (status == PL_OK && stats)
        *stats = moved;
    return status;
}
