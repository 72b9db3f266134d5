/* SPDX-License-Identifier: MIT */
#include "interpose/liveness_flow.h"

#include <stdlib.h>
#include <string.h>

enum { VOLATILE = 0xffff & ~PL_CALLEE_SAVED & ~(1 << PL_RSP), STEPS = 1 << 20 };

static const int64_t LOWEST = INT64_MIN / 2, HIGHEST = INT64_MAX / 2;
static const pl_value_t OTHER = {PL_VALUE_OTHER, 0}, ADDRESS = {PL_VALUE_ADDRESS, 0};

/* ---- one instruction ---- */

typedef struct step {
    pl_flow_t *flow;
    const pl_insn_t *in;
    pl_state_t *s;
} step_t;

static void leak(const step_t *t)
{
    if (!t->flow->leak)
        t->flow->leak = t->in->address;
}

/* Addresses at and above the frame's end are the caller's: arguments passed in memory. But for the
 * end itself, which a function that aligns its frame takes at its very entry. */
static pl_value_t formed(const step_t *t, pl_value_t v)
{
    bool entry = v.n == 0 && t->s->reg[PL_RSP].kind == PL_VALUE_STACK &&
                 t->s->reg[PL_RSP].n == -8 && t->in->op == PL_OP_LEA;
    if (v.kind == PL_VALUE_STACK && v.n >= 0 && t->in->dst != PL_RSP && !entry)
        t->flow->above = true;
    return v;
}

/* Indexed from a place just below the end, the first elements may lie above it. */
static void note_indexed(const step_t *t)
{
    enum { BIAS = 64 };
    for (int i = 0; i < t->in->memory_count; i++) {
        const pl_operand_t *m = &t->in->memory[i];
        if (m->base < 0 || m->index < 0)
            continue;
        for (int k = 0; k < 2; k++) {
            pl_value_t v = t->s->reg[k ? m->index : m->base];
            if (v.kind == PL_VALUE_STACK && v.n + m->disp >= -BIAS)
                t->flow->above = true;
        }
    }
}

static void store(const step_t *t, const pl_operand_t *m, pl_value_t v, int sure)
{
    int64_t at = 0;
    pl_where_t where = pl_state_where(t->s, m, &at);

    if (where == PL_WHERE_EXACT && sure == 8) {
        pl_state_overwrite(t->s, at, 8);
        if (v.kind != PL_VALUE_OTHER && v.kind != PL_VALUE_CONST &&
            !pl_state_put_slot(t->s, at, v, false))
            leak(t);
        return;
    }
    if (pl_value_is_address(v))
        leak(t);
    if (where == PL_WHERE_EXACT && sure)
        pl_state_overwrite(t->s, at, sure);
    else if (where == PL_WHERE_EXACT) /* it reads there too, and not less than it writes */
        pl_state_disturb(t->s, at, at + m->read);
    else if (where == PL_WHERE_FRAME || (where == PL_WHERE_POINTER && t->flow->careful))
        pl_state_disturb(t->s, LOWEST, HIGHEST);
}

static pl_value_t set_stack(const step_t *t, int64_t at, pl_value_t v)
{
    pl_state_overwrite(t->s, at, 8);
    if (v.kind != PL_VALUE_OTHER && v.kind != PL_VALUE_CONST &&
        !pl_state_put_slot(t->s, at, v, false))
        leak(t);
    return v;
}

static void push(const step_t *t)
{
    pl_value_t *rsp = &t->s->reg[PL_RSP], v = OTHER;

    if (t->in->src >= 0)
        v = t->s->reg[t->in->src];
    else if (t->in->memory_count)
        v = pl_state_loaded(t->s, &t->in->memory[0], 8);
    if (rsp->kind == PL_VALUE_STACK) {
        *rsp = pl_value_make(PL_VALUE_STACK, (int64_t)rsp->n - 8);
        if (rsp->kind == PL_VALUE_STACK)
            set_stack(t, rsp->n, v);
        return;
    }
    if (pl_value_is_address(v))
        leak(t);
    pl_state_disturb(t->s, LOWEST, HIGHEST);
}

