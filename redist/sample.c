/* SPDX-License-Identifier: MIT */
#include "redist/sample.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CELLS = 1 << 17,  /* arrays up to 1 MiB are looked at as a whole, */
    RUN_CELLS = 64,        /* longer ones in runs of so many neighbours, */
    MOST_LOOKED = 1 << 16, /* so many cells in all */
    COUNTERS = 1 << 12,    /* for how often values occur */
    RARE_SHARE = 64,       /* a rare value has at most 1/64 of the cells */
    CHANGE_NUMERATOR = 6,  /* shares of the samples, of 16: change places in pairs, */
    RARE_NUMERATOR = 5,    /* rare values, */
    END_NUMERATOR = 1,     /* each end; the rest is spread evenly */
    SHARE_DENOMINATOR = 16,
};

/* The cells looked at: `runs` runs of `run` cells, spread over `cells` cells of `cell` bytes. */
typedef struct look {
    const pl_view_t *view;
    int64_t cell, cells, runs, run;
} look_t;

typedef struct pick {
    pl_sample_t *out;
    int count, max;
    uint64_t random; /* state of a fixed pseudo-random sequence */
} pick_t;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A number below `limit`. */
static uint64_t draw(pick_t *pick, uint64_t limit)
{
    return mix(pick->random += UINT64_C(0x9e3779b97f4a7c15)) % limit;
}

/* The value at a byte offset; zeros beyond the end. */
static uint64_t value_at(const pl_view_t *view, int64_t offset)
{
    uint64_t value = 0;
    int64_t run;
    const void *at = pl_view_at(view, offset, &run);

    if (run >= 8)
        memcpy(&value, at, 8);
    else
        pl_view_read(view, offset, &value, view->bytes - offset < 8 ? view->bytes - offset : 8);
    return value;
}

static look_t look_over(const pl_view_t *view)
{
    look_t look = {.view = view, .cell = view->bytes % 8 ? 4 : 8};

    look.cells = (view->bytes + look.cell - 1) / look.cell;
    look.runs = 1;
    look.run = look.cells;
    if (look.cells > MOST_CELLS) {
        look.runs = MOST_LOOKED / RUN_CELLS;
        look.run = RUN_CELLS;
    }
    return look;
}

static int64_t run_start(const look_t *look, int64_t run)
{
    if (look->runs == 1)
        return 0;
    return (int64_t)((double)(look->cells - look->run) / (double)(look->runs - 1) * (double)run);
}

static void add(pick_t *pick, const look_t *look, int64_t cell)
{
    if (pick->count < pick->max && cell >= 0 && cell < look->cells)
        pick->out[pick->count++] =
            (pl_sample_t){cell * look->cell, value_at(look->view, cell * look->cell)};
}

static unsigned counter_of(uint64_t value)
{
    return (unsigned)(mix(value) % COUNTERS);
}

/* What there is to choose from: `all` candidates, of which `wanted` are taken, evenly at random. */
typedef struct choice {
    int64_t all, wanted;
} choice_t;

static bool choose(pick_t *pick, choice_t *choice)
{
    bool taken = choice->all > 0 && (int64_t)draw(pick, (uint64_t)choice->all) < choice->wanted;

    choice->all--;
    choice->wanted -= taken;
    return taken;
}

typedef struct census {
    uint32_t counters[COUNTERS];
    int64_t looked, changes, rare;
} census_t;

static bool is_rare(const census_t *census, uint64_t value)
{
    return census->counters[counter_of(value)] <= (uint64_t)census->looked / RARE_SHARE + 1;
}

static void count_values(const look_t *look, census_t *census)
{
    for (int64_t r = 0; r < look->runs; r++) {
        int64_t start = run_start(look, r);
        uint64_t before = 0;

        for (int64_t i = 0; i < look->run; i++) {
            uint64_t value = value_at(look->view, (start + i) * look->cell);

            census->counters[counter_of(value)]++;
            census->looked++;
            census->changes += i > 0 && value != before;
            before = value;
        }
    }
    for (int i = 0; i < COUNTERS; i++)
        if (census->counters[i] <= (uint64_t)census->looked / RARE_SHARE + 1)
            census->rare += census->counters[i];
}

static void pick_telling(const look_t *look, const census_t *census, pick_t *pick)
{
    choice_t changes = {census->changes, pick->max * CHANGE_NUMERATOR / SHARE_DENOMINATOR / 2};
    choice_t rare = {census->rare, pick->max * RARE_NUMERATOR / SHARE_DENOMINATOR};

    for (int64_t r = 0; r < look->runs; r++) {
        int64_t start = run_start(look, r);
        uint64_t before = 0;

        for (int64_t i = 0; i < look->run; i++) {
            uint64_t value = value_at(look->view, (start + i) * look->cell);

            if (i > 0 && value != before && choose(pick, &changes)) {
                add(pick, look, start + i - 1);
                add(pick, look, start + i);
            }
            if (is_rare(census, value) && choose(pick, &rare))
                add(pick, look, start + i);
            before = value;
        }
    }
}

static int by_offset(const void *a, const void *b)
{
    const pl_sample_t *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int sort_unique(pl_sample_t *samples, int count)
{
    int kept = 0;

    qsort(samples, (size_t)count, sizeof *samples, by_offset);
    for (int i = 0; i < count; i++)
        if (kept == 0 || samples[kept - 1].offset != samples[i].offset)
            samples[kept++] = samples[i];
    return kept;
}

/* One cell at a random place in each of as many equal parts as samples are left. */
static void pick_evenly(const look_t *look, pick_t *pick)
{
    int rest = pick->max - pick->count;

    for (int i = 0; i < rest; i++) {
        int64_t from = (int64_t)((double)look->cells / rest * i);
        int64_t to = (int64_t)((double)look->cells / rest * (i + 1));

        add(pick, look, from + (int64_t)draw(pick, (uint64_t)(to > from ? to - from : 1)));
    }
}

int pl_sample_take(const pl_view_t *view, pl_sample_t *out, int max)
{
    pick_t pick = {.out = out, .max = max};
    look_t look = look_over(view);

    if (look.cells <= max) {
        for (int64_t i = 0; i < look.cells; i++)
            add(&pick, &look, i);
        return pick.count;
    }
    int ends = (max * END_NUMERATOR + SHARE_DENOMINATOR - 1) / SHARE_DENOMINATOR;
    for (int i = 0; i < ends; i++) {
        add(&pick, &look, i);
        add(&pick, &look, look.cells - 1 - i);
    }
    census_t *census = calloc(1, sizeof *census);
    if (census) { /* without it the samples are still samples */
        count_values(&look, census);
        pick_telling(&look, census, &pick);
        free(census);
    }
    pick.count = sort_unique(out, pick.count);
    pick_evenly(&look, &pick);
    return sort_unique(out, pick.count);
}
