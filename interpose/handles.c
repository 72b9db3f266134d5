/* SPDX-License-Identifier: MIT */
#include "interpose/handles.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element)                                                               \
    do {                                                                                           \
        out_of_memory = true;                                                                      \
    } while (0)
#include <uthash.h>

#include "interpose/border.h"
#include "interpose/calls/attributes.h"

typedef struct entry {
    pl_handle_t shown; /* first: entries are found through it */
    struct {
        int handle;
        int kind;
    } key;
    UT_hash_handle hh;
} entry_t;

static bool out_of_memory;
static entry_t *table;
static pl_handle_t *newest, *oldest;
static pl_handle_t *recent[PL_HANDLE_KINDS]; /* the last one found, per kind */
static int current;

/* The two top bits of an MPICH handle: 0 null, 1 predefined, 2 and 3 made at run time. */
static bool made_at_run_time(int handle)
{
    return ((uint32_t)handle >> 30) > 1;
}

void pl_handles_begin(int generation)
{
    current = generation;
}

pl_handle_t *pl_handle_find(pl_handle_kind_t kind, int handle)
{
    pl_handle_t *last = recent[kind];
    if (last && last->handle == handle)
        return last;
    entry_t *found = NULL;
    __typeof__(found->key) key = {handle, kind};
    HASH_FIND(hh, table, &key, sizeof key, found);
    if (!found)
        return NULL;
    recent[kind] = &found->shown;
    return &found->shown;
}

static void link_newest(pl_handle_t *h)
{
    h->previous = newest;
    if (newest)
        newest->next = h;
    else
        oldest = h;
    newest = h;
}

static void drop(pl_handle_t *h)
{
    entry_t *entry = (entry_t *)h;
    if (h->previous)
        h->previous->next = h->next;
    else
        oldest = h->next;
    if (h->next)
        h->next->previous = h->previous;
    else
        newest = h->previous;
    if (recent[h->kind] == h)
        recent[h->kind] = NULL;
    HASH_DEL(table, entry);
    free(entry);
}

static pl_handle_t *forget_nothing(void)
{
    pl_not_resizable("no memory to keep the program's MPI handles");
    return NULL;
}

pl_handle_t *pl_handle_made(pl_handle_kind_t kind, int handle)
{
    if (!made_at_run_time(handle))
        return NULL;
    pl_handle_t *known = pl_handle_find(kind, handle);
    if (known) {
        known->refs++;
        return known;
    }
    entry_t *entry = calloc(1, sizeof *entry);
    if (!entry)
        return forget_nothing();
    entry->shown.refs = 1;
    entry->shown.generation = current;
    entry->shown.handle = entry->key.handle = handle;
    entry->shown.kind = kind;
    entry->key.kind = kind;
    entry->shown.guard = MPI_COMM_NULL;
    out_of_memory = false;
    HASH_ADD(hh, table, key, sizeof entry->key, entry);
    if (out_of_memory) {
        free(entry);
        return forget_nothing();
    }
    link_newest(&entry->shown);
    return &entry->shown;
}

void pl_handle_freed(pl_handle_kind_t kind, int handle)
{
    pl_handle_t *h = pl_handle_find(kind, handle);
    if (h && --h->refs == 0)
        drop(h);
}

int pl_handles_list(pl_handle_kind_t kind, int generation, int *handles, int capacity)
{
    int n = 0;
    for (pl_handle_t *h = newest; h; h = h->previous) {
        if (h->kind != kind || h->generation != generation)
            continue;
        for (int i = 0; i < h->refs; i++, n++)
            if (n < capacity)
                handles[n] = h->handle;
    }
    return n;
}

static int free_window(pl_handle_t *h)
{
    MPI_Comm guard = h->guard;
    MPI_Win window = h->handle;
    PMPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    int rc = PMPI_Win_free(&window);
    if (guard != MPI_COMM_NULL)
        PMPI_Comm_free(&guard);
    return rc;
}

static int free_one(pl_handle_t *h)
{
    int handle = h->handle;
    switch (h->kind) {
    case PL_HANDLE_WIN:
        return free_window(h);
    case PL_HANDLE_REQUEST:
        return PMPI_Request_free(&handle);
    case PL_HANDLE_TYPE:
        return PMPI_Type_free(&handle);
    case PL_HANDLE_OP:
        return PMPI_Op_free(&handle);
    case PL_HANDLE_GROUP:
        return PMPI_Group_free(&handle);
    case PL_HANDLE_COMM:
        return PMPI_Comm_free(&handle);
    case PL_HANDLE_COMM_KEYVAL:
        return PMPI_Comm_free_keyval(&handle);
    case PL_HANDLE_TYPE_KEYVAL:
        return PMPI_Type_free_keyval(&handle);
    case PL_HANDLE_WIN_KEYVAL:
        return PMPI_Win_free_keyval(&handle);
    case PL_HANDLE_ERRHANDLER:
        return PMPI_Errhandler_free(&handle);
    case PL_HANDLE_INFO:
        return PMPI_Info_free(&handle);
    default:
        return MPI_ERR_INTERN;
    }
}

/* A request that is not persistent, or at work, cannot be freed: MPI would go on using its buffer.
 */
static bool can_be_freed(const pl_handle_t *h, bool allowed)
{
    return allowed && !h->active && (h->kind != PL_HANDLE_REQUEST || h->persistent);
}

static int free_kind(pl_handle_kind_t kind, int generation, bool allowed)
{
    int leaked = 0;
    for (pl_handle_t *h = newest, *previous; h; h = previous) {
        previous = h->previous;
        if (h->kind != kind || h->generation != generation)
            continue;
        for (int i = 0; i < h->refs; i++)
            if (!can_be_freed(h, allowed) || free_one(h) != MPI_SUCCESS)
                leaked++;
        drop(h);
    }
    return leaked;
}

int pl_handles_free_dead(int generation)
{
    int leaked = 0;

    for (pl_handle_t *h = newest, *previous; h; h = previous) {
        previous = h->previous;
        if (h->kind != PL_HANDLE_WIN || h->generation != generation || !h->dead)
            continue;
        leaked += free_window(h) != MPI_SUCCESS;
        drop(h);
    }
    return leaked;
}

int pl_handles_free(int generation, bool collective_allowed)
{
    MPI_Comm predefined[2] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    MPI_Errhandler handlers[2];
    int leaked = 0;
    /* An object that cannot be freed is a leak, not the end of the program. */
    for (int i = 0; i < 2; i++) {
        PMPI_Comm_get_errhandler(predefined[i], &handlers[i]);
        PMPI_Comm_set_errhandler(predefined[i], MPI_ERRORS_RETURN);
    }
    pl_attributes_silence(generation);
    for (int kind = 0; kind < PL_HANDLE_KINDS; kind++)
        leaked += free_kind(kind, generation, kind != PL_HANDLE_WIN || collective_allowed);
    for (int i = 0; i < 2; i++) {
        PMPI_Comm_set_errhandler(predefined[i], handlers[i]);
        PMPI_Errhandler_free(&handlers[i]);
    }
    return leaked;
}

void pl_handles_forget(int generation)
{
    for (pl_handle_t *h = newest, *previous; h; h = previous) {
        previous = h->previous;
        if (h->generation == generation)
            drop(h);
    }
}

int pl_handles_generation(void)
{
    return current;
}
