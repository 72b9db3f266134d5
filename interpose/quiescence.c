/* SPDX-License-Identifier: MIT */
#include "interpose/quiescence.h"

#include <stdlib.h>

#include "interpose/border.h"
#include "interpose/handles.h"

pl_quiet_t pl_quiet;

/* Requests the program freed while they were at work, with Request_free. */
typedef struct orphan {
    MPI_Request request;
    bool trial;
} orphan_t;

static orphan_t *orphans;
static int n_orphans, room;

enum { MAX_CANCELLED = 64 };
int pl_cancelled;
static MPI_Request cancelled[MAX_CANCELLED];

void pl_request_cancelled(MPI_Request request)
{
    if (pl_cancelled < MAX_CANCELLED)
        cancelled[pl_cancelled++] = request;
    else
        pl_not_resizable("more requests are cancelled at a time than can be followed");
}

void pl_request_settle_cancelled(MPI_Request request, const MPI_Status *status)
{
    for (int i = 0; i < pl_cancelled; i++) {
        if (cancelled[i] != request)
            continue;
        int worked = 0;
        PMPI_Test_cancelled(status, &worked);
        /* Libraries of the MPICH ABI never cancel a send, so this was a receive. */
        pl_quiet.received -= worked;
        cancelled[i] = cancelled[--pl_cancelled];
        return;
    }
}

static void bury_orphans(void)
{
    for (int i = n_orphans - 1; i >= 0; i--) {
        MPI_Request request = orphans[i].request;
        MPI_Status status;
        int complete = 0;
        PMPI_Request_get_status(request, &complete, &status);
        if (!complete)
            continue;
        pl_request_settle_cancelled(request, &status);
        PMPI_Request_free(&request);
        pl_handle_freed(PL_HANDLE_REQUEST, orphans[i].request);
        pl_quiet.requests--;
        orphans[i] = orphans[--n_orphans];
    }
}

void pl_quiescence_get(pl_quiet_t *quiet)
{
    if (n_orphans)
        bury_orphans();
    *quiet = pl_quiet;
}

void pl_quiescence_save(pl_quiet_t *saved)
{
    *saved = pl_quiet;
    pl_quiet = (pl_quiet_t){0};
}

void pl_quiescence_restore(const pl_quiet_t *saved)
{
    int kept = 0;
    /* Those of the trial are with its handles, which are freed or leaked as a whole. */
    for (int i = 0; i < n_orphans; i++)
        if (!orphans[i].trial)
            orphans[kept++] = orphans[i];
    n_orphans = kept;
    pl_cancelled = 0; /* saved when nothing was in flight */
    pl_quiet = *saved;
}

void pl_quiescence_finish(void)
{
    for (int i = 0; i < n_orphans; i++)
        PMPI_Request_free(&orphans[i].request);
    free(orphans);
    orphans = NULL;
    n_orphans = room = 0;
}

void pl_request_started_slow(MPI_Request request)
{
    pl_handle_made(PL_HANDLE_REQUEST, request);
}

int pl_request_orphan(MPI_Request *request)
{
    /* Often in a loop: keep the list short. */
    if (n_orphans == room)
        bury_orphans();
    if (n_orphans == room) {
        int larger = room ? 2 * room : 16;
        orphan_t *grown = realloc(orphans, (size_t)larger * sizeof *grown);
        if (!grown) {
            pl_not_resizable("no memory to follow freed requests");
            return PMPI_Request_free(request);
        }
        orphans = grown;
        room = larger;
    }
    orphans[n_orphans++] = (orphan_t){*request, pl_trial_active};
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

void pl_rma_operation(MPI_Win win)
{
    pl_handle_t *window = pl_handle_find(PL_HANDLE_WIN, win);
    if (window)
        window->pending++;
    pl_quiet.rma++;
}

void pl_rma_synchronised(MPI_Win win)
{
    pl_handle_t *window = pl_handle_find(PL_HANDLE_WIN, win);
    if (!window)
        return;
    pl_quiet.rma -= window->pending;
    window->pending = 0;
}
