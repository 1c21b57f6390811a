/* The options of one row of scores whose keys lie in lanes: options.h the other way round.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_KERNELS_CPU_ROW_OPTIONS_H
#define CLATTN_KERNELS_CPU_ROW_OPTIONS_H

#include "options.h"

typedef struct row_options {
    __global const uchar *mask; /* the row's elements, */
    __global const void *bias;
    i64 position; /* and where it stands */
    real slope;
} row_options;

/* Query i of head h of member b; mask and bias as the kernel got them. */
INLINE row_options row_options_of(const attention_params *p, __global const uchar *mask, __global const void *bias, i64 b, i64 h,
                                  i64 i, i64 position, real slope) {
    const row_options row = {mask + b * p->mask.b + h * p->mask.h + i * p->mask.l,
                             bias_from(p, bias, b * p->bias.b + h * p->bias.h + i * p->bias.l), position, slope};
    return row;
}

/* Whether an element masks key j. */
INLINE int element_masks(const row_options *row, const attention_params *p, i64 j) {
    if (p->has_mask && row->mask[j * p->mask.d] == 0) return 1;
    return p->has_bias && bias_load(p, row->bias, j * p->bias.d) == -INFINITY;
}

/* What is added to the scores of `count` keys from j on: their biases, or 0, and -infinity where an element masks. */
INLINE void row_addends(real *addends, const row_options *row, const attention_params *p, i64 j, int count) {
    __global const uchar *mask = row->mask + j * p->mask.d;
    __global const void *bias = bias_from(p, row->bias, j * p->bias.d);
    if (!p->has_bias) {
        for (int n = 0; n < count; n++) addends[n] = REAL(0.0);
    } else if (p->bias.d == 1 && p->bias_dtype == DTYPE_F32) {
        for (int n = 0; n < count; n++) addends[n] = ((__global const float *)bias)[n];
    } else {
        for (int n = 0; n < count; n++) addends[n] = bias_load(p, bias, n * p->bias.d);
    }
    if (!p->has_mask) return;
    int n = 0;
    if (p->mask.d == 1) {
        for (; n + WIDTH <= count; n += WIDTH) {
            const ivec masked = ivec_of_bytes(mask + n) == ivec_splat(0);
            vec_store(vec_select(masked, vec_splat(-INFINITY), vec_load(addends + n)), addends + n);
        }
    }
    for (; n < count; n++) {
        if (mask[n * p->mask.d] == 0) addends[n] = -INFINITY;
    }
}

/* The raw scores of the keys from j on as scores; addends are theirs. */
INLINE vec row_modified(vec raw, const row_options *row, const attention_params *p, const real *addends, i64 j) {
    real lanes[WIDTH];
    for (int lane = 0; lane < WIDTH; lane++) lanes[lane] = (real)lane;
    const vec distance = vec_load(lanes) + (real)(j - row->position), score = modified(raw, p, addends, vec_splat(row->slope), distance);
    if (!has_elements(p)) return score;
    return vec_select(vec_load(addends) == vec_splat(-INFINITY), vec_splat(-INFINITY), score);
}

#endif
