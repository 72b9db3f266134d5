/* SPDX-License-Identifier: MIT */
#include "interpose/agree.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "interpose/quiescence.h"
#include "interpose/transaction.h"
#include "interpose/world.h"

enum { MAX_PERIOD = 256, TEXT = 256 };
static const double round_seconds = 0.020;

static pl_round_t payload;
static MPI_Request request = MPI_REQUEST_NULL;
static int period = 1; /* of the round under way */
static double posted_at;

/* Rank 0: how many collectives make about round_seconds. A period at most doubles, and is bounded:
 * if the program becomes slower, an old long period must pass first. */
static int next_period(void)
{
    double now = pl_now(), each = (now - posted_at) / period;
    double fit = posted_at > 0 && each > 0 ? round_seconds / each : 1;
    int next = fit > MAX_PERIOD ? MAX_PERIOD : fit < 1 ? 1 : (int)fit;

    posted_at = now;
    return next > 2 * period ? 2 * period : next;
}

int64_t pl_agree_post(const pl_round_t *round)
{
    if (pl_pool_rank == 0) {
        payload = *round;
        payload.period = next_period();
        int room = round->distance - period - 2;
        if (round->distance && room < payload.period)
            payload.period = room > 1 ? room : 1;
    }
    PMPI_Ibcast(&payload, (int)sizeof payload, MPI_BYTE, 0, pl_control, &request);
    return period;
}

void pl_agree_reset(void)
{
    request = MPI_REQUEST_NULL;
    period = 1;
    posted_at = 0;
}

pl_round_t pl_agree_complete(void)
{
    pl_round_t heard = {.kind = PL_ROUND_NOTHING};

    if (request == MPI_REQUEST_NULL)
        return heard;
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    period = payload.period;
    return payload;
}

bool pl_agree_text(const char *mine, char *out, size_t size)
{
    int rank, first;
    char text[TEXT] = "";

    PMPI_Comm_rank(pl_control, &rank);
    int candidate = mine ? rank : INT_MAX;
    PMPI_Allreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, pl_control);
    if (first == INT_MAX)
        return false;
    if (rank == first)
        snprintf(text, sizeof text, "%s", mine);
    PMPI_Bcast(text, TEXT, MPI_BYTE, first, pl_control);
    snprintf(out, size, "%s", text);
    return true;
}

enum {
    MOST_SITE,
    MOST_NOT_SITE,
    MOST_EXPIRED,
    MOST_UNRESIZABLE,
    MOST_ELSEWHERE,
    MOST_REQUESTS,
    MOST_LOCKS,
    MOST_RMA,
    MOST_COUNT
};

static bool obstacle(const int64_t *most, const pl_quiet_t *quiet, char *reason, size_t size)
{
    long flight = quiet->sent - quiet->received, total;

    if (most[MOST_REQUESTS])
        snprintf(reason, size, "a process has %ld requests in flight", (long)most[MOST_REQUESTS]);
    else if (most[MOST_LOCKS] || most[MOST_RMA])
        snprintf(reason, size, "a process has an open one-sided epoch");
    PMPI_Allreduce(&flight, &total, 1, MPI_LONG, MPI_SUM, pl_control);
    if (total && !most[MOST_REQUESTS])
        snprintf(reason, size, "%ld messages have been sent and not received", total);
    return total || most[MOST_REQUESTS] || most[MOST_LOCKS] || most[MOST_RMA];
}

pl_readiness_t pl_agree_ready(const pl_ready_t *mine, char *reason, size_t size)
{
    int64_t most[MOST_COUNT], site = (int64_t)(mine->site >> 1);
    pl_quiet_t quiet;

    pl_quiescence_get(&quiet);
    most[MOST_SITE] = site;
    most[MOST_NOT_SITE] = -site;
    most[MOST_EXPIRED] = mine->expired;
    most[MOST_UNRESIZABLE] = mine->unresizable != NULL;
    most[MOST_ELSEWHERE] = !mine->here || mine->held;
    most[MOST_REQUESTS] = quiet.requests;
    most[MOST_LOCKS] = quiet.locks;
    most[MOST_RMA] = quiet.rma;
    PMPI_Allreduce(MPI_IN_PLACE, most, MOST_COUNT, MPI_INT64_T, MPI_MAX, pl_control);
    if (most[MOST_UNRESIZABLE]) {
        pl_agree_text(mine->unresizable, reason, size);
        return PL_READY_NEVER;
    }
    if (most[MOST_EXPIRED])
        return PL_READY_EXPIRED;
    if (most[MOST_ELSEWHERE] || most[MOST_SITE] != -most[MOST_NOT_SITE])
        return PL_READY_ELSEWHERE;
    return obstacle(most, &quiet, reason, size) ? PL_READY_OBSTACLE : PL_READY_YES;
}
