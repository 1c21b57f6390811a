/* The benchmark's judgement: statistics, sampling in turns, verification, verdict and compare, on fabricated figures.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../bench/args.h"
#include "../bench/compare.h"
#include "../bench/group.h"
#include "../bench/growth.h"
#include "../bench/jobs.h"
#include "../bench/json.h"
#include "../bench/ratios.h"
#include "../bench/sampler.h"
#include "../bench/table.h"
#include "../bench/verdict.h"
#include "../bench/verify.h"
#include "../host/internal.h"

/* ---- statistics --------------------------------------------------------------------------------------------------- */

START_TEST(quantiles_are_interpolated) {
    double values[] = {5, 1, 4, 2, 3};
    bench_stats stats = bench_stats_of(values, 5);
    ck_assert_uint_eq(stats.samples, 5);
    ck_assert_double_eq(stats.median, 3);
    ck_assert_double_eq(stats.min, 1);
    ck_assert_double_eq_tol(stats.p90, 4.6, 1e-12);
    ck_assert_double_eq(stats.iqr, 2);
    ck_assert_double_eq_tol(stats.noise, 2.0 / 3, 1e-12);
}
END_TEST

START_TEST(statistics_of_one_and_of_none) {
    double value = 7;
    bench_stats one = bench_stats_of(&value, 1), none = bench_stats_of(&value, 0);
    ck_assert_double_eq(one.median, 7);
    ck_assert_double_eq(one.p90, 7);
    ck_assert_double_eq(one.iqr, 0);
    ck_assert_uint_eq(none.samples, 0);
    ck_assert(isnan(none.median) && isnan(none.noise));
}
END_TEST

START_TEST(medians_within_two_percent_are_warm) {
    const double a[] = {10, 10, 30}, b[] = {10.1, 10.2, 1}, c[] = {10.3, 10.3, 10.3};
    ck_assert(bench_warm(a, b, 3));
    ck_assert(!bench_warm(a, c, 3));
}
END_TEST

/* ---- sampling ----------------------------------------------------------------------------------------------------- */

/* A candidate whose n-th run takes what a script says; runs of all candidates are logged. */
typedef struct script {
    char name;
    double wall[4], event; /* wall times in rotation */
    int runs, fails_at;
} script;

static char run_log[4096];
static size_t run_count;

static bool run_script(bench_candidate *candidate, bench_time *time, bench_error *error) {
    script *s = candidate->state;
    if (s->fails_at && s->runs + 1 == s->fails_at) return bench_fail(error, "run %d fails", s->fails_at);
    if (run_count + 1 < sizeof run_log) run_log[run_count++] = s->name;
    *time = (bench_time){s->wall[s->runs++ % 4], s->event};
    return true;
}

static void release_nothing(bench_candidate *candidate) {
    (void)candidate;
}

static const bench_candidate_class scripted = {.run = run_script, .release = release_nothing};
static const bench_sampling short_sampling = {.warm_up_s = 0.01, .seconds = 0.01};

static void reset_log(void) {
    memset(run_log, 0, sizeof run_log);
    run_count = 0;
}

START_TEST(quiet_candidates_take_ten_samples_in_turns) {
    script a = {'a', {10, 10, 10, 10}, NAN, 0, 0}, b = {'b', {20, 20, 20, 20}, NAN, 0, 0};
    bench_candidate candidates[] = {{.class = &scripted, .state = &a}, {.class = &scripted, .state = &b}};
    bench_lane lanes[] = {{.candidate = &candidates[0]}, {.candidate = &candidates[1]}};
    bench_error error;
    reset_log();
    ck_assert(bench_sample(lanes, 2, &short_sampling, &error));
    ck_assert_uint_eq(lanes[0].stats.samples, BENCH_MIN_SAMPLES);
    ck_assert_double_eq(lanes[0].stats.median, 10);
    ck_assert_double_eq(lanes[1].stats.median, 20);
    ck_assert(strstr(run_log, "abababababababababab") != NULL);
    ck_assert_str_eq(lanes[0].source, "wall clock");
    ck_assert_ptr_null(lanes[0].remark);
}
END_TEST

START_TEST(short_runs_go_once_untimed) {
    script a = {'a', {1, 1, 1, 1}, NAN, 0, 0}, b = {'b', {1, 1, 1, 1}, NAN, 0, 0};
    bench_candidate candidates[] = {{.class = &scripted, .state = &a}, {.class = &scripted, .state = &b}};
    bench_lane lanes[] = {{.candidate = &candidates[0]}, {.candidate = &candidates[1]}};
    bench_error error;
    reset_log();
    ck_assert(bench_sample(lanes, 2, &short_sampling, &error));
    ck_assert(strstr(run_log, "aabbaabb") != NULL);
}
END_TEST

START_TEST(noise_is_sampled_until_the_limit) {
    script a = {'a', {10, 20, 30, 40}, NAN, 0, 0};
    bench_candidate candidate = {.class = &scripted, .state = &a};
    bench_lane lane = {.candidate = &candidate};
    bench_error error;
    ck_assert(bench_sample(&lane, 1, &short_sampling, &error));
    ck_assert_uint_gt(lane.stats.samples, BENCH_MIN_SAMPLES);
    ck_assert_double_gt(lane.stats.noise, BENCH_NOISY_ABOVE);
}
END_TEST

