/* SPDX-License-Identifier: MIT */
#include "interpose/entry.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "interpose/border.h"
#include "interpose/clock.h"
#include "interpose/files.h"
#include "interpose/heap.h"
#include "interpose/modules.h"
#include "interpose/process.h"
#include "interpose/transaction.h"
#include "interpose/trial.h"
#include "interpose/unknown.h"
#include "interpose/world.h"

typedef int (*main_t)(int, char **, char **);
typedef int (*start_t)(main_t, int, char **, void (*)(void), void (*)(void), void (*)(void),
                       void *);

pl_options_t pl_options;
bool pl_enabled;

static main_t program_main;
static jmp_buf above_main;
static struct timespec start_time;
static int launcher_rank = -1; /* -1: the launcher does not tell */
static int muted[2] = {-1, -1};

struct timespec pl_entry_start_time(void)
{
    return start_time;
}

void pl_entry_jump(pl_jump_t why)
{
    longjmp(above_main, (int)why);
}

static void mute(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 2 && null >= 0; i++) {
        muted[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 512);
        dup2(null, i + 1);
    }
    if (null >= 0)
        close(null);
}

void pl_entry_unmute(void)
{
    for (int i = 0; i < 2; i++) {
        if (muted[i] < 0)
            continue;
        dup2(muted[i], i + 1);
        close(muted[i]);
        muted[i] = -1;
    }
}

static void report_option(void *arg, const char *name, const char *message)
{
    (void)arg;
    if (launcher_rank <= 0)
        PL_WARN("%s: %s", name, message);
}

static void find_launcher_rank(void)
{
    static const char *const names[] = {"PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL};
    for (int i = 0; names[i] && launcher_rank < 0; i++) {
        const char *text = getenv(names[i]);
        if (text && *text)
            launcher_rank = atoi(text);
    }
}

/* The program leaves without MPI_Finalize. */
static void on_program_exit(int code, void *arg)
{
    (void)arg;
    if (pl_trial_active)
        pl_trial_fail("the program called exit(%d)", code);
    pl_world_leaving();
}

static void first_entry(int argc, char **argv, char **envp)
{
    int log_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 500);

    clock_gettime(CLOCK_REALTIME, &start_time);
    find_launcher_rank();
    pl_log_setup(log_fd >= 0 ? log_fd : STDERR_FILENO, launcher_rank);
    pl_options_load(envp, &pl_options, report_option, NULL);
    pl_log_level = pl_options.log;
    pl_enabled = pl_options.control[0] || pl_options.plan[0] || pl_options.processes > 0;
    if (!pl_enabled)
        return;
    pl_unknown_look();
    pl_clock_first_entry();
    pl_files_start();
    pl_process_setup(argc, argv, pl_trial_signals());
    pl_transaction_first_entry();
    on_exit(on_program_exit, NULL);
    if (pl_options.processes && launcher_rank >= pl_options.processes)
        mute();
}

static int run_main(int argc, char **argv, char **envp)
{
    first_entry(argc, argv, envp);
    int why = _setjmp(above_main);
    if (why == PL_JUMP_SETTLE) {
        pl_transaction_settle();
        why = PL_JUMP_PARK; /* still here: it was parked before */
    }
    if (why == PL_JUMP_PARK) {
        pl_order_t order = pl_world_park();
        pl_transaction_join(&order);
        why = PL_JUMP_ENTER;
    }
    if (why == PL_JUMP_ENTER)
        pl_transaction_enter();
    int rc = pl_call_main(argc, argv, envp, program_main);
    if (pl_trial_active)
        pl_trial_miss("under the new size main returned %d before the resize point", rc);
    return rc;
}

PL_EXPORT int __libc_start_main(main_t main, int argc, char **argv, void (*init)(void),
                                void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    start_t next = (start_t)dlsym(RTLD_NEXT, "__libc_start_main");

    pl_modules_scan();
    if (!PMPI_Init) /* no MPI program: a shell, env, a launcher */
        return next(main, argc, argv, init, fini, rtld_fini, stack_end);
    program_main = main;
    return next(run_main, argc, argv, init, fini, rtld_fini, stack_end);
}

PL_EXPORT void exit(int code)
{
    void (*next)(int) = (void (*)(int))dlsym(RTLD_NEXT, "exit");
    if (pl_trial_active)
        pl_trial_fail("the program called exit(%d)", code);
    next(code);
    __builtin_unreachable();
}

static _Noreturn void leave_at_once(int code, const char *name)
{
    void (*next)(int) = (void (*)(int))dlsym(RTLD_NEXT, name);
    if (pl_trial_active)
        pl_trial_fail("the program called %s(%d)", name, code);
    pl_world_leaving();
    next(code);
    __builtin_unreachable();
}

PL_EXPORT void _exit(int code)
{
    leave_at_once(code, "_exit");
}

PL_EXPORT void _Exit(int code)
{
    leave_at_once(code, "_Exit");
}

PL_EXPORT void quick_exit(int code)
{
    leave_at_once(code, "quick_exit");
}
