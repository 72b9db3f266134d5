/* SPDX-License-Identifier: MIT
 * When and where to resize: requests are agreed on without extra synchronisation, one iteration is
 * surveyed for the cleanest resize point, and there the transaction begins.
 *
 * Rank 0 decides; its decision travels by a non-blocking broadcast posted at one collective and
 * completed some collectives later (a period of ticks), and is acted on there by all. */
#ifndef PLIANT_INTERPOSE_RESIZE_H
#define PLIANT_INTERPOSE_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/border.h"
#include "interpose/sites.h"
#include "policy/control.h"
#include "policy/event.h"

/* A request that is being carried out, as all processes know it. */
typedef struct pl_task {
    int size;
    int method;
    uint64_t site; /* hash of the resize point */
} pl_task_t;

/* At the first MPI_Init: the pool is there. Then, on its processes: the world is there. */
void pl_resize_start(void);
void pl_resize_world_ready(void);
/* At MPI_Finalize. */
void pl_resize_finish(void);

/* Something is due at this arrival. */
int pl_resize_tick(pl_site_t *site, struct pl_frame *frame, int rc);

/* A resize ended: back to waiting for requests, in the world as it is now. event (rank 0 only):
 * what happened. */
void pl_resize_done(const pl_resize_event_t *event, bool condemn_site);

/* What processes new to the world must know: the plan, where the resize point is, how patiently it
 * is waited for. */
typedef struct pl_resize_note {
    uint64_t point;
    int64_t survey_ticks;
    int32_t plan_next;
} pl_resize_note_t;

pl_resize_note_t pl_resize_tell(void);
void pl_resize_learn(const pl_resize_note_t *note);

#endif
