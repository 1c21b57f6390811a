/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "measure.h"

#include <math.h>
#include <string.h>

#include "bench/clock.h"
#include "compute.h"

enum { BUDGET_MS = 60, LEAST_RUNS = 15, PATIENCE_MS = 500 /* for so many runs */, WORTH_MS = 300 };
static const double TELLING_MS = 0.5; /* below, a run says more of its overhead than of its work */

/* Leave no plan behind when the lesson ends. */
static void require(lesson *lesson, clattn_plan *plan, clattn_status status) {
    if (status != CLATTN_OK) clattn_plan_destroy(plan);
    lesson_require(lesson, status);
}

static measured describe(const clattn_plan *plan) {
    clattn_plan_info info = CLATTN_PLAN_INFO_INIT;
    clattn_plan_get_info(plan, &info);
    return (measured){
        .dependent_steps = info.dependent_steps,
        .launches = info.launches,
        .flops = info.flops,
        .workspace_bytes = info.workspace_bytes,
    };
}

/* Run once to warm up, then as often as the budget allows; the plan is destroyed. */
static measured run_plan(lesson *lesson, clattn_plan *plan, const clattn_arg *args, size_t count) {
    measured result = describe(plan);
    require(lesson, plan, clattn_plan_run(plan, args, count));
    const double start = bench_now_ms();
    result.milliseconds = INFINITY;
    for (double spent = 0; spent < BUDGET_MS || (result.runs < LEAST_RUNS && spent < PATIENCE_MS);
         spent = bench_now_ms() - start) {
        const double before = bench_now_ms();
        require(lesson, plan, clattn_plan_run(plan, args, count));
        result.milliseconds = fmin(result.milliseconds, bench_now_ms() - before);
        result.runs++;
    }
    clattn_plan_destroy(plan);
    return result;
}

/* ---- attention ----------------------------------------------------------------------------------------------------- */

static clattn_attention_desc describe_attention(attention_size size) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, size.heads, size.len, size.head_dim);
    return desc;
}

static clattn_plan *plan_attention(lesson *lesson, attention_size size) {
    const clattn_attention_desc desc = describe_attention(size);
    clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;
    clattn_plan *plan = NULL;
    options.algorithm = size.algorithm;
    lesson_require(lesson, clattn_plan_create_attention(lesson->context, &desc, &options, &plan));
    return plan;
}

bool measure_supports(lesson *lesson, attention_size size) {
    const clattn_attention_desc desc = describe_attention(size);
    clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;
    options.algorithm = size.algorithm;
    return clattn_supports_attention(lesson->context, &desc, &options) == CLATTN_OK;
}

measured measure_attention_plan(lesson *lesson, attention_size size) {
    clattn_plan *plan = plan_attention(lesson, size);
    measured result = describe(plan);
    clattn_plan_destroy(plan);
    return result;
}

measured measure_attention(lesson *lesson, attention_size size) {
    const int64_t rows = size.heads * size.len;
    numpy_random random;
    numpy_seed(&random, 1);
    const mat q = mat_randn(&lesson->arena, &random, rows, size.head_dim, 1),
              k = mat_randn(&lesson->arena, &random, rows, size.head_dim, 1);
    const mat v = mat_randn(&lesson->arena, &random, rows, size.head_dim, 1),
              out = mat_new(&lesson->arena, rows, size.head_dim);
    const clattn_arg args[] = {
        {CLATTN_TENSOR_Q, q.at, 0}, {CLATTN_TENSOR_K, k.at, 0}, {CLATTN_TENSOR_V, v.at, 0}, {CLATTN_TENSOR_OUT, out.at, 0}};
    return run_plan(lesson, plan_attention(lesson, size), args, sizeof args / sizeof *args);
}

/* ---- workspace ----------------------------------------------------------------------------------------------------- */

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
    clattn_plan *plan = plan_attention(lesson, size);
    const size_t bytes = describe(plan).workspace_bytes;
    clattn_plan_destroy(plan); /* what follows allocates, and may leave the lesson */
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
    plan = plan_attention(lesson, size);
    require(lesson, plan, clattn_plan_run(plan, args, sizeof args / sizeof *args - (bytes == 0)));
    clattn_plan_destroy(plan);
    return count_written(memory, bytes);
}

/* ---- recurrence ---------------------------------------------------------------------------------------------------- */

measured measure_recurrence(lesson *lesson, clattn_cell cell, int64_t len, int64_t width) {
    const int64_t gates = cell == CLATTN_CELL_LSTM ? 4 : 1;
    numpy_random random;
    numpy_seed(&random, 1);
    const mat w_h = mat_randn(&lesson->arena, &random, gates * width, width, 1.0 / (double)width),
              bias = mat_randn(&lesson->arena, &random, 1, gates * width, 1);
    const mat out = mat_new(&lesson->arena, len, width);
    clattn_recurrence_desc desc = CLATTN_RECURRENCE_DESC_INIT;
    clattn_plan *plan = NULL;
    desc.cell = cell;
    desc.x = clattn_tensor_bhld(CLATTN_F32, 1, 1, len, 0);
    desc.w_in = clattn_tensor_matrix(CLATTN_F32, gates * width, 0);
    desc.w_h = clattn_tensor_matrix(CLATTN_F32, gates * width, width);
    desc.bias = clattn_tensor_matrix(CLATTN_F32, 1, gates * width);
    desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 1, len, width);
    lesson_require(lesson, clattn_plan_create_recurrence(lesson->context, &desc, NULL, &plan));
    const clattn_arg args[] = {{CLATTN_TENSOR_X, NULL, 0},
                               {CLATTN_TENSOR_W_IN, NULL, 0},
                               {CLATTN_TENSOR_W_H, w_h.at, 0},
                               {CLATTN_TENSOR_BIAS, bias.at, 0},
                               {CLATTN_TENSOR_OUT, out.at, 0}};
    return run_plan(lesson, plan, args, sizeof args / sizeof *args);
}

bool measure_worth(double milliseconds, double growth) {
    return milliseconds < TELLING_MS || milliseconds * growth < WORTH_MS;
}
