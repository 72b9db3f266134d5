/* SPDX-License-Identifier: MIT */
#include "interpose/liveness_code.h"

#include <stdlib.h>
#include <string.h>

#include "interpose/liveness_callee.h"
#include "interpose/unwind.h"

/* The part of a function around an address, by its unwind information. */
static bool add_part(pl_code_t *code, uintptr_t address)
{
    unw_proc_info_t info;

    if (code->part_count == PL_CODE_PARTS)
        return false;
    if (unw_get_proc_info_by_ip(unw_local_addr_space, address, &info, NULL) < 0)
        return false;
    if (address < info.start_ip || address >= info.end_ip || info.end_ip - info.start_ip > 1 << 22)
        return false;
    size_t bytes = info.end_ip - info.start_ip;
    pl_code_part_t part = {.low = info.start_ip,
                           .high = info.end_ip,
                           .index = malloc(bytes * sizeof(int)),
                           .pads = (const uint8_t *)info.lsda};
    if (!part.index)
        return false;
    memset(part.index, 0xff, bytes * sizeof(int));
    code->parts[code->part_count++] = part;
    return true;
}

static pl_code_part_t *part_of(const pl_code_t *code, uintptr_t address)
{
    for (int i = 0; i < code->part_count; i++)
        if (address >= code->parts[i].low && address < code->parts[i].high)
            return (pl_code_part_t *)&code->parts[i];
    return NULL;
}

int pl_code_at(const pl_code_t *code, uintptr_t address)
{
    const pl_code_part_t *part = part_of(code, address);
    return part ? part->index[address - part->low] : -1;
}

/* ---- landing pads ---- */

static uint64_t uleb(const uint8_t **at)
{
    uint64_t value = 0;
    int shift = 0;
    uint8_t byte;
    do {
        byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << (shift < 63 ? shift : 63);
        shift += 7;
    } while (byte & 0x80);
    return value;
}

static uint64_t call_site_number(const uint8_t **at, int encoding)
{
    if (encoding == 0x01)
        return uleb(at);
    uint32_t value;
    memcpy(&value, *at, sizeof value);
    *at += sizeof value;
    return value;
}

bool pl_code_landing_pad(const uint8_t *table, uintptr_t start, uintptr_t call, uintptr_t *pad)
{
    enum { OMITTED = 0xff, ULEB = 0x01, WORD4 = 0x03 };

    if (*table++ != OMITTED) /* pads relative to another place */
        return false;
    if (*table++ != OMITTED)
        uleb(&table);
    int encoding = *table++;
    if (encoding != ULEB && encoding != WORD4)
        return false;
    uint64_t bytes = uleb(&table);
    const uint8_t *end = table + bytes;
    while (table < end) {
        uint64_t from = call_site_number(&table, encoding);
        uint64_t length = call_site_number(&table, encoding);
        uint64_t to = call_site_number(&table, encoding);
        uleb(&table);
        if (call >= start + from && call < start + from + length) {
            *pad = to ? start + to : 0;
            return true;
        }
    }
    *pad = 0;
    return true;
}

/* ---- control flow ---- */

typedef struct reader {
    pl_code_t *code;
    int *todo; /* instructions whose followers are still to be found */
    int todo_count, todo_room;
    const char *why;
    pl_status_t status;
} reader_t;

static bool fail(reader_t *r, pl_status_t status, const char *why)
{
    if (!r->status) {
        r->status = status;
        r->why = why;
    }
    return false;
}

static bool make_room(reader_t *r)
{
    pl_code_t *c = r->code;
    if (c->count >= PL_CODE_LIMIT)
        return fail(r, PL_ERR_REFUSED, "a very long function");
    if (c->count == c->room) {
        int room = c->room ? 2 * c->room : 512;
        pl_insn_t *grown = realloc(c->insns, (size_t)room * sizeof *grown);
        if (grown)
            c->insns = grown;
        int *todo = realloc(r->todo, (size_t)room * sizeof *todo);
        if (todo)
            r->todo = todo;
        if (!grown || !todo)
            return fail(r, PL_ERR_NOMEM, "no memory");
        c->room = room;
    }
    return true;
}

