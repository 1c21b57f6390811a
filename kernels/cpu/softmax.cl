/* weights[b,h,i,:] = softmax of the live scores[b,h,i,:], lse = log of the row's sum of exp(score). May work in place.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A score of -infinity weighs 0; a row of nothing else has weights 0 and lse -infinity. NaN and +infinity make the row NaN, but
 * masked keys weigh 0 even there.
 * group = (b * heads_q + h) * ceil(len_q / TILE_M) + tile of TILE_M queries. Keys lie in lanes: three walks over a row (maximum,
 * exponentials and their sum, quotient), then one reduction across lanes. No private memory beyond a vector.
 */
#include "prelude.h"
#include "../mask.h"

#if !defined(TILE_M)
#error "TILE_M: queries of a group"
#endif

/* The scores from key j on; -infinity in the lanes of masked keys. */
INLINE vec live_load(__global const float *row, i64 step, i64 j, key_range live) {
    vec scores = row_load(row + j * step, step, live.end - j, -INFINITY);
    if (j >= live.first) return scores;
    float lanes[VECTOR_WIDTH];
    vec_store(scores, lanes);
    for (int lane = 0; lane < VECTOR_WIDTH && lane < live.first - j; lane++) lanes[lane] = -INFINITY;
    return vec_load(lanes);
}

/* Softmax of a row's live scores, in vectors that begin at multiples of their width: what it writes into the first one's masked
 * lanes is of no use. Returns the log-sum-exp. The maximum need not keep a NaN: exp(NaN - max) is NaN, and so is the sum. */
INLINE float softmax_row(__global const float *from, i64 from_step, __global float *to, i64 to_step, key_range live) {
    i64 first = live.first / VECTOR_WIDTH * VECTOR_WIDTH, end = live.end;
    float lanes[VECTOR_WIDTH], row_max = -INFINITY, row_sum = 0.0f;
    vec tops = vec_splat(-INFINITY), sums = vec_splat(0.0f);
    for (i64 j = first; j < end; j += VECTOR_WIDTH) tops = vec_max(tops, live_load(from, from_step, j, live));
    vec_store(tops, lanes);
    for (int lane = 0; lane < VECTOR_WIDTH; lane++) row_max = lanes[lane] > row_max ? lanes[lane] : row_max;

    vec shift = vec_splat(row_max == -INFINITY ? 0.0f : row_max);
    for (i64 j = first; j < end; j += VECTOR_WIDTH) {
        vec weight = vec_exp(live_load(from, from_step, j, live) - shift);
        sums += weight;
        row_store(to + j * to_step, to_step, end - j, weight);
    }
    vec_store(sums, lanes);
    for (int lane = 0; lane < VECTOR_WIDTH; lane++) row_sum += lanes[lane];

    vec factor = vec_splat(row_sum == 0.0f ? 1.0f : 1.0f / row_sum);
    for (i64 j = first; j < end; j += VECTOR_WIDTH)
        row_store(to + j * to_step, to_step, end - j, factor * row_load(to + j * to_step, to_step, end - j, 0.0f));
    return row_max + log(row_sum);
}

__kernel GROUP_OF_ONE void softmax(__global const float *scores, __global float *weights, __global float *lse,
                                   INT_BUFFER kv_lengths, __global const float *sinks, attention_params p) {
    scores += p.base[0], weights += p.base[1], lse += p.base[2], kv_lengths += p.base[3];
    i64 tiles = (p.len_q + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        i64 b = group / tiles / p.heads_q, h = group / tiles % p.heads_q, first = group % tiles * TILE_M;
        i64 end = first + TILE_M < p.len_q ? first + TILE_M : p.len_q;
        const member m = member_of(&p, kv_lengths, kv_lengths, kv_lengths, b);
        for (i64 i = first; i < end; i++) {
            __global float *row = weights + b * p.weights.b + h * p.weights.h + i * p.weights.l;
            key_range live = live_range(&p, &m, i);
            float sum = softmax_row(scores + b * p.scores.b + h * p.scores.h + i * p.scores.l, p.scores.d, row, p.weights.d, live);
            for (i64 j = 0; j < live.first; j++) row[j * p.weights.d] = 0.0f;
            for (i64 j = live.end; j < p.len_kv; j++) row[j * p.weights.d] = 0.0f;
            if (p.has_lse) lse[b * p.lse.b + h * p.lse.h + i * p.lse.l] = sum;
        }
    }
}
