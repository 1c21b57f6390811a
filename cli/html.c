/* SPDX-License-Identifier: Apache-2.0 */
#include "html.h"

#include <string.h>

void html_escape(FILE *file, const char *text) {
    for (; text && *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        default:
            fputc(*text, file);
        }
    }
}

void html_fill(FILE *file, const char *page, html_part *part, const void *user) {
    const char *open, *close;
    while ((open = strstr(page, "{{")) != NULL && (close = strstr(open, "}}")) != NULL) {
        fwrite(page, 1, (size_t)(open - page), file);
        part(file, open + 2, (size_t)(close - open - 2), user);
        page = close + 2;
    }
    fputs(page, file);
}
