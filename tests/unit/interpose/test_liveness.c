/* SPDX-License-Identifier: MIT
 * Asks at every MPI call of the programs in test_liveness_programs.c for each word of all frames
 * and each register, overwrites those that are said to be dead, and compares the programs' results
 * with those of undisturbed runs: a wrong "dead" shows as a wrong result or a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/liveness.h"
#include "interpose/modules.h"
#include "tests/unit/interpose/test_liveness_programs.h"

struct frame {
    uint64_t pad, r15, r14, r13, r12, rbx, rbp, ret;
};

int pl_call_main(int argc, char **argv, char **envp, int (*main)(int, char **, char **));

/* ---- of modules.c: everything but the programs is the library ---- */

static uintptr_t programs_base;

static uintptr_t base_of(uintptr_t address)
{
    Dl_info info;
    return dladdr((void *)address, &info) ? (uintptr_t)info.dli_fbase : 0;
}

bool pl_module_is_self(uintptr_t address)
{
    return base_of(address) != programs_base;
}

const pl_module_t *pl_module_of(uintptr_t address)
{
    (void)address;
    return NULL;
}

/* ---- the programs' other functions ---- */

static int64_t *kept;
static struct {
    int64_t pad[3], *pointer;
} * kept_box;

int opaque_number(int number)
{
    return number;
}

int64_t opaque_magic(int live)
{
    return live ? MAGIC_LIVE : MAGIC_DEAD;
}

int opaque_look(int64_t *at, int use)
{
    return use ? (int)(*at % 1009) : 0;
}

void opaque_keep(int64_t *at)
{
    kept = at;
}

int opaque_kept(void)
{
    return (int)(*kept % 1009);
}

void opaque_box(void *box)
{
    kept_box = box;
}

int opaque_in_box(void)
{
    return (int)(*kept_box->pointer % 1009);
}

int opaque_second(double *first)
{
    return (int)(((int64_t *)first)[1] % 1009) + (int)*first;
}

int opaque_downwards(int64_t *end, int count)
{
    int sum = 0;
    while (count-- > 0)
        sum = 3 * sum + (int)(*--end % 1009);
    return sum;
}

/* ---- at a call ---- */

static bool disturb, talkative;
static int places[3]; /* words and registers, by their life */
static bool magic_live, magic_dead_found, magic_dead_wrong;

static void judge(uint64_t word, pl_life_t life)
{
    places[life]++;
    if (word == (uint64_t)MAGIC_LIVE && life != PL_LIFE_DEAD)
        magic_live = true;
    if (word == (uint64_t)MAGIC_DEAD) {
        magic_dead_found = true;
        magic_dead_wrong |= life != PL_LIFE_DEAD;
    }
}

static void try_frame(const pl_chain_t *chain, int i)
{
    uintptr_t start = i ? chain->slot[i] + 8 : chain->stack;
    uintptr_t end = i + 1 < chain->depth ? chain->slot[i + 1] + 8 : pl_chain_top;
    char why[256];

    for (uintptr_t at = start; at < end; at += 8) {
        uint64_t word, wrong = 0x7ff5bad0bad0bad0;
        memcpy(&word, (void *)at, 8);
        pl_life_t life = pl_life_of_stack(chain, i, (int64_t)(end - at), 8, why, sizeof why);
        judge(word, life);
        if (talkative)
            print_message("  frame %d -0x%-4lx %016lx %d %s\n", i, (long)(end - at), (long)word,
                          (int)life, why);
        for (int k = 0; k < 8 && disturb; k++)
            if (pl_life_of_stack(chain, i, (int64_t)(end - at) - k, 1, why, 0) == PL_LIFE_DEAD)
                memcpy((char *)at + k, (char *)&wrong + k, 1);
    }
}

void arrive(struct frame *f);
void arrive(struct frame *f)
{
    const pl_chain_t *chain = pl_chain_find((void *)f->ret, f + 1);
    uint64_t *registers = &f->r15;
    pl_life_t life[6];
    char why[256];

    assert_true(chain->complete);
    for (int r = 0; r < 6; r++) {
        life[r] = pl_life_of_register(chain, r, why, sizeof why);
        judge(registers[r], life[r]);
        if (talkative)
            print_message("  register %d %016lx %d %s\n", r, (long)registers[r], (int)life[r], why);
    }
    for (int i = 0; i < chain->depth; i++)
        try_frame(chain, i);
    for (int r = 0; r < 6 && disturb; r++)
        if (life[r] == PL_LIFE_DEAD)
            registers[r] = 0x7ff5bad1bad1bad1;
}

