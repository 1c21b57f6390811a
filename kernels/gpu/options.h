/* What makes a score of a scaled product: softcap, bias, ALiBi; and which keys an element of the mask or the bias hides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_GPU_OPTIONS_H
#define CLATTN_GPU_OPTIONS_H

#include "element.h"
#include "heads.h"

/* The options' buffers, at (b, h, i) of the row that is meant. */
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

/* The score of key j, of the product scaled already; *hidden says whether mask or bias hide it, and then the score is -infinity.
 * Neither is read past its keys. */
INLINE float modified_score(const attention_params *p, const row_options *row, float x, i64 j, bool *hidden) {
    *hidden = false;
    if (p->has_mask) *hidden = j >= p->mask_len || !row->mask[row->mask_at + j * p->mask.d];
    if (p->softcap != 0.0f) x = p->softcap * tanh(x / p->softcap);
    if (p->has_bias) {
        const float bias = j < p->bias_len ? load_typed(row->bias, row->bias_at + j * p->bias.d, p->bias_dtype) : -INFINITY;
        *hidden |= bias == -INFINITY;
        x += bias;
    }
    if (p->alibi) x -= row->slope * fabs((float)(j - row->position));
    return *hidden ? -INFINITY : x;
}

#endif
