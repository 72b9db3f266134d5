/* SPDX-License-Identifier: MIT */
#include "interpose/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "interpose/agree.h"
#include "interpose/entry.h"
#include "interpose/match.h"
#include "interpose/world.h"

static int twins_seen;

void pl_survey_begin(void)
{
    twins_seen = 0;
    for (int i = 0; i < pl_sites_count(); i++)
        pl_site_at(i)->visits = 0;
}

/* Objects of one size on all sources can be compared; whether others are private shows later. */
static bool *comparable(const pl_match_t *m)
{
    bool *by_words = calloc((size_t)m->count + 1, sizeof *by_words);
    for (int i = 0; i < m->count && by_words; i++) {
        const pl_object_t *o = &m->objects[i];
        bool same = o->sources == m->ns && o->source[0] <= PL_SMALL_OBJECT;
        for (int r = 1; r < m->ns && same; r++)
            same = o->source[r] == o->source[0];
        by_words[i] = same && !o->born;
    }
    return by_words;
}

static pl_status_t analyse(pl_site_t *site, struct pl_frame *frame)
{
    pl_snapshot_t *now = NULL;
    pl_match_t match = {0};
    pl_space_t spaces[3] = {{0}};
    pl_words_t words = {0};
    int ok = pl_snapshot_take(site->chain, frame, PL_SNAPSHOT_NOW, &now) == PL_OK, all_ok;

    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, pl_control);
    pl_status_t status = all_ok ? PL_OK : PL_ERR_NOMEM;
    if (!status)
        status = pl_match_make(pl_control, pl_size, 0, now, site->baseline, NULL, &match);
    bool *by_words = status ? NULL : comparable(&match);
    if (!status)
        status =
            pl_match_spaces(&match, now, site->baseline, NULL, &spaces[0], &spaces[1], &spaces[2]);
    if (!status) {
        pl_words_input_t input = {.comm = pl_control,
                                  .ns = pl_size,
                                  .match = &match,
                                  .by_words = by_words,
                                  .now = now,
                                  .base = site->baseline,
                                  .now_space = &spaces[0],
                                  .base_space = &spaces[1]};
        status = pl_words_compare(&input, &words);
    }
    if (!status) {
        pl_words_count(&words, &match, site->chain, &site->found);
        site->found.data_places += words.stack_array ? 1 : 0;
        site->surveyed = true;
    }
    pl_words_free(&words);
    for (int i = 0; i < 3; i++)
        pl_space_free(&spaces[i]);
    free(by_words);
    pl_match_free(&match);
    pl_snapshot_free(now);
    return status;
}

static bool better(const pl_site_t *a, const pl_site_t *b)
{
    if (a->found.data_places != b->found.data_places)
        return a->found.data_places < b->found.data_places;
    if (a->of_world != b->of_world) /* a group that is the whole world now may not be one later */
        return a->of_world;
    if (a->found.stack != b->found.stack)
        return a->found.stack < b->found.stack;
    int depth_a = a->chain ? a->chain->depth : 0, depth_b = b->chain ? b->chain->depth : 0;
    if (depth_a != depth_b)
        return depth_a < depth_b;
    return a->hash < b->hash;
}

bool pl_survey_choose(uint64_t *site)
{
    const pl_site_t *best = NULL;

    for (int i = 0; i < pl_sites_count(); i++) {
        const pl_site_t *s = pl_site_at(i);
        if (!s->surveyed || s->twin || !s->baseline || s->failures || s->visits == 0)
            continue;
        if (!best || better(s, best))
            best = s;
    }
    if (best)
        *site = best->hash;
    return best != NULL;
}

pl_survey_result_t pl_survey_visit(pl_site_t *here, struct pl_frame *frame,
                                   const pl_survey_step_t *step, uint64_t *site, char *reason,
                                   size_t size)
{
    enum { SITE, NOT_SITE, NO_BASELINE, EXPIRED, UNRESIZABLE, COUNT };
    int64_t hash = (int64_t)(here->hash >> 1);
    int64_t most[COUNT] = {hash, -hash,
                           !here->baseline || !pl_chain_verify(here->chain) ||
                               here->arrivals <= pl_options.baseline,
                           step->expired, step->unresizable != NULL};

    PMPI_Allreduce(MPI_IN_PLACE, most, COUNT, MPI_INT64_T, MPI_MAX, pl_control);
    if (most[UNRESIZABLE]) {
        pl_agree_text(step->unresizable, reason, size);
        return PL_SURVEY_FAILED;
    }
    if (most[EXPIRED]) {
        snprintf(reason, size, "no usable resize point was found in time%s",
                 twins_seen ? " (processes pass different copies of the same call)" : "");
        return PL_SURVEY_FAILED;
    }
    if (most[SITE] != -most[NOT_SITE]) {
        here->twin = true;
        twins_seen++;
        return PL_SURVEY_GOES_ON;
    }
    if (most[NO_BASELINE])
        return PL_SURVEY_GOES_ON;
    if (++here->visits == 1) {
        if (here->failures)
            return PL_SURVEY_GOES_ON;
        pl_status_t status = analyse(here, frame);
        if (status)
            here->twin = true; /* cannot be judged: not to be used */
        PL_DEBUG("survey: %016lx: private: %d places in data, %d words on the stack (%s), %d dead",
                 (unsigned long)here->hash, here->found.data_places, here->found.stack,
                 here->found.stack_example, here->found.dead);
        return PL_SURVEY_GOES_ON;
    }
    return pl_survey_choose(site) ? PL_SURVEY_CHOSEN : PL_SURVEY_GOES_ON;
}
