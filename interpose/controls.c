/* SPDX-License-Identifier: MIT
 * Part of libpliant-test.so only. */
#include "interpose/controls.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"

static unsigned read_names(void)
{
#define PL_CONTROL_TEXT(name) #name,
    static const char *const names[] = {PL_CONTROLS(PL_CONTROL_TEXT)};
    _Static_assert(sizeof names / sizeof *names == PL_CONTROL_COUNT, "a name for every control");
    const char *at = getenv("PLIANT_TEST_OFF");
    unsigned off = 0;

    while (at && *at) {
        size_t length = strcspn(at, ",");
        int i = 0;
        while (i < PL_CONTROL_COUNT && (strncmp(names[i], at, length) || names[i][length]))
            i++;
        if (i < PL_CONTROL_COUNT)
            off |= 1u << i;
        else
            PL_ERROR("PLIANT_TEST_OFF: no mechanism is called '%.*s'", (int)length, at);
        at += length + (at[length] == ',');
    }
    return off;
}

bool pl_controls_off(pl_control_t control)
{
    static unsigned off;
    static bool known;

    if (!known) {
        known = true; /* first: what logs may allocate */
        off = read_names();
    }
    return off >> control & 1;
}
