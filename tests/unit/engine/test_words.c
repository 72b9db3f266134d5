/* SPDX-License-Identifier: MIT
 * Programs whose state is carried over to a second run of themselves, between any two numbers of
 * processes up to that of the job. Every check is made by all processes together, so that a failure
 * on one ends the test on all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"

enum { STEPS = 9, N = 101 };

static int processes;
static volatile int steps = STEPS; /* a loop that is unrolled has many points instead of one */

static void check_all(bool right)
{
    int mine = right, all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    assert_true(all);
}

static engine_outcome_t run(engine_program_t program, int ns, int nt, int arrival)
{
    engine_outcome_t outcome;
    int rank, most = ns > nt ? ns : nt;
    MPI_Comm comm;

    memset(&outcome, 0, sizeof outcome);
    signal(SIGSEGV, SIG_DFL); /* cmocka would go on, and the other processes wait for ever */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < most ? 0 : MPI_UNDEFINED, rank, &comm);
    if (comm != MPI_COMM_NULL) {
        engine_plan_t plan = {comm, ns, nt, arrival};
        engine_run(program, &plan, &outcome);
        MPI_Comm_free(&comm);
    }
    check_all(outcome.finished == (rank < nt));
    check_all(outcome.lost == 0);
    return outcome;
}

/* Was this result reported on every process that finished? */
static void check_result(const engine_outcome_t *outcome, int index, double wanted)
{
    check_all(!outcome->finished || outcome->result[index] == wanted);
}

/* check(ns, nt, arrival) for every change that needs all processes of this job (smaller jobs make
 * the others), and for arrivals of both parities. */
static void for_all_plans(void (*check)(int ns, int nt, int arrival))
{
    for (int ns = 1; ns <= processes; ns++)
        for (int nt = ns == processes ? 1 : processes; nt <= processes; nt++)
            for (int arrival = ENGINE_BASELINE + 1; arrival <= ENGINE_BASELINE + 2; arrival++)
                check(ns, nt, arrival);
}

/* ---- replicated state: registers, stack, data, heap ---- */

static double total;
static int visits, own_share;
static struct {
    int *at, history[STEPS];
} trace;

static int counting(int argc, char **argv, char **envp)
{
    double part[4] = {0}, *last = part;
    long *heap = engine_allocate(3 * sizeof *heap);
    int share = N / engine_size();
    (void)argc, (void)argv, (void)envp;

    own_share = share;
    trace.at = trace.history;
    for (int i = 0; i < steps; i++) {
        part[i % 4] += i + 1;
        last = &part[i % 4];
        total += 0.5 * i;
        visits++;
        *trace.at++ = i;
        heap[i % 3] += i;
        engine_point();
    }
    engine_report(0, total);
    engine_report(1, visits);
    engine_report(2, part[0] + 10 * part[1] + 100 * part[2] + 1000 * part[3]);
    engine_report(3, *last);
    engine_report(4, (double)(heap[0] + 10 * heap[1] + 100 * heap[2]));
    engine_report(5, trace.history[STEPS - 1] == STEPS - 1 && trace.at == trace.history + STEPS);
    engine_report(6, own_share == N / engine_size() && share == own_share);
    return 0;
}

static void check_counting(int ns, int nt, int arrival)
{
    double part[4] = {0};
    long heap[3] = {0};
    engine_outcome_t got = run(counting, ns, nt, arrival);
    for (int i = 0; i < STEPS; i++) {
        part[i % 4] += i + 1;
        heap[i % 3] += i;
    }
    check_result(&got, 0, 0.5 * STEPS * (STEPS - 1) / 2);
    check_result(&got, 1, STEPS);
    check_result(&got, 2, part[0] + 10 * part[1] + 100 * part[2] + 1000 * part[3]);
    check_result(&got, 3, part[(STEPS - 1) % 4]);
    check_result(&got, 4, (double)(heap[0] + 10 * heap[1] + 100 * heap[2]));
    check_result(&got, 5, 1);
    check_result(&got, 6, 1);
    check_all(got.found.data == 0);
}

static void replicated_state_is_carried_over(void **state)
{
    (void)state;
    for_all_plans(check_counting);
}

/* ---- pointers ---- */

static struct pointers {
    double *now, *then;           /* swapped in every step */
    double *now_last, *then_last; /* to the last but one element, swapped too */
    double *cursor;               /* from the begin to the end */
} kept;

static bool are_right(const struct pointers *p, double *a, double *b, int n)
{
    double *now = STEPS % 2 ? b : a, *then = STEPS % 2 ? a : b;
    return p->now == now && p->then == then && p->now_last == now + n + 1 &&
           p->then_last == then + n + 1 && p->cursor == a + n + 2;
}

static void swap(double **p, double **q)
{
    double *keep = *p;
    *p = *q;
    *q = keep;
}

static int swapping(int argc, char **argv, char **envp)
{
    int n = N / engine_size() + (engine_rank() < N % engine_size());
    double *a = engine_allocate((size_t)(n + 2) * sizeof *a);
    double *b = engine_allocate((size_t)(n + 2) * sizeof *b);
    struct pointers on_stack = {a, b, a + n + 1, b + n + 1, a};
    struct pointers *in_heap = engine_allocate(sizeof *in_heap);
    struct pointers *volatile all[] = {&on_stack, in_heap, &kept};
    (void)argc, (void)argv, (void)envp;

    kept = *in_heap = on_stack;
    for (int i = 0; i < steps; i++) {
        for (int k = 0; k < 3; k++) {
            swap(&all[k]->now, &all[k]->then);
            swap(&all[k]->now_last, &all[k]->then_last);
            if (i == ENGINE_BASELINE) /* once, behind the baseline */
                all[k]->cursor = a + n + 2;
        }
        engine_point();
    }
    for (int k = 0; k < 3; k++)
        engine_report(k, are_right(all[k], a, b, n));
    return 0;
}

