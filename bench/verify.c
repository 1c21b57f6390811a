/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../host/internal.h"
#include "random.h"
#include "threads.h"

enum { RANDOM_ROWS = 64, EDGE_ROWS = 8, MAX_BLOCKS = RANDOM_ROWS + EDGE_ROWS };
/* In a hurry, with more keys than this fewer random rows are drawn, so that the reference does no more work, but never fewer than
 * those. */
enum { KEYS_OF_ALL_ROWS = 4096, LEAST_RANDOM_ROWS = 8 };

/* Below so many FLOPs the reference computes the whole output. */
static const double WHOLE_FLOPS = 1.5e8;

typedef struct row_block {
    i64 start, count;
} row_block;

/* The rows to compare, rising and disjoint, and what the reference makes of them: (batch, heads, rows, dim), packed. */
typedef struct bench_oracle {
    row_block blocks[MAX_BLOCKS];
    size_t count;
    i64 rows;
    void *expected; /* of the output's type */
    double tolerance;
    char how[96];
} bench_oracle;

void bench_oracle_free(bench_oracle *oracle) {
    if (!oracle) return;
    free(oracle->expected);
    free(oracle);
}

/* ---- which rows ---------------------------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b) {
    i64 x = *(const i64 *)a, y = *(const i64 *)b;
    return (x > y) - (x < y);
}

/* First, last, tile edges and random rows as blocks of neighbours. */
static void choose_rows(bench_oracle *oracle, i64 len, i64 tile, i64 random_rows, uint64_t seed) {
    if (tile <= 0 || tile >= len) tile = len / 2;
    i64 last_edge = (len - 1) / tile * tile;
    i64 rows[MAX_BLOCKS] = {0, len - 1, tile - 1, tile, last_edge - 1, last_edge};
    size_t count = 6;
    bench_random random = {seed ^ UINT64_C(0x5eed)};
    for (i64 i = 0; i < random_rows; i++) rows[count++] = (i64)bench_random_below(&random, (uint64_t)len);
    qsort(rows, count, sizeof *rows, compare_rows);
    for (size_t i = 0; i < count; i++) {
        row_block *last = oracle->count ? &oracle->blocks[oracle->count - 1] : NULL;
        if (last && rows[i] < last->start + last->count) continue;
        if (last && rows[i] == last->start + last->count)
            last->count++;
        else
            oracle->blocks[oracle->count++] = (row_block){rows[i], 1};
    }
}

/* A causal layer projects all keys again for every block: few blocks, the random ones as one. */
static void choose_three_blocks(bench_oracle *oracle, i64 len, uint64_t seed) {
    bench_random random = {seed ^ UINT64_C(0x5eed)};
    i64 middle = EDGE_ROWS + (i64)bench_random_below(&random, (uint64_t)(len - 2 * EDGE_ROWS - RANDOM_ROWS));
    oracle->blocks[0] = (row_block){0, EDGE_ROWS};
    oracle->blocks[1] = (row_block){middle, RANDOM_ROWS};
    oracle->blocks[2] = (row_block){len - EDGE_ROWS, EDGE_ROWS};
    oracle->count = 3;
}

static double whole_flops(const bench_shape *s) {
    double rows = (double)s->batch * (double)s->len_q;
    switch (s->op) {
    case BENCH_OP_ATTENTION:
        return rows * 2.0 * (double)(s->heads_q * s->len_kv * (s->head_dim + s->value_dim));
    case BENCH_OP_MHA:
        return rows * 2.0 * (double)(s->heads_q * (s->head_dim + s->value_dim)) * (double)(s->len_kv + 2 * s->d_in);
    case BENCH_OP_PROJECT:
        return rows * 2.0 * (double)(s->d_in * s->hidden);
    case BENCH_OP_RNN:
        return rows * 2.0 * (double)(s->hidden * (s->hidden + s->d_in));
    case BENCH_OP_LSTM:
        return rows * 8.0 * (double)(s->hidden * (s->hidden + s->d_in));
    }
    return 0;
}

