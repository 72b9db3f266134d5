/* SPDX-License-Identifier: MIT */
#include "interpose/nature.h"

#include <stdlib.h>

/* The same stretch of memory in another comparison, whose objects may have other numbers. */
static const pl_segment_t *counterpart(const pl_words_t *other, const pl_match_t *other_match,
                                       const pl_segment_t *s, const pl_match_t *match)
{
    for (int i = 0; i < other->segment_count; i++) {
        const pl_segment_t *o = &other->segments[i];
        if (o->kind != s->kind)
            continue;
        if (o->kind == PL_SEGMENT_OBJECT) {
            const pl_object_t *a = &other_match->objects[o->index];
            const pl_object_t *b = &match->objects[s->index];
            if (a->chain == b->chain && a->order == b->order)
                return o;
        } else if (o->index == s->index && o->page == s->page) {
            return o;
        }
    }
    return NULL;
}

static bool private_by_nature(const pl_verdict_t *v)
{
    bool differs = v->flags & PL_FLAG_POINTER ? v->changed && v->differs : v->changed & v->differs;
    return differs && v->changed_beyond_root && !(v->flags & (PL_FLAG_FOREIGN | PL_FLAG_DANGLING));
}

static void mark(const pl_words_t *other, const pl_match_t *other_match, pl_words_t *words,
                 const pl_match_t *match)
{
    for (int i = 0; i < words->segment_count; i++) {
        const pl_segment_t *s = &words->segments[i];
        const pl_segment_t *o = counterpart(other, other_match, s, match);
        if (!o)
            continue;
        /* frames are aligned by their ends, everything else by its beginning */
        int64_t shift = s->kind == PL_SEGMENT_FRAME ? (o->bytes - s->bytes) / 8 : 0;
        for (int64_t k = 0; k < (s->bytes + 7) / 8; k++)
            if (k + shift >= 0 && k + shift < (o->bytes + 7) / 8 &&
                private_by_nature(&other->verdict[o->first + k + shift]))
                words->verdict[s->first + k].flags |= PL_FLAG_NATURE;
    }
}

/* Word by word is what is so in the comparison to be marked. */
static bool *same_choice(const pl_match_t *mine, const pl_match_t *match, const pl_words_t *words)
{
    bool *by_words = calloc((size_t)mine->count + 1, sizeof *by_words);

    for (int i = 0; i < words->segment_count && by_words; i++) {
        const pl_segment_t *s = &words->segments[i];
        if (s->kind != PL_SEGMENT_OBJECT)
            continue;
        for (int k = 0; k < mine->count; k++)
            if (mine->objects[k].chain == match->objects[s->index].chain &&
                mine->objects[k].order == match->objects[s->index].order)
                by_words[k] = mine->objects[k].sources == mine->ns;
    }
    return by_words;
}

pl_status_t pl_nature_mark(MPI_Comm targets, int nt, const pl_snapshot_t *first,
                           const pl_snapshot_t *here, const pl_match_t *match, pl_words_t *words)
{
    pl_match_t mine = {0};
    pl_space_t spaces[3] = {{0}};
    pl_words_t found = {0};
    int ok = first != NULL, all_ok;

    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, targets);
    if (!all_ok)
        return PL_ERR_REFUSED;
    pl_status_t status = pl_match_make(targets, nt, 0, here, first, NULL, &mine);
    bool *by_words = status ? NULL : same_choice(&mine, match, words);
    if (!status)
        status = pl_match_spaces(&mine, here, first, NULL, &spaces[0], &spaces[1], &spaces[2]);
    if (!status) {
        pl_words_input_t input = {.comm = targets,
                                  .ns = nt,
                                  .match = &mine,
                                  .by_words = by_words,
                                  .now = here,
                                  .base = first,
                                  .now_space = &spaces[0],
                                  .base_space = &spaces[1]};
        status = pl_words_compare(&input, &found);
    }
    if (!status)
        mark(&found, &mine, words, match);
    pl_words_free(&found);
    for (int i = 0; i < 3; i++)
        pl_space_free(&spaces[i]);
    free(by_words);
    pl_match_free(&mine);
    return status;
}
