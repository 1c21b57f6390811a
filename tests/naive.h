/* The computation that anyone would write first, over packed memory: its error is the yardstick of the error rule. Written apart from
 * the oracle, so that each checks the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TESTS_NAIVE_H
#define CLATTN_TESTS_NAIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "clattn/clattn.h"

/* A packed tensor of numbers that its type holds; data NULL: absent. */
typedef struct naive_tensor {
    double *data;
    clattn_dtype dtype;
    int64_t size[4];
} naive_tensor;

/* Attention with every option. Sums are fp32, every operation rounded; f64 where q is. What is stored is rounded to its tensor's
 * type. present_k and present_v hold the cache before, where it is appended to in place. */
typedef struct naive_attention_args {
    const clattn_attention_options *options; /* has_scale is 1; its tensors are those below */
    clattn_rotary rotary;
    naive_tensor tensors[CLATTN_TENSOR_COUNT];
    /* Of out, lse, scores and weights, all of them wanted: the error of each element, to first order, where every score, weight and
     * value has an error of one part. A score's error moves its weight towards or away from all others; the errors of a score are of
     * its terms, not of their sum, and partly cancel: a quarter of them. */
    double *magnitude[CLATTN_TENSOR_COUNT];
} naive_attention_args;

void naive_attention(const naive_attention_args *a);

/* A member of the batch. */
typedef struct naive_member {
    int64_t b;              /* in the tensors' batch */
    int64_t number;         /* among the members */
    int64_t q_first, len_q; /* its rows of q */
    int64_t kv_first;       /* its first row of k */
    int64_t past, len_kv;   /* keys before the new ones; all keys */
} naive_member;

int64_t naive_members(const naive_attention_args *a);
naive_member naive_member_of(const naive_attention_args *a, int64_t number);
/* Whether query i of head h looks at key j. */
bool naive_live(const naive_attention_args *a, const naive_member *m, int64_t h, int64_t i, int64_t j);

/* y[b,h,l,d] = x[b,l,:] w[:,h * dim + d] + bias + residual[b,l,h * dim + d]; bias and residual may be NULL. */
void naive_project(int64_t batch, int64_t heads, int64_t len, int64_t depth, int64_t dim, const float *x, const float *w,
                   const float *bias, const float *residual, float *y);

typedef struct naive_recurrence_args {
    bool is_lstm;
    int64_t batch, steps, d_in, hidden;
    float forget_bias;
    const float *x, *w_in, *w_h;
    const float *bias, *h_0, *c_0; /* may be NULL */
    float *out, *h_n, *c_n;        /* all of them wanted */
} naive_recurrence_args;

void naive_recurrence(const naive_recurrence_args *a);

/* The offset that an alignment names; `given` is past_len or offset. */
int64_t naive_offset(clattn_align align, int64_t len_q, int64_t len_kv, int64_t given);
/* 1 / sqrt(head_dim); 1 when there is nothing to scale. */
double naive_scale(int64_t head_dim);

#endif
