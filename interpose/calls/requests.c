/* SPDX-License-Identifier: MIT
 * Completing, starting, cancelling and freeing requests: each completion the program sees takes
 * the request off the count, and in a trial nothing may block for good. */
#include "interpose/calls/wrappers.h"

#include <stdlib.h>
#include <string.h>

/* Copies of the caller's arrays; kept, since a trial may give up while they are in use. */
static struct {
    MPI_Request *before;
    MPI_Status *statuses;
    int room;
} scratch;

static bool careful(void)
{
    return PL_UNLIKELY(pl_trial_active || pl_cancelled);
}

static void persistent_done(MPI_Request request)
{
    pl_handle_t *entry = pl_handle_find(PL_HANDLE_REQUEST, request);
    if (entry && entry->active) {
        entry->active = false;
        pl_quiet.requests--;
    }
}

/* A request was seen complete: it is null now, or persistent. */
static void done(MPI_Request after)
{
    if (after == MPI_REQUEST_NULL)
        pl_quiet.requests--;
    else
        persistent_done(after);
}

/* The same with the request's value before the call and its status. */
static void done_carefully(MPI_Request before, MPI_Request after, const MPI_Status *status)
{
    if (before == MPI_REQUEST_NULL)
        return;
    if (after == MPI_REQUEST_NULL)
        pl_handle_freed(PL_HANDLE_REQUEST, before);
    done(after);
    pl_request_settle_cancelled(before, status);
}

static int not_null(int count, const MPI_Request requests[])
{
    int n = 0;
    for (int i = 0; i < count; i++)
        n += requests[i] != MPI_REQUEST_NULL;
    return n;
}

/* All complete: what is not null now is persistent. */
static void all_done(int before, int count, const MPI_Request requests[])
{
    int after = 0;
    for (int i = 0; i < count; i++) {
        if (requests[i] != MPI_REQUEST_NULL) {
            after++;
            persistent_done(requests[i]);
        }
    }
    pl_quiet.requests -= before - after;
}

static bool copy_requests(int count, const MPI_Request requests[])
{
    if (count > scratch.room) {
        MPI_Request *before = realloc(scratch.before, (size_t)count * sizeof *before);
        if (before)
            scratch.before = before;
        MPI_Status *statuses = realloc(scratch.statuses, (size_t)count * sizeof *statuses);
        if (statuses)
            scratch.statuses = statuses;
        if (!before || !statuses) {
            pl_not_resizable("no memory to follow requests");
            return false;
        }
        scratch.room = count;
    }
    if (count > 0)
        memcpy(scratch.before, requests, (size_t)count * sizeof *requests);
    return true;
}

/* --- one request ----------------------------------------------------------------------------- */

static int wait_carefully(MPI_Request *request, MPI_Status *status, int *flag)
{
    MPI_Status own, *seen = status == MPI_STATUS_IGNORE ? &own : status;
    MPI_Request before = *request;
    int rc, complete = 0, poll = !flag;
    for (;;) {
        rc = PMPI_Test(request, &complete, seen);
        if (pl_trial_active) {
            rc = pl_trial_result(rc);
            if (!complete)
                pl_trial_poll();
        } else if (poll && !complete && rc == MPI_SUCCESS) {
            rc = PMPI_Wait(request, seen);
            complete = 1;
        }
        if (complete || rc != MPI_SUCCESS || !poll)
            break;
    }
    if (complete && rc == MPI_SUCCESS)
        done_carefully(before, *request, seen);
    if (flag)
        *flag = complete;
    return rc;
}

PL_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (careful())
        return wait_carefully(request, status, NULL);
    MPI_Request before = *request;
    int rc = PMPI_Wait(request, status);
    if (before != MPI_REQUEST_NULL && rc == MPI_SUCCESS)
        done(*request);
    return rc;
}

PL_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (careful())
        return wait_carefully(request, status, flag);
    MPI_Request before = *request;
    int rc = PMPI_Test(request, flag, status);
    if (before != MPI_REQUEST_NULL && rc == MPI_SUCCESS && *flag)
        done(*request);
    return rc;
}

