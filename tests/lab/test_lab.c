/* The lab's judge on its own: contracts, expected values, comparison, guards' canaries, causes, what a source says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/lab/report.h"
#include "cli/lab/run.h"

static clattn_context *reference;
static char *memory; /* as large as the workers'; only what is touched is there */
static bench_random source_of_data;

static void open_all(void) {
    const char *seed = getenv("CLATTN_TEST_SEED");
    const clattn_context_options options = {.struct_size = sizeof options, .device = "reference"};
    source_of_data.state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) * 1000003 + (uint64_t)getpid();
    printf("seed %llu\n", (unsigned long long)source_of_data.state);
    memory = calloc(LAB_MEMORY_BYTES, 1);
    ck_assert_ptr_nonnull(memory);
    ck_assert_int_eq(clattn_context_create(&options, &reference), CLATTN_OK);
}

static void close_all(void) {
    clattn_context_destroy(reference);
    free(memory);
}

/* ---- the written contract ------------------------------------------------------------------------------------------- */

static void expect_signatures(const char *path) {
    char *text = calloc(1, 64 << 10), signature[512];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(file != NULL, "%s is not there", path);
    ck_assert_uint_gt(fread(text, 1, (64 << 10) - 1, file), 0);
    fclose(file);
    for (size_t s = 0; s < lab_step_count; s++) {
        lab_signature(&lab_steps[s], signature, sizeof signature);
        ck_assert_msg(strstr(text, signature) != NULL, "%s does not have %s", path, signature);
    }
    free(text);
}

START_TEST(the_pages_have_the_contracts) {
    expect_signatures(LAB_DOCS "/lab.md");
    expect_signatures(LAB_DOCS "/lab.zh.md");
}
END_TEST

/* ---- every step and shape ------------------------------------------------------------------------------------------ */

typedef void shape_test(const lab_step *, const lab_shape *);

static void for_all_shapes(shape_test *test) {
    for (size_t s = 0; s < lab_step_count; s++) {
        const lab_step *step = &lab_steps[s];
        const lab_grid grid = {{step->local[0], step->local[1]}, {step->tile[0], step->tile[1]}};
        const lab_shape one_group = lab_one_group(step, &grid);
        for (int i = 0; i < LAB_TINY_SHAPES; i++) test(step, &step->tiny[i]);
        for (int i = 0; i < LAB_MAX_SHAPES && step->shapes[i].m > 0; i++) test(step, &step->shapes[i]);
        test(step, &one_group);
    }
}

static lab_trial make(const lab_step *step, const lab_shape *shape) {
    lab_trial trial;
    ck_assert(lab_trial_make(&trial, step, shape, &source_of_data));
    ck_assert(lab_trial_expect(&trial, reference, 0, shape->m));
    ck_assert(lab_trial_place(&trial, memory, 0, LAB_GUARDED));
    return trial;
}

static float *output_of(const lab_trial *trial) {
    return (float *)lab_trial_output(trial, memory);
}

static size_t output_size(const lab_trial *trial) {
    return (size_t)trial->shape.m * (size_t)trial->shape.n;
}

static void write_expected(const lab_trial *trial) {
    for (size_t i = 0; i < output_size(trial); i++) output_of(trial)[i] = (float)trial->expected[i];
}

static void expect_wrong(const lab_step *step, const lab_shape *shape) {
    char text[128];
    lab_trial trial = make(step, shape);
    lab_shape_text(step, shape, text, sizeof text);
    const lab_errors poisoned = lab_trial_compare(&trial, output_of(&trial));
    ck_assert_msg(poisoned.wrong == output_size(&trial) && poisoned.unwritten == poisoned.wrong, "%s, %s: poison", step->name,
                  text);
    ck_assert(lab_trial_is_unwritten(&trial, output_of(&trial)));
    memset(output_of(&trial), 0, output_size(&trial) * sizeof(float));
    const lab_errors zeros = lab_trial_compare(&trial, output_of(&trial));
    ck_assert_msg(zeros.wrong > 0, "%s, %s: zeros pass", step->name, text);
    ck_assert_uint_eq(zeros.zero, zeros.checked);
    lab_trial_free(&trial);
}

