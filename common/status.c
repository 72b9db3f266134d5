/* SPDX-License-Identifier: MIT */
#include "common/status.h"

static const char *const texts[] = {
    "ok",
#define ERROR(name, text) text,
#include "common/errors.def"
#undef ERROR
};
_Static_assert(sizeof texts / sizeof *texts == PL_STATUS_COUNT, "one text per status");

const char *pl_status_text(pl_status_t status)
{
    if (status == PL_NONE)
        return "nothing to do";
    if (status > 0 || -status >= PL_STATUS_COUNT)
        return "unknown status";
    return texts[-status];
}
