/* SPDX-License-Identifier: MIT */
#include "interpose/liveness_flow.h"

#include <stdlib.h>
#include <string.h>

enum { VOLATILE = 0xffff & ~PL_CALLEE_SAVED & ~(1 << PL_RSP), STEPS = 1 << 20 };

static const int64_t LOWEST = INT64_MIN / 2, HIGHEST = INT64_MAX / 2;
static const pl_value_t OTHER = {PL_VALUE_OTHER, 0}, ADDRESS = {PL_VALUE_ADDRESS, 0};

static pl_value_t value(pl_value_kind_t kind, int64_t n)
{
    if (n != (int32_t)n)
        return kind == PL_VALUE_STACK ? ADDRESS : OTHER;
    return (pl_value_t){(int32_t)kind, (int32_t)n};
}

static pl_value_t join(pl_value_t a, pl_value_t b)
{
    if (a.kind == b.kind && a.n == b.n)
        return a;
    return pl_value_is_address(a) || pl_value_is_address(b) ? ADDRESS : OTHER;
}

/* ---- stack slots ---- */

pl_value_t pl_flow_slot(const pl_state_t *s, int64_t at)
{
    for (int i = 0; i < s->slot_count; i++)
        if (s->slot[i].at == at)
            return s->slot[i].value;
    return OTHER;
}

static void remove_slot(pl_state_t *s, int i)
{
    s->slot_count--;
    memmove(&s->slot[i], &s->slot[i + 1], (size_t)(s->slot_count - i) * sizeof *s->slot);
}

static bool is_fresh(const pl_state_t *s, int64_t at)
{
    for (int i = 0; i < s->slot_count; i++)
        if (s->slot[i].at == at)
            return !s->slot[i].old;
    return false;
}

/* false: no room */
static bool put_slot(pl_state_t *s, int64_t at, pl_value_t v, bool old)
{
    int i = 0;
    while (i < s->slot_count && s->slot[i].at < at)
        i++;
    if (i < s->slot_count && s->slot[i].at == at) {
        s->slot[i] = (pl_slot_t){at, v, old};
        return true;
    }
    if (s->slot_count == PL_SLOTS)
        return false;
    memmove(&s->slot[i + 1], &s->slot[i], (size_t)(s->slot_count - i) * sizeof *s->slot);
    s->slot[i] = (pl_slot_t){at, v, old};
    s->slot_count++;
    return true;
}

/* The frame's end kept by a main that aligns its frame is no object of the program: like saved
 * registers it changes only where the function itself stores to it. */
static bool fixed(pl_value_t v)
{
    return v.kind == PL_VALUE_SAVED || (v.kind == PL_VALUE_STACK && v.n == 0);
}

/* Bytes were overwritten; of an address half may be left. */
static void overwrite(pl_state_t *s, int64_t at, int64_t bytes)
{
    for (int i = s->slot_count - 1; i >= 0; i--) {
        pl_slot_t *slot = &s->slot[i];
        if (slot->at + 8 <= at || slot->at >= at + bytes)
            continue;
        if (at <= slot->at && slot->at + 8 <= at + bytes)
            remove_slot(s, i);
        else if (pl_value_is_address(slot->value))
            slot->value = ADDRESS;
        else
            remove_slot(s, i);
    }
}

/* Something was stored that may be anywhere: an address may be another, or none. */
static void disturb(pl_state_t *s)
{
    for (int i = 0; i < s->slot_count; i++)
        if (!fixed(s->slot[i].value))
            s->slot[i].value = ADDRESS;
}

static bool holds_addresses(const pl_state_t *s, int64_t low, int64_t high)
{
    for (int i = 0; i < s->slot_count; i++)
        if (pl_value_is_address(s->slot[i].value) && !fixed(s->slot[i].value) &&
            s->slot[i].at + 8 > low && s->slot[i].at < high)
            return true;
    return false;
}

/* ---- operands ---- */

pl_where_t pl_flow_where(const pl_state_t *s, const pl_operand_t *m, int64_t *at)
{
    pl_value_t base = m->base >= 0 ? s->reg[m->base] : value(PL_VALUE_CONST, 0);
    pl_value_t index = m->index >= 0 ? s->reg[m->index] : value(PL_VALUE_CONST, 0);

    if (m->base == PL_SEGMENTED)
        return PL_WHERE_ELSEWHERE;
    if (pl_value_is_address(index) || base.kind == PL_VALUE_ADDRESS)
        return PL_WHERE_FRAME;
    if (base.kind == PL_VALUE_STACK) {
        if (index.kind != PL_VALUE_CONST)
            return PL_WHERE_FRAME;
        *at = base.n + (int64_t)index.n * m->scale + m->disp;
        return PL_WHERE_EXACT;
    }
    return m->base == PL_RIP && m->index < 0 ? PL_WHERE_ELSEWHERE : PL_WHERE_POINTER;
}

