/* weights[b,h,i,j] = scores[b,h,i,j] where the mask lets query i look at key j, else -infinity.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source and destination may be the same memory.
 *
 * Shapes          both (batch, heads_q, len_q, len_kv)
 * Group           TILE_M rows of one head; WORK_GROUP / TILE_M work-items walk a row side by side
 * Local memory    none
 * Work-group      WORK_GROUP, a multiple of TILE_M
 * Compiled        for sm_90 by clang 15 and ptxas 13: 32 registers, no spills;
 *                 not yet measured on a GPU
 */
#include "heads.h"

#ifndef TILE_M
#error "TILE_M comes from the kernel's row"
#endif
#define LANES (WORK_GROUP / TILE_M)

KERNEL void mask(const global float *scores, global float *weights, INT_BUFFER kv_lengths, const global uchar *hidden,
                 const global void *bias, const global float *slopes, const attention_params p) {
    const int lane = (int)get_local_id(0) % LANES, row = (int)get_local_id(0) / LANES;
    const i64 tiles_i = tiles_of(p.len_q, TILE_M);
    scores += p.base[0];
    weights += p.base[1];
    kv_lengths += p.base[2];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 i = group % tiles_i * TILE_M + row;
        const head at = head_at(&p, group / tiles_i);
        if (i >= p.len_q) continue;
        const member m = member_of(&p, kv_lengths, kv_lengths, kv_lengths, at.b);
        const key_range live = live_range(&p, &m, i);
        const global float *from = scores + offset_of(p.scores, at.b, at.h, i, 0);
        global float *to = weights + offset_of(p.weights, at.b, at.h, i, 0);
        for (i64 j = lane; j < p.len_kv; j += LANES) to[j * p.weights.d] = is_live(live, j) ? from[j * p.scores.d] : -INFINITY;
    }
}
