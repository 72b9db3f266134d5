/* SPDX-License-Identifier: MIT
 * Signals of a trial: crashes of set-up, its time limit, and the kick by which a process that gave
 * up makes one that computes look up. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "common/log.h"
#include "interpose/heap.h"
#include "interpose/modules.h"
#include "interpose/trial_state.h"
#include "interpose/world.h"

#define SIGNAL_LIMIT (SIGRTMAX - 3)
#define SIGNAL_KICK  (SIGRTMAX - 4)

enum { STACK_BYTES = 65536, RETRY_NANOSECONDS = 1000000, RETRIES = 3000 };

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof *crashes };

static struct sigaction program_action[CRASHES];
static stack_t program_stack;
static char *handler_stack;
static timer_t timer;
static bool timer_made, armed;
static int retries;

uint64_t pl_trial_signals(void)
{
    return (uint64_t)1 << (SIGNAL_LIMIT - 1) | (uint64_t)1 << (SIGNAL_KICK - 1);
}

static void set_timer(long seconds, long nanoseconds)
{
    struct itimerspec when = {{0, 0}, {seconds, nanoseconds}};
    if (timer_made)
        timer_settime(timer, 0, &when, NULL);
}

static void leave_handler(int signal_number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    pl_heap_recover();
}

static bool in_program(const ucontext_t *context)
{
    return pl_module_is_program((void *)context->uc_mcontext.gregs[REG_RIP]);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    const pl_module_t *m = pl_module_of(at);

    if (!pl_trial_active) { /* between disarming and here: let it happen again */
        signal(number, SIG_DFL);
        return;
    }
    leave_handler(number);
    if (pl_caller_is_mpi((void *)at))
        pl_trial.dirty = true;
    if (number == SIGABRT)
        pl_trial_fail("set-up aborts");
    pl_trial_fail("set-up crashes: signal %d (%s) at %s+0x%lx, address %p", number,
                  sigabbrev_np(number), m && m->path[0] ? m->path : "the executable",
                  (unsigned long)(m ? at - m->base : at), info->si_addr);
}

/* Jumping out is safe from the program's own code only; elsewhere a flag is left, or the next
 * moment is awaited. */
static void on_attention(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    (void)info;

    if (!pl_trial_active || !armed) {
        errno = saved_errno;
        return;
    }
    if (number == SIGNAL_LIMIT && !retries)
        pl_trial.expired = true;
    if (in_program(context) || retries > RETRIES) {
        if (retries > RETRIES)
            pl_trial.dirty = true;
        leave_handler(number);
        if (pl_trial.expired)
            pl_trial_fail("set-up took longer than %g s (PLIANT_SETUP_LIMIT)", pl_trial.limit);
        pl_trial.notice_seen = pl_trial.notice_seen || pl_trial_given_up();
        if (pl_trial.notice_seen)
            pl_trial_fail("another process gave up");
    }
    retries++;
    set_timer(0, RETRY_NANOSECONDS);
    errno = saved_errno;
}

void pl_trap_install(void)
{
    struct sigaction action = {.sa_sigaction = on_attention,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART};
    sigaction(SIGNAL_LIMIT, &action, NULL);
    sigaction(SIGNAL_KICK, &action, NULL);
    handler_stack = malloc(STACK_BYTES);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL_LIMIT};
    timer_made = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    if (!timer_made)
        PL_WARN("no timer for the time limit of set-up: %m");
}

void pl_trap_arm(double limit_seconds)
{
    stack_t stack = {.ss_sp = handler_stack, .ss_size = STACK_BYTES};
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

    if (handler_stack)
        sigaltstack(&stack, &program_stack);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, &program_action[i]);
    retries = 0;
    armed = true;
    set_timer((long)limit_seconds, (long)((limit_seconds - (double)(long)limit_seconds) * 1e9));
}

void pl_trap_disarm(void)
{
    if (!armed)
        return;
    armed = false;
    set_timer(0, 0);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &program_action[i], NULL);
    if (handler_stack)
        sigaltstack(&program_stack, NULL);
}

void pl_trap_kick(void)
{
    for (int r = 0; r < pl_trial.nt; r++)
        if (r != pl_trial.rank && pl_world_pid(r))
            kill(pl_world_pid(r), SIGNAL_KICK);
}