static void expect_right(const lab_step *step, const lab_shape *shape) {
    lab_trial trial = make(step, shape);
    write_expected(&trial);
    ck_assert_uint_eq(lab_trial_compare(&trial, output_of(&trial)).wrong, 0);
    ck_assert(!lab_trial_is_unwritten(&trial, output_of(&trial)));
    /* One element, by ten tolerances of the largest of its row, or where it is infinite, by being finite. */
    const size_t at = output_size(&trial) - 1;
    double most = 0;
    for (int j = 0; j < shape->n; j++)
        if (isfinite(trial.expected[at - (size_t)j])) most = fmax(most, fabs(trial.expected[at - (size_t)j]));
    output_of(&trial)[at] = isinf(output_of(&trial)[at]) ? 0 : output_of(&trial)[at] + (float)(10 * step->tolerance * most);
    const lab_errors errors = lab_trial_compare(&trial, output_of(&trial));
    ck_assert_uint_eq(errors.wrong, 1);
    ck_assert_int_eq(errors.row, shape->m - 1);
    ck_assert_int_eq(errors.column, shape->n - 1);
    lab_trial_free(&trial);
}

START_TEST(neither_poison_nor_zeros_pass) {
    for_all_shapes(expect_wrong);
}
END_TEST

START_TEST(expected_values_pass_and_near_ones_do_not) {
    for_all_shapes(expect_right);
}
END_TEST

/* ---- expected values against loops of the test's own --------------------------------------------------------------- */

static double dot(const float *a, size_t a_step, const float *b, size_t b_step, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += (double)a[(size_t)i * a_step] * b[(size_t)i * b_step];
    return sum;
}

static void softmax_row(double *row, int count) {
    double most = -INFINITY, sum = 0;
    for (int j = 0; j < count; j++) most = fmax(most, row[j]);
    for (int j = 0; j < count; j++) sum += row[j] = exp(row[j] - most);
    for (int j = 0; j < count; j++) row[j] /= sum;
}

static void own_row(const lab_trial *t, int i, double *out) {
    const size_t m = (size_t)i, n = (size_t)t->shape.n, k = (size_t)t->shape.k;
    const char *step = t->step->name;
    double weights[2048];
    for (int j = 0; j < t->shape.n; j++) {
        if (strcmp(step, "softmax") == 0) out[j] = t->inputs[0][m * n + (size_t)j];
        if (strcmp(step, "mask") == 0) out[j] = j <= i ? (double)t->inputs[0][m * n + (size_t)j] : -INFINITY;
        if (strcmp(step, "scores") == 0)
            out[j] = dot(t->inputs[0] + m * k, 1, t->inputs[1] + (size_t)j * k, 1, t->shape.k) / sqrt(t->shape.k);
        if (strcmp(step, "weighted-values") == 0) out[j] = dot(t->inputs[0] + m * k, 1, t->inputs[1] + j, n, t->shape.k);
        if (strcmp(step, "project") == 0)
            out[j] = dot(t->inputs[0] + m * k, 1, t->inputs[1] + j, n, t->shape.k) + t->inputs[2][j];
    }
    if (strcmp(step, "softmax") == 0) softmax_row(out, t->shape.n);
    if (strcmp(step, "attention") != 0) return;
    for (int j = 0; j < t->shape.k; j++)
        weights[j] = dot(t->inputs[0] + m * n, 1, t->inputs[1] + (size_t)j * n, 1, t->shape.n) / sqrt(t->shape.n);
    softmax_row(weights, t->shape.k);
    for (int d = 0; d < t->shape.n; d++) {
        out[d] = 0;
        for (int j = 0; j < t->shape.k; j++) out[d] += weights[j] * t->inputs[2][(size_t)j * n + (size_t)d];
    }
}

static void expect_own(const lab_step *step, const lab_shape *shape) {
    lab_trial trial = make(step, shape);
    for (int i = 0; i < shape->m; i++) {
        double row[2048];
        own_row(&trial, i, row);
        for (int j = 0; j < shape->n; j++) output_of(&trial)[i * shape->n + j] = (float)row[j];
    }
    const lab_errors errors = lab_trial_compare(&trial, output_of(&trial));
    ck_assert_msg(errors.wrong == 0, "%s of %d x %d: row %d, column %d: the reference has %g, the test %g", step->name,
                  shape->m, shape->n, errors.row, errors.column, errors.expected, errors.got);
    lab_trial_free(&trial);
}

START_TEST(the_reference_computes_the_steps) {
    for_all_shapes(expect_own);
}
END_TEST

/* Rows in the middle are expected as when all are. */
static void expect_part(const lab_step *step, const lab_shape *shape) {
    lab_trial whole = make(step, shape);
    if (shape->m > 2) {
        const size_t n = (size_t)shape->n;
        double *all = whole.expected;
        whole.expected = NULL;
        ck_assert(lab_trial_expect(&whole, reference, 1, 2));
        for (size_t i = 0; i < 2 * n; i++)
            ck_assert_msg(whole.expected[i] == all[n + i], "%s: element %zu of rows 1 and 2", step->name, i);
        free(all);
    }
    lab_trial_free(&whole);
}

