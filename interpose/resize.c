/* SPDX-License-Identifier: MIT */
#include "interpose/resize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/methods.h"
#include "interpose/agree.h"
#include "interpose/entry.h"
#include "interpose/evidence.h"
#include "interpose/survey.h"
#include "interpose/transaction.h"
#include "interpose/trial.h"
#include "interpose/world.h"
#include "policy/decide.h"
#include "policy/plan.h"

enum {
    MAX_REQUESTS = 16,
    PATIENCE = 8,      /* collectives more than the survey took, to come to the point again */
    SURVEY_AHEAD = 10, /* arrivals before the first step of a plan */
};
static const double control_interval = 0.010; /* seconds between looks at the control file */

typedef enum state {
    STATE_IDLE,   /* a decision of rank 0 is under way */
    STATE_SURVEY, /* one iteration is looked at */
    STATE_ACT,    /* the resize point is known; it is being waited for */
} state_t;

static state_t state;
static pl_task_t task;
static int64_t act_since, surveyed_since; /* ticks */
static int64_t survey_ticks;              /* how long the last survey took */
static int disappointments;     /* surveys whose point did not come again, for this task */
static const char *unresizable; /* reason, NULL: resizable */
static pl_plan_step_t plan[PL_PLAN_STEPS_MAX];
static int plan_count, plan_next;
static bool surveyed; /* a resize point has been chosen in this job */

/* Rank 0 only. */
static pl_control_t control;
static bool has_control;
static pl_decider_t decider;
static pl_request_t request; /* being carried out */
static bool plan_request;    /* it comes from the plan, and is held until an arrival: */
static int64_t hold_until;
static double requested_at, looked_at, task_deadline;
static char obstacle[PL_REASON_MAX];
static pl_status_info_t status_info;
static char last_id[64], last_reason[PL_REASON_MAX];

void pl_not_resizable(const char *reason)
{
    if (unresizable)
        return;
    unresizable = reason;
    PL_DEBUG("this program will not be resized: %s", reason);
}

/* ---- rank 0: requests and outcomes ---- */

static const char *cap_reason(void)
{
    return "the job was started with this many processes; start it with a larger pool (--max)";
}

static void write_status(const char *what)
{
    if (!has_control)
        return;
    status_info.state = what;
    status_info.size = pl_size;
    status_info.pool = pl_pool_size;
    status_info.pid = (int)getpid();
    status_info.cap_reason = cap_reason();
    pl_status_write(control.path, &status_info);
}

static void tell_outcome(const pl_resize_event_t *event)
{
    snprintf(last_id, sizeof last_id, "%s", event->id);
    snprintf(last_reason, sizeof last_reason, "%s", event->reason);
    status_info.last_id = last_id;
    status_info.last_outcome = event->outcome;
    status_info.last_reason = last_reason;
    if (!strcmp(event->outcome, "committed"))
        status_info.resizes_committed++;
    else if (!strcmp(event->outcome, "rolled_back"))
        status_info.resizes_rolled_back++;
    else
        status_info.resizes_refused++;
    if (has_control)
        pl_event_append_resize(control.path, event);
    if (!strcmp(event->outcome, "committed"))
        PL_INFO("%d -> %d processes in %.3f s, %lld bytes moved", event->from, event->to,
                event->seconds.total, (long long)event->bytes_moved);
    else
        PL_WARN("resize to %d %s: %s", event->to, event->outcome, event->reason);
}

static void refuse_request(void *arg, const pl_request_t *r, const char *reason)
{
    pl_resize_event_t event = {.from = pl_size, .to = r->size, .outcome = "refused"};
    (void)arg;
    snprintf(event.id, sizeof event.id, "%s", r->id);
    snprintf(event.reason, sizeof event.reason, "%s", reason);
    event.line = r->line;
    event.method = pl_method_text((pl_method_t)(r->method < 0 ? pl_options.method : r->method));
    tell_outcome(&event);
    write_status("running");
}

