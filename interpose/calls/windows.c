/* SPDX-License-Identifier: MIT
 * Collective calls on windows. They have no communicator and no non-blocking variant: a window made
 * in a trial carries a communicator of its own to meet on. */
#include "interpose/calls/wrappers.h"

#include "interpose/calls/errhandlers.h"
#include "interpose/trial.h"

void pl_trial_window(MPI_Comm real, pl_handle_t *window)
{
    MPI_Comm guard = MPI_COMM_NULL;
    if (PMPI_Comm_dup(real, &guard) == MPI_SUCCESS) {
        PMPI_Comm_set_errhandler(guard, MPI_ERRORS_RETURN);
        pl_trial_comm_made(guard);
        window->guard = guard;
    }
    pl_errhandlers_made_window(window->handle);
}

static void meet(enum pl_call call, const char *name, MPI_Win win)
{
    pl_handle_t *window = pl_handle_find(PL_HANDLE_WIN, win);
    if (!window || window->guard == MPI_COMM_NULL)
        pl_trial_refuse(name);
    pl_frame = NULL; /* no stub, no frame */
    pl_trial_gate(window->guard, pl_trial_signature(call, window->guard, -1, 0));
}

PL_EXPORT int MPI_Win_fence(int assert, MPI_Win win)
{
    if (PL_UNLIKELY(pl_trial_active))
        meet(PL_CALL_Win_fence, "MPI_Win_fence", win);
    int rc = PMPI_Win_fence(assert, win);
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    if (rc == MPI_SUCCESS)
        pl_rma_synchronised(win);
    return rc;
}

/* In a trial the window is left to pl_handles_free, so that no rank can hang in freeing it. */
PL_EXPORT int MPI_Win_free(MPI_Win *win)
{
    pl_handle_t *window = pl_handle_find(PL_HANDLE_WIN, *win);
    if (PL_UNLIKELY(pl_trial_active)) {
        meet(PL_CALL_Win_free, "MPI_Win_free", *win);
        pl_rma_synchronised(*win);
        window->dead = true;
        *win = MPI_WIN_NULL;
        return MPI_SUCCESS;
    }
    MPI_Comm guard = window ? window->guard : MPI_COMM_NULL;
    MPI_Win before = *win;
    int rc = PMPI_Win_free(win);
    if (rc != MPI_SUCCESS)
        return rc;
    pl_rma_synchronised(before);
    pl_handle_freed(PL_HANDLE_WIN, before);
    if (guard != MPI_COMM_NULL)
        PMPI_Comm_free(&guard);
    return rc;
}

PL_EXPORT int MPI_Win_test(MPI_Win win, int *flag)
{
    if (PL_UNLIKELY(pl_trial_active))
        pl_trial_refuse("MPI_Win_test");
    int rc = PMPI_Win_test(win, flag);
    if (rc == MPI_SUCCESS && *flag) {
        pl_quiet.locks--;
        pl_rma_synchronised(win);
    }
    return rc;
}
