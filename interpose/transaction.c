/* SPDX-License-Identifier: MIT */
#include "interpose/transaction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/methods.h"
#include "interpose/agree.h"
#include "interpose/calls/attributes.h"
#include "interpose/calls/errhandlers.h"
#include "interpose/clock.h"
#include "interpose/entry.h"
#include "interpose/evidence.h"
#include "interpose/exchange.h"
#include "interpose/files.h"
#include "interpose/handles.h"
#include "interpose/heap.h"
#include "interpose/process.h"
#include "interpose/quiescence.h"
#include "interpose/trial.h"

enum { TAG_ALL = 1000, TAG_WORLD = 2000, TAG_SPAN = 1000 };

/* What all processes of a resize know; sent by rank 0. */
typedef struct deal {
    int32_t ns, nt, transaction, method;
    uint64_t site;
    int64_t arrival, ticks;
    pl_resize_note_t note;
    int32_t site_count;
    pl_site_note_t sites[PL_MAX_SITES];
} deal_t;

typedef enum role { ROLE_LEAVING, ROLE_SURVIVOR, ROLE_NEW } role_t;

/* The resize under way. */
static struct {
    deal_t deal;
    role_t role;
    MPI_Comm all;   /* sources and targets */
    MPI_Comm world; /* of the targets */
    MPI_Comm old_world, old_control;
    int old_size;
    int old_generation, generation; /* heap and handles */
    pl_snapshot_t *now, *first;     /* of a source now; of a target at its first arrival */
    const pl_snapshot_t *base;
    struct pl_frame *frame;
    int rc;
    pl_process_state_t process;
    pl_random_state_t random;
    pl_quiet_t quiet;
    pl_resize_event_t event; /* rank 0 */
    double began, trial_began, agree_seconds;
    bool refused;
    char reason[PL_REASON_MAX];
} tx;

static int transactions; /* rank 0 of the first world: number of the last one */
static pl_image_t first_image;
static pl_process_state_t first_process;
static struct {
    pl_block_t *blocks;
    uint8_t **copies;
    int64_t count;
} first_heap; /* generation 0: what was made before main */

_Noreturn void pl_resume(void *frame, const void *copy, size_t bytes, int rc);

double pl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the state at the first entry ---- */

void pl_transaction_first_entry(void)
{
    if (pl_heap_start() || pl_image_save(&first_image) || pl_process_capture(&first_process)) {
        pl_not_resizable("no memory for the state at the first entry");
        return;
    }
    first_heap.count = pl_heap_list(0, NULL, 0);
    size_t n = (size_t)(first_heap.count > 0 ? first_heap.count : 0);
    first_heap.blocks = calloc(n + 1, sizeof *first_heap.blocks);
    first_heap.copies = calloc(n + 1, sizeof *first_heap.copies);
    if (!first_heap.blocks || !first_heap.copies) {
        pl_not_resizable("no memory for the state at the first entry");
        return;
    }
    pl_heap_list(0, first_heap.blocks, first_heap.count);
    for (size_t i = 0; i < n; i++) {
        first_heap.copies[i] = malloc((size_t)first_heap.blocks[i].size + 1);
        if (first_heap.copies[i])
            memcpy(first_heap.copies[i], first_heap.blocks[i].address,
                   (size_t)first_heap.blocks[i].size);
    }
    if (!pl_heap_is_hooked())
        pl_not_resizable("the program brings its own memory allocator");
    pl_heap_open();
}

static void restore_first_entry(void)
{
    pl_image_restore(&first_image);
    for (int64_t i = 0; i < first_heap.count; i++)
        if (first_heap.copies[i])
            memcpy(first_heap.blocks[i].address, first_heap.copies[i],
                   (size_t)first_heap.blocks[i].size);
    pl_process_restore(&first_process);
}

/* ---- the beginning ---- */

static void make_communicators(void)
{
    int most = tx.deal.ns > tx.deal.nt ? tx.deal.ns : tx.deal.nt;
    int turn = tx.deal.transaction % TAG_SPAN;

    tx.all = pl_world_make(most, TAG_ALL + turn);
    tx.world =
        pl_pool_rank < tx.deal.nt ? pl_world_make(tx.deal.nt, TAG_WORLD + turn) : MPI_COMM_NULL;
    PMPI_Bcast(&tx.deal, (int)sizeof tx.deal, MPI_BYTE, 0, tx.all);
}

static void make_deal(const pl_task_t *task, const pl_site_t *site)
{
    tx.deal = (deal_t){.ns = pl_size,
                       .nt = task->size,
                       .transaction = ++transactions,
                       .method = task->method,
                       .site = site->hash,
                       .arrival = site->arrivals,
                       .ticks = pl_ticks,
                       .note = pl_resize_tell()};
    tx.deal.site_count = pl_sites_notes(tx.deal.sites, PL_MAX_SITES);
}

