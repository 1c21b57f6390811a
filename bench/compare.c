/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/options.h"
#include "error.h"
#include "json.h"
#include "stats.h"

const char *bench_change_name(bench_change change) {
    static const char *const names[] = {"same", "faster", "slower", "unclear"};
    return names[change];
}

/* What is compared: the median time, of a limit the time for a unit of work, since limits choose how often they repeat. */
static double cost_of(const bench_record *record) {
    double median = bench_real(record, BENCH_MS_MEDIAN);
    if (strcmp(bench_text(record, BENCH_OP), "limit") != 0) return median;
    double work = record->values[BENCH_FLOPS].known ? bench_real(record, BENCH_FLOPS) : bench_real(record, BENCH_BYTES);
    return median / work;
}

/* The same of the fastest sample. */
static double least_cost_of(const bench_record *record) {
    return cost_of(record) * bench_real(record, BENCH_MS_MIN) / bench_real(record, BENCH_MS_MEDIAN);
}

static double noise_of(const bench_record *record) {
    return bench_real(record, BENCH_IQR) / bench_real(record, BENCH_MS_MEDIAN);
}

static double difference(double x, double y) {
    return fmax(x, y) / fmin(x, y) - 1;
}

bench_change bench_change_of(const bench_record *a, const bench_record *b, double drift) {
    const double before = cost_of(a), after = cost_of(b), doubt = drift + noise_of(a) + noise_of(b);
    if (!(before > 0 && after > 0 && doubt >= 0)) return BENCH_CHANGE_UNCLEAR;
    const double change = difference(before, after);
    if (change <= BENCH_COMPARE_RESOLUTION) return doubt <= 2 * BENCH_COMPARE_RESOLUTION ? BENCH_SAME : BENCH_CHANGE_UNCLEAR;
    if (change <= doubt + BENCH_COMPARE_RESOLUTION) return BENCH_CHANGE_UNCLEAR;
    const bool faster = after < before;
    const double least_before = least_cost_of(a), least_after = least_cost_of(b);
    if ((least_after < least_before) != faster || !(difference(least_before, least_after) > BENCH_COMPARE_RESOLUTION + drift))
        return BENCH_CHANGE_UNCLEAR;
    return faster ? BENCH_FASTER : BENCH_SLOWER;
}

/* The record of `records` that measures what `wanted` does, or NULL. */
static const bench_record *find(const bench_records *records, const bench_record *wanted) {
    for (size_t i = 0; i < records->count; i++)
        if (bench_same_key(&records->items[i], wanted)) return &records->items[i];
    return NULL;
}

static bool is_timed(const bench_record *record) {
    return isfinite(bench_real(record, BENCH_MS_MEDIAN));
}

double bench_drift(const bench_records *a, const bench_records *b) {
    double *drifts = malloc((a->count + 1) * sizeof *drifts);
    if (!drifts) return NAN;
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(bench_text(&a->items[i], BENCH_OP), "limit") != 0) continue;
        const bench_record *other = find(b, &a->items[i]);
        double before = cost_of(&a->items[i]), after = other ? cost_of(other) : NAN;
        if (before > 0 && after > 0) drifts[count++] = difference(before, after);
    }
    double median = count ? bench_stats_of(drifts, count).median : 0;
    free(drifts);
    return median;
}

static void print_line(const bench_record *a, const bench_record *b, bench_change change) {
    printf("%-8s %-9s %-34.34s %6lld %4lld %-4s %10.4g %10.4g %6.2fx  %s\n", bench_text(a, BENCH_CONTRAST),
           bench_text(a, BENCH_OP), bench_text(a, BENCH_PATH), (long long)bench_count(a, BENCH_LEN_Q),
           (long long)bench_count(a, BENCH_THREADS), bench_text(a, BENCH_CACHE_STATE), bench_real(a, BENCH_MS_MEDIAN),
           bench_real(b, BENCH_MS_MEDIAN), cost_of(a) / cost_of(b), bench_change_name(change));
}

static void warn_if_different(const bench_records *a, const bench_records *b, bench_field field) {
    const char *x = bench_text(&a->items[0], field), *y = bench_text(&b->items[0], field);
    if (strcmp(x, y) != 0) printf("%s differs: %s | %s\n", bench_fields[field].name, x, y);
}

