/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "common/methods.h"
#include "policy/request.h"

static char error[300];

static pl_status_t parse(const char *text, pl_request_t *out)
{
    memset(out, 0x55, sizeof *out);
    error[0] = 0;
    return pl_request_parse(text, strlen(text), out, error, sizeof error);
}

static void reads_resize(void **state)
{
    pl_request_t request;

    (void)state;
    assert_int_equal(parse("resize 4", &request), PL_OK);
    assert_int_equal(request.kind, PL_REQUEST_RESIZE);
    assert_int_equal(request.size, 4);
    assert_int_equal(request.method, -1);
    assert_string_equal(request.id, "");
    assert_int_equal(parse(" \tresize\t 1000000 id=a.b_c:d-9 method=col # why\r", &request), PL_OK);
    assert_int_equal(request.size, 1000000);
    assert_int_equal(request.method, PL_METHOD_COL);
    assert_string_equal(request.id, "a.b_c:d-9");
    assert_int_equal(parse("resize 0004#x", &request), PL_ERR_INVALID);
    assert_int_equal(parse("resize 0004 #x", &request), PL_OK);
    assert_int_equal(request.size, 4);
}

static void reads_cancel_and_nothing(void **state)
{
    pl_request_t request;

    (void)state;
    assert_int_equal(parse("cancel", &request), PL_OK);
    assert_int_equal(request.kind, PL_REQUEST_CANCEL);
    assert_int_equal(parse("", &request), PL_NONE);
    assert_int_equal(parse("  \t\r", &request), PL_NONE);
    assert_int_equal(parse("  # resize 4", &request), PL_NONE);
    assert_int_equal(parse("#resize 4", &request), PL_NONE);
}

static void refuses_with_reason(void **state)
{
    static const struct {
        const char *line, *what, *valid;
    } cases[] = {
        {"resize", "needs a number", "valid is 'resize N"},
        {"resize 0", "resize 0:", "from 1 to 1000000"},
        {"resize -1", "resize -1:", "from 1 to 1000000"},
        {"resize abc", "resize abc: not a number", "whole number"},
        {"resize 4.0", "not a number", "whole number"},
        {"resize +4", "not a number", "whole number"},
        {"resize 4x", "not a number", "whole number"},
        {"resize -", "not a number", "whole number"},
        {"resize 1000001", "resize 1000001:", "from 1 to 1000000"},
        {"resize 99999999999", "resize 99999999999:", "from 1 to 1000000"},
        {"resize 99999999999999999999999999", "9999", "from 1 to 1000000"},
        {"resize 4 5", "unknown word '5'", "method=M, id=WORD"},
        {"resize 4 speed=3", "unknown word 'speed=3'", "method=M, id=WORD"},
        {"resize 4 id", "unknown word 'id'", "method=M, id=WORD"},
        {"resize 4 method=warp", "unknown method", "col"},
        {"resize 4 method=", "unknown method", "col"},
        {"resize 4 method=col method=col", "method= is given twice", ""},
        {"resize 4 id=a id=b", "id= is given twice", ""},
        {"resize 4 id=", "an id is 1 to 63", "letters"},
        {"resize 4 id=a/b", "an id is 1 to 63", "letters"},
        {"resize 4 id=\xc3\xa9", "id=??", "letters"},
        {"Resize 4", "unknown word 'Resize'", "'cancel'"},
        {"resize4", "unknown word 'resize4'", "'cancel'"},
        {"cancel 3", "nothing may follow cancel", "'3'"},
        {"\xef\xbb\xbfresize 4", "unknown word '???resize'", "valid is"},
    };
    pl_request_t request;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].line, &request), PL_ERR_INVALID);
        assert_contains(error, cases[i].what);
        assert_contains(error, cases[i].valid);
    }
}

static void keeps_id_and_first_message_of_a_bad_line(void **state)
{
    pl_request_t request;

    (void)state;
    assert_int_equal(parse("resize abc x=1 id=mine", &request), PL_ERR_INVALID);
    assert_string_equal(request.id, "mine");
    assert_contains(error, "resize abc");
    assert_int_equal(parse("resize 4 x=1 id=mine y=2", &request), PL_ERR_INVALID);
    assert_string_equal(request.id, "mine");
    assert_contains(error, "x=1");
    assert_int_equal(parse("grow 4 id=mine", &request), PL_ERR_INVALID);
    assert_string_equal(request.id, "");
}

static void bounds_lengths(void **state)
{
    char line[400], id[100];
    pl_request_t request;

    (void)state;
    memset(line, ' ', sizeof line);
    memcpy(line, "resize 4", 8);
    assert_int_equal(pl_request_parse(line, 256, &request, error, sizeof error), PL_OK);
    assert_int_equal(pl_request_parse(line, 257, &request, error, sizeof error), PL_ERR_INVALID);
    assert_contains(error, "257 bytes, at most 256");
    memset(id, 'a', sizeof id);
    snprintf(line, sizeof line, "resize 4 id=%.63s", id);
    assert_int_equal(parse(line, &request), PL_OK);
    assert_int_equal(strlen(request.id), 63);
    snprintf(line, sizeof line, "resize 4 id=%.64s", id);
    assert_int_equal(parse(line, &request), PL_ERR_INVALID);
    memset(line, 'w', 200);
    line[200] = 0;
    assert_int_equal(parse(line, &request), PL_ERR_INVALID);
    assert_contains(error, "www...'");
}

static void reads_no_further_than_length(void **state)
{
    pl_request_t request;

    (void)state;
    assert_int_equal(pl_request_parse("resize 42", 8, &request, error, sizeof error), PL_OK);
    assert_int_equal(request.size, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_resize),
        cmocka_unit_test(reads_cancel_and_nothing),
        cmocka_unit_test(refuses_with_reason),
        cmocka_unit_test(keeps_id_and_first_message_of_a_bad_line),
        cmocka_unit_test(bounds_lengths),
        cmocka_unit_test(reads_no_further_than_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
