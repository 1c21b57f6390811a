/* How raw scores become scores where more than a scale and a range of keys makes them: softcap, bias, ALiBi, and the keys that an
 * element of mask or bias masks (attention_params.modified).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *      score = softcap * tanh(raw / softcap) + bias[i][j] - slope * |j - position(i)|;   masked where mask[i][j] is 0, bias[i][j] is
 *      -infinity, or j is past the end of either
 *
 * First what serves one element or one vector, then what serves a tile of scores [keys][LANES]. There any row may stand in any
 * lane: each says for itself where its elements lie. The tile of addends beside it holds the biases (0 without one) and -infinity
 * for what is masked, whether by an element or by the row's range: such a score is -infinity whatever the raw score, and such a
 * key's value is not to be looked at. Addends are made before the products, so that a tile without a live key costs none.
 */
#ifndef CLATTN_KERNELS_CPU_OPTIONS_H
#define CLATTN_KERNELS_CPU_OPTIONS_H

#include "../mask.h"
#include "storage.h"

/* Whether elements of mask or bias are asked. */
INLINE int has_elements(const attention_params *p) { return p->has_mask || p->has_bias; }

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

INLINE vec softcapped(vec raw, real softcap) { return softcap * vec_tanh(raw / softcap); }

/* Scores of a key at this distance from the positions in the lanes; masked ones are not yet -infinity where the raw one is NaN. */
INLINE vec modified(vec raw, const attention_params *p, const real *addends, vec slope, vec distance) {
    const real softcap = real_parameter(p, softcap);
    if (softcap != REAL(0.0)) raw = softcapped(raw, softcap);
    if (has_elements(p)) raw += vec_load(addends);
    if (p->alibi) raw -= slope * vec_abs(distance);
    return raw;
}

#if defined(LANES)

/* What the rows in a block's lanes are modified by. */
typedef struct modifiers {
    i64 mask_row[LANES], bias_row[LANES]; /* where a row's elements begin, */
    i64 position[LANES];                  /* and where it stands */
    real slope[LANES];
} modifiers;

/* Lane `lane` holds query i of head h of member b, at `position`. */
INLINE void modifiers_lane(modifiers *mods, int lane, const attention_params *p, i64 b, i64 h, i64 i, i64 position, real slope) {
    mods->mask_row[lane] = b * p->mask.b + h * p->mask.h + i * p->mask.l;
    mods->bias_row[lane] = b * p->bias.b + h * p->bias.h + i * p->bias.l;
    mods->position[lane] = position;
    mods->slope[lane] = slope;
}

/* How far key `start` is from the positions in vector v. */
INLINE vec distance_from(const modifiers *mods, int v, i64 start) {
    real lanes[WIDTH];
    for (int lane = 0; lane < WIDTH; lane++) lanes[lane] = (real)(start - mods->position[v * WIDTH + lane]);
    return vec_load(lanes);
}

/* Whether a row of the mask attends to any of some keys. Without a way out of the loop, so that it is one of vectors. */
INLINE int mask_row_any(__global const uchar *row, i64 step, i64 keys) {
    uchar any = 0;
    if (step == 1) {
        for (i64 j = 0; j < keys; j++) any |= row[j];
    } else {
        for (i64 j = 0; j < keys; j++) any |= row[j * step];
    }
    return any != 0;
}

/* The addends of one lane for its live keys first <= j < end, of `keys` from `start` on. */
INLINE void addends_lane(real *addends, const attention_params *p, __global const uchar *mask, __global const void *bias,
                         i64 bias_row, key_range live, int keys) {
    for (i64 j = 0; j < live.first; j++) addends[j * LANES] = -INFINITY;
    for (i64 j = live.end; j < keys; j++) addends[j * LANES] = -INFINITY;
    if (p->has_bias) {
        for (i64 j = live.first; j < live.end; j++) addends[j * LANES] = bias_load(p, bias, bias_row + j * p->bias.d);
    } else {
        for (i64 j = live.first; j < live.end; j++) addends[j * LANES] = REAL(0.0);
    }
    if (p->has_mask) {
        for (i64 j = live.first; j < live.end; j++) {
            if (mask[j * p->mask.d] == 0) addends[j * LANES] = -INFINITY;
        }
    }
}

/* Which of the keys in a tile of addends are live. */
enum { LIVE_NONE, LIVE_SOME, LIVE_ALL };

INLINE int addends_live(const real *addends, int keys) {
    ivec live = ivec_splat(0), masked = ivec_splat(0);
    for (int n = 0; n < keys * LANES; n += WIDTH) {
        const ivec hidden = vec_load(addends + n) == vec_splat(-INFINITY);
        masked |= hidden;
        live |= ~hidden;
    }
    if (!ivec_any(live)) return LIVE_NONE;
    return ivec_any(masked) ? LIVE_SOME : LIVE_ALL;
}

/* The addends of `keys` keys from `start` on; ranges: each lane's live keys, counted from there. */
INLINE int addends_load(real *addends, const modifiers *mods, const attention_params *p, __global const uchar *mask,
                        __global const void *bias, i64 start, int keys, const integer *firsts, const integer *ends) {
    if (p->has_mask) {
        int any = 0;
        for (int lane = 0; lane < LANES && !any; lane++)
            any = mask_row_any(mask + mods->mask_row[lane] + (start + firsts[lane]) * p->mask.d, p->mask.d,
                               ends[lane] - firsts[lane]);
        if (!any) return LIVE_NONE;
    }
    for (int lane = 0; lane < LANES; lane++) {
        const key_range live = {firsts[lane], ends[lane]};
        addends_lane(addends + lane, p, mask + mods->mask_row[lane] + start * p->mask.d, bias,
                     mods->bias_row[lane] + start * p->bias.d, live, keys);
    }
    return addends_live(addends, keys);
}

#endif

#endif