START_TEST(events_are_believed_when_the_wall_clock_agrees) {
    script near = {'n', {10, 10, 10, 10}, 9.5, 0, 0}, far = {'f', {10, 10, 10, 10}, 5, 0, 0};
    bench_candidate candidates[] = {{.class = &scripted, .state = &near}, {.class = &scripted, .state = &far}};
    bench_lane lanes[] = {{.candidate = &candidates[0]}, {.candidate = &candidates[1]}};
    bench_error error;
    ck_assert(bench_sample(lanes, 2, &short_sampling, &error));
    ck_assert_str_eq(lanes[0].source, "device events");
    ck_assert_double_eq(lanes[0].stats.median, 9.5);
    ck_assert_str_eq(lanes[1].source, "wall clock");
    ck_assert_double_eq(lanes[1].stats.median, 10);
    ck_assert_double_eq(lanes[1].event_ms, 5);
    ck_assert_ptr_nonnull(lanes[1].remark);
}
END_TEST

START_TEST(a_run_that_fails_ends_the_sampling) {
    script a = {'a', {10, 10, 10, 10}, NAN, 0, 9};
    bench_candidate candidate = {.class = &scripted, .state = &a};
    bench_lane lane = {.candidate = &candidate};
    bench_error error;
    ck_assert(!bench_sample(&lane, 1, &short_sampling, &error));
    ck_assert_str_eq(error.text, "run 9 fails");
}
END_TEST

static void assert_says(const char *text, const char *part) {
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in: %s", part, text);
}

/* ---- groups ------------------------------------------------------------------------------------------------------- */

static bench_session open_session(int argc, char **argv) {
    bench_args args;
    bench_session session;
    bench_error error;
    int code;
    ck_assert(bench_args_read(&args, argc, argv, &code));
    ck_assert_msg(bench_session_open(&session, &args, &error), "%s", error.text);
    return session;
}

/* Ten times as fast as the device's multiply-adds can be: to be trusted only of what is done by other instructions. */
static void check_fast_figure(bench_limit_kind peak, bool trusted) {
    bench_session session = open_session(4, (char *[]){"bench", "--quick", "--device", "native", NULL});
    script fast = {'f', {10, 10, 10, 10}, NAN, 0, 0};
    bench_group group = {.session = &session, .count = 1};
    size_t first;
    bench_error error;
    group.candidates[0] = (bench_candidate){
        .class = &scripted, .device = &session.devices[0], .contrast = "peers", .flops = 1e15, .peak = peak, .state = &fast};
    ck_assert_msg(bench_group_measure(&group, false, &first, &error), "%s", error.text);
    const bench_record *record = &session.records.items[first];
    ck_assert_int_eq(session.failed, !trusted);
    ck_assert_int_eq(bench_flag(record, BENCH_ABOVE_PEAK), !trusted);
    ck_assert_int_eq(isnan(bench_real(record, BENCH_PERCENT_OF_PEAK)), trusted);
    ck_assert_int_eq(isnan(bench_real(record, BENCH_PERCENT_OF_MEDIAN_PEAK)), trusted);
    ck_assert(trusted || bench_real(record, BENCH_MEDIAN_PEAK_GFLOPS) <= bench_real(record, BENCH_PEAK_GFLOPS));
    bench_group_free(&group);
    bench_session_close(&session);
}

START_TEST(a_figure_is_held_against_its_own_peak) {
    check_fast_figure(BENCH_LIMIT_MULTIPLY_ADD, false);
    check_fast_figure(BENCH_LIMIT_NONE, true);
    check_fast_figure(BENCH_LIMIT_FRAGMENTS, true); /* which host memory has none of */
}
END_TEST

START_TEST(what_would_take_longer_is_left_out) {
    bench_session session = open_session(4, (char *[]){"bench", "--quick", "--limit", "100", NULL});
    bench_record *record = bench_records_add(&session.records);
    bench_set_real(record, BENCH_MS_MEDIAN, 1000);
    const double expected_s = bench_session_expect(&session, 0, 5, 2);
    ck_assert_double_eq(expected_s, 5 + (BENCH_MIN_SAMPLES + 4) * 3);
    ck_assert(bench_session_has_time(&session, 64, expected_s, 10));
    ck_assert(!bench_session_has_time(&session, 128, 2 * expected_s, 20));
    assert_says(session.remarks.data, "left out, length 128 and longer: about 94 s more");
    bench_session_close(&session);
}
END_TEST

/* ---- verdict ------------------------------------------------------------------------------------------------------ */

static bench_contrast make_contrast(size_t count, const double *attention_ms, const double *recurrence_ms, double noise) {
    bench_contrast contrast = {.title = "Core", .attention = "Attention", .recurrence = "The loop", .count = count};
    for (size_t i = 0; i < count; i++) {
        contrast.lengths[i] = (i64)16 << i;
        contrast.attention_at[i] = (bench_point){attention_ms[i], noise, 1e6 * attention_ms[i], 50, 1};
        contrast.recurrence_at[i] = (bench_point){recurrence_ms[i], noise, 1e6, 10, (i64)16 << i};
    }
    return contrast;
}

