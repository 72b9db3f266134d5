/* SPDX-License-Identifier: MIT
 * Names of the ways data can move in a redistribution (common/methods.def). */
#ifndef PLIANT_COMMON_METHODS_H
#define PLIANT_COMMON_METHODS_H

#include "common/status.h"

typedef enum pl_method {
#define METHOD(name, text, help) PL_METHOD_##name,
#include "common/methods.def"
#undef METHOD
    PL_METHOD_COUNT
} pl_method_t;

#define PL_METHOD_DEFAULT ((pl_method_t)0)

/* PL_ERR_INVALID for an unknown name; the message is then the caller's, with pl_method_names. */
pl_status_t pl_method_parse(const char *text, pl_method_t *out);

/* Name and one-line help of a method, never NULL; "?" for a number that is none. */
const char *pl_method_text(pl_method_t method);
const char *pl_method_help(pl_method_t method);

/* All valid names for a message: "col, rma1". */
const char *pl_method_names(void);

#endif
