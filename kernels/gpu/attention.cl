/* out[b,h,i,:] = sum over live j of softmax_j(scale * <q[b,h,i,:], k[b,g,j,:]>) * v[b,g,j,:],  g = h / (heads_q / heads_kv);
 * lse[b,h,i] = natural log of the sum over live j of exp(score). One pass over the keys: Dao 2023 (FlashAttention-2), alg. 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          q (batch, heads_q, len_q, head_dim), k (batch, heads_kv, len_kv, head_dim), v (.., len_kv, value_dim),
 *                 out (batch, heads_q, len_q, value_dim), lse (batch, heads_q, len_q, 1) where has_lse
 * Group           TILE_Q queries of one head, over tiles of TILE_KV keys; the queries with most keys come first
 * Work-item       REG_M queries by TILE_KV / ACROSS scores and VALUE_DIM_MAX / ACROSS outputs, in registers (tile.h); each of
 *                 the ACROSS items of a row knows its maximum, and sums the weights of its own columns until the end
 * Local memory    the weights of a tile, TILE_KV * (TILE_Q + 4) floats, and one buffer that holds in turn TILE_K-deep tiles of
 *                 q and k, what a row's items share, and TILE_J lines of v
 * Work-group      WORK_GROUP, a power of two
 * Compiled        for sm_90 by clang 15 and ptxas 13, no spills; registers, and FFMA in the inner loops of scores / of values:
 *                 64x64 254, 84 % / 90 % (VALUE_DIM_MAX 128); 64x64_wide 246, 76 % / 89 % (256); 32x64 250, 62 % / 85 % (576);
 *                 not yet measured on a GPU
 * Tried           both directions of loading for each operand: 40 registers more, and spills; TILE_J 16 in 64x64: spills;
 *                 loops bounded by function arguments: unrolled before they were inlined, arrays in local memory
 *
 * head_dim may be anything: q is read again for each tile of keys (from a cache) instead of being kept. VALUE_DIM_MAX, to which
 * the host rounds value_dim up, decides registers and local memory.
 *
 * A masked score is -infinity before the maximum, so that no NaN of a masked key gets further; its value is left out of the sum
 * rather than multiplied by 0. Tiles whose every key is masked for every row are not visited. fmax drops a NaN, but the weight
 * of a NaN score is NaN and through the row's sum spoils that row alone.
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
