/* SPDX-License-Identifier: MIT */
#include "interpose/arrays.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/choose.h"
#include "interpose/controls.h"
#include "interpose/heap.h"

/* ---- what sizes alone tell ---- */

static bool everywhere(const pl_object_t *o, const pl_match_t *m)
{
    return o->sources == m->ns && o->targets == m->nt;
}

static bool root_only(const pl_object_t *o)
{
    return o->sources == 1 && o->source[0] >= 0 && o->targets == 1 && o->target[0] >= 0;
}

static bool same_size(const pl_object_t *o, const pl_match_t *m)
{
    int64_t size = -1;
    for (int r = 0; r < m->ns + m->nt; r++) {
        int64_t s = o->source[r]; /* targets follow the sources in memory */
        if (s >= 0 && size >= 0 && s != size)
            return false;
        size = s >= 0 ? s : size;
    }
    return true;
}

static bool per_process_table(const pl_object_t *o, const pl_match_t *m)
{
    int64_t each = o->source[0] / m->ns;
    if (each == 0 || m->ns == m->nt)
        return false;
    for (int r = 0; r < m->ns; r++)
        if (o->source[r] != each * m->ns)
            return false;
    for (int r = 0; r < m->nt; r++)
        if (o->target[r] != each * m->nt)
            return false;
    return true;
}

/* The same on all processes but for a little padding that depends on their number? Its end must be
 * unused (zero) where it is longer. */
static bool padded_copy(const pl_object_t *o, const pl_match_t *m)
{
    int64_t s = o->source[0], t = o->target[0], gap = s > t ? s - t : t - s;
    int most = m->ns > m->nt ? m->ns : m->nt;

    for (int r = 1; r < m->ns; r++)
        if (o->source[r] != s)
            return false;
    for (int r = 1; r < m->nt; r++)
        if (o->target[r] != t)
            return false;
    return gap <= 8 * (int64_t)most && gap * 16 < s && s <= PL_SMALL_OBJECT;
}

static bool tail_unused(const pl_record_t *r, int64_t from)
{
    const uint8_t *p = r ? r->block.address : NULL;
    for (int64_t i = from; r && i < r->block.size; i++)
        if (p[i])
            return false;
    return true;
}

static int64_t largest(const pl_object_t *o, const pl_match_t *m)
{
    int64_t most = 0;
    for (int r = 0; r < m->ns + m->nt; r++)
        most = o->source[r] > most ? o->source[r] : most;
    return most;
}

static void set(pl_array_case_t *c, pl_fate_t fate, const char *kind, const char *evidence)
{
    c->fate = fate;
    c->kind = kind;
    c->evidence = evidence;
}

/* A fate of a single object from its presence and sizes; DISTRIBUTED is still a candidate. */
static void first_fate(pl_array_case_t *c, const pl_object_t *o, const pl_match_t *m)
{
    if (o->sources == 0) {
        set(c, o->targets ? PL_FATE_GONE : PL_FATE_NONE, "own", "proven");
    } else if (o->born) {
        bool all = o->sources == m->ns && o->targets == 0 && same_size(o, m);
        set(c, all ? PL_FATE_BORN : PL_FATE_REFUSED, "replicated", "plausible");
    } else if (root_only(o) && same_size(o, m)) {
        set(c, PL_FATE_WORDS, "own", "proven");
    } else if (!everywhere(o, m)) {
        set(c, o->changed ? PL_FATE_REFUSED : PL_FATE_OWN, "own", "plausible");
    } else if (same_size(o, m)) {
        set(c, largest(o, m) <= PL_SMALL_OBJECT ? PL_FATE_WORDS : PL_FATE_WHOLE, "replicated",
            "proven");
    } else if (per_process_table(o, m)) {
        set(c, o->changed ? PL_FATE_REFUSED : PL_FATE_OWN, "table", "proven");
    } else {
        set(c, PL_FATE_DISTRIBUTED, "block", "ambiguous");
    }
}

/* ---- rows ---- */

/* Objects first.. of one chain, as many on each process as it has rows, all of one length? */
static int row_list(const pl_match_t *m, int first)
{
    const pl_object_t *o = m->objects;
    int last = first;
    bool varies = false;

    if (o[first].born || o[first].permanent || !everywhere(&o[first], m))
        return 1;
    while (last + 1 < m->count && o[last + 1].chain == o[first].chain && !o[last + 1].born)
        last++;
    for (int i = first; i <= last; i++) {
        varies = varies || !everywhere(&o[i], m);
        for (int r = 0; r < m->ns + m->nt; r++) {
            if (o[i].source[r] >= 0 && o[i].source[r] != o[first].source[0])
                return 1;
            if (o[i].source[r] >= 0 && i > first && o[i - 1].source[r] < 0)
                return 1; /* a hole */
        }
    }
    return varies && last > first ? last - first + 1 : 1;
}

