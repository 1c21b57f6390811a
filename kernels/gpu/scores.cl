/* scores[b,h,i,j] = scale * sum over d of q[b,h,i,d] * k[b,g,j,d], with g = h / (heads_q / heads_kv); before any mask.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          q (batch, heads_q, len_q, head_dim), k (batch, heads_kv, len_kv, head_dim), scores (.., len_q, len_kv)
 * Group           one TILE_M x TILE_N tile of one head's scores; tiles of a row of tiles follow one another
 * Work-item       REG_M rows by TILE_N / ACROSS columns of it, in registers (tile.h)
 * Local memory    (TILE_M + 4 + TILE_N + 4) * TILE_K floats
 * Work-group      WORK_GROUP, a power of two
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#include "heads.h"
#include "tile.h"

#define VECTORS TILE_COLUMNS(TILE_N)

INLINE void write_scores(const attention_params *p, global float *scores, head at, i64 i, i64 j, const float4 *acc) {
    UNROLL for (int r = 0; r < REG_M; r++) {
        const i64 row = i + item_row() + r;
        UNROLL for (int c = 0; c < VECTORS; c++) {
            const i64 column = j + 4 * (c * ACROSS + item_column());
            if (row < p->len_q && column < p->len_kv)
                write_floats(scores + offset_of(p->scores, at.b, at.h, row, column), p->scores.d,
                             acc[r * VECTORS + c] * p->scale, clamp_to_tile(p->len_kv - column, 4));
        }
    }
}

KERNEL void scores(const global float *q, const global float *k, global float *scores, const attention_params p) {
    local float4 tile_q[TILE_VECTORS(TILE_M, TILE_K)], tile_k[TILE_VECTORS(TILE_N, TILE_K)];
    float4 acc[REG_M * VECTORS];
    const i64 tiles_j = tiles_of(p.len_kv, TILE_N), tiles_i = tiles_of(p.len_q, TILE_M);
    q += p.base[0];
    k += p.base[1];
    scores += p.base[2];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const head_tile tile = head_tile_at(&p, tiles_i, tiles_j, group);
        const head at = tile.at;
        const i64 i = tile.down * TILE_M, j = tile.along * TILE_N;
        const operand rows = operand_of(q + offset_of(p.q, at.b, at.h, i, 0), p.q.l, p.q.d, p.len_q - i, true);
        const operand columns = operand_of(k + offset_of(p.k, at.b, at.g, j, 0), p.k.l, p.k.d, p.len_kv - j, true);
        product(acc, tile_q, tile_k, rows, columns, p.head_dim);
        write_scores(&p, scores, at, i, j, acc);
    }
}
