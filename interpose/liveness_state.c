/* SPDX-License-Identifier: MIT */
#include "interpose/liveness_state.h"

#include <string.h>

static const pl_value_t OTHER = {PL_VALUE_OTHER, 0}, ADDRESS = {PL_VALUE_ADDRESS, 0};

pl_value_t pl_value_make(pl_value_kind_t kind, int64_t n)
{
    if (n != (int32_t)n)
        return kind == PL_VALUE_STACK ? ADDRESS : OTHER;
    return (pl_value_t){(int32_t)kind, (int32_t)n};
}

pl_value_t pl_value_join(pl_value_t a, pl_value_t b)
{
    if (a.kind == b.kind && a.n == b.n)
        return a;
    return pl_value_is_address(a) || pl_value_is_address(b) ? ADDRESS : OTHER;
}

/* ---- stack slots ---- */

pl_value_t pl_state_slot(const pl_state_t *s, int64_t at)
{
    for (int i = 0; i < s->slot_count; i++)
        if (s->slot[i].at == at)
            return s->slot[i].value;
    return OTHER;
}

void pl_state_remove_slot(pl_state_t *s, int i)
{
    s->slot_count--;
    memmove(&s->slot[i], &s->slot[i + 1], (size_t)(s->slot_count - i) * sizeof *s->slot);
}

bool pl_state_is_fresh(const pl_state_t *s, int64_t at)
{
    for (int i = 0; i < s->slot_count; i++)
        if (s->slot[i].at == at)
            return !s->slot[i].old;
    return false;
}

/* false: no room */
bool pl_state_put_slot(pl_state_t *s, int64_t at, pl_value_t v, bool old)
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
bool pl_state_is_fixed(pl_value_t v)
{
    return v.kind == PL_VALUE_SAVED || (v.kind == PL_VALUE_STACK && v.n == 0);
}

/* Bytes were overwritten; of an address half may be left. */
void pl_state_overwrite(pl_state_t *s, int64_t at, int64_t bytes)
{
    for (int i = s->slot_count - 1; i >= 0; i--) {
        pl_slot_t *slot = &s->slot[i];
        if (slot->at + 8 <= at || slot->at >= at + bytes)
            continue;
        if (at <= slot->at && slot->at + 8 <= at + bytes)
            pl_state_remove_slot(s, i);
        else if (pl_value_is_address(slot->value))
            slot->value = ADDRESS;
        else
            pl_state_remove_slot(s, i);
    }
}

/* Something may have been stored there: an address may be another, or none. */
void pl_state_disturb(pl_state_t *s, int64_t low, int64_t high)
{
    for (int i = 0; i < s->slot_count; i++)
        if (!pl_state_is_fixed(s->slot[i].value) && s->slot[i].at + 8 > low && s->slot[i].at < high)
            s->slot[i].value = ADDRESS;
}

bool pl_state_holds_addresses(const pl_state_t *s, int64_t low, int64_t high)
{
    for (int i = 0; i < s->slot_count; i++)
        if (pl_value_is_address(s->slot[i].value) && !pl_state_is_fixed(s->slot[i].value) &&
            s->slot[i].at + 8 > low && s->slot[i].at < high)
            return true;
    return false;
}

/* ---- operands ---- */

pl_where_t pl_state_where(const pl_state_t *s, const pl_operand_t *m, int64_t *at)
{
    pl_value_t base = m->base >= 0 ? s->reg[m->base] : pl_value_make(PL_VALUE_CONST, 0);
    pl_value_t index = m->index >= 0 ? s->reg[m->index] : pl_value_make(PL_VALUE_CONST, 0);

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

pl_value_t pl_state_loaded(const pl_state_t *s, const pl_operand_t *m, int bytes)
{
    int64_t at = 0;
    pl_where_t where = pl_state_where(s, m, &at);

    if (where == PL_WHERE_EXACT) {
        pl_value_t v = pl_state_slot(s, at);
        if (bytes == 8 && v.kind != PL_VALUE_OTHER)
            return v;
        return pl_state_holds_addresses(s, at, at + bytes) ? ADDRESS : OTHER;
    }
    if (where == PL_WHERE_FRAME)
        return pl_state_holds_addresses(s, INT64_MIN / 2, INT64_MAX / 2) ? ADDRESS : OTHER;
    return OTHER;
}

/* ---- calls ---- */

int64_t pl_state_element_bytes(pl_value_t count, pl_value_t type)
{
    bool basic = ((uint32_t)type.n & 0xffff0000u) == 0x4c000000u;
    if (count.kind != PL_VALUE_CONST || type.kind != PL_VALUE_CONST || !basic || count.n < 0)
        return -1;
    return (int64_t)count.n * (type.n >> 8 & 0xff);
}

pl_value_t pl_state_argument(const pl_state_t *s, const pl_callee_t *f, char letter)
{
    const char *at = strchr(f->arguments, letter);
    return at ? s->reg[pl_argument_registers[at - f->arguments]] : (pl_value_t){PL_VALUE_OTHER, 0};
}

int64_t pl_state_argument_bytes(const pl_state_t *s, const pl_callee_t *f, int i)
{
    switch (f->arguments[i]) {
    case 'i':
        return sizeof(int);
    case 'o':
        if (i != 1 || f->arguments[0] != 's') /* a reduction writes what it is sent */
            return -1;
        /* fall through */
    case 's':
    case 'w':
        return pl_state_element_bytes(pl_state_argument(s, f, 'c'), pl_state_argument(s, f, 't'));
    case 'q': {
        pl_value_t count = pl_state_argument(s, f, 'n');
        if (!strchr(f->arguments, 'n'))
            return sizeof(int);
        return count.kind == PL_VALUE_CONST && count.n >= 0 ? count.n * (int64_t)sizeof(int) : -1;
    }
    default:
        return -1;
    }
}
