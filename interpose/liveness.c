/* SPDX-License-Identifier: MIT */
#include "interpose/liveness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/liveness_frame.h"

enum { NONE = PL_NO_REGISTER };

typedef struct reason {
    char *text;
    size_t size;
} reason_t;

__attribute__((format(printf, 3, 4))) static pl_life_t say(const reason_t *why, pl_life_t life,
                                                           const char *format, ...)
{
    va_list args;
    if (why->size) {
        va_start(args, format);
        vsnprintf(why->text, why->size, format, args);
        va_end(args);
    }
    return life;
}

/* ---- paths ---- */

typedef enum effect { NOTHING, OVERWRITES, READS, MAY_READ, LEAVES } effect_t;

/* What is followed along the paths of one frame: a byte of the stack, or a register. */
typedef struct question {
    const pl_life_frame_t *frame;
    const pl_flow_t *flow;
    int reg;        /* or NONE */
    int64_t at;     /* the byte, from the frame's end */
    int saved;      /* the byte is of this register of the caller, saved; or NONE */
    bool reachable; /* through pointers from unknown places */
    bool within;    /* through addresses that the frame is known to form */
} question_t;

static bool covers(int64_t from, int64_t bytes, int64_t at)
{
    return at >= from && at < from + bytes;
}

static effect_t operand_read(const question_t *q, const pl_state_t *s, const pl_operand_t *m)
{
    int64_t at = 0;

    if (!m->read)
        return NOTHING;
    switch (pl_state_where(s, m, &at)) {
    case PL_WHERE_EXACT:
        return covers(at, m->read, q->at) ? READS : NOTHING;
    case PL_WHERE_FRAME:
        return q->within ? MAY_READ : NOTHING;
    case PL_WHERE_POINTER:
        return q->reachable ? MAY_READ : NOTHING;
    default:
        return NOTHING;
    }
}

static effect_t argument_read(const question_t *q, const pl_state_t *s, const pl_callee_t *f, int i)
{
    pl_value_t v = s->reg[pl_argument_registers[i]];
    bool in_place = (f->arguments[i] == 'o' || f->arguments[i] == 'w') &&
                    strchr(f->arguments, 's') && !pl_value_is_address(pl_state_argument(s, f, 's'));

    if (!pl_callee_reads(f, i) && !in_place)
        return NOTHING;
    if (!pl_value_is_address(v))
        return v.kind == PL_VALUE_OTHER && q->reachable ? MAY_READ : NOTHING;
    if (!q->within)
        return NOTHING;
    int64_t bytes = pl_state_argument_bytes(s, f, i);
    if (v.kind != PL_VALUE_STACK || bytes < 0)
        return MAY_READ;
    return covers(v.n, bytes, q->at) ? READS : NOTHING;
}

/* The byte is written for sure through the i-th argument. */
static bool argument_overwrites(const question_t *q, const pl_state_t *s, const pl_callee_t *f,
                                int i)
{
    pl_value_t v = s->reg[pl_argument_registers[i]];
    bool sure = f->arguments[i] == 'i' || f->arguments[i] == 'w';

    if (!sure || v.kind != PL_VALUE_STACK)
        return false;
    return covers(v.n, pl_state_argument_bytes(s, f, i), q->at);
}

static effect_t call_effect(const question_t *q, const pl_insn_t *in, const pl_state_t *s)
{
    const pl_callee_t *f = in->known;
    effect_t worst = NOTHING;

    for (int i = 0; f && f->arguments[i]; i++) {
        effect_t e = argument_read(q, s, f, i);
        worst = e > worst ? e : worst;
    }
    if (worst >= READS)
        return worst;
    if (q->reachable && !(f && f->leaves_memory))
        return MAY_READ;
    if (f && f->stops)
        return LEAVES;
    for (int i = 0; f && f->arguments[i]; i++)
        if (argument_overwrites(q, s, f, i))
            return OVERWRITES;
    if (s->reg[PL_RSP].kind == PL_VALUE_STACK && q->at < s->reg[PL_RSP].n)
        return OVERWRITES; /* the callee's frame lies there */
    return NOTHING;
}

