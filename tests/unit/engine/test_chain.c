/* SPDX-License-Identifier: MIT
 * A chain names the place of a call: the same on every visit and in every process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"

static pl_chain_t *seen[8];

/* What a program does: one function that several places call. */
__attribute__((noinline)) static pl_chain_t *global_sum(void)
{
    pl_chain_t *chain = engine_chain();
    __asm__ volatile(""); /* no tail call */
    return chain;
}

__attribute__((noinline)) static pl_chain_t *solve(int place)
{
    pl_chain_t *chain = place ? global_sum() : NULL;
    if (!chain)
        chain = global_sum();
    __asm__ volatile("");
    return chain;
}

__attribute__((noinline)) static pl_chain_t *descend(int depth)
{
    pl_chain_t *chain = depth ? descend(depth - 1) : global_sum();
    __asm__ volatile("");
    return chain;
}

static int call_places(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv, (void)envp;
    for (volatile int i = 0; i < 3; i++) { /* volatile: the loop is not unrolled */
        pl_chain_t *chain = solve(0);
        seen[0] = i == 0 || chain == seen[0] ? chain : NULL;
    }
    seen[1] = solve(1);
    seen[2] = solve(1);
    seen[3] = descend(3);
    seen[4] = descend(4);
    seen[5] = descend(2 * PL_CHAIN_DEPTH);
    seen[6] = solve(0);
    for (int i = 0; i < 7; i++)
        if (seen[i] && seen[i]->complete && seen[i]->depth < 1)
            return 1;
    return 0;
}

static int find_all(void **state)
{
    (void)state;
    engine_call(call_places);
    return 0;
}

static void visits_of_one_place_have_one_record(void **state)
{
    (void)state;
    assert_non_null(seen[0]);
    assert_true(seen[0]->complete);
}

static void places_differ(void **state)
{
    (void)state;
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < i; k++) {
            assert_ptr_not_equal(seen[i], seen[k]);
            assert_int_not_equal(seen[i]->hash, seen[k]->hash);
        }
}

static void depth_counts_the_frames_up_to_main(void **state)
{
    (void)state;
    assert_true(seen[3]->complete);
    assert_int_equal(seen[4]->depth, seen[3]->depth + 1);
    assert_int_equal(seen[3]->depth, seen[0]->depth + 3);
    for (int i = 0; i < seen[4]->depth; i++)
        assert_true(seen[4]->slot[i] < pl_chain_top);
}

static void a_chain_too_deep_is_not_complete(void **state)
{
    (void)state;
    assert_int_equal(seen[5]->depth, PL_CHAIN_DEPTH);
    assert_false(seen[5]->complete);
}

static bool verified[2];

static int verify(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv, (void)envp;
    verified[0] = engine_verify(false);
    verified[1] = engine_verify(true);
    return 0;
}

static void a_fresh_walk_confirms_a_chain(void **state)
{
    (void)state;
    engine_call(verify);
    assert_true(verified[0]);
    assert_false(verified[1]);
}

static void description_names_functions_or_offsets(void **state)
{
    char text[200], small[8];
    (void)state;
    pl_chain_describe(seen[0], text, sizeof text);
    assert_non_null(strstr(text, "0x"));
    assert_non_null(strstr(text, " < "));
    pl_chain_describe(seen[0], small, sizeof small);
    assert_true(strlen(small) < sizeof small);
}

/* Addresses are randomised: the loader puts this program elsewhere each time. */
static void another_process_finds_the_same_hashes(void **state)
{
    char command[4200], path[4096] = "";
    unsigned long hash;
    (void)state;
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    snprintf(command, sizeof command, "'%s' print", path);
    FILE *other = popen(command, "r");
    assert_non_null(other);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(fscanf(other, "%lx", &hash), 1);
        assert_int_equal(hash, seen[i]->hash);
    }
    assert_int_equal(pclose(other), 0);
}

static int print_hashes(void)
{
    find_all(NULL);
    for (int i = 0; i < 7; i++)
        printf("%lx\n", seen[i] ? (unsigned long)seen[i]->hash : 0);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(visits_of_one_place_have_one_record),
        cmocka_unit_test(places_differ),
        cmocka_unit_test(depth_counts_the_frames_up_to_main),
        cmocka_unit_test(a_chain_too_deep_is_not_complete),
        cmocka_unit_test(a_fresh_walk_confirms_a_chain),
        cmocka_unit_test(description_names_functions_or_offsets),
        cmocka_unit_test(another_process_finds_the_same_hashes),
    };
    engine_setup();
    if (argc == 2 && !strcmp(argv[1], "print"))
        return print_hashes();
    return cmocka_run_group_tests(tests, find_all, NULL);
}
