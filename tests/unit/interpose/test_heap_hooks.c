/* SPDX-License-Identifier: MIT
 * malloc and its kind as the program calls them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/heap.h"

/* Sizes and pointers the compiler cannot reason about. */
static volatile size_t huge = SIZE_MAX / 2;

/* Not inlined: the compiler must not see that a fresh block is looked at. */
__attribute__((noinline)) static pl_block_t block_of(void *p)
{
    pl_block_t block = {0};
    assert_true(pl_heap_find(p, &block));
    return block;
}

static void program_is_told_from_libc(void **state)
{
    (void)state;
    assert_true(pl_heap_is_hooked());
    char *p = malloc(100);
    assert_true(pl_heap_owns(p));
    assert_int_equal(malloc_usable_size(p), 100);
    FILE *file = fopen("/proc/self/stat", "r");
    assert_false(pl_heap_owns(file));
    fclose(file);
    char *path = realpath("/usr/../proc", NULL);
    assert_false(pl_heap_owns(path));
    path = realloc(path, 1000);
    assert_true(pl_heap_owns(path));
    assert_string_equal(path, "/proc");
    free(path);
    free(p);
}

static void libc_may_grow_a_block_of_the_program(void **state)
{
    (void)state;
    size_t room = 1;
    char *line = malloc(room), *made = NULL;
    uint64_t chain = block_of(line).chain;
    FILE *file = fopen("/proc/self/status", "r");
    assert_true(getdelim(&line, &room, -1, file) > 100);
    assert_int_equal(block_of(line).size, room);
    assert_int_equal(block_of(line).chain, chain);
    rewind(file);
    room = 0;
    assert_true(getline(&made, &room, file) > 0);
    assert_int_equal(block_of(made).size, room);
    fclose(file);
    free(line);
    free(made);
}

/* One call place, which the compiler neither repeats nor turns into a jump. */
__attribute__((noinline)) static void *make_here(void)
{
    void *p = malloc(8);
    __asm__ volatile("" : "+r"(p));
    return p;
}

static void call_places_have_their_own_chains(void **state)
{
    void *p[3];
    (void)state;
    for (int i = 0; i < 2; i++)
        p[i] = make_here();
    p[2] = malloc(8);
    assert_int_equal(block_of(p[0]).chain, block_of(p[1]).chain);
    assert_int_not_equal(block_of(p[0]).chain, block_of(p[2]).chain);
    for (int i = 0; i < 3; i++)
        free(p[i]);
}

static void odd_sizes(void **state)
{
    (void)state;
    void *a = malloc(0), *b = malloc(0);
    assert_non_null(a);
    assert_ptr_not_equal(a, b);
    free(a);
    free(b);
    free(NULL);
    errno = 0;
    assert_null(malloc(huge + 2));
    assert_int_equal(errno, ENOMEM);
    assert_null(calloc(huge, 3));
    assert_null(calloc(huge, 1 + 1));
    char *p = strcpy(malloc(8), "kept"), *volatile keep = p;
    assert_null(reallocarray(p, huge, 3));
    assert_null(realloc(p, huge + 5));
    p = keep;
    assert_string_equal(p, "kept");
    p = reallocarray(p, 10, 100);
    assert_int_equal(block_of(p).size, 1000);
    assert_string_equal(p, "kept");
    keep = p;
    assert_null(realloc(p, 0));
    assert_false(pl_heap_find(keep, NULL));
    p = realloc(NULL, 5);
    assert_int_equal(block_of(p).size, 5);
    free(p);
}

static void aligned_calls(void **state)
{
    void *p = NULL;
    (void)state;
    assert_int_equal(posix_memalign(&p, 24, 8), EINVAL);
    assert_int_equal(posix_memalign(&p, 4, 8), EINVAL);
    assert_null(p);
    assert_int_equal(posix_memalign(&p, 4096, 100), 0);
    assert_int_equal((uintptr_t)p % 4096, 0);
    assert_int_equal(block_of(p).size, 100);
    char *q = aligned_alloc(64, 128), *r = memalign(256, 1), *s = valloc(10), *t = pvalloc(10);
    assert_int_equal((uintptr_t)q % 64, 0);
    assert_int_equal((uintptr_t)r % 256, 0);
    assert_int_equal((uintptr_t)s % 4096, 0);
    assert_int_equal((uintptr_t)t % 4096, 0);
    assert_int_equal(block_of(t).size, 4096);
    q = realloc(memset(q, 3, 128), 5000);
    assert_int_equal(q[127], 3);
    assert_int_equal(q[128], 0);
    free(p);
    free(q);
    free(r);
    free(s);
    free(t);
}

static void strings_are_the_programs(void **state)
{
    (void)state;
    char *a = strdup("hello"), *b = strndup("hello", 3), *c = NULL;
    assert_int_equal(asprintf(&c, "%s-%d", "x", 12345), 7);
    assert_string_equal(a, "hello");
    assert_string_equal(b, "hel");
    assert_string_equal(c, "x-12345");
    assert_int_equal(block_of(a).size, 6);
    assert_int_equal(block_of(b).size, 4);
    assert_int_equal(block_of(c).size, 8);
    free(a);
    free(b);
    free(c);
}

static void *early;
__attribute__((constructor)) static void before_main(void)
{
    early = malloc(33);
}

static void constructors_allocate_in_generation_zero(void **state)
{
    (void)state;
    assert_int_equal(pl_heap_generation_of(early), 0);
    assert_int_equal(block_of(early).size, 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_is_told_from_libc),
        cmocka_unit_test(libc_may_grow_a_block_of_the_program),
        cmocka_unit_test(call_places_have_their_own_chains),
        cmocka_unit_test(odd_sizes),
        cmocka_unit_test(aligned_calls),
        cmocka_unit_test(strings_are_the_programs),
        cmocka_unit_test(constructors_allocate_in_generation_zero),
    };
    if (pl_heap_start() != PL_OK || pl_heap_open() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
