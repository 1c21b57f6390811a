/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "table.h"

static void print_field(FILE *file, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

void bench_print_csv(FILE *file, const bench_records *records) {
    char text[1024];
    for (int field = 0; field < BENCH_FIELD_COUNT; field++) fprintf(file, "%s%s", field ? "," : "", bench_fields[field].name);
    fputs("\r\n", file);
    for (size_t i = 0; i < records->count; i++) {
        for (int field = 0; field < BENCH_FIELD_COUNT; field++) {
            bench_value_format(&records->items[i], field, text, sizeof text);
            if (field) fputc(',', file);
            print_field(file, text);
        }
        fputs("\r\n", file);
    }
}
