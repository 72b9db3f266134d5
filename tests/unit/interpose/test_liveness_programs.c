/* SPDX-License-Identifier: MIT
 * Small programs whose stack holds live and dead words at an MPI call, in as many disguises as a
 * compiler may give them. Built by several compilers at several levels; see test_liveness.c. */
#include "test_liveness_programs.h"

#include <alloca.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
enum { TURNS = 6 };

static double together(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static NOINLINE double work(int i)
{
    return 1.0 + 0.5 * i + sqrt(i);
}

/* a counter and a sum of replicated values */
static int counter(void)
{
    double total = 0, local, all;
    for (int i = 0; i < TURNS; i++) {
        local = work(i);
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        total += all;
    }
    return (int)(100 * total);
}

/* a private sum, read only after the loop */
static int accumulator(void)
{
    int64_t moved = opaque_magic(1);
    double all = 0;
    for (int i = 0; i < TURNS; i++) {
        double local = work(i);
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        moved += opaque_number(0);
    }
    return (int)(moved % 10007) + (int)all;
}

/* a temporary of each turn: dead when the call returns */
static int temporary(void)
{
    double all = 0;
    volatile int64_t scratch;
    int sum = 0;
    for (int i = 0; i < TURNS; i++) {
        scratch = opaque_magic(0);
        double local = work(i) + (scratch == 3);
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        scratch = 1;
        sum += (int)scratch + (int)all;
    }
    return sum;
}

/* known by address, but stored to before anything can look at it */
static int stored_first(void)
{
    int64_t known;
    double all = 0;
    int sum = 0;
    opaque_look(&known, 0);
    for (int i = 0; i < TURNS; i++) {
        *(volatile int64_t *)&known = opaque_magic(0);
        all = together(1.0);
        *(volatile int64_t *)&known = 5 + i;
        sum += opaque_look(&known, 1) + (int)all;
    }
    return sum;
}

/* known by address, and looked at by a function before the next store */
static int looked_at(void)
{
    int64_t known = opaque_magic(1);
    int sum = 0;
    for (int i = 0; i < TURNS; i++) {
        double local = work(i), all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += opaque_look(&known, 1) + (int)all;
        known = opaque_magic(1);
    }
    return sum;
}

/* the address was given away before the loop; nothing in the loop names the variable */
static int kept_elsewhere(void)
{
    int64_t known = opaque_magic(1);
    int sum = 0;
    opaque_keep(&known);
    for (int i = 0; i < TURNS; i++) {
        double local = work(i), all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += opaque_kept() + (int)all;
    }
    known = 0;
    return sum + (int)known;
}

/* through a pointer inside an object whose address is given away */
static int kept_inside(void)
{
    int64_t known = opaque_magic(1);
    struct {
        int64_t pad[3], *pointer;
    } box = {{0}, &known};
    int sum = 0;
    opaque_box(&box.pad);
    for (int i = 0; i < TURNS; i++) {
        double local = work(i), all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += opaque_in_box() + (int)all;
    }
    known = 0;
    return sum + (int)known;
}

/* only the member before it is known by address */
static int by_member(void)
{
    struct {
        double first;
        int64_t second;
    } pair = {1, opaque_magic(1)};
    int sum = 0;
    for (int i = 0; i < TURNS; i++) {
        double local = work(i), all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += opaque_second(&pair.first) + (int)all;
    }
    return sum;
}

/* only the end is known by address, and it is read downwards */
static int by_end(void)
{
    int64_t row[4] = {1, 2, opaque_magic(1), 4};
    int sum = 0;
    for (int i = 0; i < TURNS; i++) {
        double local = work(i), all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += opaque_downwards(row + 4, 4) + (int)all;
    }
    return sum;
}

static int indexed(void)
{
    int64_t row[8] = {0};
    int sum = 0;
    row[3] = opaque_magic(1);
    for (int i = 0; i < TURNS; i++) {
        double local = work(i), all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        row[opaque_number(i) % 3] += (int)all;
    }
    for (int i = 8; i > 0; i--)
        sum = 31 * sum + (int)(row[i - 1] % 1009);
    return sum;
}

/* values in callee-saved registers, saved by an inner function around its own use of them */
static NOINLINE int inner(int a, int b, int c)
{
    double s = 0;
    for (int i = a; i < b; i++) {
        double local = work(i * c), all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        s += all * a + b - c;
    }
    return (int)s;
}

static int outer(void)
{
    int64_t one = opaque_number(1), two = opaque_magic(1), three = opaque_number(3);
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        sum += inner(i, i + 2, (int)three);
        one = one * 3 + two % 7;
        two -= opaque_number(0);
        three += one % 5;
    }
    return sum + (int)(one % 1009) + (int)(two % 1009) + (int)three;
}

/* arguments in memory, in the caller's frame */
static NOINLINE int many(int a, int b, int c, int d, int e, int f, int64_t g, int64_t h, int j)
{
    double local = a + b, all;
    MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return (int)all + c + d + e + f + (int)(g % 1009) + (int)(h % 1013) + j;
}

static int arguments(void)
{
    int sum = 0;
    for (int i = 0; i < TURNS; i++)
        sum += many(i, 1, 2, 3, 4, 5, opaque_magic(1), opaque_number(7 + i), i);
    return sum;
}

struct big {
    int64_t part[6];
};

static NOINLINE int by_value(struct big b, int which)
{
    double local = 1, all;
    MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return (int)all + (int)(b.part[opaque_number(which)] % 1009);
}

static int values(void)
{
    struct big b = {{1, 2, 3, opaque_magic(1), 5, 6}};
    int sum = 0;
    for (int i = 0; i < 6; i++)
        sum += by_value(b, i);
    return sum;
}