/* Restores the caller's register whose saved copy is asked for, and does nothing else with it. */
static bool restores(const question_t *q, const pl_insn_t *in, const pl_state_t *s)
{
    int64_t at = 0;
    int dst = in->op == PL_OP_LEAVE ? PL_RBP : in->dst;

    if (q->saved == NONE || dst != q->saved)
        return false;
    if (in->op == PL_OP_LOAD && pl_state_where(s, &in->memory[0], &at) != PL_WHERE_EXACT)
        return false;
    if (in->op == PL_OP_POP || in->op == PL_OP_LEAVE)
        at = s->reg[in->op == PL_OP_LEAVE ? PL_RBP : PL_RSP].n; /* exact: it was found to be read */
    else if (in->op != PL_OP_LOAD)
        return false;
    pl_value_t v = pl_state_slot(s, at);
    return v.kind == PL_VALUE_SAVED && v.n == dst;
}

static effect_t stack_pointer_read(const question_t *q, const pl_insn_t *in, const pl_state_t *s)
{
    pl_value_t at = s->reg[in->op == PL_OP_LEAVE ? PL_RBP : PL_RSP];
    if (at.kind == PL_VALUE_STACK)
        return covers(at.n, 8, q->at) ? READS : NOTHING;
    return q->within ? MAY_READ : NOTHING;
}

static effect_t stack_effect(const question_t *q, const pl_insn_t *in, const pl_state_t *s)
{
    effect_t worst = NOTHING;
    int64_t at = 0;

    if (in->op == PL_OP_RETURN)
        return covers(-8, 8, q->at) ? READS : LEAVES;
    if (in->op == PL_OP_JUMP && in->through_pointer) /* arguments in memory are for the next one */
        return q->at >= -8 ? MAY_READ : LEAVES;
    for (int i = 0; i < in->memory_count; i++) {
        effect_t e = operand_read(q, s, &in->memory[i]);
        if (in->op == PL_OP_STRING && pl_state_where(s, &in->memory[i], &at) == PL_WHERE_EXACT)
            e = in->memory[i].read && q->within ? MAY_READ : NOTHING;
        worst = e > worst ? e : worst;
    }
    if (in->op == PL_OP_POP || in->op == PL_OP_LEAVE)
        worst = stack_pointer_read(q, in, s);
    if (worst == READS && restores(q, in, s))
        worst = NOTHING;
    if (worst != NOTHING)
        return worst;
    if (in->op == PL_OP_CALL)
        return call_effect(q, in, s);
    for (int i = 0; i < in->memory_count; i++)
        if (in->memory[i].write && in->op != PL_OP_STRING &&
            pl_state_where(s, &in->memory[i], &at) == PL_WHERE_EXACT &&
            covers(at, in->memory[i].write, q->at))
            return OVERWRITES;
    pl_value_t rsp = s->reg[PL_RSP];
    if (in->op == PL_OP_PUSH && rsp.kind == PL_VALUE_STACK && covers(rsp.n - 8, 8, q->at))
        return OVERWRITES;
    return NOTHING;
}

static effect_t register_effect(const question_t *q, const pl_insn_t *in, const pl_state_t *s)
{
    unsigned bit = 1u << q->reg;
    bool callers = s->reg[q->reg].kind == PL_VALUE_SAVED && s->reg[q->reg].n == q->reg;

    if (in->op == PL_OP_RETURN || (in->op == PL_OP_JUMP && in->through_pointer))
        return LEAVES;
    if (in->op == PL_OP_CALL) {
        const pl_callee_t *f = in->known;
        if (f && f->stops)
            return LEAVES;
    }
    if (in->op == PL_OP_LEAVE)
        return q->reg == PL_RBP ? READS : NOTHING;
    if ((in->inputs | in->addresses) & bit) {
        bool saves = callers && in->src == q->reg && !(in->addresses & bit) &&
                     (in->op == PL_OP_PUSH || in->op == PL_OP_STORE);
        return saves ? NOTHING : READS;
    }
    return in->overwrites & bit ? OVERWRITES : NOTHING;
}

