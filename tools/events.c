/* SPDX-License-Identifier: MIT */
#include "tools/events.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/event.h"

long pl_events_size(const char *control_path)
{
    char path[PATH_MAX];
    struct stat file;

    if (pl_event_path(control_path, PL_EVENT_SUFFIX, path, sizeof path) != PL_OK ||
        stat(path, &file) != 0)
        return 0;
    return (long)file.st_size;
}

json_t *pl_events_find(const char *control_path, const char *id, long *offset)
{
    char path[PATH_MAX], *line = NULL;
    json_t *found = NULL;
    size_t size = 0;
    ssize_t length;
    FILE *file;

    if (pl_event_path(control_path, PL_EVENT_SUFFIX, path, sizeof path) != PL_OK)
        return NULL;
    file = fopen(path, "re");
    if (!file)
        return NULL;
    if (fseek(file, *offset, SEEK_SET) == 0) {
        while (!found && (length = getline(&line, &size, file)) > 0 && line[length - 1] == '\n') {
            json_t *event = json_loadb(line, (size_t)length, 0, NULL);

            *offset += length;
            if (event && strcmp(pl_events_text(event, "id"), id) == 0)
                found = event;
            else
                json_decref(event);
        }
    }
    free(line);
    fclose(file);
    return found;
}

json_t *pl_events_status(const char *control_path)
{
    char path[PATH_MAX];

    if (pl_event_path(control_path, PL_STATUS_SUFFIX, path, sizeof path) != PL_OK)
        return NULL;
    return json_load_file(path, 0, NULL);
}

const char *pl_events_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

long long pl_events_integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}
