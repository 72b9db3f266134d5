/* SPDX-License-Identifier: MIT
 * Clocks in and out of a trial. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "interpose/clock.h"

double MPI_Wtime(void);
double PMPI_Wtime(void);

/* In the place of the MPI library's. */
double PMPI_Wtime(void)
{
    return 1000.0;
}

enum { CLOCKS = 6 };

static void read_clocks(double out[CLOCKS])
{
    struct timespec t;
    struct timeval v;
    clock_gettime(CLOCK_REALTIME, &t);
    out[0] = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    clock_gettime(CLOCK_MONOTONIC, &t);
    out[1] = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    gettimeofday(&v, NULL);
    out[2] = (double)v.tv_sec + (double)v.tv_usec * 1e-6;
    out[3] = MPI_Wtime();
    timespec_get(&t, TIME_UTC);
    out[4] = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    out[5] = (double)time(NULL);
}

static bool near(double a, double b, double tolerance)
{
    return a - b < tolerance && b - a < tolerance;
}

static void trial_starts_at_the_first_entry(void **state)
{
    double first[CLOCKS], real[CLOCKS], trial[CLOCKS], after[CLOCKS];
    (void)state;
    pl_clock_first_entry();
    read_clocks(first);
    usleep(1200000);
    read_clocks(real);
    pl_clock_trial_begin();
    read_clocks(trial);
    pl_clock_trial_end();
    read_clocks(after);
    for (int i = 0; i < CLOCKS; i++) {
        double elapsed = i == 3 ? 0.0 : 1.2, tolerance = i == 5 ? 1.01 : 0.1;
        assert_true(near(real[i] - first[i], elapsed, tolerance));
        assert_true(near(trial[i], i == 3 ? 1000.0 - 1.2 : first[i], tolerance));
        assert_true(near(after[i], real[i], tolerance));
    }
}

static void processor_time_is_left_alone(void **state)
{
    struct timespec before, in_trial;
    (void)state;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    pl_clock_first_entry();
    usleep(200000);
    pl_clock_trial_begin();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &in_trial);
    pl_clock_trial_end();
    assert_true(in_trial.tv_sec > before.tv_sec ||
                (in_trial.tv_sec == before.tv_sec && in_trial.tv_nsec >= before.tv_nsec));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trial_starts_at_the_first_entry),
        cmocka_unit_test(processor_time_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
