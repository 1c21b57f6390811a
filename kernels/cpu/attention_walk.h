/* The walk of attention's groups over their queries and tiles of keys, for attention.cl and what computes the same by other
 * products.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Who includes it has included attention_block.h and defined
 *      OUT_DIM(p)                                   value_dim, or what it is padded to
 *      block_load(mem, n, hd, p, m, first)          the queries of block n, from `first` on
 *      kv_tile, kv_tile_load(tile, mem, hd, p, first, start, live)    a tile of keys and values, of which live ones are looked at,
 *                                                   for the group from query `first` on
 *      FIRST_TILES                                  how many tiles nothing but fetch_first fetches
 *      block_scores(blk, mem, n, rows, tile, at, p) scores of block n, and block_maximum of them; the first is of key `at` of the tile
 *      block_values(blk, mem, n, tile, at, p)       block n's sums, rescaled, and the tile's values by the weights in mem->s
 */
#ifndef CLATTN_KERNELS_CPU_ATTENTION_WALK_H
#define CLATTN_KERNELS_CPU_ATTENTION_WALK_H

/* Have the first tiles of K and V near while the queries are transposed. */
INLINE void fetch_first(const head *hd, const attention_params *p, key_range live) {
    const i64 some = live.first + FIRST_TILES * TILE_KV, end = some < live.end ? some : live.end;
    for (i64 j = live.first; j < end; j++) {
        for (int d = 0; d < p->head_dim; d += LINE) FETCH(hd->k + j * p->k.l + d * p->k.d);
        for (int d = 0; d < p->value_dim; d += LINE) FETCH(hd->v + j * p->v.l + d * p->v.d);
    }
}

/* The rows from `first` on, TILE_Q at most, of one head or group of heads. */
INLINE void attend(const memory *mem, const head *hd, const attention_params *p, const member *m, i64 first) {
    block blocks[BLOCKS];
    row_options rows[MODIFIED ? BLOCKS * LANES : 1];
    const i64 left = hd->rows - first < TILE_Q ? hd->rows - first : TILE_Q;
    const int count = (int)((left + LANES - 1) / LANES), out_size = LANES * OUT_DIM(p);

    const key_range live = live_for_rows(hd, p, m, first, left);
    fetch_first(hd, p, live);
    for (int n = 0; n < count; n++) {
        block_start(&blocks[n]);
        block_load(mem, n, hd, p, m, first + n * LANES);
        for (int lane = 0; MODIFIED && lane < LANES; lane++) {
            const i64 row = row_in_lane(hd, first + n * LANES, lane), i = query_of_row(m, row), h = hd->h + head_of_row(m, row);
            rows[n * LANES + lane] =
                row_options_of(p, hd->mask, hd->bias, hd->b, h, i, i + m->offset, slope_of(p, hd->slopes, hd->b, h));
        }
    }
    for (int n = 0; n < count * out_size; n += WIDTH) vec_store_aligned(vec_splat(REAL(0.0)), mem->ot + n);
    for (i64 start = live.first / TILE_KV * TILE_KV; start < live.end; start += TILE_KV) {
        kv_tile tile;
        int loaded = 0;
        for (int n = 0; n < count; n++) {
            block *blk = &blocks[n];
            const row_options *block_rows = &rows[MODIFIED ? n * LANES : 0];
            if (!block_looks(blk, mem, block_rows, hd, p, m, first + n * LANES, start)) continue;
            if (!loaded) {
                kv_tile_load(&tile, mem, hd, p, first, start, live);
                loaded = 1;
            }
            block_scores(blk, mem, n, block_rows, &tile, blk->start - start, p);
            block_weights(blk, mem->s);
            block_values(blk, mem, n, &tile, blk->start - start, p);
        }
    }
    for (int n = 0; n < count; n++) block_store(&blocks[n], mem->ot + n * out_size, hd, p, m, first + n * LANES);
}

#if GROUPED
INLINE void attend_parts(const memory *mem, __global const stored *restrict q, __global const stored *restrict k,
                         __global const stored *restrict v, __global float *restrict out, __global float *restrict lse,
                         INT_BUFFER kv_lengths, __global const uchar *mask, __global const void *bias,
                         __global const float *slopes, const attention_params *p) {
    q += p->base[0], k += p->base[1], v += p->base[2], out += p->base[3], lse += p->base[4], kv_lengths += p->base[5];
    mask += p->base[6], slopes += p->base[8];
    for (i64 group = get_group_id(0); group < p->groups; group += get_num_groups(0)) {
        const split_group at = split_group_at(p, TILE_Q, group);
        const member whole = member_of(p, kv_lengths, kv_lengths, kv_lengths, at.b);
        const member m = MODIFIED ? within_elements(p, whole) : whole;
        const head hd = {q + at.b * p->q.b + at.h * p->q.h,
                         k + at.b * p->k.b + at.g * p->k.h,
                         v + at.b * p->v.b + at.g * p->v.h,
                         out + at.b_out * p->out.b + at.h * p->out.h,
                         lse + at.b_out * p->lse.b + at.h * p->lse.h,
                         mask,
                         bias_from(p, bias, p->base[7]),
                         slopes,
                         at.b,
                         at.h,
                         at.rows,
                         split_part(p, &m, at.part),
                         REAL(0.0)};
        attend(mem, &hd, p, &m, at.first);
    }
}
#else
INLINE void attend_groups(const memory *mem, __global const stored *restrict q, __global const stored *restrict k,
                          __global const stored *restrict v, __global stored *restrict out, __global float *restrict lse,
                          INT_BUFFER kv_lengths, INT_BUFFER q_offsets, INT_BUFFER kv_offsets, __global const uchar *mask,
                          __global const void *bias, __global const float *slopes, __global const float *sinks,
                          const attention_params *p) {
    q += p->base[0], k += p->base[1], v += p->base[2], out += p->base[3], lse += p->base[4];
    kv_lengths += p->base[5], q_offsets += p->base[6], kv_offsets += p->base[7], mask += p->base[8];
    slopes += p->base[10], sinks += p->base[11];
    for (i64 group = get_group_id(0); group < p->groups; group += get_num_groups(0)) {
        const query_tile at = query_tile_at(p, q_offsets, TILE_Q, group);
        const member whole = member_of(p, kv_lengths, q_offsets, kv_offsets, at.b);
        const member m = MODIFIED ? within_elements(p, whole) : whole;
        if (at.tile * TILE_Q >= m.len_q) continue;
        const i64 q_b = p->q_offsets.present ? 0 : at.b, kv_b = p->kv_offsets.present ? 0 : at.b;
        const head hd = {q + q_b * p->q.b + at.h * p->q.h + m.q_first * p->q.l,
                         k + kv_b * p->k.b + at.g * p->k.h + m.kv_first * p->k.l,
                         v + kv_b * p->v.b + at.g * p->v.h + m.kv_first * p->v.l,
                         out + q_b * p->out.b + at.h * p->out.h + m.q_first * p->out.l,
                         lse + q_b * p->lse.b + at.h * p->lse.h + m.q_first * p->lse.l,
                         mask,
                         bias_from(p, bias, p->base[9]),
                         slopes,
                         at.b,
                         at.h,
                         m.len_q,
                         {0, m.len_kv},
                         p->has_sinks ? sinks[at.b * p->sinks_b + at.h * p->sinks_h] : REAL(0.0)};
        attend(mem, &hd, p, &m, at.tile * TILE_Q);
    }
}

#endif

#endif
