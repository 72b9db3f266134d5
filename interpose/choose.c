/* SPDX-License-Identifier: MIT */
#include "interpose/choose.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/evidence.h"
#include "interpose/heap.h"
#include "redist/check.h"

#define NOTHING INT64_MIN /* a process that has nothing to compare */

enum { ROW_SAMPLES = 4096, COUNTERS = 7, INDEX_LIMIT = 1 << 28 };

enum { TRAIT_POINTERS = 1, TRAIT_NO_INDEX = 2 }; /* it holds pointers; it holds no mere indices */

typedef struct contest {
    pl_array_case_t *c;
    pl_layout_t *proposal;
    int proposals;
    int64_t *sizes;       /* of sources, then of targets */
    pl_sample_t *samples; /* this source's */
    int sample_count;
    int traits;
    int64_t ghosts[2];  /* bytes below and above, by messages */
    int unused[2];      /* what a halo leaves over below, above is zero on all processes */
    int64_t end[2][2];  /* hashes of what it leaves over [side: below, above][source, target] */
    bool alike[2];      /* that is the same on all sources, and on all targets */
    pl_check_t *result; /* per proposal, over all targets */
    int chosen;         /* -1: none */
} contest_t;

typedef struct arena {
    MPI_Comm comm;
    int rank, ranks;
    const pl_match_t *match;
    contest_t *list;
    int count;
} arena_t;

/* ---- this process's part ---- */

static pl_status_t take_sizes(contest_t *t, const pl_match_t *m)
{
    int ranks = m->ns + m->nt;
    t->sizes = calloc((size_t)ranks, sizeof *t->sizes);
    if (!t->sizes)
        return PL_ERR_NOMEM;
    for (int i = 0; i < t->c->count; i++)
        for (int r = 0; r < ranks; r++) {
            int64_t s = m->objects[t->c->first + i].source[r];
            t->sizes[r] += s > 0 ? s : 0;
        }
    pl_sizes_t sizes = {m->ns, m->nt, t->sizes, t->sizes + m->ns};
    int64_t unit = t->c->count > 1 ? m->objects[t->c->first].source[0] : 0;
    return pl_layout_propose(&sizes, unit, &t->proposal, &t->proposals);
}

static pl_status_t take_samples(contest_t *t, const pl_match_t *m)
{
    int room = 0, rows = 0;

    for (int i = 0; i < t->c->count; i++) {
        const pl_record_t *base = m->objects[t->c->first + i].base;
        room += base ? base->sample_count : 0;
        rows += base != NULL;
    }
    t->samples = malloc(((size_t)room + 1) * sizeof *t->samples);
    if (!t->samples)
        return PL_ERR_NOMEM;
    int step = rows > 1 && room > ROW_SAMPLES ? room / ROW_SAMPLES + 1 : 1;
    for (int i = 0; i < t->c->count; i++) {
        const pl_record_t *base = m->objects[t->c->first + i].base;
        for (int k = 0; base && k < base->sample_count; k += step) {
            pl_sample_t s = base->samples[k];
            s.offset += (int64_t)i * m->objects[t->c->first].source[0] * (t->c->count > 1);
            t->samples[t->sample_count++] = s;
        }
    }
    return PL_OK;
}

static int traits_of(const pl_view_t *view)
{
    int traits = 0;

    for (int64_t at = 0; at < view->bytes;) {
        int64_t run;
        const uint8_t *p = pl_view_at(view, at, &run);
        for (int64_t i = 0; i + 4 <= run; i += 4) {
            int32_t half;
            uint64_t word = 0;
            memcpy(&half, p + i, 4);
            if (i % 8 == 0 && i + 8 <= run)
                memcpy(&word, p + i, 8);
            if (word && pl_heap_owns((void *)word))
                traits |= TRAIT_POINTERS;
            if (half > INDEX_LIMIT || half < -INDEX_LIMIT)
                traits |= TRAIT_NO_INDEX;
        }
        at += run;
    }
    return traits;
}

