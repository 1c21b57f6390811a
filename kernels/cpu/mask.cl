/* weights[b,h,i,j] = scores[b,h,i,j] for a live key j of query i, -infinity for a masked one. May work in place.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = (b * heads_q + h) * ceil(len_q / TILE_M) + tile of TILE_M queries. No private memory.
 */
#include "prelude.h"
#include "../mask.h"

#if !defined(TILE_M)
#error "TILE_M: queries of a group"
#endif

INLINE void mask_row(__global const float *from, i64 from_step, __global float *to, i64 to_step, key_range live, i64 keys) {
    i64 j = 0;
    for (; j < live.first; j++) to[j * to_step] = -INFINITY;
    if (from_step == 1 && to_step == 1) {
        for (; j + VECTOR_WIDTH <= live.end; j += VECTOR_WIDTH) vec_store(vec_load(from + j), to + j);
    }
    for (; j < live.end; j++) to[j * to_step] = from[j * from_step];
    for (; j < keys; j++) to[j * to_step] = -INFINITY;
}

__kernel GROUP_OF_ONE void mask(__global const float *scores, __global float *weights, INT_BUFFER kv_lengths,
                               __global const uchar *hidden, __global const void *bias, __global const float *slopes, attention_params p) {
    scores += p.base[0], weights += p.base[1], kv_lengths += p.base[2];
    i64 tiles = (p.len_q + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        i64 b = group / tiles / p.heads_q, h = group / tiles % p.heads_q, first = group % tiles * TILE_M;
        i64 end = first + TILE_M < p.len_q ? first + TILE_M : p.len_q;
        const member m = member_of(&p, kv_lengths, kv_lengths, kv_lengths, b);
        for (i64 i = first; i < end; i++)
            mask_row(scores + b * p.scores.b + h * p.scores.h + i * p.scores.l, p.scores.d,
                     weights + b * p.weights.b + h * p.weights.h + i * p.weights.l, p.weights.d, live_range(&p, &m, i), p.len_kv);
    }
}
