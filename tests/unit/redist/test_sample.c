/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <time.h>

#include "redist/check.h"
#include "redist/sample.h"
#include "tests/redist/model.h"

enum { MOST_RANKS = 6, MOST_SAMPLES = 64 };

static void short_arrays_are_taken_whole(void **state)
{
    unsigned char memory[13] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    pl_view_t view = {.base = memory, .bytes = 13};
    pl_sample_t samples[8];

    (void)state;
    assert_int_equal(pl_sample_take(&view, samples, 8), 4);
    assert_int_equal(samples[1].offset, 4);
    assert_true(samples[0].value == UINT64_C(0x0807060504030201));
    assert_true(samples[2].value == UINT64_C(0x0d0c0b0a09)); /* zeros beyond the end */
    assert_true(samples[3].value == 13);
    view.bytes = 0;
    assert_int_equal(pl_sample_take(&view, samples, 8), 0);
}

/* 100,000 zeros with one step and three odd values: all of those are found. */
static void telling_places_are_found(void **state)
{
    enum { CELLS = 100000, SAMPLES = 64 };
    static double memory[CELLS];
    pl_view_t view = {.base = memory, .bytes = sizeof memory};
    pl_sample_t samples[SAMPLES], again[SAMPLES];
    int odd = 0, step = 0;

    (void)state;
    for (int i = 77777; i < CELLS; i++)
        memory[i] = 5;
    memory[123] = 1;
    memory[45678] = 2;
    memory[99000] = 3;
    int count = pl_sample_take(&view, samples, SAMPLES);
    assert_true(count > SAMPLES / 2 && count <= SAMPLES);
    for (int i = 0; i < count; i++) {
        double value;

        memcpy(&value, &samples[i].value, 8);
        assert_true(value == memory[samples[i].offset / 8]);
        assert_true(i == 0 || samples[i].offset > samples[i - 1].offset);
        odd += value != 0 && value != 5;
        step += samples[i].offset / 8 == 77776 || samples[i].offset / 8 == 77777;
    }
    assert_int_equal(odd, 3);
    assert_int_equal(step, 2);
    assert_int_equal(samples[0].offset, 0);
    assert_int_equal(samples[count - 1].offset, sizeof memory - 8);
    assert_int_equal(pl_sample_take(&view, again, SAMPLES), count);
    assert_memory_equal(samples, again, (size_t)count * sizeof *samples);
}

/* Where the value changes everywhere, the rare ones are still found. */
static void rare_values_are_found(void **state)
{
    enum { CELLS = 100000, SAMPLES = 64 };
    static int64_t memory[CELLS];
    pl_view_t view = {.base = memory, .bytes = sizeof memory};
    pl_sample_t samples[SAMPLES];
    int rare = 0;

    (void)state;
    for (int i = 0; i < CELLS; i++)
        memory[i] = i % 4;
    for (int i = 1; i <= 5; i++)
        memory[i * 15999] = 100 + i;
    int count = pl_sample_take(&view, samples, SAMPLES);
    for (int i = 0; i < count; i++)
        rare += samples[i].value > 100;
    assert_int_equal(rare, 5);
}

/* 64 GiB of address space with nothing in it: looking at all of it would take minutes. */
static void long_arrays_take_bounded_time(void **state)
{
    int64_t bytes = INT64_C(64) << 30;
    void *memory =
        mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pl_view_t view = {.base = memory, .bytes = bytes};
    pl_sample_t samples[256];
    struct timespec start, end;

    (void)state;
    assert_true(memory != MAP_FAILED);
    clock_gettime(CLOCK_MONOTONIC, &start);
    int count = pl_sample_take(&view, samples, 256);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(count > 128);
    assert_true(samples[count / 2].offset > bytes / 4 && samples[count / 2].offset < bytes / 4 * 3);
    assert_true(end.tv_sec - start.tv_sec < 5);
    munmap(memory, (size_t)bytes);
}

/* A whole set-up on ns and on nt processes, with samples of the sources. */
typedef struct scene {
    int ns, nt;
    unsigned char *source[MOST_RANKS], *target[MOST_RANKS];
    int64_t source_bytes[MOST_RANKS], target_bytes[MOST_RANKS];
    pl_sample_t taken[MOST_RANKS][MOST_SAMPLES];
    const pl_sample_t *samples[MOST_RANKS];
    int counts[MOST_RANKS];
    pl_layout_t *layouts;
    int count;
} scene_t;

