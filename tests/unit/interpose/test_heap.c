/* SPDX-License-Identifier: MIT
 * The program's heap without its hooks: blocks, identities, walks, generations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/heap.h"
#include "interpose/heap_arena.h"

static void *get(size_t size)
{
    return pl_heap_allocate(size, 16, 7);
}

static bool is_zero(const void *p, size_t size)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < size; i++)
        if (c[i])
            return false;
    return true;
}

static pl_block_t block_of(const void *p)
{
    pl_block_t block = {0};
    assert_true(pl_heap_find(p, &block));
    return block;
}

static int open_generation(void)
{
    int generation = pl_heap_open();
    assert_true(generation > 0);
    return generation;
}

/* Ends the test's generations, so that the next test finds free arenas. */
static int close_all(void **state)
{
    (void)state;
    assert_int_equal(pl_heap_select(0), PL_OK);
    for (int i = 1; i < PL_ARENAS; i++)
        if (pl_heap.arena[i].generation > 0)
            assert_int_equal(pl_heap_drop(pl_heap.arena[i].generation), PL_OK);
    return 0;
}

static void classes_hold_their_sizes(void **state)
{
    (void)state;
    size_t last = 0;
    for (int c = 1; c < PL_CLASSES; c++) {
        size_t bytes = pl_heap_class_bytes(c);
        assert_true(bytes > last && bytes % 16 == 0);
        assert_int_equal(pl_heap_class(bytes), c);
        assert_int_equal(pl_heap_class(last + 1), c);
        last = bytes;
    }
    assert_int_equal(pl_heap_class_bytes(PL_LARGE_CLASS), 128 << 10);
    assert_true(last >= PL_LARGEST);
}

static void recycled_blocks_are_zero(void **state)
{
    static const size_t sizes[] = {1, 24, 1000, 5000, 100000, 131072, 200001, 40 << 20};
    (void)state;
    open_generation();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int round = 0; round < 3; round++) {
            char *p = get(sizes[i]);
            assert_true(is_zero(p, sizes[i]));
            memset(p, 0xaa, sizes[i]);
            pl_heap_free(p);
            char *q = get(sizes[i]);
            assert_ptr_equal(p, q);
            assert_true(is_zero(q, sizes[i]));
            memset(q, 0xaa, sizes[i]);
            pl_heap_free(q);
        }
    }
}

static void growth_is_zero_and_content_stays(void **state)
{
    (void)state;
    open_generation();
    for (size_t size = 8; size < (8 << 20); size = size * 5 / 3 + 1) {
        char *p = get(size);
        memset(p, 0x55, size);
        p = pl_heap_resize(p, size / 2, 7);
        p = pl_heap_resize(p, size, 7);
        for (size_t i = 0; i < size / 2; i++)
            assert_int_equal(p[i], 0x55);
        assert_true(is_zero(p + size / 2, size - size / 2));
        p = pl_heap_resize(p, size * 3, 7);
        for (size_t i = 0; i < size / 2; i++)
            assert_int_equal(p[i], 0x55);
        assert_true(is_zero(p + size / 2, size * 3 - size / 2));
        memset(p, 0x66, size * 3);
        pl_heap_free(p);
    }
}

static void identity_is_new_after_realloc_in_place(void **state)
{
    (void)state;
    open_generation();
    char *p = get(40);
    pl_block_t before = block_of(p);
    assert_int_equal(before.size, 40);
    assert_int_equal(before.chain, 7);
    assert_ptr_equal(pl_heap_resize(p, 44, 9), p);
    pl_block_t after = block_of(p);
    assert_true(after.id > before.id);
    assert_int_equal(after.size, 44);
    assert_int_equal(after.chain, 9);
    assert_ptr_equal(pl_heap_resize(p, 45, 0), p);
    assert_int_equal(block_of(p).chain, 9);
    pl_heap_free(p);
    char *q = get(45);
    assert_ptr_equal(q, p);
    assert_true(block_of(q).id > after.id);
}

