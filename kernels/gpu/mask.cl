/* weights[b,h,i,j] = what softcap, bias and ALiBi make of scores[b,h,i,j] where query i may look at key j, else -infinity.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source and destination may be the same memory.
 *
 * Shapes          both (batch, heads_q, len_q, len_kv)
 * Group           TILE_M rows of one head; WORK_GROUP / TILE_M work-items walk a row side by side
 * Local memory    none
 * Work-group      WORK_GROUP, a multiple of TILE_M
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#include "heads.h"
#include "options.h"

#ifndef TILE_M
#error "TILE_M comes from the kernel's row"
#endif
#define LANES (WORK_GROUP / TILE_M)

KERNEL void mask(const global float *scores, global float *weights, INT_BUFFER kv_lengths, const global uchar *mask,
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
        const row_options options = {mask,
                                     bias,
                                     p.base[3] + offset_of(p.mask, at.b, at.h, i, 0),
                                     p.base[4] + offset_of(p.bias, at.b, at.h, i, 0),
                                     i + m.offset,
                                     alibi_slope(&p, slopes + p.base[5], at.b, at.h)};
        const global float *from = scores + offset_of(p.scores, at.b, at.h, i, 0);
        global float *to = weights + offset_of(p.weights, at.b, at.h, i, 0);
        for (i64 j = lane; j < p.len_kv; j += LANES) {
            bool hidden;
            to[j * p.weights.d] = is_live(live, j) ? modified_score(&p, &options, from[j * p.scores.d], j, &hidden) : -INFINITY;
        }
    }
}
