/* SPDX-License-Identifier: MIT */
#include "interpose/match.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENTRY_SOURCE = 1,
    ENTRY_TARGET = 2,
    ENTRY_BORN = 4,
    ENTRY_REBORN = 8,
    ENTRY_CHANGED = 16,
    ENTRY_PERMANENT = 32,
    BORN_ORDER = 1 << 30, /* objects without a counterpart at the baseline come behind all others */
};

/* What one process tells the others about one object. */
typedef struct entry {
    uint64_t chain;
    uint32_t order;
    uint32_t flags;
    int64_t bytes;
    int32_t rank;
    int32_t record; /* its index in the teller's snapshot */
} entry_t;

/* ---- this process's entries ---- */

/* For each record of `now` the record of `base` it was, or that it took the place of. */
static const pl_record_t **find_ancestors(const pl_snapshot_t *now, const pl_snapshot_t *base,
                                          uint32_t *flags)
{
    const pl_record_t **of = calloc((size_t)now->record_count + 1, sizeof(pl_record_t *));
    bool *used = calloc((size_t)base->record_count + 1, sizeof *used);
    int64_t b = 0;

    if (!of || !used) {
        free(of);
        free(used);
        return NULL;
    }
    for (int64_t i = 0; i < now->record_count; i++) { /* both are sorted by chain */
        uint64_t chain = now->records[i].block.chain;
        while (b < base->record_count && base->records[b].block.chain < chain)
            b++;
        for (int64_t k = b; k < base->record_count && base->records[k].block.chain == chain; k++)
            if (base->records[k].block.id == now->records[i].block.id) {
                of[i] = &base->records[k];
                used[k] = true;
            }
    }
    b = 0;
    for (int64_t i = 0; i < now->record_count; i++) { /* what was made again since */
        uint64_t chain = now->records[i].block.chain;
        while (b < base->record_count && (base->records[b].block.chain < chain))
            b++;
        if (of[i])
            continue;
        for (int64_t k = b; k < base->record_count && base->records[k].block.chain == chain; k++)
            if (!used[k]) {
                used[k] = true;
                of[i] = &base->records[k];
                flags[i] |= ENTRY_REBORN;
                break;
            }
    }
    free(used);
    return of;
}

static bool content_changed(const pl_record_t *now, const pl_record_t *base)
{
    if (now->block.size != base->block.size)
        return true;
    const void *bytes = now->permanent && now->copy ? now->copy : now->block.address;
    return pl_hash_bytes(bytes, (size_t)now->block.size) != base->hash;
}

static int source_entries(const pl_snapshot_t *now, const pl_snapshot_t *base, int rank,
                          entry_t *out)
{
    uint32_t *flags = calloc((size_t)now->record_count + 1, sizeof *flags);
    const pl_record_t **ancestor = flags ? find_ancestors(now, base, flags) : NULL;
    uint32_t born = 0;
    uint64_t chain = 0;

    if (!ancestor) {
        free(flags);
        return -1;
    }
    for (int64_t i = 0; i < now->record_count; i++) {
        const pl_record_t *r = &now->records[i];
        if (r->block.chain != chain)
            born = 0;
        chain = r->block.chain;
        if (!ancestor[i])
            flags[i] |= ENTRY_BORN;
        if (!ancestor[i] || content_changed(r, ancestor[i]))
            flags[i] |= ENTRY_CHANGED;
        if (r->permanent)
            flags[i] |= ENTRY_PERMANENT;
        out[i] = (entry_t){.chain = chain,
                           .order = ancestor[i] ? ancestor[i]->order : BORN_ORDER + born++,
                           .flags = flags[i] | ENTRY_SOURCE,
                           .bytes = r->block.size,
                           .rank = rank,
                           .record = (int32_t)i};
    }
    free(ancestor);
    free(flags);
    return (int)now->record_count;
}

static int target_entries(const pl_snapshot_t *here, int rank, entry_t *out)
{
    for (int64_t i = 0; i < here->record_count; i++)
        out[i] =
            (entry_t){.chain = here->records[i].block.chain,
                      .order = here->records[i].order,
                      .flags = ENTRY_TARGET | (here->records[i].permanent ? ENTRY_PERMANENT : 0u),
                      .bytes = here->records[i].block.size,
                      .rank = rank,
                      .record = (int32_t)i};
    return (int)here->record_count;
}