static int variable_length(void)
{
    int n = opaque_number(5), sum = 0;
    int64_t row[n], stays = opaque_magic(1);
    memset(row, 0, sizeof row);
    for (int i = 0; i < TURNS; i++) {
        double local = work(i), all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        row[i % n] += (int)all;
        char *more = alloca((size_t)opaque_number(24));
        memset(more, i, 24);
        sum += more[i];
    }
    for (int i = 0; i < n; i++)
        sum = sum * 3 + (int)row[i];
    return sum + (int)(stays % 1009);
}

static int aligned(void)
{
    double lanes[8] __attribute__((aligned(64)));
    int64_t stays = opaque_magic(1);
    int sum = 0;
    for (int i = 0; i < 8; i++)
        lanes[i] = i;
    for (int i = 0; i < TURNS; i++) {
        double local = lanes[i], all;
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < 8; k++)
            lanes[k] += all;
    }
    for (int k = 0; k < 8; k++)
        sum += (int)lanes[k];
    return sum + (int)(stays % 1009) + (int)opaque_look((int64_t *)lanes, 1);
}

static int several_ways(void)
{
    int64_t stays = opaque_magic(1);
    int sum = 0;
    for (int i = 0; i < 2 * TURNS; i++) {
        double all = together(i);
        switch (opaque_number(i)) {
        case 0:
            sum += 3;
            break;
        case 1:
            sum -= (int)all;
            break;
        case 2:
            sum *= 5;
            break;
        case 3:
            sum += (int)(stays % 1009);
            break;
        case 4:
            sum ^= 77;
            break;
        case 5:
            sum += opaque_number(4);
            break;
        case 6:
            stays += (int)all;
            break;
        default:
            sum++;
        }
    }
    return sum + (int)(stays % 1013);
}

static jmp_buf again;

static int returns_twice(void)
{
    volatile int64_t stays = opaque_magic(1);
    volatile int turns = 0;
    int what = setjmp(again);
    if (what == 2)
        return (int)(stays % 1009) + turns;
    double all = together(turns);
    turns = turns + 1 + (int)(all > 1e9);
    longjmp(again, turns < TURNS ? 1 : 2);
}

/* parts of a word that are stored to and read by themselves */
static int small_parts(void)
{
    union {
        int64_t whole;
        struct {
            int16_t a;
            char b, c;
            float d;
        } parts;
    } u = {.whole = 0};
    int sum = 0;
    u.parts.d = 2.5f;
    for (int i = 0; i < TURNS; i++) {
        *(volatile int16_t *)&u.parts.a = (int16_t)i;
        *(volatile char *)&u.parts.c = (char)(3 * i);
        double all = together(i);
        *(volatile char *)&u.parts.b = (char)(i + (int)all);
        sum += *(volatile char *)&u.parts.b + *(volatile char *)&u.parts.c;
    }
    return sum + (int)(8 * *(volatile float *)&u.parts.d) + *(volatile int16_t *)&u.parts.a;
}

/* a walking pointer into an array of the frame, formed before the loop */
static int walking(void)
{
    double row[16], *end = row + 16;
    int sum = 0;
    for (int i = 0; i < 16; i++)
        row[i] = work(i);
    for (double *p = row; p + 1 < end; p++) {
        double all;
        MPI_Allreduce(p, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        p[1] += all / 4;
    }
    for (double *p = end; p > row; p--)
        sum = 3 * sum % 100003 + (int)p[-1];
    return sum;
}

static int not_only_one(void)
{
    double pair[2] = {1, 2}, all[2] = {0, 0}, past[2] = {3, 4};
    int sum = 0, two = opaque_number(2);
    for (int i = 0; i < TURNS; i++) {
        MPI_Allreduce(pair, all, two, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        pair[0] += all[1] / 8 + past[i & 1];
        pair[1] += i;
        MPI_Allreduce(MPI_IN_PLACE, past, two, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    for (int i = 0; i < 2; i++)
        sum += (int)(pair[i] + all[i] + past[i]);
    return sum;
}

static int copied_whole(void)
{
    struct big from = {{1, 2, 3, 4, 5, 6}}, to;
    int sum = 0;
    memset(&to, 0, sizeof to);
    for (int i = 0; i < TURNS; i++) {
        from.part[i] = opaque_magic(1) + i;
        double all = together(i);
        memcpy(&to, &from, sizeof to);
        sum += (int)all + (int)(to.part[opaque_number(i)] % 1009);
    }
    return sum;
}

const test_program_t test_programs[] = {
    {"counter", counter, 0},
    {"accumulator", accumulator, TEST_LIVE},
    {"temporary", temporary, TEST_DEAD},
    {"stored_first", stored_first, TEST_DEAD},
    {"looked_at", looked_at, TEST_LIVE},
    {"kept_elsewhere", kept_elsewhere, TEST_LIVE},
    {"kept_inside", kept_inside, TEST_LIVE},
    {"by_member", by_member, TEST_LIVE},
    {"by_end", by_end, TEST_LIVE},
    {"indexed", indexed, TEST_LIVE},
    {"outer", outer, TEST_LIVE},
    {"arguments", arguments, 0},
    {"values", values, 0},
    {"variable_length", variable_length, TEST_LIVE},
    {"aligned", aligned, TEST_LIVE},
    {"several_ways", several_ways, 0},
    {"returns_twice", returns_twice, TEST_LIVE},
    {"small_parts", small_parts, 0},
    {"walking", walking, 0},
    {"not_only_one", not_only_one, 0},
    {"copied_whole", copied_whole, 0},
    {NULL, NULL, 0},
};
