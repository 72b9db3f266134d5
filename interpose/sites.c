/* SPDX-License-Identifier: MIT */
#include "interpose/sites.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "interpose/calls/names.h"
#include "interpose/entry.h"
#include "interpose/resize.h"
#include "interpose/transaction.h"
#include "interpose/world.h"

int64_t pl_ticks, pl_wake_tick = PL_NEVER;
bool pl_sites_on;
__thread struct pl_frame *pl_frame __attribute__((tls_model("initial-exec")));

enum { COMM_CACHE = 64 };

static pl_site_t sites[PL_MAX_SITES], kept[PL_MAX_SITES];
static int site_count, kept_count;
static bool full_warned;

/* Is a communicator congruent to the world? Asked at every collective over another one. */
static struct {
    MPI_Comm comm;
    bool congruent, known;
} comm_cache[COMM_CACHE];
static MPI_Comm world_copy = MPI_COMM_WORLD; /* the last one that was */

static void forget_comms(void)
{
    memset(comm_cache, 0, sizeof comm_cache);
    world_copy = MPI_COMM_WORLD;
}

static bool ask_congruent(MPI_Comm comm)
{
    int result = MPI_UNEQUAL, inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    if (!inter)
        PMPI_Comm_compare(comm, pl_world, &result);
    return result == MPI_IDENT || result == MPI_CONGRUENT;
}

static bool is_world(MPI_Comm comm)
{
    if (comm == MPI_COMM_WORLD)
        return true;
    unsigned slot = (unsigned)comm % COMM_CACHE;
    if (PL_UNLIKELY(!comm_cache[slot].known || comm_cache[slot].comm != comm)) {
        comm_cache[slot].comm = comm;
        comm_cache[slot].congruent = ask_congruent(comm);
        comm_cache[slot].known = true;
    }
    if (comm_cache[slot].congruent)
        world_copy = comm;
    return comm_cache[slot].congruent;
}

void pl_sites_forget_comm(MPI_Comm comm)
{
    comm_cache[(unsigned)comm % COMM_CACHE].known = false;
    if (comm == world_copy)
        world_copy = MPI_COMM_WORLD;
}

static int64_t next_watch(const pl_site_t *s)
{
    return !s->baseline && s->arrivals < pl_options.baseline ? pl_options.baseline : PL_NEVER;
}

static pl_site_t *add_site(pl_chain_t *chain, enum pl_call call, bool of_world)
{
    pl_site_t *s = pl_site_find(chain->hash);

    if (!s) {
        if (site_count == PL_MAX_SITES) {
            if (!full_warned)
                PL_INFO("more than %d call places of collectives: the rest is not used",
                        PL_MAX_SITES);
            full_warned = true;
            return NULL;
        }
        s = &sites[site_count++];
        *s = (pl_site_t){.hash = chain->hash, .call = call};
        s->watch = pl_trial_active ? 1 : next_watch(s);
    }
    s->chain = chain;
    s->call = call;
    s->of_world = of_world;
    chain->site = s;
    return s;
}

static void take_baseline(pl_site_t *s, const struct pl_frame *frame)
{
    if (!s->chain->complete || !pl_chain_verify(s->chain))
        return;
    if (pl_snapshot_take(s->chain, frame, PL_SNAPSHOT_BASELINE, &s->baseline))
        PL_WARN("no memory for the baseline of a site");
}

static __attribute__((noinline)) int due(pl_site_t *s, struct pl_frame *frame, int rc)
{
    if (pl_trial_active)
        return pl_transaction_arrive(s, frame, rc);
    if (s->arrivals == pl_options.baseline && !s->baseline)
        take_baseline(s, frame);
    s->watch = next_watch(s);
    return pl_resize_tick(s, frame, rc);
}

static inline int count_arrival(pl_site_t *s, pl_chain_t *chain, struct pl_frame *frame, int rc)
{
    s->arrivals++;
    if (PL_UNLIKELY(s->arrivals >= s->watch || pl_ticks >= pl_wake_tick)) {
        s->chain = chain;
        return due(s, frame, rc);
    }
    return rc;
}

/* A place that is new or was not guessed, or a communicator that is not known to be the world. */
static __attribute__((noinline)) int arrive_slowly(enum pl_call call, MPI_Comm comm, int rc)
{
    struct pl_frame *frame = pl_frame;

    if (!is_world(comm))
        return rc;
    pl_chain_t *chain = pl_chain_find((void *)frame->ret, frame + 1);
    if (!chain)
        return rc;
    pl_site_t *s = chain->site;
    pl_ticks++;
    if (!s && !(s = add_site(chain, call, comm == MPI_COMM_WORLD)))
        return rc;
    return count_arrival(s, chain, frame, rc);
}