static void open_scene(scene_t *scene, const model_t *model, int ns, int nt)
{
    scene->ns = ns;
    scene->nt = nt;
    for (int r = 0; r < ns; r++) {
        scene->source_bytes[r] = model_bytes(model, ns, r);
        scene->source[r] = calloc(1, (size_t)scene->source_bytes[r] + 1);
        model_fill(model, ns, r, scene->source[r]);
    }
    for (int r = 0; r < nt; r++) {
        scene->target_bytes[r] = model_bytes(model, nt, r);
        scene->target[r] = calloc(1, (size_t)scene->target_bytes[r] + 1);
        model_fill(model, nt, r, scene->target[r]);
    }
}

static void sample_scene(scene_t *scene)
{
    pl_sizes_t sizes = {scene->ns, scene->nt, scene->source_bytes, scene->target_bytes};

    for (int r = 0; r < scene->ns; r++) {
        pl_view_t view = {.base = scene->source[r], .bytes = scene->source_bytes[r]};

        scene->counts[r] = pl_sample_take(&view, scene->taken[r], MOST_SAMPLES);
        scene->samples[r] = scene->taken[r];
    }
    assert_int_equal(pl_layout_propose(&sizes, 0, &scene->layouts, &scene->count), PL_OK);
}

static void close_scene(scene_t *scene)
{
    for (int r = 0; r < scene->ns; r++)
        free(scene->source[r]);
    for (int r = 0; r < scene->nt; r++)
        free(scene->target[r]);
    pl_layout_free(scene->layouts, scene->count);
}

static pl_check_t check_scene(const scene_t *scene, const pl_layout_t *layout)
{
    pl_check_t sum = {0};

    for (int t = 0; t < scene->nt; t++) {
        pl_view_t view = {.base = scene->target[t], .bytes = scene->target_bytes[t]};
        pl_check_t part;

        pl_layout_check(layout, scene->samples, scene->counts, t, &view, &part);
        sum.agree += part.agree;
        sum.distinct_agree += part.distinct_agree;
        sum.disagree += part.disagree;
        sum.ghost_agree += part.ghost_agree;
        sum.ghost_disagree += part.ghost_disagree;
    }
    return sum;
}

static const pl_layout_t *layout_of(const scene_t *scene, const model_t *model)
{
    for (int i = 0; i < scene->count; i++)
        if (model_is(model, &scene->layouts[i]))
            return &scene->layouts[i];
    return NULL;
}

/* Position-coded arrays: the true layout agrees in every sample; a kind whose mapping is another
 * one (ghosts that are fresh make the splits of a halo alike) does not. */
static void data_decide(void **state)
{
    static const model_t models[] = {
        {PL_KIND_BLOCK, MODEL_FRONT, 1003, 8, 0, 0, 1},
        {PL_KIND_BLOCK, MODEL_RAGGED, 333, 4, 0, 0, 2},
        {PL_KIND_BLOCK, MODEL_BACK, 333, 1, 0, 0, 3},
        {PL_KIND_HALO, MODEL_FRONT, 500, 8, 1, 1, 4},
        {PL_KIND_HALO, MODEL_BACK, 50, 40, 0, 1, 5},
        {PL_KIND_HALO, MODEL_FRONT, 1001, 4, 1, 0, 6},
        {PL_KIND_OFFSETS, MODEL_FRONT, 1001, 4, 0, 0, 7},
        {PL_KIND_OFFSETS, MODEL_FRONT, 1001, 8, 0, 0, 8},
        {PL_KIND_PADDED, MODEL_CEIL, 1002, 8, 0, 0, 10},
    };

    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        static scene_t scene;

        open_scene(&scene, &models[m], 2, 5);
        sample_scene(&scene);
        const pl_layout_t *truth = layout_of(&scene, &models[m]);
        assert_non_null(truth);
        for (int i = 0; i < scene.count; i++) {
            const pl_layout_t *layout = &scene.layouts[i];
            pl_check_t check = check_scene(&scene, layout);

            if (layout == truth) {
                assert_int_equal(check.disagree, 0);
                assert_true(check.agree >= 30);
                assert_true(check.distinct_agree >= (truth->kind == PL_KIND_OFFSETS ? 10 : 30));
            } else if (layout->kind != truth->kind) {
                assert_true(check.disagree > 10);
            }
        }
        close_scene(&scene);
    }
}