START_TEST(some_rows_are_as_among_all) {
    for_all_shapes(expect_part);
}
END_TEST

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static void expect_layout(const lab_step *step, const lab_shape *shape) {
    lab_trial trial = make(step, shape);
    char stray[256];
    for (uint32_t i = 0; i < LAB_MAX_BUFFERS && (trial.inputs[i] != NULL || i == trial.output); i++) {
        const lab_buffer *buffer = &trial.buffers[i];
        char *begin = memory + lab_data_offset(buffer), *const end = memory + buffer->offset + buffer->pages;
        ck_assert_uint_eq(lab_data_offset(buffer) % LAB_ALIGNMENT, 0);
        ck_assert_uint_eq((buffer->offset + buffer->pages) % LAB_PAGE, 0);
        ck_assert_uint_lt(buffer->padded - buffer->bytes, LAB_ALIGNMENT);
        lab_trial_find_stray(&trial, memory, stray, sizeof stray);
        ck_assert_str_eq(stray, "");
        char *const places[] = {begin - 1, begin + buffer->bytes, trial.inputs[i] != NULL ? begin : NULL};
        for (size_t n = 0; n < 3; n++) {
            if (places[n] == NULL || places[n] >= end || places[n] < memory + buffer->offset) continue;
            *places[n] ^= 1;
            lab_trial_find_stray(&trial, memory, stray, sizeof stray);
            ck_assert_msg(stray[0] != 0, "%s: a write at place %zu of buffer %u is not seen", step->name, n, i);
            *places[n] ^= 1;
        }
    }
    lab_trial_free(&trial);
}

START_TEST(every_byte_around_a_buffer_is_watched) {
    for_all_shapes(expect_layout);
}
END_TEST

/* What a device's memory has behind the data, and what a simulator's has not. */
static void expect_tails(const lab_step *step, const lab_shape *shape) {
    lab_trial trial = make(step, shape);
    char stray[256];
    ck_assert(lab_trial_place(&trial, memory, 1, LAB_COPIED));
    for (uint32_t i = 0; i < LAB_MAX_BUFFERS && (trial.inputs[i] != NULL || i == trial.output); i++) {
        const lab_buffer *buffer = &trial.buffers[i];
        char *last = memory + lab_data_offset(buffer) + buffer->padded - 1;
        ck_assert_uint_ge(buffer->padded - buffer->bytes, LAB_DEVICE_TAIL);
        *last ^= 1;
        lab_trial_find_stray(&trial, memory, stray, sizeof stray);
        ck_assert_str_ne(stray, "");
        *last ^= 1;
    }
    lab_trial_find_stray(&trial, memory, stray, sizeof stray);
    ck_assert_str_eq(stray, "");
    ck_assert(lab_trial_place(&trial, memory, 1, LAB_EXACT));
    for (uint32_t i = 0; i < LAB_MAX_BUFFERS && (trial.inputs[i] != NULL || i == trial.output); i++)
        ck_assert_uint_eq(trial.buffers[i].padded, trial.buffers[i].bytes);
    lab_trial_free(&trial);
}

START_TEST(device_buffers_have_tails) {
    for_all_shapes(expect_tails);
}
END_TEST

START_TEST(timed_shapes_fit_their_slots) {
    for (size_t s = 0; s < lab_step_count; s++) {
        lab_buffer buffers[LAB_MAX_BUFFERS];
        ck_assert(lab_layout(&lab_steps[s], &lab_steps[s].timed, LAB_SLOTS - 1, LAB_COPIED, buffers));
    }
    const lab_shape huge = {4096, 4096, 1, LAB_PLAIN};
    lab_buffer buffers[LAB_MAX_BUFFERS];
    ck_assert(!lab_layout(&lab_steps[0], &huge, 0, LAB_GUARDED, buffers));
}
END_TEST

/* ---- causes -------------------------------------------------------------------------------------------------------- */

/* The cause that is named for an output made by changing the right one. */
static const char *cause_of(const lab_shape *shape, void (*spoil)(const lab_trial *, float *)) {
    static char text[256];
    lab_run run = {.step = lab_step_find("softmax"), .source.grid = {{64, 1}, {64, 1}}};
    lab_trial trial = make(run.step, shape);
    write_expected(&trial);
    spoil(&trial, output_of(&trial));
    const lab_errors errors = lab_trial_compare(&trial, output_of(&trial));
    ck_assert_uint_gt(errors.wrong, 0);
    lab_find_cause(&run, &trial, &errors, text, sizeof text);
    lab_trial_free(&trial);
    return text;
}