static char *verdict_of(const bench_contrast *contrast) {
    clattn__text text = {0};
    bench_verdict_contrast(&text, contrast);
    ck_assert_ptr_nonnull(text.data);
    return text.data;
}

START_TEST(attention_can_win_everywhere) {
    bench_contrast contrast = make_contrast(3, (double[]){1, 1, 1}, (double[]){2, 4, 8}, 0.01);
    char *text = verdict_of(&contrast);
    assert_says(text, "Attention wins at lengths 16-64, 2.0x to 8.0x faster (most at 64).");
    assert_says(text, "The loop wins at no length measured.");
    ck_assert_ptr_null(strstr(text, "cross"));
    ck_assert_double_eq(bench_crossing(&contrast, 1, 1), 0);
    free(text);
}
END_TEST

START_TEST(the_recurrence_can_win_everywhere) {
    bench_contrast contrast = make_contrast(3, (double[]){3, 6, 9}, (double[]){1, 1, 1}, 0.01);
    char *text = verdict_of(&contrast);
    assert_says(text, "Attention wins at no length measured.");
    assert_says(text, "The loop wins at lengths 16-64, 3.0x to 9.0x faster (most at 64).");
    free(text);
}
END_TEST

START_TEST(lines_cross_where_the_figures_say) {
    bench_contrast contrast = make_contrast(3, (double[]){1, 4, 16}, (double[]){2, 4, 8}, 0.01);
    char *text = verdict_of(&contrast);
    assert_says(text, "Attention wins at length 16, 2.0x faster.");
    assert_says(text, "The loop wins at length 64, 2.0x faster.");
    assert_says(text, "At 32 it is unclear");
    assert_says(text, "The lines cross near length 32.");
    ck_assert_double_eq_tol(bench_crossing(&contrast, 1, 1), 32, 1e-9);
    free(text);
}
END_TEST

START_TEST(noise_makes_it_unclear) {
    bench_contrast contrast = make_contrast(2, (double[]){10, 10}, (double[]){12, 8}, 0.2);
    char *text = verdict_of(&contrast);
    assert_says(text, "At 16-32 it is unclear");
    ck_assert_ptr_null(strstr(text, "cross"));
    free(text);
    const bench_point a = {10, 0, 1, 1, 1}, b = {10.2, 0, 1, 1, 1}, c = {NAN, 0, 1, 1, 1};
    ck_assert_int_eq(bench_faster(&a, &b), BENCH_WINNER_UNCLEAR);
    ck_assert_int_eq(bench_faster(&a, &c), BENCH_WINNER_UNCLEAR);
}
END_TEST

/* Where the quartiles lie further apart than half the median, no lead is large enough. */
START_TEST(noise_without_hope_names_no_winner) {
    const bench_point quiet = {1, 0.01, 1, 1, 1};
    for (int side = 0; side < 2; side++) {
        const bench_point noisy = {100, 0.97, 1, 1, 1}, loud = {100, 0.45, 1, 1, 1};
        ck_assert_int_eq(bench_faster(side ? &noisy : &quiet, side ? &quiet : &noisy), BENCH_WINNER_UNCLEAR);
        ck_assert_int_ne(bench_faster(side ? &loud : &quiet, side ? &quiet : &loud), BENCH_WINNER_UNCLEAR);
    }
    bench_contrast contrast = make_contrast(2, (double[]){1, 100}, (double[]){100, 1}, 0.97);
    ck_assert_double_eq(bench_crossing(&contrast, 1, 1), 0);
}
END_TEST

START_TEST(nothing_measured_is_said) {
    bench_contrast contrast = make_contrast(0, NULL, NULL, 0);
    char *text = verdict_of(&contrast);
    assert_says(text, "nothing was measured");
    free(text);
}
END_TEST

START_TEST(amdahl) {
    ck_assert_double_eq_tol(bench_parallel_part(2, 2), 1, 1e-12);
    ck_assert_double_eq_tol(bench_parallel_part(1.6, 4), 0.5, 1e-12);
    ck_assert_double_eq(bench_parallel_part(2.5, 2), 1);
    ck_assert_double_eq(bench_parallel_part(0.8, 2), 0);
    ck_assert_double_eq(bench_parallel_part(1, 1), 0);
}
END_TEST

static char *scaling_of(double attention_2, double recurrence_2, double noise, const bench_contrast *core) {
    bench_scaling scaling = {.length = 64, .count = 2, .units = {1, 2}};
    scaling.attention_at[0] = (bench_point){8, noise, 1, 1, 1};
    scaling.attention_at[1] = (bench_point){attention_2, noise, 1, 1, 1};
    scaling.recurrence_at[0] = (bench_point){4, noise, 1, 1, 64};
    scaling.recurrence_at[1] = (bench_point){recurrence_2, noise, 1, 1, 64};
    clattn__text text = {0};
    bench_verdict_scaling(&text, &scaling, core, "thread");
    ck_assert_ptr_nonnull(text.data);
    return text.data;
}

