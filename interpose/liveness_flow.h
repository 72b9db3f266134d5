/* SPDX-License-Identifier: MIT
 * Which registers and stack slots of a function hold addresses of its frame, at each instruction:
 * forward data flow to a fixed point. Positions in the stack count from the frame's end (its CFA):
 * the return address is at -8. */
#ifndef PLIANT_INTERPOSE_LIVENESS_FLOW_H
#define PLIANT_INTERPOSE_LIVENESS_FLOW_H

#include "interpose/liveness_callee.h"
#include "interpose/liveness_code.h"

typedef enum pl_value_kind {
    PL_VALUE_OTHER,   /* anything but an address of this frame that is not known elsewhere */
    PL_VALUE_CONST,   /* the number n */
    PL_VALUE_STACK,   /* the address n of the stack */
    PL_VALUE_SAVED,   /* what register n held at the function's entry */
    PL_VALUE_ADDRESS, /* may be any address of the stack, or anything else */
} pl_value_kind_t;

typedef struct pl_value {
    int32_t kind, n;
} pl_value_t;

enum { PL_SLOTS = 48 };

typedef struct pl_slot {
    int64_t at; /* 8 bytes from here on */
    pl_value_t value;
    bool old; /* stored before the last call: no argument of the next one */
} pl_slot_t;

typedef struct pl_state {
    pl_value_t reg[PL_GPRS];
    pl_slot_t slot[PL_SLOTS]; /* by position; what is not here holds PL_VALUE_OTHER */
    int slot_count;
    bool reached;
} pl_state_t;

typedef struct pl_flow {
    const pl_code_t *code;
    uintptr_t end;      /* address of the frame's end */
    pl_state_t *before; /* per instruction. Owned. */
    uintptr_t leak;     /* where an address of the frame may get to unknown places, 0: nowhere */
    bool above;         /* it forms addresses at or above the frame's end */
    const char *failed; /* not NULL: nothing can be said, and why */
} pl_flow_t;

/* From the instruction `from` with the state `start`. */
pl_status_t pl_flow_run(const pl_code_t *code, uintptr_t end, int from, const pl_state_t *start,
                        pl_flow_t *out);
void pl_flow_free(pl_flow_t *flow);

/* The state in which a function is entered. */
void pl_flow_entry(pl_state_t *out);

/* Where an operand lies in this state. */
typedef enum pl_where {
    PL_WHERE_ELSEWHERE, /* not in the stack's frames */
    PL_WHERE_POINTER,   /* where some pointer leads: the frame only if its address has leaked */
    PL_WHERE_EXACT,     /* at *at */
    PL_WHERE_FRAME,     /* anywhere in the frame */
} pl_where_t;
pl_where_t pl_flow_where(const pl_state_t *state, const pl_operand_t *m, int64_t *at);

/* Bytes of `count` elements of an MPICH handle of a basic type, or -1. */
int64_t pl_flow_element_bytes(pl_value_t count, pl_value_t type);

/* The argument with this letter in what is known of a function; what is not there is OTHER. */
pl_value_t pl_flow_argument(const pl_state_t *state, const pl_callee_t *known, char letter);

pl_value_t pl_flow_slot(const pl_state_t *state, int64_t at);

static inline bool pl_value_is_address(pl_value_t v)
{
    return v.kind == PL_VALUE_STACK || v.kind == PL_VALUE_ADDRESS;
}

#endif
