/* SPDX-License-Identifier: MIT */
#include "common/options.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/methods.h"
#include "common/number.h"

#define PREFIX      "PLIANT_"
#define TEST_PREFIX "PLIANT_TEST_" /* switches of test builds, read elsewhere */
#define COUNT_MAX   1000000
#define ARRIVAL_MIN 2
#define ARRIVAL_MAX 1000000000

const pl_option_info_t pl_option_info[PL_OPTION_COUNT] = {
#define OPTION(field, name, type, value, metavar, help)                                            \
    [PL_OPTION_##field] = {name, value, metavar, help},
#include "common/options.def"
#undef OPTION
};

static const char *const level_names[] = {"error", "warn", "info", "debug"};
_Static_assert(sizeof level_names / sizeof *level_names == PL_LOG_DEBUG + 1, "one name per level");

/* One parser per type: sets *out, or describes in text what is valid. */
#define VALID_MAX 200

static bool parse_path(const char *text, pl_option_path_t *out, char *valid)
{
    size_t length = strlen(text);

    if (length >= sizeof *out) {
        snprintf(valid, VALID_MAX, "a path of at most %zu bytes", sizeof *out - 1);
        return false;
    }
    memcpy(*out, text, length + 1);
    return true;
}

static bool parse_text(const char *text, pl_option_text_t *out, char *valid)
{
    size_t length = strlen(text);

    if (length >= sizeof *out) {
        snprintf(valid, VALID_MAX, "a text of at most %zu bytes", sizeof *out - 1);
        return false;
    }
    memcpy(*out, text, length + 1);
    return true;
}

static bool parse_integer(const char *text, int min, int max, int *out, char *valid)
{
    long value;

    if (pl_number_parse(text, strlen(text), min, max, &value) != PL_OK) {
        snprintf(valid, VALID_MAX, "a whole number from %d to %d", min, max);
        return false;
    }
    *out = (int)value;
    return true;
}

static bool parse_count(const char *text, pl_option_count_t *out, char *valid)
{
    return parse_integer(text, 0, COUNT_MAX, out, valid);
}

static bool parse_arrival(const char *text, pl_option_arrival_t *out, char *valid)
{
    return parse_integer(text, ARRIVAL_MIN, ARRIVAL_MAX, out, valid);
}

static bool parse_seconds(const char *text, pl_option_seconds_t *out, char *valid)
{
    if (pl_number_parse_seconds(text, strlen(text), out) != PL_OK) {
        snprintf(valid, VALID_MAX, "seconds, e.g. 60 or 0.5");
        return false;
    }
    return true;
}

static bool parse_method(const char *text, pl_option_method_t *out, char *valid)
{
    pl_method_t method;

    if (pl_method_parse(text, &method) != PL_OK) {
        snprintf(valid, VALID_MAX, "one of %s", pl_method_names());
        return false;
    }
    *out = (int)method;
    return true;
}

static bool parse_level(const char *text, pl_option_level_t *out, char *valid)
{
    for (int level = 0; level <= PL_LOG_DEBUG; level++) {
        if (strcmp(text, level_names[level]) == 0) {
            *out = (pl_log_level_t)level;
            return true;
        }
    }
    snprintf(valid, VALID_MAX, "one of error, warn, info, debug");
    return false;
}

#define PARSE_PATH    parse_path
#define PARSE_TEXT    parse_text
#define PARSE_COUNT   parse_count
#define PARSE_ARRIVAL parse_arrival
#define PARSE_SECONDS parse_seconds
#define PARSE_METHOD  parse_method
#define PARSE_LEVEL   parse_level

pl_status_t pl_options_set(pl_options_t *options, pl_option_index_t index, const char *text,
                           char *error, size_t error_size)
{
    char valid[VALID_MAX] = "";
    bool good = false;

    switch (index) {
#define OPTION(field, name, type, value, metavar, help)                                            \
    case PL_OPTION_##field:                                                                        \
        good = PARSE_##type(text, &options->field, valid);                                         \
        break;
#include "common/options.def"
#undef OPTION
    case PL_OPTION_COUNT:
        break;
    }
    if (good)
        return PL_OK;
    snprintf(error, error_size, "'%.60s' is not valid; valid is %s", text, valid);
    return PL_ERR_INVALID;
}

#define FORMAT_PATH(value)    snprintf(out, size, "%s", value)
#define FORMAT_TEXT(value)    snprintf(out, size, "%s", value)
#define FORMAT_COUNT(value)   snprintf(out, size, "%d", value)
#define FORMAT_ARRIVAL(value) snprintf(out, size, "%d", value)
#define FORMAT_SECONDS(value) format_seconds(value, out, size)
#define FORMAT_METHOD(value)  snprintf(out, size, "%s", pl_method_text((pl_method_t)(value)))
#define FORMAT_LEVEL(value)   snprintf(out, size, "%s", level_names[value])

/* By whole numbers: the host's locale may have a decimal comma. */
static void format_seconds(double value, char *out, size_t size)
{
    long whole = (long)value;
    long fraction = (long)((value - (double)whole) * 1e9 + 0.5);
    char text[64];
    int length;

    if (fraction >= 1000000000) {
        whole++;
        fraction = 0;
    }
    length = snprintf(text, sizeof text, "%ld.%09ld", whole, fraction);
    while (text[length - 1] == '0')
        length--;
    if (text[length - 1] == '.')
        length--;
    snprintf(out, size, "%.*s", length, text);
}

void pl_options_format(const pl_options_t *options, pl_option_index_t index, char *out, size_t size)
{
    switch (index) {
#define OPTION(field, name, type, value, metavar, help)                                            \
    case PL_OPTION_##field:                                                                        \
        FORMAT_##type(options->field);                                                             \
        break;
#include "common/options.def"
#undef OPTION
    case PL_OPTION_COUNT:
        break;
    }
}

static void report_unknown(const char *name, pl_option_report_f report, void *arg)
{
    char message[PL_OPTION_ERROR_MAX];
    size_t used;

    if (strncmp(name, TEST_PREFIX, strlen(TEST_PREFIX)) == 0)
        return;
    used = (size_t)snprintf(message, sizeof message, "unknown variable; valid:");
    for (int i = 0; i < PL_OPTION_COUNT && used < sizeof message; i++)
        used +=
            (size_t)snprintf(message + used, sizeof message - used, " %s", pl_option_info[i].name);
    report(arg, name, message);
}

static void load_variable(const char *variable, pl_options_t *out, bool *done,
                          pl_option_report_f report, void *arg)
{
    const char *equals = strchr(variable, '=');
    size_t length = equals ? (size_t)(equals - variable) : 0;
    char error[PL_OPTION_ERROR_MAX], name[64];

    if (!equals || strncmp(variable, PREFIX, strlen(PREFIX)) != 0)
        return;
    for (int i = 0; i < PL_OPTION_COUNT; i++) {
        if (strlen(pl_option_info[i].name) != length ||
            memcmp(pl_option_info[i].name, variable, length) != 0)
            continue;
        if (!done[i] &&
            pl_options_set(out, (pl_option_index_t)i, equals + 1, error, sizeof error) != PL_OK &&
            report)
            report(arg, pl_option_info[i].name, error);
        done[i] = true; /* of a name that is there twice the first counts, as for getenv */
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name),
             variable);
    if (report)
        report_unknown(name, report, arg);
}

pl_status_t pl_options_load(char *const *environment, pl_options_t *out, pl_option_report_f report,
                            void *arg)
{
    bool done[PL_OPTION_COUNT] = {false};
    char error[PL_OPTION_ERROR_MAX];

    memset(out, 0, sizeof *out);
    for (int i = 0; i < PL_OPTION_COUNT; i++)
        if (pl_options_set(out, (pl_option_index_t)i, pl_option_info[i].value, error,
                           sizeof error) != PL_OK)
            return PL_ERR_INVALID; /* the table is wrong; a test sees it */
    for (; environment && *environment; environment++)
        load_variable(*environment, out, done, report, arg);
    return PL_OK;
}
