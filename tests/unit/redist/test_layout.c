/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redist/layout.h"
#include "tests/redist/model.h"

enum { MOST_RANKS = 6, MOST_PROPOSALS = 24 };

typedef struct proposed {
    pl_layout_t *layouts;
    int count;
} proposed_t;

static proposed_t propose(int ns, const int64_t *source, int nt, const int64_t *target,
                          int64_t unit)
{
    pl_sizes_t sizes = {ns, nt, source, target};
    proposed_t proposed;

    assert_int_equal(pl_layout_propose(&sizes, unit, &proposed.layouts, &proposed.count), PL_OK);
    return proposed;
}

static proposed_t propose_model(const model_t *model, int ns, int nt)
{
    int64_t source[MOST_RANKS], target[MOST_RANKS];

    for (int r = 0; r < ns; r++)
        source[r] = model_bytes(model, ns, r);
    for (int r = 0; r < nt; r++)
        target[r] = model_bytes(model, nt, r);
    return propose(ns, source, nt, target, 0);
}

static void expect_kinds(int ns, const int64_t *source, int nt, const int64_t *target, int64_t unit,
                         const char *kinds)
{
    proposed_t proposed = propose(ns, source, nt, target, unit);
    char text[512] = "";

    for (int i = 0; i < proposed.count; i++) {
        const pl_layout_t *layout = &proposed.layouts[i];

        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %lld+%lld of %lld",
                 i ? ", " : "", pl_kind_text(layout->kind), (long long)layout->lo,
                 (long long)layout->hi, (long long)layout->unit);
    }
    assert_string_equal(text, kinds);
    pl_layout_free(proposed.layouts, proposed.count);
}

