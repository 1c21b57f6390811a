/* The pages of lessons that have run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_COURSE_PAGES_H
#define CLATTN_LESSONS_COURSE_PAGES_H

#include "cli/output.h"
#include "lesson.h"

/* The page of one lesson. On failure the set is discarded and set->error says why; so in the next. */
bool course_page_write(output_set *, const char *path, const lesson *);
/* The pages of a course, NAME.html, and index.html, in a folder that is made when it is not there. */
bool course_pages_write(output_set *, const char *folder, const lesson *lessons, size_t count);

#endif
