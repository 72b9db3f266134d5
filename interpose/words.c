/* SPDX-License-Identifier: MIT */
#include "interpose/words.h"

#include <stdlib.h>
#include <string.h>

#include "interpose/controls.h"
#include "interpose/modules.h"
#include "redist/check.h"

enum { MAX_WORDS = 1 << 25, MESSAGE = 1 << 28, WORD = 8 };

/* ---- segments ---- */

typedef struct builder {
    pl_segment_t *list;
    int count, room;
    int64_t words;
    bool failed;
} builder_t;

static pl_segment_t *add(builder_t *b, pl_segment_kind_t kind, int index, int64_t bytes)
{
    if (b->count == b->room) {
        b->room = b->room ? 2 * b->room : 256;
        pl_segment_t *grown = realloc(b->list, (size_t)b->room * sizeof *grown);
        if (!grown) {
            b->failed = true;
            b->room = b->count;
            return NULL;
        }
        b->list = grown;
    }
    pl_segment_t *s = &b->list[b->count++];
    *s = (pl_segment_t){.kind = kind, .index = index, .bytes = bytes, .first = b->words};
    b->words += (bytes + WORD - 1) / WORD;
    return s;
}

/* Start and end of frame i of a snapshot; its end is what ranks agree on. */
static uintptr_t frame_start(const pl_snapshot_t *s, int i)
{
    return i == 0 ? s->stack : s->chain->slot[i] + 8;
}

static uintptr_t frame_end(const pl_snapshot_t *s, int i)
{
    return i + 1 < s->chain->depth ? s->chain->slot[i + 1] + 8 : pl_chain_top;
}

static void note_length(const pl_snapshot_t *s, int i, int64_t *low, int64_t *minus_high)
{
    if (!s)
        return;
    int64_t length = (int64_t)(frame_end(s, i) - frame_start(s, i));
    *low = length < *low ? length : *low;
    *minus_high = -length < *minus_high ? -length : *minus_high;
}

/* What lies below the part of a frame that all processes have, if it changed since the baseline. */
static int changed_beyond(const pl_words_input_t *in, int i, int64_t common)
{
    const pl_snapshot_t *now = in->now, *base = in->base;
    if (!now)
        return 0;
    int64_t length = (int64_t)(frame_end(now, i) - frame_start(now, i));
    int64_t before = (int64_t)(frame_end(base, i) - frame_start(base, i));
    const uint8_t *a = now->stack_copy + (frame_start(now, i) - now->stack);
    const uint8_t *b = base->stack_copy + (frame_start(base, i) - base->stack);
    if (length != before)
        return 1;
    return memcmp(a, b, (size_t)(length - common)) != 0;
}

static void add_frames(builder_t *b, const pl_words_input_t *in, int *stack_array)
{
    enum { DEPTH = PL_CHAIN_DEPTH };
    int64_t mine[2 * DEPTH + 1], all[2 * DEPTH + 1];
    const pl_snapshot_t *any = in->now ? in->now : in->here;
    int depth = any ? any->chain->depth : 0;

    for (int i = 0; i < 2 * DEPTH; i++)
        mine[i] = INT64_MAX;
    mine[2 * DEPTH] = -depth;
    for (int i = 0; i < depth; i++) {
        note_length(in->now, i, &mine[i], &mine[DEPTH + i]);
        note_length(in->base, i, &mine[i], &mine[DEPTH + i]);
        note_length(in->here, i, &mine[i], &mine[DEPTH + i]);
    }
    PMPI_Allreduce(mine, all, 2 * DEPTH + 1, MPI_INT64_T, MPI_MIN, in->comm);
    *stack_array = 0;
    for (int i = 0; i < -all[2 * DEPTH]; i++) {
        *stack_array += changed_beyond(in, i, all[i]);
        pl_segment_t *s = add(b, PL_SEGMENT_FRAME, i, all[i]);
        if (!s)
            return;
        s->variable = all[i] != -all[DEPTH + i];
        if (in->now)
            s->now = in->now->stack_copy + (frame_end(in->now, i) - in->now->stack) - s->bytes;
        if (in->base)
            s->base = in->base->stack_copy + (frame_end(in->base, i) - in->base->stack) - s->bytes;
        if (in->here)
            s->here = (uint8_t *)frame_end(in->here, i) - s->bytes;
    }
    PMPI_Allreduce(MPI_IN_PLACE, stack_array, 1, MPI_INT, MPI_MAX, in->comm);
}