static void begin_event(const pl_site_t *site)
{
    tx.event = (pl_resize_event_t){.from = tx.deal.ns,
                                   .to = tx.deal.nt,
                                   .method = pl_method_text((pl_method_t)tx.deal.method),
                                   .arrival = (long)site->arrivals};
    pl_site_describe(site, tx.event.site, sizeof tx.event.site);
    tx.event.seconds.agree = tx.agree_seconds;
}

static void wake_new_ones(void)
{
    pl_order_t order = {PL_COMMAND_TRIAL, tx.deal.ns, tx.deal.nt, tx.deal.transaction};
    for (int r = tx.deal.ns; r < tx.deal.nt && pl_pool_rank == 0; r++)
        pl_world_wake(r, &order);
}

static void lay_old_aside(void)
{
    tx.old_world = pl_world;
    tx.old_control = pl_control;
    tx.old_size = pl_size;
    tx.old_generation = pl_heap_current();
    pl_sites_on = false;
    pl_wake_tick = PL_NEVER;
}

static void end_communicators(bool clean)
{
    if (clean && tx.world != MPI_COMM_NULL)
        PMPI_Comm_free(&tx.world);
    PMPI_Comm_free(&tx.all);
    tx.world = MPI_COMM_NULL;
}

/* The trial failed; this source did not take part in it. */
static int stay_as_it_was(void)
{
    bool clean = pl_trial_settle();
    pl_trial_end();
    end_communicators(clean);
    pl_snapshot_free(tx.now);
    tx.now = NULL;
    pl_sites_on = true;
    return tx.rc;
}

static _Noreturn void leave_world(void);
static void finish_event(const char *outcome);

/* A source that will leave: waits for the targets, gives its data, and parks. */
static int be_source_only(void)
{
    char nobody[PL_REASON_MAX];

    pl_trial_begin(tx.all, MPI_COMM_NULL, tx.deal.ns, tx.deal.nt, 0);
    bool ok = pl_trial_vote();
    if (ok) {
        pl_exchange_t x = {.comm = tx.all,
                           .ns = tx.deal.ns,
                           .nt = tx.deal.nt,
                           .now = tx.now,
                           .base = tx.base,
                           .method = pl_method_text((pl_method_t)tx.deal.method)};
        ok = pl_exchange_run(&x, nobody, sizeof nobody) == PL_OK;
        pl_exchange_free(&x);
        tx.refused = !ok;
    }
    if (ok)
        leave_world();
    int rc = stay_as_it_was();
    pl_resize_event_t none = {.outcome = "rolled_back"};
    pl_resize_done(&none, tx.refused || pl_trial_elsewhere());
    return rc;
}

int pl_transaction_begin(const pl_task_t *task, pl_site_t *site, struct pl_frame *frame, int rc,
                         double agree_seconds)
{
    tx.began = pl_now();
    tx.agree_seconds = agree_seconds;
    tx.frame = frame;
    tx.rc = rc;
    tx.base = site->baseline;
    tx.refused = false;
    tx.reason[0] = 0;
    make_deal(task, site); /* rank 0's counts: its broadcast makes them everybody's */
    tx.role = pl_pool_rank < tx.deal.nt ? ROLE_SURVIVOR : ROLE_LEAVING;
    lay_old_aside();
    wake_new_ones();
    make_communicators();
    begin_event(site);
    tx.event.seconds.acquire = pl_now() - tx.began;

    double t = pl_now();
    int ok = pl_snapshot_take(site->chain, frame, PL_SNAPSHOT_NOW, &tx.now) == PL_OK;
    if (ok && tx.role == ROLE_SURVIVOR)
        ok = pl_process_capture(&tx.process) == PL_OK;
    pl_random_get(&tx.random);
    tx.event.seconds.capture = pl_now() - t;
    if (!ok)
        PL_ERROR("no memory for the state to return to; the job is likely to fail");
    if (tx.role == ROLE_LEAVING)
        return be_source_only();
    pl_quiescence_save(&tx.quiet);
    pl_entry_jump(PL_JUMP_ENTER);
}

void pl_transaction_join(const pl_order_t *order)
{
    memset(&tx, 0, sizeof tx);
    tx.deal.ns = order->ns;
    tx.deal.nt = order->nt;
    tx.deal.transaction = order->transaction;
    tx.role = ROLE_NEW;
    make_communicators();
    tx.old_generation = pl_heap_current();
    tx.old_world = tx.old_control = MPI_COMM_NULL;
    pl_quiescence_save(&tx.quiet);
}