static void take_ghosts(contest_t *t)
{
    const pl_view_t *views[2] = {&t->c->source, &t->c->target};

    for (int i = 0; i < 2; i++) {
        int64_t below = 0, above = 0;
        if (!views[i]->bytes)
            continue;
        if (views[i]->rows) { /* whole rows are received: any of the first, or of the last ones */
            int64_t rows = views[i]->bytes / views[i]->row_bytes;
            for (int64_t k = 0; k < rows; k++) {
                if (!pl_evidence_row((uintptr_t)views[i]->rows[k], views[i]->row_bytes))
                    continue;
                if (k < rows / 2)
                    below = (k + 1) * views[i]->row_bytes;
                else if (!above)
                    above = (rows - k) * views[i]->row_bytes;
            }
        } else {
            pl_evidence_ghosts((uintptr_t)views[i]->base, views[i]->bytes, &below, &above);
        }
        t->ghosts[0] = below > t->ghosts[0] ? below : t->ghosts[0];
        t->ghosts[1] = above > t->ghosts[1] ? above : t->ghosts[1];
    }
}

static bool zero_bytes(const pl_view_t *view, int64_t from, int64_t bytes)
{
    while (bytes > 0) {
        int64_t run;
        const uint8_t *p = pl_view_at(view, from, &run);
        for (int64_t i = 0; p && i < run && i < bytes; i++)
            if (p[i])
                return false;
        from += run;
        bytes -= run;
    }
    return true;
}

static int64_t surplus_of(const contest_t *t)
{
    int64_t surplus = 0;

    for (int p = 0; p < t->proposals; p++)
        if (t->proposal[p].kind == PL_KIND_HALO)
            surplus = (t->proposal[p].lo + t->proposal[p].hi) * t->proposal[p].unit;
    return surplus;
}

/* Allocations are zero-filled: what is zero everywhere was never written, e.g. element 0 of arrays
 * that are counted from 1, or one element more than needed. */
static void take_unused(contest_t *t)
{
    int64_t surplus = surplus_of(t);
    const pl_view_t *views[2] = {&t->c->source, &t->c->target};
    t->unused[0] = t->unused[1] = surplus > 0;
    for (int i = 0; i < 2; i++) {
        if (views[i]->bytes < surplus || !surplus)
            continue;
        t->unused[0] = t->unused[0] && zero_bytes(views[i], 0, surplus);
        t->unused[1] = t->unused[1] && zero_bytes(views[i], views[i]->bytes - surplus, surplus);
    }
}

static int64_t hash_view(const pl_view_t *view, int64_t from, int64_t bytes)
{
    uint64_t hash = 0;
    while (bytes > 0) {
        int64_t run;
        const uint8_t *p = pl_view_at(view, from, &run);
        run = run < bytes ? run : bytes;
        hash = hash * 31 + pl_hash_bytes(p, (size_t)run);
        from += run;
        bytes -= run;
    }
    return (int64_t)(hash >> 1);
}

/* One allocation may hold what all processes have alike beside a block: its sizes are a halo's. */
static void take_ends(contest_t *t)
{
    const pl_view_t *views[2] = {&t->c->source, &t->c->target};
    int64_t surplus = surplus_of(t);

    for (int i = 0; i < 2; i++) {
        bool any = surplus > 0 && views[i]->bytes >= surplus;
        t->end[0][i] = any ? hash_view(views[i], 0, surplus) : NOTHING;
        t->end[1][i] = any ? hash_view(views[i], views[i]->bytes - surplus, surplus) : NOTHING;
    }
}

static pl_status_t prepare(contest_t *t, const pl_match_t *m)
{
    pl_status_t status = take_sizes(t, m);
    if (!status)
        status = take_samples(t, m);
    if (status)
        return status;
    t->traits = traits_of(&t->c->source) | traits_of(&t->c->target);
    take_ghosts(t);
    take_unused(t);
    take_ends(t);
    t->result = calloc((size_t)t->proposals + 1, sizeof *t->result);
    t->chosen = -1;
    return t->result ? PL_OK : PL_ERR_NOMEM;
}

/* ---- samples of all sources, tested on the targets ---- */

typedef struct gathered {
    pl_sample_t *all;
    int *counts; /* [rank][contest] */
} gathered_t;

