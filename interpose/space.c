/* SPDX-License-Identifier: MIT */
#include "interpose/space.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/chain.h"
#include "interpose/controls.h"
#include "interpose/heap.h"
#include "interpose/modules.h"

enum { STACK_BELOW = 1 << 20 }; /* dead frames below the call may still be pointed to */

static int by_address(const void *a, const void *b)
{
    const pl_place_t *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static const char *parse_hex(const char *p, uintptr_t *out)
{
    uintptr_t value = 0;
    for (;; p++) {
        if (*p >= '0' && *p <= '9')
            value = value * 16 + (uintptr_t)(*p - '0');
        else if (*p >= 'a' && *p <= 'f')
            value = value * 16 + (uintptr_t)(*p - 'a' + 10);
        else
            break;
    }
    *out = value;
    return p;
}

/* Whole text of the process's memory map; caller frees. */
static char *read_maps(void)
{
    size_t room = 1 << 16, used = 0;
    char *text = malloc(room);
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    while (text && fd >= 0) {
        if (used + 4096 > room) {
            char *grown = realloc(text, room *= 2);
            if (!grown)
                break;
            text = grown;
        }
        ssize_t n = read(fd, text + used, room - used - 1);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    if (text)
        text[used] = 0;
    return text;
}

/* Mapped memory that is neither a module's, nor our arenas', nor the stack. Below 4 GiB integers
 * look like addresses; those are taken for integers. */
static pl_status_t find_foreign(pl_space_t *space)
{
    char *text = read_maps();
    int room = 0;

    if (!text)
        return PL_ERR_NOMEM;
    for (const char *line = text; *line;) {
        uintptr_t low, high;
        const char *p = parse_hex(line, &low);
        parse_hex(*p == '-' ? p + 1 : p, &high);
        const char *end = strchr(line, '\n');
        line = end ? end + 1 : line + strlen(line);
        if (high <= UINT32_MAX || pl_module_of(low) || pl_heap_owns((void *)low) ||
            (pl_chain_top >= low && pl_chain_top <= high))
            continue;
        if (space->foreigns == room) {
            room = room ? 2 * room : 256;
            void *grown = realloc(space->foreign, (size_t)room * sizeof *space->foreign);
            if (!grown) {
                free(text);
                return PL_ERR_NOMEM;
            }
            space->foreign = grown;
        }
        space->foreign[space->foreigns][0] = low;
        space->foreign[space->foreigns++][1] = high;
    }
    free(text);
    return PL_OK;
}

pl_status_t pl_space_make(const pl_place_t *places, int count, int objects, uintptr_t stack,
                          pl_space_t *out)
{
    pl_space_t space = {.count = count, .objects = objects, .stack = stack};

    space.by_address = malloc((size_t)(count + 1) * sizeof *space.by_address);
    space.index_of_object = malloc((size_t)(objects + 1) * sizeof *space.index_of_object);
    if (!space.by_address || !space.index_of_object || find_foreign(&space)) {
        pl_space_free(&space);
        return PL_ERR_NOMEM;
    }
    memcpy(space.by_address, places, (size_t)count * sizeof *places);
    qsort(space.by_address, (size_t)count, sizeof *places, by_address);
    for (int i = 0; i < objects; i++)
        space.index_of_object[i] = -1;
    for (int i = 0; i < count; i++)
        if (space.by_address[i].object >= 0)
            space.index_of_object[space.by_address[i].object] = i;
    *out = space;
    return PL_OK;
}

void pl_space_free(pl_space_t *space)
{
    free(space->by_address);
    free(space->index_of_object);
    free(space->foreign);
    memset(space, 0, sizeof *space);
}

static const pl_place_t *place_of(const pl_space_t *space, uintptr_t address)
{
    int low = 0, high = space->count; /* the last place that begins at or below address */
    while (low < high) {
        int middle = (low + high) / 2;
        if (space->by_address[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const pl_place_t *p = low ? &space->by_address[low - 1] : NULL;
    return p && address <= p->address + (uintptr_t)p->bytes ? p : NULL;
}

pl_word_t pl_space_word(const pl_space_t *space, uint64_t bits)
{
    pl_word_t word = {bits, PL_WORD_VALUE};

    if (bits < 0x10000 || bits >> 47 || PL_OFF(pointers))
        return word;
    if (pl_heap_owns((void *)bits)) {
        const pl_place_t *p = place_of(space, bits);
        if (!p || p->object < 0)
            return (pl_word_t){bits, PL_WORD_DANGLING};
        if (!PL_OFF(end) && p->bytes && bits == p->address + (uintptr_t)p->bytes)
            return (pl_word_t){(uint64_t)p->object << 40, PL_WORD_END};
        return (pl_word_t){(uint64_t)p->object << 40 | (bits - p->address), PL_WORD_OBJECT};
    }
    if (bits <= pl_chain_top && bits >= space->stack - STACK_BELOW)
        return bits >= space->stack ? (pl_word_t){pl_chain_top - bits, PL_WORD_STACK}
                                    : (pl_word_t){bits, PL_WORD_DANGLING};
    const pl_module_t *m = pl_module_of(bits);
    if (m)
        return (pl_word_t){(uint64_t)m->id << 32 | (bits - m->base), PL_WORD_MODULE};
    for (int i = 0; i < space->foreigns; i++)
        if (bits >= space->foreign[i][0] && bits < space->foreign[i][1])
            return (pl_word_t){0, PL_WORD_FOREIGN};
    return word;
}

bool pl_space_bits(const pl_space_t *space, pl_word_t word, uint64_t *bits)
{
    const pl_module_t *m;
    int at;

    switch (word.kind) {
    case PL_WORD_VALUE:
        *bits = word.value;
        return true;
    case PL_WORD_OBJECT:
    case PL_WORD_END:
        at = pl_word_object(word) < space->objects ? space->index_of_object[pl_word_object(word)]
                                                   : -1;
        if (at < 0)
            return false;
        *bits = space->by_address[at].address + (word.kind == PL_WORD_END
                                                     ? (uint64_t)space->by_address[at].bytes
                                                     : (uint64_t)pl_word_offset(word));
        return true;
    case PL_WORD_STACK:
        *bits = pl_chain_top - word.value;
        return true;
    case PL_WORD_MODULE:
        m = pl_module_by_id((uint32_t)(word.value >> 32));
        if (!m)
            return false;
        *bits = m->base + (uint32_t)word.value;
        return true;
    default:
        return false;
    }
}
