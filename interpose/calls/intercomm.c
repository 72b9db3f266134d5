/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "interpose/calls/wrappers.h"

/* The leaders meet over the peer communicator, with the tag the program sets aside for this call;
 * the members of each side meet before and after. */
static void meet(MPI_Comm local, int leader, MPI_Comm peer, int remote_leader, int tag)
{
    uint64_t signature = pl_trial_signature(PL_CALL_Intercomm_create, local, leader, 0);
    int rank = -1;
    pl_frame = NULL; /* no stub, no frame */
    pl_trial_gate(local, signature);
    PMPI_Comm_rank(local, &rank);
    if (rank == leader)
        pl_trial_sendrecv(NULL, 0, MPI_BYTE, remote_leader, tag, NULL, 0, MPI_BYTE, remote_leader,
                          tag, peer, MPI_STATUS_IGNORE);
    pl_trial_gate(local, signature);
}

PL_EXPORT int MPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm,
                                   int remote_leader, int tag, MPI_Comm *newintercomm)
{
    MPI_Comm local = pl_comm(local_comm), peer = pl_comm(peer_comm);
    if (PL_UNLIKELY(pl_trial_active))
        meet(local, local_leader, peer, remote_leader, tag);
    int rc = PMPI_Intercomm_create(local, local_leader, peer, remote_leader, tag, newintercomm);
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    if (rc == MPI_SUCCESS)
        pl_made_comm(local, *newintercomm, RETURN_ADDRESS);
    return rc;
}