static void add_registers(builder_t *b, const pl_words_input_t *in)
{
    pl_segment_t *s = add(b, PL_SEGMENT_REGISTERS, 0, PL_REGISTERS * WORD);
    if (!s)
        return;
    s->now = in->now ? (const uint8_t *)in->now->registers : NULL;
    s->base = in->base ? (const uint8_t *)in->base->registers : NULL;
    s->here = in->here ? (uint8_t *)in->here->registers : NULL;
}

static void add_image(builder_t *b, const pl_words_input_t *in)
{
    const pl_region_t *regions;
    int n = pl_image_regions(&regions);
    size_t total = 0, bit = 0;

    for (int i = 0; i < n; i++)
        total += regions[i].pages;
    uint8_t *mine = calloc(2 * (total + 1), 1), *all = mine + total + 1;
    if (!mine) {
        b->failed = true;
        return;
    }
    for (int i = 0; i < n; i++)
        for (size_t page = 0; page < regions[i].pages; page++, bit++)
            mine[bit] = (in->now && pl_image_page(&in->now->image, i, page)) ||
                        (in->base && pl_image_page(&in->base->image, i, page));
    PMPI_Allreduce(mine, all, (int)total, MPI_BYTE, MPI_BOR, in->comm);
    bit = 0;
    for (int i = 0; i < n; i++)
        for (size_t page = 0; page < regions[i].pages; page++, bit++) {
            if (!all[bit])
                continue;
            pl_segment_t *s = add(b, PL_SEGMENT_IMAGE, i, (int64_t)pl_image_page_bytes(i, page));
            if (!s)
                break;
            s->page = page;
            s->now = in->now ? pl_image_page(&in->now->image, i, page) : NULL;
            s->base = in->base ? pl_image_page(&in->base->image, i, page) : NULL;
            s->here = in->here ? (uint8_t *)(regions[i].low + page * PL_PAGE) : NULL;
        }
    free(mine);
}

/* What all processes that have the object have of it. */
static int64_t object_bytes(const pl_object_t *o, const pl_match_t *m)
{
    int64_t least = INT64_MAX;
    for (int r = 0; r < m->ns + m->nt; r++)
        if (o->source[r] >= 0 && o->source[r] < least)
            least = o->source[r];
    return least;
}

static void add_objects(builder_t *b, const pl_words_input_t *in)
{
    for (int i = 0; i < in->match->count; i++) {
        const pl_object_t *o = &in->match->objects[i];
        if (!in->by_words[i])
            continue;
        pl_segment_t *s = add(b, PL_SEGMENT_OBJECT, i, object_bytes(o, in->match));
        if (!s)
            return;
        if (o->now)
            s->now = o->now->copy ? o->now->copy : o->now->block.address;
        if (o->base && o->now && o->base->block.size == o->now->block.size)
            s->base = o->base->copy;
        if (o->now && !s->base && !o->changed)
            s->base = s->now;
        s->here = o->here ? o->here->block.address : NULL;
    }
}

/* ---- words of this process ---- */

static uint64_t load(const uint8_t *from, int64_t bytes, int64_t word)
{
    uint64_t value = 0;
    int64_t rest = bytes - word * WORD;
    if (from)
        memcpy(&value, from + word * WORD, rest < WORD ? (size_t)rest : WORD);
    return value;
}

static uint8_t changed_bytes(pl_word_t now, pl_word_t base)
{
    if (pl_word_is_pointer(now.kind) || pl_word_is_pointer(base.kind))
        return now.kind != base.kind || now.value != base.value ? 0xff : 0;
    uint8_t mask = 0;
    for (int i = 0; i < WORD; i++)
        mask |= (uint8_t)((((now.value ^ base.value) >> (8 * i)) & 0xff ? 1 : 0) << i);
    return mask;
}

static bool is_reborn(const pl_match_t *m, pl_word_t word)
{
    if (word.kind != PL_WORD_OBJECT && word.kind != PL_WORD_END)
        return false;
    const pl_object_t *o = &m->objects[pl_word_object(word)];
    return o->born || o->reborn;
}

