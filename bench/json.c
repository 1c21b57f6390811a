/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"

#if !defined(CLATTN_HAVE_CJSON)

bool bench_json_write(output_set *set, const char *path, const bench_records *records) {
    (void)path, (void)records;
    output_discard(set);
    snprintf(set->error, sizeof set->error, "%s", json_missing());
    return false;
}

bool bench_json_read(const char *path, bench_records *records, bench_error *error) {
    (void)path, (void)records;
    return bench_fail(error, "%s", json_missing());
}

#else

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static cJSON *value_of(const bench_record *record, bench_field field) {
    const bench_value *value = &record->values[field];
    if (!value->known) return cJSON_CreateNull();
    switch (bench_fields[field].type) {
    case BENCH_TEXT:
        return cJSON_CreateString(value->text);
    case BENCH_COUNT:
        return cJSON_CreateNumber((double)value->count);
    case BENCH_REAL:
        return cJSON_CreateNumber(value->real);
    case BENCH_FLAG:
        return cJSON_CreateBool(value->flag);
    }
    return NULL;
}

static cJSON *object_of(const bench_record *record) {
    cJSON *object = cJSON_CreateObject(), *reasons = cJSON_CreateObject();
    bool whole = object && reasons;
    for (int field = 0; whole && field < BENCH_FIELD_COUNT; field++) {
        whole = cJSON_AddItemToObject(object, bench_fields[field].name, value_of(record, field));
        if (whole && !record->values[field].known)
            whole = cJSON_AddStringToObject(reasons, bench_fields[field].name, bench_reason(record, field)) != NULL;
    }
    if (whole && cJSON_AddItemToObject(object, "null_reasons", reasons)) return object;
    cJSON_Delete(reasons);
    cJSON_Delete(object);
    return NULL;
}

bool bench_json_write(output_set *set, const char *path, const bench_records *records) {
    cJSON *array = cJSON_CreateArray();
    bool whole = array != NULL;
    for (size_t i = 0; whole && i < records->count; i++) {
        cJSON *object = object_of(&records->items[i]);
        whole = object && cJSON_AddItemToArray(array, object);
    }
    if (!whole) {
        cJSON_Delete(array);
        array = NULL;
    }
    return json_write(set, path, array);
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static char *read_file(const char *path, bench_error *error) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        bench_fail(error, "cannot open %s", path);
        return NULL;
    }
    size_t size = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    while (text) {
        size += fread(text + size, 1, capacity - size - 1, file);
        if (size < capacity - 1) break;
        char *larger = realloc(text, capacity *= 2);
        if (!larger) free(text);
        text = larger;
    }
    bool failed = ferror(file);
    fclose(file);
    if (!text || failed) {
        free(text);
        bench_fail(error, "cannot read %s", path);
        return NULL;
    }
    text[size] = 0;
    return text;
}

static bool take(bench_record *record, bench_field field, const cJSON *item) {
    if (!item || cJSON_IsNull(item)) return true;
    switch (bench_fields[field].type) {
    case BENCH_TEXT:
        if (!cJSON_IsString(item)) return false;
        bench_set_text(record, field, item->valuestring);
        return true;
    case BENCH_COUNT:
        if (!cJSON_IsNumber(item)) return false;
        bench_set_count(record, field, (int64_t)item->valuedouble);
        return true;
    case BENCH_REAL:
        if (!cJSON_IsNumber(item)) return false;
        bench_set_real(record, field, item->valuedouble);
        return true;
    case BENCH_FLAG:
        if (!cJSON_IsBool(item)) return false;
        bench_set_flag(record, field, cJSON_IsTrue(item));
        return true;
    }
    return false;
}

static bool take_record(const cJSON *object, bench_records *records, const char *path, bench_error *error) {
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(object, "schema");
    if (!cJSON_IsString(schema) || strcmp(schema->valuestring, BENCH_SCHEMA_NAME) != 0)
        return bench_fail(error, "%s: record %zu is not of schema %s", path, records->count, BENCH_SCHEMA_NAME);
    bench_record *record = bench_records_add(records);
    if (!record) return bench_fail(error, "out of memory");
    for (int field = 0; field < BENCH_FIELD_COUNT; field++)
        if (!take(record, field, cJSON_GetObjectItemCaseSensitive(object, bench_fields[field].name)))
            return bench_fail(error, "%s: record %zu: %s has another type", path, records->count - 1, bench_fields[field].name);
    return true;
}

bool bench_json_read(const char *path, bench_records *records, bench_error *error) {
    char *text = read_file(path, error);
    if (!text) return false;
    cJSON *array = cJSON_Parse(text);
    bool right = cJSON_IsArray(array) && cJSON_GetArraySize(array) > 0;
    if (!right) bench_fail(error, "%s is not a JSON array of records", path);
    const cJSON *object;
    cJSON_ArrayForEach(object, array) right = right && take_record(object, records, path, error);
    cJSON_Delete(array);
    free(text);
    return right;
}

#endif