START_TEST(more_units_are_foretold_from_what_they_gave) {
    /* On 2 units attention loses from 32 on; perfectly parallel, it wins on 8. */
    bench_contrast core = make_contrast(2, (double[]){1, 4}, (double[]){2, 2}, 0.01);
    char *text = scaling_of(4, 4, 0.01, &core);
    assert_says(text, "2 of them ran attention 2.00x as fast as one and the recurrence no faster");
    assert_says(text, "100 % parallel against 0 %");
    assert_says(text, "on 8 Attention would win at every length measured");
    free(text);
    /* The other way round. */
    text = scaling_of(8, 2, 0.01, &core);
    assert_says(text, "attention no faster (1.00x, within the noise) and the recurrence 2.00x");
    assert_says(text, "on 32 The loop would win at every length measured");
    free(text);
    text = scaling_of(4, 4, 0.3, &core);
    assert_says(text, "too noisy");
    free(text);
}
END_TEST

/* ---- compare ------------------------------------------------------------------------------------------------------ */

static bench_record *add_record(bench_records *records, const char *path, int64_t length, double ms, double noise) {
    bench_record *record = bench_records_add(records);
    ck_assert_ptr_nonnull(record);
    bench_set_text(record, BENCH_SCHEMA, BENCH_SCHEMA_NAME);
    bench_set_text(record, BENCH_OP, strcmp(path, "multiply-add") == 0 ? "limit" : "attention");
    bench_set_text(record, BENCH_PATH, path);
    bench_set_text(record, BENCH_CACHE_STATE, "warm");
    bench_set_count(record, BENCH_LEN_Q, length);
    bench_set_count(record, BENCH_THREADS, 1);
    bench_set_real(record, BENCH_MS_MEDIAN, ms);
    bench_set_real(record, BENCH_MS_MIN, ms * (1 - noise));
    bench_set_real(record, BENCH_IQR, ms * noise);
    return record;
}

static bench_change change(double before, double before_noise, double after, double after_noise, double drift) {
    bench_records records = {0};
    add_record(&records, "clattn fused", 64, before, before_noise);
    add_record(&records, "clattn fused", 64, after, after_noise);
    bench_change result = bench_change_of(&records.items[0], &records.items[1], drift);
    bench_records_free(&records);
    return result;
}

START_TEST(changes_are_told_from_noise) {
    ck_assert_int_eq(change(10, 0.01, 10.2, 0.01, 0), BENCH_SAME);
    ck_assert_int_eq(change(10, 0.01, 8, 0.01, 0), BENCH_FASTER);
    ck_assert_int_eq(change(10, 0.01, 12.5, 0.01, 0), BENCH_SLOWER);
    ck_assert_int_eq(change(10, 0.15, 12.5, 0.15, 0), BENCH_CHANGE_UNCLEAR);
    ck_assert_int_eq(change(10, 0.3, 10, 0.3, 0), BENCH_CHANGE_UNCLEAR);
    ck_assert_int_eq(change(10, 0.01, 12.5, 0.01, 0.3), BENCH_CHANGE_UNCLEAR);
    ck_assert_int_eq(change(10, 0.01, NAN, 0.01, 0), BENCH_CHANGE_UNCLEAR);
}
END_TEST

START_TEST(a_median_that_moved_alone_is_no_change) {
    bench_records records = {0};
    add_record(&records, "clattn fused", 64, 10, 0.01);
    bench_set_real(add_record(&records, "clattn fused", 64, 15, 0.01), BENCH_MS_MIN, 9.9);
    ck_assert_int_eq(bench_change_of(&records.items[0], &records.items[1], 0), BENCH_CHANGE_UNCLEAR);
    bench_records_free(&records);
}
END_TEST

START_TEST(drift_is_that_of_the_limits) {
    bench_records a = {0}, b = {0};
    add_record(&a, "clattn fused", 64, 10, 0);
    add_record(&b, "clattn fused", 64, 50, 0);
    ck_assert_double_eq(bench_drift(&a, &b), 0);
    bench_set_real(add_record(&a, "multiply-add", 0, 10, 0), BENCH_FLOPS, 1e6);
    bench_set_real(add_record(&b, "multiply-add", 0, 22, 0), BENCH_FLOPS, 2e6);
    ck_assert_double_eq_tol(bench_drift(&a, &b), 0.1, 1e-12);
    bench_records_free(&a);
    bench_records_free(&b);
}
END_TEST

/* ---- records ------------------------------------------------------------------------------------------------------ */

START_TEST(keys_tell_what_is_measured) {
    bench_records records = {0};
    add_record(&records, "clattn fused", 64, 10, 0);
    add_record(&records, "clattn fused", 64, 99, 0.5);
    add_record(&records, "clattn fused", 65, 10, 0);
    add_record(&records, "clattn staged", 64, 10, 0);
    ck_assert(bench_same_key(&records.items[0], &records.items[1]));
    ck_assert(!bench_same_key(&records.items[0], &records.items[2]));
    ck_assert(!bench_same_key(&records.items[0], &records.items[3]));
    bench_records_free(&records);
}
END_TEST

