/* What is computed and timed: a shape, its descriptor, inputs, one output, and the rows of the oracle to check it by.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_PROBLEM_H
#define CLATTN_BENCH_PROBLEM_H

#include "clattn/clattn.h"
#include "error.h"

typedef enum bench_op { BENCH_OP_ATTENTION, BENCH_OP_MHA, BENCH_OP_PROJECT, BENCH_OP_RNN, BENCH_OP_LSTM } bench_op;

/* As clattn_plan_info.op has it. */
const char *bench_op_name(bench_op op);
bool bench_op_recurs(bench_op op);

typedef struct bench_shape {
    bench_op op;
    int64_t batch, heads_q, heads_kv;
    int64_t len_q, len_kv; /* recurrences and project: len_q alone */
    int64_t head_dim, value_dim;
    int64_t d_in;   /* layers: width of the input; 0 for a recurrence: its loop alone, fed by the bias */
    int64_t hidden; /* recurrences: width of the state; project: columns */
    int causal;
    clattn_align align;
    int64_t offset; /* of CLATTN_ALIGN_OFFSET and _PAST */
    int has_window;
    int64_t window_left, window_right;
    clattn_dtype dtype; /* of attention; absent: f32 */
    double softcap;     /* 0: none */
} bench_shape;

/* Which of the ways to compute it; each op takes the one that is its own. */
typedef struct bench_variant {
    clattn_algorithm algorithm;
    clattn_recurrence_form recurrence;
    bool split_devices; /* over all of the context's */
} bench_variant;

typedef union bench_desc {
    clattn_attention_desc attention;
    clattn_project_qkv_desc project_qkv;
    clattn_mha_desc mha;
    clattn_recurrence_desc recurrence;
} bench_desc;

enum { BENCH_MAX_ARGS = 12 };

typedef struct bench_problem {
    bench_shape shape;
    uint64_t seed;
    bench_desc desc;
    clattn_arg args[BENCH_MAX_ARGS]; /* the output is the last */
    size_t arg_count;
    bool hurried;                /* of long inputs fewer random rows are verified */
    struct bench_oracle *oracle; /* made by bench_verify, once */
} bench_problem;

/* The descriptor and the arguments without memory. */
void bench_problem_describe(bench_problem *, const bench_shape *);
/* Inputs are random normal: x, q, k and v of deviation 1, weights of 1 / sqrt(inputs), those of a recurrence half of it, so
 * that its state neither dies nor runs away. */
bool bench_problem_create(bench_problem *, const bench_shape *, uint64_t seed, bench_error *);
void bench_problem_free(bench_problem *);

clattn_tensor bench_problem_output(const bench_problem *);
static inline clattn_arg *bench_problem_output_arg(bench_problem *problem) {
    return &problem->args[problem->arg_count - 1];
}
/* The options of attention and of a layer. */
clattn_attention_options bench_shape_options(const bench_shape *);
clattn_dtype bench_shape_dtype(const bench_shape *);
/* Fill the output with NaN. */
void bench_problem_poison(bench_problem *);

/* Make a plan of a descriptor of this op. */
clattn_status bench_plan_create(clattn_context *, bench_op, const bench_desc *, bench_variant, clattn_plan **);

#endif
