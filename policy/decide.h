/* SPDX-License-Identifier: MIT
 * Which request is in force. A newer resize supersedes one that waits; one that has been started is
 * finished first. Pure logic: the time is passed in (seconds, any monotonic clock). */
#ifndef PLIANT_POLICY_DECIDE_H
#define PLIANT_POLICY_DECIDE_H

#include <stdbool.h>

#include "common/status.h"
#include "policy/control.h"

#define PL_DECIDE_REASON_MAX 400

/* What the job can do at the moment. */
typedef struct pl_capacity {
    int size;               /* processes the program has now */
    int pool;               /* the most it can have */
    const char *cap_reason; /* why no more than pool; NULL: nothing to add */
} pl_capacity_t;

/* A request has ended as "refused", with this reason. */
typedef void (*pl_decide_refuse_f)(void *arg, const pl_request_t *request, const char *reason);

typedef struct pl_decider {
    double limit; /* seconds a request may wait for a clean point */
    pl_decide_refuse_f refuse;
    void *arg;
    bool waiting; /* request waits since this time */
    pl_request_t request;
    double since;
    char obstacle[PL_DECIDE_REASON_MAX]; /* why the last point was not clean, "" if unknown */
    bool started;                        /* this one is being carried out */
    pl_request_t current;
} pl_decider_t;

/* refuse is called for every request that ends without being started. */
void pl_decider_init(pl_decider_t *decider, double limit, pl_decide_refuse_f refuse, void *arg);

/* Takes a resize or a cancel. Refuses what is impossible, what it supersedes, what it cancels. */
void pl_decider_submit(pl_decider_t *decider, const pl_request_t *request,
                       const pl_capacity_t *capacity, double now);

/* The request that should be carried out now (not started yet; stays in force until started,
 * cancelled, superseded or past its limit). PL_NONE: none, or one is being carried out. */
pl_status_t pl_decider_next(pl_decider_t *decider, const pl_capacity_t *capacity, double now,
                            pl_request_t *out);

/* The last resize point was not usable, for this reason; told to the user if the limit passes. */
void pl_decider_obstacle(pl_decider_t *decider, const char *reason);

/* The waiting request is being carried out / has ended, whatever its outcome. */
void pl_decider_start(pl_decider_t *decider);
void pl_decider_finish(pl_decider_t *decider, double now);

/* Seconds until the waiting request passes its limit; negative: passed; a large number: none. */
double pl_decider_left(const pl_decider_t *decider, double now);

/* The program ends: refuses what still waits, with this reason. */
void pl_decider_close(pl_decider_t *decider, const char *reason);

#endif