static bool skipped_slot(const pl_segment_t *s, int64_t word)
{
    const pl_region_t *regions;
    if (s->kind != PL_SEGMENT_IMAGE)
        return false;
    pl_image_regions(&regions);
    uintptr_t at = regions[s->index].low + s->page * PL_PAGE + (uintptr_t)word * WORD;
    return at >= regions[s->index].slots_low && at < regions[s->index].slots_high;
}

static void read_segment(pl_words_t *w, const pl_segment_t *s, const pl_words_input_t *in)
{
    bool present = s->kind == PL_SEGMENT_IMAGE || s->now;
    bool base_unknown = s->kind == PL_SEGMENT_OBJECT && !s->base;

    for (int64_t i = 0; i < (s->bytes + WORD - 1) / WORD; i++) {
        int64_t k = s->first + i;
        pl_verdict_t *v = &w->verdict[k];
        if (!present || skipped_slot(s, i))
            continue;
        uint64_t bits = load(s->now, s->bytes, i);
        uint64_t before = base_unknown ? ~bits : load(s->base, s->bytes, i);
        w->now[k] = pl_space_word(in->now_space, bits);
        w->base[k] = base_unknown ? w->now[k] : pl_space_word(in->base_space, before);
        v->changed = base_unknown ? 0xff : changed_bytes(w->now[k], w->base[k]);
        if (w->now[k].kind == PL_WORD_DANGLING) {
            v->flags |= PL_FLAG_DANGLING;
            if (bits == before) /* what it points to is gone: nobody will follow it */
                v->changed = 0;
        }
        if (is_reborn(in->match, w->now[k]))
            v->changed = 0xff;
        if (PL_OFF(identity) && bits == before)
            v->changed = 0;
        if (pl_word_is_pointer(w->now[k].kind))
            v->flags |= PL_FLAG_POINTER;
        if (w->now[k].kind == PL_WORD_FOREIGN)
            v->flags |= PL_FLAG_FOREIGN;
        bool kept = w->now[k].kind == PL_WORD_OBJECT && w->base[k].kind == PL_WORD_OBJECT &&
                    pl_word_offset(w->now[k]) == pl_word_offset(w->base[k]);
        if (v->changed && !kept)
            v->flags |= PL_FLAG_MOVED;
    }
}

/* ---- all processes together ---- */

static void bcast_bytes(void *bytes, size_t count, MPI_Comm comm)
{
    for (size_t at = 0; at < count; at += MESSAGE)
        PMPI_Bcast((char *)bytes + at, (int)(count - at < MESSAGE ? count - at : MESSAGE), MPI_BYTE,
                   0, comm);
}

static void or_bytes(void *bytes, size_t count, MPI_Comm comm)
{
    for (size_t at = 0; at < count; at += MESSAGE)
        PMPI_Allreduce(MPI_IN_PLACE, (char *)bytes + at,
                       (int)(count - at < MESSAGE ? count - at : MESSAGE), MPI_BYTE, MPI_BOR, comm);
}

static uint8_t differing_bytes(pl_word_t mine, pl_word_t lead)
{
    return changed_bytes(mine, lead);
}

static bool same_object(pl_word_t a, pl_word_t b)
{
    return a.kind == PL_WORD_OBJECT && b.kind == PL_WORD_OBJECT &&
           pl_word_object(a) == pl_word_object(b);
}

/* Does this process, as a source, have the segment at all? */
static bool has_now(const pl_segment_t *s, const pl_words_input_t *in)
{
    return in->now && (s->kind == PL_SEGMENT_IMAGE || s->now);
}

