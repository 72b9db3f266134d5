/* SPDX-License-Identifier: MIT */
#include "redist/check.h"

#include <string.h>

#include "redist/split.h"

/* Exponents of doubles between about 1e-100 and 1e100 and of floats between about 1e-20 and 1e20.
 * What lies outside is more likely an integer or two, where close bits are not close values. */
enum {
    DOUBLE_BIAS = 1023,
    DOUBLE_SPAN = 332,
    FLOAT_BIAS = 127,
    FLOAT_SPAN = 66,
    FLOAT_ULPS = 8,
};
static const double double_tolerance = 1e-9;

static bool ordinary_double(uint64_t bits)
{
    int exponent = (int)(bits >> 52 & 0x7ff) - DOUBLE_BIAS;

    return exponent >= -DOUBLE_SPAN && exponent <= DOUBLE_SPAN;
}

static bool ordinary_float(uint32_t bits)
{
    int exponent = (int)(bits >> 23 & 0xff) - FLOAT_BIAS;

    return exponent >= -FLOAT_SPAN && exponent <= FLOAT_SPAN;
}

static bool near_doubles(uint64_t a, uint64_t b)
{
    double x, y;

    if (!ordinary_double(a) || !ordinary_double(b))
        return false;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    double difference = x > y ? x - y : y - x, size = x < 0 ? -x : x;
    return difference <= double_tolerance * size;
}

static bool near_floats(uint32_t a, uint32_t b)
{
    if (a == b)
        return true;
    if (!ordinary_float(a) || !ordinary_float(b) || (a ^ b) >> 31)
        return false;
    return (a > b ? a - b : b - a) <= FLOAT_ULPS;
}

bool pl_near(uint64_t a, uint64_t b)
{
    if (a == b || near_doubles(a, b))
        return true;
    /* A double with a short mantissa has a low half of zeros: no pair of floats. */
    return ordinary_float((uint32_t)a) && ordinary_float((uint32_t)b) &&
           near_floats((uint32_t)a, (uint32_t)b) &&
           near_floats((uint32_t)(a >> 32), (uint32_t)(b >> 32));
}

/* The first `width` of the 8 bytes. */
static uint64_t first_bytes(uint64_t value, int64_t width)
{
    return width >= 8 ? value : value & ((UINT64_C(1) << 8 * width) - 1);
}

static bool equal_values(uint64_t a, uint64_t b, int64_t width)
{
    a = first_bytes(a, width);
    b = first_bytes(b, width);
    if (width >= 8)
        return pl_near(a, b);
    return a >> 32 == b >> 32 && near_floats((uint32_t)a, (uint32_t)b);
}

/* Where a byte of a source's array lies on the targets, and for how long (8 bytes at most). */
typedef struct place {
    int target;
    int64_t offset, width;
    bool ghost; /* or possibly padding */
} place_t;

static void narrow(place_t *place, int64_t width)
{
    if (width < place->width)
        place->width = width;
}

static bool find_place(const pl_layout_t *layout, int source, int64_t offset, place_t *place)
{
    int64_t unit = layout->unit, skip = pl_layout_skip(layout);
    int64_t owned_end = skip + pl_layout_owned_count(layout, PL_SOURCE, source) * unit;
    int64_t end = owned_end + layout->hi * unit, global_end = layout->global * unit;
    int64_t at = offset - skip + pl_layout_owned_first(layout, PL_SOURCE, source) * unit;
    int64_t next; /* of the global bytes that matter, the first behind `at` */

    if (offset >= end)
        return false;
    place->width = 8;
    place->ghost = offset < skip || offset >= owned_end || at >= layout->sure * unit;
    narrow(place, (offset < skip ? skip : offset < owned_end ? owned_end : end) - offset);
    if (unit > 8) /* a row that was sampled by itself has zeros beyond its end */
        narrow(place, unit - offset % unit);
    if (at < 0) {
        place->target = 0;
        next = 0;
    } else if (at < global_end) {
        place->target = pl_split_find(layout->target, at / unit);
        next = pl_split_first(layout->target, place->target + 1) * unit;
    } else {
        place->target = layout->nt - 1;
        next = global_end + layout->hi * unit;
    }
    narrow(place, next - at);
    place->offset = skip + at - pl_split_first(layout->target, place->target) * unit;
    return true;
}

static uint64_t read_value(const pl_view_t *view, int64_t offset, int64_t width)
{
    uint64_t value = 0;

    pl_view_read(view, offset, &value, width);
    return value;
}

/* Whether a neighbour of the value in this array is another value. */
static bool beside_another(const pl_view_t *view, const place_t *place, uint64_t value)
{
    int64_t width = place->width;
    int64_t before = place->offset - width, after = place->offset + width;

    if (before >= 0 && !equal_values(read_value(view, before, width), value, width))
        return true;
    return after + width <= view->bytes &&
           !equal_values(read_value(view, after, width), value, width);
}

/* Majority vote: the value of more than half of what was shown, if there is one. */
typedef struct majority {
    uint64_t value;
    int64_t lead;
} majority_t;

static void vote(majority_t *majority, uint64_t value)
{
    if (majority->lead == 0)
        majority->value = value;
    majority->lead += majority->value == value ? 1 : -1;
}

