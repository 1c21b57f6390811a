/* weights[b,h,i,j] = exp(scores[b,h,i,j] - lse[b,h,i]),
 * lse[b,h,i] = log of the sum over live j of exp(scores[b,h,i,j]) + exp(sinks[b,h]) where there are sinks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A score of -infinity weighs 0 in any row; a row of nothing else has weights 0 and lse -infinity, or its sink. A NaN or a
 * +infinity makes the rest of its row NaN.
 * Source and destination may be the same memory.
 *
 * Shapes          scores, weights (batch, heads_q, len_q, len_kv), lse (batch, heads_q, len_q, 1) where has_lse
 * Group           TILE_M rows of one head; LANES = WORK_GROUP / TILE_M work-items walk a row side by side
 * Work-item       first the maximum and the sum relative to it of every LANES-th score in one pass (Milakov, Gimelshein 2018),
 *                 then, when the lanes' sums have been joined, the same scores again as weights
 * Local memory    2 * WORK_GROUP floats
 * Work-group      WORK_GROUP, a power of two and a multiple of TILE_M
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#include "heads.h"

#ifndef TILE_M
#error "TILE_M comes from the kernel's row"
#endif
#define LANES (WORK_GROUP / TILE_M)

/* A sum of exponentials, relative to its largest exponent. fmax drops a NaN, but the sum then holds it. */
typedef struct exp_sum {
    float max, sum;
} exp_sum;

INLINE exp_sum join(exp_sum a, exp_sum b) {
    exp_sum both;
    both.max = fmax(a.max, b.max);
    both.sum = a.sum * exp(a.max - pivot(both.max)) + b.sum * exp(b.max - pivot(both.max));
    return both;
}

/* -infinity weighs 0 even in a row of NaN, whose scale is one: it may be that of a masked key. */
INLINE float weight_of(float score, float max, float scale) {
    return score == -INFINITY ? 0.0f : exp(score - pivot(max)) * scale;
}

/* The lane's first key from `key` on. */
INLINE i64 lane_from(i64 key, int lane) { return (key + LANES - 1 - lane) / LANES * LANES + lane; }

INLINE exp_sum sum_of_lane(const global float *from, i64 stride, key_range live, int lane) {
    exp_sum total = {-INFINITY, 0.0f};
    for (i64 j = lane_from(live.first, lane); j < live.end; j += LANES) {
        const exp_sum one = {from[j * stride], 1.0f};
        total = join(total, one);
    }
    return total;
}

/* Join the lanes' sums in a tree: every lane of the row gets the whole. */
INLINE exp_sum sum_of_row(local exp_sum *sums, exp_sum own, int lane) {
    local exp_sum *row = sums + get_local_id(0) - lane;
    row[lane] = own;
    for (int reach = LANES / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) row[lane] = join(row[lane], row[lane + reach]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return row[0];
}

KERNEL void softmax(const global float *scores, global float *weights, global float *lse, INT_BUFFER kv_lengths,
                    const global float *sinks, const attention_params p) {
    local exp_sum sums[WORK_GROUP];
    const int lane = (int)get_local_id(0) % LANES, row = (int)get_local_id(0) / LANES;
    const i64 tiles_i = tiles_of(p.len_q, TILE_M);
    scores += p.base[0];
    weights += p.base[1];
    lse += p.base[2];
    kv_lengths += p.base[3];
    sinks += p.base[4];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 i = group % tiles_i * TILE_M + row;
        const head at = head_at(&p, group / tiles_i);
        const member m = member_of(&p, kv_lengths, kv_lengths, kv_lengths, at.b);
        const key_range none = {0, 0}, live = i < p.len_q ? live_range(&p, &m, i) : none;
        const global float *from = scores + offset_of(p.scores, at.b, at.h, i, 0);
        global float *to = weights + offset_of(p.weights, at.b, at.h, i, 0);

        const exp_sum sink = {p.has_sinks ? sinks[at.b * p.sinks_b + at.h * p.sinks_h] : -INFINITY, 1.0f};
        const exp_sum total = join(sum_of_row(sums, sum_of_lane(from, p.scores.d, live, lane), lane), sink);
        const float scale = total.sum == 0.0f ? 0.0f : 1.0f / total.sum;
        for (i64 j = lane_from(live.first, lane); j < live.end; j += LANES)
            to[j * p.weights.d] = weight_of(from[j * p.scores.d], total.max, scale);
        for (i64 j = lane; j < live.first; j += LANES) to[j * p.weights.d] = 0.0f;
        for (i64 j = live.end + lane; j < p.len_kv && i < p.len_q; j += LANES) to[j * p.weights.d] = 0.0f;
        if (p.has_lse && lane == 0 && i < p.len_q) lse[offset_of(p.lse, at.b, at.h, i, 0)] = total.max + log(total.sum);
        barrier(CLK_LOCAL_MEM_FENCE); /* before the next row's sums */
    }
}