static void find_knows_interiors_and_ends(void **state)
{
    (void)state;
    open_generation();
    char *a = get(48), *b = get(0), *c = get(100000);
    assert_ptr_equal(block_of(a).address, a);
    assert_ptr_equal(block_of(a + 47).address, a);
    assert_ptr_equal(block_of(a + 48).address, a);
    assert_false(pl_heap_find(a + 49, NULL));
    assert_false(pl_heap_find(a - 1, NULL));
    assert_ptr_equal(block_of(b).address, b);
    assert_false(pl_heap_find(b + 1, NULL));
    assert_ptr_equal(block_of(c + 65536).address, c);
    assert_ptr_equal(block_of(c + 100000).address, c);
    assert_false(pl_heap_find(c + 100001, NULL));
    pl_heap_free(a);
    assert_false(pl_heap_find(a, NULL));
    assert_false(pl_heap_find(&a, NULL));
    assert_false(pl_heap_find((char *)pl_heap_base + pl_heap_span, NULL));
}

static void walk_passes_aligned_blocks(void **state)
{
    void *expected[100];
    pl_block_t list[100];
    (void)state;
    int generation = open_generation();
    for (int round = 0; round < 2; round++) {
        int n = 0;
        for (size_t align = 16; align <= 65536; align *= 2) {
            size_t size = align + 13;
            char *p = pl_heap_allocate(size, align, align);
            assert_int_equal((uintptr_t)p % align, 0);
            assert_true(is_zero(p, size));
            memset(p, 0x77, size);
            expected[n++] = p;
            expected[n++] = memset(get(size), 0x77, size);
        }
        assert_int_equal(pl_heap_list(generation, list, 0), n);
        assert_int_equal(pl_heap_list(generation, list, 100), n);
        for (int i = 0; i < n; i++) {
            assert_ptr_equal(list[i].address, expected[i]);
            assert_ptr_equal(block_of((char *)expected[i] + list[i].size).address, expected[i]);
            assert_ptr_equal(block_of((char *)expected[i] + list[i].size / 2).address, expected[i]);
            pl_heap_free(expected[i]);
        }
        assert_int_equal(pl_heap_list(generation, list, 100), 0);
    }
}

static void old_generation_is_left_alone_in_a_trial(void **state)
{
    pl_block_t list[4];
    (void)state;
    int old = open_generation();
    char *a = strcpy(get(100), "a"), *b = strcpy(get(200), "b");
    assert_int_equal(pl_heap_protect(old, true), PL_OK);
    int new = open_generation();
    assert_int_equal(pl_heap_current(), new);
    char *c = strcpy(get(100), "c");
    assert_int_equal(pl_heap_generation_of(c), new);
    pl_heap_free(a);
    char *moved = pl_heap_resize(b, 201, 0);
    assert_int_equal(pl_heap_generation_of(moved), new);
    assert_string_equal(moved, "b");
    assert_int_equal(pl_heap_list(old, list, 4), 2);
    assert_ptr_equal(list[0].address, a);
    assert_ptr_equal(list[1].address, b);
    assert_string_equal(a, "a");
    assert_int_equal(pl_heap_drop(new), PL_ERR_INVALID);
    assert_int_equal(pl_heap_select(old), PL_OK);
    assert_int_equal(pl_heap_protect(old, false), PL_OK);
    assert_int_equal(pl_heap_drop(new), PL_OK);
    assert_int_equal(pl_heap_list(new, list, 4), PL_ERR_INVALID);
    assert_false(pl_heap_find(c, NULL));
    pl_heap_free(c); /* a stale pointer must not be touched */
    pl_heap_free(a);
    assert_int_equal(pl_heap_list(old, list, 4), 1);
}

