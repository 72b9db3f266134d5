/* SPDX-License-Identifier: MIT */
#include "interpose/calls/wrappers.h"

#include <limits.h>
#include <stdlib.h>

static bool is_inter(MPI_Comm comm)
{
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    return inter;
}

MPI_Count pl_trial_bytes(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    return count * size;
}

uint64_t pl_trial_signature(enum pl_call call, MPI_Comm real, int root, MPI_Count bytes)
{
    uint64_t signature = (uint64_t)call + 1;
    if (is_inter(real))
        return signature;
    signature = signature * 0x9e3779b97f4a7c15u + (uint64_t)(int64_t)root;
    signature = signature * 0x9e3779b97f4a7c15u + (uint64_t)bytes;
    return signature >> 2; /* room for the gate to negate it in a signed word */
}

/* Size of a basic type, which its handle tells in every library of the MPICH ABI; 0 for the others
 * (pairs like MPI_DOUBLE_INT, and derived types). */
static inline MPI_Count basic_size(MPI_Datatype type)
{
    return (unsigned)type >> 26 == (unsigned)MPI_BYTE >> 26 ? (type >> 8) & 0xff : 0;
}

/* What count elements span, from their first to their last byte, holes included. */
static inline void span(MPI_Count count, MPI_Datatype type, MPI_Count *start, MPI_Count *bytes)
{
    if (basic_size(type)) {
        *start = 0;
        *bytes = count * basic_size(type);
        return;
    }
    MPI_Count lb = 0, extent = 0, true_lb = 0, true_extent = 0;
    PMPI_Type_get_extent_x(type, &lb, &extent);
    PMPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
    MPI_Count last = (count - 1) * extent;
    *start = true_lb + (last < 0 ? last : 0);
    *bytes = true_extent + (last < 0 ? -last : last);
}

void pl_trial_reads(const void *buffer, MPI_Count count, MPI_Datatype type)
{
    if (count <= 0 || buffer == MPI_BOTTOM || buffer == MPI_IN_PLACE || type == MPI_DATATYPE_NULL)
        return;
    MPI_Count start, bytes;
    span(count, type, &start, &bytes);
    if (bytes > 0)
        pl_trial_buffer((const char *)buffer + start, bytes);
}

/* Ranks whose buffers count: 0 if this rank's buffer is not significant. */
static int ranks_read(MPI_Comm real, int root)
{
    int rank = -1, size = 0;
    if (is_inter(real))
        return 0;
    PMPI_Comm_rank(real, &rank);
    PMPI_Comm_size(real, &size);
    return root == -1 || root == rank ? size : 0;
}

void pl_trial_reads_one(MPI_Comm real, int root, const void *buffer, MPI_Count count,
                        MPI_Datatype type)
{
    if (ranks_read(real, root))
        pl_trial_reads(buffer, count, type);
}

void pl_trial_reads_each(MPI_Comm real, int root, const void *buffer, MPI_Count count,
                         MPI_Datatype type)
{
    pl_trial_reads(buffer, count * ranks_read(real, root), type);
}

static void reads_part(const void *buffer, MPI_Count count, MPI_Count displ, MPI_Datatype type)
{
    MPI_Count lb = 0, extent = 0;
    PMPI_Type_get_extent_x(type, &lb, &extent);
    pl_trial_reads((const char *)buffer + displ * extent, count, type);
}

void pl_trial_reads_vector(MPI_Comm real, int root, const void *buffer, const int counts[],
                           const int displs[], MPI_Datatype type)
{
    int size = buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM ? 0 : ranks_read(real, root);
    for (int rank = 0; rank < size; rank++)
        reads_part(buffer, counts[rank], displs[rank], type);
}

void pl_trial_reads_vector_c(MPI_Comm real, int root, const void *buffer, const MPI_Count counts[],
                             const MPI_Aint displs[], MPI_Datatype type)
{
    int size = buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM ? 0 : ranks_read(real, root);
    for (int rank = 0; rank < size; rank++)
        reads_part(buffer, counts[rank], displs[rank], type);
}

/* The large-count calls are used only where needed: older libraries lack them. */
static int start_send(const void *buffer, MPI_Count count, MPI_Datatype type, int dest, int tag,
                      MPI_Comm real, MPI_Request *request)
{
    return count <= INT_MAX ? PMPI_Isend(buffer, (int)count, type, dest, tag, real, request)
                            : PMPI_Isend_c(buffer, count, type, dest, tag, real, request);
}

static int start_receive(void *buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                         MPI_Comm real, MPI_Request *request)
{
    return count <= INT_MAX ? PMPI_Irecv(buffer, (int)count, type, source, tag, real, request)
                            : PMPI_Irecv_c(buffer, count, type, source, tag, real, request);
}

int pl_trial_sendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                      int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                      int source, int recvtag, MPI_Comm real, MPI_Status *status)
{
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
    int rc = start_receive(recvbuf, recvcount, recvtype, source, recvtag, real, &receive);
    if (rc != MPI_SUCCESS)
        return pl_trial_result(rc);
    /* While one request is waited for, the other must be known in case the wait gives up. */
    pl_handle_made(PL_HANDLE_REQUEST, receive);
    rc = start_send(sendbuf, sendcount, sendtype, dest, sendtag, real, &send);
    rc = pl_trial_complete(rc, &send, MPI_STATUS_IGNORE);
    pl_handle_freed(PL_HANDLE_REQUEST, receive);
    int received = pl_trial_complete(MPI_SUCCESS, &receive, status);
    return rc != MPI_SUCCESS ? rc : received;
}

static int pack(const void *buffer, MPI_Count count, MPI_Datatype type, MPI_Comm real,
                void **packed, MPI_Count *bytes)
{
    MPI_Count room = 0, position = 0;
    int small_room = 0, small_position = 0, rc;
    if (count <= INT_MAX && pl_trial_bytes(count, type) < INT_MAX / 2) {
        rc = PMPI_Pack_size((int)count, type, real, &small_room);
        room = small_room;
    } else {
        rc = PMPI_Pack_size_c(count, type, real, &room);
    }
    if (rc != MPI_SUCCESS)
        return rc;
    *packed = malloc((size_t)room + 1);
    if (!*packed)
        return MPI_ERR_NO_MEM;
    if (small_room || !room) {
        rc = PMPI_Pack(buffer, (int)count, type, *packed, small_room, &small_position, real);
        position = small_position;
    } else {
        rc = PMPI_Pack_c(buffer, count, type, *packed, room, &position, real);
    }
    *bytes = position;
    return rc;
}

int pl_trial_sendrecv_replace(void *buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag,
                              int source, int recvtag, MPI_Comm real, MPI_Status *status)
{
    void *packed = NULL;
    MPI_Count bytes = 0;
    int rc = pack(buf, count, type, real, &packed, &bytes);
    /* Giving up leaks the copy: its message may still be on the way. */
    if (rc == MPI_SUCCESS)
        rc = pl_trial_sendrecv(packed, bytes, MPI_PACKED, dest, sendtag, buf, count, type, source,
                               recvtag, real, status);
    else
        rc = pl_trial_result(rc);
    free(packed);
    return rc;
}

void pl_evidence_receive_buffer(const void *buffer, MPI_Count count, MPI_Datatype type)
{
    if (count <= 0 || buffer == MPI_BOTTOM || type == MPI_DATATYPE_NULL)
        return;
    MPI_Count start, bytes;
    span(count, type, &start, &bytes);
    if (bytes > 0)
        pl_evidence_receive((const char *)buffer + start, bytes);
}
