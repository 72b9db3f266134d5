/* SPDX-License-Identifier: MIT */
#include "interpose/calls/errhandlers.h"

#include <stdlib.h>

#include "interpose/calls/wrappers.h"
#include "interpose/trial.h"

/* Handlers in a trial of what does not have MPI's default, MPI_ERRORS_ARE_FATAL. Objects made in
 * the trial all have an entry, since they return errors for now. */
typedef struct setting {
    pl_handle_kind_t kind;
    int object;
    MPI_Errhandler handler;
} setting_t;

static setting_t *settings;
static int n_settings, room;

static setting_t *find(pl_handle_kind_t kind, int object)
{
    for (int i = 0; i < n_settings; i++)
        if (settings[i].kind == kind && settings[i].object == object)
            return &settings[i];
    return NULL;
}

static void remember(pl_handle_kind_t kind, int object, MPI_Errhandler handler)
{
    setting_t *setting = find(kind, object);
    if (!setting) {
        if (n_settings == room) {
            int larger = room ? 2 * room : 16;
            setting_t *grown = realloc(settings, (size_t)larger * sizeof *grown);
            if (!grown) {
                pl_not_resizable("no memory to keep error handlers");
                return;
            }
            settings = grown;
            room = larger;
        }
        setting = &settings[n_settings++];
    }
    *setting = (setting_t){kind, object, handler};
}

static MPI_Errhandler expected(pl_handle_kind_t kind, int object)
{
    const setting_t *setting = find(kind, object);
    return setting ? setting->handler : MPI_ERRORS_ARE_FATAL;
}

/* A handle that counts as a reference in MPI, as the program may free it. */
static int get_expected(pl_handle_kind_t kind, int object, MPI_Errhandler *handler)
{
    MPI_Errhandler before;
    int rc = PMPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    if (rc != MPI_SUCCESS)
        return rc;
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, expected(kind, object));
    rc = PMPI_Comm_get_errhandler(MPI_COMM_SELF, handler);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    PMPI_Errhandler_free(&before);
    return rc;
}

void pl_errhandlers_begin(void)
{
    n_settings = 0;
    remember(PL_HANDLE_COMM, MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* Errors of calls without a communicator go to the real MPI_COMM_WORLD or MPI_COMM_SELF, so what
 * the program sets on its world holds there too. */
static int set_comm(MPI_Comm real, MPI_Errhandler handler)
{
    if (real == pl_world && real != MPI_COMM_WORLD)
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    return PMPI_Comm_set_errhandler(real, handler);
}

void pl_errhandlers_commit(void)
{
    set_comm(pl_world, expected(PL_HANDLE_COMM, pl_world));
    for (int i = 0; i < n_settings; i++) {
        const setting_t *s = &settings[i];
        bool alive = s->object == MPI_COMM_SELF || s->object == pl_world;
        const pl_handle_t *h = pl_handle_find(s->kind, s->object);
        if (!alive && (!h || h->dead))
            continue;
        if (s->kind == PL_HANDLE_COMM)
            PMPI_Comm_set_errhandler(s->object, s->handler);
        else
            PMPI_Win_set_errhandler(s->object, s->handler);
    }
    n_settings = 0;
}

void pl_errhandlers_drop(void)
{
    n_settings = 0;
}

void pl_trial_made_comm(MPI_Comm parent, MPI_Comm made)
{
    pl_trial_comm_made(made);
    remember(PL_HANDLE_COMM, made, expected(PL_HANDLE_COMM, parent));
}

void pl_errhandlers_made_window(MPI_Win win)
{
    PMPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    remember(PL_HANDLE_WIN, win, MPI_ERRORS_ARE_FATAL);
}

PL_EXPORT int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    if (!PL_UNLIKELY(pl_trial_active))
        return set_comm(pl_comm(comm), errhandler);
    remember(PL_HANDLE_COMM, pl_comm(comm), errhandler);
    return MPI_SUCCESS;
}

PL_EXPORT int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
    return MPI_Comm_set_errhandler(comm, errhandler);
}

static int get_comm(MPI_Comm comm, MPI_Errhandler *errhandler, const void *caller)
{
    int rc = PL_UNLIKELY(pl_trial_active) ? get_expected(PL_HANDLE_COMM, pl_comm(comm), errhandler)
                                          : PMPI_Comm_get_errhandler(pl_comm(comm), errhandler);
    if (rc == MPI_SUCCESS)
        pl_made(PL_HANDLE_ERRHANDLER, *errhandler, caller);
    return rc;
}

PL_EXPORT int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    return get_comm(comm, errhandler, RETURN_ADDRESS);
}

PL_EXPORT int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    return get_comm(comm, errhandler, RETURN_ADDRESS);
}

PL_EXPORT int MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
    if (!PL_UNLIKELY(pl_trial_active))
        return PMPI_Win_set_errhandler(win, errhandler);
    remember(PL_HANDLE_WIN, win, errhandler);
    return MPI_SUCCESS;
}

PL_EXPORT int MPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler)
{
    if (PL_UNLIKELY(pl_trial_active))
        pl_trial_refuse("MPI_Win_get_errhandler");
    int rc = PMPI_Win_get_errhandler(win, errhandler);
    if (rc == MPI_SUCCESS)
        pl_made(PL_HANDLE_ERRHANDLER, *errhandler, RETURN_ADDRESS);
    return rc;
}

/* A handler set in a trial is not in force before the commit: until then it must live. */
PL_EXPORT int MPI_Errhandler_free(MPI_Errhandler *errhandler)
{
    if (PL_UNLIKELY(pl_trial_active)) {
        *errhandler = MPI_ERRHANDLER_NULL;
        return MPI_SUCCESS;
    }
    MPI_Errhandler before = *errhandler;
    int rc = PMPI_Errhandler_free(errhandler);
    if (rc == MPI_SUCCESS)
        pl_freed_handle(PL_HANDLE_ERRHANDLER, before, RETURN_ADDRESS);
    return rc;
}
