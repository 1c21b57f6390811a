/* SPDX-License-Identifier: Apache-2.0 */
#include "remarks.h"

#include <stdio.h>
#include <string.h>

/* Whether the line stands among the remarks already: a reason that holds at every length is given once. */
static bool is_known(const clattn__text *remarks, const char *line) {
    size_t length = strlen(line);
    for (const char *at = remarks->data; at && (at = strstr(at, line)) != NULL; at += length)
        if ((at == remarks->data || at[-1] == '\n') && at[length] == '\n') return true;
    return false;
}

void bench_remark(clattn__text *remarks, const char *format, va_list list) {
    clattn__text line = {0};
    clattn__text_add_list(&line, format, list);
    if (line.data) {
        for (size_t i = line.length; i > 0 && line.data[i - 1] == '\n'; i--) line.data[i - 1] = 0;
        for (char *c = line.data; *c; c++)
            if (*c == '\n') *c = ' ';
        if (!is_known(remarks, line.data)) clattn__text_add(remarks, "%s\n", line.data);
    }
    clattn__text_free(&line);
}

void bench_progress(bool shown, const char *format, va_list list) {
    if (!shown) return;
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, list);
    fflush(stderr);
}
