/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../host/list.h"

const bench_field_info bench_fields[BENCH_FIELD_COUNT] = {
#define FIELD(id, name, type, part) {#name, BENCH_##type, BENCH_PART_##part},
#include "fields.def"
#undef FIELD
};

#define DOES_NOT_APPLY "does not apply"

bench_record *bench_records_add(bench_records *records) {
    bench_record *items = clattn__list_room(records->items, records->count, &records->capacity, sizeof *items);
    if (!items) {
        records->failed = true;
        return NULL;
    }
    records->items = items;
    bench_record *record = &records->items[records->count++];
    memset(record, 0, sizeof *record);
    return record;
}

void bench_records_free(bench_records *records) {
    for (size_t i = 0; i < records->count; i++)
        for (int field = 0; field < BENCH_FIELD_COUNT; field++) free(records->items[i].values[field].text);
    free(records->items);
    *records = (bench_records){0};
}

static bench_value *replace(bench_record *record, bench_field field, bool known) {
    bench_value *value = &record->values[field];
    free(value->text);
    *value = (bench_value){.known = known};
    return value;
}

void bench_set_text(bench_record *record, bench_field field, const char *text) {
    bench_value *value = replace(record, field, true);
    value->text = strdup(text);
    value->known = value->text != NULL;
}

void bench_set_count(bench_record *record, bench_field field, int64_t count) {
    replace(record, field, true)->count = count;
}

void bench_set_real(bench_record *record, bench_field field, double real) {
    if (isfinite(real))
        replace(record, field, true)->real = real;
    else
        bench_set_unknown(record, field, "not measured");
}

void bench_set_flag(bench_record *record, bench_field field, bool flag) {
    replace(record, field, true)->flag = flag;
}

void bench_set_unknown(bench_record *record, bench_field field, const char *reason) {
    replace(record, field, false)->text = strdup(reason);
}

const char *bench_text(const bench_record *record, bench_field field) {
    const bench_value *value = &record->values[field];
    return value->known && value->text ? value->text : "";
}

int64_t bench_count(const bench_record *record, bench_field field) {
    return record->values[field].known ? record->values[field].count : 0;
}

double bench_real(const bench_record *record, bench_field field) {
    return record->values[field].known ? record->values[field].real : NAN;
}

bool bench_flag(const bench_record *record, bench_field field) {
    return record->values[field].known && record->values[field].flag;
}

const char *bench_reason(const bench_record *record, bench_field field) {
    const bench_value *value = &record->values[field];
    return value->text ? value->text : DOES_NOT_APPLY;
}

size_t bench_value_format(const bench_record *record, bench_field field, char *text, size_t size) {
    const bench_value *value = &record->values[field];
    if (!value->known) return (size_t)snprintf(text, size, "%s", "");
    switch (bench_fields[field].type) {
    case BENCH_TEXT:
        return (size_t)snprintf(text, size, "%s", value->text);
    case BENCH_COUNT:
        return (size_t)snprintf(text, size, "%" PRId64, value->count);
    case BENCH_REAL:
        return (size_t)snprintf(text, size, "%.9g", value->real);
    case BENCH_FLAG:
        return (size_t)snprintf(text, size, "%s", value->flag ? "true" : "false");
    }
    return 0;
}

bool bench_same_key(const bench_record *a, const bench_record *b) {
    char x[256], y[256];
    for (int field = 0; field < BENCH_FIELD_COUNT; field++) {
        if (bench_fields[field].part != BENCH_PART_KEY) continue;
        bench_value_format(a, field, x, sizeof x);
        bench_value_format(b, field, y, sizeof y);
        if (strcmp(x, y) != 0) return false;
    }
    return true;
}
