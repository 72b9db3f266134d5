/* SPDX-License-Identifier: MIT
 * Sites: call places of collectives over the program's world, counted as the program passes. */
#ifndef PLIANT_INTERPOSE_SITES_H
#define PLIANT_INTERPOSE_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/border.h"
#include "interpose/chain.h"
#include "interpose/snapshot.h"
#include "interpose/private.h"
#include "interpose/words.h"

enum { PL_MAX_SITES = 192 };
#define PL_NEVER INT64_MAX

typedef struct pl_site {
    uint64_t hash; /* of its chain */
    const pl_chain_t *chain;
    enum pl_call call;
    int64_t arrivals;
    int64_t watch; /* something is due when arrivals gets here */
    pl_snapshot_t *baseline;
    /* what the survey found */
    bool of_world; /* over MPI_COMM_WORLD itself */
    bool surveyed, twin;
    int visits; /* in the survey under way */
    pl_private_count_t found;
    int failures; /* trials here that failed because of what lies in memory */
} pl_site_t;

/* What goes from the sources to all targets about a site. */
typedef struct pl_site_note {
    uint64_t hash;
    int64_t arrivals;
    int32_t of_world, surveyed, twin, failures, data_places, stack;
    int32_t call, visits;
} pl_site_note_t;

extern int64_t pl_ticks;     /* collectives over the world so far: equal on all its processes */
extern int64_t pl_wake_tick; /* something is due when pl_ticks gets here */
extern bool pl_sites_on;     /* sites are counted */

int pl_sites_count(void);
pl_site_t *pl_site_at(int index);
pl_site_t *pl_site_find(uint64_t hash);

/* Forgets all counts and baselines: a new run of main begins. With `keep`, what there was is kept
 * for pl_sites_restore (a rollback); else freed. */
void pl_sites_reset(bool keep);
void pl_sites_restore(void);
/* Counts from zero, e.g. after taking notes that came with the counts of another run. */
void pl_sites_reset_counts(void);
void pl_sites_drop_kept(void);

int pl_sites_notes(pl_site_note_t *out, int max);
void pl_sites_take_notes(const pl_site_note_t *notes, int count);

/* "Allreduce at dot+0x51 < main+0x22f" */
void pl_site_describe(const pl_site_t *site, char *text, size_t size);

#endif