static void report_control(void *arg, const pl_control_report_t *report)
{
    (void)arg;
    if (report->line)
        PL_LOG(report->level, "%s: line %d: %s", control.path, report->line, report->text);
    else
        PL_LOG(report->level, "%s: %s", control.path, report->text);
    if (report->level <= PL_LOG_WARN)
        pl_event_append_bad_line(control.path, report->line, report->id, report->text);
}

static pl_capacity_t capacity(void)
{
    return (pl_capacity_t){pl_size, pl_pool_size, cap_reason()};
}

static void look_at_control(double now)
{
    pl_request_t found[MAX_REQUESTS];
    pl_capacity_t can = capacity();
    int count = 0;

    if (!has_control || now - looked_at < control_interval)
        return;
    looked_at = now;
    while (pl_control_poll(&control, found, MAX_REQUESTS, &count, report_control, NULL) == PL_OK) {
        for (int i = 0; i < count; i++)
            pl_decider_submit(&decider, &found[i], &can, now);
        if (count < MAX_REQUESTS)
            break;
    }
}

static pl_request_t plan_request_of(int step)
{
    pl_request_t r = {.kind = PL_REQUEST_RESIZE, .size = plan[step].size};
    r.method = (int)pl_options.method;
    snprintf(r.id, sizeof r.id, "plan-%d", step + 1);
    return r;
}

static void begin_request(const pl_request_t *r, bool from_plan)
{
    request = *r;
    plan_request = from_plan;
    requested_at = pl_now();
    task_deadline = requested_at + pl_options.limit;
    obstacle[0] = 0;
}

/* ---- rank 0: what it tells the others ---- */

/* Most visits of any site so far. */
static const pl_site_t *busiest(void)
{
    const pl_site_t *most = NULL;
    for (int i = 0; i < pl_sites_count(); i++)
        if (!most || pl_site_at(i)->arrivals > most->arrivals)
            most = pl_site_at(i);
    return most;
}

/* Drops the steps of the plan that cannot be done; the next one, or NULL. */
static const pl_plan_step_t *next_step(void)
{
    for (; plan_next < plan_count; plan_next++) {
        const pl_plan_step_t *step = &plan[plan_next];
        const pl_site_t *most = busiest();
        char reason[160];
        if (!most || most->arrivals + 1 < step->arrival)
            return step;
        if (step->size == pl_size)
            snprintf(reason, sizeof reason, "it has %d processes already", pl_size);
        else if (step->size > pl_pool_size)
            snprintf(reason, sizeof reason, "the pool has %d processes: %s", pl_pool_size,
                     cap_reason());
        else
            return step;
        pl_request_t r = plan_request_of(plan_next);
        refuse_request(NULL, &r, reason);
    }
    return NULL;
}

/* The plan: a survey shortly before the first step, then each step one collective ahead, to be held
 * until the arrival it names. True: round says so. */
static bool decide_by_plan(pl_round_t *round)
{
    const pl_plan_step_t *step = next_step();
    const pl_site_t *most = busiest();

    if (!step || !most)
        return false;
    int64_t distance = step->arrival - most->arrivals;
    int64_t ahead = surveyed ? 0 : SURVEY_AHEAD;
    round->distance = (int32_t)(distance - ahead < INT16_MAX ? distance - ahead : INT16_MAX);
    if (!surveyed && distance <= SURVEY_AHEAD && most->baseline) {
        round->kind = PL_ROUND_SURVEY;
        return true;
    }
    if (!surveyed || distance > 1)
        return false;
    pl_request_t r = plan_request_of(plan_next);
    begin_request(&r, true);
    hold_until = step->arrival;
    plan_next++;
    round->kind = PL_ROUND_RESIZE;
    round->size = r.size;
    round->method = r.method;
    return true;
}

