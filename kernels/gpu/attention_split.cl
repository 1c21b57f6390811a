/* attention over the keys part * split <= j < (part + 1) * split alone, for few queries and many keys: out and lse are those of
 * the part, at batch member part * batch + b, for merge to join. A part without live keys has lse -infinity and out 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          q (batch, heads_q, len_q, head_dim), k (batch, heads_kv, len_kv, head_dim), v (.., len_kv, value_dim),
 *                 out f32 (parts * batch, heads_q, len_q, value_dim), lse f32 (parts * batch, heads_q, len_q, 1)
 * Group           TILE_Q rows over one part's keys, in tiles of TILE_KV; rows are the len_q queries of the first of the query
 *                 heads that read one key/value head, those of the second, ..., so that all of them share each read of k and v
 * Work-item       as attend.h says
 * Local memory    as attend.h says, and where each row of q is
 * Work-group      WORK_GROUP, a power of two
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 * Tried           q's rows as an operand that jumps from head to head: 20 to 40 registers more, spills from 256 on; 16x64 with four rows
 *                 an item past 128, or two past 256: spills
 */
#define SPLIT 1
#include "attend.h"

/* What the work-items keep of a tile's rows in local memory. Begins with it free. */
INLINE void place_rows(const attention_params *p, const row_tile *tile, local i64 *places, local float *row_slopes,
                       const global float *slopes) {
    for (int row = (int)get_local_id(0); row < TILE_Q && row < tile->left; row += WORK_GROUP) {
        places[row] = row_offset(p, tile, p->q, row);
        if (MODIFIED) row_slopes[row] = alibi_slope(p, slopes, tile->b, tile->h + heads_before(p, tile, row));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

KERNEL void attention_split(const global element *q, const global element *k, const global element *v, global float *out,
                            global float *lse, INT_BUFFER kv_lengths, const global uchar *mask, const global void *bias,
                            const global float *slopes, const attention_params p) {
    local float4 weights[TILE_VECTORS(TILE_Q, TILE_KV)], buffer[BUFFER_VECTORS];
    local float row_slopes[TILE_Q];
    local int flag;
    local i64 places[TILE_Q];
    q += p.base[0];
    k += p.base[1];
    v += p.base[2];
    out += p.base[3];
    lse += p.base[4];
    kv_lengths += p.base[5];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const split_group at = split_group_at(&p, TILE_Q, group);
        const member m = member_of(&p, kv_lengths, kv_lengths, kv_lengths, at.b);
        const i64 h = at.h + at.first / p.len_q, i = at.first % p.len_q;
        const row_tile tile = {at.b, h, i, at.rows - at.first};
        const key_range part = {at.part * p.split, (at.part + 1) * p.split};
        const key_range any = live_for_any(&p, &m, 0, p.len_q), all = live_for_all(&p, &m, 0, p.len_q);
        const key_range within = {max(any.first, part.first), min(any.end, part.end)};
        operand queries = operand_of(q + offset_of(p.q, at.b, h, i, 0), 0, p.q.d, tile.left, true);
        queries.placed = true;
        queries.places = places;
        const tile_options options = {mask, bias, p.base[6] + offset_of(p.mask, at.b, h, i, 0),
                                      p.base[7] + offset_of(p.bias, at.b, h, i, 0), row_slopes, &flag};
        place_rows(&p, &tile, places, row_slopes, slopes + p.base[8]);
        rows_state rows;
        begin_rows(&rows);
        attend(&p, &m, &tile, &rows, weights, buffer, queries, k + offset_of(p.k, at.b, at.g, 0, 0),
               v + offset_of(p.v, at.b, at.g, 0, 0), options, within, all);
        write_rows(&p, &tile, &rows, (local float *)buffer, out + offset_of(p.out, at.b_out, h, i, 0),
                   lse + offset_of(p.lse, at.b_out, h, i, 0), -INFINITY);
    }
}
