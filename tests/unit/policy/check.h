/* SPDX-License-Identifier: MIT
 * cmocka's includes, in the order it needs, and a check of messages. */
#ifndef PLIANT_TESTS_UNIT_POLICY_CHECK_H
#define PLIANT_TESTS_UNIT_POLICY_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* Prints both texts on failure. */
#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("'%s' does not contain '%s'", text, part);                                    \
    } while (0)

#endif
