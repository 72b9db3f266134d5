/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"

enum { KEY_MAN = 0x1000 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    bool *man = state->input;

    switch (key) {
    case KEY_MAN:
        *man = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "no argument is expected, found '%s'", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The part of the manual page that the build puts in. */
static void print_man(void)
{
    for (int i = 0; i < PL_OPTION_COUNT; i++) {
        const pl_option_info_t *info = &pl_option_info[i];

        printf(".TP\n.BR %s \" = \\fI%s\\fP\"\n%s.\n", info->name, info->metavar, info->help);
        printf("Default: %s.\n", *info->value ? info->value : "empty");
    }
}

static void print_values(void)
{
    static pl_options_t options;
    static char text[PL_OPTION_TEXT_MAX];

    pl_options_load(environ, &options, pl_complain_option, NULL);
    for (int i = 0; i < PL_OPTION_COUNT; i++) {
        const pl_option_info_t *info = &pl_option_info[i];

        pl_options_format(&options, (pl_option_index_t)i, text, sizeof text);
        printf("%s=%s%s\n    %s\n", info->name, text,
               strcmp(text, info->value) == 0 ? "" : "    (set)", info->help);
    }
}

int pl_command_options(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"man", KEY_MAN, NULL, OPTION_HIDDEN, "Print the list for the manual page", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc = "Lists the PLIANT_* variables with the values in force, and warns of unknown ones.",
    };
    bool man = false;

    if (argp_parse(&argp, argc, argv, 0, NULL, &man) != 0)
        return EXIT_USAGE;
    if (man)
        print_man();
    else
        print_values();
    return 0;
}
