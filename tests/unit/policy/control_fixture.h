/* SPDX-License-Identifier: MIT
 * A control file, what polling it gives, and what is expected of it. */
#ifndef PLIANT_TESTS_UNIT_POLICY_CONTROL_FIXTURE_H
#define PLIANT_TESTS_UNIT_POLICY_CONTROL_FIXTURE_H

#include "folder.h"

#include <errno.h>

#include "policy/control.h"

#define MAX 8

static pl_control_t control;
static pl_request_t requests[MAX];
static int count;
static pl_control_report_t last;
static char last_text[5000], last_id[64];
static int reports;

static inline void note(void *arg, const pl_control_report_t *report)
{
    assert_ptr_equal(arg, &reports);
    reports++;
    last = *report;
    snprintf(last_text, sizeof last_text, "%s", report->text);
    snprintf(last_id, sizeof last_id, "%s", report->id);
}

static inline pl_status_t poll_once(void)
{
    count = 0;
    reports = 0;
    last_text[0] = 0;
    errno = 77;
    pl_status_t status = pl_control_poll(&control, requests, MAX, &count, note, &reports);
    assert_int_equal(errno, 77); /* it runs inside somebody else's call */
    return status;
}

static inline void expect_nothing(void)
{
    assert_int_equal(poll_once(), PL_NONE);
    assert_int_equal(count, 0);
    assert_int_equal(reports, 0);
}

static inline void expect_sizes(int first, int second)
{
    assert_int_equal(poll_once(), PL_OK);
    assert_int_equal(count, second ? 2 : 1);
    assert_int_equal(requests[0].size, first);
    if (second)
        assert_int_equal(requests[1].size, second);
    assert_int_equal(reports, 0);
}

static inline void expect_refusal(const char *part)
{
    assert_int_equal(poll_once(), PL_OK);
    assert_int_equal(count, 0);
    assert_int_equal(reports, 1);
    assert_int_equal(last.level, PL_LOG_WARN);
    assert_int_equal(last.line, 0);
    assert_contains(last_text, part);
    assert_contains(last_text, control_path);
    expect_nothing();
}

/* Until the content is old enough to be believed, and once more. */
static inline void expect_sizes_later(int first, int second)
{
    expect_nothing();
    control.wait_since.tv_sec += 1000; /* however slow this test runs: it is too early */
    expect_nothing();
    control.wait_since.tv_sec -= 1000;
    sleep_ms(30);
    expect_sizes(first, second);
    expect_nothing();
}

static inline void open_control(void)
{
    struct timespec start;

    clock_gettime(CLOCK_REALTIME, &start);
    start.tv_sec -= 1; /* the kernel's time stamps lag by up to a tick */
    assert_int_equal(pl_control_open(control_path, &start, &control), PL_OK);
}

static inline int set_up(void **state)
{
    int status = make_folder(state);

    if (status == 0)
        open_control();
    return status;
}

static inline void replace(const char *text)
{
    char temporary[140];

    snprintf(temporary, sizeof temporary, "%s.new", control_path);
    put_text(temporary, O_TRUNC, text);
    assert_int_equal(rename(temporary, control_path), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, remove_folder)

#endif