START_TEST(csv_quotes) {
    bench_records records = {0};
    bench_set_text(add_record(&records, "a \"b\", c", 64, 10, 0), BENCH_NOTE, "x\ny");
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    bench_print_csv(file, &records);
    ck_assert_int_eq(fclose(file), 0);
    assert_says(text, "schema,contrast,op,path,");
    assert_says(text, ",\"a \"\"b\"\", c\",");
    assert_says(text, "\"x\ny\"");
    free(text);
    bench_records_free(&records);
}
END_TEST

#if defined(CLATTN_HAVE_CJSON)
START_TEST(json_comes_back_as_it_went) {
    char path[] = "/tmp/clattn-test-XXXXXX";
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    close(descriptor);
    bench_records out = {0}, in = {0};
    bench_set_flag(add_record(&out, "clattn fused", 64, 10.25, 0.01), BENCH_NOISY, false);
    output_set files = {0};
    bench_error error;
    ck_assert(bench_json_write(&files, path, &out));
    ck_assert(output_commit(&files));
    ck_assert_msg(bench_json_read(path, &in, &error), "%s", error.text);
    ck_assert_uint_eq(in.count, 1);
    char x[128], y[128];
    for (int field = 0; field < BENCH_FIELD_COUNT; field++) {
        bench_value_format(&out.items[0], field, x, sizeof x);
        bench_value_format(&in.items[0], field, y, sizeof y);
        ck_assert_str_eq(x, y);
        ck_assert_int_eq(out.items[0].values[field].known, in.items[0].values[field].known);
    }
    bench_records_free(&out);
    bench_records_free(&in);
    unlink(path);
}
END_TEST

static bool reads(const char *text) {
    char path[] = "/tmp/clattn-test-XXXXXX";
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    bench_records records = {0};
    bench_error error;
    bool read = bench_json_read(path, &records, &error);
    bench_records_free(&records);
    unlink(path);
    return read;
}

START_TEST(other_json_is_refused) {
    ck_assert(reads("[{\"schema\": \"clattn-bench-1\"}]"));
    ck_assert(!reads(""));
    ck_assert(!reads("[]"));
    ck_assert(!reads("{}"));
    ck_assert(!reads("[{\"schema\": \"clattn-bench-1\"}"));
    ck_assert(!reads("[{\"schema\": \"another\"}]"));
    ck_assert(!reads("[1]"));
    ck_assert(!reads("[{\"schema\": \"clattn-bench-1\", \"ms_median\": \"fast\"}]"));
    ck_assert(!reads("[{\"schema\": \"clattn-bench-1\", \"noisy\": 3}]"));
}
END_TEST
#endif

START_TEST(ratios_are_of_one_group) {
    bench_records records = {0};
    for (int i = 0; i < 3; i++) {
        bench_record *record = add_record(&records, i == 0 ? "clattn fused" : "openblas unfused whole", 64, i == 0 ? 2 : 3, 0);
        bench_set_text(record, BENCH_CAUSAL, "none");
        record->group = i < 2 ? 1 : 2;
    }
    clattn__text text = {0};
    bench_ratios(&text, &records);
    ck_assert_str_eq(text.data, "attention clattn fused, length 64, 1 unit: speed against openblas unfused whole 1.50x\n");
    clattn__text_free(&text);
    bench_records_free(&records);
}
END_TEST

/* ---- verification ------------------------------------------------------------------------------------------------- */

START_TEST(rows_agree_or_not) {
    const float expected[] = {1, -2, 0.5f}, near[] = {1.00001f, -2, 0.5f}, off[] = {1, -2, 0.6f}, broken[] = {1, NAN, 0.5f};
    const float zeros[3] = {0};
    ck_assert(bench_row_agrees(CLATTN_F32, near, expected, 3, 5e-5));
    ck_assert(!bench_row_agrees(CLATTN_F32, off, expected, 3, 5e-5));
    ck_assert(!bench_row_agrees(CLATTN_F32, broken, expected, 3, 5e-5));
    ck_assert(!bench_row_agrees(CLATTN_F32, zeros, expected, 3, 5e-5));
    ck_assert(bench_row_agrees(CLATTN_F32, zeros, zeros, 3, 5e-5));
}
END_TEST

