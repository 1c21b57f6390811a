/* The user's file of a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/origin.h"
#include "cli/json.h"
#include "tune.h"

clattn__text tune_path(const clattn__device *device) {
    const clattn__tuning_device d = clattn__tuning_device_of(device);
    char name[96];
    clattn__text path = clattn__tuning_directory();
    clattn__tuning_file(&d, name, sizeof name);
    if (path.data) clattn__text_add(&path, "/%s", name);
    if (path.failed) clattn__text_free(&path);
    return path;
}

bool tune_clear(const char *path, bool *there, bench_error *error) {
    *there = unlink(path) == 0;
    return *there || errno == ENOENT || bench_fail(error, "%s: %s", path, strerror(errno));
}

#ifndef CLATTN_HAVE_CJSON

bool tune_store(const tune_session *session, const char *path, const char *json, bench_error *error) {
    (void)session, (void)path, (void)json;
    return bench_fail(error, "%s", json_missing());
}

#else

/* ---- the document ---------------------------------------------------------------------------------------------------- */

static void add_device(cJSON *root, const clattn__device *device) {
    const clattn__tuning_device d = clattn__tuning_device_of(device);
    cJSON *object = cJSON_AddObjectToObject(root, "device");
    cJSON_AddStringToObject(object, "name", d.name);
    cJSON_AddStringToObject(object, "platform", d.platform);
    cJSON_AddStringToObject(object, "driver", d.driver);
    cJSON_AddStringToObject(object, "vendor", d.vendor);
    cJSON_AddStringToObject(object, "architecture", d.architecture);
    cJSON_AddStringToObject(object, "type", d.type);
    cJSON_AddStringToObject(object, "kernels", d.kernels);
    cJSON_AddNumberToObject(object, "compute_units", (double)device->info.compute_units);
}

static cJSON *choice_json(const tune_result *result) {
    const tune_choice *choice = &result->choice;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "key", result->key);
    cJSON_AddStringToObject(object, "row", result->rows[choice->chosen]->name);
    cJSON_AddStringToObject(object, "default", result->rows[0]->name);
    cJSON_AddNumberToObject(object, "ratio", choice->ratio);
    cJSON_AddNumberToObject(object, "noise", choice->noise);
    cJSON_AddStringToObject(object, "reason", choice->reason);
    cJSON_AddStringToObject(object, "shape", result->shape);
    cJSON_AddStringToObject(object, "verified", result->verified);
    cJSON *rows = cJSON_AddArrayToObject(object, "rows");
    for (size_t n = 0; n < result->count; n++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "row", result->rows[n]->name);
        cJSON_AddNumberToObject(row, "ms", choice->ms[n]);
        cJSON_AddBoolToObject(row, "far_behind", choice->behind[n]);
        cJSON_AddItemToArray(rows, row);
    }
    return object;
}

static const char *text_of(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static bool is_measured(const tune_session *session, const char *key) {
    for (size_t n = 0; n < session->count; n++)
        if (strcmp(session->results[n].key, key) == 0) return true;
    return false;
}

/* Choices of other keys that the file has, if they were made with these kernels and this driver. */
static void keep_others(const tune_session *session, const char *text, cJSON *choices) {
    cJSON *root = cJSON_Parse(text), *next;
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(root, "device");
    cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "choices");
    const bool same = strcmp(text_of(root, "schema"), CLATTN__TUNING_SCHEMA) == 0 &&
                      strcmp(text_of(root, "kernels"), clattn__kernels_hash) == 0 &&
                      strcmp(text_of(device, "driver"), session->device.info.driver) == 0;
    for (cJSON *item = same && cJSON_IsArray(list) ? list->child : NULL; item; item = next) {
        next = item->next;
        if (*text_of(item, "key") && !is_measured(session, text_of(item, "key")))
            cJSON_AddItemToArray(choices, cJSON_DetachItemViaPointer(list, item));
    }
    cJSON_Delete(root);
}

static char *read_all(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = file ? calloc(1, CLATTN__TUNING_MOST + 1) : NULL;
    const size_t length = text ? fread(text, 1, CLATTN__TUNING_MOST, file) : 0;
    if (file) fclose(file);
    if (text) text[length] = 0;
    return text;
}

static cJSON *document(const tune_session *session, const char *path) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", CLATTN__TUNING_SCHEMA);
    cJSON_AddStringToObject(root, "clattn", clattn_version());
    cJSON_AddStringToObject(root, "commit", bench_origin_commit());
    cJSON_AddStringToObject(root, "kernels", clattn__kernels_hash);
    cJSON_AddBoolToObject(root, "quick", session->quick);
    add_device(root, &session->device.context->device);
    cJSON *choices = cJSON_AddArrayToObject(root, "choices");
    for (size_t n = 0; n < session->count; n++)
        if (session->results[n].count > 1) cJSON_AddItemToArray(choices, choice_json(&session->results[n]));
    char *before = path ? read_all(path) : NULL;
    if (before) keep_others(session, before, choices);
    free(before);
    return root;
}

/* ---- the file -------------------------------------------------------------------------------------------------------- */

static bool make_directories(const char *path, bench_error *error) {
    char *copy = malloc(strlen(path) + 1);
    if (!copy) return bench_fail(error, "out of memory");
    const int failure = clattn__make_directories(strcpy(copy, path));
    if (failure) bench_fail(error, "%s: %s", copy, strerror(failure));
    free(copy);
    return !failure;
}

bool tune_store(const tune_session *session, const char *path, const char *json, bench_error *error) {
    const char *const paths[] = {path, json};
    output_set set = {0};
    cJSON *root = document(session, path);
    char *text = root ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text) return bench_fail(error, "out of memory");
    bool right = !path || make_directories(path, error);
    for (size_t n = 0; right && n < sizeof paths / sizeof *paths; n++) {
        FILE *file = paths[n] ? output_open(&set, paths[n]) : NULL;
        if (file) fprintf(file, "%s\n", text);
        right = file || !paths[n] || bench_fail(error, "%s", set.error);
    }
    cJSON_free(text);
    return right && (output_commit(&set) || bench_fail(error, "%s", set.error));
}

#endif
