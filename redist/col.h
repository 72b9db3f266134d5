/* SPDX-License-Identifier: MIT
 * Method col: all streams of an exchange by MPI_Alltoallv, in rounds of bounded size. */
#ifndef PLIANT_REDIST_COL_H
#define PLIANT_REDIST_COL_H

#include <mpi.h>

#include "common/status.h"
#include "redist/exchange.h"
#include "redist/move.h"

/* Collective over comm. `status` is how far this rank got with its preparations; an error of one
 * rank is the result of all, before anything is sent. Sets the bytes and rounds in stats. */
pl_status_t pl_col_run(pl_exchange_t *exchange, pl_status_t status, MPI_Comm comm,
                       pl_move_stats_t *stats);

#endif
