/* SPDX-License-Identifier: MIT
 * The survey: one iteration of the program in which every site is compared with its baseline on all
 * processes, to find the cleanest resize point: no twins, fewest private things in data, then
 * fewest private words on the stack, then the outermost. */
#ifndef PLIANT_INTERPOSE_SURVEY_H
#define PLIANT_INTERPOSE_SURVEY_H

#include <stdbool.h>
#include <stddef.h>

#include "interpose/sites.h"

typedef enum pl_survey_result {
    PL_SURVEY_GOES_ON,
    PL_SURVEY_CHOSEN,
    PL_SURVEY_FAILED,
} pl_survey_result_t;

typedef struct pl_survey_step {
    bool expired; /* rank 0: the request's time is over */
    const char *unresizable;
} pl_survey_step_t;

void pl_survey_begin(void);

/* At a collective over the world, on all its processes. CHOSEN: *site is the resize point. FAILED:
 * reason says why. */
pl_survey_result_t pl_survey_visit(pl_site_t *here, struct pl_frame *frame,
                                   const pl_survey_step_t *step, uint64_t *site, char *reason,
                                   size_t size);

/* The best site by what is known, failed ones left out; false: none. The same on all. */
bool pl_survey_choose(uint64_t *site);

#endif