static i64 random_rows(const bench_problem *problem) {
    const bench_shape *s = &problem->shape;
    if (!problem->hurried || s->op != BENCH_OP_ATTENTION || s->len_kv <= KEYS_OF_ALL_ROWS) return RANDOM_ROWS;
    const i64 rows = RANDOM_ROWS * (i64)KEYS_OF_ALL_ROWS / s->len_kv;
    return rows > LEAST_RANDOM_ROWS ? rows : LEAST_RANDOM_ROWS;
}

static void choose_blocks(bench_oracle *oracle, const bench_problem *problem, i64 tile) {
    const bench_shape *s = &problem->shape;
    const uint64_t seed = problem->seed;
    double flops = whole_flops(s);
    if (flops <= WHOLE_FLOPS || s->len_q <= RANDOM_ROWS + 3 * EDGE_ROWS) {
        oracle->blocks[oracle->count++] = (row_block){0, s->len_q};
    } else if (bench_op_recurs(s->op)) {
        i64 steps = (i64)(WHOLE_FLOPS / flops * (double)s->len_q);
        oracle->blocks[oracle->count++] = (row_block){0, steps > 16 ? steps : 16};
    } else if (s->op == BENCH_OP_MHA && s->causal) {
        choose_three_blocks(oracle, s->len_q, seed);
    } else {
        choose_rows(oracle, s->len_q, tile, random_rows(problem), seed);
    }
    for (size_t i = 0; i < oracle->count; i++) oracle->rows += oracle->blocks[i].count;
    const char *unit =
        bench_op_recurs(s->op) ? "first %" PRId64 " of %" PRId64 " steps" : "%" PRId64 " of %" PRId64 " rows a head";
    if (oracle->rows == s->len_q)
        snprintf(oracle->how, sizeof oracle->how, "whole, against reference");
    else {
        int length = snprintf(oracle->how, sizeof oracle->how, unit, oracle->rows, s->len_q);
        snprintf(oracle->how + length, sizeof oracle->how - (size_t)length, ", against reference");
    }
}

/* ---- the reference on a block of rows ------------------------------------------------------------------------------ */

/* Rows [start, start + count) of a view whose rows are `len`. */
static clattn_tensor row_view(clattn_tensor tensor, i64 count) {
    tensor.size[2] = count;
    return tensor;
}

static void *row_pointer(const clattn_arg *arg, const clattn_tensor *tensor, i64 start) {
    return (char *)arg->data + (size_t)(start * tensor->stride[2]) * clattn__dtype_size(tensor->dtype);
}

static i64 position_of_first(const bench_shape *s) {
    switch (s->align) {
    case CLATTN_ALIGN_TOP_LEFT:
        return 0;
    case CLATTN_ALIGN_BOTTOM_RIGHT:
        return s->len_kv - s->len_q;
    case CLATTN_ALIGN_PAST:
    case CLATTN_ALIGN_OFFSET:
        return s->offset;
    }
    return 0;
}

/* The descriptor and arguments of the problem cut down to a block: inputs are views of the problem's, `out` is packed. */
static void cut(const bench_problem *problem, row_block block, bench_desc *desc, clattn_arg *args, size_t *arg_count,
                void *out) {
    const bench_shape *s = &problem->shape;
    *desc = problem->desc;
    *arg_count = problem->arg_count;
    memcpy(args, problem->args, problem->arg_count * sizeof *args);
    for (size_t i = 0; i < *arg_count; i++) args[i].bytes = 0;
    clattn_tensor *sliced, *output;
    switch (s->op) {
    case BENCH_OP_ATTENTION:
        sliced = &desc->attention.q, output = &desc->attention.out;
        break;
    case BENCH_OP_MHA:
        sliced = &desc->mha.x, output = &desc->mha.out;
        break;
    case BENCH_OP_PROJECT:
        sliced = &desc->project_qkv.x, output = &desc->project_qkv.q;
        break;
    default:
        sliced = &desc->recurrence.x, output = &desc->recurrence.out;
        break;
    }
    if (s->op == BENCH_OP_MHA && desc->mha.x_kv.dtype == CLATTN_ABSENT && block.count < s->len_q) {
        desc->mha.x_kv = desc->mha.x;
        args[(*arg_count)++] = (clattn_arg){.id = CLATTN_TENSOR_X_KV, .data = args[0].data};
    }
    args[0].data = row_pointer(&problem->args[0], sliced, block.start);
    *sliced = row_view(*sliced, block.count);
    *output = clattn_tensor_bhld(output->dtype, output->size[0], output->size[1], block.count, output->size[3]);
    args[problem->arg_count - 1].data = out;
    if (!s->causal && !s->has_window) return;
    clattn_attention_options options = bench_shape_options(s);
    options.align = CLATTN_ALIGN_OFFSET;
    options.past_len = 0;
    options.offset = position_of_first(s) + block.start;
    if (s->op == BENCH_OP_ATTENTION) desc->attention.options = options;
    if (s->op == BENCH_OP_MHA) desc->mha.options = options;
}

