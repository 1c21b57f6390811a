/* out[b,h,i,d] = sum over live j of weights[b,h,i,j] * v[b,g,j,d]: P V.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = ((b * heads_q + h) * ceil(len_q / TILE_M) + tile of queries) * ceil(value_dim / TILE_N) + tile of value dims.
 * Value dims lie in lanes: TILE_K rows of V are packed at a time and serve the tile's queries, whose weights are broadcast
 * (tile.h). Which keys are live is asked of the mask, not of the weights: 0 * NaN must not happen. A block of rows
 * goes together over the keys that are live for all of them, and each row alone over its others before and after.
 * Private memory: (TILE_K + TILE_M) * LANES floats.
 */
#include "../mask.h"
#include "tile.h"

/* One row's C += A panel over the keys [from, to) of the panel. */
INLINE void multiply_row(float *c, __global const float *a, i64 a_step, const float *panel, i64 from, i64 to) {
    if (from < to) tile_multiply_rows(1, c, a + from * a_step, 0, a_step, panel + from * LANES, to - from);
}

/* The panel holds the keys from `start` on. */
INLINE void multiply_tile(float *c, __global const float *weights, const attention_params *p, const member *m, i64 first, int rows,
                          const float *panel, i64 start) {
    i64 a_row = p->weights.l, a_step = p->weights.d;
    for (int r = 0; r < rows; r += ROWS) {
        int block = rows - r < ROWS ? rows - r : ROWS;
        key_range any = range_in_tile(live_for_any(p, m, first + r, block), start, TILE_K);
        key_range all = range_in_tile(live_for_all(p, m, first + r, block), start, TILE_K);
        if (all.end < all.first) all.end = all.first;
        for (int n = r; n < r + block && any.first < all.first; n++) {
            key_range live = range_in_tile(live_range(p, m, first + n), start, all.first);
            multiply_row(c + n * LANES, weights + n * a_row, a_step, panel, live.first, live.end);
        }
        if (all.first < all.end)
            tile_multiply_rows(block, c + r * LANES, weights + r * a_row + all.first * a_step, a_row, a_step,
                               panel + all.first * LANES, all.end - all.first);
        for (int n = r; n < r + block && all.end < any.end; n++) {
            key_range live = range_in_tile(live_range(p, m, first + n), start + all.end, TILE_K - all.end);
            multiply_row(c + n * LANES, weights + n * a_row, a_step, panel, all.end + live.first, all.end + live.end);
        }
    }
}

__kernel GROUP_OF_ONE void weighted_values(__global const float *weights, __global const float *v, __global float *out,
                                           INT_BUFFER kv_lengths, __global const uchar *mask, __global const void *bias,
                                           attention_params p) {
    vec panel_memory[TILE_K * VECTORS], c_memory[TILE_M * VECTORS];
    float *panel = (float *)panel_memory, *c = (float *)c_memory;
    weights += p.base[0], v += p.base[1], out += p.base[2], kv_lengths += p.base[3];
    i64 dim_tiles = ((i64)p.value_dim + TILE_N - 1) / TILE_N, query_tiles = (p.len_q + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        i64 d = group % dim_tiles * TILE_N, i = group / dim_tiles % query_tiles * TILE_M, bh = group / dim_tiles / query_tiles;
        i64 b = bh / p.heads_q, h = bh % p.heads_q, g = h / (p.heads_q / p.heads_kv);
        i64 end = d + TILE_N < p.value_dim ? d + TILE_N : p.value_dim;
        int rows = (int)(p.len_q - i < TILE_M ? p.len_q - i : TILE_M);
        const member m = member_of(&p, kv_lengths, kv_lengths, kv_lengths, b);
        key_range live = live_for_any(&p, &m, i, rows);
        for (; d < end; d += LANES) {
            int lanes = (int)(end - d < LANES ? end - d : LANES);
            tile_clear(c, rows);
            for (i64 j = live.first / TILE_K * TILE_K; j < live.end; j += TILE_K) {
                int depth = (int)(live.end - j < TILE_K ? live.end - j : TILE_K);
                panel_pack(panel, v + b * p.v.b + g * p.v.h + j * p.v.l + d * p.v.d, p.v.l, p.v.d, depth, lanes);
                multiply_tile(c, weights + b * p.weights.b + h * p.weights.h + i * p.weights.l + j * p.weights.d, &p, &m, i,
                              rows, panel, j);
            }
            __global float *row = out + b * p.out.b + h * p.out.h + i * p.out.l + d * p.out.d;
            for (int r = 0; r < rows; r++) lanes_store(row + r * p.out.l, p.out.d, c + r * LANES, 1.0f, lanes);
        }
    }
}
