/* SPDX-License-Identifier: MIT
 * How the processes of the world come to one decision: rounds of a non-blocking broadcast from rank
 * 0 while the program runs, and a short reduction at each collective once a resize is wanted. */
#ifndef PLIANT_INTERPOSE_AGREE_H
#define PLIANT_INTERPOSE_AGREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pl_round_kind { PL_ROUND_NOTHING, PL_ROUND_SURVEY, PL_ROUND_RESIZE } pl_round_kind_t;

/* What rank 0 says in a round. */
typedef struct pl_round {
    int32_t kind;
    int32_t size, method;
    int32_t distance; /* ticks until rank 0 wants to say something; 0: unknown */
    int32_t period;   /* filled by pl_agree_post: ticks from post to completion of the next round */
} pl_round_t;

/* Posts a round (significant on rank 0); returns after how many ticks it is to be completed. All
 * processes of the world call it at the same tick. */
int64_t pl_agree_post(const pl_round_t *round);

/* A new world: its processes do not share the history of the period. */
void pl_agree_reset(void);

/* Completes the round that was posted last; PL_ROUND_NOTHING if there is none. */
pl_round_t pl_agree_complete(void);

/* What a process knows of its readiness at a collective. */
typedef struct pl_ready {
    bool here; /* it is at the resize point */
    uint64_t site;
    bool expired; /* rank 0: the request's time is over */
    bool held;    /* rank 0: it is too early */
    const char *unresizable;
} pl_ready_t;

typedef enum pl_readiness {
    PL_READY_YES,
    PL_READY_ELSEWHERE, /* not at the resize point */
    PL_READY_OBSTACLE,  /* something is in flight: reason */
    PL_READY_EXPIRED,
    PL_READY_NEVER, /* this program cannot be resized: reason */
} pl_readiness_t;

/* Collective over the world's processes; the same answer on all. */
pl_readiness_t pl_agree_ready(const pl_ready_t *mine, char *reason, size_t size);

/* Is the text non-NULL on any process? Then the first one's is written on all. Collective. */
bool pl_agree_text(const char *mine, char *out, size_t size);

#endif
