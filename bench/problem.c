/* SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../host/internal.h"
#include "random.h"
#include "threads.h"
#include "verify.h"

const char *bench_op_name(bench_op op) {
    static const char *const names[] = {"attention", "mha", "project_qkv", "rnn", "lstm"};
    return names[op];
}

bool bench_op_recurs(bench_op op) {
    return op == BENCH_OP_RNN || op == BENCH_OP_LSTM;
}

/* ---- descriptors --------------------------------------------------------------------------------------------------- */

clattn_dtype bench_shape_dtype(const bench_shape *s) { return s->dtype == CLATTN_ABSENT ? CLATTN_F32 : s->dtype; }

clattn_attention_options bench_shape_options(const bench_shape *s) {
    return (clattn_attention_options){
        .causal = s->causal,
        .align = s->align,
        .past_len = s->align == CLATTN_ALIGN_PAST ? s->offset : 0,
        .offset = s->align == CLATTN_ALIGN_OFFSET ? s->offset : 0,
        .has_window = s->has_window,
        .window_left = s->window_left,
        .window_right = s->window_right,
        .softcap = s->softcap,
    };
}

static clattn_attention_desc attention_desc(const bench_shape *s) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    const clattn_dtype dtype = bench_shape_dtype(s);
    desc.q = clattn_tensor_bhld(dtype, s->batch, s->heads_q, s->len_q, s->head_dim);
    desc.k = clattn_tensor_bhld(dtype, s->batch, s->heads_kv, s->len_kv, s->head_dim);
    desc.v = clattn_tensor_bhld(dtype, s->batch, s->heads_kv, s->len_kv, s->value_dim);
    desc.out = clattn_tensor_bhld(dtype, s->batch, s->heads_q, s->len_q, s->value_dim);
    desc.options = bench_shape_options(s);
    return desc;
}

static clattn_mha_desc mha_desc(const bench_shape *s) {
    clattn_mha_desc desc = CLATTN_MHA_DESC_INIT;
    desc.x = clattn_tensor_bhld(CLATTN_F32, s->batch, 1, s->len_q, s->d_in);
    if (s->len_kv != s->len_q) desc.x_kv = clattn_tensor_bhld(CLATTN_F32, s->batch, 1, s->len_kv, s->d_in);
    desc.w_q = clattn_tensor_matrix(CLATTN_F32, s->d_in, s->heads_q * s->head_dim);
    desc.w_k = clattn_tensor_matrix(CLATTN_F32, s->d_in, s->heads_kv * s->head_dim);
    desc.w_v = clattn_tensor_matrix(CLATTN_F32, s->d_in, s->heads_kv * s->value_dim);
    desc.w_o = clattn_tensor_matrix(CLATTN_F32, s->heads_q * s->value_dim, s->d_in);
    desc.out = clattn_tensor_bhld(CLATTN_F32, s->batch, 1, s->len_q, s->d_in);
    desc.heads_q = s->heads_q;
    desc.heads_kv = s->heads_kv;
    desc.options = bench_shape_options(s);
    return desc;
}

static clattn_project_qkv_desc project_desc(const bench_shape *s) {
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    desc.x = clattn_tensor_bhld(CLATTN_F32, s->batch, 1, s->len_q, s->d_in);
    desc.w_q = clattn_tensor_matrix(CLATTN_F32, s->d_in, s->hidden);
    desc.q = clattn_tensor_bhld(CLATTN_F32, s->batch, 1, s->len_q, s->hidden);
    return desc;
}

static clattn_recurrence_desc recurrence_desc(const bench_shape *s) {
    clattn_recurrence_desc desc = CLATTN_RECURRENCE_DESC_INIT;
    int64_t gates = s->op == BENCH_OP_LSTM ? 4 : 1;
    desc.cell = s->op == BENCH_OP_LSTM ? CLATTN_CELL_LSTM : CLATTN_CELL_RNN;
    desc.x = clattn_tensor_bhld(CLATTN_F32, s->batch, 1, s->len_q, s->d_in);
    desc.w_in = clattn_tensor_matrix(CLATTN_F32, gates * s->hidden, s->d_in);
    desc.w_h = clattn_tensor_matrix(CLATTN_F32, gates * s->hidden, s->hidden);
    desc.bias = clattn_tensor_matrix(CLATTN_F32, 1, gates * s->hidden);
    desc.out = clattn_tensor_bhld(CLATTN_F32, s->batch, 1, s->len_q, s->hidden);
    return desc;
}

