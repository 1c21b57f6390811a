/* The computation that anyone would write first, in fp32 over packed memory: its error is the yardstick of the error rule.
 * Written apart from the oracle, so that each checks the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TESTS_NAIVE_H
#define CLATTN_TESTS_NAIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "clattn/clattn.h"

typedef struct naive_attention_args {
    int64_t batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim;
    float scale;
    bool causal;
    int64_t offset;
    const float *q, *k, *v;
    float *out, *lse, *scores, *weights; /* all of them wanted */
} naive_attention_args;

void naive_attention(const naive_attention_args *a);

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
