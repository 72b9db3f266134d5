/* SPDX-License-Identifier: MIT
 * The PLIANT_* variables: one table (options.def) makes the structure, its parsing, every help text
 * and the warning for unknown names. Nothing here allocates or changes the environment. */
#ifndef PLIANT_COMMON_OPTIONS_H
#define PLIANT_COMMON_OPTIONS_H

#include <stddef.h>

#include "common/log.h"
#include "common/status.h"

#define PL_OPTION_PATH_MAX  4096
#define PL_OPTION_TEXT_MAX  32768
#define PL_OPTION_ERROR_MAX 400 /* enough for every message about a value */

/* Types of options. Text is copied: the program may change its environment later. */
typedef char pl_option_path_t[PL_OPTION_PATH_MAX];
typedef char pl_option_text_t[PL_OPTION_TEXT_MAX]; /* not looked into */
typedef int pl_option_count_t;                     /* 0 or more */
typedef int pl_option_arrival_t;                   /* 2 or more: at the first a site is not known */
typedef double pl_option_seconds_t;                /* 0 or more */
typedef int pl_option_method_t;                    /* a pl_method_t of common/methods.h */
typedef pl_log_level_t pl_option_level_t;

#define PL_OPTION_TYPE_PATH    pl_option_path_t
#define PL_OPTION_TYPE_TEXT    pl_option_text_t
#define PL_OPTION_TYPE_COUNT   pl_option_count_t
#define PL_OPTION_TYPE_ARRIVAL pl_option_arrival_t
#define PL_OPTION_TYPE_SECONDS pl_option_seconds_t
#define PL_OPTION_TYPE_METHOD  pl_option_method_t
#define PL_OPTION_TYPE_LEVEL   pl_option_level_t

typedef struct pl_options {
#define OPTION(field, name, type, value, metavar, help) PL_OPTION_TYPE_##type field;
#include "common/options.def"
#undef OPTION
} pl_options_t;

typedef enum pl_option_index {
#define OPTION(field, name, type, value, metavar, help) PL_OPTION_##field,
#include "common/options.def"
#undef OPTION
    PL_OPTION_COUNT
} pl_option_index_t;

/* What the table says about one option; static storage. */
typedef struct pl_option_info {
    const char *name;    /* "PLIANT_LIMIT" */
    const char *value;   /* the default, as text */
    const char *metavar; /* "SECONDS" */
    const char *help;
} pl_option_info_t;

extern const pl_option_info_t pl_option_info[PL_OPTION_COUNT];

/* Called with the variable's name and a sentence saying what is wrong and what is valid. */
typedef void (*pl_option_report_f)(void *arg, const char *name, const char *message);

/* Sets every option to its default, then to what environment ("NAME=value" strings, closed by NULL;
 * NULL itself is empty) says. A bad value or an unknown PLIANT_* name is reported (report may be
 * NULL) and the default stays. PL_OK also then. */
pl_status_t pl_options_load(char *const *environment, pl_options_t *out, pl_option_report_f report,
                            void *arg);

/* Sets one option from text. PL_ERR_INVALID: error holds what is wrong and what is valid, and
 * options is unchanged. */
pl_status_t pl_options_set(pl_options_t *options, pl_option_index_t index, const char *text,
                           char *error, size_t error_size);

/* Writes the value of one option as text, as pl_options_set takes it; cut where out is too small.
 */
void pl_options_format(const pl_options_t *options, pl_option_index_t index, char *out,
                       size_t size);

#endif
