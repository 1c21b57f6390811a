/* Attention in double precision, one query at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   score[j]  = scale * sum over d of q[b,h,i,d] * k[b,g,j,d]              g = h / (heads_q / heads_kv)
 *   weight[j] = exp(score[j]) / sum over live j of exp(score[j])           0 for a masked j
 *   out[d]    = sum over live j of weight[j] * v[b,g,j,d]
 *   lse       = log(sum over live j of exp(score[j]))
 */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

/* Query i stands at position i + offset and sees the keys up to there. */
static bool sees(const clattn__oracle_attention_args *args, i64 i, i64 j) {
    return !args->causal || j - i <= args->offset;
}

static void compute_scores(const clattn__oracle_attention_args *args, i64 b, i64 h, i64 g, i64 i, double *score) {
    for (i64 j = 0; j < args->k.size[2]; j++) {
        double dot = 0;
        for (i64 d = 0; d < args->q.size[3]; d++) dot += clattn__get(&args->q, b, h, i, d) * clattn__get(&args->k, b, g, j, d);
        score[j] = args->scale * dot;
        if (args->scores.present) clattn__set(&args->scores, b, h, i, j, score[j]);
    }
}

/* Turn the row's scores into its weights, in place; returns the row's log-sum-exp. */
static double softmax(const clattn__oracle_attention_args *args, i64 i, double *row) {
    i64 len_kv = args->k.size[2];
    double row_max = -INFINITY;
    for (i64 j = 0; j < len_kv; j++) {
        if (sees(args, i, j)) row_max = fmax(row_max, row[j]);
    }
    /* Any shift gives the same quotient; the maximum keeps exp from overflowing. Without a finite score none is needed. */
    double shift = row_max == -INFINITY ? 0 : row_max;
    double row_sum = 0;
    for (i64 j = 0; j < len_kv; j++) {
        row[j] = sees(args, i, j) ? exp(row[j] - shift) : 0;
        row_sum += row[j];
    }
    for (i64 j = 0; j < len_kv; j++) {
        if (sees(args, i, j) && row_sum != 0) row[j] /= row_sum;
    }
    return shift + log(row_sum);
}

static void weigh_values(const clattn__oracle_attention_args *args, i64 b, i64 h, i64 g, i64 i, const double *weight) {
    for (i64 d = 0; d < args->v.size[3]; d++) {
        double sum = 0;
        for (i64 j = 0; j < args->v.size[2]; j++) {
            if (sees(args, i, j)) sum += weight[j] * clattn__get(&args->v, b, g, j, d);
        }
        clattn__set(&args->out, b, h, i, d, sum);
    }
}

clattn_status clattn__oracle_attention(const clattn__oracle_attention_args *args) {
    i64 batch = args->q.size[0], heads_q = args->q.size[1], len_q = args->q.size[2];
    i64 heads_kv = args->k.size[1], len_kv = args->k.size[2];
    double *row = clattn__new_doubles(1, 1, 1, len_kv);
    if (!row) return CLATTN_ERROR_MEMORY;
    for (i64 b = 0; b < batch; b++) {
        for (i64 h = 0; h < heads_q; h++) {
            i64 g = h / (heads_q / heads_kv);
            for (i64 i = 0; i < len_q; i++) {
                compute_scores(args, b, h, g, i, row);
                double lse = softmax(args, i, row);
                if (args->lse.present) clattn__set(&args->lse, b, h, i, 0, lse);
                for (i64 j = 0; j < len_kv && args->weights.present; j++) clattn__set(&args->weights, b, h, i, j, row[j]);
                weigh_values(args, b, h, g, i, row);
            }
        }
    }
    free(row);
    return CLATTN_OK;
}

clattn_status clattn__reference_attention(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    const clattn_attention_desc *desc = &plan->desc.attention; /* resolved */
    clattn__oracle_attention_args args = {
        .q = clattn__view_of(plan, tensors, CLATTN_TENSOR_Q),
        .k = clattn__view_of(plan, tensors, CLATTN_TENSOR_K),
        .v = clattn__view_of(plan, tensors, CLATTN_TENSOR_V),
        .out = clattn__view_of(plan, tensors, CLATTN_TENSOR_OUT),
        .lse = clattn__view_of(plan, tensors, CLATTN_TENSOR_LSE),
        .scores = clattn__view_of(plan, tensors, CLATTN_TENSOR_SCORES),
        .weights = clattn__view_of(plan, tensors, CLATTN_TENSOR_WEIGHTS),
        .scale = desc->options.scale,
        .causal = desc->options.causal,
        .offset = desc->options.offset,
    };
    return clattn__oracle_attention(&args);
}
