/* SPDX-License-Identifier: MIT */
#include "interpose/trial.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "interpose/chain.h"
#include "interpose/entry.h"
#include "interpose/trial_state.h"
#include "interpose/world.h"

bool pl_trial_active;
pl_trial_state_t pl_trial;

enum { IDENTITY_WORLD = 1, GRACE_MILLISECONDS = 200 };

static int trials;

void pl_trial_setup(void)
{
    pl_trap_install();
}

static void add_gated(MPI_Comm comm, uint64_t identity)
{
    if (pl_trial.gated_count == pl_trial.gated_room) {
        int room = pl_trial.gated_room ? 2 * pl_trial.gated_room : 64;
        pl_gated_t *grown = realloc(pl_trial.gated, (size_t)room * sizeof *grown);
        if (!grown) {
            pl_trial.dirty = true;
            return;
        }
        pl_trial.gated = grown;
        pl_trial.gated_room = room;
    }
    pl_gated_t *g = &pl_trial.gated[pl_trial.gated_count++];
    *g = (pl_gated_t){.comm = comm, .identity = identity};
    PMPI_Comm_size(comm, &g->members);
}

void pl_trial_begin(MPI_Comm all, MPI_Comm world, int ns, int nt, double limit_seconds)
{
    pl_trial_state_t *t = &pl_trial;
    pl_gated_t *gated = t->gated;
    MPI_Request *abandoned = t->abandoned;
    int gated_room = t->gated_room, abandoned_room = t->abandoned_room;

    free(t->reports);
    memset(t, 0, sizeof *t);
    t->gated = gated;
    t->gated_room = gated_room;
    t->abandoned = abandoned;
    t->abandoned_room = abandoned_room;
    t->all = all;
    t->world = world;
    t->ns = ns;
    t->nt = nt;
    t->number = ++trials;
    t->limit = limit_seconds;
    t->report_request = MPI_REQUEST_NULL;
    PMPI_Comm_rank(all, &t->rank);
    PMPI_Comm_size(all, &t->size);
    t->reports = calloc((size_t)t->size, sizeof *t->reports);
    if (world == MPI_COMM_NULL)
        return;
    add_gated(world, IDENTITY_WORLD);
    /* an error in set-up must come back to us instead of ending the job */
    PMPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    pl_trap_arm(limit_seconds);
    pl_trial_active = true;
}

void pl_trial_end(void)
{
    pl_trap_disarm();
    pl_trial_active = false;
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    pl_trial.gated_count = 0;
}

const char *pl_trial_reason(void)
{
    return pl_trial.reason;
}

bool pl_trial_uniform(void)
{
    return pl_trial.uniform;
}

/* Members make communicators with one group in the same order, so group and ordinal name one. */
void pl_trial_comm_made(MPI_Comm comm)
{
    MPI_Group group, pool_group;
    int size, inter = 0;
    uint64_t hash = 14695981039346656037u;

    if (!pl_trial_active || comm == MPI_COMM_NULL)
        return;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_size(group, &size);
    PMPI_Comm_group(pl_pool, &pool_group);
    for (int i = 0; i < size; i++) {
        int rank;
        PMPI_Group_translate_ranks(group, 1, &i, pool_group, &rank);
        hash = (hash ^ (uint64_t)(rank + 2)) * 1099511628211u;
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&pool_group);
    hash = (hash ^ (uint64_t)inter) | 0xffff;
    uint64_t ordinal = 0;
    for (int i = 0; i < pl_trial.gated_count; i++)
        if ((pl_trial.gated[i].identity | 0xffff) == hash)
            ordinal++;
    add_gated(comm, hash - (ordinal & 0xffff));
}

pl_gated_t *pl_trial_gated(MPI_Comm comm)
{
    for (int i = pl_trial.gated_count - 1; i >= 0; i--)
        if (pl_trial.gated[i].comm == comm)
            return &pl_trial.gated[i];
    return NULL;
}

void pl_trial_abandon(MPI_Request request)
{
    if (pl_trial.abandoned_count == pl_trial.abandoned_room) {
        int room = pl_trial.abandoned_room ? 2 * pl_trial.abandoned_room : 64;
        MPI_Request *grown = realloc(pl_trial.abandoned, (size_t)room * sizeof *grown);
        if (!grown) {
            pl_trial.dirty = true;
            return;
        }
        pl_trial.abandoned = grown;
        pl_trial.abandoned_room = room;
    }
    pl_trial.abandoned[pl_trial.abandoned_count++] = request;
}

static _Noreturn void fail(bool missed, const char *format, va_list args)
{
    if (!pl_trial.reason[0] && !pl_trial.notice_seen) {
        vsnprintf(pl_trial.reason, sizeof pl_trial.reason, format, args);
        pl_trial.missed = missed;
    }
    pl_trial.give_up = true;
    pl_entry_jump(PL_JUMP_SETTLE);
}

void pl_trial_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(false, format, args);
}

void pl_trial_miss(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(true, format, args);
}