static pl_view_t row_view(const pl_match_t *m, const pl_array_case_t *c, void **rows,
                          const pl_record_t *(*record)(const pl_object_t *), bool copy)
{
    pl_view_t view = {.rows = rows, .row_bytes = m->objects[c->first].source[0]};
    for (int i = 0; i < c->count; i++) {
        const pl_record_t *r = record(&m->objects[c->first + i]);
        if (!r)
            break;
        rows[i] = copy ? r->copy : r->block.address;
        view.bytes += view.row_bytes;
    }
    return view;
}

static const pl_record_t *record_now(const pl_object_t *o)
{
    return o->now;
}

static const pl_record_t *record_here(const pl_object_t *o)
{
    return o->here;
}

static pl_view_t block_view(const pl_record_t *r)
{
    pl_view_t view = {.base = NULL};
    if (r)
        view = (pl_view_t){.base = r->copy && r->permanent ? r->copy : r->block.address,
                           .bytes = r->block.size};
    return view;
}

static pl_status_t make_views(pl_array_case_t *c, const pl_match_t *m)
{
    const pl_object_t *o = &m->objects[c->first];

    if (c->count == 1) {
        c->source = block_view(o->now);
        c->target = (pl_view_t){.base = o->here ? o->here->block.address : NULL,
                                .bytes = o->here ? o->here->block.size : 0};
        return PL_OK;
    }
    c->rows = calloc(2 * (size_t)c->count, sizeof *c->rows);
    if (!c->rows)
        return PL_ERR_NOMEM;
    c->source = row_view(m, c, c->rows, record_now, false);
    c->target = row_view(m, c, c->rows + c->count, record_here, false);
    return PL_OK;
}

static pl_status_t make_cases(pl_arrays_t *a, pl_match_t *m)
{
    for (int i = 0; i < m->count;) {
        pl_array_case_t *c = &a->cases[a->count++];
        c->first = i;
        c->count = row_list(m, i);
        if (c->count > 1)
            set(c, PL_FATE_DISTRIBUTED, "rows", "ambiguous");
        else
            first_fate(c, &m->objects[i], m);
        for (int k = 0; k < c->count; k++, i++) {
            c->changed = c->changed || m->objects[i].changed;
            m->objects[i].rows = c->count > 1;
            for (int r = 0; r < m->ns; r++)
                c->bytes += m->objects[i].source[r] > 0 ? m->objects[i].source[r] : 0;
        }
        if (make_views(c, m))
            return PL_ERR_NOMEM;
    }
    return PL_OK;
}

/* ---- large replicated objects ---- */

static pl_status_t decide_whole(MPI_Comm comm, pl_array_case_t *c)
{
    uint64_t hash = 0, met[4];
    bool source = c->source.bytes, target = c->target.bytes;

    if (source)
        hash = pl_hash_bytes(c->source.base, (size_t)c->source.bytes);
    uint64_t here = target ? pl_hash_bytes(c->target.base, (size_t)c->target.bytes) : 0;
    uint64_t mine[4] = {source ? hash : 0, source ? ~hash : 0, target ? here : 0,
                        target ? ~here : 0};
    PMPI_Allreduce(mine, met, 4, MPI_UINT64_T, MPI_MAX, comm);
    bool sources_agree = met[0] == ~met[1], targets_agree = met[2] == ~met[3];
    if (!sources_agree)
        set(c, PL_FATE_REFUSED, "own", "ambiguous");
    else
        c->move = !targets_agree || met[0] != met[2];
    return PL_OK;
}

/* Of the candidates for a distribution, those that are copies with padding. */
static void decide_padded_copies(MPI_Comm comm, pl_array_case_t *cases, int count,
                                 const pl_match_t *m)
{
    uint8_t *unused = calloc((size_t)count + 1, 1);

    for (int i = 0; i < count && unused; i++) {
        const pl_object_t *o = &m->objects[cases[i].first];
        int64_t s = o->source[0], t = o->target[0], common = s < t ? s : t;
        if (cases[i].fate == PL_FATE_DISTRIBUTED && cases[i].count == 1 && padded_copy(o, m))
            unused[i] = tail_unused(o->now, common) && tail_unused(o->here, common);
    }
    if (unused)
        PMPI_Allreduce(MPI_IN_PLACE, unused, count, MPI_UINT8_T, MPI_MIN, comm);
    for (int i = 0; i < count && unused; i++)
        if (unused[i])
            set(&cases[i], PL_FATE_WORDS, "replicated", "plausible");
    free(unused);
}