#define SIZES(...)                                                                                 \
    (const int64_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define EXPECT(...) expect_kinds(__VA_ARGS__)

static void sizes_propose(void **state)
{
    (void)state;
    /* equal sums, whatever the rule */
    EXPECT(2, SIZES(400, 400), 3, SIZES(272, 264, 264), 0, "block 0+0 of 8");
    EXPECT(2, SIZES(0, 36), 3, SIZES(12, 0, 24), 0, "block 0+0 of 4");
    EXPECT(1, SIZES(7), 2, SIZES(3, 4), 0, "block 0+0 of 1");
    /* 10 rows of 800 bytes, ceil(10/2) and ceil(10/4) each */
    EXPECT(2, SIZES(4000, 4000), 4, SIZES(2400, 2400, 2400, 2400), 0,
           "halo 50+50 of 8, halo 0+100 of 8, halo 100+0 of 8, padded block 0+0 of 8");
    /* rows of 80 bytes, 8 in all, one ghost row on either side: no other split than in whole rows
     */
    EXPECT(2, SIZES(480, 480), 4, SIZES(320, 320, 320, 320), 0,
           "halo 10+10 of 8, halo 0+20 of 8, halo 20+0 of 8, padded block 0+0 of 8");
    EXPECT(2, SIZES(480, 480), 4, SIZES(320, 320, 320, 320), 80,
           "halo 1+1 of 80, halo 0+2 of 80, halo 2+0 of 80");
    /* three ghost rows: thirds */
    EXPECT(2, SIZES(560, 560), 4, SIZES(400, 400, 400, 400), 0,
           "halo 15+15 of 8, halo 0+30 of 8, halo 30+0 of 8, halo 10+20 of 8, halo 20+10 of 8");
    /* one element more: row pointers or a ghost; with 4 bytes per element, or one float on either
     * side */
    EXPECT(2, SIZES(44, 44), 3, SIZES(32, 28, 32), 0,
           "halo 0+1 of 4, halo 1+0 of 4, halo 1+1 of 2, offsets 1+0 of 4");
    /* two elements more are no row pointers */
    EXPECT(2, SIZES(48, 48), 4, SIZES(28, 28, 28, 28), 0,
           "halo 1+1 of 4, halo 0+2 of 4, halo 2+0 of 4");
    EXPECT(2, SIZES(48, 48), 3, SIZES(40, 40, 24), 0,
           "halo 0+1 of 8, halo 1+0 of 8, halo 1+1 of 4, offsets 1+0 of 8");
}

static void sizes_refuse(void **state)
{
    (void)state;
    EXPECT(2, SIZES(0, 0), 3, SIZES(0, 0, 0), 0, "");
    EXPECT(2, SIZES(800, 800), 4, SIZES(800, 800, 800, 800), 0, ""); /* replicated */
    EXPECT(2, SIZES(16, 16), 4, SIZES(32, 32, 32, 32), 0, "");       /* a table */
    EXPECT(2, SIZES(12, 12), 3, SIZES(16, 16, 16), 0, "");           /* a table with one more */
    EXPECT(2, SIZES(400, 400), 4, SIZES(400, 400, 400, 440), 0, ""); /* weak scaling */
    EXPECT(2, SIZES(400, 400), 3, SIZES(272, 264, 264), 32, "");     /* a row they do not hold */

    pl_layout_t *layouts;
    int count;
    pl_sizes_t none = {0, 1, NULL, SIZES(8)}, negative = {1, 1, SIZES(-8), SIZES(8)},
               huge = {2, 1, SIZES(INT64_MAX, INT64_MAX), SIZES(8)};
    assert_int_equal(pl_layout_propose(&none, 0, &layouts, &count), PL_ERR_INVALID);
    assert_int_equal(pl_layout_propose(&negative, 0, &layouts, &count), PL_ERR_INVALID);
    assert_int_equal(pl_layout_propose(&huge, 0, &layouts, &count), PL_ERR_INVALID);
}

/* Fills both sides as the program would and counts target bytes that would come out wrong. */
static int64_t wrong_bytes(const pl_layout_t *layout, const model_t *model, int ns, int nt)
{
    unsigned char *source[MOST_RANKS], target[8192];
    int64_t wrong = 0;

    for (int r = 0; r < ns; r++) {
        source[r] = malloc((size_t)model_bytes(model, ns, r) + 1);
        assert_non_null(source[r]);
        model_fill(model, ns, r, source[r]);
    }
    for (int t = 0; t < nt; t++) {
        int64_t owned_from = model->kind == PL_KIND_HALO ? model->lo * model->unit : 0;
        int64_t owned_to =
            owned_from + (model_first(model, nt, t + 1) - model_first(model, nt, t)) * model->unit;

        model_fill(model, nt, t, target);
        for (int64_t b = 0; b < model_bytes(model, nt, t); b++) {
            bool valid = model->kind != PL_KIND_PADDED || b < owned_to, owned;
            int64_t from;
            int s;
            bool has = pl_layout_origin(layout, t, b, &s, &from, &owned);

            if (!valid)
                continue;
            if (!has || from < 0 || from >= model_bytes(model, ns, s) ||
                source[s][from] != target[b] || owned != (b >= owned_from && b < owned_to))
                wrong++;
        }
    }
    for (int r = 0; r < ns; r++)
        free(source[r]);
    return wrong;
}

/* For every kind of program the true layout is among the proposals and maps every byte. */
static void true_layout_is_proposed(void **state)
{
    static const pl_kind_t kinds[] = {PL_KIND_BLOCK, PL_KIND_PADDED, PL_KIND_HALO};
    static const int64_t units[] = {1, 4, 8, 12, 40};
    uint64_t random = 7;

    (void)state;
    for (int round = 0; round < 1500; round++) {
        model_t model = {.kind = kinds[round % 3], .seed = (uint64_t)round};
        int ns = 1 + (int)(model_random(&random) % MOST_RANKS);
        int nt = 1 + (int)(model_random(&random) % MOST_RANKS);
        int found = 0;

        model.rule =
            model.kind == PL_KIND_PADDED ? MODEL_CEIL : model_random(&random) % MODEL_RULES;
        model.n = 1 + (int64_t)(model_random(&random) % 60);
        model.unit = units[model_random(&random) % 5];
        model.lo = (int64_t)(model_random(&random) % 2);
        model.hi = round % 2 ? model.lo : 1 - model.lo;
        if (model.kind == PL_KIND_HALO && (ns == nt || model.lo + model.hi == 0))
            continue;
        proposed_t proposed = propose_model(&model, ns, nt);
        for (int i = 0; i < proposed.count; i++) {
            const pl_layout_t *layout = &proposed.layouts[i];
            bool same = model_is(&model, layout) ||
                        (model.kind == PL_KIND_PADDED && layout->kind == PL_KIND_BLOCK);

            /* where all sizes are equal (few elements), the padded block needs small units */
            if (same && model.kind != PL_KIND_PADDED)
                assert_int_equal(wrong_bytes(layout, &model, ns, nt), 0);
            found += same;
        }
        if (model.kind != PL_KIND_PADDED ||
            model_bytes(&model, ns, 0) != model_bytes(&model, nt, 0) || model.unit <= 8)
            assert_int_equal(found, 1);
        pl_layout_free(proposed.layouts, proposed.count);
    }
}

/* No two proposals say the same about every byte. */
static void proposals_differ(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int round = 0; round < 300; round++) {
        model_t model = {.kind = PL_KIND_HALO, .rule = MODEL_FRONT, .unit = round % 2 ? 8 : 24};
        int ns = 1 + round % 3, nt = ns + 1 + round % 2;

        model.n = 6 + (int64_t)(model_random(&random) % 30);
        model.lo = (int64_t)(model_random(&random) % 3);
        model.hi = 1;
        proposed_t proposed = propose_model(&model, ns, nt);
        assert_true(proposed.count > 1);
        for (int i = 0; i < proposed.count; i++) {
            for (int j = 0; j < i; j++) {
                const pl_layout_t *a = &proposed.layouts[i], *b = &proposed.layouts[j];
                int differences = a->kind != b->kind &&
                                  (a->kind == PL_KIND_OFFSETS || b->kind == PL_KIND_OFFSETS);

                for (int t = 0; t < nt; t++) {
                    for (int64_t at = 0; at < model_bytes(&model, nt, t); at++) {
                        int sa = -1, sb = -1;
                        int64_t fa = 0, fb = 0;
                        bool oa = false, ob = false;

                        pl_layout_origin(a, t, at, &sa, &fa, &oa);
                        pl_layout_origin(b, t, at, &sb, &fb, &ob);
                        differences += sa != sb || fa != fb || oa != ob;
                    }
                }
                assert_true(differences > 0);
            }
        }
        pl_layout_free(proposed.layouts, proposed.count);
    }
}