static void permanent_blocks_return_with_each_generation(void **state)
{
    pl_block_t list[64];
    (void)state;
    char *p = pl_heap_make(0, 50, 3);
    int64_t all = pl_heap_list(0, list, 64);
    assert_in_range(all, 1, 64);
    int first = open_generation();
    strcpy(p, "early");
    pl_heap_free(p);
    assert_int_equal(pl_heap_list(0, list, 64), all - 1);
    assert_false(pl_heap_find(p, NULL));
    assert_ptr_not_equal(pl_heap_make(0, 50, 3), p);
    open_generation();
    assert_int_equal(pl_heap_list(0, list, 64), all + 1);
    assert_string_equal(block_of(p).address, "early");
    char *moved = pl_heap_resize(p, 51, 0);
    assert_ptr_not_equal(moved, p);
    assert_string_equal(moved, "early");
    assert_false(pl_heap_find(p, NULL));
    assert_int_equal(block_of(moved).chain, 3);
    pl_heap_select(first);
    assert_false(pl_heap_find(p, NULL));
    open_generation();
    assert_true(pl_heap_find(p, NULL));
    assert_int_equal(pl_heap_open(), PL_ERR_LIMIT);
    assert_int_equal(pl_heap_drop(first), PL_OK);
    open_generation(); /* in the arena of the one that had freed p */
    assert_true(pl_heap_find(p, NULL));
    pl_heap_unmake(p);
    assert_false(pl_heap_find(p, NULL));
}

static int count_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c = fgetc(f); c != EOF; c = fgetc(f))
        lines += c == '\n';
    fclose(f);
    return lines;
}

static long resident_pages(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(f, "%ld %ld", &size, &resident), 2);
    fclose(f);
    return resident;
}

static void hundreds_of_generations_leak_nothing(void **state)
{
    int mappings = 0, old = open_generation();
    long pages = 0;
    (void)state;
    for (int i = 0; i < 500; i++) {
        char *big = memset(get(3 << 20), 1, 3 << 20);
        for (int k = 0; k < 100; k++)
            memset(get(1000), 1, 1000);
        pl_heap_protect(old, true);
        int new = open_generation();
        assert_false(pl_heap_generation_of(get(10)) == old);
        assert_int_equal(*big, 1);
        assert_int_equal(pl_heap_drop(old), PL_OK);
        old = new;
        if (i == 10) {
            mappings = count_mappings();
            pages = resident_pages();
        }
    }
    assert_in_range(count_mappings(), 1, mappings + 2);
    assert_in_range(resident_pages(), 1, pages + 256);
}

static void large_free_blocks_go_back(void **state)
{
    enum { N = 20, SIZE = 8 << 20 };
    void *p[N];
    (void)state;
    open_generation();
    long before = resident_pages();
    for (int i = 0; i < N; i++)
        p[i] = memset(get(SIZE), 1, SIZE);
    for (int i = 0; i < N; i++)
        pl_heap_free(p[i]);
    assert_in_range(resident_pages(), 1, before + (24 << 20) / 4096);
    for (int i = 0; i < N; i++)
        assert_true(is_zero(get(SIZE), SIZE));
}

static void wrong_frees_are_survived(void **state)
{
    pl_block_t list[4];
    (void)state;
    int generation = open_generation();
    char *a = get(64), *b = get(64);
    pl_heap_free(a);
    pl_heap_free(a);
    pl_heap_free(b + 16);
    pl_heap_free(b + 1);
    pl_heap_free((void *)(pl_heap_base + pl_heap_span - 64));
    assert_ptr_equal(get(64), a);
    assert_ptr_not_equal(get(64), a);
    assert_int_equal(pl_heap_list(generation, list, 4), 3);
    assert_null(get((size_t)1 << 45));
    assert_null(get(PTRDIFF_MAX));
}

typedef struct shadow {
    unsigned char *p;
    size_t size;
    unsigned char fill;
    uint64_t id;
} shadow_t;

static void check_shadow(const shadow_t *s, size_t size)
{
    for (size_t i = 0; i < size; i++)
        assert_int_equal(s->p[i], s->fill);
}

static size_t random_size(unsigned *seed)
{
    unsigned r = (unsigned)rand_r(seed);
    switch (r % 10) {
    case 0:
        return r % 300000;
    case 1:
        return r % 20000;
    default:
        return r % 600;
    }
}

