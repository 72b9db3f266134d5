/* SPDX-License-Identifier: MIT */
#include "common/methods.h"

#include <string.h>

static const struct {
    const char *text;
    const char *help;
} methods[] = {
#define METHOD(name, text, help) {text, help},
#include "common/methods.def"
#undef METHOD
};
_Static_assert(sizeof methods / sizeof *methods == PL_METHOD_COUNT, "one name per method");

pl_status_t pl_method_parse(const char *text, pl_method_t *out)
{
    if (!text)
        return PL_ERR_INVALID;
    for (int i = 0; i < PL_METHOD_COUNT; i++) {
        if (strcmp(text, methods[i].text) == 0) {
            *out = (pl_method_t)i;
            return PL_OK;
        }
    }
    return PL_ERR_INVALID;
}

const char *pl_method_text(pl_method_t method)
{
    return (unsigned)method < PL_METHOD_COUNT ? methods[method].text : "?";
}

const char *pl_method_help(pl_method_t method)
{
    return (unsigned)method < PL_METHOD_COUNT ? methods[method].help : "?";
}

const char *pl_method_names(void)
{
    static const char joined[] =
#define METHOD(name, text, help) ", " text
#include "common/methods.def"
#undef METHOD
        ;
    return joined + 2;
}
