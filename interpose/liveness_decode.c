/* SPDX-License-Identifier: MIT
 * One instruction. Capstone 4 misreports some accesses (stores of AVX, fstp, size of comisd), so
 * nothing is taken from its access flags: a memory operand is read unless the instruction is known
 * to do nothing but store, and a register operand is an input unless it is known not to be. */
#include "interpose/liveness_code.h"

#include <capstone/capstone.h>
#include <string.h>

static bool one_of(unsigned id, const uint16_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}
#define ONE_OF(id, list) one_of(id, list, sizeof list / sizeof *list)

/* The number of a general register that is `bytes` wide in this name, or PL_NO_REGISTER. */
static int register_number(unsigned reg, int *bytes)
{
    static const uint16_t names[4][PL_GPRS] = {
        {X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP, X86_REG_RSI,
         X86_REG_RDI, X86_REG_R8, X86_REG_R9, X86_REG_R10, X86_REG_R11, X86_REG_R12, X86_REG_R13,
         X86_REG_R14, X86_REG_R15},
        {X86_REG_EAX, X86_REG_ECX, X86_REG_EDX, X86_REG_EBX, X86_REG_ESP, X86_REG_EBP, X86_REG_ESI,
         X86_REG_EDI, X86_REG_R8D, X86_REG_R9D, X86_REG_R10D, X86_REG_R11D, X86_REG_R12D,
         X86_REG_R13D, X86_REG_R14D, X86_REG_R15D},
        {X86_REG_AX, X86_REG_CX, X86_REG_DX, X86_REG_BX, X86_REG_SP, X86_REG_BP, X86_REG_SI,
         X86_REG_DI, X86_REG_R8W, X86_REG_R9W, X86_REG_R10W, X86_REG_R11W, X86_REG_R12W,
         X86_REG_R13W, X86_REG_R14W, X86_REG_R15W},
        {X86_REG_AL, X86_REG_CL, X86_REG_DL, X86_REG_BL, X86_REG_SPL, X86_REG_BPL, X86_REG_SIL,
         X86_REG_DIL, X86_REG_R8B, X86_REG_R9B, X86_REG_R10B, X86_REG_R11B, X86_REG_R12B,
         X86_REG_R13B, X86_REG_R14B, X86_REG_R15B}};
    static const uint16_t high[] = {X86_REG_AH, X86_REG_CH, X86_REG_DH, X86_REG_BH};

    for (int w = 0; w < 4 && reg; w++)
        for (int i = 0; i < PL_GPRS; i++)
            if (names[w][i] == reg) {
                *bytes = 8 >> w;
                return i;
            }
    for (int i = 0; i < 4; i++)
        if (high[i] == reg) {
            *bytes = 1;
            return i;
        }
    return PL_NO_REGISTER;
}

static int vector_bytes(unsigned reg)
{
    if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM31)
        return 16;
    if (reg >= X86_REG_YMM0 && reg <= X86_REG_YMM31)
        return 32;
    if (reg >= X86_REG_ZMM0 && reg <= X86_REG_ZMM31)
        return 64;
    return 0;
}

/* The first operand is written without being an input. */
static bool pure_destination(const cs_x86 *x, unsigned id)
{
    static const uint16_t list[] = {
        X86_INS_MOV,       X86_INS_MOVABS,     X86_INS_LEA,       X86_INS_MOVZX,
        X86_INS_MOVSX,     X86_INS_MOVSXD,     X86_INS_POP,       X86_INS_CVTTSD2SI,
        X86_INS_CVTSD2SI,  X86_INS_CVTTSS2SI,  X86_INS_CVTSS2SI,  X86_INS_VCVTTSD2SI,
        X86_INS_VCVTSD2SI, X86_INS_VCVTTSS2SI, X86_INS_VCVTSS2SI, X86_INS_MOVD,
        X86_INS_MOVQ,      X86_INS_VMOVD,      X86_INS_VMOVQ,     X86_INS_MOVMSKPD,
        X86_INS_MOVMSKPS,  X86_INS_VMOVMSKPD,  X86_INS_VMOVMSKPS, X86_INS_PMOVMSKB,
        X86_INS_VPMOVMSKB, X86_INS_PEXTRD,     X86_INS_PEXTRQ,    X86_INS_VPEXTRD,
        X86_INS_VPEXTRQ,   X86_INS_POPCNT,     X86_INS_RORX,      X86_INS_SARX,
        X86_INS_SHLX,      X86_INS_SHRX,
    };
    return ONE_OF(id, list) || (id == X86_INS_IMUL && x->op_count == 3) ||
           (id >= X86_INS_SETAE && id <= X86_INS_SETS);
}

