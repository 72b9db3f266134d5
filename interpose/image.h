/* SPDX-License-Identifier: MIT
 * The writable data of the program's modules and its thread-local blocks, as copies that can be
 * put back. Zero-initialised pages nobody has touched are neither read nor copied. */
#ifndef PLIANT_INTERPOSE_IMAGE_H
#define PLIANT_INTERPOSE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { PL_PAGE = 4096, PL_IMAGE_REGIONS = 32 };

/* One stretch of memory of every process of the program: found by (module, part), not by address.
 */
typedef struct pl_region {
    uint32_t module; /* pl_module_t.id */
    bool thread_local_part;
    uintptr_t low, high;             /* multiple of 8 */
    uintptr_t file_high;             /* initialised from the file up to here, zero beyond */
    uintptr_t slots_low, slots_high; /* left out of comparisons */
    size_t pages;                    /* counted from low, the last one may be short */
} pl_region_t;

/* The regions of this process; the same list in the same order on every rank. */
int pl_image_regions(const pl_region_t **out);

typedef struct pl_image {
    uint32_t *slot[PL_IMAGE_REGIONS]; /* per page: 1 + index of its copy, 0: zero, never touched */
    uint8_t *copies;
    size_t count; /* pages copied */
} pl_image_t;

pl_status_t pl_image_save(pl_image_t *out);
void pl_image_free(pl_image_t *image);
/* Makes memory what it was when the image was saved. Safe while the stack is elsewhere. */
void pl_image_restore(const pl_image_t *image);
/* The copy of a page, NULL: it was all zero. */
const uint8_t *pl_image_page(const pl_image_t *image, int region, size_t page);
/* Bytes of that page that belong to the region. */
size_t pl_image_page_bytes(int region, size_t page);

#endif
