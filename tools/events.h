/* SPDX-License-Identifier: MIT
 * Reads what libpliant tells about a job (policy/event.h). */
#ifndef PLIANT_TOOLS_EVENTS_H
#define PLIANT_TOOLS_EVENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/status.h"

/* Bytes of the event file at present, 0 if there is none. */
long pl_events_size(const char *control_path);

/* The first event with this id at or after *offset, which is advanced past the whole lines read;
 * NULL: none yet. The caller releases it with json_decref. */
json_t *pl_events_find(const char *control_path, const char *id, long *offset);

/* The status, or NULL: none, or not readable. The caller releases it with json_decref. */
json_t *pl_events_status(const char *control_path);

/* Text or number of a key; "" or 0 if it is not there. Text lives as long as the object. */
const char *pl_events_text(const json_t *object, const char *key);
long long pl_events_integer(const json_t *object, const char *key);

#endif