static pl_value_t loaded(const pl_state_t *s, const pl_operand_t *m, int bytes)
{
    int64_t at = 0;
    pl_where_t where = pl_flow_where(s, m, &at);

    if (where == PL_WHERE_EXACT) {
        pl_value_t v = pl_flow_slot(s, at);
        if (bytes == 8 && v.kind != PL_VALUE_OTHER)
            return v;
        return holds_addresses(s, at, at + bytes) ? ADDRESS : OTHER;
    }
    if (where == PL_WHERE_FRAME)
        return holds_addresses(s, LOWEST, HIGHEST) ? ADDRESS : OTHER;
    return OTHER;
}

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
    pl_where_t where = pl_flow_where(t->s, m, &at);

    if (where == PL_WHERE_EXACT && sure == 8) {
        overwrite(t->s, at, 8);
        if (v.kind != PL_VALUE_OTHER && v.kind != PL_VALUE_CONST && !put_slot(t->s, at, v, false))
            leak(t);
        return;
    }
    if (pl_value_is_address(v))
        leak(t);
    if (where == PL_WHERE_EXACT)
        overwrite(t->s, at, sure ? sure : 64);
    else if (where != PL_WHERE_ELSEWHERE)
        disturb(t->s);
}

static pl_value_t set_stack(const step_t *t, int64_t at, pl_value_t v)
{
    overwrite(t->s, at, 8);
    if (v.kind != PL_VALUE_OTHER && v.kind != PL_VALUE_CONST && !put_slot(t->s, at, v, false))
        leak(t);
    return v;
}

static void push(const step_t *t)
{
    pl_value_t *rsp = &t->s->reg[PL_RSP], v = OTHER;

    if (t->in->src >= 0)
        v = t->s->reg[t->in->src];
    else if (t->in->memory_count)
        v = loaded(t->s, &t->in->memory[0], 8);
    if (rsp->kind == PL_VALUE_STACK) {
        *rsp = value(PL_VALUE_STACK, (int64_t)rsp->n - 8);
        if (rsp->kind == PL_VALUE_STACK)
            set_stack(t, rsp->n, v);
        return;
    }
    if (pl_value_is_address(v))
        leak(t);
    disturb(t->s);
}

static void pop(const step_t *t, int dst)
{
    pl_value_t *rsp = &t->s->reg[PL_RSP], v = ADDRESS;

    if (rsp->kind == PL_VALUE_STACK) {
        v = pl_flow_slot(t->s, rsp->n);
        *rsp = value(PL_VALUE_STACK, (int64_t)rsp->n + 8);
    }
    t->s->reg[dst] = v;
}