void pl_transaction_enter(void)
{
    tx.trial_began = pl_now();
    if (pl_files_trial_begin())
        PL_WARN("files cannot be kept apart in the trial");
    pl_sites_reset(true);
    pl_sites_take_notes(tx.deal.sites, tx.deal.site_count);
    pl_sites_reset_counts();
    transactions = tx.deal.transaction;
    restore_first_entry();
    tx.generation = pl_heap_open();
    if (tx.role == ROLE_SURVIVOR)
        pl_heap_protect(tx.old_generation, true);
    pl_handles_begin(tx.generation);
    pl_clock_trial_begin();
    pl_world = tx.world;
    pl_size = tx.deal.nt;
    pl_world_initialised = false;
    pl_wake_tick = PL_NEVER;
    pl_evidence_on = true;
    pl_errhandlers_begin();
    pl_trial_begin(tx.all, tx.world, tx.deal.ns, tx.deal.nt, pl_options.setup_limit);
    pl_sites_on = true;
}

/* ---- commit ---- */

static void share_random_state(void)
{
    pl_random_state_t lead = tx.random;
    int same, all_same;
    bool source = tx.role != ROLE_NEW;

    PMPI_Bcast(&lead, (int)sizeof lead, MPI_BYTE, 0, tx.all);
    same = !source || pl_random_equal(&lead, &tx.random);
    PMPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_MIN, tx.all);
    if (tx.role == ROLE_LEAVING)
        return;
    if (all_same)
        pl_random_put(&lead);
    else if (source)
        pl_random_put(&tx.random);
}

static void free_old_world(void)
{
    pl_attributes_silence(tx.old_generation);
    int leaked = pl_handles_free(tx.old_generation, true);
    if (leaked)
        PL_DEBUG("%d MPI objects of the old world could not be freed", leaked);
    PMPI_Comm_free(&tx.old_control);
    if (tx.old_world != MPI_COMM_WORLD)
        PMPI_Comm_free(&tx.old_world);
}

static void release_source_state(void)
{
    pl_snapshot_free(tx.now);
    tx.now = NULL;
    pl_snapshot_free(tx.first);
    tx.first = NULL;
    if (tx.role == ROLE_SURVIVOR)
        pl_process_release(&tx.process);
}

static _Noreturn void leave_world(void)
{
    share_random_state();
    pl_trial_end();
    pl_files_retire();
    free_old_world();
    PMPI_Comm_free(&tx.all);
    release_source_state();
    pl_sites_reset(false);
    pl_evidence_clear();
    restore_first_entry(); /* environment and generators may lie in the heap that goes */
    pl_world = MPI_COMM_NULL;
    pl_size = tx.deal.nt;
    if (pl_heap_open() >= 0)
        pl_heap_drop(tx.old_generation);
    pl_entry_jump(PL_JUMP_PARK);
}

static void commit(pl_site_t *site, pl_exchange_t *x)
{
    pl_snapshot_t *baseline = x->here_owned;

    x->here_owned = NULL;
    share_random_state();
    if (tx.role == ROLE_SURVIVOR)
        pl_heap_protect(tx.old_generation, false);
    if (pl_files_commit())
        PL_WARN("some file of the program could not be carried over");
    pl_clock_trial_end();
    pl_trial_end();
    pl_errhandlers_commit();
    pl_handles_free_dead(tx.generation);
    if (tx.role == ROLE_SURVIVOR)
        free_old_world();
    pl_heap_drop(tx.old_generation);
    pl_evidence_clear();
    PMPI_Comm_dup(pl_world, &pl_control);
    PMPI_Comm_free(&tx.all);
    release_source_state();
    pl_sites_drop_kept();
    pl_sites_take_notes(tx.deal.sites, tx.deal.site_count);
    site->baseline = baseline;
    pl_ticks = tx.deal.ticks;
    pl_agree_reset();
    pl_resize_learn(&tx.deal.note);
}

static void finish_event(const char *outcome)
{
    tx.event.outcome = outcome;
    tx.event.seconds.total = pl_now() - tx.began;
    snprintf(tx.event.reason, sizeof tx.event.reason, "%s", tx.reason);
}

/* ---- the target at the resize point ---- */

static void put_registers(struct pl_frame *frame, const uint64_t *r)
{
    frame->r15 = r[0];
    frame->r14 = r[1];
    frame->r13 = r[2];
    frame->r12 = r[3];
    frame->rbx = r[4];
    frame->rbp = r[5];
}

static void refuse_here(pl_exchange_t *x)
{
    tx.refused = true;
    pl_exchange_free(x);
    pl_entry_jump(PL_JUMP_SETTLE);
}

