/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "measure.h"

#include <math.h>
#include <string.h>

#include "bench/candidate.h"
#include "bench/sampler.h"
#include "compute.h"

/* ---- time ---------------------------------------------------------------------------------------------------------- */

/* A class waits: a tenth of what the benchmark takes. */
static const bench_sampling sampling = {.warm_up_s = 0.02, .seconds = 0.1};

enum { SEED = 1, FEW = 3, MANY = 20 };
static const double PROBE_MS = 200; /* for more than FEW runs of one */

bench_shape measure_attention(int64_t heads, int64_t len, int64_t head_dim) {
    return (bench_shape){.op = BENCH_OP_ATTENTION,
                         .batch = 1,
                         .heads_q = heads,
                         .heads_kv = heads,
                         .len_q = len,
                         .len_kv = len,
                         .head_dim = head_dim,
                         .value_dim = head_dim};
}

bench_shape measure_recurrence(int64_t len, int64_t width) {
    return (bench_shape){.op = BENCH_OP_RNN, .batch = 1, .len_q = len, .hidden = width};
}

/* What has to be freed before a lesson may be left. */
typedef struct stand {
    bench_device device;
    bench_problem problems[MEASURE_MAX];
    bench_candidate candidates[MEASURE_MAX];
} stand;

static bool open_stand(stand *stand, lesson *lesson, const bench_shape *shapes, size_t count, bench_error *error) {
    static const bench_variant variant = {.algorithm = CLATTN_ALGORITHM_FUSED};
    *stand = (struct stand){0};
    bool right = bench_device_borrow(&stand->device, lesson->context, error);
    for (size_t i = 0; i < count && right; i++)
        right = bench_problem_create(&stand->problems[i], &shapes[i], SEED, error) &&
                bench_candidate_plan(&stand->candidates[i], &stand->device, &stand->problems[i], variant, error);
    return right;
}

static void close_stand(stand *stand) {
    for (size_t i = 0; i < MEASURE_MAX; i++) {
        bench_candidate_release(&stand->candidates[i]);
        bench_problem_free(&stand->problems[i]);
    }
    bench_device_close(&stand->device);
}

static bool sample(stand *stand, size_t count, bench_point *points, measure_spread *spreads, bench_error *error) {
    bench_lane lanes[MEASURE_MAX];
    for (size_t i = 0; i < count; i++) lanes[i] = (bench_lane){.candidate = &stand->candidates[i]};
    if (!bench_sample(lanes, count, &sampling, error)) return false;
    for (size_t i = 0; i < count; i++)
        points[i] = (bench_point){.ms = lanes[i].stats.median,
                                  .noise = lanes[i].stats.noise,
                                  .flops = lanes[i].candidate->flops,
                                  .chain = lanes[i].candidate->dependent_steps};
    for (size_t i = 0; i < count && spreads != NULL; i++)
        spreads[i] = (measure_spread){lanes[i].stats.first_quartile, lanes[i].stats.third_quartile, lanes[i].stats.min};
    return true;
}

void measure_in_turns(lesson *lesson, const bench_shape *shapes, size_t count, bench_point *points, measure_spread *spreads) {
    stand stand;
    bench_error error;
    const bool right = open_stand(&stand, lesson, shapes, count, &error) && sample(&stand, count, points, spreads, &error);
    close_stand(&stand);
    if (!right) lesson_fail(lesson, CLI_FAILURE, "%s", error.text);
}

/* The fastest of some runs of each: the first has more to do, and others may have had to wait for other programs. */
static bool run_some(stand *stand, size_t count, double *milliseconds, bench_error *error) {
    *milliseconds = 0;
    for (size_t i = 0; i < count; i++) {
        bench_candidate *candidate = &stand->candidates[i];
        double fastest = INFINITY, spent = 0;
        for (int n = 0; n < FEW || (n < MANY && spent < PROBE_MS); n++) {
            bench_time time;
            if (!candidate->class->run(candidate, &time, error)) return false;
            fastest = fmin(fastest, time.wall_ms);
            spent += time.wall_ms;
        }
        *milliseconds += fastest;
    }
    return true;
}

double measure_probe(lesson *lesson, const bench_shape *shapes, size_t count) {
    stand stand;
    bench_error error;
    double milliseconds = 0;
    const bool right = open_stand(&stand, lesson, shapes, count, &error) && run_some(&stand, count, &milliseconds, &error);
    close_stand(&stand);
    if (!right) lesson_fail(lesson, CLI_FAILURE, "%s", error.text);
    return milliseconds;
}

