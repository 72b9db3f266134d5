/* SPDX-License-Identifier: MIT
 * The objects loaded in this process (executable and shared libraries) and whose they are. */
#ifndef PLIANT_INTERPOSE_MODULES_H
#define PLIANT_INTERPOSE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pl_owner {
    PL_OWNER_PROGRAM, /* the executable and its own libraries: their data is carried over */
    PL_OWNER_CXX, /* libstdc++: allocates for the program, its own data stays with the process */
    PL_OWNER_FORTRAN, /* libgfortran: run-time state of its own */
    PL_OWNER_SYSTEM,  /* libc, the MPI library and what they need */
    PL_OWNER_SELF,    /* libpliant.so */
} pl_owner_t;

typedef struct pl_module {
    uintptr_t base;                  /* load address: addresses relative to it agree on all ranks */
    uintptr_t low, high;             /* everything mapped */
    uintptr_t text_low, text_high;   /* executable part */
    uintptr_t data_low, data_high;   /* writable part after RELRO; empty if low == high */
    uintptr_t file_high;             /* the writable part comes from the file up to here */
    uintptr_t slots_low, slots_high; /* lazily bound PLT slots inside the writable part */
    int tls_module;                  /* the loader's number for its thread-local block, 0: none */
    void *tls;                       /* this thread's block, NULL: none */
    size_t tls_bytes;
    uint32_t id; /* hash of the file name: names the module in messages between ranks */
    pl_owner_t owner;
    const char *path; /* the loader's; "" for the executable */
} pl_module_t;

/* Reads the loader's list; again after it may have grown. Records are never moved or freed. */
void pl_modules_scan(void);

int pl_modules_count(void);
const pl_module_t *pl_module_at(int index); /* 0 is the executable */

/* The module that maps address, or NULL. */
const pl_module_t *pl_module_of(uintptr_t address);
const pl_module_t *pl_module_by_id(uint32_t id);

/* Does this code belong to the program (its executable, its libraries, libstdc++)? Fast: called for
 * every allocation. */
bool pl_module_is_program(const void *code_address);
/* Code of libpliant itself. */
bool pl_module_is_self(uintptr_t address);

#endif