/* One target cell that is not what the source's sample says is seen. */
static void one_wrong_cell_is_seen(void **state)
{
    static const model_t model = {PL_KIND_BLOCK, MODEL_FRONT, 40, 8, 0, 0, 9};
    static scene_t scene;

    (void)state;
    open_scene(&scene, &model, 2, 3);
    sample_scene(&scene); /* short: all cells */
    for (int t = 0; t < 3; t++) {
        for (int64_t b = 0; b < scene.target_bytes[t]; b++) {
            scene.target[t][b] ^= 0x10;
            pl_check_t check = check_scene(&scene, &scene.layouts[0]);
            assert_int_equal(check.disagree, b % 8 < 3 ? check.disagree : 1);
            assert_int_equal(check.agree + check.disagree, 40);
            scene.target[t][b] ^= 0x10;
        }
    }
    close_scene(&scene);
}

/* Samples of 8 bytes that a boundary cuts are compared up to it, and every one counts. */
static void boundaries_cut_samples(void **state)
{
    static const model_t models[] = {
        {PL_KIND_BLOCK, MODEL_FRONT, 34, 4, 0, 0, 13},
        {PL_KIND_BLOCK, MODEL_BALANCED, 98, 2, 0, 0, 14},
        {PL_KIND_BLOCK, MODEL_BALANCED, 101, 1, 0, 0, 15},
    };

    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        static scene_t scene;

        open_scene(&scene, &models[m], 2, 5);
        sample_scene(&scene);
        pl_check_t check = check_scene(&scene, &scene.layouts[0]);
        assert_int_equal(check.agree, scene.counts[0] + scene.counts[1]);
        assert_int_equal(check.disagree, 0);
        close_scene(&scene);
    }
}

/* Rows of 5 floats, each sampled by itself: what a sample holds beyond its row is not compared. */
static void rows_sampled_one_by_one(void **state)
{
    static const model_t model = {PL_KIND_BLOCK, MODEL_FRONT, 7, 20, 0, 0, 17};
    static scene_t scene;

    (void)state;
    open_scene(&scene, &model, 2, 3);
    sample_scene(&scene);
    for (int s = 0; s < 2; s++) {
        scene.counts[s] = 0;
        for (int64_t row = 0; row < scene.source_bytes[s]; row += 20) {
            pl_view_t view = {.base = scene.source[s] + row, .bytes = 20};
            pl_sample_t *samples = scene.taken[s] + scene.counts[s];
            int count = pl_sample_take(&view, samples, 8);

            for (int i = 0; i < count; i++)
                samples[i].offset += row;
            scene.counts[s] += count;
        }
    }
    pl_sizes_t sizes = {2, 3, scene.source_bytes, scene.target_bytes};
    pl_layout_free(scene.layouts, scene.count);
    assert_int_equal(pl_layout_propose(&sizes, 20, &scene.layouts, &scene.count), PL_OK);
    pl_check_t check = check_scene(&scene, &scene.layouts[0]);
    assert_int_equal(check.agree, 7 * 5);
    assert_int_equal(check.disagree, 0);
    close_scene(&scene);
}

/* 9 rows of 3 doubles in 5 + 5 and in 3 + 3 + 3 + 3: what a tenth row holds is nobody's. */
static void padding_may_differ(void **state)
{
    static const model_t model = {PL_KIND_PADDED, MODEL_CEIL, 9, 24, 0, 0, 16};
    static scene_t scene;

    (void)state;
    open_scene(&scene, &model, 2, 4);
    memset(scene.source[1] + 4 * 24, 1, 24);
    memset(scene.target[3], 2, 3 * 24);
    sample_scene(&scene);
    const pl_layout_t *layout = layout_of(&scene, &model);
    assert_non_null(layout);
    pl_check_t check = check_scene(&scene, layout);
    assert_int_equal(check.agree, 9 * 3);
    assert_int_equal(check.disagree, 0);
    assert_int_equal(check.ghost_disagree, 3);
    memset(scene.target[2], 2, 8); /* that one is somebody's */
    assert_int_equal(check_scene(&scene, layout).disagree, 1);
    close_scene(&scene);
}

