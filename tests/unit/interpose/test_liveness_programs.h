/* SPDX-License-Identifier: MIT
 * What the test and the programs it looks at share. The programs are built without an MPI: the test
 * plays one. */
#ifndef PLIANT_TESTS_LIVENESS_PROGRAMS_H
#define PLIANT_TESTS_LIVENESS_PROGRAMS_H

#include <stdint.h>

/* Numbers that are looked for in the frames: in at least one place not dead, in all places dead. */
#define MAGIC_LIVE 0x1badb002c0de4a11
#define MAGIC_DEAD 0x0dead0dd5c4a7c4e
enum { TEST_LIVE = 1, TEST_DEAD = 2 };

typedef struct test_program {
    const char *name;
    int (*run)(void);
    int expect;
} test_program_t;

/* Handles and names as in MPICH. */
enum { MPI_DOUBLE = 0x4c00080b, MPI_SUM = 0x58000003, MPI_COMM_WORLD = 0x44000000 };
#define MPI_IN_PLACE ((void *)-1)
int MPI_Allreduce(const void *from, void *to, int count, int type, int op, int comm);

/* Functions that the programs' compiler knows nothing of. */
int opaque_number(int number);
int64_t opaque_magic(int live);
int opaque_look(int64_t *at, int use);
void opaque_keep(int64_t *at);
int opaque_kept(void);
void opaque_box(void *box);
int opaque_in_box(void);
int opaque_second(double *first);
int opaque_downwards(int64_t *end, int count);

#endif