/* The oracle accepts what the reference computes for the whole, whole or sampled, and no mutant of it. */
/* Returns the number that the text of how far begins with. */
static long check_verification_in(bool hurry, bench_shape shape, const char *how_part) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "reference";
    clattn_context *reference = NULL;
    ck_assert_int_eq(clattn_context_create(&options, &reference), CLATTN_OK);
    bench_problem problem;
    bench_error error;
    char how[128];
    ck_assert_msg(bench_problem_create(&problem, &shape, 3, &error), "%s", error.text);
    problem.hurried = hurry;
    clattn_plan *plan = NULL;
    ck_assert_int_eq(bench_plan_create(reference, shape.op, &problem.desc, (bench_variant){0}, &plan), CLATTN_OK);
    ck_assert_int_eq(clattn_plan_run(plan, problem.args, problem.arg_count), CLATTN_OK);
    ck_assert_msg(bench_verify(&problem, reference, 24, how, sizeof how, &error), "%s", error.text);
    assert_says(how, how_part);
    const long rows = strtol(how, NULL, 10);

    const clattn_arg *out = bench_problem_output_arg(&problem);
    float *last = (float *)out->data + out->bytes / sizeof(float) - 1, *first = out->data;
    if (!bench_op_recurs(shape.op)) {
        *last = -*last - 1;
        ck_assert(!bench_verify(&problem, reference, 24, how, sizeof how, &error));
    }
    *first = NAN;
    ck_assert(!bench_verify(&problem, reference, 24, how, sizeof how, &error));
    memset(out->data, 0, out->bytes);
    ck_assert(!bench_verify(&problem, reference, 24, how, sizeof how, &error));
    bench_problem_poison(&problem);
    ck_assert(!bench_verify(&problem, reference, 24, how, sizeof how, &error));
    clattn_plan_destroy(plan);
    bench_problem_free(&problem);
    clattn_context_destroy(reference);
    return rows;
}

static long check_verification(bench_shape shape, const char *how_part) {
    return check_verification_in(false, shape, how_part);
}

static bench_shape small(bench_op op, int64_t len) {
    return (bench_shape){.op = op,
                         .batch = 2,
                         .heads_q = 4,
                         .heads_kv = 2,
                         .len_q = len,
                         .len_kv = len,
                         .head_dim = 8,
                         .value_dim = 8,
                         .d_in = 32,
                         .hidden = 32};
}

START_TEST(small_problems_are_verified_whole) {
    for (int op = BENCH_OP_ATTENTION; op <= BENCH_OP_LSTM; op++) check_verification(small(op, 40), "whole");
}
END_TEST

START_TEST(large_problems_are_verified_in_part) {
    bench_shape shape = small(BENCH_OP_ATTENTION, 1200);
    shape.causal = 1;
    check_verification(shape, "of 1200 rows a head");
    shape.align = CLATTN_ALIGN_PAST;
    shape.len_kv = 1300;
    shape.offset = 100;
    check_verification(shape, "of 1200 rows a head");
    /* In a hurry 8 random rows and 6 at edges, some of which may be the same; else 64 and 6 */
    shape = small(BENCH_OP_ATTENTION, 400);
    shape.batch = shape.heads_q = shape.heads_kv = 1;
    shape.len_kv = 32768;
    ck_assert_int_le(check_verification_in(true, shape, " of 400 rows a head"), 14);
    ck_assert_int_gt(check_verification(shape, " of 400 rows a head"), 40);
    shape = small(BENCH_OP_MHA, 1200);
    check_verification(shape, "of 1200 rows a head");
    shape.causal = 1;
    shape.align = CLATTN_ALIGN_BOTTOM_RIGHT;
    check_verification(shape, "of 1200 rows a head");
    shape = small(BENCH_OP_RNN, 20000);
    check_verification(shape, "first ");
}
END_TEST

/* ---- what the machine can do -------------------------------------------------------------------------------------------- */

START_TEST(reading_reads_all) {
    enum { COUNT = 1024 };
    float ones[COUNT], sum;
    for (int i = 0; i < COUNT; i++) ones[i] = 1;
    const bench_isa *isa;
    for (size_t level = 0; (isa = bench_isa_level(level)) != NULL; level++) {
        isa->read(ones, COUNT, 3, &sum);
        ck_assert_msg(sum == 3 * COUNT, "%s: %g", isa->name, sum);
        ck_assert_ptr_eq(bench_isa_named(isa->name), isa);
    }
}
END_TEST

START_TEST(a_device_is_held_against_its_own_level) {
    const bench_isa *isa;
    for (size_t level = 0; (isa = bench_isa_level(level)) != NULL; level++) {
        char name[64];
        bench_device device;
        bench_error error;
        snprintf(name, sizeof name, "native:%s", isa->name);
        ck_assert_msg(bench_device_open(&device, name, 1, &error), "%s", error.text);
        ck_assert_ptr_eq(device.isa, isa);
        bench_device_close(&device);
    }
    ck_assert_ptr_eq(bench_isa_of_device("native"), bench_isa_level(0));
    ck_assert_ptr_eq(bench_isa_of_device("opencl:0:0"), bench_isa_level(0));
    ck_assert_ptr_null(bench_isa_named("avx9"));
}
END_TEST

static void check_read(const bench_shape *shape, double bytes) {
    bench_session session = open_session(4, (char *[]){"bench", "--quick", "--device", "native", NULL});
    bench_problem problem;
    bench_candidate candidate;
    bench_error error;
    bench_time time = {NAN, NAN};
    ck_assert_msg(bench_problem_create(&problem, shape, 3, &error), "%s", error.text);
    ck_assert_msg(bench_candidate_read(&candidate, &session.devices[0], &problem, &error), "%s", error.text);
    ck_assert_double_eq(candidate.bytes, bytes);
    ck_assert(candidate.class->run(&candidate, &time, &error));
    ck_assert(time.wall_ms > 0);
    bench_candidate_release(&candidate);
    bench_problem_free(&problem);
    bench_session_close(&session);
}