/* Nothing but a store to the first operand, if that is memory; returns the bytes it overwrites for
 * sure, 0: it does not store only, or may store less. */
static int pure_store(const cs_x86 *x, unsigned id)
{
    static const uint16_t scalar4[] = {X86_INS_MOVSS, X86_INS_MOVD, X86_INS_VMOVSS, X86_INS_VMOVD};
    static const uint16_t scalar8[] = {X86_INS_MOVSD,   X86_INS_MOVQ,    X86_INS_VMOVSD,
                                       X86_INS_VMOVQ,   X86_INS_MOVHPD,  X86_INS_MOVLPD,
                                       X86_INS_MOVHPS,  X86_INS_MOVLPS,  X86_INS_VMOVHPD,
                                       X86_INS_VMOVLPD, X86_INS_VMOVHPS, X86_INS_VMOVLPS};
    static const uint16_t whole[] = {
        X86_INS_MOVAPS,   X86_INS_MOVAPD,   X86_INS_MOVUPS,  X86_INS_MOVUPD,  X86_INS_MOVDQA,
        X86_INS_MOVDQU,   X86_INS_MOVNTPS,  X86_INS_MOVNTPD, X86_INS_MOVNTDQ, X86_INS_VMOVAPS,
        X86_INS_VMOVAPD,  X86_INS_VMOVUPS,  X86_INS_VMOVUPD, X86_INS_VMOVDQA, X86_INS_VMOVDQU,
        X86_INS_VMOVNTPS, X86_INS_VMOVNTPD, X86_INS_VMOVNTDQ};
    int vector = x->op_count == 2 && x->operands[1].type == X86_OP_REG
                     ? vector_bytes(x->operands[1].reg)
                     : 0;

    if (id == X86_INS_MOV)
        return x->operands[0].size;
    if (id >= X86_INS_SETAE && id <= X86_INS_SETS)
        return 1;
    if (x->op_count == 1 && (id == X86_INS_FSTP || id == X86_INS_FST))
        return x->operands[0].size < 10 ? x->operands[0].size : 10;
    if (x->op_count != 2 || x->operands[1].type != X86_OP_REG)
        return 0;
    if (ONE_OF(id, scalar4))
        return vector ? 4 : 0;
    if (ONE_OF(id, scalar8))
        return vector ? 8 : 0;
    return ONE_OF(id, whole) ? vector : 0;
}

/* How many bytes a memory operand may read: too many is safe. */
static int read_bytes(const cs_insn *in, int size)
{
    const cs_x86 *x = &in->detail->x86;
    size_t length = strlen(in->mnemonic);
    int most = size;

    bool vector = false;
    for (int i = 0; i < x->op_count; i++)
        if (x->operands[i].type == X86_OP_REG && vector_bytes(x->operands[i].reg)) {
            vector = true;
            int bytes = vector_bytes(x->operands[i].reg);
            most = bytes > most ? bytes : most;
        }
    const char *end = in->mnemonic + length;
    bool integers = in->mnemonic[0] == 'p' || !strncmp(in->mnemonic, "vp", 2); /* vpdpbusd */
    if (vector && (in->id == X86_INS_CVTSI2SD || in->id == X86_INS_CVTSI2SS ||
                   in->id == X86_INS_VCVTSI2SD || in->id == X86_INS_VCVTSI2SS))
        return size;
    static const uint16_t eight[] = {
        X86_INS_MOVQ,      X86_INS_VMOVQ,    X86_INS_MOVHPD,  X86_INS_MOVLPD,  X86_INS_VMOVHPD,
        X86_INS_VMOVLPD,   X86_INS_MOVHPS,   X86_INS_MOVLPS,  X86_INS_MOVDDUP, X86_INS_CVTSD2SS,
        X86_INS_VCVTSD2SS, X86_INS_CVTPS2PD, X86_INS_CVTDQ2PD};
    if (vector && ONE_OF(in->id, eight))
        return 8;
    if (vector && length > 4 && !integers && !strcmp(end - 2, "sd")) /* movsd, vfmadd213sd, ... */
        return 8;
    if (vector && length > 4 && !integers && !strcmp(end - 2, "ss"))
        return 4;
    return in->mnemonic[0] == 'f' && most >= 10 ? 16 : most;
}

