/* SPDX-License-Identifier: MIT */
#include "interpose/liveness_frame.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { NONE = -1, KEPT = 8 };

const char *pl_life_place(uintptr_t address, char *text, size_t size)
{
    Dl_info info;
    if (!dladdr((void *)address, &info))
        snprintf(text, size, "0x%lx", (unsigned long)address);
    else if (info.dli_sname)
        snprintf(text, size, "%s+0x%lx", info.dli_sname,
                 (unsigned long)(address - (uintptr_t)info.dli_saddr));
    else
        snprintf(text, size, "0x%lx", (unsigned long)(address - (uintptr_t)info.dli_fbase));
    return text;
}

static void drop(pl_life_frame_t *f)
{
    pl_flow_free(&f->whole);
    pl_flow_free(&f->rest);
    pl_code_free(&f->code);
    memset(f, 0, sizeof *f);
}

static const char *flow_from(pl_life_frame_t *f, int from, const pl_state_t *start, pl_flow_t *out)
{
    if (pl_flow_run(&f->code, f->end, from, start, out))
        return "no memory";
    if (!f->leak)
        f->leak = out->leak;
    f->above |= out->above;
    return out->failed;
}

/* The call in progress: the instruction before ip. */
static void find_call(pl_life_frame_t *f, bool returns)
{
    for (int i = 0; i < f->code.count; i++) {
        const pl_insn_t *in = &f->code.insns[i];
        if (in->op != PL_OP_CALL || in->address + in->size != f->ip)
            continue;
        if (!returns)
            f->pad = in->pad;
        for (int a = 0; a < 6; a++)
            f->given |= pl_value_is_address(f->whole.before[i].reg[pl_argument_registers[a]]);
        return;
    }
    f->failed = "the call is not found";
}

static const char *analyse(pl_life_frame_t *f, bool innermost)
{
    const char *why = NULL;
    pl_state_t state;

    if (pl_code_read(f->ip - 1, &f->code, &why))
        return why;
    f->at = pl_code_at(&f->code, f->ip);
    if (f->at < 0)
        return "code that is not reached from its function's entry";
    pl_flow_entry(&state);
    why = flow_from(f, 0, &state, &f->whole);
    if (why)
        return why;
    state = f->whole.before[f->at];
    int64_t depth = (int64_t)(f->start - f->end);
    pl_value_t *rsp = &state.reg[PL_RSP];
    if (!state.reached || (rsp->kind == PL_VALUE_STACK && rsp->n != depth))
        return "a frame that is not as its code tells";
    if (depth != (int32_t)depth)
        return "a very large frame";
    *rsp = (pl_value_t){PL_VALUE_STACK, (int32_t)depth};
    why = flow_from(f, f->at, &state, &f->rest);
    if (!why)
        find_call(f, innermost);
    return why ? why : f->failed;
}

/* The analysis of a frame: owned by a small store of the latest ones. */
const pl_life_frame_t *pl_life_frame(const pl_chain_t *chain, int i)
{
    static pl_life_frame_t kept[KEPT];
    static int next;
    bool last = i + 1 == chain->depth;
    uintptr_t start = i ? chain->slot[i] + 8 : chain->stack;
    uintptr_t end = last ? pl_chain_top : chain->slot[i + 1] + 8;

    for (int k = 0; k < KEPT; k++)
        if (kept[k].ip == chain->address[i] && kept[k].start == start && kept[k].end == end)
            return &kept[k];
    pl_life_frame_t *f = &kept[next++ % KEPT];
    drop(f);
    f->ip = chain->address[i];
    f->start = start;
    f->end = end;
    f->pad = NONE;
#ifdef __x86_64__
    f->failed = analyse(f, i == 0);
#else
    f->failed = "an unknown processor";
#endif
    return f;
}
