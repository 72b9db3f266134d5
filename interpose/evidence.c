/* SPDX-License-Identifier: MIT */
#include "interpose/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "interpose/border.h"

/* A full table is no error: evidence is just not taken. */
#define HASH_NONFATAL_OOM    1
#define uthash_malloc(size)  malloc(size)
#define uthash_free(p, size) free(p)
#include <uthash.h>

enum { RECENT = 64, MAX_LANDINGS = 1 << 16 };

/* Where a receive landed. */
typedef struct landing {
    uintptr_t address;
    int64_t bytes; /* the most */
    UT_hash_handle hh;
} landing_t;

bool pl_evidence_on;

static landing_t *landings;
static struct {
    const void *buffer;
    MPI_Count bytes;
} recent[RECENT]; /* loops receive into the same few places: look here first */

void pl_evidence_receive(const void *buffer, MPI_Count bytes)
{
    unsigned slot = ((uintptr_t)buffer >> 4) % RECENT;
    uintptr_t address = (uintptr_t)buffer;
    landing_t *l;

    if (recent[slot].buffer == buffer && recent[slot].bytes >= bytes)
        return;
    recent[slot].buffer = buffer;
    recent[slot].bytes = bytes;
    HASH_FIND(hh, landings, &address, sizeof address, l);
    if (!l) {
        if (HASH_COUNT(landings) >= MAX_LANDINGS || !(l = calloc(1, sizeof *l)))
            return;
        l->address = address;
        HASH_ADD(hh, landings, address, sizeof l->address, l);
    }
    if (bytes > l->bytes)
        l->bytes = bytes;
}

void pl_evidence_collective(const struct pl_evidence *evidence)
{
    (void)evidence; /* block layouts follow from sizes; nothing to add yet */
}

void pl_evidence_ghosts(uintptr_t address, int64_t bytes, int64_t *below, int64_t *above)
{
    landing_t *l, *next;

    *below = *above = 0;
    HASH_ITER(hh, landings, l, next)
    {
        if (l->address < address || l->address + (uintptr_t)l->bytes > address + (uintptr_t)bytes ||
            l->bytes == bytes)
            continue;
        int64_t start = (int64_t)(l->address - address), end = start + l->bytes;
        if (start == 0 && end > *below)
            *below = end;
        if (end == bytes && bytes - start > *above)
            *above = bytes - start;
    }
}

bool pl_evidence_row(uintptr_t address, int64_t bytes)
{
    landing_t *l, *next;

    HASH_ITER(hh, landings, l, next)
    if (l->address >= address && l->address < address + (uintptr_t)bytes)
        return true;
    return false;
}

void pl_evidence_clear(void)
{
    landing_t *l, *next;

    HASH_ITER(hh, landings, l, next)
    {
        HASH_DEL(landings, l);
        free(l);
    }
    memset(recent, 0, sizeof recent);
}