static void pop(const step_t *t, int dst)
{
    pl_value_t *rsp = &t->s->reg[PL_RSP], v = ADDRESS;

    if (rsp->kind == PL_VALUE_STACK) {
        v = pl_state_slot(t->s, rsp->n);
        *rsp = pl_value_make(PL_VALUE_STACK, (int64_t)rsp->n + 8);
    }
    t->s->reg[dst] = v;
}

static pl_value_t address_of(const step_t *t)
{
    const pl_operand_t *m = &t->in->memory[0];
    int64_t at = 0;

    switch (pl_state_where(t->s, m, &at)) {
    case PL_WHERE_EXACT:
        return pl_value_make(PL_VALUE_STACK, at);
    case PL_WHERE_FRAME:
        return ADDRESS;
    default:
        return OTHER;
    }
}

static bool any_address(const pl_state_t *s, unsigned registers)
{
    for (int r = 0; r < PL_GPRS; r++)
        if ((registers >> r & 1) && pl_value_is_address(s->reg[r]))
            return true;
    return false;
}

/* A known function may copy what it reads through an argument, and that may be an address. What is
 * printed or freed is not copied. */
static bool copies_address(const pl_state_t *s, const pl_callee_t *known)
{
    for (int i = 0; known->arguments[i]; i++) {
        pl_value_t v = s->reg[pl_argument_registers[i]];
        bool copies = known->arguments[i] == 's' || known->returns_argument;
        if (!pl_value_is_address(v) || !pl_callee_reads(known, i) || !copies)
            continue;
        int64_t bytes = pl_state_argument_bytes(s, known, i);
        bool exact = v.kind == PL_VALUE_STACK && bytes >= 0;
        if (pl_state_holds_addresses(s, exact ? v.n : LOWEST, exact ? v.n + bytes : HIGHEST))
            return true;
    }
    return false;
}

/* Arguments in memory are stored after the call before, since no compiler nests calls, but for a
 * memcpy that copies another argument. */
static bool passes_address(const pl_state_t *s)
{
    for (int i = 0; i < s->slot_count; i++)
        if (!s->slot[i].old && pl_value_is_address(s->slot[i].value) &&
            !pl_state_is_fixed(s->slot[i].value))
            return true;
    return false;
}

/* What a call may do to addresses kept in the frame. */
static void call_stores(const step_t *t)
{
    const pl_callee_t *known = t->in->known;

    if (t->flow->careful)
        pl_state_disturb(t->s, LOWEST, HIGHEST);
    for (int i = 0; known && known->arguments[i]; i++) {
        pl_value_t v = t->s->reg[pl_argument_registers[i]];
        if (!pl_value_is_address(v) || known->arguments[i] == '-')
            continue;
        int64_t bytes = pl_state_argument_bytes(t->s, known, i);
        bool exact = v.kind == PL_VALUE_STACK && bytes >= 0;
        pl_state_disturb(t->s, exact ? v.n : LOWEST, exact ? v.n + bytes : HIGHEST);
    }
}

static void call(const step_t *t)
{
    enum {
        PASSED = 1 << PL_RDI | 1 << PL_RSI | 1 << PL_RDX | 1 << PL_RCX | 1 << PL_R8 | 1 << PL_R9 |
                 1 << PL_R10
    };
    const pl_callee_t *known = t->in->known;
    pl_state_t *s = t->s;
    bool given = any_address(s, PASSED);

    if (t->in->callee && pl_callee_returns_twice(t->in->callee))
        t->flow->failed = "a call that returns twice";
    if (known ? copies_address(s, known) || pl_value_is_address(pl_state_argument(s, known, 'k'))
              : given || passes_address(s))
        leak(t);
    call_stores(t);
    for (int i = 0; i < s->slot_count && !(known && known->returns_argument); i++)
        s->slot[i].old = true;
    if (s->reg[PL_RSP].kind == PL_VALUE_STACK) { /* below it, the callee's frame was */
        int64_t top = s->reg[PL_RSP].n;
        pl_state_overwrite(s, top - (1 << 30), 1 << 30);
    }
    /* Functions of the same file may leave some registers alone that any may change. */
    for (int r = 0; r < PL_GPRS; r++)
        if (VOLATILE >> r & 1)
            s->reg[r] = !known && pl_value_is_address(s->reg[r]) ? ADDRESS : OTHER;
    if (given && (!known || known->returns_argument))
        s->reg[PL_RAX] = s->reg[PL_RDX] = ADDRESS;
}

