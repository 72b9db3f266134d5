/* SPDX-License-Identifier: MIT
 * Stands in for what is behind the border, so that the wrappers can be tested alone: with
 * FAKE_WORLD=1 the world is another communicator, with FAKE_TRIAL=1 all calls are those of a trial
 * (which goes well). MPI_Finalize checks that nothing is in flight and everything can be freed. */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "interpose/border.h"
#include "interpose/calls/errhandlers.h"
#include "interpose/calls/names.h"
#include "interpose/handles.h"
#include "interpose/quiescence.h"
#include "interpose/trial.h"

MPI_Comm pl_world = MPI_COMM_WORLD;
bool pl_trial_active, pl_evidence_on;
__thread struct pl_frame *pl_frame __attribute__((tls_model("initial-exec")));

static long arrivals, gates, landed, vectors;

static _Noreturn void fail(const char *why)
{
    fprintf(stderr, "closed_world_fakes: %s\n", why);
    PMPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void pl_trial_gate(MPI_Comm real, uint64_t signature)
{
    int64_t mine[2] = {(int64_t)signature, -(int64_t)signature}, met[2];
    int inter = 0;
    gates++;
    PMPI_Comm_test_inter(real, &inter);
    if (inter) {
        PMPI_Barrier(real);
        return;
    }
    PMPI_Allreduce(mine, met, 2, MPI_INT64_T, MPI_MAX, real);
    if (met[0] != -met[1])
        fail("ranks disagree at a gate");
}

int pl_trial_complete(int rc, MPI_Request *request, MPI_Status *status)
{
    int complete = 0;
    while (rc == MPI_SUCCESS && !complete) {
        rc = PMPI_Test(request, &complete, status);
        sched_yield();
    }
    return pl_trial_result(rc);
}

void pl_trial_poll(void)
{
    sched_yield();
}

int pl_trial_result(int rc)
{
    if (rc != MPI_SUCCESS)
        fail("an MPI call failed");
    return rc;
}

void pl_trial_buffer(const void *buffer, MPI_Count bytes)
{
    const volatile char *memory = buffer;
    (void)memory[0];
    (void)memory[bytes - 1];
}

void pl_trial_refuse(const char *call)
{
    fail(call);
}

void pl_trial_comm_made(MPI_Comm comm)
{
    (void)comm;
}

int pl_arrive(enum pl_call call, MPI_Comm comm, int rc)
{
    (void)comm;
    arrivals++;
    if (!pl_frame || !pl_frame->ret || !pl_call_known(pl_call_name(call)))
        fail("an arrival without a frame or a name");
    return rc;
}

void pl_not_resizable(const char *reason)
{
    fail(reason);
}

bool pl_caller_is_mpi(const void *return_address)
{
    Dl_info caller, mpi;
    return dladdr(return_address, &caller) && dladdr(dlsym(RTLD_DEFAULT, "PMPI_Init"), &mpi) &&
           caller.dli_fbase == mpi.dli_fbase;
}

void pl_evidence_receive(const void *buffer, MPI_Count bytes)
{
    landed += buffer && bytes > 0;
}

void pl_evidence_collective(const struct pl_evidence *evidence)
{
    vectors += evidence->part_count > 0;
}

static void start(void)
{
    pl_trial_active = getenv("FAKE_TRIAL") != NULL;
    pl_evidence_on = pl_trial_active;
    if (getenv("FAKE_WORLD"))
        PMPI_Comm_dup(MPI_COMM_WORLD, &pl_world);
    pl_handles_begin(1);
    if (pl_trial_active) {
        pl_errhandlers_begin();
        PMPI_Comm_set_errhandler(pl_world, MPI_ERRORS_RETURN);
    }
}

int MPI_Init(int *argc, char ***argv)
{
    int rc = PMPI_Init(argc, argv);
    start();
    return rc;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc = PMPI_Init_thread(argc, argv, required, provided);
    start();
    return rc;
}

int MPI_Finalize(void)
{
    pl_quiet_t quiet;
    long unmatched;
    if (pl_trial_active) {
        pl_trial_active = false;
        pl_errhandlers_commit();
        if (!gates || !landed || !vectors)
            fail("a trial without gates or evidence");
    }
    pl_quiescence_get(&quiet);
    unmatched = quiet.sent - quiet.received;
    PMPI_Allreduce(MPI_IN_PLACE, &unmatched, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (quiet.requests || quiet.locks || quiet.rma || unmatched || !quiet.sent || !arrivals)
        fail("not quiet at the end");
    if (pl_handles_free(1, true) != 0)
        fail("handles leak");
    pl_quiescence_finish();
    if (pl_world != MPI_COMM_WORLD)
        PMPI_Comm_free(&pl_world);
    return PMPI_Finalize();
}

void pl_sites_forget_comm(MPI_Comm comm)
{
    (void)comm;
}
