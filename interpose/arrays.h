/* SPDX-License-Identifier: MIT
 * What becomes of each heap object in a resize: compared word by word, moved as a distributed
 * array, copied whole, left as set-up made it, or a reason to refuse. Sizes propose, samples of the
 * baseline decide (design: "Sizes propose", "Data decides"). */
#ifndef PLIANT_INTERPOSE_ARRAYS_H
#define PLIANT_INTERPOSE_ARRAYS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "interpose/match.h"
#include "policy/event.h"
#include "redist/layout.h"
#include "redist/move.h"

typedef enum pl_fate {
    PL_FATE_NONE,        /* nothing to do */
    PL_FATE_WORDS,       /* word by word */
    PL_FATE_BORN,        /* made on every target first, then word by word */
    PL_FATE_WHOLE,       /* large and replicated: rank 0's is copied to every target */
    PL_FATE_DISTRIBUTED, /* has a layout */
    PL_FATE_OWN,         /* the target's own is right */
    PL_FATE_GONE,        /* freed on the sources since the baseline */
    PL_FATE_REFUSED,
} pl_fate_t;

/* An object, or a list of rows that is one array. */
typedef struct pl_array_case {
    int first, count; /* objects; count > 1: rows */
    pl_fate_t fate;
    const char *kind, *evidence; /* for the event */
    bool changed;
    pl_layout_t layout; /* DISTRIBUTED */
    bool has_layout;
    bool unused; /* its ghosts are elements nobody uses: they stay zero */
    bool common; /* they are no ghosts but data all processes have alike, beside a block */
    bool move;
    int64_t bytes; /* over all sources */
    pl_view_t source, target;
    void **rows; /* storage of the views' row pointers, NULL: none */
} pl_array_case_t;

typedef struct pl_arrays {
    pl_array_case_t *cases;
    int count;
    bool *by_words;    /* per object of the match */
    char refusal[400]; /* "" when every object has a fate */
} pl_arrays_t;

/* Decides about every object. Collective; the outcome is the same on all processes. */
pl_status_t pl_arrays_decide(MPI_Comm comm, pl_match_t *match, const pl_snapshot_t *base,
                             pl_arrays_t *out);
void pl_arrays_free(pl_arrays_t *arrays);

/* Objects born since the baseline come to be on this target. */
pl_status_t pl_arrays_make_born(pl_arrays_t *arrays, pl_match_t *match, bool target);

/* Moves what is to be moved. Collective. */
pl_status_t pl_arrays_move(const pl_arrays_t *arrays, const pl_match_t *match, const char *method,
                           MPI_Comm comm, int64_t *moved, int64_t *kept);

/* Fills the list of buffers of an event, at most max; returns how many. */
int pl_arrays_report(const pl_arrays_t *arrays, const pl_match_t *match, pl_event_buffer_t *out,
                     int max);

#endif
