/* SPDX-License-Identifier: MIT
 * The commands of `pliant`, and what they share. */
#ifndef PLIANT_TOOLS_COMMAND_H
#define PLIANT_TOOLS_COMMAND_H

/* Exit statuses; `pliant run` ends with the program's. */
enum {
    EXIT_COMMITTED = 0,
    EXIT_REFUSED = 1, /* refused, rolled back, or the request could not be handed over */
    EXIT_USAGE = 2,
    EXIT_TIME_OUT = 3,
};

/* Each gets its name as argv[0] ("pliant run") and returns the exit status. */
int pl_command_run(int argc, char **argv);
int pl_command_resize(int argc, char **argv);
int pl_command_status(int argc, char **argv);
int pl_command_options(int argc, char **argv);
int pl_command_bench(int argc, char **argv);

/* "pliant: " and a message on standard error. */
void pl_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Option report for pl_options_load that complains. */
void pl_complain_option(void *arg, const char *name, const char *message);

#endif
