/* SPDX-License-Identifier: MIT */
#include "interpose/liveness_callee.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

/* Blocking MPI calls keep no buffer and look at no memory but their buffers, unless absolute
 * addresses are involved, which come from MPI_Get_address: not in this list, so such a program's
 * variables count as known elsewhere. leaves_memory is therefore false for all that moves data:
 * they may complete earlier requests or read through such types. */
static const pl_callee_t known[] = {
    {"MPI_Allreduce", "swct--", false, false, false},
    {"MPI_Reduce", "soct--", false, false, false},
    {"MPI_Bcast", "sct---", false, false, false},
    {"MPI_Scan", "swct--", false, false, false},
    {"MPI_Exscan", "soct--", false, false, false},
    {"MPI_Send", "sct---", false, false, false},
    {"MPI_Recv", "o-----", false, false, false},
    {"MPI_Sendrecv", "sct--o", false, false, false},
    {"MPI_Gather", "scto--", false, false, false},
    {"MPI_Allgather", "scto--", false, false, false},
    {"MPI_Gatherv", "sctorr", false, false, false},
    {"MPI_Allgatherv", "sctorr", false, false, false},
    {"MPI_Scatter", "scto--", false, false, false},
    {"MPI_Alltoall", "r--r--", false, false, false},
    {"MPI_Isend", "k-----", false, false, false}, /* where the request goes is not kept */
    {"MPI_Irecv", "k-----", false, false, false},
    {"MPI_Wait", "qo", false, false, false},
    {"MPI_Waitall", "nqo", false, false, false},
    {"MPI_Barrier", "", false, false, false},
    {"MPI_Init", "rr", false, false, false},
    {"MPI_Init_thread", "rr-o", false, false, false},
    {"MPI_Initialized", "i", true, false, false},
    {"MPI_Finalized", "i", true, false, false},
    {"MPI_Finalize", "", false, false, false},
    {"MPI_Comm_rank", "-i", true, false, false},
    {"MPI_Comm_size", "-i", true, false, false},
    {"MPI_Comm_split", "---i", false, false, false},
    {"MPI_Comm_dup", "-i", false, false, false},
    {"MPI_Comm_free", "r", false, false, false},
    {"MPI_Comm_group", "-i", true, false, false},
    {"MPI_Comm_create", "--i", false, false, false},
    {"MPI_Comm_create_keyval", "--i-", true, false, false},
    {"MPI_Comm_free_keyval", "r", true, false, false},
    {"MPI_Comm_get_attr", "--oi", true, false, false},
    {"MPI_Group_incl", "--ri", true, false, false},
    {"MPI_Group_free", "r", true, false, false},
    {"MPI_Cart_create", "--rr-i", false, false, false},
    {"MPI_Cart_shift", "---ii", true, false, false},
    {"MPI_Cart_coords", "---o", true, false, false},
    {"MPI_Cart_rank", "-ri", true, false, false},
    {"MPI_Dims_create", "--r", true, false, false},
    {"MPI_Get_processor_name", "oo", true, false, false},
    {"MPI_Get_count", "r-i", true, false, false},
    {"MPI_Type_size", "-i", true, false, false},
    {"MPI_Type_commit", "r", true, false, false},
    {"MPI_Type_free", "r", true, false, false},
    {"MPI_Type_contiguous", "--i", true, false, false},
    {"MPI_Type_vector", "----i", true, false, false},
    {"MPI_Op_free", "r", true, false, false},
    {"MPI_Wtime", "", true, false, false},
    {"MPI_Wtick", "", true, false, false},
    {"MPI_Abort", "", false, true, false},
    {"exit", "", false, true, false},
    {"_exit", "", false, true, false},
    {"abort", "", false, true, false},
    {"__assert_fail", "rr-r", false, true, false},
    {"__stack_chk_fail", "", false, true, false},
    {"printf", "rrrrrr", false, false, false},
    {"fprintf", "rrrrrr", false, false, false},
    {"__printf_chk", "-rrrrr", false, false, false},
    {"__fprintf_chk", "r-rrrr", false, false, false},
    {"puts", "r", true, false, false},
    {"putchar", "", true, false, false},
    {"fputs", "rr", false, false, false},
    {"fputc", "-r", false, false, false},
    {"fputs_unlocked", "rr", false, false, false},
    {"fwrite", "r--r", false, false, false},
    {"fopen", "rr", true, false, false},
    {"fclose", "r", false, false, false},
    {"fflush", "r", false, false, false},
    {"snprintf", "o-rrrr", false, false, false},
    {"sprintf", "orrrrr", false, false, false},
    {"__snprintf_chk", "o---rr", false, false, false},
    {"perror", "r", true, false, false},
    {"malloc", "", true, false, false},
    {"calloc", "", true, false, false},
    {"free", "", true, false, false},
    {"memset", "o", true, false, true},
    {"memcpy", "or", false, false, true},
    {"memmove", "or", false, false, true},
    {"strlen", "r", true, false, false},
    {"strcmp", "rr", true, false, false},
    {"strncmp", "rr", true, false, false},
    {"atoi", "r", true, false, false},
    {"atof", "r", true, false, false},
    {"atol", "r", true, false, false},
    {"time", "o", true, false, false},
    {"gettimeofday", "o-", true, false, false},
    {"clock_gettime", "-o", true, false, false},
    {"nanosleep", "rr", true, false, false},
    {"usleep", "", true, false, false},
    {"rand", "", true, false, false},
    {"srand", "", true, false, false},
    {"drand48", "", true, false, false},
    {"srand48", "", true, false, false},
    {"random", "", true, false, false},
    {"sqrt", "", true, false, false},
    {"exp", "", true, false, false},
    {"log", "", true, false, false},
    {"sin", "", true, false, false},
    {"cos", "", true, false, false},
    {"tan", "", true, false, false},
    {"pow", "", true, false, false},
    {"fabs", "", true, false, false},
    {"floor", "", true, false, false},
    {"ceil", "", true, false, false},
    {"fmod", "", true, false, false},
    {"atan2", "", true, false, false},
};