static pl_status_t gather_samples(const arena_t *a, gathered_t *out)
{
    int *mine = calloc((size_t)a->count + 1, sizeof *mine), total = 0, rc = MPI_SUCCESS;
    int *bytes = calloc(2 * (size_t)a->ranks, sizeof *bytes), *starts = bytes + a->ranks;
    pl_sample_t *packed;

    out->counts = calloc((size_t)a->count * (size_t)a->ranks + 1, sizeof *out->counts);
    out->all = NULL;
    for (int i = 0; i < a->count; i++)
        total += mine[i] = a->list[i].sample_count;
    packed = malloc(((size_t)total + 1) * sizeof *packed);
    total = 0;
    for (int i = 0; i < a->count; i++) {
        memcpy(packed + total, a->list[i].samples, (size_t)mine[i] * sizeof *packed);
        total += mine[i];
    }
    PMPI_Allgather(mine, a->count, MPI_INT, out->counts, a->count, MPI_INT, a->comm);
    int64_t sum = 0;
    for (int r = 0; r < a->ranks; r++) {
        starts[r] = (int)sum;
        for (int i = 0; i < a->count; i++)
            bytes[r] += out->counts[r * a->count + i] * (int)sizeof *packed;
        sum += bytes[r];
    }
    if (sum < INT_MAX)
        out->all = malloc((size_t)sum + 1);
    if (out->all)
        rc = PMPI_Allgatherv(packed, total * (int)sizeof *packed, MPI_BYTE, out->all, bytes, starts,
                             MPI_BYTE, a->comm);
    free(packed);
    free(mine);
    free(bytes);
    if (!out->all)
        return PL_ERR_LIMIT;
    return rc == MPI_SUCCESS ? PL_OK : PL_ERR_MPI;
}

static pl_status_t test_proposals(const arena_t *a, const gathered_t *g)
{
    int ns = a->match->ns;
    const pl_sample_t **of_source = malloc(((size_t)ns + 1) * sizeof(pl_sample_t *));
    int *n_of_source = malloc(((size_t)ns + 1) * sizeof *n_of_source);

    for (int i = 0; i < a->count && of_source && n_of_source; i++) {
        contest_t *t = &a->list[i];
        const pl_sample_t *at = g->all;
        for (int r = 0; r < ns; r++) {
            of_source[r] = at;
            for (int k = 0; k < a->count; k++) {
                if (k < i)
                    of_source[r] += g->counts[r * a->count + k];
                at += g->counts[r * a->count + k];
            }
            n_of_source[r] = g->counts[r * a->count + i];
        }
        for (int p = 0; p < t->proposals && a->rank < a->match->nt; p++)
            pl_layout_check(&t->proposal[p], of_source, n_of_source, a->rank, &t->c->target,
                            &t->result[p]);
    }
    pl_status_t status = of_source && n_of_source ? PL_OK : PL_ERR_NOMEM;
    free(of_source);
    free(n_of_source);
    return status;
}

enum {
    MOST_BELOW,
    MOST_ABOVE,
    MOST_POINTERS,
    MOST_NO_INDEX,
    MOST_USED_BELOW,
    MOST_USED_ABOVE,
    MOST_ENDS, /* per side, source and target: the largest hash and minus the smallest */
    MOST = MOST_ENDS + 8
};

static void put_ends(const contest_t *t, int64_t *most)
{
    for (int i = 0; i < 4; i++) {
        int64_t hash = t->end[i / 2][i % 2];
        most[MOST_ENDS + 2 * i] = hash;
        most[MOST_ENDS + 2 * i + 1] = hash == NOTHING ? NOTHING : -hash;
    }
}

static void get_ends(contest_t *t, const int64_t *most)
{
    for (int side = 0; side < 2; side++) {
        t->alike[side] = true;
        for (int i = 2 * side; i < 2 * side + 2; i++) {
            int64_t high = most[MOST_ENDS + 2 * i], low = most[MOST_ENDS + 2 * i + 1];
            t->alike[side] = t->alike[side] && high != NOTHING && high == -low;
        }
    }
}