static void combine(pl_words_t *w, const pl_words_input_t *in)
{
    int rank;
    PMPI_Comm_rank(in->comm, &rank);
    if (rank == 0)
        for (int64_t k = 0; k < w->count; k++) {
            w->lead_now[k] = w->now[k].value;
            w->lead_base[k] = w->base[k].value;
            w->lead_kind[k] = (uint8_t)(w->now[k].kind | w->base[k].kind << 4);
        }
    bcast_bytes(w->lead_now, (size_t)w->count * sizeof *w->lead_now, in->comm);
    bcast_bytes(w->lead_base, (size_t)w->count * sizeof *w->lead_base, in->comm);
    bcast_bytes(w->lead_kind, (size_t)w->count, in->comm);
    for (int i = 0; i < w->segment_count; i++) {
        const pl_segment_t *s = &w->segments[i];
        if (!has_now(s, in))
            continue;
        for (int64_t k = s->first; k < s->first + (s->bytes + WORD - 1) / WORD; k++) {
            pl_word_t lead = {w->lead_now[k], w->lead_kind[k] & 15};
            w->verdict[k].differs = differing_bytes(w->now[k], lead);
            if (same_object(w->now[k], lead)) { /* the offset: set-up's, unless it has moved */
                w->verdict[k].flags |= w->verdict[k].differs ? PL_FLAG_OFFSETS : 0;
                w->verdict[k].differs = 0;
            }
            if (rank != 0)
                w->verdict[k].changed_beyond_root = w->verdict[k].changed;
        }
    }
    or_bytes(w->verdict, (size_t)w->count * sizeof *w->verdict, in->comm);
    for (int64_t k = 0; k < w->count; k++)
        if ((w->verdict[k].flags & PL_FLAG_OFFSETS) && (w->verdict[k].flags & PL_FLAG_MOVED))
            w->verdict[k].differs = 0xff;
}

pl_status_t pl_words_compare(const pl_words_input_t *in, pl_words_t *out)
{
    builder_t b = {.list = NULL};
    pl_words_t w = {.segments = NULL};

    add_frames(&b, in, &w.stack_array);
    add_registers(&b, in);
    add_image(&b, in);
    add_objects(&b, in);
    w.segments = b.list;
    w.segment_count = b.count;
    w.count = b.words;
    size_t n = (size_t)(b.words < MAX_WORDS ? b.words : 0) + 1;
    w.now = calloc(n, sizeof *w.now);
    w.base = calloc(n, sizeof *w.base);
    w.lead_now = calloc(n, sizeof *w.lead_now);
    w.lead_base = calloc(n, sizeof *w.lead_base);
    w.lead_kind = calloc(n, 1);
    w.verdict = calloc(n, sizeof *w.verdict);
    int ok = !b.failed && b.words < MAX_WORDS && w.now && w.base && w.lead_now && w.lead_base &&
             w.lead_kind && w.verdict;
    int all_ok;
    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, in->comm);
    if (!all_ok) {
        pl_words_free(&w);
        return PL_ERR_LIMIT;
    }
    if (in->now)
        for (int i = 0; i < w.segment_count; i++)
            read_segment(&w, &w.segments[i], in);
    combine(&w, in);
    *out = w;
    return PL_OK;
}

void pl_words_free(pl_words_t *w)
{
    free(w->segments);
    free(w->now);
    free(w->base);
    free(w->lead_now);
    free(w->lead_base);
    free(w->lead_kind);
    free(w->verdict);
    memset(w, 0, sizeof *w);
}

/* ---- the targets' words ---- */

typedef struct injection {
    const pl_words_t *w;
    const pl_space_t *here;
    bool survivor;
    int lost;
} injection_t;

/* An address of the target that differs from set-up's only in the object it points into. */
static bool swap_object(const injection_t *j, uint64_t target, pl_word_t lead, uint64_t *out)
{
    pl_word_t own = pl_space_word(j->here, target);
    int at = j->here->index_of_object[pl_word_object(lead)];
    if (own.kind != PL_WORD_OBJECT || at < 0 || pl_word_offset(own) > j->here->by_address[at].bytes)
        return false;
    *out = j->here->by_address[at].address + (uint64_t)pl_word_offset(own);
    return true;
}

static uint64_t pointer_word(injection_t *j, const pl_segment_t *s, int64_t k, uint64_t target)
{
    const pl_verdict_t *v = &j->w->verdict[k];
    pl_word_t take = {j->w->lead_now[k], j->w->lead_kind[k] & 15};
    uint64_t bits;

    if (v->differs || (v->flags & PL_FLAG_NATURE)) {
        if (!j->survivor)
            return target;
        take = j->w->now[k];
    }
    if (take.kind == PL_WORD_OBJECT && !(v->flags & PL_FLAG_MOVED) && !PL_OFF(offsets) &&
        swap_object(j, target, take, &bits))
        return bits;
    if (pl_space_bits(j->here, take, &bits))
        return bits;
    if (take.kind == PL_WORD_FOREIGN && j->survivor) {
        memcpy(&bits, s->now + (k - s->first) * WORD, WORD);
        return bits;
    }
    if (take.kind == PL_WORD_OBJECT || take.kind == PL_WORD_END)
        j->lost += s->kind == PL_SEGMENT_IMAGE || s->kind == PL_SEGMENT_OBJECT;
    return target;
}

