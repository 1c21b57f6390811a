/* SPDX-License-Identifier: Apache-2.0 */
#include "ratios.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool same_text(const bench_record *a, const bench_record *b, bench_field field) {
    return strcmp(bench_text(a, field), bench_text(b, field)) == 0;
}

static bool has(const bench_record *record, const char *word) {
    return strstr(bench_text(record, BENCH_PATH), word) != NULL;
}

/* The same operator, sampled in the same turns, with warm caches; staged is slower on purpose and says nothing here. */
static bool comparable(const bench_record *a, const bench_record *b) {
    return a != b && a->group == b->group && same_text(a, b, BENCH_OP) &&
           strcmp(bench_text(a, BENCH_CACHE_STATE), "cold") != 0 && same_text(a, b, BENCH_CACHE_STATE) && has(a, "clattn") &&
           !has(a, "staged") && bench_count(a, BENCH_LEN_Q) == bench_count(b, BENCH_LEN_Q) &&
           bench_count(a, BENCH_D_IN) == bench_count(b, BENCH_D_IN) &&
           bench_count(a, BENCH_HEAD_DIM) == bench_count(b, BENCH_HEAD_DIM);
}

/* "clattn fused on 2 devices" is, of "clattn fused". */
static bool is_split_of(const bench_record *a, const bench_record *b) {
    const char *path = bench_text(a, BENCH_PATH), *whole = bench_text(b, BENCH_PATH);
    const size_t length = strlen(whole);
    return length && strncmp(path, whole, length) == 0 && strncmp(path + length, " on ", 4) == 0;
}

static void add_line(clattn__text *text, const bench_record *a, const bench_record *b, const char *what, double ratio) {
    clattn__text_add(text, "%s %s, length %" PRId64 ", %" PRId64 " unit%s: %s %.2fx%s\n", bench_text(a, BENCH_OP),
                     bench_text(a, BENCH_PATH), bench_count(a, BENCH_LEN_Q), bench_count(a, BENCH_THREADS),
                     bench_count(a, BENCH_THREADS) > 1 ? "s" : "", what, ratio,
                     bench_flag(a, BENCH_NOISY) || bench_flag(b, BENCH_NOISY) ? " (noisy)" : "");
}

static void add_pair(clattn__text *text, const bench_record *a, const bench_record *b) {
    double ms_a = bench_real(a, BENCH_MS_MEDIAN), ms_b = bench_real(b, BENCH_MS_MEDIAN);
    bool same_units = bench_count(a, BENCH_THREADS) == bench_count(b, BENCH_THREADS);
    bool same_mask = same_text(a, b, BENCH_CAUSAL),
         full = !bench_text(a, BENCH_CAUSAL)[0] || strcmp(bench_text(a, BENCH_CAUSAL), "none") == 0;
    const bool same_window = same_text(a, b, BENCH_WINDOW), same_type = same_text(a, b, BENCH_DTYPE);
    char what[96];
    if (same_units && same_mask && same_type && !same_window && same_text(a, b, BENCH_PATH)) {
        if (strcmp(bench_text(b, BENCH_WINDOW), "none") != 0) return;
        snprintf(what, sizeof what, "time of window %s against none", bench_text(a, BENCH_WINDOW));
        add_line(text, a, b, what, ms_a / ms_b);
        return;
    }
    if (same_units && same_mask && same_window && !same_type && same_text(a, b, BENCH_PATH)) {
        if (strcmp(bench_text(b, BENCH_DTYPE), "f32") != 0) return;
        snprintf(what, sizeof what, "speed of %s against f32", bench_text(a, BENCH_DTYPE));
        add_line(text, a, b, what, ms_b / ms_a);
        return;
    }
    if (!same_window || !same_type) return;
    if (same_units && same_mask && is_split_of(a, b)) {
        add_line(text, a, b, full ? "speed against one device" : "speed against one device (causal)", ms_b / ms_a);
    } else if (same_units && same_mask && !has(b, "clattn")) {
        snprintf(what, sizeof what, "speed against %s%s", bench_text(b, BENCH_PATH), full ? "" : " (causal)");
        add_line(text, a, b, what, ms_b / ms_a);
    } else if (same_units && !same_mask && !full && same_text(a, b, BENCH_PATH)) {
        add_line(text, a, b, "time of causal against full", ms_a / ms_b);
    } else if (same_mask && !same_units && bench_count(b, BENCH_THREADS) == 1 && same_text(a, b, BENCH_PATH)) {
        add_line(text, a, b, full ? "speed against one unit" : "speed against one unit (causal)", ms_b / ms_a);
    }
}

void bench_ratios(clattn__text *text, const bench_records *records) {
    for (size_t i = 0; i < records->count; i++)
        for (size_t j = 0; j < records->count; j++)
            if (comparable(&records->items[i], &records->items[j])) add_pair(text, &records->items[i], &records->items[j]);
}
