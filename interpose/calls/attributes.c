/* SPDX-License-Identifier: MIT */
#include "interpose/calls/attributes.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/calls/wrappers.h"

/* The program's functions of one keyval; our own ones get this as their extra state. Attributes
 * outlive their keyval and some outlive their generation (on MPI_COMM_SELF), so it is never freed.
 */
typedef struct callbacks {
    struct callbacks *next;
    int generation;
    bool silent;
    MPI_Comm_copy_attr_function *copy; /* the same type for communicators, types and windows */
    MPI_Comm_delete_attr_function *discard;
    void *extra;
} callbacks_t;

static callbacks_t *all;

static int copy_comm(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    const callbacks_t *c = extra;
    *flag = 0;
    return c->silent ? MPI_SUCCESS
                     : c->copy(pl_program_comm(comm), keyval, c->extra, in, out, flag);
}

static int discard_comm(MPI_Comm comm, int keyval, void *value, void *extra)
{
    const callbacks_t *c = extra;
    return c->silent ? MPI_SUCCESS : c->discard(pl_program_comm(comm), keyval, value, c->extra);
}

static int copy_other(int object, int keyval, void *extra, void *in, void *out, int *flag)
{
    const callbacks_t *c = extra;
    *flag = 0;
    return c->silent ? MPI_SUCCESS : c->copy(object, keyval, c->extra, in, out, flag);
}

static int discard_other(int object, int keyval, void *value, void *extra)
{
    const callbacks_t *c = extra;
    return c->silent ? MPI_SUCCESS : c->discard(object, keyval, value, c->extra);
}

void pl_attributes_silence(int generation)
{
    for (callbacks_t *c = all; c; c = c->next)
        if (c->generation == generation)
            c->silent = true;
}

/* The Fortran bindings tell MPI afterwards that the functions are Fortran's: those stay as given.
 */
static bool from_fortran(const void *caller)
{
    Dl_info here, fortran;
    void *binding = dlsym(RTLD_DEFAULT, "mpi_comm_create_keyval_");
    return binding && dladdr(caller, &here) && dladdr(binding, &fortran) &&
           here.dli_fbase == fortran.dli_fbase;
}

/* NULL: nothing to be replaced. */
static callbacks_t *keep(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *discard,
                         void *extra, const void *caller)
{
    if ((!copy && !discard) || pl_caller_is_mpi(caller) || from_fortran(caller))
        return NULL;
    callbacks_t *c = calloc(1, sizeof *c);
    if (!c) {
        pl_not_resizable("no memory to keep attribute functions");
        return NULL;
    }
    *c = (callbacks_t){all, pl_handles_generation(), false, copy, discard, extra};
    all = c;
    return c;
}

static int made_keyval(int rc, pl_handle_kind_t kind, const int *keyval, const void *caller)
{
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    if (rc == MPI_SUCCESS)
        pl_made(kind, *keyval, caller);
    return rc;
}

/* Our functions stand in only for functions that are there: NULL means something to MPI. */
#define CREATE_KEYVAL(create, which, copy, discard, keyval, c)                                     \
    create(copy ? copy_##which : NULL, discard ? discard_##which : NULL, keyval, c)

PL_EXPORT int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn,
                                     MPI_Comm_delete_attr_function *comm_delete_attr_fn,
                                     int *comm_keyval, void *extra_state)
{
    callbacks_t *c = keep(comm_copy_attr_fn, comm_delete_attr_fn, extra_state, RETURN_ADDRESS);
    int rc = c ? CREATE_KEYVAL(PMPI_Comm_create_keyval, comm, comm_copy_attr_fn,
                               comm_delete_attr_fn, comm_keyval, c)
               : PMPI_Comm_create_keyval(comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval,
                                         extra_state);
    return made_keyval(rc, PL_HANDLE_COMM_KEYVAL, comm_keyval, RETURN_ADDRESS);
}

