/* SPDX-License-Identifier: MIT */
#include "interpose/world.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "interpose/border.h"
#include "interpose/entry.h"
#include "interpose/resize.h"
#include "interpose/trial.h"

MPI_Comm pl_world = MPI_COMM_WORLD;
MPI_Comm pl_control = MPI_COMM_NULL;
MPI_Comm pl_pool = MPI_COMM_NULL;
int pl_pool_rank = -1, pl_pool_size, pl_size;
bool pl_world_initialised, pl_world_finalized;

enum { TAG_ORDER = 1, FIRST_WORLD_TAG = 1, POLL_MICROSECONDS = 4000 };

/* One per process, in memory shared by the processes of a node. Written by whoever wakes it. */
typedef struct mailbox {
    _Atomic uint32_t sequence; /* futex word: number of orders so far */
    pl_order_t order;
    _Atomic uint32_t left; /* the owner has told the launcher that it ends */
    char padding[64 - 2 * sizeof(uint32_t) - sizeof(pl_order_t)];
} mailbox_t;

static MPI_Win mailbox_window = MPI_WIN_NULL;
static mailbox_t *mine;
static mailbox_t **boxes; /* of every process of the pool, NULL: on another node */
static pid_t *pids;
static bool one_node;
static int provided_level;
static uint32_t orders_seen;

MPI_Comm pl_world_make(int n, int tag)
{
    MPI_Group all, first;
    MPI_Comm made;
    int range[1][3] = {{0, n - 1, 1}};

    PMPI_Comm_group(pl_pool, &all);
    PMPI_Group_range_incl(all, 1, range, &first);
    PMPI_Comm_create_group(pl_pool, first, tag, &made);
    PMPI_Group_free(&first);
    PMPI_Group_free(&all);
    return made;
}

static void make_mailboxes(void)
{
    MPI_Comm node;
    MPI_Group node_group, pool_group;
    int node_size;
    pid_t pid = getpid();

    PMPI_Comm_split_type(pl_pool, MPI_COMM_TYPE_SHARED, pl_pool_rank, MPI_INFO_NULL, &node);
    PMPI_Comm_size(node, &node_size);
    one_node = node_size == pl_pool_size;
    PMPI_Win_allocate_shared(sizeof(mailbox_t), 1, MPI_INFO_NULL, node, &mine, &mailbox_window);
    memset(mine, 0, sizeof *mine);
    boxes = calloc((size_t)pl_pool_size, sizeof(mailbox_t *));
    pids = calloc((size_t)pl_pool_size, sizeof *pids);
    PMPI_Comm_group(node, &node_group);
    PMPI_Comm_group(pl_pool, &pool_group);
    for (int i = 0; i < node_size; i++) {
        MPI_Aint bytes;
        int unit, rank;
        void *box;
        PMPI_Win_shared_query(mailbox_window, i, &bytes, &unit, &box);
        PMPI_Group_translate_ranks(node_group, 1, &i, pool_group, &rank);
        boxes[rank] = box;
    }
    PMPI_Allgather(&pid, (int)sizeof pid, MPI_BYTE, pids, (int)sizeof pid, MPI_BYTE, pl_pool);
    PMPI_Group_free(&node_group);
    PMPI_Group_free(&pool_group);
    PMPI_Comm_free(&node);
    PMPI_Barrier(pl_pool); /* nobody is woken before its mailbox is clear */
}

pid_t pl_world_pid(int rank)
{
    return boxes[rank] ? pids[rank] : 0;
}

