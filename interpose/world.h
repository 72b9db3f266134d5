/* SPDX-License-Identifier: MIT
 * The pool (all processes of the job), the world the program sees (the first pl_size of them), and
 * the parked rest. Process r of the pool is rank r of every world it is in. */
#ifndef PLIANT_INTERPOSE_WORLD_H
#define PLIANT_INTERPOSE_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

extern MPI_Comm pl_world;   /* stands for MPI_COMM_WORLD */
extern MPI_Comm pl_control; /* the same processes, for our own messages */
extern MPI_Comm pl_pool;    /* all processes; only for making communicators and waking */
extern int pl_pool_rank, pl_pool_size;
extern int pl_size;               /* processes the program sees */
extern bool pl_world_initialised; /* MPI_Init was called by the present run of main */
extern bool pl_world_finalized;

/* What a parked process is told. */
typedef enum pl_command {
    PL_COMMAND_TRIAL = 1, /* take part in a resize */
    PL_COMMAND_END,       /* the program called MPI_Finalize */
    PL_COMMAND_LEAVE,     /* the program exits without MPI_Finalize */
} pl_command_t;

typedef struct pl_order {
    int32_t command, ns, nt, transaction;
} pl_order_t;

/* A communicator of the first n processes of the pool; to be called by exactly those. tag must
 * differ between overlapping calls. */
MPI_Comm pl_world_make(int n, int tag);

/* Tells one parked process what to do. */
void pl_world_wake(int rank, const pl_order_t *order);

/* Waits without using the processor. Returns with an order to take part in a resize; for the other
 * orders the process ends. */
pl_order_t pl_world_park(void);

pid_t pl_world_pid(int rank); /* of a process of the pool on this node, else 0 */

/* Before the process exits without MPI_Finalize: lets the parked ones go first, so that the
 * launcher sees the program's exit status and not that of a killed process. */
void pl_world_leaving(void);

#endif