bool measure_is_worth(double milliseconds) {
    return milliseconds <= MEASURE_WORTH_MS;
}

bool measure_too_noisy(double noise) {
    return !(noise <= BENCH_TOO_NOISY);
}

const char *measure_percent(const doc *doc, double noise) {
    if (noise > 1) return doc_text(doc, "超过 100 %%", "over 100 %%");
    return doc_text(doc, "%.0f %%", "%.0f %%", 100 * noise);
}

const char *measure_noise(const doc *doc, double noise) {
    const char *percent = measure_percent(doc, noise);
    return noise > BENCH_NOISY_ABOVE ? doc_text(doc, "%s，有噪声", "%s, noisy", percent) : percent;
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static clattn_attention_desc describe(attention_size size) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, size.heads, size.len, size.head_dim);
    return desc;
}

static clattn_plan *make_plan(lesson *lesson, attention_size size) {
    const clattn_attention_desc desc = describe(size);
    clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;
    clattn_plan *plan = NULL;
    options.algorithm = size.algorithm;
    lesson_require(lesson, clattn_plan_create_attention(lesson->context, &desc, &options, &plan));
    return plan;
}

void measure_require(lesson *lesson, int64_t head_dim) {
    const clattn_attention_desc desc = describe((attention_size){1, 1, head_dim, CLATTN_ALGORITHM_FUSED});
    clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;
    options.algorithm = CLATTN_ALGORITHM_FUSED;
    if (clattn_supports_attention(lesson->context, &desc, &options) != CLATTN_OK)
        lesson_fail(lesson, CLI_USAGE, "--dim: no fused kernel of this device takes heads as wide as %lld",
                    (long long)head_dim);
}

static clattn_plan_info plan_info(lesson *lesson, attention_size size) {
    clattn_plan *plan = make_plan(lesson, size);
    clattn_plan_info info = CLATTN_PLAN_INFO_INIT;
    const clattn_status status = clattn_plan_get_info(plan, &info);
    clattn_plan_destroy(plan);
    lesson_require(lesson, status);
    return info;
}

size_t measure_workspace(lesson *lesson, attention_size size) {
    return plan_info(lesson, size).workspace_bytes;
}

int64_t measure_stages(lesson *lesson, attention_size size) {
    return plan_info(lesson, size).dependent_steps;
}

enum { LINE = 64, PATTERN = 0xa5 };

static int64_t count_written(const unsigned char *memory, size_t bytes) {
    unsigned char untouched[LINE];
    int64_t written = 0;
    memset(untouched, PATTERN, LINE);
    for (size_t at = 0; at < bytes; at += LINE) {
        const size_t size = bytes - at < LINE ? bytes - at : LINE;
        if (memcmp(memory + at, untouched, size) != 0) written += (int64_t)size;
    }
    return written;
}

int64_t measure_written(lesson *lesson, attention_size size) {
    clattn_device_info info = CLATTN_DEVICE_INFO_INIT;
    lesson_require(lesson, clattn_context_device(lesson->context, &info));
    if (info.kind != CLATTN_DEVICE_NATIVE) return -1;
    const size_t bytes = measure_workspace(lesson, size);
    const int64_t rows = size.heads * size.len;
    const mat x = mat_new(&lesson->arena, rows, size.head_dim), out = mat_new(&lesson->arena, rows, size.head_dim);
    unsigned char *memory = arena_alloc(&lesson->arena, bytes + LINE);
    memory += LINE - (uintptr_t)memory % LINE;
    memset(memory, PATTERN, bytes);
    const clattn_arg args[] = {{CLATTN_TENSOR_Q, x.at, 0},
                               {CLATTN_TENSOR_K, x.at, 0},
                               {CLATTN_TENSOR_V, x.at, 0},
                               {CLATTN_TENSOR_OUT, out.at, 0},
                               {CLATTN_TENSOR_WORKSPACE, memory, bytes}};
    clattn_plan *plan = make_plan(lesson, size); /* last: what allocates may leave the lesson */
    const clattn_status status = clattn_plan_run(plan, args, sizeof args / sizeof *args - (bytes == 0));
    clattn_plan_destroy(plan);
    lesson_require(lesson, status);
    return count_written(memory, bytes);
}
