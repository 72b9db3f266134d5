/* SPDX-License-Identifier: MIT
 * The memory of one array on this process: one contiguous range, or a list of equally long rows.
 * A byte offset counts through the rows in order. A view owns nothing. */
#ifndef PLIANT_REDIST_VIEW_H
#define PLIANT_REDIST_VIEW_H

#include <stdint.h>

typedef struct pl_view {
    void *base;        /* first byte; not used with rows */
    void *const *rows; /* NULL: contiguous at base; else ceil(bytes / row_bytes) pointers */
    int64_t row_bytes; /* > 0 with rows */
    int64_t bytes;     /* 0: no array here */
} pl_view_t;

/* Address of byte `offset`; *contiguous (may be NULL) = bytes from there that lie in one piece.
 * NULL and 0 when the offset is outside the array. */
void *pl_view_at(const pl_view_t *view, int64_t offset, int64_t *contiguous);

/* Copies out of and into the array. The range must lie inside it. */
void pl_view_read(const pl_view_t *view, int64_t offset, void *buffer, int64_t bytes);
void pl_view_write(const pl_view_t *view, int64_t offset, const void *buffer, int64_t bytes);

/* Copies between two arrays that do not overlap. */
void pl_view_copy(const pl_view_t *to, int64_t to_offset, const pl_view_t *from,
                  int64_t from_offset, int64_t bytes);

#endif
