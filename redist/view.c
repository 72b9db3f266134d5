/* SPDX-License-Identifier: MIT */
#include "redist/view.h"

#include <stddef.h>
#include <string.h>

void *pl_view_at(const pl_view_t *view, int64_t offset, int64_t *contiguous)
{
    int64_t left = view->bytes - offset;
    char *at = NULL;

    if (offset < 0 || left <= 0) {
        left = 0;
    } else if (!view->rows) {
        at = (char *)view->base + offset;
    } else {
        int64_t row = offset / view->row_bytes;
        int64_t inside = offset % view->row_bytes;

        at = (char *)view->rows[row] + inside;
        if (left > view->row_bytes - inside)
            left = view->row_bytes - inside;
    }
    if (contiguous)
        *contiguous = left;
    return at;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void pl_view_read(const pl_view_t *view, int64_t offset, void *buffer, int64_t bytes)
{
    char *out = buffer;

    while (bytes > 0) {
        int64_t run;
        const void *at = pl_view_at(view, offset, &run);

        if (!at)
            return;
        run = smaller(run, bytes);
        memcpy(out, at, (size_t)run);
        out += run;
        offset += run;
        bytes -= run;
    }
}

void pl_view_write(const pl_view_t *view, int64_t offset, const void *buffer, int64_t bytes)
{
    const char *in = buffer;

    while (bytes > 0) {
        int64_t run;
        void *at = pl_view_at(view, offset, &run);

        if (!at)
            return;
        run = smaller(run, bytes);
        memcpy(at, in, (size_t)run);
        in += run;
        offset += run;
        bytes -= run;
    }
}

void pl_view_copy(const pl_view_t *to, int64_t to_offset, const pl_view_t *from,
                  int64_t from_offset, int64_t bytes)
{
    while (bytes > 0) {
        int64_t run;
        const void *at = pl_view_at(from, from_offset, &run);

        if (!at)
            return;
        run = smaller(run, bytes);
        pl_view_write(to, to_offset, at, run);
        from_offset += run;
        to_offset += run;
        bytes -= run;
    }
}