static void shadow_step(shadow_t *s, unsigned *seed)
{
    size_t size = random_size(seed), old = s->size;
    unsigned action = (unsigned)rand_r(seed) % 4;

    if (s->p)
        check_shadow(s, old);
    if (!s->p) {
        size_t align = (size_t)16 << (action == 0 ? (unsigned)rand_r(seed) % 9 : 0);
        s->p = pl_heap_allocate(size, align, size);
        assert_int_equal((uintptr_t)s->p % align, 0);
        assert_true(is_zero(s->p, size));
    } else if (action == 0) {
        s->p = pl_heap_resize(s->p, size, size);
        check_shadow(s, old < size ? old : size);
        if (size > old)
            assert_true(is_zero(s->p + old, size - old));
    } else {
        memset(s->p, 0xee, old);
        pl_heap_free(s->p);
        s->p = NULL;
        return;
    }
    s->size = size;
    s->fill = (unsigned char)rand_r(seed);
    s->id = block_of(s->p).id;
    memset(s->p, s->fill, size);
}

static void random_steps_agree_with_a_shadow(void **state)
{
    enum { SLOTS = 300, STEPS = 30000 };
    static shadow_t shadow[SLOTS];
    static pl_block_t list[SLOTS];
    unsigned seed = 12345;
    (void)state;
    int generation = open_generation();
    for (int i = 0; i < STEPS; i++)
        shadow_step(&shadow[rand_r(&seed) % SLOTS], &seed);
    int64_t live = pl_heap_list(generation, list, SLOTS), expected = 0;
    for (int i = 0; i < SLOTS; i++) {
        if (!shadow[i].p)
            continue;
        expected++;
        pl_block_t block = block_of(shadow[i].p + shadow[i].size / 2);
        assert_ptr_equal(block.address, shadow[i].p);
        assert_int_equal(block.size, shadow[i].size);
        assert_int_equal(block.id, shadow[i].id);
        assert_int_equal(block.chain, shadow[i].size);
    }
    assert_int_equal(live, expected);
    for (int64_t i = 1; i < live; i++)
        assert_true(list[i - 1].id < list[i].id);
}

static void *thread_main(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    shadow_t shadow[50] = {0};
    for (int i = 0; i < 5000; i++)
        shadow_step(&shadow[rand_r(&seed) % 50], &seed);
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    pthread_t thread[4];
    (void)state;
    open_generation();
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, thread_main, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

static void start_ends_generation_zero(void **state)
{
    (void)state;
    assert_int_equal(pl_heap_open(), PL_ERR_LIMIT);
    char *p = strcpy(get(30), "pre-main");
    assert_int_equal(pl_heap_generation_of(p), 0);
    pl_heap_free(get(30));
    assert_int_equal(pl_heap_start(), PL_OK);
    assert_int_equal(pl_heap_protect(0, true), PL_ERR_INVALID);
    assert_int_equal(pl_heap_drop(0), PL_ERR_INVALID);
    assert_int_equal(pl_heap_list(0, NULL, 0), 1);
    assert_string_equal(p, "pre-main");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_hold_their_sizes),
        cmocka_unit_test(start_ends_generation_zero),
        cmocka_unit_test_teardown(recycled_blocks_are_zero, close_all),
        cmocka_unit_test_teardown(growth_is_zero_and_content_stays, close_all),
        cmocka_unit_test_teardown(identity_is_new_after_realloc_in_place, close_all),
        cmocka_unit_test_teardown(find_knows_interiors_and_ends, close_all),
        cmocka_unit_test_teardown(walk_passes_aligned_blocks, close_all),
        cmocka_unit_test_teardown(old_generation_is_left_alone_in_a_trial, close_all),
        cmocka_unit_test_teardown(permanent_blocks_return_with_each_generation, close_all),
        cmocka_unit_test_teardown(hundreds_of_generations_leak_nothing, close_all),
        cmocka_unit_test_teardown(large_free_blocks_go_back, close_all),
        cmocka_unit_test_teardown(wrong_frees_are_survived, close_all),
        cmocka_unit_test_teardown(random_steps_agree_with_a_shadow, close_all),
        cmocka_unit_test_teardown(threads_do_not_disturb_each_other, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