int reduce(const double *from, double *to, int count);
int reduce(const double *from, double *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = from == MPI_IN_PLACE ? to[i] : from[i];
    return 0;
}

/* Like the stubs of libpliant: the callee-saved registers can be seen and changed. */
__asm__(".globl MPI_Allreduce\n"
        ".type MPI_Allreduce, @function\n"
        "MPI_Allreduce:\n"
        ".cfi_startproc\n"
        "pushq %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset 6, -16\n"
        "pushq %rbx\n .cfi_def_cfa_offset 24\n .cfi_offset 3, -24\n"
        "pushq %r12\n .cfi_def_cfa_offset 32\n .cfi_offset 12, -32\n"
        "pushq %r13\n .cfi_def_cfa_offset 40\n .cfi_offset 13, -40\n"
        "pushq %r14\n .cfi_def_cfa_offset 48\n .cfi_offset 14, -48\n"
        "pushq %r15\n .cfi_def_cfa_offset 56\n .cfi_offset 15, -56\n"
        "pushq $0\n .cfi_def_cfa_offset 64\n"
        "call reduce\n"
        "movq %rsp, %rdi\n"
        "call arrive\n"
        "popq %rax\n .cfi_def_cfa_offset 56\n"
        "popq %r15\n .cfi_def_cfa_offset 48\n .cfi_restore 15\n"
        "popq %r14\n .cfi_def_cfa_offset 40\n .cfi_restore 14\n"
        "popq %r13\n .cfi_def_cfa_offset 32\n .cfi_restore 13\n"
        "popq %r12\n .cfi_def_cfa_offset 24\n .cfi_restore 12\n"
        "popq %rbx\n .cfi_def_cfa_offset 16\n .cfi_restore 3\n"
        "popq %rbp\n .cfi_def_cfa_offset 8\n .cfi_restore 6\n"
        "xorl %eax, %eax\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size MPI_Allreduce, .-MPI_Allreduce\n");

/* ---- the tests ---- */

static int run(const test_program_t *p, bool with_garbage)
{
    disturb = with_garbage;
    memset(places, 0, sizeof places);
    magic_live = magic_dead_found = magic_dead_wrong = false;
    return pl_call_main(0, NULL, NULL, (int (*)(int, char **, char **))(void (*)(void))p->run);
}

static const char *library;

static void no_wrong_dead(void **state)
{
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle)
        fail_msg("%s", dlerror());
    const test_program_t *p = dlsym(handle, "test_programs");
    int dead = 0, all = 0;

    (void)state;
    assert_non_null(p);
    programs_base = base_of((uintptr_t)p);
    for (; p->name; p++) {
        if (talkative)
            print_message("%s\n", p->name);
        int right = run(p, false);
        print_message("%-16s dead %5d live %5d unknown %5d\n", p->name, places[PL_LIFE_DEAD],
                      places[PL_LIFE_LIVE], places[PL_LIFE_UNKNOWN]);
        if ((p->expect & TEST_LIVE) && !magic_live)
            fail_msg("%s: the live value is nowhere live", p->name);
        if ((p->expect & TEST_DEAD) && (!magic_dead_found || magic_dead_wrong))
            fail_msg("%s: the dead value is %s", p->name, magic_dead_found ? "live" : "not there");
        dead += places[PL_LIFE_DEAD];
        all += places[PL_LIFE_DEAD] + places[PL_LIFE_LIVE] + places[PL_LIFE_UNKNOWN];
        int disturbed = run(p, true);
        if (right != disturbed)
            fail_msg("%s: %d, but %d when dead words are overwritten", p->name, right, disturbed);
    }
    assert_in_range(dead, all / 10, all);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_wrong_dead)};
    library = argc > 1 ? argv[1] : "";
    talkative = argc > 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
