/* SPDX-License-Identifier: MIT
 * MPI objects the program has made, by kind and generation (a generation is one run of the
 * program's set-up), so that a whole generation can be freed behind the program's back.
 * Handles are ints, as in every library of the MPICH ABI. [wrappers] */
#ifndef PLIANT_INTERPOSE_HANDLES_H
#define PLIANT_INTERPOSE_HANDLES_H

#include <stdbool.h>

/* In the order in which a generation is freed. */
typedef enum pl_handle_kind {
    PL_HANDLE_WIN,
    PL_HANDLE_REQUEST, /* persistent ones; in a trial all that are in flight */
    PL_HANDLE_TYPE,
    PL_HANDLE_OP,
    PL_HANDLE_GROUP,
    PL_HANDLE_COMM,
    PL_HANDLE_COMM_KEYVAL,
    PL_HANDLE_TYPE_KEYVAL,
    PL_HANDLE_WIN_KEYVAL,
    PL_HANDLE_ERRHANDLER,
    PL_HANDLE_INFO,
    PL_HANDLE_KINDS
} pl_handle_kind_t;

/* What Start of a persistent request does. */
typedef enum pl_persistent {
    PL_PERSISTENT_NONE, /* not persistent */
    PL_PERSISTENT_SEND,
    PL_PERSISTENT_RECEIVE,
    PL_PERSISTENT_OTHER, /* a collective, or a partner MPI_PROC_NULL: no message is counted */
} pl_persistent_t;

typedef struct pl_handle {
    struct pl_handle *previous, *next; /* order of creation, all kinds */
    int refs;                          /* times the program was given this handle, less frees */
    int generation;
    int handle;
    pl_handle_kind_t kind;
    pl_persistent_t persistent; /* requests */
    bool active;                /* persistent requests: started and not complete */
    bool dead;    /* windows: freed by the program, the rest waits for pl_handles_free */
    long pending; /* windows: operations since the last synchronisation */
    int guard;    /* windows made in a trial: communicator for gates; else MPI_COMM_NULL */
} pl_handle_t;

/* Handles made from now on belong to this generation; 0 at first. */
void pl_handles_begin(int generation);
int pl_handles_generation(void);

/* The program got a handle. Predefined and null handles are ignored, a known one is counted.
 * Returns the entry, NULL if there is none (out of memory makes the program non-resizable). */
pl_handle_t *pl_handle_made(pl_handle_kind_t kind, int handle);

/* The program gave one back. Unknown ones are ignored. */
void pl_handle_freed(pl_handle_kind_t kind, int handle);

/* The entry of a handle, NULL if it is not known. */
pl_handle_t *pl_handle_find(pl_handle_kind_t kind, int handle);

/* Handles of one kind and generation, newest first, each as often as it is referenced. Returns how
 * many there are; at most capacity are stored. */
int pl_handles_list(pl_handle_kind_t kind, int generation, int *handles, int capacity);

/* Frees every object of the generation: kind by kind in the order above, newest first. The
 * program's attribute-delete functions of this generation are not called, now or later. Windows,
 * whose freeing is collective, are freed only if collective_allowed. Requests at work are leaked:
 * complete them before, and report them with pl_handle_freed.
 * Returns the number of objects that could not be freed (they leak). */
int pl_handles_free(int generation, bool collective_allowed);

/* Frees the windows of the generation that the program freed while a trial could still be undone.
 * Collective over all processes that were in the trial. Returns how many could not be freed. */
int pl_handles_free_dead(int generation);

/* Forgets the generation's handles without freeing anything. */
void pl_handles_forget(int generation);

#endif
