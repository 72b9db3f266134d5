/* SPDX-License-Identifier: MIT
 * Which registers and stack slots of a function hold addresses of its frame, at each instruction:
 * forward data flow to a fixed point. Positions in the stack count from the frame's end (its CFA):
 * the return address is at -8. */
#ifndef PLIANT_INTERPOSE_LIVENESS_FLOW_H
#define PLIANT_INTERPOSE_LIVENESS_FLOW_H

#include "interpose/liveness_state.h"

typedef struct pl_flow {
    const pl_code_t *code;
    uintptr_t end;      /* address of the frame's end */
    pl_state_t *before; /* per instruction. Owned. */
    bool careful;       /* stores through any pointer may have changed what the frame keeps */
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

#endif