PL_EXPORT int MPI_Type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn,
                                     MPI_Type_delete_attr_function *type_delete_attr_fn,
                                     int *type_keyval, void *extra_state)
{
    callbacks_t *c = keep(type_copy_attr_fn, type_delete_attr_fn, extra_state, RETURN_ADDRESS);
    int rc = c ? CREATE_KEYVAL(PMPI_Type_create_keyval, other, type_copy_attr_fn,
                               type_delete_attr_fn, type_keyval, c)
               : PMPI_Type_create_keyval(type_copy_attr_fn, type_delete_attr_fn, type_keyval,
                                         extra_state);
    return made_keyval(rc, PL_HANDLE_TYPE_KEYVAL, type_keyval, RETURN_ADDRESS);
}

PL_EXPORT int MPI_Win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn,
                                    MPI_Win_delete_attr_function *win_delete_attr_fn,
                                    int *win_keyval, void *extra_state)
{
    callbacks_t *c = keep(win_copy_attr_fn, win_delete_attr_fn, extra_state, RETURN_ADDRESS);
    int rc =
        c ? CREATE_KEYVAL(PMPI_Win_create_keyval, other, win_copy_attr_fn, win_delete_attr_fn,
                          win_keyval, c)
          : PMPI_Win_create_keyval(win_copy_attr_fn, win_delete_attr_fn, win_keyval, extra_state);
    return made_keyval(rc, PL_HANDLE_WIN_KEYVAL, win_keyval, RETURN_ADDRESS);
}

PL_EXPORT int MPI_Keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn,
                                int *keyval, void *extra_state)
{
    callbacks_t *c = keep(copy_fn, delete_fn, extra_state, RETURN_ADDRESS);
    int rc = c ? CREATE_KEYVAL(PMPI_Keyval_create, comm, copy_fn, delete_fn, keyval, c)
               : PMPI_Keyval_create(copy_fn, delete_fn, keyval, extra_state);
    return made_keyval(rc, PL_HANDLE_COMM_KEYVAL, keyval, RETURN_ADDRESS);
}

/* Predefined attributes are those of the whole job, except the size of the universe: what the
 * program may have is the world it sees. */
static bool predefined(int keyval, void *value, int *flag, int *rc)
{
    static int universe;
    switch (keyval) {
    case MPI_TAG_UB:
    case MPI_HOST:
    case MPI_IO:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
        break;
    default:
        return false;
    }
    *rc = PMPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag);
    if (keyval == MPI_UNIVERSE_SIZE && *rc == MPI_SUCCESS && *flag) {
        *rc = PMPI_Comm_size(pl_world, &universe);
        *(int **)value = &universe;
    }
    return true;
}

PL_EXPORT int MPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag)
{
    int rc;
    bool mine = comm == MPI_COMM_WORLD && pl_world != MPI_COMM_WORLD;
    if (!mine || !predefined(comm_keyval, attribute_val, flag, &rc))
        rc = PMPI_Comm_get_attr(pl_comm(comm), comm_keyval, attribute_val, flag);
    return PL_UNLIKELY(pl_trial_active) ? pl_trial_result(rc) : rc;
}

PL_EXPORT int MPI_Attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
    return MPI_Comm_get_attr(comm, keyval, attribute_val, flag);
}

PL_EXPORT int MPI_Comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
    static const char name[] = "MPI_COMM_WORLD";
    int rc = PMPI_Comm_get_name(pl_comm(comm), comm_name, resultlen);
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    /* Pliant's world has no name until the program sets one. */
    if (rc == MPI_SUCCESS && comm == MPI_COMM_WORLD && *resultlen == 0) {
        memcpy(comm_name, name, sizeof name);
        *resultlen = sizeof name - 1;
    }
    return rc;
}

PL_EXPORT int MPI_Comm_get_parent(MPI_Comm *parent)
{
    int rc = PMPI_Comm_get_parent(parent);
    if (PL_UNLIKELY(pl_trial_active))
        rc = pl_trial_result(rc);
    if (rc == MPI_SUCCESS && *parent != MPI_COMM_NULL)
        pl_not_resizable("the program was started by another MPI program");
    return rc;
}
