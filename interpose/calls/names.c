/* SPDX-License-Identifier: MIT */
#include "interpose/calls/names.h"

#include <string.h>

static const char *const names[] = {
#define CALL(name, class) #name,
#include "interpose/generated/calls.def"
#undef CALL
};
_Static_assert(sizeof names / sizeof *names == PL_CALL_COUNT, "one name per call");

/* MPI_ is left out of the table, MPIX_ is not. */
static bool is_extension(const char *name)
{
    return strncmp(name, "MPIX_", 5) == 0;
}

bool pl_call_known(const char *name)
{
    const char *key = strncmp(name, "MPI_", 4) == 0 ? name + 4 : name;
    if (key == name && !is_extension(name))
        return false;
    for (int i = 0; i < PL_CALL_COUNT; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

const char *pl_call_name(enum pl_call call)
{
    static const char *const full[] = {
#define CALL(name, class) "MPI_" #name,
#include "interpose/generated/calls.def"
#undef CALL
    };
    if ((unsigned)call >= PL_CALL_COUNT)
        return "an unknown call";
    return is_extension(names[call]) ? names[call] : full[call];
}
