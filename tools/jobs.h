/* SPDX-License-Identifier: MIT
 * The running jobs of this user. `pliant run` leaves a record of each in a private folder,
 * $XDG_RUNTIME_DIR/pliant or /tmp/pliant-<uid>, so that the other commands find its control file.
 */
#ifndef PLIANT_TOOLS_JOBS_H
#define PLIANT_TOOLS_JOBS_H

#include <limits.h>
#include <stdbool.h>

#include "common/status.h"

#define PL_JOBS_MAX 64

typedef struct pl_job {
    int pid;                /* of mpiexec */
    char control[PATH_MAX]; /* path of the control file */
    char program[64];       /* name of the program, for people */
} pl_job_t;

/* Sets the control file of a new job: wanted made absolute, or a new name in the folder when wanted
 * is NULL. Creates it (mode 0600) if it does not exist, and refuses one that libpliant would
 * refuse. Also removes the records of ended jobs. Complains on failure. */
pl_status_t pl_jobs_prepare(const char *wanted, const char *program, pl_job_t *out);

/* Records the job as that of this process, which becomes mpiexec. */
pl_status_t pl_jobs_record(const pl_job_t *job);

/* The running jobs, at most PL_JOBS_MAX; their number. */
int pl_jobs_list(pl_job_t *out);

/* True if the job's mpiexec still runs. */
bool pl_jobs_alive(const pl_job_t *job);

/* Which job a command is about: the control file given (may be NULL), else PLIANT_CONTROL, else the
 * only running job; out->pid is 0 if no record tells. Complains and lists the jobs if that is not
 * clear. */
pl_status_t pl_jobs_find(const char *control, pl_job_t *out);

#endif