/* ---- everybody's entries ---- */

static entry_t *gather(MPI_Comm comm, const entry_t *mine, int count, int *total)
{
    int size, rc = MPI_SUCCESS;
    PMPI_Comm_size(comm, &size);
    int *counts = malloc(2 * (size_t)size * sizeof *counts), *starts = counts + size;
    entry_t *all = NULL;

    if (!counts)
        return NULL;
    PMPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, comm);
    *total = 0;
    for (int r = 0; r < size; r++) {
        starts[r] = *total * (int)sizeof(entry_t);
        *total += counts[r];
        counts[r] *= (int)sizeof(entry_t);
    }
    all = malloc(((size_t)*total + 1) * sizeof *all);
    if (all)
        rc = PMPI_Allgatherv(mine, count * (int)sizeof(entry_t), MPI_BYTE, all, counts, starts,
                             MPI_BYTE, comm);
    free(counts);
    if (rc != MPI_SUCCESS) {
        free(all);
        return NULL;
    }
    return all;
}

static int by_object(const void *a, const void *b)
{
    const entry_t *x = a, *y = b;
    if (x->chain != y->chain)
        return x->chain < y->chain ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->rank - y->rank;
}

static void take_entry(pl_object_t *o, const entry_t *e, int rank, const pl_snapshot_t *now,
                       const pl_snapshot_t *here)
{
    o->permanent = o->permanent || (e->flags & ENTRY_PERMANENT);
    if (e->flags & ENTRY_TARGET) {
        o->target[e->rank] = e->bytes;
        o->targets++;
        if (e->rank == rank)
            o->here = &here->records[e->record];
        return;
    }
    o->source[e->rank] = e->bytes;
    o->sources++;
    o->born = o->born || (e->flags & ENTRY_BORN);
    o->reborn = o->reborn || (e->flags & ENTRY_REBORN);
    o->changed = o->changed || (e->flags & ENTRY_CHANGED);
    o->changed_beyond_root = o->changed_beyond_root || ((e->flags & ENTRY_CHANGED) && e->rank != 0);
    if (e->rank == rank)
        o->now = &now->records[e->record];
}

static pl_status_t build(pl_match_t *m, const entry_t *all, int total, int rank,
                         const pl_snapshot_t *now, const pl_snapshot_t *here)
{
    for (int i = 0; i < total; i++)
        m->count += i == 0 || all[i].chain != all[i - 1].chain || all[i].order != all[i - 1].order;
    size_t per_object = (size_t)(m->ns + m->nt);
    m->objects = calloc((size_t)m->count + 1, sizeof *m->objects);
    m->sizes = malloc(((size_t)m->count * per_object + 1) * sizeof *m->sizes);
    if (!m->objects || !m->sizes)
        return PL_ERR_NOMEM;
    for (size_t i = 0; i < (size_t)m->count * per_object; i++)
        m->sizes[i] = -1;
    int k = -1;
    for (int i = 0; i < total; i++) {
        if (i == 0 || all[i].chain != all[i - 1].chain || all[i].order != all[i - 1].order) {
            pl_object_t *o = &m->objects[++k];
            o->chain = all[i].chain;
            o->order = all[i].order;
            o->source = m->sizes + (size_t)k * per_object;
            o->target = o->source + m->ns;
        }
        take_entry(&m->objects[k], &all[i], rank, now, here);
    }
    return PL_OK;
}

/* The baseline's record of each object this process has as a source. */
static void link_baseline(pl_match_t *m, const pl_snapshot_t *base)
{
    int64_t b = 0;
    for (int i = 0; i < m->count; i++) {
        pl_object_t *o = &m->objects[i];
        while (b < base->record_count &&
               (base->records[b].block.chain < o->chain ||
                (base->records[b].block.chain == o->chain && base->records[b].order < o->order)))
            b++;
        if (b < base->record_count && base->records[b].block.chain == o->chain &&
            base->records[b].order == o->order)
            o->base = &base->records[b];
    }
}

