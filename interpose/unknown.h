/* SPDX-License-Identifier: MIT
 * MPI functions the program uses and this build does not know: it runs, but is not resized. */
#ifndef PLIANT_INTERPOSE_UNKNOWN_H
#define PLIANT_INTERPOSE_UNKNOWN_H

/* Looks through the symbols that the program's modules import. */
void pl_unknown_look(void);

#endif
