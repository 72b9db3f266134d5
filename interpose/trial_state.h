/* SPDX-License-Identifier: MIT
 * Shared by the parts of a trial: trial.c (gates and polling), settle.c (votes and cleaning up),
 * trap.c (signals and the time limit). Private to them. */
#ifndef PLIANT_INTERPOSE_TRIAL_STATE_H
#define PLIANT_INTERPOSE_TRIAL_STATE_H

#include "interpose/trial.h"

enum {
    PL_TAG_NOTICE = 7,    /* on the union: the trial is given up */
    PL_REPORT_COMMS = 96, /* communicators a report can speak of */
};

/* A communicator of the trial and the gates this process has entered on it. */
typedef struct pl_gated {
    MPI_Comm comm;
    uint64_t identity; /* the same on all members */
    int members;
    int64_t gates;
} pl_gated_t;

typedef struct pl_report {
    int32_t failed;
    int32_t noticed; /* sent notices to all others */
    int32_t dirty;   /* something inside MPI cannot be completed */
    int32_t missed;  /* failed because the resize point was not reached */
    int32_t comms;
    int64_t sent, received;
    char reason[PL_REASON_MAX];
    struct {
        uint64_t identity;
        int64_t gates;
    } comm[PL_REPORT_COMMS];
} pl_report_t;

typedef struct pl_trial_state {
    MPI_Comm all, world;
    int rank, size, ns, nt;
    int number; /* of the trial: old notices are recognised by it */
    double limit;
    bool expired;     /* the time limit has passed */
    bool notice_seen; /* somebody gave up */
    bool give_up;     /* this process has, or is about to */
    bool missed;      /* ... since it will not reach the resize point */
    bool notices_sent;
    bool dirty;
    bool voted, counted; /* report sent; reports of all received */
    bool uniform;
    int notices_received;
    char reason[PL_REASON_MAX];
    pl_gated_t *gated;
    int gated_count, gated_room;
    MPI_Request *abandoned;
    int abandoned_count, abandoned_room;
    pl_report_t report, *reports;
    MPI_Request report_request;
} pl_trial_state_t;

extern pl_trial_state_t pl_trial;

/* trial.c */
pl_gated_t *pl_trial_gated(MPI_Comm comm);
void pl_trial_abandon(MPI_Request request);
/* Has anybody given up (this process included)? Looks for notices. */
bool pl_trial_given_up(void);

/* settle.c */
void pl_trial_notify(void);        /* tells all others that this process gives up, once */
void pl_trial_report(bool failed); /* once per trial */
bool pl_trial_all_reported(void);  /* without waiting */

/* trap.c */
void pl_trap_install(void); /* for the process's life */
void pl_trap_arm(double limit_seconds);
void pl_trap_disarm(void);
void pl_trap_kick(void); /* makes the other processes of the node look for notices */

#endif
