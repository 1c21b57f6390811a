/* JSON by cJSON, where the build found it (CLATTN_HAVE_CJSON).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_JSON_H
#define CLATTN_CLI_JSON_H

#include <stdbool.h>

#include "cli/output.h"

/* NULL where JSON can be written, else the sentence that says what this build lacks. */
const char *json_missing(void);

#ifdef CLATTN_HAVE_CJSON
#include <cjson/cJSON.h>

/* Print the tree into a file of the set and delete the tree (NULL: it ran out of memory while it was made). On failure the set
 * is discarded and set->error says why. */
bool json_write(output_set *set, const char *path, cJSON *tree);
#endif

#endif
