/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <math.h>
#include <stdio.h>

#include "commit.h"

static void set_text_or(bench_record *record, bench_field field, const char *text, const char *reason) {
    if (text[0])
        bench_set_text(record, field, text);
    else
        bench_set_unknown(record, field, reason);
}

static void set_count_or(bench_record *record, bench_field field, int64_t count, const char *reason) {
    if (count >= 0)
        bench_set_count(record, field, count);
    else
        bench_set_unknown(record, field, reason);
}

static void fill_origin(bench_record *record, const bench_session *session, const bench_device *device) {
    bench_set_text(record, BENCH_SCHEMA, BENCH_SCHEMA_NAME);
    bench_set_text(record, BENCH_DEVICE, device->info.id);
    set_text_or(record, BENCH_DEVICE_NAME, device->info.name, "the device does not say");
    set_text_or(record, BENCH_DRIVER, device->info.driver, "no driver: compiled into the program");
    set_text_or(record, BENCH_PLATFORM, device->info.platform, "no platform: compiled into the program");
    bench_set_text(record, BENCH_OS, session->os);
    bench_set_text(record, BENCH_DTYPE, "f32"); /* fill_shape knows better where there is one */
    bench_set_count(record, BENCH_THREADS, device->units);
    bench_set_count(record, BENCH_SEED, (int64_t)session->seed);
    bench_set_text(record, BENCH_VERSION, clattn_version());
    set_text_or(record, BENCH_COMMIT, CLATTN_BENCH_COMMIT, "not built from a git checkout");
    if (CLATTN_BENCH_COMMIT[0])
        bench_set_flag(record, BENCH_DIRTY, CLATTN_BENCH_DIRTY);
    else
        bench_set_unknown(record, BENCH_DIRTY, "not built from a git checkout");
}

static void fill_mask(bench_record *record, const bench_shape *shape) {
    static const char *const names[] = {"top-left", "bottom-right", "past"};
    char text[32];
    if (!shape->causal)
        snprintf(text, sizeof text, "none");
    else if (shape->align == CLATTN_ALIGN_OFFSET)
        snprintf(text, sizeof text, "%lld", (long long)shape->offset);
    else
        snprintf(text, sizeof text, "%s", names[shape->align]);
    bench_set_text(record, BENCH_CAUSAL, text);
    if (shape->has_window)
        snprintf(text, sizeof text, "%lld,%lld", (long long)shape->window_left, (long long)shape->window_right);
    else
        snprintf(text, sizeof text, "none");
    bench_set_text(record, BENCH_WINDOW, text);
}

static void fill_shape(bench_record *record, const bench_shape *shape) {
    bench_set_text(record, BENCH_OP, bench_op_name(shape->op));
    bench_set_text(record, BENCH_DTYPE, clattn_dtype_name(bench_shape_dtype(shape)));
    bench_set_count(record, BENCH_BATCH, shape->batch);
    bench_set_count(record, BENCH_LEN_Q, shape->len_q);
    if (shape->op != BENCH_OP_ATTENTION) bench_set_count(record, BENCH_D_IN, shape->d_in);
    if (bench_op_recurs(shape->op) || shape->op == BENCH_OP_PROJECT) {
        bench_set_count(record, BENCH_HIDDEN, shape->hidden);
        return;
    }
    bench_set_count(record, BENCH_HEADS_Q, shape->heads_q);
    bench_set_count(record, BENCH_HEADS_KV, shape->heads_kv);
    bench_set_count(record, BENCH_LEN_KV, shape->len_kv);
    bench_set_count(record, BENCH_HEAD_DIM, shape->head_dim);
    bench_set_count(record, BENCH_VALUE_DIM, shape->value_dim);
    fill_mask(record, shape);
}

