/* SPDX-License-Identifier: MIT */
#include "tests/redist/model.h"

#include <string.h>

uint64_t model_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t code(const model_t *model, int64_t a, int64_t b)
{
    uint64_t state = model->seed * 1000003 + (uint64_t)a * 8191 + (uint64_t)b;

    return model_random(&state);
}

static int64_t ragged_weight(const model_t *model, int np, int rank)
{
    uint64_t state = model->seed + (uint64_t)np * 131 + (uint64_t)rank;
    uint64_t weight = model_random(&state) % 5;

    return (int64_t)weight + (rank == np / 2);
}

static int64_t ragged_first(const model_t *model, int np, int rank)
{
    int64_t before = 0, all = 0;

    for (int r = 0; r < np; r++) {
        int64_t weight = ragged_weight(model, np, r);

        all += weight;
        before += r < rank ? weight : 0;
    }
    return model->n * before / all;
}

int64_t model_first(const model_t *model, int np, int rank)
{
    int64_t n = model->n, each = n / np, rest = n % np;

    switch (model->rule) {
    case MODEL_FRONT:
        return rank * each + (rank < rest ? rank : rest);
    case MODEL_BACK:
        return rank == np ? n : rank * each;
    case MODEL_CEIL:
        each = (n + np - 1) / np;
        return rank * each < n ? rank * each : n;
    case MODEL_RAGGED:
        return ragged_first(model, np, rank);
    case MODEL_LAST:
        return rank == np ? n : 0;
    default:
        return n * rank / np;
    }
}

int64_t model_bytes(const model_t *model, int np, int rank)
{
    int64_t owned = model_first(model, np, rank + 1) - model_first(model, np, rank);

    if (model->kind == PL_KIND_PADDED)
        owned = (model->n + np - 1) / np;
    else if (model->kind == PL_KIND_HALO)
        owned += model->lo + model->hi;
    else if (model->kind == PL_KIND_OFFSETS)
        owned++;
    return owned * model->unit;
}

static void fill_offsets(const model_t *model, int64_t first, int64_t bytes, char *memory)
{
    uint64_t value = model->seed % 2; /* row pointers from 0, or from 1 as in Fortran */

    for (int64_t i = 0; i < bytes / model->unit; i++) {
        memcpy(memory + i * model->unit, &value, (size_t)model->unit);
        value += code(model, first + i, 0) % 7;
    }
}

void model_fill(const model_t *model, int np, int rank, void *memory)
{
    int64_t first = model_first(model, np, rank), end = model_first(model, np, rank + 1);
    int64_t bytes = model_bytes(model, np, rank);
    unsigned char *out = memory;

    if (model->kind == PL_KIND_OFFSETS) {
        fill_offsets(model, first, bytes, memory);
        return;
    }
    if (model->kind == PL_KIND_HALO)
        first -= model->lo;
    for (int64_t i = 0; i < bytes; i++) {
        int64_t unit = first + i / model->unit;
        bool padding = model->kind == PL_KIND_PADDED && unit >= end;

        out[i] = padding ? MODEL_UNTOUCHED : (unsigned char)code(model, unit, i % model->unit);
    }
}

bool model_is(const model_t *model, const pl_layout_t *layout)
{
    int64_t lo = layout->lo * layout->unit, hi = layout->hi * layout->unit;

    if (layout->kind != model->kind)
        return false;
    return model->kind != PL_KIND_HALO ||
           (lo == model->lo * model->unit && hi == model->hi * model->unit);
}
