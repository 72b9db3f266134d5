/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "redist/plan.h"
#include "tests/redist/model.h"

enum { MOST_RANKS = 7 };

static int64_t target_bytes(const pl_layout_t *layout, int target)
{
    return (pl_layout_owned_count(layout, PL_TARGET, target) + layout->lo + layout->hi) *
           layout->unit;
}

/* The piece `from` sends to `to`, or NULL. */
static const pl_piece_t *sent(const pl_plan_t *from, int to)
{
    for (int i = 0; i < from->sends; i++)
        if (from->send[i].peer == to)
            return &from->send[i];
    return NULL;
}

static void check_rising(const pl_piece_t *pieces, int count)
{
    for (int i = 0; i < count; i++) {
        assert_true(pieces[i].bytes > 0);
        if (i)
            assert_true(pieces[i].peer > pieces[i - 1].peer);
    }
}

/* Every byte of a target comes from where pl_layout_origin says, once, and nothing else comes. */
static void check_target(const pl_layout_t *layout, const pl_plan_t *plans, int target)
{
    const pl_plan_t *plan = &plans[target];
    int64_t bytes = target_bytes(layout, target), received = 0, expected = 0;
    int source;
    int64_t from;
    bool owned;

    for (int i = 0; i < plan->recvs; i++) {
        const pl_piece_t *in = &plan->recv[i];
        const pl_piece_t *out = sent(&plans[in->peer], target);

        assert_non_null(out);
        assert_int_equal(out->bytes, in->bytes);
        assert_true(in->offset >= 0 && in->offset + in->bytes <= bytes);
        for (int64_t b = 0; b < in->bytes; b++) {
            assert_true(pl_layout_origin(layout, target, in->offset + b, &source, &from, &owned));
            assert_int_equal(source, in->peer);
            assert_int_equal(from, out->offset + b);
        }
        received += in->bytes;
        if (i)
            assert_int_equal(in->offset, in[-1].offset + in[-1].bytes);
    }
    for (int64_t b = 0; b < bytes; b++)
        expected += pl_layout_origin(layout, target, b, &source, &from, &owned);
    assert_int_equal(received, expected);
    assert_int_equal(plan->kept + plan->moved, received);
}

static void check_layout(const pl_layout_t *layout)
{
    pl_plan_t plans[MOST_RANKS + 1];
    int ranks = layout->ns > layout->nt ? layout->ns : layout->nt, sends = 0, recvs = 0;

    for (int r = 0; r <= ranks; r++) {
        assert_int_equal(pl_plan_make(layout, r, &plans[r]), PL_OK);
        check_rising(plans[r].send, plans[r].sends);
        check_rising(plans[r].recv, plans[r].recvs);
        sends += plans[r].sends;
        recvs += plans[r].recvs;
    }
    assert_int_equal(sends, recvs);
    assert_int_equal(plans[ranks].sends + plans[ranks].recvs, 0); /* neither source nor target */
    for (int t = 0; t < layout->nt; t++)
        check_target(layout, plans, t);
    for (int r = 0; r <= ranks; r++)
        pl_plan_free(&plans[r]);
}

static void check_model(const model_t *model, int ns, int nt, int64_t *layouts_seen)
{
    int64_t source[MOST_RANKS], target[MOST_RANKS];
    pl_sizes_t sizes = {ns, nt, source, target};
    pl_layout_t *layouts;
    int count;

    for (int r = 0; r < ns; r++)
        source[r] = model_bytes(model, ns, r);
    for (int r = 0; r < nt; r++)
        target[r] = model_bytes(model, nt, r);
    assert_int_equal(pl_layout_propose(&sizes, 0, &layouts, &count), PL_OK);
    for (int i = 0; i < count; i++)
        check_layout(&layouts[i]);
    *layouts_seen += count;
    pl_layout_free(layouts, count);
}

static void plan_equals_brute_force(void **state)
{
    static const pl_kind_t kinds[] = {PL_KIND_BLOCK, PL_KIND_PADDED, PL_KIND_HALO, PL_KIND_OFFSETS};
    static const int64_t units[] = {1, 3, 4, 8, 12, 24};
    uint64_t random = 1;
    int64_t layouts = 0;

    (void)state;
    for (int round = 0; round < 4000; round++) {
        model_t model = {.kind = kinds[model_random(&random) % 4], .seed = (uint64_t)round};
        int ns = 1 + (int)(model_random(&random) % MOST_RANKS);
        int nt = 1 + (int)(model_random(&random) % MOST_RANKS);

        model.rule =
            model.kind == PL_KIND_PADDED ? MODEL_CEIL : model_random(&random) % MODEL_RULES;
        model.n = (int64_t)(model_random(&random) % 40);
        model.unit = units[model_random(&random) % 6];
        if (model.kind == PL_KIND_OFFSETS)
            model.unit = round % 2 ? 4 : 8;
        model.lo = (int64_t)(model_random(&random) % 3);
        model.hi = (int64_t)(model_random(&random) % 3);
        check_model(&model, ns, nt, &layouts);
    }
    assert_true(layouts > 6000);
}

/* One rank among a million with two far apart receivers: what lies between costs nothing. Looking
 * at every rank once per plan would run into the time limit of the test. */
static void one_of_a_million(void **state)
{
    enum { RANKS = 1000000, REPEATS = 200000 };
    int64_t *source = calloc(RANKS, sizeof *source), *target = calloc(RANKS, sizeof *target);
    pl_sizes_t sizes = {RANKS, RANKS - 1, source, target};
    pl_layout_t *layouts;
    pl_plan_t plan;
    int count;

    (void)state;
    assert_non_null(source);
    assert_non_null(target);
    source[500000] = 16000;
    target[0] = target[RANKS - 2] = 8000;
    assert_int_equal(pl_layout_propose(&sizes, 0, &layouts, &count), PL_OK);
    assert_int_equal(count, 1);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        assert_int_equal(pl_plan_make(&layouts[0], 500000, &plan), PL_OK);
        assert_int_equal(plan.sends, 2);
        assert_int_equal(plan.send[1].peer, RANKS - 2);
        assert_int_equal(plan.recvs, 0);
        pl_plan_free(&plan);
    }
    pl_layout_free(layouts, count);
    free(source);
    free(target);
}

static void other_kinds_have_no_plan(void **state)
{
    int64_t one = 8;
    pl_sizes_t sizes = {1, 1, &one, &one};
    pl_layout_t *layouts;
    pl_plan_t plan;
    int count;

    (void)state;
    assert_int_equal(pl_layout_propose(&sizes, 0, &layouts, &count), PL_OK);
    assert_int_equal(pl_plan_make(&layouts[0], -1, &plan), PL_ERR_INVALID);
    layouts[0].kind = PL_KIND_REPLICATED;
    assert_int_equal(pl_plan_make(&layouts[0], 0, &plan), PL_ERR_INVALID);
    pl_layout_free(layouts, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_equals_brute_force),
        cmocka_unit_test(one_of_a_million),
        cmocka_unit_test(other_kinds_have_no_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
