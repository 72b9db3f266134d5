/* SPDX-License-Identifier: MIT
 * Moves arrays of every layout between every NS and NT up to the number of processes, with roomy
 * and with tiny rounds, and compares every byte. Prints the first difference and fails. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/methods.h"
#include "redist/move.h"
#include "redist/plan.h"
#include "tests/redist/model.h"

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                                 \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            fflush(stdout);                                                                        \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

typedef struct sample_array {
    model_t model;
    bool rows; /* one allocation per unit */
} sample_array_t;

static const sample_array_t samples[] = {
    {{PL_KIND_BLOCK, MODEL_FRONT, 1003, 8, 0, 0, 1}, false},
    {{PL_KIND_BLOCK, MODEL_BACK, 1003, 4, 0, 0, 2}, false},
    {{PL_KIND_BLOCK, MODEL_BALANCED, 517, 1, 0, 0, 3}, false},
    {{PL_KIND_BLOCK, MODEL_RAGGED, 777, 12, 0, 0, 4}, false},
    {{PL_KIND_BLOCK, MODEL_LAST, 50, 8, 0, 0, 5}, false},
    {{PL_KIND_BLOCK, MODEL_FRONT, 2, 8, 0, 0, 6}, false}, /* fewer elements than ranks */
    {{PL_KIND_BLOCK, MODEL_FRONT, 101, 40, 0, 0, 7}, false},
    {{PL_KIND_BLOCK, MODEL_BALANCED, 61, 40, 0, 0, 8}, true},
    {{PL_KIND_PADDED, MODEL_CEIL, 1001, 8, 0, 0, 9}, false},
    {{PL_KIND_PADDED, MODEL_CEIL, 10, 24, 0, 0, 10}, false},
    {{PL_KIND_PADDED, MODEL_CEIL, 2, 8, 0, 0, 11}, false},
    {{PL_KIND_HALO, MODEL_FRONT, 401, 8, 1, 1, 12}, false},
    {{PL_KIND_HALO, MODEL_FRONT, 401, 8, 0, 1, 13}, false},
    {{PL_KIND_HALO, MODEL_BACK, 401, 4, 2, 0, 14}, false},
    {{PL_KIND_HALO, MODEL_RAGGED, 90, 56, 1, 1, 15}, false},
    {{PL_KIND_HALO, MODEL_BALANCED, 33, 72, 2, 1, 16}, true},
    {{PL_KIND_HALO, MODEL_FRONT, 3, 8, 1, 1, 17}, false},
    {{PL_KIND_HALO, MODEL_FRONT, 7, 8, 3, 3, 18}, false}, /* ghosts from beyond the neighbour */
    {{PL_KIND_OFFSETS, MODEL_FRONT, 301, 4, 0, 0, 19}, false},
    {{PL_KIND_OFFSETS, MODEL_RAGGED, 301, 8, 0, 0, 20}, false},
    {{PL_KIND_OFFSETS, MODEL_FRONT, 2, 4, 0, 0, 21}, false},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

typedef struct held {
    pl_layout_t layout;
    void **source_rows, **target_rows;
    bool block_for_padded; /* both allocations are equally long: the padding moves as well */
} held_t;

static int rank, processes;

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes + 1);

    CHECK(memory, "%zu bytes", bytes);
    memset(memory, MODEL_UNTOUCHED, bytes + 1);
    return memory;
}

/* Memory for an array of so many bytes, row by row if wanted. */
static pl_view_t make_view(const sample_array_t *sample, int64_t bytes, void ***rows)
{
    pl_view_t view = {.bytes = bytes};

    if (!sample->rows) {
        view.base = allocate((size_t)bytes);
        return view;
    }
    int64_t count = bytes / sample->model.unit;
    *rows = allocate((size_t)count * sizeof **rows);
    for (int64_t i = 0; i < count; i++)
        (*rows)[i] = allocate((size_t)sample->model.unit);
    view.rows = *rows;
    view.row_bytes = sample->model.unit;
    return view;
}

static void free_view(pl_view_t *view, void **rows)
{
    for (int64_t i = 0; rows && i < view->bytes / view->row_bytes; i++)
        free(rows[i]);
    free(rows);
    free(view->base);
}

static bool choose_layout(const sample_array_t *sample, int ns, int nt, held_t *held)
{
    int64_t source[8], target[8];
    pl_sizes_t sizes = {ns, nt, source, target};
    pl_layout_t *layouts;
    int count;
    bool found = false;

    for (int r = 0; r < ns; r++)
        source[r] = model_bytes(&sample->model, ns, r);
    for (int r = 0; r < nt; r++)
        target[r] = model_bytes(&sample->model, nt, r);
    int64_t unit = sample->rows ? sample->model.unit : 0;
    CHECK(pl_layout_propose(&sizes, unit, &layouts, &count) == PL_OK, "array %d",
          (int)(sample - samples));
    for (int i = 0; i < count && !found; i++) {
        held->block_for_padded =
            sample->model.kind == PL_KIND_PADDED && layouts[i].kind == PL_KIND_BLOCK;
        found = held->block_for_padded || model_is(&sample->model, &layouts[i]);
        if (found)
            pl_layout_copy(&layouts[i], &held->layout);
    }
    pl_layout_free(layouts, count);
    return found;
}

static void fill(const model_t *model, int np, const pl_view_t *view)
{
    void *memory = allocate((size_t)view->bytes);

    model_fill(model, np, rank, memory);
    pl_view_write(view, 0, memory, view->bytes);
    free(memory);
}

