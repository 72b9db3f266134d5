/* SPDX-License-Identifier: MIT */
#include "redist/layout.h"

#include <stdlib.h>
#include <string.h>

#include "redist/split.h"

enum {
    MAX_PROPOSALS = 24,
    SMALL_SURPLUS = 4, /* up to so many ghost units, every split of them is proposed */
    HASH_PIECE = 4096,
};

typedef struct facts {
    int64_t source, target; /* total bytes */
    int64_t gcd, min;       /* over all sizes */
    bool uniform;           /* all sources equal, and all targets */
} facts_t;

typedef struct proposals {
    const pl_sizes_t *sizes;
    pl_layout_t *items;
    int count;
    bool failed;
} proposals_t;

static const char *const kind_texts[] = {
#define LAYOUT(name, text) text,
#include "redist/layouts.def"
#undef LAYOUT
};
_Static_assert(sizeof kind_texts / sizeof *kind_texts == PL_KIND_COUNT, "one text per kind");

const char *pl_kind_text(pl_kind_t kind)
{
    return (unsigned)kind < PL_KIND_COUNT ? kind_texts[kind] : "?";
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The largest size an element of a basic type can have if all sizes are multiples of `divisor`. */
static int64_t element_bytes(int64_t divisor)
{
    return divisor & 7 ? divisor & 3 ? divisor & 1 ? 1 : 2 : 4 : 8;
}

static bool sum_up(const int64_t *bytes, int ranks, facts_t *facts, int64_t *total)
{
    *total = 0;
    for (int r = 0; r < ranks; r++) {
        if (bytes[r] < 0 || __builtin_add_overflow(*total, bytes[r], total))
            return false;
        facts->gcd = greatest_common_divisor(facts->gcd, bytes[r]);
        if (bytes[r] < facts->min)
            facts->min = bytes[r];
        if (bytes[r] != bytes[0])
            facts->uniform = false;
    }
    return true;
}

/* Makes the splits of `layout`, or shares those of an earlier layout that owns the same. */
static bool set_splits(const proposals_t *list, pl_layout_t *layout, int64_t surplus)
{
    const pl_sizes_t *sizes = list->sizes;

    for (int i = 0; i < list->count; i++) {
        const pl_layout_t *other = &list->items[i];

        if (other->kind != PL_KIND_PADDED && other->unit == layout->unit &&
            (other->lo + other->hi) * other->unit == surplus) {
            layout->source = pl_split_keep(other->source);
            layout->target = pl_split_keep(other->target);
            return true;
        }
    }
    layout->source = pl_split_make(sizes->source, sizes->ns, surplus, layout->unit);
    layout->target = pl_split_make(sizes->target, sizes->nt, surplus, layout->unit);
    return layout->source && layout->target;
}

static void append(proposals_t *list, pl_layout_t *layout, bool complete)
{
    if (!complete || list->count == MAX_PROPOSALS) {
        pl_layout_drop(layout);
        list->failed = true;
        return;
    }
    list->items[list->count++] = *layout;
}

/* lo and surplus in bytes. */
static void propose(proposals_t *list, pl_kind_t kind, int64_t unit, int64_t lo, int64_t surplus)
{
    pl_layout_t layout = {.kind = kind,
                          .ns = list->sizes->ns,
                          .nt = list->sizes->nt,
                          .unit = unit,
                          .lo = lo / unit,
                          .hi = (surplus - lo) / unit};

    for (int i = 0; i < list->count; i++)
        if (list->items[i].kind == kind && list->items[i].lo * list->items[i].unit == lo)
            return;
    bool complete = set_splits(list, &layout, surplus);
    if (complete)
        layout.global = layout.sure = layout.source->total;
    append(list, &layout, complete);
}

/* All ranks hold ceil(n / ranks) elements. The element may be a whole row, so the loosest one is
 * taken: it matters only for which n are possible. Where both sizes are equal, a row as long as the
 * array would explain everything (side buffers, replicated arrays): there it must be a basic type.
 */
static void propose_padded(proposals_t *list, const facts_t *facts, int64_t unit, bool forced)
{
    int64_t ns = list->sizes->ns, nt = list->sizes->nt;
    int64_t source = list->sizes->source[0], target = list->sizes->target[0];
    int64_t element = forced || source == target ? unit : facts->gcd;
    int64_t upper = facts->source < facts->target ? facts->source : facts->target;
    int64_t fewest_source = facts->source - ns * element + element;
    int64_t fewest_target = facts->target - nt * element + element;
    int64_t lower = fewest_source > fewest_target ? fewest_source : fewest_target;

    if (lower > upper || source == 0)
        return;
    pl_layout_t layout = {.kind = PL_KIND_PADDED, .ns = (int)ns, .nt = (int)nt, .unit = unit};
    layout.global = upper / unit;
    layout.sure = lower / unit;
    layout.source = pl_split_uniform((int)ns, source / unit, layout.global);
    layout.target = pl_split_uniform((int)nt, target / unit, layout.global);
    append(list, &layout, layout.source && layout.target);
}

static void propose_all_splits(proposals_t *list, int64_t unit, int64_t step, int64_t surplus)
{
    if (surplus / step > SMALL_SURPLUS)
        return;
    for (int64_t lo = 0; lo <= surplus; lo += step)
        propose(list, PL_KIND_HALO, unit, lo, surplus);
}

static void propose_halos(proposals_t *list, const facts_t *facts, int64_t surplus, int64_t forced)
{
    int64_t divisor = greatest_common_divisor(facts->gcd, surplus);
    int64_t unit = forced ? forced : element_bytes(divisor);

    if (surplus % unit)
        return;
    if (surplus % (2 * unit) == 0)
        propose(list, PL_KIND_HALO, unit, surplus / 2, surplus);
    propose(list, PL_KIND_HALO, unit, 0, surplus);
    propose(list, PL_KIND_HALO, unit, surplus, surplus);
    propose_all_splits(list, unit, unit, surplus);
    if (!forced) {
        propose_all_splits(list, unit, divisor, surplus); /* whole rows, if that is what they are */
        if (unit > 1 && surplus % (2 * unit)) /* smaller elements, an even number on every rank */
            propose(list, PL_KIND_HALO, unit / 2, surplus / 2, surplus);
    }
}

/* What a constant surplus on every rank allows: ghosts, or the one element more of row pointers. */
static void propose_surplus(proposals_t *list, const facts_t *facts, int64_t forced)
{
    int64_t more_ranks = list->sizes->nt - list->sizes->ns;
    int64_t more_bytes = facts->target - facts->source;

    if (more_ranks == 0 || more_bytes % more_ranks)
        return;
    int64_t surplus = more_bytes / more_ranks;
    if (surplus <= 0 || surplus > facts->min || facts->source == surplus * list->sizes->ns)
        return;
    propose_halos(list, facts, surplus, forced);
    if ((surplus == 4 || surplus == 8) && facts->gcd % surplus == 0 &&
        (!forced || forced == surplus))
        propose(list, PL_KIND_OFFSETS, surplus, surplus, surplus);
}

pl_status_t pl_layout_propose(const pl_sizes_t *sizes, int64_t unit, pl_layout_t **out, int *count)
{
    facts_t facts = {.min = INT64_MAX, .uniform = true};
    proposals_t list = {.sizes = sizes};

    if (sizes->ns <= 0 || sizes->nt <= 0 || unit < 0 ||
        !sum_up(sizes->source, sizes->ns, &facts, &facts.source) ||
        !sum_up(sizes->target, sizes->nt, &facts, &facts.target))
        return PL_ERR_INVALID;
    if (facts.gcd == 0 || (unit && facts.gcd % unit)) {
        *out = NULL;
        *count = 0;
        return PL_OK;
    }
    list.items = malloc(MAX_PROPOSALS * sizeof *list.items);
    if (!list.items)
        return PL_ERR_NOMEM;
    int64_t element = unit ? unit : element_bytes(facts.gcd);
    if (facts.source == facts.target)
        propose(&list, PL_KIND_BLOCK, element, 0, 0);
    propose_surplus(&list, &facts, unit);
    if (facts.source != facts.target && facts.uniform)
        propose_padded(&list, &facts, element, unit != 0);
    if (list.failed || list.count == 0) {
        pl_layout_free(list.items, list.count);
        list.items = NULL;
        list.count = 0;
    }
    if (list.failed)
        return PL_ERR_NOMEM;
    *out = list.items;
    *count = list.count;
    return PL_OK;
}

void pl_layout_free(pl_layout_t *layouts, int count)
{
    for (int i = 0; i < count; i++)
        pl_layout_drop(&layouts[i]);
    free(layouts);
}

void pl_layout_copy(const pl_layout_t *from, pl_layout_t *to)
{
    *to = *from;
    pl_split_keep(to->source);
    pl_split_keep(to->target);
}

void pl_layout_drop(pl_layout_t *layout)
{
    pl_split_drop(layout->source);
    pl_split_drop(layout->target);
    layout->source = layout->target = NULL;
}

static const pl_split_t *split_of(const pl_layout_t *layout, pl_side_t side)
{
    return side == PL_SOURCE ? layout->source : layout->target;
}

int64_t pl_layout_owned_first(const pl_layout_t *layout, pl_side_t side, int rank)
{
    return pl_split_first(split_of(layout, side), rank);
}

int64_t pl_layout_owned_count(const pl_layout_t *layout, pl_side_t side, int rank)
{
    const pl_split_t *split = split_of(layout, side);

    return pl_split_first(split, rank + 1) - pl_split_first(split, rank);
}

int64_t pl_layout_skip(const pl_layout_t *layout)
{
    return layout->lo * layout->unit;
}

bool pl_layout_origin(const pl_layout_t *layout, int target, int64_t offset, int *source,
                      int64_t *source_offset, bool *owned)
{
    int64_t skip = pl_layout_skip(layout), end = layout->global * layout->unit;
    int64_t first = pl_layout_owned_first(layout, PL_TARGET, target) * layout->unit;
    int64_t bytes = pl_layout_owned_count(layout, PL_TARGET, target) * layout->unit;
    int64_t at = first + offset - skip; /* global byte */
    int from;

    if (offset < 0 || offset >= skip + bytes + layout->hi * layout->unit)
        return false;
    if (layout->kind == PL_KIND_OFFSETS && offset < skip)
        return false;
    if (at < 0)
        from = 0;
    else
        from = at < end ? pl_split_find(layout->source, at / layout->unit) : layout->ns - 1;
    *source = from;
    *source_offset = at - pl_layout_owned_first(layout, PL_SOURCE, from) * layout->unit + skip;
    *owned = offset >= skip && offset < skip + bytes;
    return true;
}

/* What value `word` at global position `index` adds to the sum. One multiplication, folded: sums of
 * plain products would not see differences that are multiples of a high power of two, such as two
 * changed signs or those between small numbers as doubles. */
static uint64_t hash_term(uint64_t word, uint64_t index)
{
    __extension__ typedef unsigned __int128 wide_t;
    uint64_t weight = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    wide_t product = (wide_t)(word ^ UINT64_C(0xd1b54a32d192ed03)) * weight;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Words no rank's boundary cuts, so that both sides add up the same terms. */
static int64_t word_bytes(const pl_layout_t *layout)
{
    int64_t unit = layout->unit;

    return unit & 7 ? unit & 3 ? unit & 1 ? 1 : 2 : 4 : 8;
}

static uint64_t hash_piece(const unsigned char *bytes, int64_t count, int64_t word, uint64_t index)
{
    uint64_t sum = 0;

    if (word == 8) {
        for (int64_t at = 0; at < count; at += 8, index++) {
            uint64_t value;

            memcpy(&value, bytes + at, 8);
            sum += hash_term(value, index);
        }
        return sum;
    }
    for (int64_t at = 0; at < count; at += word, index++) {
        uint64_t value = 0;

        memcpy(&value, bytes + at, (size_t)word);
        sum += hash_term(value, index);
    }
    return sum;
}

static uint64_t element_at(const pl_view_t *view, int64_t offset, int64_t bytes)
{
    uint64_t value = 0;

    pl_view_read(view, offset, &value, bytes);
    return value;
}

static uint64_t hash_differences(const pl_view_t *view, int64_t unit, int64_t count, uint64_t index)
{
    uint64_t before = element_at(view, 0, unit), sum = 0;

    for (int64_t i = 1; i <= count; i++) {
        uint64_t value = element_at(view, i * unit, unit), difference = value - before;

        if (unit == 4)
            difference = (uint32_t)difference;
        sum += hash_term(difference, index + (uint64_t)i - 1);
        before = value;
    }
    return sum;
}

uint64_t pl_layout_hash(const pl_layout_t *layout, pl_side_t side, int rank, const pl_view_t *view)
{
    unsigned char piece[HASH_PIECE];
    int64_t word = word_bytes(layout), skip = pl_layout_skip(layout);
    int64_t first = pl_layout_owned_first(layout, side, rank);
    int64_t count = pl_layout_owned_count(layout, side, rank);
    uint64_t sum = 0;

    if (layout->kind == PL_KIND_OFFSETS)
        return hash_differences(view, layout->unit, count, (uint64_t)first);
    int64_t index = first * layout->unit / word;
    for (int64_t at = 0, end = count * layout->unit; at < end; at += HASH_PIECE) {
        int64_t bytes = end - at < HASH_PIECE ? end - at : HASH_PIECE;

        pl_view_read(view, skip + at, piece, bytes);
        sum += hash_piece(piece, bytes, word, (uint64_t)(index + at / word));
    }
    return sum;
}
