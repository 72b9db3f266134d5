/* SPDX-License-Identifier: MIT
 * What the generated wrappers are made of, and what the ones written by hand share with them. */
#ifndef PLIANT_INTERPOSE_CALLS_WRAPPERS_H
#define PLIANT_INTERPOSE_CALLS_WRAPPERS_H

#include <stddef.h>

#include "interpose/border.h"
#include "interpose/handles.h"
#include "interpose/quiescence.h"

/* Wrapping a deprecated call is no use of it. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define HIDDEN         __attribute__((visibility("hidden"), used))
#define COLD           __attribute__((noinline, cold))
#define RETURN_ADDRESS __builtin_return_address(0)

/* In a wrapper that a stub has called: the stub's frame, above the words it pushed after it, its
 * return address and our saved frame pointer. A callback may have set pl_frame since. */
#define STUB_FRAME(words)                                                                          \
    ((struct pl_frame *)((uint64_t *)__builtin_frame_address(0) + 2 + (words)))

/* --- trial.c: used in a trial only ----------------------------------------------------------- */

/* What all ranks must agree on. On an intercommunicator that is the call alone. */
uint64_t pl_trial_signature(enum pl_call call, MPI_Comm real, int root, MPI_Count bytes);

/* Bytes of count elements without holes. */
MPI_Count pl_trial_bytes(MPI_Count count, MPI_Datatype type);

/* Check memory that MPI will read: count elements; as much for every rank of real; or a part for
 * every rank. Nothing is checked for MPI_BOTTOM, MPI_IN_PLACE, intercommunicators, or on ranks
 * other than root (-1: on all). */
void pl_trial_reads(const void *buffer, MPI_Count count, MPI_Datatype type);
void pl_trial_reads_one(MPI_Comm real, int root, const void *buffer, MPI_Count count,
                        MPI_Datatype type);
void pl_trial_reads_each(MPI_Comm real, int root, const void *buffer, MPI_Count count,
                         MPI_Datatype type);
void pl_trial_reads_vector(MPI_Comm real, int root, const void *buffer, const int counts[],
                           const int displs[], MPI_Datatype type);
void pl_trial_reads_vector_c(MPI_Comm real, int root, const void *buffer, const MPI_Count counts[],
                             const MPI_Aint displs[], MPI_Datatype type);

int pl_trial_sendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                      int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                      int source, int recvtag, MPI_Comm real, MPI_Status *status);
int pl_trial_sendrecv_replace(void *buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag,
                              int source, int recvtag, MPI_Comm real, MPI_Status *status);

/* --- handles, requests, messages ------------------------------------------------------------- */

/* A window made in a trial gets a communicator for its gates, and returns errors. */
void pl_trial_window(MPI_Comm real, pl_handle_t *window);

/* A communicator made in a trial has, for the program, its parent's error handler. */
void pl_trial_made_comm(MPI_Comm parent, MPI_Comm made);

static inline void pl_made(pl_handle_kind_t kind, int handle, const void *caller)
{
    if (!pl_caller_is_mpi(caller))
        pl_handle_made(kind, handle);
}

static inline void pl_freed_handle(pl_handle_kind_t kind, int handle, const void *caller)
{
    if (kind == PL_HANDLE_COMM)
        pl_sites_forget_comm(handle);
    if (!pl_caller_is_mpi(caller))
        pl_handle_freed(kind, handle);
}

static inline void pl_made_comm(MPI_Comm parent, MPI_Comm made, const void *caller)
{
    if (made == MPI_COMM_NULL || pl_caller_is_mpi(caller))
        return;
    pl_handle_made(PL_HANDLE_COMM, made);
    if (PL_UNLIKELY(pl_trial_active))
        pl_trial_made_comm(parent, made);
}

static inline void pl_made_win(MPI_Comm real, MPI_Win made, const void *caller)
{
    if (pl_caller_is_mpi(caller))
        return;
    pl_handle_t *window = pl_handle_made(PL_HANDLE_WIN, made);
    if (PL_UNLIKELY(pl_trial_active) && window)
        pl_trial_window(real, window);
}

static inline void pl_request_started(MPI_Request request)
{
    pl_quiet.requests += request != MPI_REQUEST_NULL;
    if (PL_UNLIKELY(pl_trial_active))
        pl_request_started_slow(request);
}

static inline void pl_persistent_made(MPI_Request request, pl_persistent_t kind, int partner)
{
    pl_handle_t *entry = pl_handle_made(PL_HANDLE_REQUEST, request);
    if (entry)
        entry->persistent = partner == MPI_PROC_NULL ? PL_PERSISTENT_OTHER : kind;
}

/* Receives that a matched message stands for. */
static inline long pl_message_counts(MPI_Message message)
{
    return message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC;
}

void pl_evidence_receive_buffer(const void *buffer, MPI_Count count, MPI_Datatype type);

#endif