const int8_t pl_argument_registers[6] = {PL_RDI, PL_RSI, PL_RDX, PL_RCX, PL_R8, PL_R9};

const pl_callee_t *pl_callee_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return &known[i];
    return NULL;
}

bool pl_callee_returns_twice(const char *name)
{
    return strstr(name, "setjmp") || strstr(name, "longjmp") || strstr(name, "context") ||
           !strcmp(name, "vfork");
}

/* The symbol whose address the loader puts at `slot`. */
static const char *symbol_at(const struct link_map *map, uintptr_t slot)
{
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};

    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)d->d_un.d_ptr;
        else if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
        else if (d->d_tag == DT_JMPREL)
            tables[0] = (const ElfW(Rela) *)d->d_un.d_ptr;
        else if (d->d_tag == DT_PLTRELSZ)
            bytes[0] = d->d_un.d_val;
        else if (d->d_tag == DT_RELA)
            tables[1] = (const ElfW(Rela) *)d->d_un.d_ptr;
        else if (d->d_tag == DT_RELASZ)
            bytes[1] = d->d_un.d_val;
    }
    for (int t = 0; t < 2 && symbols && strings; t++)
        for (size_t i = 0; tables[t] && i < bytes[t] / sizeof *tables[t]; i++) {
            const ElfW(Rela) *r = &tables[t][i];
            unsigned long type = ELF64_R_TYPE(r->r_info);
            if (map->l_addr + r->r_offset == slot &&
                (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT))
                return strings + symbols[ELF64_R_SYM(r->r_info)].st_name;
        }
    return NULL;
}

const char *pl_callee_name(const pl_insn_t *call)
{
    enum { STUB = 16 };
    uintptr_t slot = call->through_pointer ? call->target : 0;
    uintptr_t at = call->target;
    Dl_info info;
    struct link_map *map = NULL;

    if (!call->target || !dladdr1((void *)call->address, &info, (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    for (int i = 0; i < 2 && !slot; i++) { /* a stub is endbr64 at most, and the jump */
        pl_insn_t in;
        if (!pl_code_decode(at, at + STUB, &in))
            return NULL;
        if (in.op == PL_OP_JUMP && !in.conditional && in.through_pointer)
            slot = in.target;
        else if (in.op != PL_OP_OTHER || in.outputs || in.memory_count)
            return NULL;
        at += in.size;
    }
    return slot && map ? symbol_at(map, slot) : NULL;
}