/* Every collective goes through here. What is seldom needed stands in functions that this one ends
 * in, so that it need not save any register. */
int pl_arrive(enum pl_call call, MPI_Comm comm, int rc)
{
    struct pl_frame *frame = pl_frame;

    if (!pl_sites_on)
        return rc;
    if (comm != MPI_COMM_WORLD && comm != world_copy)
        return arrive_slowly(call, comm, rc);
    pl_chain_t *chain = pl_chain_guess((void *)frame->ret, frame + 1);
    if (PL_UNLIKELY(!chain || !chain->site))
        return arrive_slowly(call, comm, rc);
    pl_chain_last = chain;
    pl_ticks++;
    return count_arrival(chain->site, chain, frame, rc);
}

int pl_sites_count(void)
{
    return site_count;
}

pl_site_t *pl_site_at(int index)
{
    return &sites[index];
}

pl_site_t *pl_site_find(uint64_t hash)
{
    for (int i = 0; i < site_count; i++)
        if (sites[i].hash == hash)
            return &sites[i];
    return NULL;
}

void pl_sites_drop_kept(void)
{
    for (int i = 0; i < kept_count; i++)
        pl_snapshot_free(kept[i].baseline);
    kept_count = 0;
}

/* Records keep their place in the table, so that chains may go on pointing to them. */
void pl_sites_reset(bool keep)
{
    pl_sites_drop_kept();
    if (keep) {
        memcpy(kept, sites, sizeof *sites * (size_t)site_count);
        kept_count = site_count;
    }
    for (int i = 0; i < site_count; i++) {
        if (!keep)
            pl_snapshot_free(sites[i].baseline);
        sites[i].baseline = NULL;
    }
    pl_sites_reset_counts();
    forget_comms();
}

void pl_sites_reset_counts(void)
{
    for (int i = 0; i < site_count; i++) {
        sites[i].arrivals = 0;
        sites[i].watch = 1; /* in a trial every early arrival is looked at */
    }
}

void pl_sites_restore(void)
{
    for (int i = 0; i < site_count; i++)
        pl_snapshot_free(sites[i].baseline);
    for (int i = 0; i < site_count; i++) {
        const pl_site_t *was = i < kept_count ? &kept[i] : NULL;
        if (was)
            sites[i] = *was;
        else
            sites[i].baseline = NULL, sites[i].arrivals = 0;
    }
    kept_count = 0;
    forget_comms();
}

int pl_sites_notes(pl_site_note_t *out, int max)
{
    int n = 0;
    for (int i = 0; i < site_count && n < max; i++) {
        const pl_site_t *s = &sites[i];
        out[n++] = (pl_site_note_t){.hash = s->hash,
                                    .arrivals = s->arrivals,
                                    .of_world = s->of_world,
                                    .surveyed = s->surveyed,
                                    .twin = s->twin,
                                    .failures = s->failures,
                                    .data_places = s->found.data_places,
                                    .stack = s->found.stack,
                                    .call = (int32_t)s->call,
                                    .visits = s->visits};
    }
    return n;
}

void pl_sites_take_notes(const pl_site_note_t *notes, int count)
{
    for (int i = 0; i < count; i++) {
        pl_site_t *s = pl_site_find(notes[i].hash);
        if (!s) {
            if (site_count == PL_MAX_SITES)
                continue;
            s = &sites[site_count++];
            *s = (pl_site_t){.hash = notes[i].hash, .call = (enum pl_call)notes[i].call};
        }
        s->arrivals = notes[i].arrivals;
        s->of_world = notes[i].of_world;
        s->surveyed = notes[i].surveyed;
        s->twin = notes[i].twin;
        s->failures = notes[i].failures;
        s->found.data_places = notes[i].data_places;
        s->found.stack = notes[i].stack;
        s->visits = notes[i].visits;
    }
}

void pl_site_describe(const pl_site_t *site, char *text, size_t size)
{
    char chain[120] = "";
    if (site->chain)
        pl_chain_describe(site->chain, chain, sizeof chain);
    snprintf(text, size, "%s at %s", pl_call_name(site->call), chain);
}
