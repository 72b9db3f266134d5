/* SPDX-License-Identifier: MIT
 * What the program's own MPI calls tell about its buffers. */
#ifndef PLIANT_INTERPOSE_EVIDENCE_H
#define PLIANT_INTERPOSE_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

/* How far messages were received into [address, address + bytes) from its beginning on, and up to
 * its end: the ghosts below and above. 0: none seen. */
void pl_evidence_ghosts(uintptr_t address, int64_t bytes, int64_t *below, int64_t *above);

/* Was anything received into these bytes? */
bool pl_evidence_row(uintptr_t address, int64_t bytes);

/* Forgets everything: the buffers of an earlier run of main are gone. */
void pl_evidence_clear(void);

#endif
