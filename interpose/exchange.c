/* SPDX-License-Identifier: MIT */
#include "interpose/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "interpose/heap.h"
#include "interpose/nature.h"
#include "interpose/transaction.h"

/* The most serious status of all processes. */
static pl_status_t agreed(pl_status_t mine, MPI_Comm comm)
{
    int status = mine, worst;
    PMPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MIN, comm);
    return (pl_status_t)worst;
}

static pl_status_t fail(pl_status_t status, const char *what, char *reason, size_t size)
{
    snprintf(reason, size, "%s: %s", what, pl_status_text(status));
    return PL_ERR_REFUSED;
}

static pl_status_t compare(pl_exchange_t *x)
{
    pl_words_input_t input = {.comm = x->comm,
                              .ns = x->ns,
                              .nt = x->nt,
                              .match = &x->match,
                              .by_words = x->arrays.by_words,
                              .now = x->now,
                              .base = x->base,
                              .here = x->here_owned,
                              .now_space = &x->space[0],
                              .base_space = &x->space[1]};
    return pl_words_compare(&input, &x->words);
}

static pl_status_t judge_words(pl_exchange_t *x, char *reason, size_t size)
{
    const pl_snapshot_t *any = x->now ? x->now : x->here_owned;

    pl_words_count(&x->words, &x->match, any->chain, &x->found);
    if (x->found.data) {
        snprintf(reason, size, "%s changed in the loop and differs between processes%s",
                 x->found.example,
                 x->found.example_object
                     ? "; it has the same size on every process before and after: the global size "
                       "grows with the processes, or it is private data"
                     : ": private data that no rule can divide or merge");
        return PL_ERR_REFUSED;
    }
    if (x->found.stack) {
        snprintf(reason, size,
                 "%s, which differs between processes and may still be needed (%d such words)",
                 x->found.stack_example, x->found.stack);
        return PL_ERR_REFUSED;
    }
    if (x->words.stack_array) {
        snprintf(reason, size, "a variable-length array on the stack changes in the loop");
        return PL_ERR_REFUSED;
    }
    return PL_OK;
}

static pl_status_t prepare(pl_exchange_t *x, char *reason, size_t size)
{
    pl_status_t status =
        pl_match_make(x->comm, x->ns, x->nt, x->now, x->base, x->here_owned, &x->match);
    if (status)
        return fail(status, "matching heap objects", reason, size);
    status = pl_arrays_decide(x->comm, &x->match, x->base, &x->arrays);
    if (status)
        return fail(status, "finding layouts", reason, size);
    if (x->arrays.refusal[0]) {
        snprintf(reason, size, "%s", x->arrays.refusal);
        return PL_ERR_REFUSED;
    }
    status = pl_arrays_make_born(&x->arrays, &x->match, x->here_owned != NULL);
    if (!status)
        status = pl_match_spaces(&x->match, x->now, x->base, x->here_owned, &x->space[0],
                                 &x->space[1], &x->space[2]);
    status = agreed(status, x->comm);
    if (!status)
        status = compare(x);
    if (!status && x->ns == 1 && x->nt > 1)
        status =
            pl_nature_mark(x->target_comm, x->nt, x->first, x->here_owned, &x->match, &x->words);
    if (status)
        return fail(status, "comparing words", reason, size);
    return judge_words(x, reason, size);
}

pl_status_t pl_exchange_run(pl_exchange_t *x, char *reason, size_t size)
{
    pl_status_t status = prepare(x, reason, size);
    if (status)
        return status;
    double t = pl_now();
    status =
        pl_arrays_move(&x->arrays, &x->match, x->method, x->comm, &x->bytes_moved, &x->bytes_kept);
    x->move_seconds = pl_now() - t;
    if (status)
        return fail(status, "moving data", reason, size);
    int lost = 0, all_lost;
    if (x->here_owned) {
        memcpy(x->registers, x->here_owned->registers, sizeof x->registers);
        lost = pl_words_inject(&x->words, &x->space[2], x->now != NULL, x->registers);
    }
    PMPI_Allreduce(&lost, &all_lost, 1, MPI_INT, MPI_MAX, x->comm);
    if (all_lost) {
        snprintf(reason, size, "%d pointers in data lead to objects the new processes do not have",
                 all_lost);
        return PL_ERR_REFUSED;
    }
    return PL_OK;
}

void pl_exchange_free(pl_exchange_t *x)
{
    pl_words_free(&x->words);
    for (int i = 0; i < 3; i++)
        pl_space_free(&x->space[i]);
    pl_arrays_free(&x->arrays);
    pl_match_free(&x->match);
    pl_snapshot_free(x->here_owned);
    x->here_owned = NULL;
}

static void list_private(pl_exchange_t *x)
{
    x->private_listed = 0;
    for (int i = 0; i < x->words.segment_count; i++) {
        const pl_segment_t *s = &x->words.segments[i];
        for (int64_t k = 0; k < (s->bytes + 7) / 8 && x->private_listed < PL_EVENT_PRIVATE_MAX;
             k++) {
            if (!pl_words_private(&x->words, s, k))
                continue;
            char *text = x->private_text[x->private_listed];
            pl_words_describe(s, &x->match, k, text, sizeof x->private_text[0]);
            x->private_list[x->private_listed++] = text;
        }
    }
}

void pl_exchange_describe(pl_exchange_t *x, pl_resize_event_t *event)
{
    list_private(x);
    event->private_words = x->found.stack + x->found.dead;
    event->private_list = x->private_list;
    event->private_listed = x->private_listed;
    event->bytes_moved = x->bytes_moved;
    event->bytes_kept = x->bytes_kept;
    event->buffers = x->buffers;
    event->buffer_count = pl_arrays_report(&x->arrays, &x->match, x->buffers, PL_MAX_BUFFERS);
}