/* ---- all together ---- */

static void say_refusal(pl_arrays_t *a, const pl_array_case_t *c, const pl_match_t *m)
{
    const pl_object_t *o = &m->objects[c->first];
    const char *why = "no layout explains it";

    if (o->born)
        why = "it was made in the loop and is not the same on all processes";
    else if (c->fate == PL_FATE_REFUSED && same_size(o, m) && everywhere(o, m))
        why = "it has the same size on every process before and after, but its content differs "
              "between processes: the global size grows with the processes, or it is private data";
    else if (!everywhere(o, m))
        why = "not every process has it";
    else if (!strcmp(c->kind, "table"))
        why = "it has an entry per process and changes in the loop";
    else if (!strcmp(c->evidence, "ambiguous"))
        why = "several layouts are possible and nothing decides between them";
    snprintf(a->refusal, sizeof a->refusal,
             "heap object %016lx/%u (%ld bytes over all processes, %s): %s",
             (unsigned long)o->chain, o->order, (long)c->bytes,
             c->changed ? "changed in the loop" : "constant", why);
}

pl_status_t pl_arrays_decide(MPI_Comm comm, pl_match_t *match, const pl_snapshot_t *base,
                             pl_arrays_t *out)
{
    pl_arrays_t a = {.cases = calloc((size_t)match->count + 1, sizeof *a.cases),
                     .by_words = calloc((size_t)match->count + 1, sizeof *a.by_words)};
    int ok = a.cases && a.by_words && !make_cases(&a, match), all_ok;

    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, comm);
    pl_status_t status = all_ok ? PL_OK : PL_ERR_NOMEM;
    for (int i = 0; i < a.count && !status; i++)
        if (a.cases[i].fate == PL_FATE_WHOLE)
            status = decide_whole(comm, &a.cases[i]);
    if (!status) {
        decide_padded_copies(comm, a.cases, a.count, match);
        status = pl_choose_layouts(comm, match, base, a.cases, a.count);
    }
    if (status) {
        pl_arrays_free(&a);
        return status;
    }
    for (int i = 0; i < a.count; i++) {
        const pl_array_case_t *c = &a.cases[i];
        a.by_words[c->first] = c->fate == PL_FATE_WORDS || c->fate == PL_FATE_BORN;
        if (c->fate == PL_FATE_REFUSED && !a.refusal[0])
            say_refusal(&a, c, match);
    }
    *out = a;
    return PL_OK;
}

void pl_arrays_free(pl_arrays_t *arrays)
{
    for (int i = 0; i < arrays->count; i++) {
        if (arrays->cases[i].has_layout)
            pl_layout_drop(&arrays->cases[i].layout);
        free(arrays->cases[i].rows);
    }
    free(arrays->cases);
    free(arrays->by_words);
    memset(arrays, 0, sizeof *arrays);
}

pl_status_t pl_arrays_make_born(pl_arrays_t *arrays, pl_match_t *match, bool target)
{
    for (int i = 0; i < arrays->count; i++) {
        pl_object_t *o = &match->objects[arrays->cases[i].first];
        if (arrays->cases[i].fate == PL_FATE_GONE && o->here)
            pl_heap_unmake(o->here->block.address);
        if (arrays->cases[i].fate != PL_FATE_BORN || !target)
            continue;
        pl_status_t status = pl_match_make_here(o, o->source[0]);
        if (status)
            return status;
    }
    return PL_OK;
}

static void copy_whole(const pl_array_case_t *c, MPI_Comm comm, int rank)
{
    enum { STEP = 1 << 24 };
    int64_t bytes = 0;
    char *buffer = malloc(STEP);

    if (rank == 0)
        bytes = c->source.bytes;
    PMPI_Bcast(&bytes, 1, MPI_INT64_T, 0, comm);
    for (int64_t at = 0; at < bytes && buffer; at += STEP) {
        int n = (int)(bytes - at < STEP ? bytes - at : STEP);
        if (rank == 0)
            memcpy(buffer, (char *)c->source.base + at, (size_t)n);
        PMPI_Bcast(buffer, n, MPI_BYTE, 0, comm);
        if (c->target.bytes)
            memcpy((char *)c->target.base + at, buffer, (size_t)n);
    }
    free(buffer);
}

