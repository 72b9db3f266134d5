/* SPDX-License-Identifier: MIT
 * The code of a frame of a call chain, decoded and with its data flow. */
#ifndef PLIANT_INTERPOSE_LIVENESS_FRAME_H
#define PLIANT_INTERPOSE_LIVENESS_FRAME_H

#include "interpose/chain.h"
#include "interpose/liveness_flow.h"

/* The function of a frame, analysed. */
typedef struct pl_life_frame {
    uintptr_t ip, start, end; /* where control returns to, and the frame's extent */
    pl_code_t code;
    pl_flow_t whole; /* from the function's entry */
    pl_flow_t rest;  /* from ip */
    int at;          /* instruction at ip */
    int pad;         /* where control goes if the call throws, -1: it does not come back */
    bool above;      /* it forms addresses beyond the frame's end: of arguments in memory */
    bool given;      /* that call was given addresses of the frame */
    uintptr_t leak;  /* where an address of the frame may get to unknown places, 0: nowhere */
    const char *failed;
} pl_life_frame_t;

/* Frame i of the chain: owned by a small store of the latest ones, so valid until the next call.
 * What cannot be analysed has `failed` set. */
const pl_life_frame_t *pl_life_frame(const pl_chain_t *chain, int i);

/* Text for an address of code: function or module offset. Returns text. */
const char *pl_life_place(uintptr_t address, char *text, size_t size);

#endif
