/* Documents as pages: one HTML file each, with all that it needs in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A page is page.html with its {{PARTS}} filled in. It carries the document as JSON (doc_json.h) and the scripts beside this
 * file, which draw it. Its Content-Security-Policy names those scripts and the style by their hashes, so that nothing else in
 * it can run or be loaded. Needs cJSON, as --json does.
 */
#ifndef CLATTN_LESSONS_PAGE_H
#define CLATTN_LESSONS_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "doc.h"

/* A page of a course. The file is NAME.html, that of the course itself index.html. */
typedef struct page_entry {
    const char *name, *title, *question; /* question: NULL where there is none */
    int minutes;
} page_entry;

typedef struct page_course {
    const char *title;
    const char *device;
    doc_language language;
    size_t count;
    const page_entry *entries;
} page_course;

#ifdef CLATTN_HAVE_CJSON
/* A document, and where it stands in a course (NULL: alone). False without memory. Errors of the file are the caller's to find.
 */
bool page_print(FILE *, const doc *, const page_course *);
/* The course: order, minutes, questions. */
bool page_print_course(FILE *, const page_course *);
#endif

/* What the document asks first; NULL when it asks nothing. */
const char *page_question(const doc *);

#endif
