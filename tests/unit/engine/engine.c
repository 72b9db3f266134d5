/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/border.h"
#include "interpose/entry.h"
#include "interpose/heap.h"
#include "interpose/hook.h"
#include "interpose/image.h"
#include "interpose/match.h"
#include "interpose/modules.h"
#include "interpose/snapshot.h"

void engine_arrive(struct pl_frame *frame);

static jmp_buf above;
static struct {
    engine_plan_t plan;
    engine_program_t program;
    engine_outcome_t outcome;
    int rank, size, arrivals;
    bool second, active;
    uintptr_t top; /* of the program's stack */
    int generation[2];
    pl_image_t first;
    pl_snapshot_t *base, *now, *here;
} e;

static void must(int status)
{
    if (status < 0)
        abort();
}

void engine_setup(void)
{
    pl_modules_scan();
    must(pl_heap_start());
}

int engine_rank(void)
{
    return e.rank;
}

int engine_size(void)
{
    return e.size;
}

void *engine_allocate(size_t bytes)
{
    return pl_heap_allocate(bytes, 16, PL_CALLER_CHAIN);
}

void engine_free(void *p)
{
    pl_heap_free(p);
}

pl_chain_t *engine_chain(void)
{
    return pl_chain_find(PL_CALLER, PL_CALLER_STACK);
}

bool engine_verify(bool spoil)
{
    pl_chain_t chain = *pl_chain_find(PL_CALLER, PL_CALLER_STACK);
    chain.hash += spoil;
    return pl_chain_verify(&chain);
}

void engine_report(int index, double value)
{
    e.outcome.result[index] = value;
}

static bool *choose_by_words(const pl_match_t *m)
{
    bool *by_words = calloc((size_t)m->count + 1, sizeof *by_words);
    for (int i = 0; by_words && i < m->count; i++) {
        int64_t size = -1;
        by_words[i] = true;
        for (int r = 0; r < m->ns + m->nt; r++) {
            int64_t s = m->objects[i].source[r];
            by_words[i] = by_words[i] && (s < 0 || size < 0 || s == size);
            size = s >= 0 ? s : size;
        }
    }
    return by_words;
}

/* Objects that only sources have were born since the baseline: made on the targets too. */
static void make_born(pl_match_t *m)
{
    for (int i = 0; i < m->count && e.here; i++)
        if (m->objects[i].sources && !m->objects[i].targets)
            must(pl_match_make_here(&m->objects[i], m->objects[i].source[0]));
}

/* frame: of a target, NULL on a process that is only a source. */
static void exchange(struct pl_frame *frame)
{
    pl_match_t match;
    pl_space_t now, base, here;
    pl_words_t words;
    uint64_t r[PL_REGISTERS];

    must(pl_match_make(e.plan.comm, e.plan.ns, e.plan.nt, e.now, e.base, e.here, &match));
    bool *by_words = choose_by_words(&match);
    make_born(&match);
    must(pl_match_spaces(&match, e.now, e.base, e.here, &now, &base, &here));
    pl_words_input_t input = {.comm = e.plan.comm,
                              .ns = e.plan.ns,
                              .nt = e.plan.nt,
                              .match = &match,
                              .by_words = by_words,
                              .now = e.now,
                              .base = e.base,
                              .here = e.here,
                              .now_space = &now,
                              .base_space = &base};
    must(pl_words_compare(&input, &words));
    const pl_chain_t *chain = e.now ? e.now->chain : e.here->chain;
    pl_words_count(&words, &match, chain, &e.outcome.found);
    if (frame) {
        memcpy(r, e.here->registers, sizeof r);
        e.outcome.lost = pl_words_inject(&words, &here, e.now != NULL, r);
        *frame = (struct pl_frame){frame->pad, r[0], r[1], r[2], r[3], r[4], r[5], frame->ret};
    }
    pl_words_free(&words);
    pl_space_free(&now);
    pl_space_free(&base);
    pl_space_free(&here);
    free(by_words);
    pl_match_free(&match);
}

void engine_arrive(struct pl_frame *frame)
{
    e.arrivals++;
    if (!e.active || (e.arrivals != ENGINE_BASELINE && (e.second || e.arrivals != e.plan.arrival)))
        return;
    pl_chain_t *chain = pl_chain_find((void *)frame->ret, frame + 1);
    if (e.arrivals != ENGINE_BASELINE) {
        must(pl_snapshot_take(chain, frame, PL_SNAPSHOT_NOW, &e.now));
        longjmp(above, 1);
    }
    must(pl_snapshot_take(chain, frame, PL_SNAPSHOT_BASELINE, e.second ? &e.here : &e.base));
    if (e.second) {
        e.active = false;
        exchange(frame);
    }
}

void engine_call(engine_program_t program)
{
    pl_call_main(0, NULL, NULL, program);
}

/* Both runs begin in the frame of engine_run, so that the program has the same stack. */
__attribute__((noinline)) static void run_program(void)
{
    if (_setjmp(above) == 0) {
        engine_call(e.program);
        e.outcome.finished = e.second;
    }
    if (!e.second && !e.now)
        abort(); /* the program ended before the resize */
    if (e.second && e.top && e.top != pl_chain_top)
        abort();
    e.top = pl_chain_top;
}

static void begin(bool second, int size)
{
    e.second = second;
    e.size = size;
    e.arrivals = 0;
    must(e.generation[second] = pl_heap_open());
}

void engine_run(engine_program_t program, const engine_plan_t *plan, engine_outcome_t *out)
{
    memset(&e, 0, sizeof e);
    e.plan = *plan;
    e.program = program;
    PMPI_Comm_rank(plan->comm, &e.rank);
    must(pl_image_save(&e.first));
    e.active = true;
    if (e.rank < plan->ns) {
        begin(false, plan->ns);
        run_program();
    }
    pl_image_restore(&e.first);
    begin(true, plan->nt);
    if (e.rank < plan->nt)
        run_program();
    else
        exchange(NULL);
    pl_image_restore(&e.first);
    must(pl_heap_select(0));
    for (int i = 0; i < 2; i++)
        if (e.generation[i])
            must(pl_heap_drop(e.generation[i]));
    pl_snapshot_free(e.base);
    pl_snapshot_free(e.now);
    pl_snapshot_free(e.here);
    pl_image_free(&e.first);
    *out = e.outcome;
}