static uint64_t hash_side(const pl_layout_t *layout, const model_t *model, pl_side_t side, int np,
                          int flip_rank, int64_t flip_byte)
{
    uint64_t sum = 0;

    for (int r = 0; r < np; r++) {
        unsigned char memory[16384];
        pl_view_t view = {.base = memory, .bytes = model_bytes(model, np, r)};

        assert_true(view.bytes <= (int64_t)sizeof memory);
        model_fill(model, np, r, memory);
        if (r == flip_rank)
            memory[flip_byte] ^= 0x80;
        sum += pl_layout_hash(layout, side, r, &view);
    }
    return sum;
}

static void hash_is_the_arrays(void **state)
{
    static const model_t models[] = {
        {PL_KIND_BLOCK, MODEL_RAGGED, 1500, 8, 0, 0, 1},
        {PL_KIND_BLOCK, MODEL_FRONT, 77, 4, 0, 0, 2},
        {PL_KIND_BLOCK, MODEL_FRONT, 77, 1, 0, 0, 3},
        {PL_KIND_BLOCK, MODEL_BACK, 5, 6, 0, 0, 4},
        {PL_KIND_HALO, MODEL_FRONT, 91, 8, 1, 1, 5},
        {PL_KIND_OFFSETS, MODEL_FRONT, 91, 8, 0, 0, 6},
        {PL_KIND_OFFSETS, MODEL_RAGGED, 91, 4, 0, 0, 8},
        {PL_KIND_HALO, MODEL_BACK, 91, 12, 0, 1, 9},
    };

    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        const model_t *model = &models[m];
        model_t other = *model;
        proposed_t proposed = propose_model(model, 3, 5);
        int found = 0;

        other.seed += 2;
        for (int i = 0; i < proposed.count; i++) {
            const pl_layout_t *layout = &proposed.layouts[i];

            if (!model_is(model, layout))
                continue;
            found++;
            uint64_t source = hash_side(layout, model, PL_SOURCE, 3, -1, 0);
            assert_true(source == hash_side(layout, model, PL_TARGET, 5, -1, 0));
            int64_t inside = pl_layout_skip(layout) + layout->unit - 1;
            int owner = 4;
            while (pl_layout_owned_count(layout, PL_TARGET, owner) == 0)
                owner--;
            assert_true(source != hash_side(layout, model, PL_TARGET, 5, owner, inside));
            if (model->rule != MODEL_RAGGED) /* whose cuts depend on the seed */
                assert_true(source != hash_side(layout, &other, PL_TARGET, 5, -1, 0));
        }
        assert_int_equal(found, 1);
        pl_layout_free(proposed.layouts, proposed.count);
    }
}