/* --- all ------------------------------------------------------------------------------------- */

static int all_carefully(int count, MPI_Request requests[], MPI_Status statuses[], int *flag)
{
    if (!copy_requests(count, requests))
        return MPI_ERR_NO_MEM;
    MPI_Status *seen = statuses == MPI_STATUSES_IGNORE ? scratch.statuses : statuses;
    int rc, complete = 0;
    if (!pl_trial_active && !flag) {
        rc = PMPI_Waitall(count, requests, seen);
        complete = 1;
    } else {
        do {
            rc = PMPI_Testall(count, requests, &complete, seen);
            if (pl_trial_active) {
                rc = pl_trial_result(rc);
                if (!complete)
                    pl_trial_poll();
            }
        } while (!flag && !complete && rc == MPI_SUCCESS);
    }
    if (complete && rc == MPI_SUCCESS)
        for (int i = 0; i < count; i++)
            done_carefully(scratch.before[i], requests[i], &seen[i]);
    if (flag)
        *flag = complete;
    return rc;
}

PL_EXPORT int MPI_Waitall(int count, MPI_Request array_of_requests[],
                          MPI_Status array_of_statuses[])
{
    if (careful())
        return all_carefully(count, array_of_requests, array_of_statuses, NULL);
    int before = not_null(count, array_of_requests);
    int rc = PMPI_Waitall(count, array_of_requests, array_of_statuses);
    if (rc == MPI_SUCCESS)
        all_done(before, count, array_of_requests);
    else
        pl_quiet.requests -= before - not_null(count, array_of_requests);
    return rc;
}

PL_EXPORT int MPI_Testall(int count, MPI_Request array_of_requests[], int *flag,
                          MPI_Status array_of_statuses[])
{
    if (careful())
        return all_carefully(count, array_of_requests, array_of_statuses, flag);
    int before = not_null(count, array_of_requests);
    int rc = PMPI_Testall(count, array_of_requests, flag, array_of_statuses);
    if (rc == MPI_SUCCESS && *flag)
        all_done(before, count, array_of_requests);
    else if (rc != MPI_SUCCESS)
        pl_quiet.requests -= before - not_null(count, array_of_requests);
    return rc;
}

/* --- any ------------------------------------------------------------------------------------- */

static int any_carefully(int count, MPI_Request requests[], int *index, int *flag,
                         MPI_Status *status)
{
    MPI_Status own, *seen = status == MPI_STATUS_IGNORE ? &own : status;
    if (!copy_requests(count, requests))
        return MPI_ERR_NO_MEM;
    int rc, complete = 0;
    do {
        rc = PMPI_Testany(count, requests, index, &complete, seen);
        if (pl_trial_active) {
            rc = pl_trial_result(rc);
            if (!complete)
                pl_trial_poll();
        } else if (!flag && !complete && rc == MPI_SUCCESS) {
            rc = PMPI_Waitany(count, requests, index, seen);
            complete = 1;
        }
    } while (!flag && !complete && rc == MPI_SUCCESS);
    if (complete && rc == MPI_SUCCESS && *index != MPI_UNDEFINED)
        done_carefully(scratch.before[*index], requests[*index], seen);
    if (flag)
        *flag = complete;
    return rc;
}

PL_EXPORT int MPI_Waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status)
{
    if (careful())
        return any_carefully(count, array_of_requests, indx, NULL, status);
    int rc = PMPI_Waitany(count, array_of_requests, indx, status);
    if (rc == MPI_SUCCESS && *indx != MPI_UNDEFINED)
        done(array_of_requests[*indx]);
    return rc;
}

PL_EXPORT int MPI_Testany(int count, MPI_Request array_of_requests[], int *indx, int *flag,
                          MPI_Status *status)
{
    if (careful())
        return any_carefully(count, array_of_requests, indx, flag, status);
    int rc = PMPI_Testany(count, array_of_requests, indx, flag, status);
    if (rc == MPI_SUCCESS && *flag && *indx != MPI_UNDEFINED)
        done(array_of_requests[*indx]);
    return rc;
}