/* Fills what the next round says. */
static void decide(pl_round_t *round)
{
    double now = pl_now();
    pl_request_t next;
    pl_capacity_t can = capacity();

    if (decide_by_plan(round))
        return;
    look_at_control(now);
    if (pl_decider_next(&decider, &can, now, &next) != PL_OK)
        return;
    pl_decider_start(&decider);
    begin_request(&next, false);
    round->kind = PL_ROUND_RESIZE;
    round->size = next.size;
    round->method = next.method < 0 ? (int)pl_options.method : next.method;
}

/* A planned resize waits until some site has been visited so often. */
static bool held(void)
{
    const pl_site_t *most = busiest();
    return pl_pool_rank == 0 && plan_request && most && most->arrivals < hold_until;
}

/* ---- all processes ---- */

static void go_idle(void)
{
    pl_round_t round = {.kind = PL_ROUND_NOTHING};
    state = STATE_IDLE;
    if (pl_pool_rank == 0)
        decide(&round);
    pl_wake_tick = pl_ticks + pl_agree_post(&round);
}

static void wake_every_tick(state_t next)
{
    state = next;
    pl_wake_tick = 0;
    act_since = pl_ticks;
}

static void begin_survey(void)
{
    pl_survey_begin();
    surveyed_since = pl_ticks;
    wake_every_tick(STATE_SURVEY);
}

/* The task ends without a trial. */
static void give_up(const char *reason)
{
    if (pl_pool_rank == 0 && task.size) {
        refuse_request(NULL, &request, reason);
        if (!plan_request)
            pl_decider_finish(&decider, pl_now());
    }
    task.size = 0;
    go_idle();
}

static void start_task(int size, int method)
{
    task.size = size;
    task.method = method;
    disappointments = 0;
    if (pl_pool_rank == 0)
        write_status("resizing");
    if (surveyed) {
        wake_every_tick(STATE_ACT);
    } else {
        begin_survey();
    }
}

static void hear_round(void)
{
    pl_round_t round = pl_agree_complete();

    switch (round.kind) {
    case PL_ROUND_RESIZE:
        start_task(round.size, round.method);
        return;
    case PL_ROUND_SURVEY:
        task.size = 0;
        begin_survey();
        return;
    default:
        go_idle();
    }
}

static void survey(pl_site_t *site, struct pl_frame *frame)
{
    pl_survey_step_t step = {.expired = pl_pool_rank == 0 && task.size && pl_now() > task_deadline,
                             .unresizable = unresizable};
    char reason[PL_REASON_MAX];

    switch (pl_survey_visit(site, frame, &step, &task.site, reason, sizeof reason)) {
    case PL_SURVEY_GOES_ON:
        return;
    case PL_SURVEY_CHOSEN:
        surveyed = true;
        survey_ticks = pl_ticks - surveyed_since;
        if (task.size)
            wake_every_tick(STATE_ACT);
        else
            go_idle();
        return;
    case PL_SURVEY_FAILED:
        if (!task.size)
            plan_next = plan_count;
        give_up(reason);
    }
}

static bool expired(void)
{
    return pl_pool_rank == 0 && pl_now() > task_deadline;
}

static int act(pl_site_t *site, struct pl_frame *frame, int rc)
{
    pl_ready_t ready = {.here = site->hash == task.site && site->baseline != NULL &&
                                pl_chain_verify(site->chain),
                        .site = site->hash,
                        .expired = expired(),
                        .held = held(),
                        .unresizable = unresizable};
    char reason[PL_REASON_MAX];

    switch (pl_agree_ready(&ready, reason, sizeof reason)) {
    case PL_READY_YES:
        return pl_transaction_begin(&task, site, frame, rc, pl_now() - requested_at);
    case PL_READY_NEVER:
        give_up(reason);
        return rc;
    case PL_READY_EXPIRED: {
        char text[PL_REASON_MAX];
        snprintf(text, sizeof text, "no clean resize point within %g s: %.300s", pl_options.limit,
                 obstacle[0] ? obstacle : "the program did not come back to the chosen call");
        give_up(text);
        return rc;
    }
    case PL_READY_OBSTACLE:
        snprintf(obstacle, sizeof obstacle, "%s", reason);
        break;
    case PL_READY_ELSEWHERE:
        break;
    }
    if (pl_ticks - act_since > (PATIENCE + 4 * survey_ticks) << disappointments) {
        disappointments += disappointments < 20;
        begin_survey();
    }
    return rc;
}

