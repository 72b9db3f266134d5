/* SPDX-License-Identifier: MIT
 * Result of a fallible function: PL_OK (0), a negative error, or PL_NONE (1): nothing to do.
 * Outputs are set only on success; whoever first knows an error logs it, callers pass it up. */
#ifndef PLIANT_COMMON_STATUS_H
#define PLIANT_COMMON_STATUS_H

enum pl_status_index {
    PL_STATUS_INDEX_OK,
#define ERROR(name, text) PL_STATUS_INDEX_##name,
#include "common/errors.def"
#undef ERROR
    PL_STATUS_COUNT
};

typedef enum pl_status {
    PL_NONE = 1,
    PL_OK = 0,
#define ERROR(name, text) PL_ERR_##name = -PL_STATUS_INDEX_##name,
#include "common/errors.def"
#undef ERROR
} pl_status_t;

/* Text of a status, never NULL; static storage. */
const char *pl_status_text(pl_status_t status);

#endif