static bool touches_no_memory(const cs_insn *in)
{
    static const uint16_t list[] = {X86_INS_NOP,         X86_INS_LEA,        X86_INS_PREFETCH,
                                    X86_INS_PREFETCHNTA, X86_INS_PREFETCHT0, X86_INS_PREFETCHT1,
                                    X86_INS_PREFETCHT2,  X86_INS_PREFETCHW};
    return ONE_OF(in->id, list);
}

/* Instructions that touch more memory or registers than their operands tell. */
static bool strange(const cs_insn *in)
{
    static const char *const names[] = {"fsave",    "fnsave",     "frstor",    "fxsave",  "fxrstor",
                                        "xsave",    "xrstor",     "fldenv",    "fnstenv", "enter",
                                        "int",      "iret",       "std",       "xbegin",  "vgather",
                                        "vpgather", "vscatter",   "vpscatter", "bts",     "btr",
                                        "btc",      "cmpxchg16b", "cmpxchg8b", "xlat",    "retf",
                                        "syscall",  "sysenter",   "loop",      "jrcxz",   "jecxz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strncmp(in->mnemonic, "lock ", 5) ? in->mnemonic : in->mnemonic + 5;
        if (strncmp(at, names[i], strlen(names[i])))
            continue;
        const cs_x86 *x = &in->detail->x86;
        bool bits = !strncmp(at, "bt", 2);
        if (!bits || (x->op_count && x->operands[0].type == X86_OP_MEM))
            return true;
    }
    /* bt with a register as bit number reaches beyond its operand */
    const cs_x86 *x = &in->detail->x86;
    return in->id == X86_INS_BT && x->op_count == 2 && x->operands[0].type == X86_OP_MEM &&
           x->operands[1].type == X86_OP_REG;
}

static bool add_memory(const cs_insn *in, const cs_x86_op *op, int position, pl_insn_t *out)
{
    pl_operand_t m = {.base = PL_NO_REGISTER, .index = PL_NO_REGISTER, .scale = 1};
    int bytes = 8;

    if (out->memory_count == 2)
        return false;
    if (op->mem.base == X86_REG_RIP) {
        m.base = PL_RIP;
        m.disp = (int64_t)in->address + in->size + op->mem.disp;
    } else {
        m.disp = op->mem.disp;
        m.base = (int8_t)register_number(op->mem.base, &bytes);
        if (op->mem.base && (m.base == PL_NO_REGISTER || bytes != 8))
            return false;
        m.index = (int8_t)register_number(op->mem.index, &bytes);
        if (op->mem.index && op->mem.index != X86_REG_RIZ && op->mem.index != X86_REG_EIZ &&
            (m.index == PL_NO_REGISTER || bytes != 8))
            return false; /* vector indices, 32-bit addresses */
        if (m.base == PL_NO_REGISTER && m.index == PL_NO_REGISTER)
            m.base = PL_RIP;
        m.scale = (uint8_t)op->mem.scale;
    }
    if (op->mem.segment == X86_REG_FS || op->mem.segment == X86_REG_GS)
        m.base = PL_SEGMENTED;
    if (m.base >= 0)
        out->addresses |= (uint16_t)(1u << m.base);
    if (m.index >= 0)
        out->addresses |= (uint16_t)(1u << m.index);
    if (!touches_no_memory(in)) {
        int store = position == 0 ? pure_store(&in->detail->x86, in->id) : 0;
        m.write = (uint16_t)store;
        m.read = store || strstr(in->mnemonic, "stos")
                     ? 0
                     : (uint16_t)read_bytes(in, op->size ? op->size : 64);
        /* cmp and test are the only frequent readers; to call any other a writer is safe */
        m.may_write = position == 0 && in->id != X86_INS_CMP && in->id != X86_INS_TEST &&
                      in->id != X86_INS_PUSH && in->id != X86_INS_CALL && in->id != X86_INS_JMP;
    }
    out->memory[out->memory_count++] = m;
    return true;
}

