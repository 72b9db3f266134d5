/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "interpose/controls.h"
#include "interpose/handles.h"
#include "interpose/heap.h"
#include "interpose/quiescence.h"
#include "interpose/trial_state.h"

enum { PATIENCE_SECONDS = 5 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* True when done in time: settling must not hang on an MPI that is broken. */
static bool wait_for(MPI_Request *request, double until)
{
    int done = 0;
    for (;;) {
        if (PMPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (done)
            return true;
        if (seconds() > until)
            return false;
        sched_yield();
    }
}

void pl_trial_notify(void)
{
    if (pl_trial.notices_sent)
        return;
    pl_trial.notices_sent = true;
    pl_trap_kick();
    for (int r = 0; r < pl_trial.size; r++)
        if (r != pl_trial.rank)
            PMPI_Send(&pl_trial.number, 1, MPI_INT, r, PL_TAG_NOTICE, pl_trial.all);
}

void pl_trial_report(bool failed)
{
    pl_report_t *report = &pl_trial.report;

    if (pl_trial.voted)
        return;
    pl_trial.voted = true;
    memset(report, 0, sizeof *report);
    report->failed = failed;
    report->noticed = pl_trial.notices_sent;
    report->missed = pl_trial.missed;
    report->dirty = pl_trial.dirty;
    pl_quiet_t quiet;
    pl_quiescence_get(&quiet);
    report->sent = quiet.sent;
    report->received = quiet.received;
    memcpy(report->reason, pl_trial.reason, sizeof report->reason);
    if (pl_trial.gated_count > PL_REPORT_COMMS)
        report->dirty = true;
    for (int i = 0; i < pl_trial.gated_count && i < PL_REPORT_COMMS; i++) {
        report->comm[i].identity = pl_trial.gated[i].identity;
        report->comm[i].gates = pl_trial.gated[i].gates;
        report->comms = i + 1;
    }
    PMPI_Iallgather(report, (int)sizeof *report, MPI_BYTE, pl_trial.reports, (int)sizeof *report,
                    MPI_BYTE, pl_trial.all, &pl_trial.report_request);
}

bool pl_trial_all_reported(void)
{
    int done = 0;
    if (!pl_trial.counted) {
        PMPI_Test(&pl_trial.report_request, &done, MPI_STATUS_IGNORE);
        pl_trial.counted = done;
    }
    return pl_trial.counted;
}

static void take_reason(void)
{
    for (int r = 0; r < pl_trial.size; r++)
        if (pl_trial.reports[r].noticed && pl_trial.reports[r].reason[0]) {
            memcpy(pl_trial.reason, pl_trial.reports[r].reason, sizeof pl_trial.reason);
            return;
        }
}

bool pl_trial_elsewhere(void)
{
    bool missed = false;
    for (int r = 0; r < pl_trial.size; r++) {
        if (pl_trial.reports[r].noticed && !pl_trial.reports[r].missed)
            return false;
        missed = missed || pl_trial.reports[r].missed;
    }
    return missed;
}

static bool anybody_failed(void)
{
    for (int r = 0; r < pl_trial.size; r++)
        if (pl_trial.reports[r].failed)
            return true;
    return false;
}

bool pl_trial_vote(void)
{
    pl_trial_report(false);
    while (!pl_trial_all_reported())
        sched_yield();
    return !anybody_failed();
}

/* Every process that gave up by itself sent one notice to every other one. */
static void take_notices(double until)
{
    int expected = 0;

    for (int r = 0; r < pl_trial.size; r++)
        expected += r != pl_trial.rank && pl_trial.reports[r].noticed;
    while (pl_trial.notices_received < expected && seconds() < until) {
        int there = 0, number;
        PMPI_Iprobe(MPI_ANY_SOURCE, PL_TAG_NOTICE, pl_trial.all, &there, MPI_STATUS_IGNORE);
        if (!there) {
            sched_yield();
            continue;
        }
        PMPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, PL_TAG_NOTICE, pl_trial.all,
                  MPI_STATUS_IGNORE);
        pl_trial.notices_received++;
    }
}

/* Enters the gates that other members have entered, so that their requests complete. */
static bool complete_gates(double until)
{
    static int64_t nothing[4], ignored[4];
    bool complete = true;

    for (int i = 0; i < pl_trial.gated_count; i++) {
        pl_gated_t *g = &pl_trial.gated[i];
        int64_t most = g->gates;
        for (int r = 0; r < pl_trial.size; r++)
            for (int k = 0; k < pl_trial.reports[r].comms; k++)
                if (pl_trial.reports[r].comm[k].identity == g->identity &&
                    pl_trial.reports[r].comm[k].gates > most)
                    most = pl_trial.reports[r].comm[k].gates;
        for (; g->gates < most && complete; g->gates++) {
            MPI_Request request;
            PMPI_Iallreduce(nothing, ignored, 4, MPI_INT64_T, MPI_MAX, g->comm, &request);
            complete = wait_for(&request, until);
        }
    }
    return complete;
}

/* One pass over what has arrived on the trial's communicators; returns how many were taken. */
static int64_t drain_once(void)
{
    int64_t taken = 0;

    for (int i = 0; i < pl_trial.gated_count; i++)
        for (;;) {
            int there = 0, bytes;
            MPI_Status status;
            PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, pl_trial.gated[i].comm, &there, &status);
            if (!there)
                break;
            PMPI_Get_count(&status, MPI_BYTE, &bytes);
            char *buffer = malloc((size_t)(bytes > 0 ? bytes : 1));
            if (!buffer)
                return taken;
            PMPI_Recv(buffer, bytes > 0 ? bytes : 0, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
                      pl_trial.gated[i].comm, MPI_STATUS_IGNORE);
            free(buffer);
            taken++;
        }
    return taken;
}