/* The instruction at an address of the function, decoded if it is new. */
static int visit(reader_t *r, uintptr_t address)
{
    pl_code_t *c = r->code;
    pl_code_part_t *part = part_of(c, address);

    if (!part) {
        fail(r, PL_ERR_REFUSED, "a jump out of the function");
        return -1;
    }
    int *index = &part->index[address - part->low];
    if (*index >= 0)
        return *index;
    if (!make_room(r))
        return -1;
    pl_insn_t *in = &c->insns[c->count];
    if (!pl_code_decode(address, part->high, in)) {
        fail(r, PL_ERR_REFUSED, "code that cannot be decoded");
        return -1;
    }
    if (in->op == PL_OP_STRANGE) {
        fail(r, PL_ERR_REFUSED, "an instruction that is not understood");
        return -1;
    }
    if (in->op == PL_OP_CALL || (in->op == PL_OP_JUMP && in->through_pointer)) {
        in->callee = pl_callee_name(in);
        in->known = pl_callee_find(in->callee);
    }
    r->todo[r->todo_count++] = c->count;
    *index = c->count++;
    return *index;
}

/* The target of a direct jump belongs to the code from now on, whether it is a part split off from
 * the function (both begin where unwind information does) or another function, as in a tail call:
 * too much code is safe, too little is not. */
static bool adopt(reader_t *r, uintptr_t target)
{
    if (part_of(r->code, target))
        return true;
    if (r->code->part_count == PL_CODE_PARTS)
        return fail(r, PL_ERR_REFUSED, "a function of too many parts");
    return add_part(r->code, target) || fail(r, PL_ERR_REFUSED, "a jump to an unknown place");
}

static bool follow_jump(reader_t *r, int at)
{
    pl_insn_t in = r->code->insns[at];

    if (in.through_pointer) /* a tail call of an external function, like a return: flow checks */
        return true;
    if (!in.target)
        return fail(r, PL_ERR_REFUSED, "a computed jump");
    if (!adopt(r, in.target))
        return false;
    int taken = visit(r, in.target);
    r->code->insns[at].taken = taken;
    return !r->status;
}

static bool follow_call(reader_t *r, int at)
{
    pl_insn_t in = r->code->insns[at];
    const pl_code_part_t *part = part_of(r->code, in.address);
    uintptr_t pad = 0;

    if (!part->pads)
        return true;
    if (!pl_code_landing_pad(part->pads, part->low, in.address, &pad))
        return fail(r, PL_ERR_REFUSED, "an unusual table of exceptions");
    if (!pad)
        return true;
    int index = visit(r, pad);
    r->code->insns[at].pad = index;
    return !r->status;
}

static bool follow(reader_t *r, int at)
{
    const pl_insn_t in = r->code->insns[at];
    uintptr_t after = in.address + in.size;
    const pl_code_part_t *part = part_of(r->code, in.address);

    if (in.op == PL_OP_RETURN || in.op == PL_OP_STOP)
        return true;
    if (in.op == PL_OP_JUMP && !follow_jump(r, at))
        return false;
    if (in.op == PL_OP_CALL && !follow_call(r, at))
        return false;
    if (in.op == PL_OP_JUMP && !in.conditional)
        return true;
    if (after >= part->high) /* only a call that does not return may stand at the end */
        return in.op == PL_OP_CALL || fail(r, PL_ERR_REFUSED, "code that runs past its end");
    int next = visit(r, after);
    r->code->insns[at].next = next;
    return !r->status;
}

pl_status_t pl_code_read(uintptr_t address, pl_code_t *out, const char **why)
{
    pl_code_t code = {0};
    reader_t r = {.code = &code};

    if (!add_part(&code, address))
        fail(&r, PL_ERR_REFUSED, "no unwind information");
    else
        visit(&r, code.parts[0].low);
    while (!r.status && r.todo_count > 0)
        follow(&r, r.todo[--r.todo_count]);
    free(r.todo);
    if (r.status) {
        pl_code_free(&code);
        *why = r.why;
        return r.status;
    }
    *out = code;
    return PL_OK;
}

void pl_code_free(pl_code_t *code)
{
    for (int i = 0; i < code->part_count; i++)
        free(code->parts[i].index);
    free(code->insns);
    memset(code, 0, sizeof *code);
}