static void add_register(const cs_insn *in, unsigned reg, int position, pl_insn_t *out)
{
    const cs_x86 *x = &in->detail->x86;
    static const uint16_t readers[] = {X86_INS_CMP,  X86_INS_TEST, X86_INS_PUSH,
                                       X86_INS_CALL, X86_INS_JMP,  X86_INS_BT};
    int bytes = 8, number = register_number(reg, &bytes);

    if (number == PL_NO_REGISTER) {
        out->vectors |= position == 0;
        return;
    }
    uint16_t bit = (uint16_t)(1u << number);
    bool exchange = in->id == X86_INS_XCHG || in->id == X86_INS_XADD || in->id == X86_INS_MULX;
    if (position > 0 && !exchange) {
        out->inputs |= bit;
        return;
    }
    if (position > 0 || !pure_destination(x, in->id))
        out->inputs |= bit;
    if (!ONE_OF(in->id, readers)) {
        out->outputs |= bit;
        if (position == 0 && bytes >= 4 && pure_destination(x, in->id))
            out->overwrites |= bit;
    }
}

/* What Capstone knows of registers beyond the operands: rdx:rax of mul, rcx of shifts, ... */
static void add_implicit(const cs_insn *in, pl_insn_t *out)
{
    int bytes;
    for (int i = 0; i < in->detail->regs_read_count; i++) {
        int n = register_number(in->detail->regs_read[i], &bytes);
        if (n != PL_NO_REGISTER && n != PL_RSP)
            out->inputs |= (uint16_t)(1u << n);
    }
    for (int i = 0; i < in->detail->regs_write_count; i++) {
        int n = register_number(in->detail->regs_write[i], &bytes);
        if (n != PL_NO_REGISTER)
            out->outputs |= (uint16_t)(1u << n);
    }
}

static bool full(const cs_x86_op *op)
{
    int bytes = 0;
    return op->type == X86_OP_REG && register_number(op->reg, &bytes) != PL_NO_REGISTER &&
           bytes == 8;
}

static int number_of(const cs_x86_op *op)
{
    int bytes;
    return op->type == X86_OP_REG ? register_number(op->reg, &bytes) : PL_NO_REGISTER;
}

static void classify_move(const cs_insn *in, pl_insn_t *out)
{
    const cs_x86_op *a = &in->detail->x86.operands[0], *b = &in->detail->x86.operands[1];

    if (b->type == X86_OP_IMM && a->type == X86_OP_REG && a->size >= 4) {
        out->op = PL_OP_SET;
        out->imm = a->size == 4 ? (int64_t)(uint32_t)b->imm : b->imm;
    } else if (full(a) && full(b)) {
        out->op = PL_OP_MOVE;
    } else if (full(a) && b->type == X86_OP_MEM) {
        out->op = PL_OP_LOAD;
    } else if (a->type == X86_OP_MEM && full(b)) {
        out->op = PL_OP_STORE;
    }
    out->dst = (int8_t)number_of(a);
    out->src = (int8_t)number_of(b);
}

static void classify_arithmetic(const cs_insn *in, pl_insn_t *out)
{
    const cs_x86 *x = &in->detail->x86;
    const cs_x86_op *a = &x->operands[0], *b = &x->operands[1];

    out->dst = (int8_t)number_of(a);
    if (x->op_count != 2 || out->dst == PL_NO_REGISTER)
        return;
    bool zero = in->id == X86_INS_XOR || in->id == X86_INS_SUB;
    if (zero && b->type == X86_OP_REG && a->reg == b->reg && a->size >= 4) {
        out->op = PL_OP_SET;
        out->imm = 0;
        out->inputs = 0;
        out->overwrites |= (uint16_t)(1u << out->dst);
    } else if (b->type == X86_OP_IMM && full(a) && in->id != X86_INS_XOR) {
        out->op = in->id == X86_INS_AND ? PL_OP_AND : PL_OP_ADD;
        out->imm = in->id == X86_INS_SUB ? -b->imm : b->imm;
    }
}

