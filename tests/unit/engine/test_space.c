/* SPDX-License-Identifier: MIT
 * Pointers become places and places become pointers, in another address space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine.h"
#include "interpose/heap.h"
#include "interpose/space.h"

enum { OBJECTS = 3 };

static char *source[OBJECTS], *target[OBJECTS]; /* object 2 is not in the target */
static char *freed;
static pl_space_t from, to;
static int global;

static pl_place_t place(char *address, int64_t bytes, int object)
{
    return (pl_place_t){(uintptr_t)address, bytes, object};
}

static int make_spaces(void **state)
{
    char mark;
    (void)state;
    pl_chain_top = (uintptr_t)&mark + 4096;
    source[0] = pl_heap_allocate(100, 16, 1);
    source[1] = pl_heap_allocate(64, 16, 2);
    source[2] = pl_heap_allocate(32, 16, 3);
    freed = pl_heap_allocate(5000, 16, 4);
    pl_heap_free(freed);
    target[1] = pl_heap_allocate(64, 16, 2);
    target[0] = pl_heap_allocate(300, 16, 1); /* another size */
    pl_place_t a[] = {place(source[0], 100, 0), place(source[1], 64, 1), place(source[2], 32, 2)};
    pl_place_t b[] = {place(target[0], 300, 0), place(target[1], 64, 1)};
    assert_int_equal(pl_space_make(a, 3, OBJECTS, (uintptr_t)&mark, &from), PL_OK);
    assert_int_equal(pl_space_make(b, 2, OBJECTS, (uintptr_t)&mark, &to), PL_OK);
    return 0;
}

static int free_spaces(void **state)
{
    (void)state;
    pl_space_free(&from);
    pl_space_free(&to);
    return 0;
}

static pl_word_t word(const void *pointer)
{
    return pl_space_word(&from, (uint64_t)(uintptr_t)pointer);
}

static char *translated(const void *pointer)
{
    uint64_t bits = 1;
    assert_true(pl_space_bits(&to, word(pointer), &bits));
    return (char *)(uintptr_t)bits;
}

static void objects_are_found_where_the_target_has_them(void **state)
{
    (void)state;
    assert_int_equal(word(source[0] + 17).kind, PL_WORD_OBJECT);
    assert_int_equal(pl_word_object(word(source[1] + 8)), 1);
    assert_int_equal(pl_word_offset(word(source[1] + 8)), 8);
    assert_ptr_equal(translated(source[0]), target[0]);
    assert_ptr_equal(translated(source[0] + 17), target[0] + 17);
    assert_ptr_equal(translated(source[1] + 63), target[1] + 63);
}

static void the_end_stays_the_end(void **state)
{
    (void)state;
    assert_int_equal(word(source[0] + 100).kind, PL_WORD_END);
    assert_ptr_equal(translated(source[0] + 100), target[0] + 300);
}

static void an_object_that_is_not_there_has_no_bits(void **state)
{
    uint64_t bits = 7;
    (void)state;
    assert_false(pl_space_bits(&to, word(source[2]), &bits));
    assert_int_equal(bits, 7);
}

static void freed_memory_is_dangling(void **state)
{
    (void)state;
    assert_int_equal(word(freed).kind, PL_WORD_DANGLING);
    assert_int_equal(word(freed + 100).kind, PL_WORD_DANGLING);
}

static void stack_is_measured_from_its_top(void **state)
{
    (void)state;
    const char *at = (const char *)from.stack + 40;
    assert_int_equal(word(at).kind, PL_WORD_STACK);
    assert_int_equal(word(at).value, pl_chain_top - (uintptr_t)at);
    assert_ptr_equal(translated(at), at);
    assert_int_equal(word((const char *)from.stack - 64).kind, PL_WORD_DANGLING);
}

static void code_and_data_belong_to_modules(void **state)
{
    (void)state;
    assert_int_equal(word(&global).kind, PL_WORD_MODULE);
    assert_int_equal(word((void *)make_spaces).kind, PL_WORD_MODULE);
    assert_ptr_equal(translated(&global), &global);
    assert_int_not_equal(word(&global).value, word((void *)malloc).value);
}

static void memory_of_others_is_foreign(void **state)
{
    (void)state;
    char *own = malloc(100); /* made by a library as far as the engine knows: not in its arenas */
    assert_int_equal(word(own).kind, PL_WORD_FOREIGN);
    uint64_t bits;
    assert_false(pl_space_bits(&to, word(own), &bits));
    free(own);
}

static void numbers_are_values(void **state)
{
    static const uint64_t numbers[] = {
        0, 1, 0xffff, 0x0000123400005678, ~0ull, 0x3ff0000000000000 /* 1.0 */, 0x8000000000000000};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        pl_word_t w = pl_space_word(&from, numbers[i]);
        uint64_t bits = ~numbers[i];
        assert_int_equal(w.kind, PL_WORD_VALUE);
        assert_true(pl_space_bits(&to, w, &bits));
        assert_int_equal(bits, numbers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_found_where_the_target_has_them),
        cmocka_unit_test(the_end_stays_the_end),
        cmocka_unit_test(an_object_that_is_not_there_has_no_bits),
        cmocka_unit_test(freed_memory_is_dangling),
        cmocka_unit_test(stack_is_measured_from_its_top),
        cmocka_unit_test(code_and_data_belong_to_modules),
        cmocka_unit_test(memory_of_others_is_foreign),
        cmocka_unit_test(numbers_are_values),
    };
    engine_setup();
    return cmocka_run_group_tests(tests, make_spaces, free_spaces);
}
