/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <jansson.h>
#include <math.h>

#include "common/json.h"

static json_t *load(const pl_json_t *json)
{
    json_error_t error;
    json_t *root = json_loadb(json->buffer, json->used, JSON_DECODE_ANY, &error);

    if (!root)
        fail_msg("%s: %s", error.text, json->buffer);
    return root;
}

static void nests(void **state)
{
    char buffer[200];
    pl_json_t json;

    (void)state;
    pl_json_init(&json, buffer, sizeof buffer);
    pl_json_open(&json, NULL, '{');
    pl_json_open(&json, "list", '[');
    pl_json_integer(&json, NULL, 1);
    pl_json_open(&json, NULL, '{');
    pl_json_close(&json, '}');
    pl_json_string(&json, NULL, "x");
    pl_json_close(&json, ']');
    pl_json_bool(&json, "yes", true);
    pl_json_bool(&json, "no", false);
    pl_json_string(&json, "none", NULL);
    pl_json_close(&json, '}');
    pl_json_raw(&json, "\n");
    assert_true(pl_json_ok(&json));
    assert_string_equal(buffer,
                        "{\"list\":[1,{},\"x\"],\"yes\":true,\"no\":false,\"none\":\"\"}\n");
    assert_int_equal(json.used, strlen(buffer));
}

static void check_string(const char *text, const char *expected)
{
    char buffer[100];
    pl_json_t json;
    json_t *root;

    pl_json_init(&json, buffer, sizeof buffer);
    pl_json_string(&json, NULL, text);
    root = load(&json);
    assert_string_equal(json_string_value(root), expected);
    json_decref(root);
}

static void escapes_strings(void **state)
{
    (void)state;
    check_string("a\"b\\c/d", "a\"b\\c/d");
    check_string("\x01\b\f\n\r\t\x1f\x7f", "\x01\b\f\n\r\t\x1f\x7f");
    check_string("é € 😀", "é € 😀");
    check_string("\xff", "\xef\xbf\xbd");                                 /* no UTF-8 at all */
    check_string("a\xc3", "a\xef\xbf\xbd");                               /* cut */
    check_string("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");                 /* overlong */
    check_string("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* surrogate */
    check_string("\xe2\x82x", "\xef\xbf\xbd\xef\xbf\xbdx");
}

static void check_number(double value, const char *expected)
{
    char buffer[100];
    pl_json_t json;

    pl_json_init(&json, buffer, sizeof buffer);
    pl_json_number(&json, NULL, value);
    assert_string_equal(buffer, expected);
}

static void writes_numbers(void **state)
{
    char buffer[100];
    pl_json_t json;

    (void)state;
    check_number(0, "0");
    check_number(-0.0, "0");
    check_number(1, "1");
    check_number(-2.5, "-2.5");
    check_number(0.000000001, "0.000000001");
    check_number(0.0000000001, "0");
    check_number(0.9999999999, "1");
    check_number(123456789.125, "123456789.125");
    check_number(0.05, "0.05");
    check_number(1e14, "100000000000000");
    check_number(1e15, "null");
    check_number(NAN, "null");
    check_number(INFINITY, "null");
    check_number(-INFINITY, "null");
    pl_json_init(&json, buffer, sizeof buffer);
    pl_json_open(&json, NULL, '[');
    pl_json_integer(&json, NULL, INT64_MIN);
    pl_json_integer(&json, NULL, INT64_MAX);
    pl_json_integer(&json, NULL, 0);
    pl_json_close(&json, ']');
    assert_string_equal(buffer, "[-9223372036854775808,9223372036854775807,0]");
}

static void write_sample(pl_json_t *json)
{
    pl_json_open(json, NULL, '{');
    pl_json_string(json, "text", "a\"\xff");
    pl_json_number(json, "number", -1.5);
    pl_json_close(json, '}');
}

/* Every size from one byte up: never beyond the buffer, and full exactly if it does not fit. */
static void detects_a_full_buffer(void **state)
{
    char buffer[128], whole[128];
    pl_json_t json;
    size_t needed;

    (void)state;
    pl_json_init(&json, whole, sizeof whole);
    write_sample(&json);
    needed = json.used + 1;
    for (size_t size = 1; size <= needed; size++) {
        memset(buffer, 'Z', sizeof buffer);
        pl_json_init(&json, buffer, size);
        write_sample(&json);
        assert_int_equal(pl_json_ok(&json), size == needed);
        assert_int_equal(buffer[json.used], 0);
        for (size_t i = size; i < sizeof buffer; i++)
            assert_int_equal(buffer[i], 'Z');
    }
    assert_string_equal(buffer, whole);
}

static void rewinds(void **state)
{
    char buffer[12];
    pl_json_t json, mark;

    (void)state;
    pl_json_init(&json, buffer, sizeof buffer);
    pl_json_open(&json, NULL, '[');
    pl_json_integer(&json, NULL, 1);
    mark = json;
    pl_json_string(&json, NULL, "does not fit");
    assert_false(pl_json_ok(&json));
    pl_json_rewind(&json, &mark);
    pl_json_integer(&json, NULL, 2);
    pl_json_close(&json, ']');
    assert_true(pl_json_ok(&json));
    assert_string_equal(buffer, "[1,2]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests),          cmocka_unit_test(escapes_strings),
        cmocka_unit_test(writes_numbers), cmocka_unit_test(detects_a_full_buffer),
        cmocka_unit_test(rewinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