static void classify_transfer(const cs_insn *in, bool call, pl_insn_t *out)
{
    const cs_x86_op *a = &in->detail->x86.operands[0];

    out->op = call ? PL_OP_CALL : PL_OP_JUMP;
    out->conditional = !call && in->id != X86_INS_JMP;
    if (a->type == X86_OP_IMM) {
        out->target = (uintptr_t)a->imm;
    } else if (a->type == X86_OP_MEM && out->memory[0].base == PL_RIP &&
               out->memory[0].index == PL_NO_REGISTER) {
        out->target = (uintptr_t)out->memory[0].disp;
        out->through_pointer = true;
    }
}

static void classify(const cs_insn *in, pl_insn_t *out)
{
    const cs_x86 *x = &in->detail->x86;
    bool jump = false;

    for (int i = 0; i < in->detail->groups_count; i++)
        jump |= in->detail->groups[i] == X86_GRP_JUMP;
    switch (in->id) {
    case X86_INS_MOV:
    case X86_INS_MOVABS:
        classify_move(in, out);
        return;
    case X86_INS_ADD:
    case X86_INS_SUB:
    case X86_INS_AND:
    case X86_INS_XOR:
        classify_arithmetic(in, out);
        return;
    case X86_INS_LEA:
        out->op = full(&x->operands[0]) ? PL_OP_LEA : PL_OP_OTHER;
        out->dst = (int8_t)number_of(&x->operands[0]);
        if (out->op == PL_OP_OTHER)
            out->inputs |= out->addresses;
        return;
    case X86_INS_PUSH:
        out->op = x->operands[0].size == 8 || x->operands[0].type == X86_OP_IMM ? PL_OP_PUSH
                                                                                : PL_OP_STRANGE;
        out->src = (int8_t)number_of(&x->operands[0]);
        return;
    case X86_INS_POP:
        out->op = full(&x->operands[0]) ? PL_OP_POP : PL_OP_STRANGE;
        out->dst = (int8_t)number_of(&x->operands[0]);
        return;
    case X86_INS_LEAVE:
        out->op = PL_OP_LEAVE;
        return;
    case X86_INS_CALL:
        classify_transfer(in, true, out);
        return;
    case X86_INS_RET:
        out->op = x->op_count ? PL_OP_STRANGE : PL_OP_RETURN;
        return;
    case X86_INS_UD2:
    case X86_INS_HLT:
        out->op = PL_OP_STOP;
        return;
    default:
        break;
    }
    if (jump)
        classify_transfer(in, false, out);
    else if (x->op_count == 2 && x->operands[0].type == X86_OP_MEM &&
             x->operands[1].type == X86_OP_MEM)
        out->op = PL_OP_STRING;
    else if (strstr(in->mnemonic, "stos") || strstr(in->mnemonic, "lods") ||
             strstr(in->mnemonic, "scas") || !strncmp(in->mnemonic, "rep", 3))
        out->op = PL_OP_STRING;
}

bool pl_code_decode(uintptr_t address, uintptr_t end, pl_insn_t *out)
{
    static csh handle;
    static cs_insn *in;

    if (!in) {
        if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
            return false;
        cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
        in = cs_malloc(handle);
        if (!in)
            return false;
    }
    const uint8_t *code = (const uint8_t *)address;
    size_t left = end - address;
    uint64_t at = address;
    if (!cs_disasm_iter(handle, &code, &left, &at, in))
        return false;

    pl_insn_t i = {.address = address,
                   .size = (uint8_t)in->size,
                   .dst = PL_NO_REGISTER,
                   .src = PL_NO_REGISTER,
                   .next = -1,
                   .taken = -1,
                   .pad = -1};
    const cs_x86 *x = &in->detail->x86;
    bool known = !strange(in);
    for (int k = 0; k < x->op_count; k++) {
        if (x->operands[k].type == X86_OP_MEM)
            known &= add_memory(in, &x->operands[k], k, &i);
        else if (x->operands[k].type == X86_OP_REG)
            add_register(in, x->operands[k].reg, k, &i);
    }
    add_implicit(in, &i);
    classify(in, &i);
    if (!known)
        i.op = PL_OP_STRANGE;
    *out = i;
    return true;
}
