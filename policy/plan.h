/* SPDX-License-Identifier: MIT
 * A plan of resizes fixed beforehand, PLIANT_PLAN="50:4,120:1": to 4 processes when the first site
 * seen to recur has been visited 50 times, then to 1 at visit 120. For tests and demonstrations. */
#ifndef PLIANT_POLICY_PLAN_H
#define PLIANT_POLICY_PLAN_H

#include <stddef.h>

#include "common/status.h"

#define PL_PLAN_STEPS_MAX 2048

typedef struct pl_plan_step {
    long arrival; /* 1 or more, strictly increasing along the plan */
    int size;     /* processes wanted, 1 or more */
} pl_plan_step_t;

/* Reads "ARRIVAL:SIZE[,ARRIVAL:SIZE...]"; empty text is a plan of no steps. PL_ERR_INVALID: error
 * tells the position (1 is the first character), what is wrong there and what is valid.
 * PL_ERR_LIMIT: more than max steps, error says so. out may be NULL to check only. */
pl_status_t pl_plan_parse(const char *text, pl_plan_step_t *out, int max, int *count, char *error,
                          size_t error_size);

/* The next step that is due at this arrival, or NULL. *next counts the steps taken so far (0 at
 * first) and is advanced; one step is returned per call, in order. */
const pl_plan_step_t *pl_plan_due(const pl_plan_step_t *steps, int count, long arrival, int *next);

#endif
