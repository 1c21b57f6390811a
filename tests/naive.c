/* SPDX-License-Identifier: Apache-2.0 */
#include "naive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static int64_t count_live(const naive_attention_args *a, int64_t i) {
    if (!a->causal) return a->len_kv;
    if (a->offset >= a->len_kv) return a->len_kv;
    if (a->offset < -a->len_q) return 0;
    int64_t live = i + a->offset + 1;
    return live < 0 ? 0 : live > a->len_kv ? a->len_kv : live;
}

static float dot(const float *a, const float *b, int64_t n) {
    float sum = 0;
    for (int64_t d = 0; d < n; d++) sum += a[d] * b[d];
    return sum;
}

/* weights = softmax(scores) over the first `live` of `len`; returns the log-sum-exp */
static float naive_softmax(const float *scores, int64_t live, int64_t len, float *weights) {
    float row_max = -INFINITY, row_sum = 0;
    for (int64_t j = 0; j < live; j++) row_max = fmaxf(row_max, scores[j]);
    memset(weights, 0, (size_t)len * sizeof *weights);
    if (row_max == -INFINITY) row_max = 0;
    for (int64_t j = 0; j < live; j++) row_sum += weights[j] = expf(scores[j] - row_max);
    for (int64_t j = 0; j < live; j++) weights[j] = row_sum == 0 ? 0 : weights[j] / row_sum;
    return row_max + logf(row_sum);
}

void naive_attention(const naive_attention_args *a) {
    for (int64_t row = 0; row < a->batch * a->heads_q * a->len_q; row++) {
        const int64_t i = row % a->len_q, h = row / a->len_q % a->heads_q, b = row / a->len_q / a->heads_q;
        const int64_t head_kv = b * a->heads_kv + h * a->heads_kv / a->heads_q;
        const float *k = a->k + head_kv * a->len_kv * a->head_dim, *v = a->v + head_kv * a->len_kv * a->value_dim;
        float *scores = a->scores + row * a->len_kv, *weights = a->weights + row * a->len_kv, *out = a->out + row * a->value_dim;
        for (int64_t j = 0; j < a->len_kv; j++) {
            scores[j] = a->scale * dot(a->q + row * a->head_dim, k + j * a->head_dim, a->head_dim);
        }
        const int64_t live = count_live(a, i);
        a->lse[row] = naive_softmax(scores, live, a->len_kv, weights);
        for (int64_t d = 0; d < a->value_dim; d++) {
            out[d] = 0;
            for (int64_t j = 0; j < live; j++) out[d] += weights[j] * v[j * a->value_dim + d];
        }
    }
}

void naive_project(int64_t batch, int64_t heads, int64_t len, int64_t depth, int64_t dim, const float *x, const float *w,
                   const float *bias, const float *residual, float *y) {
    const int64_t columns = heads * dim;
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t l = 0; l < len; l++) {
            for (int64_t n = 0; n < columns; n++) {
                float sum = 0;
                for (int64_t k = 0; k < depth; k++) sum += x[(b * len + l) * depth + k] * w[k * columns + n];
                if (bias) sum += bias[n];
                if (residual) sum += residual[(b * len + l) * columns + n];
                y[((b * heads + n / dim) * len + l) * dim + n % dim] = sum;
            }
        }
    }
}

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

static void naive_sequence(const naive_recurrence_args *a, int64_t b, float *sum) {
    const int64_t hidden = a->hidden, rows = (a->is_lstm ? 4 : 1) * hidden;
    float *h = a->h_n + b * hidden, *c = a->c_n + b * hidden;
    for (int64_t n = 0; n < hidden; n++) {
        h[n] = a->h_0 ? a->h_0[b * hidden + n] : 0;
        c[n] = a->c_0 ? a->c_0[b * hidden + n] : 0;
    }
    for (int64_t t = 0; t < a->steps; t++) {
        for (int64_t r = 0; r < rows; r++) {
            sum[r] = dot(a->w_in + r * a->d_in, a->x + (b * a->steps + t) * a->d_in, a->d_in);
            if (a->bias) sum[r] += a->bias[r];
            sum[r] += dot(a->w_h + r * hidden, h, hidden);
        }
        for (int64_t n = 0; n < hidden; n++) {
            if (a->is_lstm) {
                c[n] = sigmoid(sum[2 * hidden + n] + a->forget_bias) * c[n] + sigmoid(sum[n]) * tanhf(sum[3 * hidden + n]);
                h[n] = sigmoid(sum[hidden + n]) * tanhf(c[n]);
            } else {
                h[n] = tanhf(sum[n]);
            }
        }
        memcpy(a->out + (b * a->steps + t) * hidden, h, (size_t)hidden * sizeof *h);
    }
}

void naive_recurrence(const naive_recurrence_args *a) {
    float *sum = test_alloc((size_t)(4 * a->hidden), sizeof *sum);
    for (int64_t b = 0; b < a->batch; b++) naive_sequence(a, b, sum);
    free(sum);
}

int64_t naive_offset(clattn_align align, int64_t len_q, int64_t len_kv, int64_t given) {
    if (align == CLATTN_ALIGN_TOP_LEFT) return 0;
    return align == CLATTN_ALIGN_BOTTOM_RIGHT ? len_kv - len_q : given;
}

double naive_scale(int64_t head_dim) { return head_dim > 0 ? 1 / sqrt((double)head_dim) : 1; }
