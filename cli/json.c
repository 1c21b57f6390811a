/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"

#include <stdio.h>

#ifdef CLATTN_HAVE_CJSON

const char *json_missing(void) {
    return NULL;
}

bool json_write(output_set *set, const char *path, cJSON *tree) {
    char *text = tree != NULL ? cJSON_Print(tree) : NULL;
    cJSON_Delete(tree);
    if (text == NULL) {
        output_discard(set);
        snprintf(set->error, sizeof set->error, "out of memory for the JSON of %s", path);
        return false;
    }
    FILE *file = output_open(set, path);
    if (file != NULL) fprintf(file, "%s\n", text);
    cJSON_free(text);
    return file != NULL;
}

#else

const char *json_missing(void) {
    return "this build writes no JSON: it was made without cJSON (Debian package libcjson-dev)";
}

#endif