/* Differences in high bits only, twice, as two changed signs are: a plain weighted sum loses them.
 */
static void hash_sees_high_bits(void **state)
{
    double values[64], changed[64];
    proposed_t proposed = propose(1, SIZES(512), 1, SIZES(512), 0);
    pl_view_t view = {.base = values, .bytes = 512}, other = {.base = changed, .bytes = 512};

    (void)state;
    for (int i = 0; i < 64; i++)
        values[i] = i % 4;
    uint64_t hash = pl_layout_hash(&proposed.layouts[0], PL_SOURCE, 0, &view);
    for (int i = 0; i < 64; i++) {
        for (int j = 0; j < i; j++) {
            memcpy(changed, values, sizeof values);
            changed[i] = -changed[i];
            changed[j] = -changed[j];
            assert_true(pl_layout_hash(&proposed.layouts[0], PL_SOURCE, 0, &other) != hash);
            memcpy(changed, values, sizeof values);
            changed[i] = values[j];
            changed[j] = values[i];
            if (values[i] != values[j])
                assert_true(pl_layout_hash(&proposed.layouts[0], PL_SOURCE, 0, &other) != hash);
        }
    }
    pl_layout_free(proposed.layouts, proposed.count);
}

static void copies_outlive_the_list(void **state)
{
    proposed_t proposed = propose(2, SIZES(480, 480), 4, SIZES(320, 320, 320, 320), 80);
    pl_layout_t copy;

    (void)state;
    pl_layout_copy(&proposed.layouts[2], &copy);
    pl_layout_free(proposed.layouts, proposed.count);
    assert_int_equal(pl_layout_owned_first(&copy, PL_TARGET, 3), 6);
    assert_int_equal(pl_layout_owned_count(&copy, PL_SOURCE, 1), 4);
    pl_layout_drop(&copy);
}

static void views_of_rows(void **state)
{
    char first[] = "abc", second[] = "def", third[] = "ghi", out[10] = "";
    void *rows[] = {first, second, third};
    pl_view_t view = {.rows = rows, .row_bytes = 3, .bytes = 9}, flat = {.base = out, .bytes = 9};
    int64_t run;

    (void)state;
    assert_ptr_equal(pl_view_at(&view, 4, &run), second + 1);
    assert_int_equal(run, 2);
    assert_null(pl_view_at(&view, 9, &run));
    assert_int_equal(run, 0);
    assert_null(pl_view_at(&view, -1, NULL));
    pl_view_read(&view, 2, out, 5);
    assert_string_equal(out, "cdefg");
    pl_view_write(&view, 1, "12345", 5);
    pl_view_copy(&flat, 0, &view, 0, 9);
    assert_string_equal(out, "a12345ghi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_propose),           cmocka_unit_test(sizes_refuse),
        cmocka_unit_test(true_layout_is_proposed), cmocka_unit_test(proposals_differ),
        cmocka_unit_test(hash_is_the_arrays),      cmocka_unit_test(hash_sees_high_bits),
        cmocka_unit_test(copies_outlive_the_list), cmocka_unit_test(views_of_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
