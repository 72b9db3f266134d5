/* SPDX-License-Identifier: MIT
 * The program's static data is copied and put back; what nobody touched costs nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "interpose/image.h"
#include "interpose/modules.h"

enum { LARGE = 64 << 20 };

/* volatile: changed behind the compiler's back */
static volatile int initialised[3] = {1, 2, 3};
static volatile int zeroed[3];
static _Thread_local volatile int local = 4;
static _Thread_local volatile int local_zero;
static volatile char large[LARGE]; /* never touched but in the middle */

static long resident_pages(void)
{
    char text[64] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    long total = 0, resident = 0;
    if (fgets(text, sizeof text, file))
        sscanf(text, "%ld %ld", &total, &resident);
    fclose(file);
    return resident;
}

static pl_image_t save(void)
{
    pl_image_t image;
    assert_int_equal(pl_image_save(&image), PL_OK);
    return image;
}

static void restore_puts_every_kind_of_data_back(void **state)
{
    (void)state;
    zeroed[1] = 7;
    pl_image_t image = save();
    initialised[2] = zeroed[1] = zeroed[2] = local = local_zero = 99;
    pl_image_restore(&image);
    assert_int_equal(initialised[2], 3);
    assert_int_equal(zeroed[1], 7);
    assert_int_equal(zeroed[2], 0);
    assert_int_equal(local, 4);
    assert_int_equal(local_zero, 0);
    zeroed[1] = 0;
    pl_image_free(&image);
}

static void restore_may_be_repeated(void **state)
{
    (void)state;
    pl_image_t image = save();
    for (int i = 0; i < 3; i++) {
        initialised[0] = 50 + i;
        pl_image_restore(&image);
        assert_int_equal(initialised[0], 1);
    }
    pl_image_free(&image);
}

static void untouched_pages_are_neither_copied_nor_touched(void **state)
{
    (void)state;
    large[LARGE / 2] = 5;
    long before = resident_pages();
    pl_image_t image = save();
    assert_true(image.count < 200);
    large[LARGE / 4] = 6; /* touched after the copy: zero again */
    large[LARGE / 2] = 0;
    pl_image_restore(&image);
    assert_true(resident_pages() - before < 1000);
    assert_int_equal(large[LARGE / 2], 5);
    assert_int_equal(large[LARGE / 4], 0);
    large[LARGE / 2] = 0;
    pl_image_free(&image);
}

static void libraries_are_left_out(void **state)
{
    const pl_region_t *regions;
    (void)state;
    int n = pl_image_regions(&regions);
    assert_true(n >= 2); /* data and thread-local data of the executable */
    for (int i = 0; i < n; i++) {
        const pl_module_t *m = pl_module_by_id(regions[i].module);
        assert_non_null(m);
        assert_int_equal(m->owner, PL_OWNER_PROGRAM);
        assert_true(regions[i].low % 8 == 0 && regions[i].low < regions[i].high);
    }
    assert_int_equal(pl_module_of((uintptr_t)&engine_setup)->owner, PL_OWNER_SELF);
    assert_int_equal(pl_module_of((uintptr_t)&write)->owner, PL_OWNER_SYSTEM);
}

static void pages_tell_what_was_saved(void **state)
{
    const pl_region_t *regions;
    (void)state;
    initialised[1] = 0x1234567;
    pl_image_t image = save();
    initialised[1] = 2;
    int n = pl_image_regions(&regions), found = 0;
    for (int i = 0; i < n; i++) {
        uintptr_t at = (uintptr_t)&initialised[1];
        if (at < regions[i].low || at >= regions[i].high)
            continue;
        size_t page = (at - regions[i].low) / PL_PAGE;
        const uint8_t *copy = pl_image_page(&image, i, page);
        assert_non_null(copy);
        int value;
        memcpy(&value, copy + (at - regions[i].low) % PL_PAGE, sizeof value);
        found += value == 0x1234567;
    }
    assert_int_equal(found, 1);
    pl_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restore_puts_every_kind_of_data_back),
        cmocka_unit_test(restore_may_be_repeated),
        cmocka_unit_test(untouched_pages_are_neither_copied_nor_touched),
        cmocka_unit_test(libraries_are_left_out),
        cmocka_unit_test(pages_tell_what_was_saved),
    };
    engine_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