/* What only the masks tell: results depend on all inputs. */
static void generic(const step_t *t)
{
    const pl_insn_t *in = t->in;
    pl_state_t *s = t->s;
    bool address = any_address(s, in->inputs);
    int64_t at;

    for (int i = 0; i < in->memory_count; i++)
        if (in->memory[i].read)
            address |= pl_value_is_address(pl_state_loaded(s, &in->memory[i], in->memory[i].read));
    if (in->op == PL_OP_STRING)
        for (int i = 0; i < in->memory_count; i++)
            address |= pl_state_where(s, &in->memory[i], &at) >= PL_WHERE_EXACT &&
                       pl_state_holds_addresses(s, LOWEST, HIGHEST);
    for (int i = 0; i < in->memory_count; i++) {
        if (!in->memory[i].may_write)
            continue;
        if (address)
            leak(t);
        if (in->op == PL_OP_STRING)
            pl_state_disturb(s, LOWEST, HIGHEST);
        else
            store(t, &in->memory[i], OTHER, in->memory[i].write);
    }
    if (address && in->vectors)
        leak(t);
    if (in->op == PL_OP_STRING)
        address |= any_address(s, in->addresses);
    for (int r = 0; r < PL_GPRS; r++)
        if (in->outputs >> r & 1)
            s->reg[r] = address ? ADDRESS : OTHER;
}

static void jump(const step_t *t)
{
    if (!t->in->through_pointer)
        return;
    pl_value_t rsp = t->s->reg[PL_RSP];
    if (rsp.kind != PL_VALUE_STACK || rsp.n != -8 || !t->in->callee)
        t->flow->failed = "a jump through a pointer";
}

static void apply(const step_t *t)
{
    const pl_insn_t *in = t->in;
    pl_state_t *s = t->s;
    pl_value_t *dst = in->dst >= 0 ? &s->reg[in->dst] : NULL;

    note_indexed(t);
    switch ((pl_op_t)in->op) {
    case PL_OP_MOVE:
        *dst = s->reg[in->src];
        return;
    case PL_OP_SET:
        *dst = pl_value_make(PL_VALUE_CONST, in->imm);
        return;
    case PL_OP_ADD:
        *dst = dst->kind == PL_VALUE_STACK
                   ? formed(t, pl_value_make(PL_VALUE_STACK, dst->n + in->imm))
               : dst->kind == PL_VALUE_ADDRESS ? ADDRESS
                                               : OTHER;
        return;
    case PL_OP_AND:
        if (dst->kind == PL_VALUE_STACK)
            *dst = pl_value_make(
                PL_VALUE_STACK,
                (int64_t)(((t->flow->end + (uintptr_t)(intptr_t)dst->n) & (uintptr_t)in->imm) -
                          t->flow->end));
        else
            *dst = dst->kind == PL_VALUE_ADDRESS ? ADDRESS : OTHER;
        return;
    case PL_OP_LEA:
        *dst = formed(t, address_of(t));
        return;
    case PL_OP_LOAD:
        *dst = pl_state_loaded(s, &in->memory[0], 8);
        return;
    case PL_OP_STORE:
        store(t, &in->memory[0], s->reg[in->src], 8);
        return;
    case PL_OP_PUSH:
        push(t);
        return;
    case PL_OP_POP:
        pop(t, in->dst);
        return;
    case PL_OP_LEAVE:
        s->reg[PL_RSP] = s->reg[PL_RBP];
        pop(t, PL_RBP);
        return;
    case PL_OP_CALL:
        call(t);
        return;
    case PL_OP_JUMP:
        jump(t);
        return;
    default:
        generic(t);
    }
}