/* What one source owns may lie on this target as a ghost of its neighbour's. */
static void check_ghost(const pl_layout_t *layout, int source, const pl_sample_t *sample,
                        int my_target, const pl_view_t *mine, pl_check_t *check)
{
    int64_t unit = layout->unit, skip = pl_layout_skip(layout);
    int64_t owned_end = skip + pl_layout_owned_count(layout, PL_SOURCE, source) * unit;
    int64_t width = owned_end - sample->offset < 8 ? owned_end - sample->offset : 8;
    int64_t first = pl_layout_owned_first(layout, PL_TARGET, my_target) * unit;
    int64_t end = skip + pl_layout_owned_count(layout, PL_TARGET, my_target) * unit;
    int64_t at = sample->offset + pl_layout_owned_first(layout, PL_SOURCE, source) * unit - first;

    if (sample->offset < skip || width <= 0 || at < 0 || at + width > end + layout->hi * unit ||
        (at + width > skip && at < end))
        return;
    bool equal = equal_values(sample->value, read_value(mine, at, width), width);
    *(equal ? &check->reach_agree : &check->reach_disagree) += 1;
}

static void check_sample(const pl_layout_t *layout, int source, const pl_sample_t *sample,
                         uint64_t common, int my_target, const pl_view_t *mine, pl_check_t *check)
{
    place_t place;

    if (layout->lo || layout->hi)
        check_ghost(layout, source, sample, my_target, mine, check);
    if (!find_place(layout, source, sample->offset, &place) || place.target != my_target ||
        place.offset + place.width > mine->bytes)
        return;
    uint64_t value = read_value(mine, place.offset, place.width);
    bool equal = equal_values(sample->value, value, place.width);
    if (place.ghost) {
        *(equal ? &check->ghost_agree : &check->ghost_disagree) += 1;
        return;
    }
    *(equal ? &check->agree : &check->disagree) += 1;
    if (equal)
        check->distinct_agree +=
            !equal_values(value, common, place.width) || beside_another(mine, &place, value);
}

/* The difference an offsets layout owns that sample i tells: 4-byte elements come two in a sample,
 * 8-byte ones in two neighbouring samples. */
static bool sampled_difference(const pl_layout_t *layout, const pl_sample_t *samples, int i,
                               int64_t *index, uint64_t *difference)
{
    if (layout->unit == 4) {
        *index = samples[i].offset / 4;
        *difference = (uint32_t)((samples[i].value >> 32) - samples[i].value);
        return true;
    }
    if (i == 0 || samples[i].offset % 8 || samples[i - 1].offset != samples[i].offset - 8)
        return false;
    *index = samples[i - 1].offset / 8;
    *difference = samples[i].value - samples[i - 1].value;
    return true;
}

/* Offsets never fall: what falls is other data, whose differences agree wherever a halo does. */
static void check_difference(const pl_layout_t *layout, int source, int64_t index,
                             uint64_t difference, uint64_t common, int my_target,
                             const pl_view_t *mine, pl_check_t *check)
{
    int64_t unit = layout->unit;
    int64_t at = index + pl_split_first(layout->source, source);

    if (at >= pl_split_first(layout->source, source + 1) || /* beyond its last element */
        pl_split_find(layout->target, at) != my_target)
        return;
    at -= pl_split_first(layout->target, my_target);
    if ((at + 2) * unit > mine->bytes)
        return;
    uint64_t own = read_value(mine, (at + 1) * unit, unit) - read_value(mine, at * unit, unit);
    if (first_bytes(own, unit) != difference || difference >> (8 * unit - 1)) {
        check->disagree++;
        return;
    }
    check->agree++;
    check->distinct_agree += difference != common;
}

static void check_offsets(const pl_layout_t *layout, const pl_sample_t *const *samples,
                          const int *counts, int my_target, const pl_view_t *mine,
                          pl_check_t *check)
{
    majority_t majority = {0};
    int64_t index;
    uint64_t difference;

    for (int s = 0; s < layout->ns; s++)
        for (int i = 0; i < counts[s]; i++)
            if (sampled_difference(layout, samples[s], i, &index, &difference))
                vote(&majority, difference);
    for (int s = 0; s < layout->ns; s++)
        for (int i = 0; i < counts[s]; i++)
            if (sampled_difference(layout, samples[s], i, &index, &difference))
                check_difference(layout, s, index, difference, majority.value, my_target, mine,
                                 check);
}

void pl_layout_check(const pl_layout_t *layout, const pl_sample_t *const *samples_of_source,
                     const int *n_of_source, int my_target, const pl_view_t *my_array,
                     pl_check_t *out)
{
    majority_t majority = {0};

    *out = (pl_check_t){0};
    if (layout->kind == PL_KIND_OFFSETS) {
        check_offsets(layout, samples_of_source, n_of_source, my_target, my_array, out);
        return;
    }
    for (int s = 0; s < layout->ns; s++)
        for (int i = 0; i < n_of_source[s]; i++)
            vote(&majority, samples_of_source[s][i].value);
    for (int s = 0; s < layout->ns; s++)
        for (int i = 0; i < n_of_source[s]; i++)
            check_sample(layout, s, &samples_of_source[s][i], majority.value, my_target, my_array,
                         out);
}