START_TEST(keys_and_values_are_read) {
    bench_shape shape = small(BENCH_OP_ATTENTION, 1);
    shape.len_kv = 1000;
    check_read(&shape, 2.0 * 2 * 2 * 1000 * 8 * sizeof(float));
}
END_TEST

START_TEST(w_h_is_read_each_step) {
    const bench_shape shape = small(BENCH_OP_LSTM, 7);
    check_read(&shape, 7.0 * 4 * 32 * 32 * sizeof(float));
}
END_TEST

/* Products of bf16 are measured where the processor has them, and missed in words where not. */
START_TEST(peaks_of_bf16_are_here_or_missed) {
    bench_session session = open_session(4, (char *[]){"bench", "--quick", "--device", "native", NULL});
    bench_device *device = &session.devices[0];
    for (bench_limit_kind kind = BENCH_LIMIT_AVX512_BF16; kind < BENCH_LIMIT_PEAKS; kind++) {
        bench_candidate candidate;
        bench_error error;
        bench_time time = {NAN, NAN};
        const bool made = bench_candidate_limit(&candidate, device, kind, device->isa, &error);
        if (!(device->context->device.features >> bench_limit_feature(kind) & 1)) {
            ck_assert(!made);
            assert_says(error.text, "needs ");
            continue;
        }
        ck_assert_msg(made, "%s", error.text);
        ck_assert(candidate.flops > 0 && candidate.class->run(&candidate, &time, &error) && time.wall_ms > 0);
        bench_candidate_release(&candidate);
    }
    bench_session_close(&session);
}
END_TEST

/* ---- growth ------------------------------------------------------------------------------------------------------- */

START_TEST(powers_are_found) {
    const double n[] = {512, 1024, 2048, 4096},
                 square[] = {3 * 512.0 * 512, 3 * 1024.0 * 1024, 3 * 2048.0 * 2048, 3 * 4096.0 * 4096};
    bench_growth fit = bench_growth_fit(n, square, 4);
    ck_assert_double_eq_tol(fit.exponent, 2, 1e-12);
    ck_assert_double_eq_tol(fit.factor, 3, 1e-9);
    ck_assert_double_lt(fit.error, 1e-6);
    /* ln y = 0, 1, 1 at ln n = 0, 1, 2: p = 1/2, what is left over (1/6, 1/3, 1/6)^2 on one degree of freedom, t = 12.706 */
    const double e[] = {1, exp(1), exp(2)}, step[] = {1, exp(1), exp(1)};
    fit = bench_growth_fit(e, step, 3);
    ck_assert_double_eq_tol(fit.exponent, 0.5, 1e-12);
    ck_assert_double_eq_tol(fit.error, 12.706 * sqrt(1.0 / 6 / 2), 1e-3);
    ck_assert(isnan(bench_growth_fit(n, square, 2).error));
    ck_assert(isnan(bench_growth_fit(n, square, 1).exponent));
}
END_TEST

START_TEST(growth_is_told_and_recorded) {
    bench_session session = open_session(
        8, (char *[]){"bench", "attention", "--growth", "--device", "native", "--len", "64,128,256", "--quick", NULL});
    bench_error error;
    ck_assert_msg(bench_job_attention(&session, &error), "%s", error.text);
    ck_assert_uint_eq(session.records.count, 6);
    assert_says(session.verdict.data, "full: time = c N^p with p = ");
    assert_says(session.verdict.data, "causal: time = c N^p with p = ");
    assert_says(session.verdict.data, "memory with p = 1.000, over 3 lengths N from 64 to 256.");
    for (size_t i = 0; i < session.records.count; i++) {
        const bench_record *record = &session.records.items[i];
        ck_assert_str_eq(bench_text(record, BENCH_CONTRAST), "growth");
        ck_assert(bench_real(record, BENCH_GROWTH_EXPONENT) > 0 && bench_real(record, BENCH_GROWTH_ERROR) >= 0);
        ck_assert_double_eq_tol(bench_real(record, BENCH_GROWTH_MEMORY), 1, 1e-9);
        ck_assert_int_eq(bench_count(record, BENCH_HEADS_Q), 1);
    }
    bench_session_close(&session);
}
END_TEST

START_TEST(a_range_cut_short_is_said) {
    bench_session session = open_session(5, (char *[]){"bench", "attention", "--growth", "--device", "native", NULL});
    bench_error error;
    session.limit_ms = 1; /* which the first length takes */
    ck_assert_msg(bench_job_attention(&session, &error), "%s", error.text);
    assert_says(session.verdict.data, "full: no exponent from 1 length");
    assert_says(session.remarks.data, "left out, length 1024 and longer");
    bench_session_close(&session);
}
END_TEST

START_TEST(a_loop_alone_is_a_recurrence_without_inputs) {
    bench_shape shape = small(BENCH_OP_RNN, 40);
    shape.d_in = 0;
    check_verification(shape, "whole");
}
END_TEST