static int reached(pl_site_t *site, struct pl_frame *frame, int rc)
{
    pl_exchange_t x = {.comm = tx.all,
                       .ns = tx.deal.ns,
                       .nt = tx.deal.nt,
                       .now = tx.role == ROLE_SURVIVOR ? tx.now : NULL,
                       .base = tx.role == ROLE_SURVIVOR ? tx.base : NULL,
                       .first = tx.first,
                       .target_comm = tx.world,
                       .method = pl_method_text((pl_method_t)tx.deal.method)};

    if (pl_files_input_missed())
        pl_trial_fail("set-up reads standard input, which is a pipe and cannot be read again");
    if (pl_snapshot_take(site->chain, frame, PL_SNAPSHOT_BASELINE, &x.here_owned))
        pl_trial_fail("out of memory");
    if (!pl_trial_vote()) {
        pl_exchange_free(&x);
        pl_entry_jump(PL_JUMP_SETTLE);
    }
    tx.event.seconds.setup = pl_now() - tx.trial_began;
    double t = pl_now();
    if (pl_exchange_run(&x, tx.reason, sizeof tx.reason))
        refuse_here(&x);
    put_registers(frame, x.registers);
    tx.event.seconds.redistribute = x.move_seconds;
    tx.event.seconds.inject = pl_now() - t - x.move_seconds;
    commit(site, &x);
    finish_event("committed");
    pl_exchange_describe(&x, &tx.event);
    pl_resize_done(&tx.event, false);
    pl_exchange_free(&x);
    return rc;
}

int pl_transaction_arrive(pl_site_t *site, struct pl_frame *frame, int rc)
{
    bool wanted = site->hash == tx.deal.site;

    if (wanted && !pl_trial_uniform())
        pl_trial_miss("under the new size processes pass different copies of the same call");
    if (wanted && (!site->chain->complete || !pl_chain_verify(site->chain)))
        pl_trial_fail("the stack at the resize point cannot be followed");
    if (site->arrivals == pl_options.baseline) {
        site->watch = PL_NEVER;
        if (wanted)
            return reached(site, frame, rc);
        if (site->chain->complete && pl_chain_verify(site->chain))
            pl_snapshot_take(site->chain, frame, PL_SNAPSHOT_BASELINE, &site->baseline);
        return rc;
    }
    if (wanted && site->arrivals == pl_options.baseline - 1 && tx.deal.ns == 1 && tx.deal.nt > 1) {
        pl_snapshot_free(tx.first);
        tx.first = NULL;
        pl_snapshot_take(site->chain, frame, PL_SNAPSHOT_BASELINE, &tx.first);
    }
    return rc;
}

/* ---- rollback ---- */

static void undo_world(bool clean)
{
    pl_errhandlers_drop();
    pl_attributes_silence(tx.generation);
    if (clean)
        pl_handles_free(tx.generation, true);
    else
        pl_handles_forget(tx.generation);
    end_communicators(clean);
    pl_handles_begin(tx.old_generation);
    pl_world = tx.old_world;
    pl_control = tx.old_control;
    pl_size = tx.role == ROLE_SURVIVOR ? tx.old_size : tx.deal.ns;
    pl_quiescence_restore(&tx.quiet);
}

static void undo_heap(void)
{
    pl_heap_select(tx.old_generation);
    pl_heap_drop(tx.generation);
    for (int64_t i = 0; tx.now && i < tx.now->record_count; i++)
        if (tx.now->records[i].permanent && tx.now->records[i].copy)
            memcpy(tx.now->records[i].block.address, tx.now->records[i].copy,
                   (size_t)tx.now->records[i].block.size);
}

static void tell_rollback(void)
{
    char words[160];

    pl_files_last_words(words, sizeof words);
    if (!tx.reason[0])
        snprintf(tx.reason, sizeof tx.reason, "%s", pl_trial_reason());
    finish_event(tx.refused ? "refused" : "rolled_back");
    if (words[0] && !tx.refused)
        snprintf(tx.event.reason, sizeof tx.event.reason, "%.240s; it said: %.140s", tx.reason,
                 words);
}

void pl_transaction_settle(void)
{
    static pl_snapshot_t *was;

    pl_sites_on = false;
    bool clean = pl_trial_settle();
    pl_files_rollback();
    tell_rollback();
    pl_clock_trial_end();
    pl_trial_end();
    undo_world(clean);
    if (tx.role == ROLE_SURVIVOR) {
        pl_heap_protect(tx.old_generation, false);
        pl_image_restore(&tx.now->image);
        pl_process_restore(&tx.process);
    }
    undo_heap();
    pl_snapshot_free(tx.first);
    tx.first = NULL;
    pl_sites_restore();
    if (tx.role != ROLE_SURVIVOR)
        return;
    pl_process_release(&tx.process);
    pl_random_put(&tx.random);
    pl_ticks = tx.deal.ticks;
    pl_sites_on = true;
    pl_resize_done(&tx.event, tx.refused || pl_trial_elsewhere());
    pl_snapshot_free(was); /* the copy we are about to read stays until the next rollback */
    was = tx.now;
    tx.now = NULL;
    pl_resume(tx.frame, was->frame_copy, was->frame_bytes, tx.rc);
}
