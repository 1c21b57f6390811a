/* How raw scores become scores where more than a scale and a range of keys makes them: softcap, bias, ALiBi, and the keys
 * that an element of mask or bias masks (attention_params.modified).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *      score = softcap * tanh(raw / softcap) + bias[i][j] - slope * |j - position(i)|;   masked where mask[i][j] is 0,
 *      bias[i][j] is -infinity, or j is past the end of either
 *
 * Here is what serves an element or a vector of scores; row_options.h is for rows whose keys lie in lanes, lane_options.h
 * for tiles whose rows do. Both hold the scores' addends: the biases (0 without one) and -infinity for what is masked. Such
 * a score is -infinity whatever the raw score, and such a key's value is not to be looked at.
 */
#ifndef CLATTN_KERNELS_CPU_OPTIONS_H
#define CLATTN_KERNELS_CPU_OPTIONS_H

#include "../mask.h"
#include "storage.h"

/* Whether elements of mask or bias are asked. */
INLINE int has_elements(const attention_params *p) {
    return p->has_mask || p->has_bias;
}

/* The member without the keys past the end of mask or bias. Positions are not changed. */
static inline member within_elements(const attention_params *p, member m) {
    if (p->has_mask && p->mask_len < m.len_kv) m.len_kv = p->mask_len;
    if (p->has_bias && p->bias_len < m.len_kv) m.len_kv = p->bias_len;
    return m;
}

INLINE real bias_load(const attention_params *p, __global const void *bias, i64 at) {
    if (p->bias_dtype == DTYPE_F32) return ((__global const float *)bias)[at];
    return stored_load((__global const stored *)bias + at);
}

INLINE __global const void *bias_from(const attention_params *p, __global const void *bias, i64 at) {
    if (p->bias_dtype == DTYPE_F32) return (__global const float *)bias + at;
    return (__global const stored *)bias + at;
}

/* The slope of ALiBi for a query head; 0 without. */
INLINE real slope_of(const attention_params *p, __global const float *slopes, i64 b, i64 h) {
    if (p->alibi == ALIBI_GIVEN) return slopes[b * p->slopes_b + h * p->slopes_h];
    return p->alibi == ALIBI_STANDARD ? exp2((real)alibi_exponent(h, p->heads_q)) : REAL(0.0);
}

INLINE vec softcapped(vec raw, real softcap) {
    return softcap * vec_tanh(raw / softcap);
}

/* Scores after softcap as scores of keys at this distance from their rows' positions; masked ones are not yet -infinity
 * where they were NaN. */
INLINE vec biased(vec score, const attention_params *p, const real *addends, vec slope, vec distance) {
    if (has_elements(p)) score += vec_load(addends);
    if (p->alibi) score -= slope * vec_abs(distance);
    return score;
}

/* Raw scores likewise. */
INLINE vec modified(vec raw, const attention_params *p, const real *addends, vec slope, vec distance) {
    const real softcap = real_parameter(p, softcap);
    return biased(softcap != REAL(0.0) ? softcapped(raw, softcap) : raw, p, addends, slope, distance);
}

#endif
