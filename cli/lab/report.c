/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/options.h"

/* ---- words --------------------------------------------------------------------------------------------------------- */

/* Two digits, and never an exponent. */
static int decimals(double percent) {
    return percent < 1 ? 2 : percent < 10 ? 1 : 0;
}

static void print_percents(const lab_timing *timing) {
    const double yours = timing->yours_percent, ours = timing->ours_percent;
    printf(lab_words("  yours %.*f %% of peak"), decimals(yours), yours);
    if (isfinite(ours)) printf(lab_words(", ours %.*f %%"), decimals(ours), ours);
    printf("\n");
    if (fmax(yours, ours) > 100)
        printf("%s", lab_words("  (the peak is that of memory; above it, the data come from a cache)\n"));
}

static void print_time(const lab_timing *timing) {
    if (!timing->is_measured) return;
    printf(lab_words("  time for %s, median of %d: yours %.3g ms"), timing->shape, timing->launches, timing->yours_ms);
    if (isfinite(timing->ours_ms)) printf(lab_words(", ours %.3g ms"), timing->ours_ms);
    printf("\n");
    if (!isfinite(timing->floor_ms)) return;
    if (!timing->is_believed)
        printf(lab_words("  not believed: one launch took %.3g ms, and this device takes at least %.3g ms for the arithmetic and "
                         "the bytes of the step\n"),
               timing->shortest_ms, timing->floor_ms);
    else
        print_percents(timing);
}

static void print_errors(const lab_errors *errors) {
    if (errors->is_unwritten)
        printf(lab_words("  first wrong element: row %d, column %d; expected %.7g, never written\n"), errors->row,
               errors->column, errors->expected);
    else
        printf(lab_words("  first wrong element: row %d, column %d; expected %.7g, got %.7g\n"), errors->row, errors->column,
               errors->expected, errors->got);
    printf("%s", lab_words("  where (. right, # wrong, n NaN, ? never written):\n"));
    for (int i = 0; i < errors->map_rows; i++) printf("    %s\n", errors->map[i]);
}

/* Lines that others have written: what would steer a terminal becomes a blank. */
static void print_indented(const char *text) {
    for (bool begins = true; *text != 0; text++) {
        if (begins) printf("  ");
        begins = *text == '\n';
        putchar(begins || (unsigned char)*text >= ' ' ? *text : ' ');
        if (text[1] == 0 && !begins) putchar('\n');
    }
}

void lab_report_print(const lab_run *run) {
    const lab_result *result = &run->result;
    printf(lab_words("verdict: %s"), lab_words(lab_verdict_text(result->verdict)));
    if (result->verdict != LAB_CORRECT) {
        printf(" (%s%s%s)\n", lab_words(result->stage), result->shape[0] != 0 ? ": " : "", result->shape);
        print_indented(result->detail);
    } else {
        printf("\n");
    }
    if (result->line > 0) {
        char text[160];
        lab_source_line(&run->source, result->line, text, sizeof text);
        printf(lab_words("  line %d: %s\n"), result->line, text);
    }
    if (result->has_errors) print_errors(&result->errors);
    if (result->cause[0] != 0) printf(lab_words("  likely cause: %s\n"), result->cause);
    if (result->has_errors) printf(lab_words("  the same inputs again: --seed %llu\n"), (unsigned long long)run->options->seed);
    print_time(&result->timing);
    if (result->printed[0] != 0) {
        printf("%s", lab_words("  the kernel printed:\n"));
        print_indented(result->printed);
    }
    for (const char *line = result->warnings; *line != 0; line += strcspn(line, "\n") + 1)
        printf(lab_words("  warning: %.*s\n"), (int)strcspn(line, "\n"), line);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------- */

#ifdef CLATTN_HAVE_CJSON

/* JSON has neither NaN nor infinity: words, then. */
static void add_number(cJSON *object, const char *name, double value) {
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddStringToObject(object, name, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static cJSON *errors_json(const lab_errors *errors) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "wrong", (double)errors->wrong);
    cJSON_AddNumberToObject(object, "checked", (double)errors->checked);
    cJSON_AddNumberToObject(object, "row", errors->row);
    cJSON_AddNumberToObject(object, "column", errors->column);
    add_number(object, "expected", errors->expected);
    if (!errors->is_unwritten) add_number(object, "got", errors->got);
    cJSON *map = cJSON_AddArrayToObject(object, "map");
    for (int i = 0; i < errors->map_rows; i++) cJSON_AddItemToArray(map, cJSON_CreateString(errors->map[i]));
    return object;
}

static cJSON *timing_json(const lab_timing *timing) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "shape", timing->shape);
    cJSON_AddNumberToObject(object, "launches", timing->launches);
    add_number(object, "yours_ms", timing->yours_ms);
    add_number(object, "ours_ms", timing->ours_ms);
    add_number(object, "yours_shortest_ms", timing->shortest_ms);
    add_number(object, "floor_ms", timing->floor_ms);
    add_number(object, "yours_percent_of_peak", timing->yours_percent);
    add_number(object, "ours_percent_of_peak", timing->ours_percent);
    cJSON_AddBoolToObject(object, "believed", timing->is_believed);
    return object;
}

static cJSON *result_json(const lab_run *run) {
    const lab_result *result = &run->result;
    char seed[24];
    cJSON *root = cJSON_CreateObject();
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->options->seed);
    cJSON_AddStringToObject(root, "schema", "clattn-lab-1");
    cJSON_AddStringToObject(root, "version", clattn_version());
    cJSON_AddStringToObject(root, "step", run->step->name);
    cJSON_AddStringToObject(root, "kernel", run->source.path);
    cJSON_AddStringToObject(root, "device", result->id);
    cJSON_AddStringToObject(root, "device_name", result->device);
    cJSON_AddStringToObject(root, "isolation", result->is_isolated ? "full" : "partial");
    cJSON_AddStringToObject(root, "seed", seed);
    cJSON_AddStringToObject(root, "verdict", lab_verdict_text(result->verdict));
    cJSON_AddStringToObject(root, "stage", result->stage);
    cJSON_AddStringToObject(root, "shape", result->shape);
    cJSON_AddStringToObject(root, "detail", result->detail);
    cJSON_AddStringToObject(root, "cause", result->cause);
    cJSON_AddNumberToObject(root, "line", result->line);
    cJSON_AddNumberToObject(root, "shapes_passed", result->shapes_passed);
    cJSON_AddNumberToObject(root, "shapes", result->shapes);
    cJSON_AddStringToObject(root, "oclgrind", result->simulator);
    cJSON_AddStringToObject(root, "warnings", result->warnings);
    cJSON_AddStringToObject(root, "printed", result->printed);
    if (result->has_errors) cJSON_AddItemToObject(root, "errors", errors_json(&result->errors));
    if (result->timing.is_measured) cJSON_AddItemToObject(root, "time", timing_json(&result->timing));
    return root;
}

int lab_report_json(const lab_run *run) {
    output_set outputs = {0};
    if (!json_write(&outputs, run->options->json, result_json(run)))
        return cli_fail("lab", CLI_USAGE, "--json: %s", outputs.error);
    return output_commit(&outputs) ? CLI_SUCCESS : cli_fail("lab", CLI_FAILURE, "%s", outputs.error);
}

#else

int lab_report_json(const lab_run *run) {
    (void)run;
    return cli_fail("lab", CLI_USAGE, "--json: %s", json_missing());
}

#endif