/* Brings together what the processes found, in two reductions for all arrays. */
static pl_status_t share_findings(const arena_t *a)
{
    int proposals = 0;
    for (int i = 0; i < a->count; i++)
        proposals += a->list[i].proposals;
    pl_check_t *results = calloc((size_t)proposals + 1, sizeof *results);
    int64_t(*most)[MOST] = calloc((size_t)a->count + 1, sizeof *most);
    pl_check_t *at = results;

    for (int i = 0; i < a->count && results && most; i++) {
        const contest_t *t = &a->list[i];
        memcpy(at, t->result, (size_t)t->proposals * sizeof *at);
        at += t->proposals;
        const int64_t mine[MOST_ENDS] = {t->ghosts[0],
                                         t->ghosts[1],
                                         (t->traits & TRAIT_POINTERS) != 0,
                                         (t->traits & TRAIT_NO_INDEX) != 0,
                                         !t->unused[0],
                                         !t->unused[1]};
        memcpy(most[i], mine, sizeof mine);
        put_ends(t, most[i]);
    }
    if (results && most) {
        PMPI_Allreduce(MPI_IN_PLACE, results, proposals * COUNTERS, MPI_INT64_T, MPI_SUM, a->comm);
        PMPI_Allreduce(MPI_IN_PLACE, most, a->count * MOST, MPI_INT64_T, MPI_MAX, a->comm);
    }
    at = results;
    for (int i = 0; i < a->count && results && most; i++) {
        contest_t *t = &a->list[i];
        memcpy(t->result, at, (size_t)t->proposals * sizeof *at);
        at += t->proposals;
        t->ghosts[0] = most[i][MOST_BELOW];
        t->ghosts[1] = most[i][MOST_ABOVE];
        t->traits = (most[i][MOST_POINTERS] ? TRAIT_POINTERS : 0) |
                    (most[i][MOST_NO_INDEX] ? TRAIT_NO_INDEX : 0);
        t->unused[0] = !most[i][MOST_USED_BELOW];
        t->unused[1] = !most[i][MOST_USED_ABOVE];
        get_ends(t, most[i]);
    }
    pl_status_t status = results && most ? PL_OK : PL_ERR_NOMEM;
    free(results);
    free(most);
    return status;
}
_Static_assert(sizeof(pl_check_t) == COUNTERS * sizeof(int64_t), "reduced as so many integers");

/* ---- the choice ---- */

static bool survives(const contest_t *t, int p)
{
    return t->result[p].disagree == 0 && t->result[p].agree > 0;
}

static bool same_family(const arena_t *a, const contest_t *x, const contest_t *y)
{
    return x->proposals == y->proposals && (x->c->count > 1) == (y->c->count > 1) &&
           !memcmp(x->sizes, y->sizes, (size_t)(a->match->ns + a->match->nt) * sizeof *x->sizes);
}

static bool fits_ghosts(const contest_t *t, int p, const int64_t *ghosts)
{
    const pl_layout_t *l = &t->proposal[p];
    return l->lo * l->unit == ghosts[0] && l->hi * l->unit == ghosts[1];
}

static void choose_alone(contest_t *t)
{
    int left = 0, last = -1;

    for (int p = 0; p < t->proposals; p++)
        if (survives(t, p)) {
            left++;
            last = p;
        }
    if (left == 1) {
        t->chosen = last;
        t->c->evidence = t->result[last].distinct_agree ? "proven" : "plausible";
    }
}

/* Several are left: arrays of the same sizes lie alike, and messages show where ghosts are. */
static void choose_by_family(const arena_t *a, contest_t *t)
{
    int64_t ghosts[2] = {0, 0};

    for (int i = 0; i < a->count && t->chosen < 0; i++) {
        const contest_t *other = &a->list[i];
        if (!same_family(a, t, other))
            continue;
        for (int k = 0; k < 2; k++)
            ghosts[k] = other->ghosts[k] > ghosts[k] ? other->ghosts[k] : ghosts[k];
        if (other != t && other->chosen >= 0 && survives(t, other->chosen) &&
            !strcmp(other->c->evidence, "proven")) {
            t->chosen = other->chosen;
            t->c->evidence = "plausible";
        }
    }
    for (int p = 0; p < t->proposals && t->chosen < 0; p++)
        if (survives(t, p) && (ghosts[0] || ghosts[1]) && fits_ghosts(t, p, ghosts)) {
            t->chosen = p;
            t->c->evidence = "proven";
        }
}

/* Nothing was ever received into the surplus, and at one end it was never written. */
static void choose_by_unused(contest_t *t)
{
    if (t->chosen >= 0 || t->ghosts[0] || t->ghosts[1] || t->unused[0] == t->unused[1])
        return;
    for (int p = 0; p < t->proposals; p++) {
        const pl_layout_t *l = &t->proposal[p];
        if (l->kind == PL_KIND_HALO && survives(t, p) && (t->unused[0] ? l->hi : l->lo) == 0) {
            t->chosen = p;
            t->c->evidence = "plausible";
            t->c->unused = true;
        }
    }
}

