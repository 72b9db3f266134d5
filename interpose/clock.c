/* SPDX-License-Identifier: MIT */
#include "interpose/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#include "interpose/hook.h"
#include "interpose/modules.h"

#define SECOND 1000000000LL

extern double PMPI_Wtime(void) __attribute__((weak));
double MPI_Wtime(void);

static int64_t first_entry;
/* Nanoseconds that all clocks are set back: 0 outside of a trial. */
static int64_t behind;

static int64_t now(void)
{
    struct timespec t = {0};
    PL_REAL(clock_gettime)(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

void pl_clock_first_entry(void)
{
    first_entry = now();
}

void pl_clock_trial_begin(void)
{
    behind = first_entry ? now() - first_entry : 0;
}

void pl_clock_trial_end(void)
{
    behind = 0;
}

static bool is_set_back(const void *caller)
{
    return __builtin_expect(behind != 0, 0) && pl_module_is_program(caller);
}

static struct timespec set_back(struct timespec t)
{
    int64_t ns = t.tv_sec * SECOND + t.tv_nsec - behind;
    if (ns < 0)
        ns = 0;
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

static bool is_wall_clock(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW ||
           clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE ||
           clock == CLOCK_BOOTTIME || clock == CLOCK_TAI;
}

/* Called by the program, or on its behalf by the Fortran bindings. */
PL_HOOK double MPI_Wtime(void)
{
    double t = PMPI_Wtime();
    return __builtin_expect(behind != 0, 0) ? t - (double)behind / SECOND : t;
}

PL_HOOK int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = PL_REAL(clock_gettime)(clock, out);
    if (is_set_back(PL_CALLER) && rc == 0 && is_wall_clock(clock))
        *out = set_back(*out);
    return rc;
}

PL_HOOK int gettimeofday(struct timeval *out, void *zone)
{
    int rc = PL_REAL(gettimeofday)(out, zone);
    if (is_set_back(PL_CALLER) && rc == 0) {
        struct timespec t = {.tv_sec = out->tv_sec, .tv_nsec = out->tv_usec * 1000};
        t = set_back(t);
        *out = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    }
    return rc;
}

PL_HOOK time_t time(time_t *out)
{
    time_t t = PL_REAL(time)(NULL);
    if (is_set_back(PL_CALLER)) {
        struct timespec exact = {0};
        PL_REAL(clock_gettime)(CLOCK_REALTIME, &exact);
        t = set_back(exact).tv_sec;
    }
    if (out)
        *out = t;
    return t;
}

PL_HOOK int timespec_get(struct timespec *out, int base)
{
    int rc = PL_REAL(timespec_get)(out, base);
    if (is_set_back(PL_CALLER) && rc == TIME_UTC)
        *out = set_back(*out);
    return rc;
}