static bool run_reference(clattn_context *reference, bench_op op, const bench_desc *desc, const clattn_arg *args, size_t count,
                          bench_error *error) {
    clattn_plan *plan = NULL;
    clattn_status status = bench_plan_create(reference, op, desc, (bench_variant){0}, &plan);
    if (status == CLATTN_OK) status = clattn_plan_run(plan, args, count);
    clattn_plan_destroy(plan);
    if (status == CLATTN_OK) return true;
    char text[512];
    clattn_context_error(reference, text, sizeof text);
    return bench_fail(error, "the reference failed: %s", text);
}

static bool compute_block(bench_oracle *oracle, const bench_problem *problem, clattn_context *reference, row_block block,
                          i64 first, bench_error *error) {
    clattn_tensor output = bench_problem_output(problem);
    const size_t row = (size_t)output.size[3] * clattn__dtype_size(output.dtype);
    const size_t outer = (size_t)(output.size[0] * output.size[1]), rows = (size_t)block.count;
    char *part = malloc(outer * rows * row + 1);
    if (!part) return bench_fail(error, "out of memory");
    bench_desc desc;
    clattn_arg args[BENCH_MAX_ARGS + 1];
    size_t count;
    cut(problem, block, &desc, args, &count, part);
    bool right = run_reference(reference, problem->shape.op, &desc, args, count, error);
    for (size_t o = 0; right && o < outer; o++)
        memcpy((char *)oracle->expected + (o * (size_t)oracle->rows + (size_t)first) * row, part + o * rows * row, rows * row);
    free(part);
    return right;
}

/* A layer without a mask treats every query alike: one gathered descriptor projects the keys only once. */
static bool compute_gathered(bench_oracle *oracle, const bench_problem *problem, clattn_context *reference,
                             bench_error *error) {
    const bench_shape *s = &problem->shape;
    float *x = malloc((size_t)(s->batch * oracle->rows * s->d_in) * sizeof *x + 1);
    if (!x) return bench_fail(error, "out of memory");
    float *to = x;
    for (i64 b = 0; b < s->batch; b++)
        for (size_t i = 0; i < oracle->count; i++) {
            row_block block = oracle->blocks[i];
            size_t floats = (size_t)(block.count * s->d_in);
            memcpy(to, (const float *)problem->args[0].data + (b * s->len_q + block.start) * s->d_in, floats * sizeof *x);
            to += floats;
        }
    bench_desc desc;
    clattn_arg args[BENCH_MAX_ARGS + 1];
    size_t count;
    cut(problem, (row_block){0, oracle->rows}, &desc, args, &count, oracle->expected);
    desc.mha.x = clattn_tensor_bhld(CLATTN_F32, s->batch, 1, oracle->rows, s->d_in);
    args[0].data = x;
    bool right = run_reference(reference, s->op, &desc, args, count, error);
    free(x);
    return right;
}

/* The blocks one by one, each by the thread whose turn it is: the reference is plain loops on one thread. */
typedef struct shared_blocks {
    bench_oracle *oracle;
    const bench_problem *problem;
    clattn_context *reference;
    i64 first[MAX_BLOCKS]; /* where each begins in `expected` */
    bool right[MAX_BLOCKS];
    bench_error errors[MAX_BLOCKS];
} shared_blocks;

static void compute_share(void *arg, int thread, int threads) {
    shared_blocks *shared = arg;
    for (size_t i = (size_t)thread; i < shared->oracle->count; i += (size_t)threads)
        shared->right[i] = compute_block(shared->oracle, shared->problem, shared->reference, shared->oracle->blocks[i],
                                         shared->first[i], &shared->errors[i]);
}

