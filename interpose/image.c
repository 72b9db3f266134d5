/* SPDX-License-Identifier: MIT */
#include "interpose/image.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/log.h"
#include "interpose/modules.h"

static pl_region_t regions[PL_IMAGE_REGIONS];
static int region_count = -1;

static void add_region(const pl_module_t *m, bool tls, uintptr_t low, uintptr_t high)
{
    low = (low + 7) & ~(uintptr_t)7;
    high &= ~(uintptr_t)7;
    if (low >= high)
        return;
    if (region_count == PL_IMAGE_REGIONS) {
        PL_WARN("the program has more than %d data regions: the rest is not carried over",
                PL_IMAGE_REGIONS);
        return;
    }
    regions[region_count++] = (pl_region_t){.module = m->id,
                                            .thread_local_part = tls,
                                            .low = low,
                                            .high = high,
                                            .file_high = tls ? high : m->file_high,
                                            .slots_low = tls ? 0 : m->slots_low,
                                            .slots_high = tls ? 0 : m->slots_high,
                                            .pages = (high - low + PL_PAGE - 1) / PL_PAGE};
}

static void find_regions(void)
{
    region_count = 0;
    for (int i = 0; i < pl_modules_count(); i++) {
        const pl_module_t *m = pl_module_at(i);
        if (m->owner != PL_OWNER_PROGRAM)
            continue;
        add_region(m, false, m->data_low, m->data_high);
        if (m->tls)
            add_region(m, true, (uintptr_t)m->tls, (uintptr_t)m->tls + m->tls_bytes);
    }
}

int pl_image_regions(const pl_region_t **out)
{
    if (region_count < 0)
        find_regions();
    *out = regions;
    return region_count;
}

size_t pl_image_page_bytes(int region, size_t page)
{
    size_t rest = regions[region].high - regions[region].low - page * PL_PAGE;
    return rest < PL_PAGE ? rest : PL_PAGE;
}

static bool all_zero(const uint8_t *p, size_t bytes)
{
    const uint64_t *w = (const uint64_t *)p;
    for (size_t i = 0; i < bytes / 8; i++)
        if (w[i])
            return false;
    return true;
}

/* Whether the system page that holds an address was ever touched; all are if it cannot be told. */
static bool touched(int pagemap, uintptr_t address)
{
    enum { WINDOW = 512 };
    static uint64_t entry[WINDOW];
    static uintptr_t first;
    static ssize_t have;
    uintptr_t page = address / PL_PAGE;

    if (pagemap < 0)
        return true;
    if (address == 0) { /* forget what an earlier call read */
        have = 0;
        return false;
    }
    if (have <= 0 || page < first || page >= first + (uintptr_t)have) {
        have = pread(pagemap, entry, sizeof entry, (off_t)(page * 8)) / 8;
        first = page;
        if (have <= 0)
            return true;
    }
    return (entry[page - first] >> 62) != 0;
}

static bool page_touched(int pagemap, const pl_region_t *r, size_t page, size_t bytes)
{
    uintptr_t start = r->low + page * PL_PAGE;
    return start < r->file_high || touched(pagemap, start) || touched(pagemap, start + bytes - 1);
}

static pl_status_t make_room(pl_image_t *image, size_t *room)
{
    if (image->count < *room)
        return PL_OK;
    size_t more = *room ? *room * 2 : 64;
    uint8_t *grown = realloc(image->copies, more * PL_PAGE);
    if (!grown)
        return PL_ERR_NOMEM;
    image->copies = grown;
    *room = more;
    return PL_OK;
}

static pl_status_t save_region(pl_image_t *image, int region, int pagemap, size_t *room)
{
    const pl_region_t *r = &regions[region];

    image->slot[region] = calloc(r->pages, sizeof *image->slot[region]);
    if (!image->slot[region])
        return PL_ERR_NOMEM;
    for (size_t page = 0; page < r->pages; page++) {
        const uint8_t *from = (const uint8_t *)(r->low + page * PL_PAGE);
        size_t bytes = pl_image_page_bytes(region, page);
        if (!page_touched(pagemap, r, page, bytes) || all_zero(from, bytes))
            continue;
        if (make_room(image, room))
            return PL_ERR_NOMEM;
        memcpy(image->copies + image->count * PL_PAGE, from, bytes);
        image->slot[region][page] = (uint32_t)++image->count;
    }
    return PL_OK;
}

static int open_pagemap(void)
{
    touched(0, 0);
    return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

pl_status_t pl_image_save(pl_image_t *out)
{
    pl_image_t image = {.copies = NULL};
    size_t room = 0;
    const pl_region_t *list;
    int n = pl_image_regions(&list), pagemap = open_pagemap();
    pl_status_t status = PL_OK;

    for (int i = 0; i < n && !status; i++)
        status = save_region(&image, i, pagemap, &room);
    if (pagemap >= 0)
        close(pagemap);
    if (status) {
        pl_image_free(&image);
        return status;
    }
    *out = image;
    return PL_OK;
}

void pl_image_free(pl_image_t *image)
{
    for (int i = 0; i < PL_IMAGE_REGIONS; i++)
        free(image->slot[i]);
    free(image->copies);
    memset(image, 0, sizeof *image);
}

const uint8_t *pl_image_page(const pl_image_t *image, int region, size_t page)
{
    uint32_t slot = image->slot[region][page];
    return slot ? image->copies + (size_t)(slot - 1) * PL_PAGE : NULL;
}

static void put_bytes(uint8_t *to, const uint8_t *from, size_t bytes, const pl_region_t *r)
{
    uintptr_t start = (uintptr_t)to, end = start + bytes;
    /* the loader may have bound a slot meanwhile: its value stays */
    uintptr_t skip_low = r->slots_low < start ? start : r->slots_low;
    uintptr_t skip_high = r->slots_high > end ? end : r->slots_high;
    if (skip_low >= skip_high)
        skip_low = skip_high = end;
    for (int part = 0; part < 2; part++) {
        uintptr_t a = part ? skip_high : start, b = part ? end : skip_low;
        if (a >= b)
            continue;
        if (from)
            memcpy((void *)a, from + (a - start), b - a);
        else
            memset((void *)a, 0, b - a);
    }
}

void pl_image_restore(const pl_image_t *image)
{
    int pagemap = open_pagemap();

    for (int i = 0; i < region_count; i++) {
        for (size_t page = 0; page < regions[i].pages; page++) {
            uint8_t *to = (uint8_t *)(regions[i].low + page * PL_PAGE);
            size_t bytes = pl_image_page_bytes(i, page);
            const uint8_t *from = pl_image_page(image, i, page);
            if (!from && !page_touched(pagemap, &regions[i], page, bytes))
                continue;
            put_bytes(to, from, bytes, &regions[i]);
        }
    }
    if (pagemap >= 0)
        close(pagemap);
}
