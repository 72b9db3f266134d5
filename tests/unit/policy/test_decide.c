/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "policy/decide.h"

static pl_decider_t decider;
static int refusals;
static char refused_id[64], reason[PL_DECIDE_REASON_MAX];
static pl_capacity_t capacity;

static void note_refusal(void *arg, const pl_request_t *request, const char *text)
{
    assert_ptr_equal(arg, &refusals);
    refusals++;
    snprintf(refused_id, sizeof refused_id, "%s", request->id);
    snprintf(reason, sizeof reason, "%s", text);
}

static int set_up(void **state)
{
    (void)state;
    capacity = (pl_capacity_t){.size = 2, .pool = 4};
    refusals = 0;
    refused_id[0] = reason[0] = 0;
    pl_decider_init(&decider, 60, note_refusal, &refusals);
    return 0;
}

static void submit(int size, const char *id, double now)
{
    pl_request_t request = {.kind = size ? PL_REQUEST_RESIZE : PL_REQUEST_CANCEL, .size = size};

    snprintf(request.id, sizeof request.id, "%s", id);
    pl_decider_submit(&decider, &request, &capacity, now);
}

static void check_refused(int count, const char *id, const char *part)
{
    assert_int_equal(refusals, count);
    assert_string_equal(refused_id, id);
    assert_contains(reason, part);
}

static void check_next(double now, const char *id)
{
    pl_request_t request = {.id = ""};
    pl_status_t status = pl_decider_next(&decider, &capacity, now, &request);

    assert_int_equal(status, id ? PL_OK : PL_NONE);
    assert_string_equal(request.id, id ? id : "");
}

static void a_request_is_in_force_until_it_is_started(void **state)
{
    (void)state;
    check_next(0, NULL);
    submit(4, "a", 0);
    check_next(1, "a");
    check_next(2, "a");
    pl_decider_start(&decider);
    check_next(3, NULL);
    pl_decider_finish(&decider, 4);
    check_next(5, NULL);
    assert_int_equal(refusals, 0);
}

static void a_newer_request_supersedes_one_that_waits(void **state)
{
    (void)state;
    submit(4, "a", 0);
    submit(3, "b", 1);
    check_refused(1, "a", "superseded by the newer request b (resize 3)");
    check_next(2, "b");
}

static void a_newer_request_waits_for_one_that_was_started(void **state)
{
    (void)state;
    submit(4, "a", 0);
    pl_decider_start(&decider);
    submit(3, "b", 1);
    check_next(2, NULL);
    submit(1, "c", 3);
    check_refused(1, "b", "superseded by the newer request c");
    capacity.size = 4;
    pl_decider_finish(&decider, 1000); /* it had no chance before: its limit begins here */
    check_next(1059, "c");
    assert_int_equal(refusals, 1);
}

static void the_size_met_after_a_queue_is_checked(void **state)
{
    (void)state;
    submit(4, "a", 0);
    pl_decider_start(&decider);
    submit(4, "b", 1);
    assert_int_equal(refusals, 0);
    capacity.size = 4;
    pl_decider_finish(&decider, 2);
    check_next(3, NULL);
    check_refused(1, "b", "already 4 processes");
    submit(2, "c", 4); /* right after a rollback to 2 the same request would be right */
    check_next(5, "c");
}

static void impossible_sizes_are_refused_and_supersede_nothing(void **state)
{
    (void)state;
    submit(3, "a", 0);
    submit(5, "b", 1);
    check_refused(1, "b", "5 processes asked for, this job can have at most 4");
    capacity.cap_reason = "this MPI cannot spawn";
    submit(99, "c", 1);
    check_refused(2, "c", "at most 4: this MPI cannot spawn");
    check_next(2, "a");
}

static void the_present_size_is_refused_and_supersedes(void **state)
{
    (void)state;
    submit(2, "a", 0);
    check_refused(1, "a", "already 2 processes");
    submit(3, "b", 1);
    submit(2, "c", 2);
    check_refused(3, "c", "already 2 processes");
    check_next(3, NULL);
    capacity.size = 1;
    submit(1, "d", 4);
    check_refused(4, "d", "already 1 process");
    assert_null(strstr(reason, "processes"));
}

static void cancel_ends_what_waits(void **state)
{
    (void)state;
    submit(0, "x", 0);
    check_refused(1, "x", "no request is waiting");
    submit(4, "a", 0);
    submit(0, "y", 1);
    check_refused(2, "a", "cancelled");
    check_next(2, NULL);
    submit(4, "b", 3);
    pl_decider_start(&decider);
    submit(0, "z", 4);
    check_refused(3, "z", "resize to 4 is already being carried out");
    submit(3, "c", 5);
    submit(0, "v", 6);
    check_refused(4, "c", "cancelled");
    pl_decider_finish(&decider, 7);
    check_next(8, NULL);
}

static void the_limit_passes_with_the_last_obstacle(void **state)
{
    (void)state;
    submit(4, "a", 10);
    assert_true(pl_decider_left(&decider, 30) == 40);
    check_next(70, "a");
    check_next(70.5, NULL);
    check_refused(1, "a", "no clean resize point within 60 s: no resize point was reached");
    submit(4, "b", 100);
    pl_decider_obstacle(&decider, "a receive is in flight");
    check_next(161, NULL);
    check_refused(2, "b", "a receive is in flight");
    submit(4, "c", 200);
    check_next(261, NULL);
    check_refused(3, "c", "no resize point was reached"); /* not b's obstacle */
    assert_true(pl_decider_left(&decider, 300) > 1e20);
}

static void what_was_started_is_past_its_limit_never(void **state)
{
    (void)state;
    submit(4, "a", 0);
    pl_decider_start(&decider);
    check_next(1000, NULL);
    assert_true(pl_decider_left(&decider, 1000) > 1e20);
    assert_int_equal(refusals, 0);
}

static void closing_refuses_what_waits(void **state)
{
    (void)state;
    pl_decider_close(&decider, "the program has ended");
    assert_int_equal(refusals, 0);
    submit(4, "a", 0);
    pl_decider_close(&decider, "the program has ended");
    check_refused(1, "a", "the program has ended");
    check_next(1, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_request_is_in_force_until_it_is_started, set_up),
        cmocka_unit_test_setup(a_newer_request_supersedes_one_that_waits, set_up),
        cmocka_unit_test_setup(a_newer_request_waits_for_one_that_was_started, set_up),
        cmocka_unit_test_setup(the_size_met_after_a_queue_is_checked, set_up),
        cmocka_unit_test_setup(impossible_sizes_are_refused_and_supersede_nothing, set_up),
        cmocka_unit_test_setup(the_present_size_is_refused_and_supersedes, set_up),
        cmocka_unit_test_setup(cancel_ends_what_waits, set_up),
        cmocka_unit_test_setup(the_limit_passes_with_the_last_obstacle, set_up),
        cmocka_unit_test_setup(what_was_started_is_past_its_limit_never, set_up),
        cmocka_unit_test_setup(closing_refuses_what_waits, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