static void spoil_columns(const lab_trial *trial, float *output, int first) {
    for (int i = 0; i < trial->shape.m; i++)
        for (int j = first; j < trial->shape.n; j++) output[i * trial->shape.n + j] = 7;
}
static void spoil_last_four(const lab_trial *trial, float *output) {
    spoil_columns(trial, output, trial->shape.n / 4 * 4);
}
static void spoil_last_rows(const lab_trial *trial, float *output) {
    const int first = trial->shape.m / 64 * 64;
    for (int i = first * trial->shape.n; i < trial->shape.m * trial->shape.n; i++) output[i] = 7;
}
static void spoil_middle(const lab_trial *trial, float *output) {
    spoil_columns(trial, output, 5);
}
static void spoil_all_nan(const lab_trial *trial, float *output) {
    for (size_t i = 0; i < output_size(trial); i++) output[i] = NAN;
}

START_TEST(causes_have_their_signatures) {
    const lab_shape plain = {65, 63, 0, LAB_PLAIN}, large = {65, 63, 0, LAB_LARGE}, masked = {65, 63, 0, LAB_MASKED};
    ck_assert_ptr_nonnull(strstr(cause_of(&plain, spoil_last_four), "right up to column 60"));
    ck_assert_ptr_nonnull(strstr(cause_of(&plain, spoil_last_rows), "right up to row 64"));
    ck_assert_ptr_nonnull(strstr(cause_of(&large, spoil_all_nan), "missing maximum"));
    ck_assert_ptr_nonnull(strstr(cause_of(&masked, spoil_all_nan), "masked scores only"));
    ck_assert_str_eq(cause_of(&plain, spoil_all_nan), "");
    ck_assert_str_eq(cause_of(&plain, spoil_middle), "");
    ck_assert_str_eq(cause_of(&large, spoil_middle), "");
}
END_TEST

/* ---- words --------------------------------------------------------------------------------------------------------- */

/* The conversions of a format, one after another: "%d%s". */
static void conversions_of(const char *format, char *found) {
    for (; *format != 0; format++) {
        if (*format != '%') continue;
        const size_t length = strcspn(format + 1, "dsgfuz%") + 1;
        for (size_t i = 0; i <= length; i++) *found++ = format[i];
        format += length;
        if (*format == 'z') *found++ = *++format;
    }
    *found = 0;
}

START_TEST(translations_convert_alike) {
    for (size_t i = 0; i < lab_translation_count; i++) {
        char english[128], chinese[128];
        conversions_of(lab_translations[i].english, english);
        conversions_of(lab_translations[i].chinese, chinese);
        ck_assert_msg(strcmp(english, chinese) == 0, "\"%s\" becomes \"%s\"", lab_translations[i].english,
                      lab_translations[i].chinese);
    }
    lab_speak_chinese(true);
    ck_assert_str_eq(lab_words("race"), "数据竞争");
    ck_assert_str_eq(lab_words("no such words"), "no such words");
    lab_speak_chinese(false);
    ck_assert_str_eq(lab_words("race"), "race");
}
END_TEST

/* ---- sources ------------------------------------------------------------------------------------------------------- */

static bool grid_of(const char *text, const char *step, lab_grid *grid, int *line) {
    char path[] = "/tmp/clattn-test-lab-XXXXXX", why[512];
    const int fd = mkstemp(path);
    lab_source source;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ck_assert_msg(lab_source_read(&source, path, why, sizeof why), "%s", why);
    const bool right = lab_source_grid(&source, lab_step_find(step), line, why, sizeof why);
    *grid = source.grid;
    lab_source_free(&source);
    unlink(path);
    return right;
}

