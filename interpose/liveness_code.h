/* SPDX-License-Identifier: MIT
 * The machine code of one function, decoded: what each instruction does to general registers and
 * memory, and where control goes next. x86-64 only. What is not known for sure is given so that a
 * reader of it errs to "may be read". */
#ifndef PLIANT_INTERPOSE_LIVENESS_CODE_H
#define PLIANT_INTERPOSE_LIVENESS_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

/* General registers by their numbers in machine code. */
enum {
    PL_RAX,
    PL_RCX,
    PL_RDX,
    PL_RBX,
    PL_RSP,
    PL_RBP,
    PL_RSI,
    PL_RDI,
    PL_R8,
    PL_R9,
    PL_R10,
    PL_R11,
    PL_R12,
    PL_R13,
    PL_R14,
    PL_R15,
    PL_GPRS,
    PL_NO_REGISTER = -1,
    PL_RIP = -2,       /* an address in the module, or absolute */
    PL_SEGMENTED = -3, /* thread-local: never the stack's frames */
};
enum {
    PL_CALLEE_SAVED =
        1 << PL_RBX | 1 << PL_RBP | 1 << PL_R12 | 1 << PL_R13 | 1 << PL_R14 | 1 << PL_R15
};

typedef enum pl_op {
    PL_OP_OTHER, /* only the masks say what it does */
    PL_OP_MOVE,  /* dst = src */
    PL_OP_SET,   /* dst = imm */
    PL_OP_ADD,   /* dst += imm */
    PL_OP_AND,   /* dst &= imm */
    PL_OP_LEA,   /* dst = address of memory[0] */
    PL_OP_LOAD,  /* dst = the 8 bytes of memory[0] */
    PL_OP_STORE, /* memory[0] = src, 8 bytes */
    PL_OP_PUSH,  /* src, or memory[0], or a constant */
    PL_OP_POP,   /* into dst */
    PL_OP_LEAVE,
    PL_OP_CALL, /* next: where it returns to */
    PL_OP_JUMP, /* conditional or not */
    PL_OP_RETURN,
    PL_OP_STRING, /* rep movs, stos, ...: any length */
    PL_OP_STOP,   /* ud2, hlt: control does not go on */
    PL_OP_STRANGE /* not understood */
} pl_op_t;

typedef struct pl_operand {
    int8_t base, index; /* register or PL_NO_REGISTER, PL_RIP, PL_SEGMENTED */
    uint8_t scale;
    int64_t disp;   /* with PL_RIP: the address itself */
    uint16_t read;  /* bytes it may read, 0: none */
    uint16_t write; /* bytes it surely overwrites, 0: none or not known */
    bool may_write;
} pl_operand_t;

typedef struct pl_insn {
    uintptr_t address;
    uint8_t size;
    uint8_t op;
    int8_t dst, src;
    int64_t imm;
    uint16_t inputs;     /* registers whose value it uses, but to form addresses */
    uint16_t addresses;  /* registers it uses to form addresses */
    uint16_t outputs;    /* registers it changes, fully or in part */
    uint16_t overwrites; /* ... of which nothing is left of the old value */
    bool vectors;        /* it changes a vector or x87 register */
    uint8_t memory_count;
    pl_operand_t memory[2];
    uintptr_t target; /* of a direct call or jump, or the address of the pointer it goes through,
                       * 0: computed */
    bool through_pointer; /* target is where the address of the target is */
    bool conditional;
    const char *callee;            /* name of the external function it calls or jumps to, or NULL */
    const struct pl_callee *known; /* what is known of that, or NULL */
    int next, taken, pad; /* instructions that may follow, -1: none. pad: if the call throws */
} pl_insn_t;

enum { PL_CODE_PARTS = 4, PL_CODE_LIMIT = 20000 };

typedef struct pl_code_part {
    uintptr_t low, high;
    int *index;          /* of the instruction at each address, -1: none. Owned. */
    const uint8_t *pads; /* its table of landing pads, NULL: none */
} pl_code_part_t;

typedef struct pl_code {
    pl_code_part_t parts[PL_CODE_PARTS]; /* the first is the function, others are split off */
    int part_count;
    pl_insn_t *insns; /* owned; the first is the function's first */
    int count, room;
} pl_code_t;

/* Decodes all that can be reached from the entry of the function around `address`. On failure
 * *why (static storage) says what is not understood: PL_ERR_REFUSED, or PL_ERR_NOMEM. */
pl_status_t pl_code_read(uintptr_t address, pl_code_t *out, const char **why);
void pl_code_free(pl_code_t *code);

/* The instruction at address, or -1. */
int pl_code_at(const pl_code_t *code, uintptr_t address);

/* Decodes one instruction; its followers are not filled in. */
bool pl_code_decode(uintptr_t address, uintptr_t end, pl_insn_t *out);

/* The landing pad of a call in this table (an LSDA), 0: none. false: table not understood. */
bool pl_code_landing_pad(const uint8_t *table, uintptr_t start, uintptr_t call, uintptr_t *pad);

#endif