void pl_world_wake(int rank, const pl_order_t *order)
{
    mailbox_t *box = boxes[rank];

    if (!one_node) {
        PMPI_Send(order, (int)sizeof *order, MPI_BYTE, rank, TAG_ORDER, pl_pool);
        return;
    }
    box->order = *order;
    atomic_fetch_add(&box->sequence, 1);
    syscall(SYS_futex, &box->sequence, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Across nodes an order is a message, which somebody must look for. */
static pl_order_t wait_for_message(void)
{
    pl_order_t order;
    int there = 0;

    for (;;) {
        PMPI_Iprobe(MPI_ANY_SOURCE, TAG_ORDER, pl_pool, &there, MPI_STATUS_IGNORE);
        if (there)
            break;
        if (atomic_load(&mine->sequence) != orders_seen) /* LEAVE is only ever told by memory */
            return mine->order;
        usleep(POLL_MICROSECONDS);
    }
    PMPI_Recv(&order, (int)sizeof order, MPI_BYTE, MPI_ANY_SOURCE, TAG_ORDER, pl_pool,
              MPI_STATUS_IGNORE);
    return order;
}

static pl_order_t wait_for_order(void)
{
    if (!one_node)
        return wait_for_message();
    while (atomic_load(&mine->sequence) == orders_seen)
        syscall(SYS_futex, &mine->sequence, FUTEX_WAIT, orders_seen, NULL, NULL, 0);
    orders_seen = atomic_load(&mine->sequence);
    return mine->order;
}

static void release(void)
{
    if (mailbox_window != MPI_WIN_NULL)
        PMPI_Win_free(&mailbox_window);
    if (pl_pool != MPI_COMM_NULL)
        PMPI_Comm_free(&pl_pool);
    free(boxes);
    free(pids);
    boxes = NULL;
    pids = NULL;
}

/* Tells the launcher (PMI-1 over PMI_FD) that this process ends in order although MPI_Finalize,
 * which is collective, cannot be called. */
static void tell_launcher(void)
{
    const char *fd = getenv("PMI_FD");
    char answer[64];

    if (!fd)
        return;
    if (write(atoi(fd), "cmd=finalize\n", 13) == 13 && read(atoi(fd), answer, sizeof answer) < 0)
        PL_DEBUG("no answer from the launcher: %m");
}

pl_order_t pl_world_park(void)
{
    pl_entry_unmute();
    pl_order_t order = wait_for_order();
    switch (order.command) {
    case PL_COMMAND_END:
        release();
        PMPI_Finalize();
        _exit(0);
    case PL_COMMAND_LEAVE:
        tell_launcher();
        atomic_store(&mine->left, 1);
        _exit(0);
    default:
        return order;
    }
}

/* All leaving ranks wait for the same thing, so that they end at nearly the same time: the launcher
 * kills those that are late. */
void pl_world_leaving(void)
{
    enum { PATIENCE = 500 };
    const pl_order_t order = {.command = PL_COMMAND_LEAVE};
    struct timespec millisecond = {0, 1000000};

    if (!boxes || pl_world_finalized || pl_pool_rank >= pl_size)
        return;
    for (int r = pl_size; r < pl_pool_size; r++) {
        if (!boxes[r] || boxes[r]->order.command == PL_COMMAND_LEAVE)
            continue;
        boxes[r]->order = order;
        atomic_fetch_add(&boxes[r]->sequence, 1);
        syscall(SYS_futex, &boxes[r]->sequence, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    for (int r = pl_size, waited = 0; r < pl_pool_size; r++)
        while (boxes[r] && !atomic_load(&boxes[r]->left) && kill(pids[r], 0) == 0 &&
               waited++ < PATIENCE)
            nanosleep(&millisecond, NULL);
}

/* ---- the program's calls ---- */

static void first_init(int *argc, char ***argv, int level)
{
    PMPI_Init_thread(argc, argv, level, &provided_level);
    if (!pl_enabled) {
        PMPI_Comm_size(MPI_COMM_WORLD, &pl_size);
        return;
    }
    PMPI_Comm_dup(MPI_COMM_WORLD, &pl_pool);
    PMPI_Comm_rank(pl_pool, &pl_pool_rank);
    PMPI_Comm_size(pl_pool, &pl_pool_size);
    make_mailboxes();
    pl_size = pl_options.processes ? pl_options.processes : pl_pool_size;
    if (pl_size > pl_pool_size) {
        if (pl_pool_rank == 0)
            PL_WARN("PLIANT_PROCESSES is %d but the job has %d: the program gets those", pl_size,
                    pl_pool_size);
        pl_size = pl_pool_size;
    }
    pl_resize_start();
    if (pl_pool_rank >= pl_size)
        pl_entry_jump(PL_JUMP_PARK);
    pl_world = pl_world_make(pl_size, FIRST_WORLD_TAG);
    PMPI_Comm_dup(pl_world, &pl_control);
    pl_resize_world_ready();
}

static int initialise(int *argc, char ***argv, int level, int *provided)
{
    if (pl_pool_rank < 0 && !pl_size) {
        first_init(argc, argv, level);
    } else if (!pl_trial_active) {
        return PMPI_Init_thread(argc, argv, level, provided); /* twice: the MPI reports it */
    }
    pl_world_initialised = true;
    if (provided)
        *provided = provided_level;
    return MPI_SUCCESS;
}

PL_EXPORT int MPI_Init(int *argc, char ***argv)
{
    return initialise(argc, argv, MPI_THREAD_SINGLE, NULL);
}

PL_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return initialise(argc, argv, required, provided);
}

PL_EXPORT int MPI_Initialized(int *flag)
{
    if (!pl_enabled)
        return PMPI_Initialized(flag);
    *flag = pl_world_initialised;
    return MPI_SUCCESS;
}

PL_EXPORT int MPI_Finalized(int *flag)
{
    if (!pl_enabled)
        return PMPI_Finalized(flag);
    *flag = pl_world_finalized;
    return MPI_SUCCESS;
}

PL_EXPORT int MPI_Finalize(void)
{
    if (pl_trial_active)
        pl_trial_miss("under the new size the program called MPI_Finalize before it came to the "
                      "resize point");
    if (!pl_enabled || !pl_world_initialised)
        return PMPI_Finalize();
    pl_resize_finish();
    pl_order_t order = {.command = PL_COMMAND_END};
    if (pl_pool_rank == 0)
        for (int r = pl_size; r < pl_pool_size; r++)
            pl_world_wake(r, &order);
    PMPI_Comm_free(&pl_control);
    release();
    pl_world_finalized = true;
    MPI_Comm world = pl_world;
    pl_world = MPI_COMM_WORLD;
    if (world != MPI_COMM_WORLD)
        PMPI_Comm_free(&world);
    return PMPI_Finalize();
}

PL_EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    (void)comm; /* every implementation of MPICH's kind ends the whole job */
    if (pl_trial_active)
        pl_trial_fail("the program called MPI_Abort(%d)", code);
    return PMPI_Abort(MPI_COMM_WORLD, code);
}

PL_EXPORT int MPI_Query_thread(int *provided)
{
    return PMPI_Query_thread(provided);
}