static void fill_times(bench_record *record, const bench_lane *lane, bool cold) {
    const bench_stats *stats = &lane->stats;
    bench_set_text(record, BENCH_CACHE_STATE, cold ? "cold" : "warm");
    bench_set_real(record, BENCH_MS_MEDIAN, stats->median);
    bench_set_real(record, BENCH_MS_MIN, stats->min);
    bench_set_real(record, BENCH_MS_P90, stats->p90);
    bench_set_real(record, BENCH_MS_Q1, stats->first_quartile);
    bench_set_real(record, BENCH_MS_Q3, stats->third_quartile);
    bench_set_real(record, BENCH_IQR, stats->iqr);
    bench_set_count(record, BENCH_SAMPLES, (int64_t)stats->samples);
    bench_set_real(record, BENCH_NOISE, stats->noise);
    bench_set_flag(record, BENCH_NOISY, stats->noise > BENCH_NOISY_ABOVE);
    bench_set_real(record, BENCH_MS_WALL, lane->wall_ms);
    if (isfinite(lane->event_ms))
        bench_set_real(record, BENCH_MS_EVENT, lane->event_ms);
    else
        bench_set_unknown(record, BENCH_MS_EVENT, "no device clock");
    bench_set_text(record, BENCH_CLOCK_SOURCE, lane->source);
}

/* By bench_limit_kind: those that FLOPs are held against. */
static const char *const peak_units[] = {"fp32 multiply-add", "f16 fragment multiply-add"};

static void fill_rates(bench_record *record, const bench_candidate *candidate, double ms, bench_peak peak) {
    if (candidate->flops > 0) {
        double gflops = candidate->flops / ms * 1e-6;
        bench_set_real(record, BENCH_FLOPS, candidate->flops);
        bench_set_real(record, BENCH_GFLOPS, gflops);
        if (isfinite(peak.best)) {
            bench_set_text(record, BENCH_PEAK_UNIT, peak_units[candidate->peak]);
            bench_set_real(record, BENCH_PEAK_GFLOPS, peak.best);
            bench_set_real(record, BENCH_PERCENT_OF_PEAK, 100 * gflops / peak.best);
            bench_set_real(record, BENCH_MEDIAN_PEAK_GFLOPS, peak.median);
            bench_set_real(record, BENCH_PERCENT_OF_MEDIAN_PEAK, 100 * gflops / peak.median);
        }
    }
    if (candidate->bytes > 0) {
        bench_set_real(record, BENCH_BYTES, candidate->bytes);
        bench_set_real(record, BENCH_GBYTES_PER_S, candidate->bytes / ms * 1e-6);
    }
}

static void fill_plan(bench_record *record, const bench_candidate *candidate) {
    set_text_or(record, BENCH_ALGORITHM, candidate->algorithm, "does not apply");
    set_text_or(record, BENCH_ROW, candidate->row, "not a kernel of clattn's table");
    set_count_or(record, BENCH_DEPENDENT_STEPS, candidate->dependent_steps, "not clattn's");
    set_count_or(record, BENCH_LAUNCHES, candidate->launches, "not clattn's");
    set_count_or(record, BENCH_WORKSPACE_BYTES, candidate->workspace_bytes, "not clattn's");
    set_text_or(record, BENCH_VERIFIED, candidate->verified, "nothing is computed");
}

void bench_fill_record(bench_record *record, const bench_session *session, const bench_lane *lane, bench_peak peak, bool cold) {
    const bench_candidate *candidate = lane->candidate;
    char note[512];
    fill_origin(record, session, candidate->device);
    bench_set_text(record, BENCH_CONTRAST, candidate->contrast);
    bench_set_text(record, BENCH_PATH, candidate->path);
    bench_set_text(record, BENCH_OP, candidate->problem ? "" : "limit");
    if (candidate->problem) fill_shape(record, &candidate->problem->shape);
    fill_times(record, lane, cold);
    fill_rates(record, candidate, lane->stats.median, peak);
    if (candidate->problem) fill_plan(record, candidate);
    snprintf(note, sizeof note, "%s%s%s", candidate->note, candidate->note[0] && lane->remark ? "; " : "",
             lane->remark ? lane->remark : "");
    set_text_or(record, BENCH_NOTE, note, "nothing to say");
}
