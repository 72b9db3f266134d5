/* SPDX-License-Identifier: MIT
 * State of the process is put back at a re-entry and at a rollback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "interpose/process.h"

static char arg0[] = "prog", arg1[] = "file", arg2[] = "-a", arg3[] = "-bc", arg4[] = "x=y";
static char *args[] = {arg0, arg1, arg2, arg3, arg4, NULL};
static pl_process_state_t first;

static void on_signal(int number)
{
    (void)number;
}

static char *here(void)
{
    static char path[4096];
    return getcwd(path, sizeof path);
}

static mode_t mask_now(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

/* What a program's set-up may do. */
static void set_up(const char *folder)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval timer = {.it_value.tv_sec = 1000};

    assert_int_equal(chdir(folder), 0);
    umask(0077);
    setenv("HOME", "/changed", 1);
    setenv("PLIANT_TEST_NEW", folder, 1);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    strtok(arg4, "=");
    fesetround(FE_UPWARD);
}

static void re_entry_finds_the_first_state(void **state)
{
    (void)state;
    char *home = strdup(getenv("HOME")), *cwd = strdup(here());
    mode_t mask = mask_now();
    char **env = environ;
    struct sigaction action;
    struct itimerval timer;
    set_up("/usr");
    pl_process_restore(&first);
    assert_string_equal(here(), cwd);
    assert_int_equal(mask_now(), mask);
    assert_string_equal(getenv("HOME"), home);
    assert_null(getenv("PLIANT_TEST_NEW"));
    assert_ptr_equal(environ, env);
    sigaction(SIGUSR1, NULL, &action);
    assert_ptr_equal(action.sa_handler, SIG_DFL);
    sigaction(SIGUSR2, NULL, &action);
    assert_ptr_equal(action.sa_handler, on_signal); /* declared as Pliant's own */
    getitimer(ITIMER_REAL, &timer);
    assert_int_equal(timer.it_value.tv_sec, 0);
    assert_string_equal(arg4, "x=y");
    assert_int_equal(fegetround(), FE_TONEAREST);
    free(home);
    free(cwd);
}

static void rollback_finds_the_state_before_the_trial(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        pl_process_state_t before;
        struct sigaction action;
        set_up("/usr");
        assert_int_equal(pl_process_capture(&before), PL_OK);
        pl_process_restore(&first);
        set_up("/tmp");
        for (int k = 0; k < 20; k++) { /* setenv moves the array */
            char name[32];
            snprintf(name, sizeof name, "PLIANT_TEST_%d_%d", i, k);
            setenv(name, "v", 1);
        }
        signal(SIGUSR1, SIG_IGN);
        pl_process_restore(&before);
        assert_string_equal(here(), "/usr");
        assert_string_equal(getenv("PLIANT_TEST_NEW"), "/usr");
        assert_null(getenv("PLIANT_TEST_0_0"));
        sigaction(SIGUSR1, NULL, &action);
        assert_ptr_equal(action.sa_handler, on_signal);
        assert_int_equal(fegetround(), FE_UPWARD);
        assert_int_equal(mask_now(), 0077);
        pl_process_release(&before);
        pl_process_restore(&first);
        assert_null(getenv("PLIANT_TEST_NEW"));
    }
}

static void parse(char out[8])
{
    int used = 0, c;
    while ((c = getopt(5, args, "abc")) != -1)
        out[used++] = (char)c;
    out[used] = '\0';
    assert_string_equal(args[optind], "file");
}

static void options_are_parsed_again(void **state)
{
    char out[8];
    (void)state;
    parse(out);
    assert_string_equal(out, "abc");
    assert_ptr_not_equal(args[1], arg1); /* getopt has moved it */
    pl_process_restore(&first);
    assert_ptr_equal(args[1], arg1);
    assert_int_equal(getopt(5, args, "abc"), 'a');
    assert_int_equal(getopt(5, args, "abc"), 'b'); /* stops within a group */
    pl_process_restore(&first);
    parse(out);
    assert_string_equal(out, "abc");
    pl_process_restore(&first);
}

static void locale_is_put_back(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "C.UTF-8"))
        skip();
    pl_process_restore(&first);
    assert_string_equal(setlocale(LC_ALL, NULL), "C");
}

static void generators_repeat(void **state)
{
    static char buffers[5][256];
    static const size_t sizes[] = {8, 32, 64, 128, 256};
    (void)state;
    for (int i = 0; i < 5; i++) {
        pl_random_state_t a, b;
        initstate(7u + (unsigned)i, buffers[i], sizes[i]);
        srand48(11);
        for (int k = 0; k < 100 + i; k++)
            (void)(random() + lrand48());
        pl_random_get(&a);
        long next = random(), after = random();
        double next48 = drand48();
        pl_random_get(&b);
        assert_false(pl_random_equal(&a, &b));
        pl_random_put(&a);
        pl_random_get(&b);
        assert_true(pl_random_equal(&a, &b));
        assert_int_equal(random(), next);
        assert_int_equal(rand(), after);
        assert_true(drand48() == next48);
        assert_ptr_equal(pl_random_array(), buffers[i]);
        srandom(3);
        pl_random_put(&a);
        assert_int_equal(random(), next);
    }
}

static void state_of_another_type_can_be_put(void **state)
{
    static char small[32], large[256];
    pl_random_state_t a;
    (void)state;
    initstate(5, large, sizeof large);
    random();
    pl_random_get(&a);
    long next = random();
    initstate(5, small, sizeof small);
    pl_random_put(&a);
    assert_int_equal(random(), next);
    assert_ptr_not_equal(pl_random_array(), small); /* too small for it */
}

static void generators_are_put_back_at_re_entry(void **state)
{
    static char buffer[64];
    (void)state;
    pl_process_restore(&first);
    long next = random();
    double next48 = drand48();
    initstate(9, buffer, sizeof buffer);
    srand48(5);
    random();
    pl_process_restore(&first);
    assert_int_equal(random(), next);
    assert_true(drand48() == next48);
    assert_ptr_equal(pl_random_array(), first.random_array);
}

static void captures_leak_no_descriptor(void **state)
{
    (void)state;
    int before = dup(0);
    close(before);
    pl_process_state_t s;
    assert_int_equal(pl_process_capture(&s), PL_OK);
    int directory = s.directory;
    assert_true(directory >= 200);
    pl_process_release(&s);
    assert_int_equal(fcntl(directory, F_GETFD), -1);
    int after = dup(0);
    assert_int_equal(after, before);
    close(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(re_entry_finds_the_first_state),
        cmocka_unit_test(rollback_finds_the_state_before_the_trial),
        cmocka_unit_test(options_are_parsed_again),
        cmocka_unit_test(locale_is_put_back),
        cmocka_unit_test(generators_repeat),
        cmocka_unit_test(state_of_another_type_can_be_put),
        cmocka_unit_test(generators_are_put_back_at_re_entry),
        cmocka_unit_test(captures_leak_no_descriptor),
    };
    setenv("HOME", "/home/test", 1);
    pl_process_setup(5, args, (uint64_t)1 << (SIGUSR2 - 1));
    if (pl_process_capture(&first) != PL_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
