/* The race as a page, made by the course's code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_RACE_PAGE_H
#define CLATTN_CLI_RACE_PAGE_H

#include "cli/output.h"
#include "race.h"

#ifdef CLATTN_HAVE_CJSON
/* One HTML file. On failure the set is discarded and set->error says why. */
bool race_page_write(output_set *, const char *path, const race_results *, race_language, const clattn__text *sentences);
#endif

#endif
