/* SPDX-License-Identifier: MIT */
#include "common/number.h"

#include <limits.h>
#include <string.h>

#define SECONDS_MAX 1000000000L

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

pl_status_t pl_number_parse(const char *text, size_t length, long min, long max, long *out)
{
    int negative = length > 0 && text[0] == '-';
    int overflow = 0;
    long value = 0;

    if (length == (size_t)negative)
        return PL_ERR_INVALID;
    for (size_t i = (size_t)negative; i < length; i++) {
        if (!is_digit(text[i]))
            return PL_ERR_INVALID;
        if (__builtin_mul_overflow(value, 10L, &value) ||
            __builtin_sub_overflow(value, (long)(text[i] - '0'), &value))
            overflow = 1; /* read on: "99999999999999999999x" is no number */
    }
    if (overflow || (!negative && value == LONG_MIN))
        return PL_ERR_LIMIT;
    if (!negative)
        value = -value;
    if (value < min || value > max)
        return PL_ERR_LIMIT;
    *out = value;
    return PL_OK;
}

pl_status_t pl_number_parse_seconds(const char *text, size_t length, double *out)
{
    const char *point = memchr(text, '.', length);
    size_t whole_length = point ? (size_t)(point - text) : length;
    size_t fraction_length = point ? length - whole_length - 1 : 0;
    long whole, fraction = 0;
    pl_status_t status = pl_number_parse(text, whole_length, 0, SECONDS_MAX, &whole);
    double scale = 1;

    if (status != PL_OK)
        return status;
    if (point) {
        if (fraction_length == 0 || fraction_length > 9 || !is_digit(point[1]) ||
            pl_number_parse(point + 1, fraction_length, 0, LONG_MAX, &fraction) != PL_OK)
            return PL_ERR_INVALID;
        for (size_t i = 0; i < fraction_length; i++)
            scale *= 10;
    }
    *out = (double)whole + (double)fraction / scale;
    return PL_OK;
}
