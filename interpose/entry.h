/* SPDX-License-Identifier: MIT
 * The frame above main. Pliant owns it, so that main can be run again: by jumping back here the
 * stack of the present run is given up, and what it left in memory is put back as it was when main
 * was entered first. */
#ifndef PLIANT_INTERPOSE_ENTRY_H
#define PLIANT_INTERPOSE_ENTRY_H

#include <setjmp.h>
#include <stdbool.h>
#include <time.h>

#include "common/options.h"

/* Why the frame above main is jumped to. */
typedef enum pl_jump {
    PL_JUMP_ENTER = 1, /* run main again from the first-entry state */
    PL_JUMP_PARK,      /* this process leaves the program's world: wait for work */
    PL_JUMP_SETTLE,    /* a trial failed on this process */
} pl_jump_t;

extern pl_options_t pl_options;

/* May this job ever be resized? False: Pliant stays out of the way. */
extern bool pl_enabled;

/* When main was entered first (CLOCK_REALTIME). */
struct timespec pl_entry_start_time(void);

_Noreturn void pl_entry_jump(pl_jump_t why);

/* Output of a process that is going to be parked is dropped until it is part of the world. */
void pl_entry_unmute(void);

/* Runs main on an aligned stack with fixed callee-saved registers (entry.S). */
int pl_call_main(int argc, char **argv, char **envp, int (*main)(int, char **, char **));

#endif
