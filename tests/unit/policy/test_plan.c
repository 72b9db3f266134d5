/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "policy/plan.h"

static char error[300];

static void reads_steps(void **state)
{
    pl_plan_step_t steps[3];
    int count = -1;

    (void)state;
    assert_int_equal(
        pl_plan_parse("50:4,120:1,9999999999:1000000", steps, 3, &count, error, sizeof error),
        PL_OK);
    assert_int_equal(count, 3);
    assert_int_equal(steps[0].arrival, 50);
    assert_int_equal(steps[0].size, 4);
    assert_int_equal(steps[1].arrival, 120);
    assert_int_equal(steps[1].size, 1);
    assert_int_equal(steps[2].arrival, 9999999999);
    assert_int_equal(steps[2].size, 1000000);
    assert_int_equal(pl_plan_parse("", steps, 3, &count, error, sizeof error), PL_OK);
    assert_int_equal(count, 0);
    assert_int_equal(pl_plan_parse("1:1,2:2", NULL, 3, &count, error, sizeof error), PL_OK);
    assert_int_equal(count, 2);
}

static void names_position_and_what_is_valid(void **state)
{
    static const struct {
        const char *text, *position, *what;
    } cases[] = {
        {",", "position 1:", "step is missing"},
        {"50:4,", "position 6:", "step is missing"},
        {"50:4,,60:2", "position 6:", "step is missing"},
        {"50", "position 3:", "':' and a size"},
        {"50:4,60", "position 8:", "':' and a size"},
        {":4", "position 1:", "an arrival is"},
        {"x:4", "position 1:", "an arrival is"},
        {"0:4", "position 1:", "an arrival is"},
        {"-5:4", "position 1:", "an arrival is"},
        {" 50:4", "position 1:", "an arrival is"},
        {"99999999999999999999:4", "position 1:", "an arrival is"},
        {"50:", "position 4:", "a size is"},
        {"50:0", "position 4:", "a size is"},
        {"50:four", "position 4:", "a size is"},
        {"50:4:5", "position 4:", "a size is"},
        {"50:1000001", "position 4:", "a size is"},
        {"50:4,50:2", "position 6:", "must increase"},
        {"50:4,49:2", "position 6:", "must increase"},
    };
    pl_plan_step_t steps[4];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int count = -1;

        assert_int_equal(pl_plan_parse(cases[i].text, steps, 4, &count, error, sizeof error),
                         PL_ERR_INVALID);
        assert_int_equal(count, -1);
        assert_contains(error, cases[i].position);
        assert_contains(error, cases[i].what);
        assert_contains(error, "valid is ARRIVAL:SIZE");
    }
}

static void refuses_more_steps_than_fit(void **state)
{
    pl_plan_step_t steps[2];
    int count = -1;

    (void)state;
    assert_int_equal(pl_plan_parse("1:1,2:2,3:3", steps, 2, &count, error, sizeof error),
                     PL_ERR_LIMIT);
    assert_contains(error, "position 9: a plan has at most 2 steps");
    assert_int_equal(count, -1);
}

static void steps_become_due_in_order(void **state)
{
    const pl_plan_step_t steps[] = {{5, 4}, {6, 1}, {20, 2}};
    int next = 0;

    (void)state;
    assert_null(pl_plan_due(steps, 3, 4, &next));
    assert_ptr_equal(pl_plan_due(steps, 3, 5, &next), &steps[0]);
    assert_null(pl_plan_due(steps, 3, 5, &next));
    /* A visit that was missed does not lose its step. */
    assert_ptr_equal(pl_plan_due(steps, 3, 30, &next), &steps[1]);
    assert_ptr_equal(pl_plan_due(steps, 3, 30, &next), &steps[2]);
    assert_null(pl_plan_due(steps, 3, 31, &next));
    assert_int_equal(next, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_steps),
        cmocka_unit_test(names_position_and_what_is_valid),
        cmocka_unit_test(refuses_more_steps_than_fit),
        cmocka_unit_test(steps_become_due_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
