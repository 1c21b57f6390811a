/* scores[b,h,i,j] = scale * <q[b,h,i,:], k[b,g,j,:]>: Q K^T before any mask.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = ((b * heads_q + h) * ceil(len_q / TILE_M) + tile of queries) * ceil(len_kv / TILE_N) + tile of keys.
 * Keys lie in lanes: LANES = VECTORS * WIDTH rows of K are transposed TILE_K deep into a panel, which serves the tile's
 * queries, whose elements are broadcast (tile.h).
 * Private memory: (TILE_K + TILE_M) * LANES reals.
 */
#include "tile.h"

INLINE void multiply_tile(real *c, __global const real *q, const strides *stride, int rows, const real *panel, int depth) {
    for (int r = 0; r < rows; r += ROWS)
        tile_multiply_rows(rows - r, c + r * LANES, q + r * stride->l, stride->l, stride->d, panel, depth);
}

__kernel GROUP_OF_ONE void scores(__global const real *q, __global const real *k, __global real *out, attention_params p) {
    vec panel_memory[TILE_K * VECTORS], c_memory[TILE_M * VECTORS];
    real *panel = (real *)panel_memory, *c = (real *)c_memory;
    const real scale = real_parameter(&p, scale);
    q += p.base[0], k += p.base[1], out += p.base[2];
    i64 key_tiles = (p.len_kv + TILE_N - 1) / TILE_N, query_tiles = (p.len_q + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        i64 j = group % key_tiles * TILE_N, i = group / key_tiles % query_tiles * TILE_M, bh = group / key_tiles / query_tiles;
        i64 b = bh / p.heads_q, h = bh % p.heads_q, g = h / (p.heads_q / p.heads_kv);
        i64 end = j + TILE_N < p.len_kv ? j + TILE_N : p.len_kv;
        int rows = (int)(p.len_q - i < TILE_M ? p.len_q - i : TILE_M);
        for (; j < end; j += LANES) {
            int lanes = (int)(end - j < LANES ? end - j : LANES);
            tile_clear(c, rows);
            for (i64 d = 0; d < p.head_dim; d += TILE_K) {
                int depth = (int)(p.head_dim - d < TILE_K ? p.head_dim - d : TILE_K);
                panel_pack(panel, k + b * p.k.b + g * p.k.h + j * p.k.l + d * p.k.d, p.k.d, p.k.l, depth, lanes);
                multiply_tile(c, q + b * p.q.b + h * p.q.h + i * p.q.l + d * p.q.d, &p.q, rows, panel, depth);
            }
            __global real *row = out + b * p.scores.b + h * p.scores.h + i * p.scores.l + j * p.scores.d;
            for (int r = 0; r < rows; r++) lanes_store(row + r * p.scores.l, p.scores.d, c + r * LANES, scale, lanes);
        }
    }
}
