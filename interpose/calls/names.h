/* SPDX-License-Identifier: MIT
 * Names of the MPI functions this build knows. */
#ifndef PLIANT_INTERPOSE_CALLS_NAMES_H
#define PLIANT_INTERPOSE_CALLS_NAMES_H

#include <stdbool.h>
#include "interpose/border.h"

/* Full name ("MPI_Allreduce"); static storage, never NULL. */
const char *pl_call_name(enum pl_call call);

/* A function of this name is in the table. */
bool pl_call_known(const char *name);

#endif
