/* A reader of JSON that walks a text in memory, for the files that the library itself reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     for (bool more = clattn__json_open(&json, '{'); more; more = clattn__json_more(&json, '}')) {
 *         char name[32];
 *         clattn__json_name(&json, name, sizeof name);
 *         if (strcmp(name, "ratio") == 0)
 *             clattn__json_number(&json, &ratio);
 *         else
 *             clattn__json_skip(&json);
 *     }
 *     if (clattn__json_end(&json)) ...                      json.problem says what is wrong, at byte json.at - json.text
 *
 * After a problem every function does nothing, and loops end.
 */
#ifndef CLATTN_JSON_H
#define CLATTN_JSON_H

#include <stdbool.h>
#include <stddef.h>

typedef struct clattn__json {
    const char *text, *at;
    const char *problem; /* NULL: none */
} clattn__json;

static inline clattn__json clattn__json_of(const char *text) {
    return (clattn__json){text, text, NULL};
}

/* Enter an object ('{') or an array ('['); whether there is anything in it. */
bool clattn__json_open(clattn__json *, char bracket);
/* Whether another member follows; else the bracket that closes ('}' or ']') is passed. */
bool clattn__json_more(clattn__json *, char bracket);
/* The name of a member, up to its value. A name that is cut off equals none that is shorter. */
void clattn__json_name(clattn__json *, char *name, size_t size);
/* A text of fewer than `size` bytes; a longer one is a problem. */
void clattn__json_text(clattn__json *, char *text, size_t size);
void clattn__json_number(clattn__json *, double *number);
/* Any value, with all that is in it. */
void clattn__json_skip(clattn__json *);
/* Whether nothing is left and nothing was wrong. */
bool clattn__json_end(clattn__json *);

#endif
