/* SPDX-License-Identifier: MIT
 * What is known of registers and stack slots at one instruction: whether they hold addresses of the
 * frame. Positions in the stack count from the frame's end (its CFA): the return address is at -8.
 */
#ifndef PLIANT_INTERPOSE_LIVENESS_STATE_H
#define PLIANT_INTERPOSE_LIVENESS_STATE_H

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

/* Where an operand lies in this state. */
typedef enum pl_where {
    PL_WHERE_ELSEWHERE, /* not in the stack's frames */
    PL_WHERE_POINTER,   /* where some pointer leads: the frame only if its address has leaked */
    PL_WHERE_EXACT,     /* at *at */
    PL_WHERE_FRAME,     /* anywhere in the frame */
} pl_where_t;
pl_where_t pl_state_where(const pl_state_t *state, const pl_operand_t *m, int64_t *at);

/* Bytes of `count` elements of an MPICH handle of a basic type, or -1. */
int64_t pl_state_element_bytes(pl_value_t count, pl_value_t type);

/* Bytes that a known function may read from its i-th argument on, or -1. */
int64_t pl_state_argument_bytes(const pl_state_t *state, const pl_callee_t *known, int i);

/* The argument with this letter in what is known of a function; what is not there is OTHER. */
pl_value_t pl_state_argument(const pl_state_t *state, const pl_callee_t *known, char letter);

pl_value_t pl_state_slot(const pl_state_t *state, int64_t at);

static inline bool pl_value_is_address(pl_value_t v)
{
    return v.kind == PL_VALUE_STACK || v.kind == PL_VALUE_ADDRESS;
}

/* ADDRESS or OTHER if n is out of range. */
pl_value_t pl_value_make(pl_value_kind_t kind, int64_t n);
/* What a value is that is one or the other. */
pl_value_t pl_value_join(pl_value_t a, pl_value_t b);

/* What a load of `bytes` bytes gives. */
pl_value_t pl_state_loaded(const pl_state_t *s, const pl_operand_t *m, int bytes);

/* false: no room. */
bool pl_state_put_slot(pl_state_t *s, int64_t at, pl_value_t v, bool old);
void pl_state_remove_slot(pl_state_t *s, int i);
/* The slot is there, and was stored to after the last call. */
bool pl_state_is_fresh(const pl_state_t *s, int64_t at);
/* A value that the compiler keeps and no program can store to: a saved register, the frame's end.
 */
bool pl_state_is_fixed(pl_value_t v);

/* Bytes were overwritten with something else; of an address a part may be left. */
void pl_state_overwrite(pl_state_t *s, int64_t at, int64_t bytes);
/* Bytes between low and high may have been overwritten. */
void pl_state_disturb(pl_state_t *s, int64_t low, int64_t high);
bool pl_state_holds_addresses(const pl_state_t *s, int64_t low, int64_t high);

#endif