static void clear_unused(const pl_array_case_t *c)
{
    int64_t below = c->layout.lo * c->layout.unit, above = c->layout.hi * c->layout.unit;
    static const uint8_t zero[64];
    const pl_view_t *v = &c->target;

    for (int64_t at = 0; v->bytes && at < below; at += 8)
        pl_view_write(v, at, zero, below - at < 8 ? below - at : 8);
    for (int64_t at = v->bytes - above; v->bytes && at < v->bytes; at += 8)
        pl_view_write(v, at, zero, v->bytes - at < 8 ? v->bytes - at : 8);
}

/* What all sources have alike beside a block: rank 0's is as good as any. Collective. */
static pl_status_t copy_common(const pl_array_case_t *c, MPI_Comm comm, int rank)
{
    bool below = c->layout.lo > 0;
    int64_t bytes = (c->layout.lo + c->layout.hi) * c->layout.unit;
    int ok = bytes <= INT_MAX, all_ok;
    char *buffer = ok ? malloc((size_t)bytes + 1) : NULL;

    ok = buffer != NULL;
    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, comm);
    if (all_ok) {
        if (rank == 0)
            pl_view_read(&c->source, below ? 0 : c->source.bytes - bytes, buffer, bytes);
        PMPI_Bcast(buffer, (int)bytes, MPI_BYTE, 0, comm);
        if (c->target.bytes)
            pl_view_write(&c->target, below ? 0 : c->target.bytes - bytes, buffer, bytes);
    }
    free(buffer);
    return all_ok ? PL_OK : PL_ERR_NOMEM;
}

pl_status_t pl_arrays_move(const pl_arrays_t *arrays, const pl_match_t *match, const char *method,
                           MPI_Comm comm, int64_t *moved, int64_t *kept)
{
    pl_array_t *list = calloc((size_t)arrays->count + 1, sizeof *list);
    pl_move_stats_t stats = {0};
    int n = 0, rank, ok = list != NULL, all_ok;

    PMPI_Comm_rank(comm, &rank);
    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, comm);
    if (!all_ok) {
        free(list);
        return PL_ERR_NOMEM;
    }
    for (int i = 0; i < arrays->count && !PL_OFF(arrays); i++) {
        const pl_array_case_t *c = &arrays->cases[i];
        if (c->fate == PL_FATE_WHOLE && c->move)
            copy_whole(c, comm, rank);
        if (c->fate == PL_FATE_DISTRIBUTED && c->move)
            list[n++] = (pl_array_t){&c->layout, c->source, c->target};
    }
    pl_status_t status =
        n ? pl_move_arrays(method, list, n, match->ns, match->nt, comm, &stats) : PL_OK;
    free(list);
    for (int i = 0; i < arrays->count && !PL_OFF(arrays); i++)
        if (!status && arrays->cases[i].common && arrays->cases[i].move)
            status = copy_common(&arrays->cases[i], comm, rank);
    for (int i = 0; i < arrays->count; i++)
        if (arrays->cases[i].unused && arrays->cases[i].move)
            clear_unused(&arrays->cases[i]);
    int64_t mine[2] = {stats.received, stats.kept}, sum[2];
    PMPI_Allreduce(mine, sum, 2, MPI_INT64_T, MPI_SUM, comm);
    *moved = sum[0];
    *kept = sum[1];
    return status;
}

int pl_arrays_report(const pl_arrays_t *arrays, const pl_match_t *match, pl_event_buffer_t *out,
                     int max)
{
    int n = 0;

    for (int i = 0; i < arrays->count && n < max; i++) {
        const pl_array_case_t *c = &arrays->cases[i];
        const pl_object_t *o = &match->objects[c->first];
        if (c->fate == PL_FATE_NONE || o->permanent)
            continue;
        pl_event_buffer_t *b = &out[n++];
        *b = (pl_event_buffer_t){.kind = c->has_layout ? pl_kind_text(c->layout.kind) : c->kind,
                                 .evidence = c->evidence,
                                 .bytes = c->bytes,
                                 .moved = c->changed || c->move};
        if (c->count > 1)
            b->kind = "rows";
        else if (c->common)
            b->kind = "block beside replicated data";
        snprintf(b->name, sizeof b->name, "heap object %016lx/%u", (unsigned long)o->chain,
                 o->order);
    }
    return n;
}
