/* SPDX-License-Identifier: MIT
 * Writes JSON into a buffer of the caller's: no allocation, no locale (a host may print decimal
 * commas), no growth. When the buffer is full nothing more is written and pl_json_ok is false. */
#ifndef PLIANT_COMMON_JSON_H
#define PLIANT_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pl_json {
    char *buffer;
    size_t size, used; /* used counts no final zero; the text is always closed by one */
    bool full;         /* something did not fit: the text is not valid JSON */
    bool comma;        /* the next value of this object or list needs a comma */
} pl_json_t;

/* size must be 1 or more. */
void pl_json_init(pl_json_t *json, char *buffer, size_t size);
bool pl_json_ok(const pl_json_t *json);

/* key is NULL inside a list and for the outermost value. open is '{' or '[', close '}' or ']'. */
void pl_json_open(pl_json_t *json, const char *key, char open);
void pl_json_close(pl_json_t *json, char close);
void pl_json_string(pl_json_t *json, const char *key, const char *text);
void pl_json_integer(pl_json_t *json, const char *key, int64_t value);
void pl_json_bool(pl_json_t *json, const char *key, bool value);

/* With 9 decimals at most; null for infinities, not-a-numbers and magnitudes from 1e15 on. */
void pl_json_number(pl_json_t *json, const char *key, double value);

/* Text as is, e.g. the newline after an object. */
void pl_json_raw(pl_json_t *json, const char *text);

/* To leave out what did not fit: remember the state (a plain copy), write, and on a full buffer go
 * back to the copy. */
void pl_json_rewind(pl_json_t *json, const pl_json_t *mark);

#endif