/* --- some ------------------------------------------------------------------------------------ */

static int some_carefully(int count, MPI_Request requests[], int *outcount, int indices[],
                          MPI_Status statuses[], bool wait)
{
    if (!copy_requests(count, requests))
        return MPI_ERR_NO_MEM;
    MPI_Status *seen = statuses == MPI_STATUSES_IGNORE ? scratch.statuses : statuses;
    int rc;
    do {
        rc = wait && !pl_trial_active ? PMPI_Waitsome(count, requests, outcount, indices, seen)
                                      : PMPI_Testsome(count, requests, outcount, indices, seen);
        if (pl_trial_active) {
            rc = pl_trial_result(rc);
            if (*outcount == 0)
                pl_trial_poll();
        }
    } while (wait && *outcount == 0 && rc == MPI_SUCCESS);
    if (rc == MPI_SUCCESS && *outcount != MPI_UNDEFINED)
        for (int i = 0; i < *outcount; i++)
            done_carefully(scratch.before[indices[i]], requests[indices[i]], &seen[i]);
    return rc;
}

static void some_done(int rc, int outcount, const int indices[], const MPI_Request requests[])
{
    if (rc == MPI_SUCCESS && outcount != MPI_UNDEFINED)
        for (int i = 0; i < outcount; i++)
            done(requests[indices[i]]);
}

PL_EXPORT int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount,
                           int array_of_indices[], MPI_Status array_of_statuses[])
{
    if (careful())
        return some_carefully(incount, array_of_requests, outcount, array_of_indices,
                              array_of_statuses, true);
    int rc =
        PMPI_Waitsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
    some_done(rc, *outcount, array_of_indices, array_of_requests);
    return rc;
}

PL_EXPORT int MPI_Testsome(int incount, MPI_Request array_of_requests[], int *outcount,
                           int array_of_indices[], MPI_Status array_of_statuses[])
{
    if (careful())
        return some_carefully(incount, array_of_requests, outcount, array_of_indices,
                              array_of_statuses, false);
    int rc =
        PMPI_Testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
    some_done(rc, *outcount, array_of_indices, array_of_requests);
    return rc;
}

/* --- start, cancel, free --------------------------------------------------------------------- */

static void started(MPI_Request request)
{
    pl_handle_t *entry = pl_handle_find(PL_HANDLE_REQUEST, request);
    if (!entry)
        return;
    entry->active = true;
    pl_quiet.requests++;
    pl_quiet.sent += entry->persistent == PL_PERSISTENT_SEND;
    pl_quiet.received += entry->persistent == PL_PERSISTENT_RECEIVE;
}

PL_EXPORT int MPI_Start(MPI_Request *request)
{
    int rc = PMPI_Start(request);
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    if (rc == MPI_SUCCESS)
        started(*request);
    return rc;
}

PL_EXPORT int MPI_Startall(int count, MPI_Request array_of_requests[])
{
    int rc = PMPI_Startall(count, array_of_requests);
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    for (int i = 0; rc == MPI_SUCCESS && i < count; i++)
        started(array_of_requests[i]);
    return rc;
}

PL_EXPORT int MPI_Cancel(MPI_Request *request)
{
    int rc = PMPI_Cancel(request);
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    if (rc == MPI_SUCCESS)
        pl_request_cancelled(*request);
    return rc;
}

PL_EXPORT int MPI_Request_free(MPI_Request *request)
{
    MPI_Request before = *request;
    pl_handle_t *entry = pl_handle_find(PL_HANDLE_REQUEST, before);
    bool idle = before == MPI_REQUEST_NULL || (entry && entry->persistent && !entry->active);
    if (!idle)
        return pl_request_orphan(request);
    int rc = PMPI_Request_free(request);
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    if (rc == MPI_SUCCESS)
        pl_handle_freed(PL_HANDLE_REQUEST, before);
    return rc;
}
