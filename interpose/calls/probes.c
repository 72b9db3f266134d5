/* SPDX-License-Identifier: MIT
 * Probing takes no message off the counts; in a trial the blocking probes poll. */
#include "interpose/calls/wrappers.h"

PL_EXPORT int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    int rc = PMPI_Iprobe(source, tag, pl_comm(comm), flag, status);
    if (PL_UNLIKELY(pl_trial_active)) {
        rc = pl_trial_result(rc);
        if (!*flag)
            pl_trial_poll();
    }
    return rc;
}

PL_EXPORT int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                          MPI_Status *status)
{
    int rc = PMPI_Improbe(source, tag, pl_comm(comm), flag, message, status);
    if (PL_UNLIKELY(pl_trial_active)) {
        rc = pl_trial_result(rc);
        if (!*flag)
            pl_trial_poll();
    }
    return rc;
}

PL_EXPORT int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    if (!PL_UNLIKELY(pl_trial_active))
        return PMPI_Probe(source, tag, pl_comm(comm), status);
    int rc, flag = 0;
    do
        rc = MPI_Iprobe(source, tag, comm, &flag, status);
    while (!flag && rc == MPI_SUCCESS);
    return rc;
}

PL_EXPORT int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message,
                         MPI_Status *status)
{
    if (!PL_UNLIKELY(pl_trial_active))
        return PMPI_Mprobe(source, tag, pl_comm(comm), message, status);
    int rc, flag = 0;
    do
        rc = MPI_Improbe(source, tag, comm, &flag, message, status);
    while (!flag && rc == MPI_SUCCESS);
    return rc;
}