static void check_swapping(int ns, int nt, int arrival)
{
    engine_outcome_t got = run(swapping, ns, nt, arrival);
    for (int k = 0; k < 3; k++)
        check_result(&got, k, 1);
    check_all(got.found.data == 0); /* offsets that set-up made different are nobody's data */
}

static void pointers_lead_to_the_same_place_of_the_new_objects(void **state)
{
    (void)state;
    for_all_plans(check_swapping);
}

/* ---- identity ---- */

static char *text;

__attribute__((noinline)) static char *make_even(int i)
{
    char *made = engine_allocate(16);
    made[0] = (char)('a' + i);
    return made;
}

__attribute__((noinline)) static char *make_odd(int i)
{
    char *made = engine_allocate(16);
    made[0] = (char)('A' + i);
    return made;
}

/* The same address again and again, but not the same object. */
static int recycling(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv, (void)envp;
    text = engine_allocate(16);
    for (int i = 0; i < steps; i++) {
        char before = text[0];
        if (i > 0 && before != (i % 2 ? 'a' : 'A') + i - 1)
            return 1;
        engine_free(text);
        text = i % 2 ? make_odd(i) : make_even(i);
        engine_point();
    }
    engine_report(0, text[0]);
    return 0;
}

static void check_recycling(int ns, int nt, int arrival)
{
    engine_outcome_t got = run(recycling, ns, nt, arrival);
    check_result(&got, 0, 'a' + STEPS - 1);
}

static void an_object_made_again_is_another_one(void **state)
{
    (void)state;
    for_all_plans(check_recycling);
}

/* ---- what is left in recycled memory ---- */

static int leaving_traces(int argc, char **argv, char **envp)
{
    enum { LINE = 64 };
    (void)argc, (void)argv, (void)envp;
    char *scratch = engine_allocate(LINE);
    memset(scratch, 'a' + engine_size(), LINE);
    engine_free(scratch);
    char *line = engine_allocate(LINE);
    for (int i = 0; i < steps; i++) {
        if (i == ENGINE_BASELINE) /* what 1 process has left there happens to be the same */
            memset(line, 'a' + 1, LINE - 1);
        engine_point();
    }
    int wrong = 0;
    for (int i = 0; i < LINE - 1; i++)
        wrong += line[i] != 'a' + 1;
    engine_report(0, wrong);
    return 0;
}

static void check_traces(int ns, int nt, int arrival)
{
    engine_outcome_t got = run(leaving_traces, ns, nt, arrival);
    check_result(&got, 0, 0);
}

static void old_bytes_are_not_taken_for_data(void **state)
{
    (void)state;
    for_all_plans(check_traces);
}

/* ---- values of set-up ---- */

static double norm;

static double norm_of(int size)
{
    return size == 1 ? 0.3 : 0.1 + 0.2; /* the order of a sum over processes */
}

static int rounding(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv, (void)envp;
    norm = norm_of(engine_size());
    int share = 1000000 + engine_size();
    for (int i = 0; i < steps; i++)
        engine_point();
    engine_report(0, norm);
    engine_report(1, share == 1000000 + engine_size());
    return 0;
}

static void check_rounding(int ns, int nt, int arrival)
{
    engine_outcome_t got = run(rounding, ns, nt, arrival);
    check_result(&got, 0, norm_of(ns));
    check_result(&got, 1, 1);
}

static void numbers_of_set_up_keep_the_rounding_of_the_sources(void **state)
{
    (void)state;
    for_all_plans(check_rounding);
}

/* ---- private words ---- */

static volatile double mine, of_root; /* in memory, not in registers */

static int accumulating(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv, (void)envp;
    for (int i = 0; i < steps; i++) {
        mine += 1 + engine_rank();
        if (engine_rank() == 0)
            of_root += i;
        engine_point();
    }
    engine_report(0, mine);
    engine_report(1, of_root);
    return 0;
}

static void private_words_are_counted_and_survivors_keep_theirs(void **state)
{
    int rank;
    (void)state;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int arrival = ENGINE_BASELINE + 1; arrival < STEPS; arrival++) {
        engine_outcome_t got = run(accumulating, processes, processes, arrival);
        check_all(got.found.data == (processes > 1)); /* `mine`; `of_root` is excused */
        check_all(processes == 1 || strstr(got.found.example, "data of the executable"));
        check_result(&got, 0, STEPS * (1 + rank));
        check_result(&got, 1, rank ? 0 : STEPS * (STEPS - 1) / 2);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicated_state_is_carried_over),
        cmocka_unit_test(pointers_lead_to_the_same_place_of_the_new_objects),
        cmocka_unit_test(an_object_made_again_is_another_one),
        cmocka_unit_test(old_bytes_are_not_taken_for_data),
        cmocka_unit_test(numbers_of_set_up_keep_the_rounding_of_the_sources),
        cmocka_unit_test(private_words_are_counted_and_survivors_keep_theirs),
    };
    engine_setup();
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
