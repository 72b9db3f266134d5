/* SPDX-License-Identifier: MIT
 * With a single source everything looks replicated. But the targets are several: what changed
 * between their own arrivals at the resize point and differs among them is private by nature. */
#ifndef PLIANT_INTERPOSE_NATURE_H
#define PLIANT_INTERPOSE_NATURE_H

#include <mpi.h>

#include "common/status.h"
#include "interpose/match.h"
#include "interpose/snapshot.h"
#include "interpose/words.h"

/* Sets PL_FLAG_NATURE in words. Collective over the nt targets, which the source is one of. first,
 * here: this target at its arrival before, and now; first is NULL if there was none. */
pl_status_t pl_nature_mark(MPI_Comm targets, int nt, const pl_snapshot_t *first,
                           const pl_snapshot_t *here, const pl_match_t *match, pl_words_t *words);

#endif
