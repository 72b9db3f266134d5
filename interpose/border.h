/* SPDX-License-Identifier: MIT
 * What the MPI wrappers (interpose/calls/) and the rest of interpose/ know of each other. Marked
 * [wrappers]: defined by interpose/calls, interpose/handles.c and interpose/quiescence.c; all else
 * is defined by the modules behind the border. Nothing here is thread-safe: programs with threads
 * are not resized. */
#ifndef PLIANT_INTERPOSE_BORDER_H
#define PLIANT_INTERPOSE_BORDER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define PL_EXPORT      __attribute__((visibility("default")))
#define PL_UNLIKELY(x) __builtin_expect(!!(x), 0)

#pragma GCC visibility push(hidden)

/* One constant per function of mpi.h; MPI_ is left out of the name: PL_CALL_Allreduce. */
enum pl_call {
#define CALL(name, class) PL_CALL_##name,
#include "interpose/generated/calls.def"
#undef CALL
    PL_CALL_COUNT
};

/* Callee-saved registers of the program at a collective, pushed by the stub (lowest address first)
 * and popped from here when it returns: writing a field changes the program's register. */
struct pl_frame {
    uint64_t pad, r15, r14, r13, r12, rbx, rbp, ret;
};
_Static_assert(sizeof(struct pl_frame) == 64, "the stubs push 64 bytes, return address included");

/* Frame of the collective being served: set by the stub, and again before pl_arrive. NULL at the
 * gates of other calls. */
extern __thread struct pl_frame *pl_frame __attribute__((tls_model("initial-exec")));

/* The communicator the program sees as MPI_COMM_WORLD: MPI_COMM_WORLD itself until MPI_Init and
 * whenever nothing is virtual. */
extern MPI_Comm pl_world;

static inline MPI_Comm pl_comm(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD ? pl_world : comm;
}

/* The way back, for communicators handed to the program's callbacks. */
static inline MPI_Comm pl_program_comm(MPI_Comm real)
{
    return real == pl_world ? MPI_COMM_WORLD : real;
}

/* --- a trial: set-up runs again, may fail, and must then be undone ------------------------- */

/* This rank is in a trial. */
extern bool pl_trial_active;

/* Collective over real: returns when all its members came with the same signature, else gives up
 * (does not return). */
void pl_trial_gate(MPI_Comm real, uint64_t signature);

/* Polls a request started in a trial until it is done; returns its result, with status set, or
 * gives up and keeps the request. rc is the result of the call that started it: if that is an
 * error there is no request, and pl_trial_result(rc) is returned. */
int pl_trial_complete(int rc, MPI_Request *request, MPI_Status *status);

/* One turn of a polling loop: yields the processor, and returns or gives up. */
void pl_trial_poll(void);

/* To be applied to the result of every MPI call made in a trial; gives up on errors which would
 * have ended the program. */
int pl_trial_result(int rc);

/* Gives up unless bytes from buffer on can be read. Not called with MPI_BOTTOM, MPI_IN_PLACE or
 * without bytes. */
void pl_trial_buffer(const void *buffer, MPI_Count bytes);

/* Gives up: the named call cannot be undone once it has been started. */
void pl_trial_refuse(const char *call) __attribute__((noreturn));

/* --- off the trial --------------------------------------------------------------------------- */

/* At the return of a blocking collective, with pl_frame set and rc the result of the call; returns
 * the result for the program. comm is the program's handle (may be MPI_COMM_WORLD). */
int pl_arrive(enum pl_call call, MPI_Comm comm, int rc);

/* A communicator is gone: MPI may give its handle to another one. */
void pl_sites_forget_comm(MPI_Comm comm);

/* Resizes are refused from now on; the first reason is kept. reason: static storage. */
void pl_not_resizable(const char *reason);

/* The address lies in the text of the MPI library itself (not of its Fortran bindings). */
bool pl_caller_is_mpi(const void *return_address);

/* --- evidence about buffers ------------------------------------------------------------------ */

/* The wrappers report buffers only while this is true. */
extern bool pl_evidence_on;

/* A receive lands, or may land, in bytes from buffer on. */
void pl_evidence_receive(const void *buffer, MPI_Count bytes);

/* What the arguments of (All)gatherv and Scatterv say: this rank's part (sent, or received by
 * Scatterv) and where each rank's part lies in the whole. */
struct pl_evidence {
    enum pl_call call;
    MPI_Comm comm;        /* real communicator */
    int root;             /* rank that holds the whole; -1: all do */
    const void *part;     /* may be MPI_IN_PLACE */
    MPI_Count part_count; /* elements of part_type */
    MPI_Datatype part_type;
    const void *whole;  /* whole, counts and displs are significant on the root only */
    const void *counts; /* per rank of comm, in elements of whole_type */
    const void *displs;
    MPI_Datatype whole_type;
    bool large; /* counts are MPI_Count, displs MPI_Aint; else both int */
};

/* evidence and what it points to are valid during the call only. */
void pl_evidence_collective(const struct pl_evidence *evidence);

#pragma GCC visibility pop

#endif
