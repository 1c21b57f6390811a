/* Documents and figures as JSON, where the build found cJSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A document: {"name", "title", "language", "minutes", "device", "steps", "blocks": [...]}. A block: {"kind", "id", "step"} and
 * what its kind has: "text", "answer", or "title", "summary" and the figure, whose members are those of doc.h under the same
 * names. "summary_is_numbers": nobody wrote the summary, it says what the numbers are. Numbers that are not finite are null.
 */
#ifndef CLATTN_LESSONS_DOC_JSON_H
#define CLATTN_LESSONS_DOC_JSON_H

#ifdef CLATTN_HAVE_CJSON
#include <cjson/cJSON.h>

#include "doc.h"
#include "figures.h"

/* NULL without memory. */
cJSON *doc_json(const doc *);
/* Put figures where their paths say, below root. False without memory. */
bool figures_json(cJSON *root, const figures *);
#endif

#endif