int pl_resize_tick(pl_site_t *site, struct pl_frame *frame, int rc)
{
    if (state == STATE_IDLE && pl_ticks >= pl_wake_tick) {
        hear_round();
        if (state != STATE_ACT)
            return rc; /* a survey begins with the next collective */
    }
    if (state == STATE_SURVEY)
        survey(site, frame);
    else if (state == STATE_ACT)
        return act(site, frame, rc);
    return rc;
}

void pl_resize_done(const pl_resize_event_t *event, bool condemn_site)
{
    pl_site_t *site = pl_site_find(task.site);

    if (condemn_site && site) {
        site->failures++;
        if (task.size && pl_survey_choose(&task.site)) { /* the next best place may do */
            if (pl_pool_rank == 0)
                PL_INFO("trying another resize point: %s", event->reason);
            wake_every_tick(STATE_ACT);
            return;
        }
    }
    if (pl_pool_rank == 0) {
        pl_resize_event_t full = *event;
        snprintf(full.id, sizeof full.id, "%s", request.id);
        full.line = request.line;
        tell_outcome(&full);
        if (!plan_request)
            pl_decider_finish(&decider, pl_now());
        write_status("running");
    }
    task.size = 0;
    go_idle();
}

pl_resize_note_t pl_resize_tell(void)
{
    return (pl_resize_note_t){task.site, survey_ticks, plan_next};
}

void pl_resize_learn(const pl_resize_note_t *note)
{
    task.site = note->point;
    survey_ticks = note->survey_ticks;
    plan_next = note->plan_next;
    surveyed = true;
}

/* ---- begin and end ---- */

void pl_resize_start(void)
{
    char error[PL_OPTION_ERROR_MAX];

    pl_trial_setup();
    if (pl_plan_parse(pl_options.plan, plan, PL_PLAN_STEPS_MAX, &plan_count, error, sizeof error)) {
        plan_count = 0;
        if (pl_pool_rank == 0)
            PL_WARN("PLIANT_PLAN: %s", error);
    }
}

void pl_resize_world_ready(void)
{
    if (pl_pool_rank == 0) {
        struct timespec start = pl_entry_start_time();
        pl_decider_init(&decider, pl_options.limit, refuse_request, NULL);
        has_control =
            pl_options.control[0] && pl_control_open(pl_options.control, &start, &control) == PL_OK;
        write_status("running");
    }
    pl_evidence_on = true;
    pl_sites_on = true;
    go_idle();
}

void pl_resize_finish(void)
{
    const pl_site_t *most = busiest();
    const char *reason = most && most->arrivals >= pl_options.baseline
                             ? "the program ended before the resize"
                             : "the program has no recurring collective over all its processes, "
                               "where it could be resized";

    pl_sites_on = false;
    if (state == STATE_IDLE) {
        pl_round_t round = pl_agree_complete();
        if (round.kind == PL_ROUND_RESIZE)
            task.size = round.size;
    }
    if (pl_pool_rank != 0)
        return;
    if (task.size) {
        char text[PL_REASON_MAX];
        snprintf(text, sizeof text, "%s%s%.280s", reason, obstacle[0] ? "; until then: " : "",
                 obstacle);
        refuse_request(NULL, &request, text);
        if (!plan_request)
            pl_decider_finish(&decider, pl_now());
    }
    looked_at = -1e9;
    look_at_control(pl_now());
    pl_decider_close(&decider, reason);
    for (; plan_next < plan_count; plan_next++) {
        pl_request_t r = plan_request_of(plan_next);
        refuse_request(NULL, &r, reason);
    }
    write_status("finished");
}