static bool compute_blocks(bench_oracle *oracle, const bench_problem *problem, clattn_context *reference, bench_error *error) {
    shared_blocks *shared = calloc(1, sizeof *shared);
    if (!shared) return bench_fail(error, "out of memory");
    shared->oracle = oracle, shared->problem = problem, shared->reference = reference;
    for (size_t i = 1; i < oracle->count; i++) shared->first[i] = shared->first[i - 1] + oracle->blocks[i - 1].count;
    bench_on_threads(bench_all_threads(), compute_share, shared);
    size_t wrong = 0;
    while (wrong < oracle->count && shared->right[wrong]) wrong++;
    const bool right = wrong == oracle->count;
    if (!right) *error = shared->errors[wrong];
    free(shared);
    return right;
}

static bool compute(bench_oracle *oracle, const bench_problem *problem, clattn_context *reference, bench_error *error) {
    clattn_tensor output = bench_problem_output(problem);
    const i64 elements = output.size[0] * output.size[1] * oracle->rows * output.size[3];
    oracle->expected = malloc((size_t)elements * clattn__dtype_size(output.dtype) + 1);
    if (!oracle->expected) return bench_fail(error, "out of memory");
    if (problem->shape.op == BENCH_OP_MHA && !problem->shape.causal && oracle->count > 1)
        return compute_gathered(oracle, problem, reference, error);
    return compute_blocks(oracle, problem, reference, error);
}

/* ---- comparing ----------------------------------------------------------------------------------------------------- */

bool bench_row_agrees(clattn_dtype dtype, const void *found, const void *expected, int64_t count, double tolerance) {
    double largest = 0;
    for (int64_t d = 0; d < count; d++) largest = fmax(largest, fabs(clattn__load(dtype, expected, d)));
    for (int64_t d = 0; d < count; d++)
        if (!(fabs(clattn__load(dtype, found, d) - clattn__load(dtype, expected, d)) <= tolerance * largest)) return false;
    return true;
}

static bool compare(const bench_oracle *oracle, const bench_problem *problem, bench_error *error) {
    const clattn_tensor output = bench_problem_output(problem);
    const i64 outer = output.size[0] * output.size[1], len = output.size[2], dim = output.size[3];
    const size_t bytes = (size_t)dim * clattn__dtype_size(output.dtype);
    const char *found = problem->args[problem->arg_count - 1].data, *expected = oracle->expected;
    for (i64 o = 0; o < outer; o++) {
        for (size_t i = 0; i < oracle->count; i++)
            for (i64 row = oracle->blocks[i].start; row < oracle->blocks[i].start + oracle->blocks[i].count; row++) {
                if (!bench_row_agrees(output.dtype, found + (size_t)(o * len + row) * bytes, expected, dim, oracle->tolerance))
                    return bench_fail(error, "wrong: row %" PRId64 " of head %" PRId64 " differs from the reference", row,
                                      o % output.size[1]);
                expected += bytes;
            }
    }
    return true;
}

/* fp32 sums of thousands of terms are good to 1e-5 of the row, a recurrence carries its errors along, and what is stored in 16 bits is
 * good to its last bit. */
static double tolerance_of(const bench_shape *s) {
    if (bench_op_recurs(s->op)) return 2e-4;
    switch (bench_shape_dtype(s)) {
    case CLATTN_F16: return 1e-3;
    case CLATTN_BF16: return 8e-3;
    case CLATTN_F64: return 1e-12;
    default: return 5e-5;
    }
}

bool bench_verify(bench_problem *problem, clattn_context *reference, int64_t tile, char *how, size_t how_size,
                  bench_error *error) {
    if (!problem->oracle) {
        bench_oracle *oracle = calloc(1, sizeof *oracle);
        if (!oracle) return bench_fail(error, "out of memory");
        oracle->tolerance = tolerance_of(&problem->shape);
        choose_blocks(oracle, problem, tile);
        if (!compute(oracle, problem, reference, error)) {
            bench_oracle_free(oracle);
            return false;
        }
        problem->oracle = oracle;
    }
    snprintf(how, how_size, "%s", problem->oracle->how);
    return compare(problem->oracle, problem, error);
}