/* Follows all paths from one instruction. *where: of the instruction that decided; *leaves: a path
 * leaves the function with the byte or register as it was. */
static pl_life_t follow(const question_t *q, int from, uintptr_t *where, bool *leaves)
{
    const pl_code_t *code = &q->frame->code;
    int *todo = malloc((size_t)code->count * sizeof *todo), count = 0;
    bool *seen = calloc((size_t)code->count, sizeof *seen);
    pl_life_t life = todo && seen ? PL_LIFE_DEAD : PL_LIFE_UNKNOWN;

    *where = code->insns[from].address;
    if (life == PL_LIFE_DEAD) {
        todo[count++] = from;
        seen[from] = true;
    }
    while (count > 0 && life != PL_LIFE_LIVE) {
        const pl_insn_t *in = &code->insns[todo[--count]];
        const pl_state_t *s = &q->flow->before[in - code->insns];
        effect_t e = !s->reached   ? MAY_READ
                     : q->reg >= 0 ? register_effect(q, in, s)
                                   : stack_effect(q, in, s);
        if (e == READS || (e == MAY_READ && life == PL_LIFE_DEAD)) {
            life = e == READS ? PL_LIFE_LIVE : PL_LIFE_UNKNOWN;
            *where = in->address;
        }
        *leaves |= e == LEAVES;
        if (e != NOTHING && e != MAY_READ)
            continue;
        const int next[3] = {in->next, in->taken, in->pad};
        for (int i = 0; i < 3; i++)
            if (next[i] >= 0 && !seen[next[i]]) {
                seen[next[i]] = true;
                todo[count++] = next[i];
            }
    }
    free(todo);
    free(seen);
    return life;
}

static pl_life_t ask(const pl_life_frame_t *f, question_t q, bool *leaves, const reason_t *why)
{
    char text[128], leak[128];
    uintptr_t where;

    q.frame = f;
    q.flow = &f->rest;
    pl_life_t life = follow(&q, f->at, &where, leaves);
    if (life != PL_LIFE_LIVE && f->pad != NONE) {
        uintptr_t other;
        q.flow = &f->whole;
        pl_life_t thrown = follow(&q, f->pad, &other, leaves);
        if (thrown != PL_LIFE_DEAD) {
            life = thrown;
            where = other;
        }
    }
    if (life == PL_LIFE_LIVE)
        return say(why, life, "read at %s", pl_life_place(where, text, sizeof text));
    if (life == PL_LIFE_UNKNOWN && q.reachable && f->leak)
        return say(why, life, "address taken at %s, possible read at %s",
                   pl_life_place(f->leak, leak, sizeof leak),
                   pl_life_place(where, text, sizeof text));
    if (life == PL_LIFE_UNKNOWN)
        return say(why, life, "possible read at %s", pl_life_place(where, text, sizeof text));
    return say(why, life, *leaves ? "overwritten first, or out of use" : "overwritten first");
}

/* ---- questions ---- */

static pl_life_t cannot(const pl_life_frame_t *f, const reason_t *why)
{
    char text[128];
    return say(why, PL_LIFE_UNKNOWN, "%s: %s", pl_life_place(f->ip, text, sizeof text), f->failed);
}

/* A register as at the return into frame i. */
static pl_life_t life_of_register(const pl_chain_t *chain, int i, int reg, const reason_t *why)
{
    for (; i < chain->depth; i++) {
        const pl_life_frame_t *f = pl_life_frame(chain, i);
        bool leaves = false;

        if (f->failed)
            return cannot(f, why);
        pl_value_t v = f->rest.before[f->at].reg[reg];
        bool callers = v.kind == PL_VALUE_SAVED && v.n == reg;
        pl_life_t life = ask(f, (question_t){.reg = reg, .saved = NONE}, &leaves, why);
        if (life != PL_LIFE_DEAD)
            return life;
        if (!callers && leaves)
            return say(why, PL_LIFE_UNKNOWN, "a register that is not restored");
        if (!callers || !leaves)
            return life;
    }
    if (reg == PL_RBP)
        return say(why, PL_LIFE_LIVE, "used where main was called");
    return say(why, PL_LIFE_DEAD, "out of use after main");
}

