/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "common/methods.h"
#include "common/options.h"

static pl_options_t options;
static int reports;
static char reported_name[100], reported[600];

static void report(void *arg, const char *name, const char *message)
{
    assert_ptr_equal(arg, &reports);
    reports++;
    snprintf(reported_name, sizeof reported_name, "%s", name);
    snprintf(reported, sizeof reported, "%s", message);
}

static void load(const char *first, const char *second)
{
    char one[5000], two[200];
    char *environment[] = {"PATH=/bin", NULL, NULL, NULL};

    if (first) {
        snprintf(one, sizeof one, "%s", first);
        environment[1] = one;
    }
    if (second) {
        snprintf(two, sizeof two, "%s", second);
        environment[2] = two;
    }
    reports = 0;
    reported[0] = reported_name[0] = 0;
    memset(&options, 0x55, sizeof options);
    assert_int_equal(pl_options_load(environment, &options, report, &reports), PL_OK);
    /* Nothing may point into the environment, which is the program's. */
    memset(one, 0, sizeof one);
    memset(two, 0, sizeof two);
}

static void defaults_are_valid_and_as_documented(void **state)
{
    (void)state;
    load(NULL, NULL);
    assert_int_equal(reports, 0);
    assert_string_equal(options.control, "");
    assert_int_equal(options.processes, 0);
    assert_int_equal(options.method, PL_METHOD_COL);
    assert_string_equal(options.plan, "");
    assert_true(options.limit == 60);
    assert_true(options.setup_limit == 120);
    assert_int_equal(options.baseline, 2);
    assert_int_equal(options.log, PL_LOG_WARN);
    assert_int_equal(pl_options_load(NULL, &options, NULL, NULL), PL_OK);
    assert_int_equal(options.baseline, 2);
}

static void reads_values(void **state)
{
    (void)state;
    load("PLIANT_CONTROL=/tmp/a=b", "PLIANT_PROCESSES=3");
    assert_string_equal(options.control, "/tmp/a=b");
    assert_int_equal(options.processes, 3);
    load("PLIANT_LIMIT=0.25", "PLIANT_LOG=debug");
    assert_true(options.limit == 0.25);
    assert_int_equal(options.log, PL_LOG_DEBUG);
    load("PLIANT_PLAN=50:4,120:1", "PLIANT_SETUP_LIMIT=7");
    assert_string_equal(options.plan, "50:4,120:1");
    assert_true(options.setup_limit == 7);
    assert_int_equal(reports, 0);
}

static void bad_values_are_reported_and_the_default_stays(void **state)
{
    static const struct {
        const char *variable, *valid;
    } cases[] = {
        {"PLIANT_PROCESSES=two", "whole number from 0"},
        {"PLIANT_PROCESSES=-1", "whole number from 0"},
        {"PLIANT_PROCESSES=", "whole number from 0"},
        {"PLIANT_METHOD=warp", "one of col"},
        {"PLIANT_LIMIT=soon", "seconds"},
        {"PLIANT_LIMIT=-1", "seconds"},
        {"PLIANT_LIMIT=1.", "seconds"},
        {"PLIANT_LIMIT=.5", "seconds"},
        {"PLIANT_LIMIT=1e3", "seconds"},
        {"PLIANT_LIMIT=1,5", "seconds"},
        {"PLIANT_LIMIT=1.-5", "seconds"},
        {"PLIANT_LIMIT=2000000000", "seconds"},
        {"PLIANT_BASELINE=1", "from 2"},
        {"PLIANT_LOG=WARN", "error, warn, info, debug"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        load(cases[i].variable, NULL);
        assert_int_equal(reports, 1);
        assert_int_equal(strncmp(reported_name, cases[i].variable, strlen(reported_name)), 0);
        assert_contains(reported, "is not valid; valid is");
        assert_contains(reported, cases[i].valid);
        assert_int_equal(options.processes, 0);
        assert_true(options.limit == 60);
        assert_int_equal(options.baseline, 2);
        assert_int_equal(options.log, PL_LOG_WARN);
    }
}

static void too_long_a_path_is_reported(void **state)
{
    char variable[4300] = "PLIANT_CONTROL=";

    (void)state;
    memset(variable + strlen(variable), 'x', 4096);
    load(variable, NULL);
    assert_int_equal(reports, 1);
    assert_contains(reported, "a path of at most 4095 bytes");
    assert_string_equal(options.control, "");
}

static void unknown_names_are_reported_with_the_valid_ones(void **state)
{
    (void)state;
    load("PLIANT_LIMITS=3", NULL);
    assert_int_equal(reports, 1);
    assert_string_equal(reported_name, "PLIANT_LIMITS");
    for (int i = 0; i < PL_OPTION_COUNT; i++)
        assert_contains(reported, pl_option_info[i].name);
    load("PLIANT_=3", "PLIANT_LIMI=3");
    assert_int_equal(reports, 2);
    load("PLIANTX=3", "PLIANT=4");
    assert_int_equal(reports, 0);
    load("PLIANT_TEST_OFF=stack", NULL);
    assert_int_equal(reports, 0);
}

static void of_two_the_first_counts(void **state)
{
    (void)state;
    load("PLIANT_LIMIT=5", "PLIANT_LIMIT=6");
    assert_true(options.limit == 5);
}

/* What format writes, set reads: for every option and several values. */
static void values_survive_a_round_trip(void **state)
{
    static const char *const values[PL_OPTION_COUNT][3] = {
        [PL_OPTION_control] = {"", "/tmp/x y", "relative"},
        [PL_OPTION_processes] = {"0", "7", "1000000"},
        [PL_OPTION_method] = {"col", "col", "col"},
        [PL_OPTION_plan] = {"", "1:2", "50:4,120:1"},
        [PL_OPTION_limit] = {"0", "0.000000001", "1000000000"},
        [PL_OPTION_setup_limit] = {"120", "2.5", "33.125"},
        [PL_OPTION_baseline] = {"2", "3", "1000000000"},
        [PL_OPTION_log] = {"error", "info", "debug"},
    };
    char error[PL_OPTION_ERROR_MAX], text[200];

    (void)state;
    load(NULL, NULL);
    for (int i = 0; i < PL_OPTION_COUNT; i++) {
        for (int k = 0; k < 3; k++) {
            assert_non_null(values[i][k]);
            assert_int_equal(
                pl_options_set(&options, (pl_option_index_t)i, values[i][k], error, sizeof error),
                PL_OK);
            pl_options_format(&options, (pl_option_index_t)i, text, sizeof text);
            assert_string_equal(text, values[i][k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_valid_and_as_documented),
        cmocka_unit_test(reads_values),
        cmocka_unit_test(bad_values_are_reported_and_the_default_stays),
        cmocka_unit_test(too_long_a_path_is_reported),
        cmocka_unit_test(unknown_names_are_reported_with_the_valid_ones),
        cmocka_unit_test(of_two_the_first_counts),
        cmocka_unit_test(values_survive_a_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
