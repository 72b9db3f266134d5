/* SPDX-License-Identifier: MIT */
#include "policy/decide.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NO_DEADLINE 1e30

__attribute__((format(printf, 3, 4))) static void
refuse(pl_decider_t *decider, const pl_request_t *request, const char *format, ...)
{
    char reason[PL_DECIDE_REASON_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    decider->refuse(decider->arg, request, reason);
}

static bool refuse_too_large(pl_decider_t *decider, const pl_request_t *request,
                             const pl_capacity_t *capacity)
{
    const char *why = capacity->cap_reason ? capacity->cap_reason : "";

    if (request->size <= capacity->pool)
        return false;
    refuse(decider, request, "%d processes asked for, this job can have at most %d%s%s",
           request->size, capacity->pool, *why ? ": " : "", why);
    return true;
}

static bool refuse_same_size(pl_decider_t *decider, const pl_request_t *request,
                             const pl_capacity_t *capacity)
{
    if (request->size != capacity->size)
        return false;
    refuse(decider, request, "already %d process%s", capacity->size,
           capacity->size == 1 ? "" : "es");
    return true;
}

void pl_decider_init(pl_decider_t *decider, double limit, pl_decide_refuse_f refuse_request,
                     void *arg)
{
    memset(decider, 0, sizeof *decider);
    decider->limit = limit;
    decider->refuse = refuse_request;
    decider->arg = arg;
}

static void cancel(pl_decider_t *decider, const pl_request_t *request)
{
    if (decider->waiting) {
        decider->waiting = false;
        refuse(decider, &decider->request, "cancelled before it was started");
    } else if (decider->started) {
        refuse(decider, request, "nothing to cancel: the resize to %d is already being carried out",
               decider->current.size);
    } else {
        refuse(decider, request, "nothing to cancel: no request is waiting");
    }
}

void pl_decider_submit(pl_decider_t *decider, const pl_request_t *request,
                       const pl_capacity_t *capacity, double now)
{
    if (request->kind == PL_REQUEST_CANCEL) {
        cancel(decider, request);
        return;
    }
    if (refuse_too_large(decider, request, capacity))
        return;
    if (decider->waiting) {
        decider->waiting = false;
        refuse(decider, &decider->request, "superseded by the newer request %s (resize %d)",
               request->id, request->size);
    }
    /* While a resize is carried out, the size this request will meet is not known yet. */
    if (!decider->started && refuse_same_size(decider, request, capacity))
        return;
    decider->waiting = true;
    decider->request = *request;
    decider->since = now;
    decider->obstacle[0] = 0;
}

static bool refuse_late(pl_decider_t *decider, double now)
{
    const char *why = decider->obstacle[0] ? decider->obstacle : "no resize point was reached";

    if (pl_decider_left(decider, now) >= 0)
        return false;
    refuse(decider, &decider->request, "no clean resize point within %g s: %s", decider->limit,
           why);
    return true;
}

pl_status_t pl_decider_next(pl_decider_t *decider, const pl_capacity_t *capacity, double now,
                            pl_request_t *out)
{
    if (!decider->waiting || decider->started)
        return PL_NONE;
    if (refuse_too_large(decider, &decider->request, capacity) ||
        refuse_same_size(decider, &decider->request, capacity) || refuse_late(decider, now)) {
        decider->waiting = false;
        return PL_NONE;
    }
    *out = decider->request;
    return PL_OK;
}

void pl_decider_obstacle(pl_decider_t *decider, const char *reason)
{
    snprintf(decider->obstacle, sizeof decider->obstacle, "%s", reason);
}

void pl_decider_start(pl_decider_t *decider)
{
    if (!decider->waiting || decider->started)
        return;
    decider->current = decider->request;
    decider->started = true;
    decider->waiting = false;
}

void pl_decider_finish(pl_decider_t *decider, double now)
{
    decider->started = false;
    decider->since = now; /* a request that had to queue has its whole limit from now on */
}

double pl_decider_left(const pl_decider_t *decider, double now)
{
    if (!decider->waiting || decider->started)
        return NO_DEADLINE;
    return decider->since + decider->limit - now;
}

void pl_decider_close(pl_decider_t *decider, const char *reason)
{
    if (!decider->waiting)
        return;
    decider->waiting = false;
    refuse(decider, &decider->request, "%s", reason);
}
