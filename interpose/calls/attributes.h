/* SPDX-License-Identifier: MIT
 * The program's attribute callbacks: called with MPI_COMM_WORLD where MPI has Pliant's world, and
 * not at all once their generation is over. */
#ifndef PLIANT_INTERPOSE_CALLS_ATTRIBUTES_H
#define PLIANT_INTERPOSE_CALLS_ATTRIBUTES_H

/* Copy and delete functions of keyvals made in this generation are never called again. */
void pl_attributes_silence(int generation);

#endif