/* Could these 8 bytes be a floating-point number with a full mantissa? Two integers, or an integer
 * beside an MPI handle, must not be taken for one: one of their halves is small or a handle. */
static bool number_like(uint64_t bits)
{
    enum { SMALL = 1 << 24, HANDLE_INDEX = 0x03ffffff, FEW = 1 << 16 };
    uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
    int exponent = (int)(high >> 20 & 0x7ff) - 1023;
    bool handle = (high >> 30) && (high & HANDLE_INDEX) < FEW;

    return exponent > -100 && exponent < 100 && low >= SMALL && low <= UINT32_MAX - SMALL &&
           !handle;
}

/* The same number but for rounding. */
static bool same_number(uint64_t a, uint64_t b)
{
    return number_like(a) && number_like(b) && pl_near(a, b);
}

static uint64_t value_word(const injection_t *j, int64_t k, uint64_t target)
{
    const pl_verdict_t *v = &j->w->verdict[k];
    uint64_t lead = j->w->lead_now[k], result = target;
    bool half_changed[2] = {v->changed & 0x0f, v->changed & 0xf0};

    /* One half of a double that set-up computed with other rounding: the whole is one number. */
    if (half_changed[0] != half_changed[1] && !v->differs &&
        same_number(target, j->w->lead_base[k]))
        return lead;
    for (int half = 0; half < 2; half++) {
        uint64_t mask = half ? 0xffffffff00000000u : 0x00000000ffffffffu;
        uint8_t bytes = half ? 0xf0 : 0x0f;
        if (!half_changed[half])
            continue;
        if (!(v->differs & bytes) && !(v->flags & PL_FLAG_NATURE))
            result = (result & ~mask) | (lead & mask);
        else if (j->survivor)
            result = (result & ~mask) | (j->w->now[k].value & mask);
    }
    return result;
}

static uint64_t new_word(injection_t *j, const pl_segment_t *s, int64_t k, uint64_t target)
{
    const pl_verdict_t *v = &j->w->verdict[k];

    if (!v->changed) { /* numbers set-up reduced over ranks may differ in their last digits */
        bool number = !v->differs && !(v->flags & PL_FLAG_POINTER) && target != j->w->lead_now[k] &&
                      same_number(target, j->w->lead_now[k]);
        return number ? j->w->lead_now[k] : target;
    }
    return v->flags & PL_FLAG_POINTER ? pointer_word(j, s, k, target) : value_word(j, k, target);
}

static bool switched_off(pl_segment_kind_t kind)
{
    return (kind == PL_SEGMENT_FRAME && PL_OFF(stack)) ||
           (kind == PL_SEGMENT_REGISTERS && PL_OFF(registers)) ||
           (kind == PL_SEGMENT_IMAGE && PL_OFF(data));
}

int pl_words_inject(const pl_words_t *words, const pl_space_t *here_space, bool survivor,
                    uint64_t *registers)
{
    injection_t j = {.w = words, .here = here_space};

    for (int i = 0; i < words->segment_count; i++) {
        const pl_segment_t *s = &words->segments[i];
        uint8_t *to = s->kind == PL_SEGMENT_REGISTERS ? (uint8_t *)registers : s->here;
        if (!to || switched_off(s->kind))
            continue;
        j.survivor = survivor && (s->kind == PL_SEGMENT_IMAGE || s->now);
        for (int64_t k = 0; k < (s->bytes + WORD - 1) / WORD; k++) {
            if (skipped_slot(s, k))
                continue;
            int64_t rest = s->bytes - k * WORD;
            uint64_t old = load(to, s->bytes, k), value = new_word(&j, s, s->first + k, old);
            if (value != old)
                memcpy(to + k * WORD, &value, rest < WORD ? (size_t)rest : WORD);
        }
    }
    return j.lost;
}