#ifdef CLATTN_HAVE_CJSON
/* What the table says, as JSON: a pair is the places of its records in the two files. */
static cJSON *tree_of(const bench_records *a, const bench_records *b) {
    const double drift = bench_drift(a, b);
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddStringToObject(tree, "schema", "clattn-compare-1");
    cJSON_AddNumberToObject(tree, "drift", drift);
    cJSON *pairs = cJSON_AddArrayToObject(tree, "pairs");
    for (size_t i = 0; i < a->count; i++) {
        const bench_record *other = find(b, &a->items[i]);
        if (!other || !is_timed(&a->items[i]) || !is_timed(other)) continue;
        cJSON *pair = cJSON_CreateObject();
        cJSON_AddNumberToObject(pair, "before", (double)i);
        cJSON_AddNumberToObject(pair, "after", (double)(other - b->items));
        cJSON_AddNumberToObject(pair, "speed", cost_of(&a->items[i]) / cost_of(other));
        cJSON_AddStringToObject(pair, "change", bench_change_name(bench_change_of(&a->items[i], other, drift)));
        cJSON_AddItemToArray(pairs, pair);
    }
    return tree;
}

static int write_json(const bench_records *a, const bench_records *b, const char *path) {
    output_set outputs = {0};
    if (!json_write(&outputs, path, tree_of(a, b))) return cli_fail("bench compare", CLI_USAGE, "--json: %s", outputs.error);
    return output_commit(&outputs) ? CLI_SUCCESS : cli_fail("bench compare", CLI_FAILURE, "%s", outputs.error);
}
#else
static int write_json(const bench_records *a, const bench_records *b, const char *path) {
    (void)a, (void)b, (void)path;
    return cli_fail("bench compare", CLI_USAGE, "--json: %s", json_missing());
}
#endif

static int compare(const bench_records *a, const bench_records *b) {
    static const bench_field context[] = {BENCH_DEVICE_NAME, BENCH_DRIVER, BENCH_OS, BENCH_VERSION, BENCH_COMMIT};
    for (size_t i = 0; i < sizeof context / sizeof *context; i++) warn_if_different(a, b, context[i]);
    double drift = bench_drift(a, b);
    printf("the machine itself moved by %.1f %% between the runs (its measured limits)\n", drift * 100);
    printf("%-8s %-9s %-34s %6s %4s %-4s %10s %10s %7s\n", "contrast", "op", "path", "length", "unit", "", "ms before",
           "ms after", "speed");
    size_t counts[4] = {0}, matched = 0;
    for (size_t i = 0; i < a->count; i++) {
        const bench_record *other = find(b, &a->items[i]);
        if (!other || !is_timed(&a->items[i]) || !is_timed(other)) continue;
        bench_change change = bench_change_of(&a->items[i], other, drift);
        print_line(&a->items[i], other, change);
        counts[change]++;
        matched++;
    }
    if (!matched)
        return cli_fail("bench compare", CLI_FAILURE, "no record of the first file measures what one of the second does");
    printf("%zu same, %zu faster, %zu slower, %zu unclear\n", counts[BENCH_SAME], counts[BENCH_FASTER], counts[BENCH_SLOWER],
           counts[BENCH_CHANGE_UNCLEAR]);
    return 0;
}

int bench_compare_main(int argc, char **argv) {
    typedef struct compare_options {
        const char *json;
    } compare_options;
    static const cli_option options[] = {
        {"json", "FILE|-", "the pairs as JSON: places in both files, speed, change", CLI_TEXT, offsetof(compare_options, json)},
        {NULL},
    };
    static const cli_command command = {
        "bench compare",
        "two results of `clattn bench --json` beside one another",
        options,
        "A.json B.json",
        2,
        "Every record that both hold is the same, faster, slower, or unclear: a change is claimed when the medians differ by "
        "more than 5 %, than both runs' noise and than the machine's own drift, and the minima moved the same way.\n"};
    bench_records files[2] = {{0}, {0}};
    bench_error error;
    compare_options given = {0};
    int code = CLI_USAGE, first = cli_parse(&command, argc, argv, &given, &code);
    if (first < 0) return code;
    if (!bench_json_read(argv[first], &files[0], &error) || !bench_json_read(argv[first + 1], &files[1], &error))
        code = cli_fail("bench compare", CLI_USAGE, "%s", error.text);
    else
        code = given.json ? write_json(&files[0], &files[1], given.json) : CLI_SUCCESS;
    if (code == CLI_SUCCESS && !(given.json && strcmp(given.json, "-") == 0)) code = compare(&files[0], &files[1]);
    bench_records_free(&files[0]);
    bench_records_free(&files[1]);
    return code;
}