static bench_desc desc_of(const bench_shape *shape) {
    switch (shape->op) {
    case BENCH_OP_ATTENTION:
        return (bench_desc){.attention = attention_desc(shape)};
    case BENCH_OP_MHA:
        return (bench_desc){.mha = mha_desc(shape)};
    case BENCH_OP_PROJECT:
        return (bench_desc){.project_qkv = project_desc(shape)};
    case BENCH_OP_RNN:
    case BENCH_OP_LSTM:
        return (bench_desc){.recurrence = recurrence_desc(shape)};
    }
    return (bench_desc){0};
}

static clattn_plan_options options_of(bench_op op, bench_variant variant) {
    clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;
    if (op == BENCH_OP_ATTENTION || op == BENCH_OP_MHA) options.algorithm = variant.algorithm;
    if (bench_op_recurs(op)) options.recurrence = variant.recurrence;
    options.split_devices = variant.split_devices;
    return options;
}

clattn_status bench_plan_create(clattn_context *context, bench_op op, const bench_desc *desc, bench_variant variant,
                                clattn_plan **plan) {
    const clattn_plan_options options = options_of(op, variant);
    switch (op) {
    case BENCH_OP_ATTENTION:
        return clattn_plan_create_attention(context, &desc->attention, &options, plan);
    case BENCH_OP_MHA:
        return clattn_plan_create_mha(context, &desc->mha, &options, plan);
    case BENCH_OP_PROJECT:
        return clattn_plan_create_project_qkv(context, &desc->project_qkv, &options, plan);
    case BENCH_OP_RNN:
    case BENCH_OP_LSTM:
        return clattn_plan_create_recurrence(context, &desc->recurrence, &options, plan);
    }
    return CLATTN_ERROR_INTERNAL;
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

typedef struct tensor_entry {
    clattn_tensor_id id;
    const clattn_tensor *tensor;
    double sigma; /* 0: the output */
} tensor_entry;

static double fan_in(int64_t inputs) {
    return 1 / sqrt((double)(inputs > 0 ? inputs : 1));
}

/* The tensors of a problem, the output last; returns how many. */
static size_t list_tensors(const bench_problem *problem, tensor_entry list[BENCH_MAX_ARGS]) {
    const bench_shape *s = &problem->shape;
    const bench_desc *d = &problem->desc;
    size_t count = 0;
#define ADD(id, field, sigma)                                                                                                  \
    list[count++] = (tensor_entry) {                                                                                           \
        CLATTN_TENSOR_##id, &d->field, sigma                                                                                   \
    }
    switch (s->op) {
    case BENCH_OP_ATTENTION:
        ADD(Q, attention.q, 1);
        ADD(K, attention.k, 1);
        ADD(V, attention.v, 1);
        ADD(OUT, attention.out, 0);
        break;
    case BENCH_OP_MHA:
        ADD(X, mha.x, 1);
        if (d->mha.x_kv.dtype != CLATTN_ABSENT) ADD(X_KV, mha.x_kv, 1);
        ADD(W_Q, mha.w_q, fan_in(s->d_in));
        ADD(W_K, mha.w_k, fan_in(s->d_in));
        ADD(W_V, mha.w_v, fan_in(s->d_in));
        ADD(W_O, mha.w_o, fan_in(s->heads_q * s->value_dim));
        ADD(OUT, mha.out, 0);
        break;
    case BENCH_OP_PROJECT:
        ADD(X, project_qkv.x, 1);
        ADD(W_Q, project_qkv.w_q, fan_in(s->d_in));
        ADD(Q, project_qkv.q, 0);
        break;
    case BENCH_OP_RNN:
    case BENCH_OP_LSTM:
        ADD(X, recurrence.x, 1);
        ADD(W_IN, recurrence.w_in, fan_in(s->d_in));
        ADD(W_H, recurrence.w_h, 0.5 * fan_in(s->hidden));
        ADD(BIAS, recurrence.bias, 1);
        ADD(OUT, recurrence.out, 0);
        break;
    }
#undef ADD
    return count;
}

clattn_tensor bench_problem_output(const bench_problem *problem) {
    tensor_entry list[BENCH_MAX_ARGS];
    size_t count = list_tensors(problem, list);
    return *list[count - 1].tensor;
}

/* An input being filled: the same numbers whatever the type, rounded to it, and however many threads fill it, since each run of
 * BLOCK has a stream of its own. Inputs are packed. */
enum { BLOCK = 4096 };
typedef struct filling {
    const clattn_arg *arg;
    clattn_dtype dtype;
    int64_t count;
    float sigma;
    uint64_t seed;
} filling;

static void fill_share(void *arg, int thread, int threads) {
    const filling *f = arg;
    float numbers[BLOCK];
    for (int64_t block = thread; block * BLOCK < f->count; block += threads) {
        const int64_t start = block * BLOCK, left = f->count - start;
        const size_t count = (size_t)(left < BLOCK ? left : BLOCK);
        bench_random seeds = {f->seed + (uint64_t)block}, random = {bench_random_below(&seeds, UINT64_MAX)};
        bench_random_normal(&random, numbers, count, f->sigma);
        if (f->dtype == CLATTN_F32)
            memcpy((float *)f->arg->data + start, numbers, count * sizeof *numbers);
        else
            for (size_t n = 0; n < count; n++) clattn__store(f->dtype, f->arg->data, start + (int64_t)n, numbers[n]);
    }
}

static bool allocate(clattn_arg *arg, const tensor_entry *entry, bench_random *random, bench_error *error) {
    size_t rounded = (arg->bytes + 63) / 64 * 64;
    arg->data = aligned_alloc(64, rounded ? rounded : 64);
    if (!arg->data) return bench_fail(error, "out of memory: %zu bytes for %s", arg->bytes, clattn_tensor_name(entry->id));
    filling f = {arg, entry->tensor->dtype, clattn__tensor_elements(entry->tensor), (float)entry->sigma, 0};
    f.seed = bench_random_below(random, UINT64_MAX);
    if (entry->sigma != 0) bench_on_threads(bench_all_threads(), fill_share, &f);
    return true;
}

void bench_problem_describe(bench_problem *problem, const bench_shape *shape) {
    *problem = (bench_problem){.shape = *shape, .desc = desc_of(shape)};
    tensor_entry list[BENCH_MAX_ARGS];
    problem->arg_count = list_tensors(problem, list);
    for (size_t i = 0; i < problem->arg_count; i++)
        problem->args[i] = (clattn_arg){.id = list[i].id, .bytes = clattn__tensor_span(list[i].tensor)};
}

bool bench_problem_create(bench_problem *problem, const bench_shape *shape, uint64_t seed, bench_error *error) {
    bench_problem_describe(problem, shape);
    problem->seed = seed;
    tensor_entry list[BENCH_MAX_ARGS];
    size_t count = list_tensors(problem, list);
    bench_random random = {seed};
    for (size_t i = 0; i < count; i++) {
        if (!allocate(&problem->args[i], &list[i], &random, error)) {
            bench_problem_free(problem);
            return false;
        }
    }
    return true;
}

void bench_problem_poison(bench_problem *problem) {
    const clattn_arg *out = bench_problem_output_arg(problem);
    memset(out->data, 0xff, out->bytes);
}

void bench_problem_free(bench_problem *problem) {
    for (size_t i = 0; i < problem->arg_count; i++) free(problem->args[i].data);
    bench_oracle_free(problem->oracle);
    *problem = (bench_problem){0};
}
