/* out[b,h,i,:] = sum over live j of softmax_j(score[b,h,i,j]) * v[b,g,j,:],  g = h / (heads_q / heads_kv), where score is
 * scale * <q[b,h,i,:], k[b,g,j,:]> as softcap, bias and ALiBi modify it (options.h), and a sink is one more score, of no value;
 * lse[b,h,i] = natural log of the sum over live j of exp(score), and the sink's.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          q (batch, heads_q, len_q, head_dim), k (batch, heads_kv, len_kv, head_dim), v (.., len_kv, value_dim),
 *                 out (batch, heads_q, len_q, value_dim), lse (batch, heads_q, len_q, 1) where has_lse; ragged batches: mask.h
 * Group           TILE_Q queries of one head, over tiles of TILE_KV keys; the queries with most keys come first
 * Work-item, local memory    as attend.h says
 * Work-group      WORK_GROUP, a power of two
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 * Tried           both directions of loading for each operand: 40 registers more, and spills; TILE_J 16 in 64x64: spills;
 *                 loops bounded by function arguments: unrolled before they were inlined, arrays in local memory; each row's
 *                 range asked again where values are added, in place of marked weights: spills; TILE_K 16 in 64x64: spills on
 *                 sm_80 and sm_120; 64x64 where MODIFIED: spills; 32x64 with four rows an item past 256: spills;
 *                 8x64 past 128 on AMD, since tiles are loaded by vectors: spills where MODIFIED
 */
#define SPLIT 0
#include "attend.h"

KERNEL void attention(const global element *q, const global element *k, const global element *v, global element *out,
                      global float *lse, INT_BUFFER kv_lengths, INT_BUFFER q_offsets, INT_BUFFER kv_offsets,
                      const global uchar *mask, const global void *bias, const global float *slopes,
                      const global float *sinks, const attention_params p) {
    local float4 weights[TILE_VECTORS(TILE_Q, TILE_KV)], buffer[BUFFER_VECTORS];
    local float row_slopes[TILE_Q];
    local int flag;
    q += p.base[0];
    k += p.base[1];
    v += p.base[2];
    out += p.base[3];
    lse += p.base[4];
    kv_lengths += p.base[5];
    q_offsets += p.base[6];
    kv_offsets += p.base[7];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const query_tile at = query_tile_at(&p, q_offsets, TILE_Q, group);
        const member m = member_of(&p, kv_lengths, q_offsets, kv_offsets, at.b);
        const i64 i = (tiles_of(m.len_q, TILE_Q) - 1 - at.tile) * TILE_Q;
        if (i < 0) continue;
        const row_tile tile = {at.b, at.h, i, m.len_q - i};
        const key_range any = live_for_any(&p, &m, i, TILE_Q), all = live_for_all(&p, &m, i, TILE_Q);
        const operand queries = operand_of(q + offset_of(p.q, at.b, at.h, m.q_first + i, 0), p.q.l, p.q.d, tile.left, true);
        const tile_options options = {mask, bias, p.base[8] + offset_of(p.mask, at.b, at.h, i, 0),
                                      p.base[9] + offset_of(p.bias, at.b, at.h, i, 0), row_slopes, &flag};
        if (MODIFIED)
            for (int row = (int)get_local_id(0); row < TILE_Q; row += WORK_GROUP)
                row_slopes[row] = alibi_slope(&p, slopes + p.base[10], at.b, at.h);
        rows_state rows;
        begin_rows(&rows);
        attend(&p, &m, &tile, &rows, weights, buffer, queries, k + offset_of(p.k, at.b, at.g, m.kv_first, 0),
               v + offset_of(p.v, at.b, at.g, m.kv_first, 0), options, any, all);
        write_rows(&p, &tile, &rows, (local float *)buffer, out + offset_of(p.out, at.b, at.h, m.q_first + i, 0),
                   p.has_lse ? lse + offset_of(p.lse, at.b, at.h, m.q_first + i, 0) : 0,
                   p.has_sinks ? sinks[p.base[11] + at.b * p.sinks_b + at.h * p.sinks_h] : -INFINITY);
    }
}
