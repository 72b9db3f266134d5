/* SPDX-License-Identifier: MIT
 * One request, and how it is written:
 *     resize N [method=M] [id=WORD]
 *     cancel
 * Words are parted by spaces or tabs; '#' at the start of a word begins a comment. */
#ifndef PLIANT_POLICY_REQUEST_H
#define PLIANT_POLICY_REQUEST_H

#include <stddef.h>

#include "common/status.h"

#define PL_REQUEST_ID_MAX   64      /* with the final zero */
#define PL_REQUEST_SIZE_MAX 1000000 /* processes a request may ask for */
#define PL_REQUEST_LINE_MAX 256     /* bytes of a line; a longer one is refused */

typedef enum pl_request_kind { PL_REQUEST_RESIZE, PL_REQUEST_CANCEL } pl_request_kind_t;

typedef struct pl_request {
    pl_request_kind_t kind;
    int size;                   /* processes wanted; 0 for cancel */
    int method;                 /* a pl_method_t, or -1: the default */
    char id[PL_REQUEST_ID_MAX]; /* letters, digits and . _ : - */
    int line;                   /* line of the control file, from 1; 0: not from there */
} pl_request_t;

/* Reads one line of length bytes, without its newline. PL_NONE: blank or comment. PL_ERR_INVALID:
 * error says what is wrong and what is valid, and out->id is the id if one was read. An id that is
 * not given is "". line is left 0. */
pl_status_t pl_request_parse(const char *text, size_t length, pl_request_t *out, char *error,
                             size_t error_size);

#endif
