/* SPDX-License-Identifier: MIT */
#include "redist/plan.h"

#include <stdbool.h>
#include <stdlib.h>

#include "redist/split.h"

/* Units [begin, end) of the global sequence; ghosts beyond its ends have numbers < 0 or >= global.
 */
typedef struct range {
    int64_t begin, end;
} range_t;

typedef struct pieces {
    pl_piece_t *items;
    int count, capacity;
} pieces_t;

static int64_t ghosts_below(const pl_layout_t *layout)
{
    return layout->kind == PL_KIND_HALO ? layout->lo : 0;
}

/* What a source gives: its own units, and the first and last one the boundary beyond. */
static range_t given_by(const pl_layout_t *layout, int source)
{
    range_t given = {pl_split_first(layout->source, source),
                     pl_split_first(layout->source, source + 1)};

    if (source == 0)
        given.begin -= ghosts_below(layout);
    if (source == layout->ns - 1)
        given.end += layout->hi;
    return given;
}

static range_t wanted_by(const pl_layout_t *layout, int target)
{
    return (range_t){pl_split_first(layout->target, target) - ghosts_below(layout),
                     pl_split_first(layout->target, target + 1) + layout->hi};
}

static bool add_piece(pieces_t *pieces, const pl_layout_t *layout, int peer, int64_t first_owned,
                      range_t units)
{
    if (pieces->count == pieces->capacity) {
        int capacity = pieces->capacity ? 2 * pieces->capacity : 8;
        pl_piece_t *items = realloc(pieces->items, (size_t)capacity * sizeof *items);

        if (!items)
            return false;
        pieces->items = items;
        pieces->capacity = capacity;
    }
    pieces->items[pieces->count++] =
        (pl_piece_t){.peer = peer,
                     .offset = (units.begin - first_owned + layout->lo) * layout->unit,
                     .bytes = (units.end - units.begin) * layout->unit};
    return true;
}

static bool plan_receives(const pl_layout_t *layout, int target, pieces_t *pieces)
{
    int64_t first_owned = pl_split_first(layout->target, target);
    range_t rest = wanted_by(layout, target);

    while (rest.begin < rest.end) {
        int source = pl_split_find(layout->source, rest.begin);

        if (source == layout->ns)
            source--;
        range_t piece = {rest.begin, given_by(layout, source).end};
        if (piece.end > rest.end)
            piece.end = rest.end;
        if (!add_piece(pieces, layout, source, first_owned, piece))
            return false;
        rest.begin = piece.end;
    }
    return true;
}

/* The next target that wants anything; without ghosts long runs of empty ones are jumped over. */
static int next_target(const pl_layout_t *layout, int target)
{
    range_t wanted;

    if (target + 1 >= layout->nt)
        return layout->nt;
    wanted = wanted_by(layout, target + 1);
    if (wanted.begin < wanted.end)
        return target + 1;
    return pl_split_find(layout->target, wanted.end);
}

static bool plan_sends(const pl_layout_t *layout, int source, pieces_t *pieces)
{
    int64_t first_owned = pl_split_first(layout->source, source);
    range_t given = given_by(layout, source);

    if (given.begin >= given.end)
        return true;
    int target = pl_split_find(layout->target, given.begin - layout->hi);
    for (; target < layout->nt; target = next_target(layout, target)) {
        range_t piece = wanted_by(layout, target);

        if (piece.begin >= given.end)
            break;
        if (piece.begin < given.begin)
            piece.begin = given.begin;
        if (piece.end > given.end)
            piece.end = given.end;
        if (piece.begin < piece.end && !add_piece(pieces, layout, target, first_owned, piece))
            return false;
    }
    return true;
}

pl_status_t pl_plan_make(const pl_layout_t *layout, int rank, pl_plan_t *out)
{
    pieces_t send = {0}, recv = {0};
    pl_plan_t plan = {0};

    if (rank < 0 || layout->kind > PL_KIND_OFFSETS)
        return PL_ERR_INVALID;
    if ((rank < layout->ns && !plan_sends(layout, rank, &send)) ||
        (rank < layout->nt && !plan_receives(layout, rank, &recv))) {
        free(send.items);
        free(recv.items);
        return PL_ERR_NOMEM;
    }
    plan.send = send.items;
    plan.sends = send.count;
    plan.recv = recv.items;
    plan.recvs = recv.count;
    for (int i = 0; i < plan.recvs; i++)
        *(plan.recv[i].peer == rank ? &plan.kept : &plan.moved) += plan.recv[i].bytes;
    *out = plan;
    return PL_OK;
}

void pl_plan_free(pl_plan_t *plan)
{
    free(plan->send);
    free(plan->recv);
    *plan = (pl_plan_t){0};
}
