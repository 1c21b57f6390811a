/* Pages made from templates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_HTML_H
#define CLATTN_CLI_HTML_H

#include <stddef.h>
#include <stdio.h>

/* The text as it stands between tags or in an attribute; NULL is none. */
void html_escape(FILE *file, const char *text);

/* Print what stands in the place of {{NAME}}; `name` is `length` characters long. A name that is not known prints nothing. */
typedef void html_part(FILE *file, const char *name, size_t length, const void *user);

/* The template with its {{PARTS}} filled in. */
void html_fill(FILE *file, const char *page, html_part *part, const void *user);

#endif