bool pl_trial_given_up(void)
{
    if (pl_trial.expired && !pl_trial.notice_seen && !pl_trial.give_up) {
        snprintf(pl_trial.reason, sizeof pl_trial.reason,
                 "set-up took longer than %g s (PLIANT_SETUP_LIMIT)", pl_trial.limit);
        pl_trial.give_up = true;
    }
    if (!pl_trial.notice_seen) {
        int there = 0, number;
        MPI_Status status;
        PMPI_Iprobe(MPI_ANY_SOURCE, PL_TAG_NOTICE, pl_trial.all, &there, &status);
        if (there) {
            PMPI_Recv(&number, 1, MPI_INT, status.MPI_SOURCE, PL_TAG_NOTICE, pl_trial.all,
                      MPI_STATUS_IGNORE);
            pl_trial.notice_seen = true;
            pl_trial.notices_received++;
        }
    }
    return pl_trial.notice_seen || pl_trial.give_up;
}

void pl_trial_poll(void)
{
    if (pl_trial_given_up())
        pl_trial_fail("another process gave up");
    sched_yield();
}

int pl_trial_result(int rc)
{
    if (rc == MPI_SUCCESS)
        return rc;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    PMPI_Error_string(rc, text, &length);
    for (int i = 0; i < length; i++)
        if (text[i] == '\n')
            text[i] = ' ';
    pl_trial_fail("an MPI call failed in set-up: %s", length > 300 ? text + length - 300 : text);
}

void pl_trial_refuse(const char *call)
{
    pl_trial_fail("set-up calls %s, which cannot be undone", call);
}

/* A fault inside MPI would wedge it: look first. The kernel tells without a signal. */
void pl_trial_buffer(const void *buffer, MPI_Count bytes)
{
    char byte;
    struct iovec to = {&byte, 1};

    for (MPI_Count at = 0; at < bytes;) {
        struct iovec from = {(char *)buffer + at, 1};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
            pl_trial_fail("set-up passes memory that cannot be read to MPI (%p, %lld bytes)",
                          (void *)buffer, (long long)bytes);
        if (at == bytes - 1)
            break;
        at = at + 4096 < bytes ? at + 4096 : bytes - 1;
    }
}

static int64_t site_hash(void)
{
    const pl_chain_t *chain = pl_frame ? pl_chain_find((void *)pl_frame->ret, pl_frame + 1) : NULL;
    return chain ? (int64_t)(chain->hash >> 1) : 0;
}

/* Told to give up while in a gate: it can be left only if it will never open. */
static void leave_gate(MPI_Request request, const pl_gated_t *gate)
{
    int entered = 0;

    if (pl_trial.give_up)
        pl_trial_notify();
    pl_trial_report(true);
    if (!pl_trial_all_reported())
        return;
    for (int r = 0; r < pl_trial.size; r++)
        for (int i = 0; i < pl_trial.reports[r].comms; i++)
            entered += pl_trial.reports[r].comm[i].identity == gate->identity &&
                       pl_trial.reports[r].comm[i].gates >= gate->gates;
    if (entered >= gate->members)
        return;
    pl_trial_abandon(request);
    pl_trial_fail("another process gave up");
}

void pl_trial_gate(MPI_Comm real, uint64_t signature)
{
    pl_gated_t *gate = pl_trial_gated(real);
    if (real == MPI_COMM_SELF || real == MPI_COMM_NULL)
        return;
    if (!gate) /* not made by the program in this trial */
        pl_trial_fail("set-up uses a communicator of an earlier run");

    /* buffers must outlive an abandoned gate */
    int64_t *buffers = malloc(8 * sizeof *buffers), *met = buffers + 4;
    if (!buffers)
        pl_trial_fail("out of memory");
    int64_t place = site_hash(), what = (int64_t)(signature >> 1);
    buffers[0] = what;
    buffers[1] = -what;
    buffers[2] = place;
    buffers[3] = -place;
    gate->gates++;

    MPI_Request request;
    int open = 0;
    size_t index = (size_t)(gate - pl_trial.gated);
    PMPI_Iallreduce(buffers, met, 4, MPI_INT64_T, MPI_MAX, real, &request);
    for (;;) {
        PMPI_Test(&request, &open, MPI_STATUS_IGNORE);
        if (open)
            break;
        if (pl_trial_given_up())
            leave_gate(request, &pl_trial.gated[index]);
        sched_yield();
    }
    bool same = met[0] == -met[1];
    pl_trial.uniform = met[2] == -met[3];
    free(buffers);
    if (!same)
        pl_trial_fail("different collective calls meet in set-up");
}

static long milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int pl_trial_complete(int rc, MPI_Request *request, MPI_Status *status)
{
    MPI_Request kept = *request;
    long since = 0;
    int done = 0;

    if (rc != MPI_SUCCESS)
        return pl_trial_result(rc);
    for (;;) {
        rc = PMPI_Test(request, &done, status);
        if (done || rc != MPI_SUCCESS)
            return pl_trial_result(rc);
        if (pl_trial_given_up()) {
            /* what is already under way on all sides completes within moments */
            since = since ? since : milliseconds();
            if (milliseconds() - since > GRACE_MILLISECONDS) {
                pl_trial_abandon(kept);
                pl_trial_fail("another process gave up");
            }
        }
        sched_yield();
    }
}