/* The frames further in go on first, and may hold addresses of this one. */
static pl_life_t inner_frames(const pl_chain_t *chain, int frame, uintptr_t address, bool reachable,
                              const reason_t *why)
{
    for (int i = frame - 1; i >= 0; i--) {
        const pl_life_frame_t *f = pl_life_frame(chain, i);
        bool leaves = false;

        if (f->failed && (reachable || i == frame - 1))
            return cannot(f, why);
        if (f->failed)
            continue;
        question_t q = {.reg = NONE,
                        .saved = NONE,
                        .at = (int64_t)(address - f->end),
                        .reachable = reachable || (f->leak && f->above),
                        .within = f->above};
        pl_life_t life = ask(f, q, &leaves, why);
        if (life != PL_LIFE_DEAD)
            return life;
    }
    return PL_LIFE_DEAD;
}

static pl_life_t life_of_byte(const pl_chain_t *chain, int frame, int64_t at, const reason_t *why)
{
    const pl_life_frame_t *f = pl_life_frame(chain, frame);
    bool leaves = false;

    if (f->failed)
        return cannot(f, why);
    question_t q = {
        .reg = NONE, .saved = NONE, .at = at, .reachable = f->leak != 0, .within = true};
    bool reachable = f->leak || (frame > 0 && f->given);
    uintptr_t end = f->end;
    pl_life_t life = inner_frames(chain, frame, end + (uintptr_t)at, reachable, why);
    if (life != PL_LIFE_DEAD)
        return life;
    f = pl_life_frame(chain, frame);
    int64_t word = at & ~(int64_t)7;
    pl_value_t v = pl_state_slot(&f->rest.before[f->at], word);
    if (v.kind == PL_VALUE_SAVED) {
        q.saved = v.n;
        q.reachable = q.within = false; /* no object of the program lies there */
    }
    life = ask(f, q, &leaves, why);
    if (life == PL_LIFE_DEAD && q.saved != NONE)
        return life_of_register(chain, frame + 1, q.saved, why);
    return life;
}

pl_life_t pl_life_of_stack(const pl_chain_t *chain, int frame, int64_t offset, int bytes, char *why,
                           size_t size)
{
    reason_t reason = {why, size}, none = {NULL, 0};
    pl_life_t worst = PL_LIFE_DEAD;

    if (!chain->complete || frame < 0 || frame >= chain->depth || bytes <= 0 || offset <= 0)
        return say(&reason, PL_LIFE_UNKNOWN, "no such place in a complete call chain");
    for (int i = 0; i < bytes && worst != PL_LIFE_LIVE; i++) {
        const reason_t *say_it = i == 0 ? &reason : &none;
        pl_life_t life = life_of_byte(chain, frame, i - offset, say_it);
        if (life == PL_LIFE_DEAD || life == worst)
            continue;
        if (i > 0)
            life_of_byte(chain, frame, i - offset, &reason);
        worst = life;
    }
    return worst;
}

pl_life_t pl_life_of_register(const pl_chain_t *chain, int reg, char *why, size_t size)
{
    static const int8_t numbers[] = {PL_R15, PL_R14, PL_R13, PL_R12, PL_RBX, PL_RBP};
    reason_t reason = {why, size};

    if (!chain->complete || chain->depth == 0 || reg < 0 || reg >= (int)sizeof numbers)
        return say(&reason, PL_LIFE_UNKNOWN, "no such register in a complete call chain");
    return life_of_register(chain, 0, numbers[reg], &reason);
}