static pl_value_t address_of(const step_t *t)
{
    const pl_operand_t *m = &t->in->memory[0];
    int64_t at = 0;

    switch (pl_flow_where(t->s, m, &at)) {
    case PL_WHERE_EXACT:
        return value(PL_VALUE_STACK, at);
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

int64_t pl_flow_element_bytes(pl_value_t count, pl_value_t type)
{
    bool basic = ((uint32_t)type.n & 0xffff0000u) == 0x4c000000u;
    if (count.kind != PL_VALUE_CONST || type.kind != PL_VALUE_CONST || !basic || count.n < 0)
        return -1;
    return (int64_t)count.n * (type.n >> 8 & 0xff);
}

pl_value_t pl_flow_argument(const pl_state_t *s, const pl_callee_t *f, char letter)
{
    const char *at = strchr(f->arguments, letter);
    return at ? s->reg[pl_argument_registers[at - f->arguments]] : (pl_value_t){PL_VALUE_OTHER, 0};
}

/* A known function may copy what it reads through an argument, and that may be an address. What is
 * printed or freed is not copied. */
static bool copies_address(const pl_state_t *s, const pl_callee_t *known)
{
    for (int i = 0; known->arguments[i]; i++) {
        pl_value_t v = s->reg[pl_argument_registers[i]];
        bool sends = known->arguments[i] == 's';
        if (!pl_value_is_address(v) || !pl_callee_reads(known, i) ||
            !(sends || known->returns_argument))
            continue;
        int64_t bytes = sends ? pl_flow_element_bytes(pl_flow_argument(s, known, 'c'),
                                                      pl_flow_argument(s, known, 't'))
                              : -1;
        bool exact = v.kind == PL_VALUE_STACK && bytes >= 0;
        if (holds_addresses(s, exact ? v.n : LOWEST, exact ? v.n + bytes : HIGHEST))
            return true;
    }
    return false;
}

/* Arguments in memory are stored after the call before, since no compiler nests calls, but for a
 * memcpy that copies another argument. */
static bool passes_address(const pl_state_t *s)
{
    for (int i = 0; i < s->slot_count; i++)
        if (!s->slot[i].old && pl_value_is_address(s->slot[i].value) && !fixed(s->slot[i].value))
            return true;
    return false;
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
    if (known ? copies_address(s, known) : given || passes_address(s))
        leak(t);
    disturb(s);
    for (int i = 0; i < s->slot_count && !(known && known->returns_argument); i++)
        s->slot[i].old = true;
    if (s->reg[PL_RSP].kind == PL_VALUE_STACK) { /* below it, the callee's frame was */
        int64_t top = s->reg[PL_RSP].n;
        overwrite(s, top - (1 << 30), 1 << 30);
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
            address |= pl_value_is_address(loaded(s, &in->memory[i], in->memory[i].read));
    if (in->op == PL_OP_STRING)
        for (int i = 0; i < in->memory_count; i++)
            address |= pl_flow_where(s, &in->memory[i], &at) >= PL_WHERE_EXACT &&
                       holds_addresses(s, LOWEST, HIGHEST);
    for (int i = 0; i < in->memory_count; i++) {
        if (!in->memory[i].may_write)
            continue;
        if (address)
            leak(t);
        if (in->op == PL_OP_STRING)
            disturb(s);
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
        *dst = value(PL_VALUE_CONST, in->imm);
        return;
    case PL_OP_ADD:
        *dst = dst->kind == PL_VALUE_STACK     ? formed(t, value(PL_VALUE_STACK, dst->n + in->imm))
               : dst->kind == PL_VALUE_ADDRESS ? ADDRESS
                                               : OTHER;
        return;
    case PL_OP_AND:
        if (dst->kind == PL_VALUE_STACK)
            *dst = value(PL_VALUE_STACK, (int64_t)(((t->flow->end + (uintptr_t)(intptr_t)dst->n) &
                                                    (uintptr_t)in->imm) -
                                                   t->flow->end));
        else
            *dst = dst->kind == PL_VALUE_ADDRESS ? ADDRESS : OTHER;
        return;
    case PL_OP_LEA:
        *dst = formed(t, address_of(t));
        return;
    case PL_OP_LOAD:
        *dst = loaded(s, &in->memory[0], 8);
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
        pl_value_t v = join(a->reg[r], b->reg[r]);
        changed |= v.kind != a->reg[r].kind || v.n != a->reg[r].n;
        a->reg[r] = v;
    }
    for (int i = a->slot_count - 1; i >= 0; i--) {
        pl_value_t v = join(a->slot[i].value, pl_flow_slot(b, a->slot[i].at));
        changed |= v.kind != a->slot[i].value.kind || v.n != a->slot[i].value.n;
        a->slot[i].value = v;
        if (a->slot[i].old && is_fresh(b, a->slot[i].at)) {
            a->slot[i].old = false;
            changed = true;
        }
        if (v.kind == PL_VALUE_OTHER)
            remove_slot(a, i);
    }
    for (int i = 0; i < b->slot_count; i++) {
        const pl_slot_t *slot = &b->slot[i];
        if (!pl_value_is_address(slot->value) || pl_flow_slot(a, slot->at).kind)
            continue;
        changed = true;
        if (!put_slot(a, slot->at, ADDRESS, slot->old))
            t->flow->failed = "too many addresses on the stack";
    }
    return changed;
}

void pl_flow_entry(pl_state_t *out)
{
    memset(out, 0, sizeof *out);
    for (int r = 0; r < PL_GPRS; r++)
        if (PL_CALLEE_SAVED >> r & 1)
            out->reg[r] = value(PL_VALUE_SAVED, r);
    out->reg[PL_RSP] = value(PL_VALUE_STACK, -8);
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

pl_status_t pl_flow_run(const pl_code_t *code, uintptr_t end, int from, const pl_state_t *start,
                        pl_flow_t *out)
{
    pl_flow_t f = {.code = code, .end = end};
    size_t n = (size_t)code->count;
    int *todo = malloc(n * sizeof *todo), count = 0;
    bool *queued = calloc(n, sizeof *queued);

    f.before = calloc(n, sizeof *f.before);
    if (!f.before || !todo || !queued) {
        free(todo);
        free(queued);
        pl_flow_free(&f);
        return PL_ERR_NOMEM;
    }
    f.before[from] = *start;
    f.before[from].reached = true;
    todo[count++] = from;
    for (int steps = 0; count > 0; steps++) {
        int at = todo[--count];
        queued[at] = false;
        if (steps == STEPS)
            f.failed = "too much work";
        if (f.failed || !spread(&f, at, todo, &count, queued))
            break;
    }
    free(todo);
    free(queued);
    *out = f;
    return PL_OK;
}

void pl_flow_free(pl_flow_t *flow)
{
    free(flow->before);
    memset(flow, 0, sizeof *flow);
}