START_TEST(grids_are_read) {
    lab_grid grid;
    int line;
    ck_assert(grid_of("kernel void f() {}\n", "scores", &grid, &line));
    ck_assert_int_eq(grid.local[0], 8);
    ck_assert(grid_of("// a kernel\n//lab: local 16 4, tile 32 64\r\n", "scores", &grid, &line));
    ck_assert_int_eq(grid.local[0], 16);
    ck_assert_int_eq(grid.local[1], 4);
    ck_assert_int_eq(grid.tile[0], 32);
    ck_assert_int_eq(grid.tile[1], 64);
    ck_assert(grid_of("// lab: tile 1", "softmax", &grid, &line));
    ck_assert_int_eq(grid.local[0], 64);
    ck_assert_int_eq(grid.tile[0], 1);
    static const char *const wrong[] = {"local 0", "local",      "tile 1 2",   "local -4",
                                        "lokal 4", "local 1025", "tile 99999", "local 4x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[64];
        snprintf(text, sizeof text, "\n// lab: %s\n", wrong[i]);
        ck_assert_msg(!grid_of(text, "softmax", &grid, &line), "%s is taken", wrong[i]);
        ck_assert_int_eq(line, 2);
    }
    ck_assert(!grid_of("// lab: local 64 64", "scores", &grid, &line)); /* 4096 work-items */
}
END_TEST

START_TEST(grids_cover_the_output) {
    const lab_grid grid = {{16, 4}, {32, 64}};
    const lab_shape shape = {65, 33, 1, LAB_PLAIN};
    size_t global[2];
    lab_global(lab_step_find("scores"), &shape, &grid, global);
    ck_assert_uint_eq(global[0], 2 * 16);
    ck_assert_uint_eq(global[1], 2 * 4);
    lab_global(lab_step_find("softmax"), &shape, &grid, global);
    ck_assert_uint_eq(global[0], 3 * 16);
}
END_TEST

/* ---- times --------------------------------------------------------------------------------------------------------- */

/* What is printed of a run, with its end cut off where it is long. */
static const char *report_of(const lab_run *run) {
    static char text[4096];
    FILE *file = tmpfile();
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    ck_assert(file != NULL && saved >= 0);
    ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
    lab_report_print(run);
    fflush(stdout);
    ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
    close(saved);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

/* A kernel that is right, once in `part` of the time that the device takes at least, and mostly in thrice that. */
static lab_run run_in(const lab_step *step, const lab_limits *limits, double part) {
    lab_run run = {.step = step, .result = {.verdict = LAB_CORRECT}};
    lab_timing *timing = &run.result.timing;
    *timing = (lab_timing){.yours_ms = 1, .ours_ms = 1};
    lab_judge_timing(timing, step, &step->timed, limits);
    timing->shortest_ms = timing->floor_ms * part;
    timing->yours_ms = 3 * timing->shortest_ms;
    timing->ours_ms = 2 * timing->floor_ms;
    lab_judge_timing(timing, step, &step->timed, limits);
    return run;
}

START_TEST(no_time_below_the_floor_is_believed) {
    const lab_limits limits = {100, 20, 200}, unknown = {0, 0, 0};
    for (size_t s = 0; s < lab_step_count; s++) {
        const lab_run fast = run_in(&lab_steps[s], &limits, 0.5), fair = run_in(&lab_steps[s], &limits, 1.5);
        ck_assert_double_gt(fast.result.timing.floor_ms, 0);
        ck_assert_msg(!fast.result.timing.is_believed && !lab_passed(&fast.result), "%s", lab_steps[s].name);
        const char *report = report_of(&fast);
        ck_assert_msg(strstr(report, "verdict: correct") != NULL && strstr(report, "not believed") != NULL, "%s", report);
        ck_assert_ptr_null(strstr(report, "of peak")); /* no score */
        ck_assert_msg(fair.result.timing.is_believed && lab_passed(&fair.result), "%s", lab_steps[s].name);
        ck_assert_ptr_nonnull(strstr(report_of(&fair), "of peak"));
        const lab_run blind = run_in(&lab_steps[s], &unknown, 1);
        ck_assert(isnan(blind.result.timing.floor_ms) && blind.result.timing.is_believed);
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("lab");
    Suite *suite = suite_create("lab");
    tcase_add_unchecked_fixture(cases, open_all, close_all);
    tcase_add_test(cases, the_pages_have_the_contracts);
    tcase_add_test(cases, neither_poison_nor_zeros_pass);
    tcase_add_test(cases, expected_values_pass_and_near_ones_do_not);
    tcase_add_test(cases, the_reference_computes_the_steps);
    tcase_add_test(cases, some_rows_are_as_among_all);
    tcase_add_test(cases, every_byte_around_a_buffer_is_watched);
    tcase_add_test(cases, device_buffers_have_tails);
    tcase_add_test(cases, timed_shapes_fit_their_slots);
    tcase_add_test(cases, causes_have_their_signatures);
    tcase_add_test(cases, translations_convert_alike);
    tcase_add_test(cases, no_time_below_the_floor_is_believed);
    tcase_add_test(cases, grids_are_read);
    tcase_add_test(cases, grids_cover_the_output);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
