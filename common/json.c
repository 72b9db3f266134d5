/* SPDX-License-Identifier: MIT */
#include "common/json.h"

#include <string.h>

static void put(pl_json_t *json, const char *text, size_t length)
{
    if (json->full || length > json->size - 1 - json->used) {
        json->full = true;
        return;
    }
    memcpy(json->buffer + json->used, text, length);
    json->used += length;
    json->buffer[json->used] = 0;
}

static void put_text(pl_json_t *json, const char *text)
{
    put(json, text, strlen(text));
}

/* Bytes of the UTF-8 sequence at text, 0 if it is none (overlong, surrogate, cut, stray). */
static size_t utf8_length(const unsigned char *text)
{
    static const struct {
        unsigned char first, last, low, high; /* range of the first and of the second byte */
        size_t length;
    } forms[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        if (text[1] < forms[i].low || text[1] > forms[i].high)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((text[k] & 0xC0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

static void put_quoted(pl_json_t *json, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)text;

    put(json, "\"", 1);
    while (*at) {
        char escape[6] = {'\\', 'u', '0', '0', hex[*at >> 4], hex[*at & 15]};
        size_t length = 1;

        if (*at == '"' || *at == '\\') {
            escape[1] = (char)*at;
            put(json, escape, 2);
        } else if (*at < 0x20 || *at == 0x7F) {
            put(json, escape, sizeof escape);
        } else if (*at < 0x80) {
            put(json, (const char *)at, 1);
        } else if ((length = utf8_length(at)) > 0) {
            put(json, (const char *)at, length);
        } else {
            put_text(json, "\\ufffd");
            length = 1;
        }
        at += length;
    }
    put(json, "\"", 1);
}

static void put_unsigned(pl_json_t *json, uint64_t value, int digits)
{
    char text[20];
    int at = sizeof text;

    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || (int)sizeof text - at < digits);
    put(json, text + at, sizeof text - (size_t)at);
}

/* What stands before every value. */
static void begin(pl_json_t *json, const char *key)
{
    if (json->comma)
        put(json, ",", 1);
    if (key) {
        put_quoted(json, key);
        put(json, ":", 1);
    }
    json->comma = true;
}

void pl_json_init(pl_json_t *json, char *buffer, size_t size)
{
    *json = (pl_json_t){.buffer = buffer, .size = size};
    buffer[0] = 0;
}

bool pl_json_ok(const pl_json_t *json)
{
    return !json->full;
}

void pl_json_open(pl_json_t *json, const char *key, char open)
{
    begin(json, key);
    put(json, &open, 1);
    json->comma = false;
}

void pl_json_close(pl_json_t *json, char close)
{
    put(json, &close, 1);
    json->comma = true;
}

void pl_json_string(pl_json_t *json, const char *key, const char *text)
{
    begin(json, key);
    put_quoted(json, text ? text : "");
}

void pl_json_integer(pl_json_t *json, const char *key, int64_t value)
{
    begin(json, key);
    if (value < 0)
        put(json, "-", 1);
    put_unsigned(json, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

void pl_json_bool(pl_json_t *json, const char *key, bool value)
{
    begin(json, key);
    put_text(json, value ? "true" : "false");
}

void pl_json_number(pl_json_t *json, const char *key, double value)
{
    uint64_t whole, fraction;
    double size = value < 0 ? -value : value;
    int digits = 9;

    begin(json, key);
    if (!(size < 1e15)) {
        put_text(json, "null");
        return;
    }
    whole = (uint64_t)size;
    fraction = (uint64_t)((size - (double)whole) * 1e9 + 0.5);
    if (fraction >= 1000000000) {
        whole++;
        fraction = 0;
    }
    if (value < 0 && (whole > 0 || fraction > 0))
        put(json, "-", 1);
    put_unsigned(json, whole, 1);
    if (fraction == 0)
        return;
    for (; fraction % 10 == 0; fraction /= 10)
        digits--;
    put(json, ".", 1);
    put_unsigned(json, fraction, digits);
}

void pl_json_raw(pl_json_t *json, const char *text)
{
    put_text(json, text);
}

void pl_json_rewind(pl_json_t *json, const pl_json_t *mark)
{
    *json = *mark;
    json->buffer[json->used] = 0;
}
