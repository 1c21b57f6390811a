/* What makes a score of a scaled product: softcap, bias, ALiBi; and which keys an element of the mask or the bias hides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_GPU_OPTIONS_H
#define CLATTN_GPU_OPTIONS_H

#include "element.h"
#include "heads.h"

/* The options of one row. */
typedef struct row_options {
    const global uchar *mask;
    const global void *bias;
    i64 mask_at, bias_at; /* element of key 0 */
    i64 position;
    float slope;
} row_options;

INLINE float alibi_slope(const attention_params *p, const global float *slopes, i64 b, i64 h) {
    if (p->alibi == ALIBI_GIVEN) return slopes[b * p->slopes_b + h * p->slopes_h];
    return p->alibi == ALIBI_STANDARD ? exp2(alibi_exponent(h, p->heads_q)) : 0.0f;
}

/* cap * tanh(x / cap). Near 0 an odd polynomial (Cephes' tanhf), where the quotient would cancel: no branches, unlike tanh, of
 * which a work-item has many in a row. */
INLINE float capped(float x, float cap) {
    const float y = x / cap, size = fabs(y), square = y * y;
    float near = -5.70498872745e-3f;
    near = near * square + 2.06390887954e-2f;
    near = near * square - 5.37397155531e-2f;
    near = near * square + 1.33314422036e-1f;
    near = near * square - 3.33332819422e-1f;
    const float far = copysign(1.0f - 2.0f / (exp2(size * 2.88539008f) + 1.0f), y);
    return cap * (size < 0.625f ? near * square * y + y : far);
}

INLINE bool mask_hides(const attention_params *p, const row_options *row, i64 j) {
    return p->has_mask && (j >= p->mask_len || !row->mask[row->mask_at + j * p->mask.d]);
}

/* -infinity past its keys: those are masked. */
INLINE float bias_of(const attention_params *p, const row_options *row, i64 j) {
    return j < p->bias_len ? load_typed(row->bias, row->bias_at + j * p->bias.d, p->bias_dtype) : -INFINITY;
}

/* Whether an element of mask or bias hides key j. */
INLINE bool is_hidden(const attention_params *p, const row_options *row, i64 j) {
    return mask_hides(p, row, j) || (p->has_bias && bias_of(p, row, j) == -INFINITY);
}

/* Whether the query `row` rows below the one that `first` is of, query i, may not use key j. */
INLINE bool is_hidden_below(const attention_params *p, const member *m, const row_options *first, i64 i, int row, i64 j) {
    row_options at = *first;
    at.mask_at += row * p->mask.l;
    at.bias_at += row * p->bias.l;
    return !is_live(live_range(p, m, i + row), j) || is_hidden(p, &at, j);
}

/* The score of key j, of the product scaled already; where mask or bias hide it, *hidden is true and the score -infinity. */
INLINE float modified_score(const attention_params *p, const row_options *row, float x, i64 j, bool *hidden) {
    const float bias = p->has_bias ? bias_of(p, row, j) : 0.0f;
    *hidden = mask_hides(p, row, j) || bias == -INFINITY;
    if (p->softcap != 0.0f) x = capped(x, p->softcap);
    x += bias;
    if (p->alibi) x -= row->slope * fabs((float)(j - row->position));
    return *hidden ? -INFINITY : x;
}

#endif
