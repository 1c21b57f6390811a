/* A record: everything that is known about one figure, and for what is not known, why.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_RECORD_H
#define CLATTN_BENCH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_SCHEMA_NAME "clattn-bench-1"

typedef enum bench_field {
#define FIELD(id, name, type, part) BENCH_##id,
#include "fields.def"
#undef FIELD
    BENCH_FIELD_COUNT
} bench_field;

typedef enum bench_type { BENCH_TEXT, BENCH_COUNT, BENCH_REAL, BENCH_FLAG } bench_type;
typedef enum bench_part { BENCH_PART_KEY, BENCH_PART_VALUE } bench_part;

typedef struct bench_field_info {
    const char *name;
    bench_type type;
    bench_part part;
} bench_field_info;

extern const bench_field_info bench_fields[BENCH_FIELD_COUNT];

typedef struct bench_value {
    bool known;
    char *text; /* TEXT; or, of an unknown value, the reason. Owned. */
    int64_t count;
    double real;
    bool flag;
} bench_value;

typedef struct bench_record {
    bench_value values[BENCH_FIELD_COUNT];
    int group; /* records that were sampled alternately share a number */
} bench_record;

typedef struct bench_records {
    bench_record *items;
    size_t count, capacity;
    bool failed; /* out of memory: something is missing */
} bench_records;

/* A new record whose fields are all unknown ("does not apply"); NULL without memory. Valid until the next call. */
bench_record *bench_records_add(bench_records *);
void bench_records_free(bench_records *);

void bench_set_text(bench_record *, bench_field, const char *text);
void bench_set_count(bench_record *, bench_field, int64_t count);
void bench_set_real(bench_record *, bench_field, double real); /* not finite: unknown */
void bench_set_flag(bench_record *, bench_field, bool flag);
void bench_set_unknown(bench_record *, bench_field, const char *reason);

/* The value, or what stands for an unknown one: "", 0, NaN, false. */
const char *bench_text(const bench_record *, bench_field);
int64_t bench_count(const bench_record *, bench_field);
double bench_real(const bench_record *, bench_field);
bool bench_flag(const bench_record *, bench_field);
/* Why a value is unknown. */
const char *bench_reason(const bench_record *, bench_field);

/* The value as text for CSV and tables; "" when unknown. Returns the length of the whole. */
size_t bench_value_format(const bench_record *, bench_field, char *text, size_t size);
/* Whether both records measure the same thing. */
bool bench_same_key(const bench_record *, const bench_record *);

#endif
