/* SPDX-License-Identifier: MIT
 * A resize as a transaction: trial, then commit or rollback. */
#ifndef PLIANT_INTERPOSE_TRANSACTION_H
#define PLIANT_INTERPOSE_TRANSACTION_H

#include <stdbool.h>

#include "interpose/border.h"
#include "interpose/resize.h"
#include "interpose/sites.h"
#include "interpose/world.h"

/* Seconds of a clock nobody interposes. */
double pl_now(void);

/* On all processes of the world, at the return of the resize point's call. Returns rc if this
 * process stays as it was (the trial failed and it had no part in it); survivors and leaving
 * processes do not return: they go on elsewhere. agree_seconds: rank 0's. */
int pl_transaction_begin(const pl_task_t *task, pl_site_t *site, struct pl_frame *frame, int rc,
                         double agree_seconds);

/* A parked process was told to take part. */
void pl_transaction_join(const pl_order_t *order);

/* At the frame above main, before main runs (again): puts the first-entry state back and makes the
 * process ready for a trial. */
void pl_transaction_enter(void);

/* Before main is entered first. */
void pl_transaction_first_entry(void);

/* At the frame above main: a trial failed here. A survivor goes back to where it was and does not
 * return; a process that was parked returns. */
void pl_transaction_settle(void);

/* A collective over the world returns during a trial, at an arrival that is watched. */
int pl_transaction_arrive(pl_site_t *site, struct pl_frame *frame, int rc);

#endif
