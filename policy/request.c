/* SPDX-License-Identifier: MIT */
#include "policy/request.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/methods.h"
#include "common/number.h"

#define VALID "valid is 'resize N [method=M] [id=WORD]' or 'cancel'"
#define SHOWN 40 /* bytes of a wrong word that a message repeats */

_Static_assert(PL_REQUEST_SIZE_MAX == 1000000, "messages name it");

/* A word of the line, and a printable copy of its beginning. */
typedef struct word {
    const char *text;
    size_t length;
    char shown[SHOWN + 4];
} word_t;

typedef struct parser {
    const char *at, *end;
    char *error;
    size_t error_size;
} parser_t;

__attribute__((format(printf, 2, 3))) static pl_status_t fail(parser_t *parser, const char *format,
                                                              ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(parser->error, parser->error_size, format, args);
    va_end(args);
    return PL_ERR_INVALID;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_id_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
}

static bool next_word(parser_t *parser, word_t *word)
{
    size_t shown = 0;

    while (parser->at < parser->end && is_blank(*parser->at))
        parser->at++;
    if (parser->at == parser->end || *parser->at == '#')
        return false;
    word->text = parser->at;
    while (parser->at < parser->end && !is_blank(*parser->at))
        parser->at++;
    word->length = (size_t)(parser->at - word->text);
    for (; shown < word->length && shown < SHOWN; shown++)
        word->shown[shown] =
            word->text[shown] > ' ' && word->text[shown] < 0x7F ? word->text[shown] : '?';
    snprintf(word->shown + shown, sizeof word->shown - shown, "%s",
             word->length > SHOWN ? "..." : "");
    return true;
}

static bool word_is(const word_t *word, const char *text)
{
    return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

static pl_status_t parse_size(parser_t *parser, const word_t *word, int *out)
{
    long size;

    if (!word)
        return fail(parser, "resize needs a number of processes; " VALID);
    switch (pl_number_parse(word->text, word->length, 1, PL_REQUEST_SIZE_MAX, &size)) {
    case PL_OK:
        *out = (int)size;
        return PL_OK;
    case PL_ERR_LIMIT:
        return fail(parser, "resize %s: the number of processes must be from 1 to 1000000",
                    word->shown);
    default:
        return fail(parser,
                    "resize %s: not a number of processes; valid is a whole number from 1 on",
                    word->shown);
    }
}

static pl_status_t parse_method(parser_t *parser, const word_t *word, const word_t *value,
                                pl_request_t *request)
{
    char name[32] = "";
    pl_method_t method;

    if (request->method >= 0)
        return fail(parser, "method= is given twice");
    if (value->length < sizeof name) {
        memcpy(name, value->text, value->length);
        name[value->length] = 0;
    }
    if (pl_method_parse(name, &method) != PL_OK)
        return fail(parser, "%s: unknown method; valid: %s", word->shown, pl_method_names());
    request->method = (int)method;
    return PL_OK;
}

static pl_status_t parse_id(parser_t *parser, const word_t *word, const word_t *value,
                            pl_request_t *request)
{
    bool valid = value->length > 0 && value->length < sizeof request->id;

    if (request->id[0])
        return fail(parser, "id= is given twice");
    for (size_t i = 0; valid && i < value->length; i++)
        valid = is_id_character(value->text[i]);
    if (!valid)
        return fail(parser, "%s: an id is 1 to %d letters, digits or . _ : -", word->shown,
                    PL_REQUEST_ID_MAX - 1);
    memcpy(request->id, value->text, value->length);
    request->id[value->length] = 0;
    return PL_OK;
}

static pl_status_t parse_key(parser_t *parser, const word_t *word, pl_request_t *request)
{
    static const struct {
        const char *key;
        pl_status_t (*parse)(parser_t *, const word_t *, const word_t *, pl_request_t *);
    } keys[] = {{"method=", parse_method}, {"id=", parse_id}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t length = strlen(keys[i].key);

        if (word->length >= length && memcmp(word->text, keys[i].key, length) == 0) {
            word_t value = {.text = word->text + length, .length = word->length - length};

            return keys[i].parse(parser, word, &value, request);
        }
    }
    return fail(parser, "unknown word '%s' after resize N; valid: method=M, id=WORD", word->shown);
}

/* What follows "resize". The whole line is read even after an error, to find the id: whoever wrote
 * the line waits for an answer with it. */
static pl_status_t parse_resize(parser_t *parser, pl_request_t *request)
{
    word_t word;
    bool more = next_word(parser, &word);
    pl_status_t status = parse_size(parser, more ? &word : NULL, &request->size);
    pl_status_t key_status;

    while (more && next_word(parser, &word)) {
        if (status != PL_OK)
            parser->error_size = 0; /* keep the first message */
        key_status = parse_key(parser, &word, request);
        if (status == PL_OK)
            status = key_status;
    }
    return status;
}

pl_status_t pl_request_parse(const char *text, size_t length, pl_request_t *out, char *error,
                             size_t error_size)
{
    parser_t parser = {.at = text, .end = text + length, .error = error, .error_size = error_size};
    pl_request_t request = {.method = -1};
    pl_status_t status;
    word_t word;

    if (length > PL_REQUEST_LINE_MAX) {
        out->id[0] = 0;
        return fail(&parser, "the line has %zu bytes, at most %d are allowed; " VALID, length,
                    PL_REQUEST_LINE_MAX);
    }
    if (!next_word(&parser, &word))
        return PL_NONE;
    if (word_is(&word, "cancel")) {
        request.kind = PL_REQUEST_CANCEL;
        status = next_word(&parser, &word)
                     ? fail(&parser, "nothing may follow cancel, found '%s'", word.shown)
                     : PL_OK;
    } else if (word_is(&word, "resize")) {
        request.kind = PL_REQUEST_RESIZE;
        status = parse_resize(&parser, &request);
    } else {
        status = fail(&parser, "unknown word '%s'; " VALID, word.shown);
    }
    if (status == PL_OK)
        *out = request;
    else
        memcpy(out->id, request.id, sizeof out->id);
    return status;
}