/* Ghosts that set-up left empty: only the true split of the halo owns none of them. */
static void stale_ghosts_tell_the_split(void **state)
{
    static const model_t model = {PL_KIND_HALO, MODEL_FRONT, 60, 8, 1, 1, 11};
    static scene_t scene;

    (void)state;
    open_scene(&scene, &model, 2, 4);
    for (int r = 0; r < 2; r++) {
        memset(scene.source[r], 0, 8);
        memset(scene.source[r] + scene.source_bytes[r] - 8, 0, 8);
    }
    for (int r = 0; r < 4; r++) {
        memset(scene.target[r], 0, 8);
        memset(scene.target[r] + scene.target_bytes[r] - 8, 0, 8);
    }
    sample_scene(&scene);
    int splits = 0;
    for (int i = 0; i < scene.count; i++) {
        const pl_layout_t *layout = &scene.layouts[i];
        pl_check_t check = check_scene(&scene, layout);

        if (layout->kind != PL_KIND_HALO || layout->unit != 8)
            continue;
        splits++;
        if (model_is(&model, layout)) {
            assert_int_equal(check.disagree, 0);
            assert_int_equal(check.ghost_agree, 2);    /* the physical boundary */
            assert_int_equal(check.ghost_disagree, 2); /* between the two sources */
        } else {
            assert_true(check.disagree > 0);
        }
    }
    assert_int_equal(splits, 3);
    close_scene(&scene);
}

/* An array of one value agrees with everything and tells nothing. */
static void constant_arrays_tell_nothing(void **state)
{
    static const model_t model = {PL_KIND_BLOCK, MODEL_FRONT, 500, 8, 0, 0, 12};
    static scene_t scene;

    (void)state;
    open_scene(&scene, &model, 3, 2);
    for (int r = 0; r < 3; r++)
        memset(scene.source[r], 7, (size_t)scene.source_bytes[r]);
    for (int r = 0; r < 2; r++)
        memset(scene.target[r], 7, (size_t)scene.target_bytes[r]);
    sample_scene(&scene);
    pl_check_t check = check_scene(&scene, &scene.layouts[0]);
    assert_true(check.agree > 90);
    assert_int_equal(check.distinct_agree + check.disagree, 0);
    close_scene(&scene);
}

static uint64_t bits(double value)
{
    uint64_t result;

    memcpy(&result, &value, 8);
    return result;
}

static uint64_t float_bits(float low, float high)
{
    uint32_t halves[2];
    uint64_t result;

    memcpy(&halves[0], &low, 4);
    memcpy(&halves[1], &high, 4);
    memcpy(&result, halves, 8);
    return result;
}

static void near_values(void **state)
{
    (void)state;
    assert_true(pl_near(bits(1.0), bits(1.0 + 1e-12)));
    assert_true(pl_near(bits(-3e20), bits(-3e20 * (1 + 1e-10))));
    assert_false(pl_near(bits(1.0), bits(1.0 + 1e-7)));
    assert_false(pl_near(bits(1.0), bits(-1.0)));
    assert_false(pl_near(bits(0.0), bits(1e-300)));
    assert_true(pl_near(float_bits(1.5f, 2.5f), float_bits(1.5f, 2.5f * (1 + 2e-7f))));
    assert_false(pl_near(float_bits(1.5f, 2.5f), float_bits(1.5f, 2.5001f)));
    assert_false(pl_near(41, 42));
    assert_false(pl_near(UINT64_C(0x0020000000000001), UINT64_C(0x0020000000000002)));
    assert_false(pl_near((uint64_t)-41, (uint64_t)-42));
    assert_false(pl_near(UINT64_C(0x7ff8000000000001), UINT64_C(0x7ff8000000000002))); /* NaN */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_arrays_are_taken_whole),
        cmocka_unit_test(telling_places_are_found),
        cmocka_unit_test(rare_values_are_found),
        cmocka_unit_test(long_arrays_take_bounded_time),
        cmocka_unit_test(data_decide),
        cmocka_unit_test(one_wrong_cell_is_seen),
        cmocka_unit_test(boundaries_cut_samples),
        cmocka_unit_test(rows_sampled_one_by_one),
        cmocka_unit_test(padding_may_differ),
        cmocka_unit_test(stale_ghosts_tell_the_split),
        cmocka_unit_test(constant_arrays_tell_nothing),
        cmocka_unit_test(near_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
