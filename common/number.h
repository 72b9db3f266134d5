/* SPDX-License-Identifier: MIT
 * Strict reading of decimal numbers, independent of the locale. */
#ifndef PLIANT_COMMON_NUMBER_H
#define PLIANT_COMMON_NUMBER_H

#include <stddef.h>

#include "common/status.h"

/* Reads length bytes: digits only, or '-' and digits. PL_ERR_INVALID: not a whole number;
 * PL_ERR_LIMIT: one outside min..max, however large. */
pl_status_t pl_number_parse(const char *text, size_t length, long min, long max, long *out);

/* Reads seconds: digits with an optional fraction of at most nine digits ("60", "0.25"), up to 1e9.
 * Errors as above. */
pl_status_t pl_number_parse_seconds(const char *text, size_t length, double *out);

#endif
