/* weights[b,h,i,:] = softmax of the live scores[b,h,i,:] and the sink, lse = log of the sum of their exponentials. May work in
 * place.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A score of -infinity weighs 0 in any row; a row of nothing else has weights 0, and lse -infinity or the sink. NaN and
 * +infinity make the rest of the row NaN.
 * group = (b * heads_q + h) * ceil(len_q / TILE_M) + tile of TILE_M queries. Keys lie in lanes: three walks over a row (maximum,
 * exponentials and their sum, quotient), then one reduction across lanes. No private memory beyond a vector.
 */
#include "prelude.h"
#include "../mask.h"

#if !defined(TILE_M)
#error "TILE_M: queries of a group"
#endif
/* How the second walk tells the third of a score of -infinity: exponentials are 0 or above. */
#define NEVER REAL(-0.0)

/* The scores from key j on; -infinity in the lanes of masked keys. */
INLINE vec live_load(__global const real *row, i64 step, i64 j, key_range live) {
    vec scores = row_load(row + j * step, step, live.end - j, -INFINITY);
    if (j >= live.first) return scores;
    real lanes[WIDTH];
    vec_store(scores, lanes);
    for (int lane = 0; lane < WIDTH && lane < live.first - j; lane++) lanes[lane] = -INFINITY;
    return vec_load(lanes);
}

/* Softmax of a row's live scores, in vectors that begin at multiples of their width: what it writes into the first one's masked
 * lanes is of no use. Returns the log-sum-exp. The maximum need not keep a NaN: exp(NaN - max) is NaN, and so is the sum. */
INLINE real softmax_row(__global const real *from, i64 from_step, __global real *to, i64 to_step, key_range live,
                        real sink) {
    const i64 first = live.first / WIDTH * WIDTH, end = live.end;
    const vec masked = vec_splat(-INFINITY), never = vec_splat(NEVER), zero = vec_splat(REAL(0.0));
    real lanes[WIDTH], row_max = sink, row_sum;
    vec tops = masked, sums = zero;
    for (i64 j = first; j < end; j += WIDTH) tops = vec_max(tops, live_load(from, from_step, j, live));
    vec_store(tops, lanes);
    for (int lane = 0; lane < WIDTH; lane++) row_max = lanes[lane] > row_max ? lanes[lane] : row_max;

    const vec shift = vec_splat(row_max == -INFINITY ? REAL(0.0) : row_max);
    for (i64 j = first; j < end; j += WIDTH) {
        const vec score = live_load(from, from_step, j, live), weight = vec_exp(score - shift);
        sums += weight;
        row_store(to + j * to_step, to_step, end - j, vec_select(score == masked, never, weight));
    }
    vec_store(vec_exp(vec_splat(sink) - shift), lanes);
    row_sum = sink == -INFINITY ? REAL(0.0) : lanes[0];
    vec_store(sums, lanes);
    for (int lane = 0; lane < WIDTH; lane++) row_sum += lanes[lane];

    const vec factor = vec_splat(row_sum == REAL(0.0) ? REAL(1.0) : REAL(1.0) / row_sum);
    for (i64 j = first; j < end; j += WIDTH) {
        const vec weight = row_load(to + j * to_step, to_step, end - j, REAL(0.0));
        const ivec masked_lanes = vec_bits(weight) == vec_bits(never);
        row_store(to + j * to_step, to_step, end - j, vec_select(masked_lanes, zero, factor * weight));
    }
    return row_max + log(row_sum);
}

__kernel GROUP_OF_ONE void softmax(__global const real *scores, __global real *weights, __global float *lse,
                                   INT_BUFFER kv_lengths, __global const float *sinks, attention_params p) {
    scores += p.base[0], weights += p.base[1], lse += p.base[2], kv_lengths += p.base[3], sinks += p.base[4];
    const i64 tiles = (p.len_q + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 b = group / tiles / p.heads_q, h = group / tiles % p.heads_q, first = group % tiles * TILE_M;
        const i64 end = first + TILE_M < p.len_q ? first + TILE_M : p.len_q;
        const member m = member_of(&p, kv_lengths, kv_lengths, kv_lengths, b);
        const real sink = p.has_sinks ? (real)sinks[b * p.sinks_b + h * p.sinks_h] : -INFINITY;
        for (i64 i = first; i < end; i++) {
            __global real *row = weights + b * p.weights.b + h * p.weights.h + i * p.weights.l;
            const key_range live = live_range(&p, &m, i);
            const real sum = softmax_row(scores + b * p.scores.b + h * p.scores.h + i * p.scores.l, p.scores.d, row, p.weights.d,
                                         live, sink);
            for (i64 j = 0; j < live.first; j++) row[j * p.weights.d] = REAL(0.0);
            for (i64 j = live.end; j < p.len_kv; j++) row[j * p.weights.d] = REAL(0.0);
            if (p.has_lse) lse[b * p.lse.b + h * p.lse.h + i * p.lse.l] = (float)sum;
        }
    }
}