static void prepare(const sample_array_t *sample, int ns, int nt, held_t *held, pl_array_t *array)
{
    const model_t *model = &sample->model;

    *array = (pl_array_t){.layout = &held->layout};
    if (rank < ns) {
        array->source = make_view(sample, model_bytes(model, ns, rank), &held->source_rows);
        fill(model, ns, &array->source);
    }
    if (rank < nt) {
        array->target = make_view(sample, model_bytes(model, nt, rank), &held->target_rows);
        if (model->kind == PL_KIND_OFFSETS) { /* the base is the target's own */
            uint64_t base = model->seed % 2;

            pl_view_write(&array->target, 0, &base, model->unit);
        }
    }
}

static void compare(const sample_array_t *sample, int ns, int nt, const held_t *held,
                    const pl_array_t *array)
{
    const model_t *model = &sample->model;
    int64_t bytes = array->target.bytes, compared = bytes;
    unsigned char *expected = allocate((size_t)bytes), *got = allocate((size_t)bytes);

    if (rank < nt)
        model_fill(model, nt, rank, expected);
    pl_view_read(&array->target, 0, got, bytes);
    if (held->block_for_padded)
        compared = (model_first(model, nt, rank + 1) - model_first(model, nt, rank)) * model->unit;
    for (int64_t i = 0; i < compared; i++) {
        bool filler = model->kind == PL_KIND_PADDED && expected[i] == MODEL_UNTOUCHED;

        CHECK(got[i] == expected[i] || filler,
              "array %d, %d to %d, rank %d, byte %lld of %lld: %d, not %d", (int)(sample - samples),
              ns, nt, rank, (long long)i, (long long)bytes, got[i], expected[i]);
    }
    free(expected);
    free(got);
}

static void check_stats(const pl_array_t *arrays, int count, const pl_move_stats_t *stats)
{
    int64_t kept = 0, received = 0, all[2] = {stats->sent, stats->received};
    pl_plan_t plan;

    for (int i = 0; i < count; i++) {
        CHECK(pl_plan_make(arrays[i].layout, rank, &plan) == PL_OK, "array %d", i);
        kept += plan.kept;
        received += plan.moved;
        pl_plan_free(&plan);
    }
    CHECK(kept == stats->kept && received == stats->received, "%lld %lld", (long long)stats->kept,
          (long long)stats->received);
    PMPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[0] == all[1], "%lld sent, %lld received", (long long)all[0], (long long)all[1]);
}

/* One resize of all arrays; returns how many there were. */
static int resize(int ns, int nt, pl_move_stats_t *stats)
{
    static held_t held[SAMPLES];
    const sample_array_t *used[SAMPLES];
    pl_array_t arrays[SAMPLES];
    int count = 0;

    for (int i = 0; i < SAMPLES; i++) {
        held[count] = (held_t){0};
        if (!choose_layout(&samples[i], ns, nt, &held[count]))
            continue;
        prepare(&samples[i], ns, nt, &held[count], &arrays[count]);
        used[count++] = &samples[i];
    }
    CHECK(pl_move_arrays("col", arrays, count, ns, nt, MPI_COMM_WORLD, stats) == PL_OK, "%d to %d",
          ns, nt);
    check_stats(arrays, count, stats);
    for (int i = 0; i < count; i++) {
        compare(used[i], ns, nt, &held[i], &arrays[i]);
        free_view(&arrays[i].source, held[i].source_rows);
        free_view(&arrays[i].target, held[i].target_rows);
        pl_layout_drop(&held[i].layout);
    }
    return count;
}

static void resize_all_ways(void)
{
    int64_t chunk = pl_move_chunk_bytes, buffer = pl_move_buffer_bytes;
    pl_move_stats_t roomy, chunked, tiny;

    for (int ns = 1; ns <= processes; ns++) {
        for (int nt = 1; nt <= processes; nt++) {
            int count = resize(ns, nt, &roomy);

            /* Surplus is seen only where the number of processes changes. */
            CHECK(ns == nt ? count >= 11 : count == SAMPLES, "%d arrays, %d to %d", count, ns, nt);
            pl_move_chunk_bytes = 1021;
            resize(ns, nt, &chunked);
            pl_move_chunk_bytes = chunk;
            pl_move_buffer_bytes = 601;
            resize(ns, nt, &tiny);
            pl_move_buffer_bytes = buffer;
            CHECK(chunked.rounds > roomy.rounds || roomy.rounds == 0, "%d", chunked.rounds);
            CHECK(tiny.rounds > chunked.rounds || roomy.rounds == 0, "%d", tiny.rounds);
            CHECK(ns == nt || roomy.rounds == 1, "%d", roomy.rounds);
        }
    }
}

/* What one rank alone sees wrong is the result of all, and nobody waits. */
static void refuse_short_views(void)
{
    held_t held = {0};
    pl_array_t array;
    int nt = processes > 1 ? processes - 1 : 1;

    CHECK(choose_layout(&samples[0], processes, nt, &held), "block");
    prepare(&samples[0], processes, nt, &held, &array);
    CHECK(pl_move_arrays("cool", &array, 1, processes, nt, MPI_COMM_WORLD, NULL) == PL_ERR_INVALID,
          "method");
    CHECK(pl_move_arrays(NULL, &array, 1, processes + 1, nt, MPI_COMM_WORLD, NULL) ==
              PL_ERR_INVALID,
          "another number of sources");
    if (rank == 0)
        array.target.bytes--;
    CHECK(pl_move_arrays(NULL, &array, 1, processes, nt, MPI_COMM_WORLD, NULL) == PL_ERR_INVALID,
          "rank %d", rank);
    free_view(&array.source, NULL);
    free_view(&array.target, NULL);
    pl_layout_drop(&held.layout);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    CHECK(processes <= 8, "at most 8 processes, not %d", processes);
    resize_all_ways();
    refuse_short_views();
    MPI_Finalize();
    return 0;
}