/* A surplus at one end that no neighbour's data explains, and that all processes have alike. */
static void note_common(contest_t *t)
{
    if (t->chosen < 0 || t->proposal[t->chosen].kind != PL_KIND_HALO || t->c->unused)
        return;
    const pl_layout_t *l = &t->proposal[t->chosen];
    if ((l->lo == 0) == (l->hi == 0) || !t->alike[l->lo == 0])
        return;
    const pl_check_t *r = &t->result[t->chosen];
    t->c->common = r->ghost_disagree + r->reach_disagree > 0 && !t->unused[l->lo == 0];
}

/* A constant array without a layout is still right where set-up made it if it only tells how things
 * lie (indices, pointers); numbers might have been drawn differently. */
static void without_layout(contest_t *t)
{
    bool left = false;

    for (int p = 0; p < t->proposals; p++)
        left = left || survives(t, p);
    if (!t->c->changed && (!(t->traits & TRAIT_NO_INDEX) || (t->traits & TRAIT_POINTERS))) {
        t->c->fate = PL_FATE_OWN;
        t->c->kind = "own";
        t->c->evidence = "plausible";
        return;
    }
    t->c->fate = PL_FATE_REFUSED;
    t->c->evidence = left ? "ambiguous" : "none";
}

/* A constant array that set-up has made again bit by bit stays where it is. */
static void keep_constants(const arena_t *a)
{
    uint64_t *sum = calloc((size_t)a->count + 1, sizeof *sum);

    for (int i = 0; i < a->count && sum; i++) {
        const contest_t *t = &a->list[i];
        if (t->chosen < 0 || t->c->changed)
            continue;
        const pl_layout_t *l = &t->proposal[t->chosen];
        if (a->rank < a->match->ns)
            sum[i] += pl_layout_hash(l, PL_SOURCE, a->rank, &t->c->source);
        if (a->rank < a->match->nt)
            sum[i] -= pl_layout_hash(l, PL_TARGET, a->rank, &t->c->target);
    }
    if (sum)
        PMPI_Allreduce(MPI_IN_PLACE, sum, a->count, MPI_UINT64_T, MPI_SUM, a->comm);
    for (int i = 0; i < a->count && sum; i++)
        a->list[i].c->move = a->list[i].c->changed || sum[i] != 0;
    free(sum);
}

static void decide(arena_t *a)
{
    for (int i = 0; i < a->count; i++)
        if (!(a->list[i].traits & TRAIT_POINTERS))
            choose_alone(&a->list[i]);
    for (int i = 0; i < a->count; i++)
        if (!(a->list[i].traits & TRAIT_POINTERS) && a->list[i].chosen < 0)
            choose_by_family(a, &a->list[i]);
    for (int i = 0; i < a->count; i++)
        if (!(a->list[i].traits & TRAIT_POINTERS))
            choose_by_unused(&a->list[i]);
    for (int i = 0; i < a->count; i++)
        note_common(&a->list[i]);
    for (int i = 0; i < a->count; i++) {
        contest_t *t = &a->list[i];
        if (t->chosen < 0) {
            without_layout(t);
            continue;
        }
        pl_layout_copy(&t->proposal[t->chosen], &t->c->layout);
        t->c->has_layout = true;
    }
    keep_constants(a);
}

static void release(arena_t *a)
{
    for (int i = 0; i < a->count; i++) {
        pl_layout_free(a->list[i].proposal, a->list[i].proposals);
        free(a->list[i].sizes);
        free(a->list[i].samples);
        free(a->list[i].result);
    }
    free(a->list);
}

pl_status_t pl_choose_layouts(MPI_Comm comm, const pl_match_t *match, const pl_snapshot_t *base,
                              pl_array_case_t *cases, int count)
{
    arena_t a = {.comm = comm, .match = match, .list = calloc((size_t)count + 1, sizeof *a.list)};
    gathered_t g = {NULL, NULL};
    int ok = a.list != NULL, all_ok;
    (void)base;

    PMPI_Comm_rank(comm, &a.rank);
    PMPI_Comm_size(comm, &a.ranks);
    for (int i = 0; i < count && ok; i++) {
        if (cases[i].fate != PL_FATE_DISTRIBUTED)
            continue;
        a.list[a.count].c = &cases[i];
        ok = !prepare(&a.list[a.count++], match);
    }
    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, comm);
    pl_status_t status = all_ok ? PL_OK : PL_ERR_NOMEM;
    if (!status)
        status = gather_samples(&a, &g);
    if (!status)
        status = test_proposals(&a, &g);
    if (!status)
        status = share_findings(&a);
    free(g.all);
    free(g.counts);
    if (!status)
        decide(&a);
    release(&a);
    return status;
}
