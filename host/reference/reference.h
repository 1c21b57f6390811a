/* The oracle: every operator as its formula, in double precision, over strided views. Slow, and meant to be read.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each file holds one operator twice: the formula, over views of any type (clattn__oracle_*), and the entry point that a plan calls
 * with its tensors (clattn__reference_*). Tests call the former to keep results in double.
 */
#ifndef CLATTN_REFERENCE_H
#define CLATTN_REFERENCE_H

#include "../internal.h"

/* A tensor with its memory: the caller's, or the oracle's own, which is f64. */
typedef struct clattn__view {
    void *data;
    bool present; /* false: an optional tensor that is not there */
    clattn_dtype dtype;
    i64 size[4], stride[4];
} clattn__view;

static inline i64 clattn__view_offset(const clattn__view *v, i64 b, i64 h, i64 l, i64 d) {
    return b * v->stride[0] + h * v->stride[1] + l * v->stride[2] + d * v->stride[3];
}

static inline double clattn__get(const clattn__view *v, i64 b, i64 h, i64 l, i64 d) {
    i64 offset = clattn__view_offset(v, b, h, l, d);
    return v->dtype == CLATTN_F32 ? (double)((const float *)v->data)[offset] : clattn__load(v->dtype, v->data, offset);
}

static inline void clattn__set(const clattn__view *v, i64 b, i64 h, i64 l, i64 d, double value) {
    clattn__store(v->dtype, v->data, clattn__view_offset(v, b, h, l, d), value);
}

/* Where a plan's tensor lies in this run; not present when the plan has none. */
clattn__view clattn__view_of(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT], clattn_tensor_id id);
/* A packed view of `data`, which holds doubles. */
clattn__view clattn__view_of_doubles(double *data, i64 batch, i64 heads, i64 len, i64 dim);
/* `count[0] * ... * count[3]` zeroed doubles (at least one, so that NULL means out of memory). */
double *clattn__new_doubles(i64 a, i64 b, i64 c, i64 d);
/* The same memory with its columns split into heads: (batch, 1, len, heads * dim) read as (batch, heads, len, dim). */
clattn__view clattn__view_split_heads(clattn__view view, i64 heads);

/* As clattn_attention_desc, to which the names belong; what is optional there is here, too. */
typedef struct clattn__oracle_attention_args {
    clattn__view q, k, v;
    clattn__view out, lse, scores, weights;
    clattn__view mask, bias, alibi_slopes, sinks, kv_lengths;
    clattn__view past_k, past_v, past_lengths, present_k, present_v;
    clattn__view rotary_cos, rotary_sin;
    clattn__view q_offsets, kv_offsets;
    clattn_rotary rotary;
    const clattn_attention_options *options; /* has_scale is 1; its tensors are those above */
} clattn__oracle_attention_args;

typedef struct clattn__oracle_merge_args {
    i64 parts;
    clattn__view out_parts, lse_parts, sinks; /* sinks optional */
    clattn__view out, lse;                    /* lse optional */
} clattn__oracle_merge_args;

typedef struct clattn__oracle_project_args {
    clattn__view x, w;
    clattn__view bias, residual; /* optional */
    clattn__view y;
} clattn__oracle_project_args;

typedef struct clattn__oracle_mha_args {
    clattn__view x, x_kv;
    clattn__view w_q, w_k, w_v, w_o;
    clattn__view b_q, b_k, b_v, b_o;
    clattn__view out, weights;
    clattn__view mask, bias, alibi_slopes, sinks, kv_lengths;
    i64 heads_q, heads_kv;
    bool residual;
    const clattn_attention_options *options; /* as in clattn__oracle_attention_args */
} clattn__oracle_mha_args;

typedef struct clattn__oracle_recurrence_args {
    clattn_cell cell;
    clattn__view x, w_in, w_h, bias, h_0, c_0; /* bias, h_0, c_0 optional */
    clattn__view out, h_n, c_n;                /* h_n, c_n optional */
    double forget_bias;
} clattn__oracle_recurrence_args;

/* Errors of all: MEMORY. */
clattn_status clattn__oracle_attention(const clattn__oracle_attention_args *args);
clattn_status clattn__oracle_merge(const clattn__oracle_merge_args *args);
clattn_status clattn__oracle_project(const clattn__oracle_project_args *args);
clattn_status clattn__oracle_mha(const clattn__oracle_mha_args *args);
clattn_status clattn__oracle_recurrence(const clattn__oracle_recurrence_args *args);

/* What clattn__operator.reference points to. */
clattn_status clattn__reference_attention(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]);
clattn_status clattn__reference_merge(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]);
clattn_status clattn__reference_project_qkv(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]);
clattn_status clattn__reference_mha(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]);
clattn_status clattn__reference_recurrence(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]);

/* Make a context one of the reference device. */
clattn_status clattn__reference_open(clattn_context *context);

#endif
