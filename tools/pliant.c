/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct command {
    const char *name, *title, *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", "pliant run", "start an MPI program so that it can be resized", pl_command_run},
    {"resize", "pliant resize", "change the number of processes of a running program",
     pl_command_resize},
    {"status", "pliant status", "show the state of a running program", pl_command_status},
    {"options", "pliant options", "list the PLIANT_* variables and their values",
     pl_command_options},
    {"bench", "pliant bench", "measure what Pliant costs a program", pl_command_bench},
};

void pl_complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("pliant: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

void pl_complain_option(void *arg, const char *name, const char *message)
{
    (void)arg;
    pl_complain("%s: %s", name, message);
}

static void print_help(FILE *out)
{
    fputs("Usage: pliant COMMAND [OPTION...]\n"
          "Changes the number of processes of a running, unmodified MPI program.\n\n",
          out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
    fputs("\n`pliant COMMAND --help` tells more; so does the manual page, pliant(1).\n", out);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    argp_program_version = "pliant " PLIANT_VERSION;
    argp_err_exit_status = EXIT_USAGE;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            char title[32];

            snprintf(title, sizeof title, "%s", commands[i].title);
            argv[1] = title;
            program_invocation_name = program_invocation_short_name = title;
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts(argp_program_version);
        return 0;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0) {
        print_help(stdout);
        return 0;
    }
    if (*name)
        pl_complain("unknown command '%s'", name);
    print_help(stderr);
    return EXIT_USAGE;
}
