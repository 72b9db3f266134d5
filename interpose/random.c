/* SPDX-License-Identifier: MIT
 * glibc gives no way to read its generators; but initstate() returns the array in use, with the
 * position written into its first word, and seed48() a pointer into its own structure. */
#include "interpose/random.h"

#include <stddef.h>
#include <string.h>

enum { TYPES = 5 };

/* Words of an array by its type. */
static const int words[TYPES] = {2, 8, 16, 32, 64};

static int type_of(const int32_t *array)
{
    int type = array[0] % TYPES;
    return type < 0 ? 0 : type;
}

char *pl_random_array(void)
{
    static int32_t other[2];
    char *array = initstate(1, (char *)other, sizeof other);
    setstate(array);
    return array;
}

static struct drand48_data *drand48_state(void)
{
    static struct drand48_data *state;
    if (!state) {
        unsigned short zero[3] = {0};
        unsigned short *old = seed48(zero);
        state = (void *)((char *)old - offsetof(struct drand48_data, __old_x));
        memcpy(state->__x, state->__old_x, sizeof state->__x);
    }
    return state;
}

void pl_random_get(pl_random_state_t *out)
{
    const int32_t *array = (const int32_t *)(const void *)pl_random_array();

    memset(out, 0, sizeof *out);
    memcpy(out->random, array, (size_t)words[type_of(array)] * sizeof *array);
    const struct drand48_data *from = drand48_state();
    memcpy(out->drand48.__x, from->__x, sizeof from->__x);
    memcpy(out->drand48.__old_x, from->__old_x, sizeof from->__old_x);
    out->drand48.__c = from->__c;
    out->drand48.__init = from->__init;
    out->drand48.__a = from->__a;
}

void pl_random_use(char *array, const pl_random_state_t *state)
{
    static int32_t parking[2];

    /* setstate() writes the position into the array it leaves: leave before overwriting. */
    initstate(1, (char *)parking, sizeof parking);
    memcpy(array, state->random, (size_t)words[type_of(state->random)] * sizeof(int32_t));
    setstate(array);
    *drand48_state() = state->drand48;
}

void pl_random_put(const pl_random_state_t *state)
{
    static int32_t own[64];
    char *array = pl_random_array();

    if (type_of((const int32_t *)(const void *)array) != type_of(state->random))
        array = (char *)own;
    pl_random_use(array, state);
}

bool pl_random_equal(const pl_random_state_t *a, const pl_random_state_t *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