pl_status_t pl_match_make(MPI_Comm comm, int ns, int nt, const pl_snapshot_t *now,
                          const pl_snapshot_t *base, const pl_snapshot_t *here, pl_match_t *out)
{
    pl_match_t m = {.ns = ns, .nt = nt};
    int rank, total = 0;
    size_t room = (size_t)((now ? now->record_count : 0) + (here ? here->record_count : 0)) + 1;
    entry_t *mine = malloc(room * sizeof *mine);
    int count = 0;

    PMPI_Comm_rank(comm, &rank);
    if (mine && now)
        count = source_entries(now, base, rank, mine);
    if (mine && here && count >= 0)
        count += target_entries(here, rank, mine + count);
    int ok = mine && count >= 0, all_ok;
    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, comm);
    entry_t *all = all_ok ? gather(comm, mine, count, &total) : NULL;
    free(mine);
    if (!all)
        return PL_ERR_NOMEM;
    qsort(all, (size_t)total, sizeof *all, by_object);
    pl_status_t status = build(&m, all, total, rank, now, here);
    free(all);
    if (status) {
        pl_match_free(&m);
        return status;
    }
    if (base)
        link_baseline(&m, base);
    *out = m;
    return PL_OK;
}

void pl_match_free(pl_match_t *match)
{
    for (int i = 0; i < match->count && match->objects; i++)
        free(match->objects[i].made);
    free(match->objects);
    free(match->sizes);
    memset(match, 0, sizeof *match);
}

/* Every record is a place, also those without an object on this side (freed since). */
static pl_status_t make_space(const pl_match_t *m, const pl_snapshot_t *s,
                              const pl_record_t *(*record_of)(const pl_object_t *), pl_space_t *out)
{
    size_t room = (size_t)(s->record_count + m->count) + 1;
    int *object_of = malloc(room * sizeof *object_of);
    pl_place_t *places = malloc(room * sizeof *places);
    int64_t n = s->record_count;
    pl_status_t status = PL_ERR_NOMEM;

    if (object_of && places) {
        for (int64_t i = 0; i < s->record_count; i++)
            object_of[i] = -1;
        for (int i = 0; i < m->count; i++) {
            const pl_record_t *r = record_of(&m->objects[i]);
            if (r && r != m->objects[i].made)
                object_of[r - s->records] = i;
        }
        for (int64_t i = 0; i < s->record_count; i++)
            places[i] = (pl_place_t){.address = (uintptr_t)s->records[i].block.address,
                                     .bytes = s->records[i].block.size,
                                     .object = object_of[i]};
        for (int i = 0; i < m->count; i++) {
            const pl_record_t *r = record_of(&m->objects[i]);
            if (r && r == m->objects[i].made)
                places[n++] = (pl_place_t){(uintptr_t)r->block.address, r->block.size, i};
        }
        status = pl_space_make(places, (int)n, m->count, s->stack, out);
    }
    free(object_of);
    free(places);
    return status;
}

static const pl_record_t *record_now(const pl_object_t *o)
{
    return o->now;
}

static const pl_record_t *record_base(const pl_object_t *o)
{
    return o->base;
}

static const pl_record_t *record_here(const pl_object_t *o)
{
    return o->here;
}

pl_status_t pl_match_spaces(const pl_match_t *match, const pl_snapshot_t *now,
                            const pl_snapshot_t *base, const pl_snapshot_t *here,
                            pl_space_t *now_space, pl_space_t *base_space, pl_space_t *here_space)
{
    pl_status_t status = PL_OK;

    memset(now_space, 0, sizeof *now_space);
    memset(base_space, 0, sizeof *base_space);
    memset(here_space, 0, sizeof *here_space);
    if (now)
        status = make_space(match, now, record_now, now_space);
    if (base && !status)
        status = make_space(match, base, record_base, base_space);
    if (here && !status)
        status = make_space(match, here, record_here, here_space);
    return status;
}

pl_status_t pl_match_make_here(pl_object_t *object, int64_t bytes)
{
    pl_record_t *record = calloc(1, sizeof *record);
    if (!record)
        return PL_ERR_NOMEM;
    record->block.address = pl_heap_make(pl_heap_current(), bytes, object->chain);
    record->block.size = bytes;
    record->block.chain = object->chain;
    record->order = object->order;
    if (!record->block.address) {
        free(record);
        return PL_ERR_NOMEM;
    }
    object->here = object->made = record;
    return PL_OK;
}