/* ---- options ------------------------------------------------------------------------------------------------------ */

static int parse(int argc, char **argv) {
    bench_args args;
    int code = 0;
    return bench_args_read(&args, argc, argv, &code) ? -1 : code;
}

START_TEST(contradictions_are_refused) {
    ck_assert_int_eq(parse(3, (char *[]){"bench", "attention", "--quick", NULL}), -1);
    ck_assert_int_eq(parse(2, (char *[]){"bench", "nonsense", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(5, (char *[]){"bench", "--heads", "8", "--kv-heads", "3", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(5, (char *[]){"bench", "--json", "-", "--csv", "-", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(4, (char *[]){"bench", "--json", "-", "--markdown", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(3, (char *[]){"bench", "--len", "0", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(3, (char *[]){"bench", "attention", "--one-type", NULL}), -1);
    ck_assert_int_eq(parse(3, (char *[]){"bench", "project", "--one-type", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(2, (char *[]){"bench", "--torch", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(3, (char *[]){"bench", "--limit", "0", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(3, (char *[]){"bench", "attention", "--growth", NULL}), -1);
    ck_assert_int_eq(parse(2, (char *[]){"bench", "--growth", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(4, (char *[]){"bench", "attention", "--growth", "--peers", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(5, (char *[]){"bench", "attention", "--growth", "--len", "64,128", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(4, (char *[]){"bench", "limits", "--isa", "all", NULL}), -1);
    ck_assert_int_eq(parse(4, (char *[]){"bench", "limits", "--isa", "generic", NULL}), -1);
    ck_assert_int_eq(parse(4, (char *[]){"bench", "limits", "--isa", "avx9", NULL}), CLI_USAGE);
    ck_assert_int_eq(parse(4, (char *[]){"bench", "attention", "--isa", "all", NULL}), CLI_USAGE);
}
END_TEST

static Suite *bench_suite(void) {
    Suite *suite = suite_create("bench");
    TCase *judgement = tcase_create("judgement");
    tcase_add_test(judgement, a_figure_is_held_against_its_own_peak);
    tcase_add_test(judgement, what_would_take_longer_is_left_out);
    tcase_add_test(judgement, quantiles_are_interpolated);
    tcase_add_test(judgement, statistics_of_one_and_of_none);
    tcase_add_test(judgement, medians_within_two_percent_are_warm);
    tcase_add_test(judgement, quiet_candidates_take_ten_samples_in_turns);
    tcase_add_test(judgement, short_runs_go_once_untimed);
    tcase_add_test(judgement, noise_is_sampled_until_the_limit);
    tcase_add_test(judgement, events_are_believed_when_the_wall_clock_agrees);
    tcase_add_test(judgement, a_run_that_fails_ends_the_sampling);
    tcase_add_test(judgement, attention_can_win_everywhere);
    tcase_add_test(judgement, the_recurrence_can_win_everywhere);
    tcase_add_test(judgement, lines_cross_where_the_figures_say);
    tcase_add_test(judgement, noise_makes_it_unclear);
    tcase_add_test(judgement, noise_without_hope_names_no_winner);
    tcase_add_test(judgement, nothing_measured_is_said);
    tcase_add_test(judgement, amdahl);
    tcase_add_test(judgement, more_units_are_foretold_from_what_they_gave);
    tcase_add_test(judgement, changes_are_told_from_noise);
    tcase_add_test(judgement, a_median_that_moved_alone_is_no_change);
    tcase_add_test(judgement, drift_is_that_of_the_limits);
    tcase_add_test(judgement, powers_are_found);
    tcase_add_test(judgement, growth_is_told_and_recorded);
    tcase_add_test(judgement, a_range_cut_short_is_said);
    tcase_add_test(judgement, reading_reads_all);
    tcase_add_test(judgement, a_device_is_held_against_its_own_level);
    tcase_add_test(judgement, keys_and_values_are_read);
    tcase_add_test(judgement, w_h_is_read_each_step);
    tcase_add_test(judgement, peaks_of_bf16_are_here_or_missed);
    suite_add_tcase(suite, judgement);
    TCase *records = tcase_create("records");
    tcase_add_test(records, keys_tell_what_is_measured);
    tcase_add_test(records, csv_quotes);
#if defined(CLATTN_HAVE_CJSON)
    tcase_add_test(records, json_comes_back_as_it_went);
    tcase_add_test(records, other_json_is_refused);
#endif
    tcase_add_test(records, ratios_are_of_one_group);
    tcase_add_test(records, contradictions_are_refused);
    suite_add_tcase(suite, records);
    TCase *verification = tcase_create("verification");
    tcase_add_test(verification, rows_agree_or_not);
    tcase_add_test(verification, small_problems_are_verified_whole);
    tcase_add_test(verification, large_problems_are_verified_in_part);
    tcase_add_test(verification, a_loop_alone_is_a_recurrence_without_inputs);
    suite_add_tcase(suite, verification);
    return suite;
}

int main(void) {
    SRunner *runner = srunner_create(bench_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
