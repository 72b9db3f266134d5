/* SPDX-License-Identifier: MIT
 * Finds an mpiexec that starts MPICH programs, and libpliant.so. */
#ifndef PLIANT_TOOLS_MPIEXEC_H
#define PLIANT_TOOLS_MPIEXEC_H

#include <stddef.h>

#include "common/status.h"

/* wanted, or NULL: the first of mpiexec.mpich, mpiexec.hydra, mpiexec in PATH that is not another
 * MPI's. Complains and says what to do if there is none. */
pl_status_t pl_mpiexec_find(const char *wanted, char *out, size_t size);

/* wanted, or NULL: libpliant.so beside this executable or in ../lib. Complains if it is not there.
 */
pl_status_t pl_library_find(const char *wanted, char *out, size_t size);

#endif
