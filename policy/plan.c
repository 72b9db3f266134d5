/* SPDX-License-Identifier: MIT */
#include "policy/plan.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/number.h"
#include "policy/request.h"

#define VALID "valid is ARRIVAL:SIZE[,ARRIVAL:SIZE...], e.g. 50:4,120:1"

static pl_status_t fail(char *error, size_t size, size_t position, const char *what)
{
    snprintf(error, size, "position %zu: %s; " VALID, position + 1, what);
    return PL_ERR_INVALID;
}

/* Reads "ARRIVAL:SIZE", length bytes of text from at on. */
static pl_status_t parse_step(const char *text, size_t at, size_t length, long after,
                              pl_plan_step_t *out, char *error, size_t error_size)
{
    const char *colon = memchr(text + at, ':', length);
    size_t arrival_length = colon ? (size_t)(colon - text) - at : length;
    long arrival, size;

    if (length == 0)
        return fail(error, error_size, at, "a step is missing");
    if (pl_number_parse(text + at, arrival_length, 1, LONG_MAX, &arrival) != PL_OK)
        return fail(error, error_size, at, "an arrival is a whole number from 1 on");
    if (!colon)
        return fail(error, error_size, at + length, "':' and a size are missing");
    if (arrival <= after)
        return fail(error, error_size, at, "arrivals must increase");
    if (pl_number_parse(colon + 1, length - arrival_length - 1, 1, PL_REQUEST_SIZE_MAX, &size) !=
        PL_OK)
        return fail(error, error_size, at + arrival_length + 1,
                    "a size is a number of processes from 1 to 1000000");
    out->arrival = arrival;
    out->size = (int)size;
    return PL_OK;
}
_Static_assert(PL_REQUEST_SIZE_MAX == 1000000, "the message above names it");

pl_status_t pl_plan_parse(const char *text, pl_plan_step_t *out, int max, int *count, char *error,
                          size_t error_size)
{
    size_t end = strlen(text), at = 0;
    long after = 0;
    int steps = 0;

    while (end > 0) {
        const char *comma = memchr(text + at, ',', end - at);
        size_t length = comma ? (size_t)(comma - text) - at : end - at;
        pl_plan_step_t step;
        pl_status_t status = parse_step(text, at, length, after, &step, error, error_size);

        if (status != PL_OK)
            return status;
        if (steps == max) {
            snprintf(error, error_size, "position %zu: a plan has at most %d steps", at + 1, max);
            return PL_ERR_LIMIT;
        }
        if (out)
            out[steps] = step;
        steps++;
        after = step.arrival;
        at += length + 1;
        if (!comma)
            break;
    }
    *count = steps;
    return PL_OK;
}

const pl_plan_step_t *pl_plan_due(const pl_plan_step_t *steps, int count, long arrival, int *next)
{
    if (*next >= count || arrival < steps[*next].arrival)
        return NULL;
    return &steps[(*next)++];
}