/* Requests the program had in flight count as abandoned too, unless they are already. */
static void abandon_program_requests(void)
{
    enum { MOST = 4096 };
    static int handles[MOST];
    int n = pl_handles_list(PL_HANDLE_REQUEST, pl_heap_current(), handles, MOST);

    for (int i = 0; i < n && i < MOST; i++) {
        pl_handle_t *h = pl_handle_find(PL_HANDLE_REQUEST, handles[i]);
        bool known = h && h->persistent != PL_PERSISTENT_NONE && !h->active;
        for (int k = 0; k < pl_trial.abandoned_count && !known; k++)
            known = pl_trial.abandoned[k] == handles[i];
        if (known)
            continue;
        pl_trial_abandon(handles[i]);
        if (!h || h->persistent == PL_PERSISTENT_NONE)
            pl_handle_freed(PL_HANDLE_REQUEST, handles[i]);
    }
}

/* Receives nobody waits for any more. Messages were counted as received when the receive was
 * started; returns how many of those will not come after all. Sends cannot be cancelled: they
 * complete when their message is drained; collectives with their gates, or never. */
static int64_t cancel_abandoned(void)
{
    int64_t cancelled_receives = 0;

    for (int i = 0; i < pl_trial.abandoned_count; i++) {
        MPI_Request *q = &pl_trial.abandoned[i];
        int done = 0, cancelled = 0;
        MPI_Status status;
        PMPI_Test(q, &done, &status);
        if (done || PMPI_Cancel(q) != MPI_SUCCESS)
            continue;
        PMPI_Test(q, &done, &status);
        if (done)
            PMPI_Test_cancelled(&status, &cancelled);
        cancelled_receives += cancelled;
    }
    return cancelled_receives;
}

/* Receives until all messages of the trial have been received somewhere. */
static bool drain(double until)
{
    int64_t received = pl_trial.report.received, totals[2], mine[2];

    for (;;) {
        int late = seconds() > until, any_late;
        received += drain_once();
        mine[0] = pl_trial.report.sent - received;
        mine[1] = 0;
        for (int i = 0; i < pl_trial.abandoned_count; i++) {
            int done = 0;
            PMPI_Test(&pl_trial.abandoned[i], &done, MPI_STATUS_IGNORE);
            mine[1] += !done;
        }
        PMPI_Allreduce(mine, totals, 2, MPI_INT64_T, MPI_SUM, pl_trial.all);
        PMPI_Allreduce(&late, &any_late, 1, MPI_INT, MPI_MAX, pl_trial.all);
        if (totals[0] <= 0 && totals[1] == 0)
            return true;
        if (any_late)
            return false;
    }
}

bool pl_trial_settle(void)
{
    double until = seconds() + PATIENCE_SECONDS;
    bool clean = true;

    pl_trap_disarm();
    pl_trial_active = false;
    if (pl_trial.give_up && !pl_trial.notice_seen)
        pl_trial_notify();
    pl_trial_report(true);
    while (!pl_trial_all_reported())
        sched_yield();
    take_reason();
    take_notices(until);
    for (int r = 0; r < pl_trial.size; r++)
        clean = clean && !pl_trial.reports[r].dirty;
    if (clean) {
        int mine = complete_gates(until), all;
        abandon_program_requests();
        pl_trial.report.received -= cancel_abandoned();
        PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, pl_trial.all);
        clean = all && (PL_OFF(drain) || drain(until));
    }
    if (!clean)
        PL_INFO("communicators of the failed trial are leaked: they cannot be completed");
    pl_trial.abandoned_count = 0;
    return clean;
}