/* ---- the fixed point ---- */

/* b flows into a; true if a changed. */
static bool merge(const step_t *t, pl_state_t *a, const pl_state_t *b)
{
    bool changed = false;

    if (!a->reached) {
        *a = *b;
        a->reached = true;
        return true;
    }
    for (int r = 0; r < PL_GPRS; r++) {
        pl_value_t v = pl_value_join(a->reg[r], b->reg[r]);
        changed |= v.kind != a->reg[r].kind || v.n != a->reg[r].n;
        a->reg[r] = v;
    }
    for (int i = a->slot_count - 1; i >= 0; i--) {
        pl_value_t v = pl_value_join(a->slot[i].value, pl_state_slot(b, a->slot[i].at));
        changed |= v.kind != a->slot[i].value.kind || v.n != a->slot[i].value.n;
        a->slot[i].value = v;
        if (a->slot[i].old && pl_state_is_fresh(b, a->slot[i].at)) {
            a->slot[i].old = false;
            changed = true;
        }
        if (v.kind == PL_VALUE_OTHER)
            pl_state_remove_slot(a, i);
    }
    for (int i = 0; i < b->slot_count; i++) {
        const pl_slot_t *slot = &b->slot[i];
        if (!pl_value_is_address(slot->value) || pl_state_slot(a, slot->at).kind)
            continue;
        changed = true;
        if (!pl_state_put_slot(a, slot->at, ADDRESS, slot->old))
            t->flow->failed = "too many addresses on the stack";
    }
    return changed;
}

void pl_flow_entry(pl_state_t *out)
{
    memset(out, 0, sizeof *out);
    for (int r = 0; r < PL_GPRS; r++)
        if (PL_CALLEE_SAVED >> r & 1)
            out->reg[r] = pl_value_make(PL_VALUE_SAVED, r);
    out->reg[PL_RSP] = pl_value_make(PL_VALUE_STACK, -8);
}

static bool spread(pl_flow_t *f, int at, int *todo, int *count, bool *queued)
{
    const pl_insn_t *in = &f->code->insns[at];
    pl_state_t after = f->before[at];
    step_t t = {f, in, &after};
    int successors[3] = {in->next, in->taken, in->pad};

    apply(&t);
    for (int i = 0; i < 3; i++) {
        int to = successors[i];
        if (to < 0 || !merge(&t, &f->before[to], &after) || queued[to])
            continue;
        queued[to] = true;
        todo[(*count)++] = to;
    }
    return !f->failed;
}

static void run(pl_flow_t *f, int from, const pl_state_t *start, int *todo, bool *queued)
{
    int count = 0;

    memset(queued, 0, (size_t)f->code->count * sizeof *queued);
    for (int i = 0; i < f->code->count; i++)
        f->before[i].reached = false;
    f->before[from] = *start;
    f->before[from].reached = true;
    todo[count++] = from;
    for (int steps = 0; count > 0; steps++) {
        int at = todo[--count];
        queued[at] = false;
        if (steps == STEPS)
            f->failed = "too much work";
        if (f->failed || !spread(f, at, todo, &count, queued))
            break;
    }
}

pl_status_t pl_flow_run(const pl_code_t *code, uintptr_t end, int from, const pl_state_t *start,
                        pl_flow_t *out)
{
    pl_flow_t f = {.code = code, .end = end};
    size_t n = (size_t)code->count;
    int *todo = malloc(n * sizeof *todo);
    bool *queued = calloc(n, sizeof *queued);
    pl_status_t status = PL_ERR_NOMEM;

    f.before = calloc(n, sizeof *f.before);
    if (f.before && todo && queued) {
        run(&f, from, start, todo, queued);
        if (f.leak && !f.failed) { /* so strangers may store to the frame */
            f.careful = true;
            run(&f, from, start, todo, queued);
        }
        *out = f;
        status = PL_OK;
    } else {
        pl_flow_free(&f);
    }
    free(todo);
    free(queued);
    return status;
}

void pl_flow_free(pl_flow_t *flow)
{
    free(flow->before);
    memset(flow, 0, sizeof *flow);
}
