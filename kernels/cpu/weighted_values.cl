/* out[b,h,i,d] = sum over live j of weights[b,h,i,j] * v[b,g,j,d]: P V.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = ((b * heads_q + h) * ceil(len_q / TILE_M) + tile of queries) * ceil(value_dim / TILE_N) + tile of value dims.
 * Value dims lie in lanes: TILE_K rows of V are packed at a time and serve the tile's queries, whose weights are broadcast
 * (tile.h). Which keys are live is asked of the mask, not of the weights: 0 * NaN must not happen. A block of rows
 * goes together over the keys that are live for all of them, and each row alone over its others before and after. A key that an
 * element masks is multiplied by its weight 0 like the others; if a row's sums then are not all finite, they are made again without
 * such keys.
 * Private memory: (TILE_K + TILE_M) * LANES reals.
 */
#include "../mask.h"
#include "tile.h"
#include "row_options.h"

/* One row's C += A panel over the keys [from, to) of the panel. */
INLINE void multiply_row(real *c, __global const real *a, i64 a_step, const real *panel, i64 from, i64 to) {
    if (from < to) tile_multiply_rows(1, c, a + from * a_step, 0, a_step, panel + from * LANES, to - from);
}

/* The panel holds the keys from `start` on. */
INLINE void multiply_tile(real *c, __global const real *weights, const attention_params *p, const member *m, i64 first, int rows,
                          const real *panel, i64 start) {
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

/* Where `lanes` columns of V lie, and the queries' rows of weights. */
typedef struct operands {
    __global const real *weights, *v;
    i64 first; /* query */
    int rows, lanes;
} operands;

INLINE void multiply_keys(real *c, real *panel, const operands *o, const attention_params *p, const member *m) {
    const key_range live = live_for_any(p, m, o->first, o->rows);
    tile_clear(c, o->rows);
    for (i64 j = live.first / TILE_K * TILE_K; j < live.end; j += TILE_K) {
        const int depth = (int)(live.end - j < TILE_K ? live.end - j : TILE_K);
        panel_pack(panel, o->v + j * p->v.l, p->v.l, p->v.d, depth, o->lanes);
        multiply_tile(c, o->weights + j * p->weights.d, p, m, o->first, o->rows, panel, j);
    }
}

INLINE int row_is_finite(const real *c) {
    vec nothing = vec_splat(REAL(0.0));
    UNROLL for (int v = 0; v < VECTORS; v++) nothing += vec_load(c + v * WIDTH) - vec_load(c + v * WIDTH);
    return !vec_any_nan(nothing);
}

/* One row's sums over the keys that no element masks. */
static void sum_without_masked(real *c, const operands *o, const attention_params *p, key_range live, const row_options *options,
                               int r) {
    __global const real *weights = o->weights + r * p->weights.l;
    for (int lane = 0; lane < o->lanes; lane++) c[lane] = REAL(0.0);
    for (i64 j = live.first; j < live.end; j++) {
        if (element_masks(options, p, j)) continue;
        for (int lane = 0; lane < o->lanes; lane++) c[lane] += weights[j * p->weights.d] * o->v[j * p->v.l + lane * p->v.d];
    }
}

__kernel GROUP_OF_ONE void weighted_values(__global const real *weights, __global const real *v, __global real *out,
                                           INT_BUFFER kv_lengths, __global const uchar *mask, __global const void *bias,
                                           attention_params p) {
    vec panel_memory[TILE_K * VECTORS], c_memory[TILE_M * VECTORS];
    real *panel = (real *)panel_memory, *c = (real *)c_memory;
    weights += p.base[0], v += p.base[1], out += p.base[2], kv_lengths += p.base[3], mask += p.base[4];
    bias = bias_from(&p, bias, p.base[5]);
    const i64 dim_tiles = ((i64)p.value_dim + TILE_N - 1) / TILE_N, query_tiles = (p.len_q + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 i = group / dim_tiles % query_tiles * TILE_M, bh = group / dim_tiles / query_tiles;
        const i64 b = bh / p.heads_q, h = bh % p.heads_q, g = h / (p.heads_q / p.heads_kv);
        const member m = within_elements(&p, member_of(&p, kv_lengths, kv_lengths, kv_lengths, b));
        i64 d = group % dim_tiles * TILE_N;
        const i64 end = d + TILE_N < p.value_dim ? d + TILE_N : p.value_dim;
        for (; d < end; d += LANES) {
            const operands o = {weights + b * p.weights.b + h * p.weights.h + i * p.weights.l,
                                v + b * p.v.b + g * p.v.h + d * p.v.d, i, (int)(p.len_q - i < TILE_M ? p.len_q - i : TILE_M),
                                (int)(end - d < LANES ? end - d : LANES)};
            multiply_keys(c, panel, &o, &p, &m);
            __global real *row = out + b * p.out.b + h * p.out.h + i * p.out.l + d * p.out.d;
            for (int r = 0; r < o.rows; r++) {
                if (has_elements(&p) && !row_is_finite(c + r * LANES)) {
                    const row_options options = row_options_of(&p, mask, bias, b, h, i + r, 0, REAL(0.0));
                    sum_without_masked(c + r * LANES, &o, &p, live_range(&p, &m, i + r), &options, r);
                }
                lanes_store(row + r * p.out.l, p.out.d, c + r * LANES, REAL(1.0), o.lanes);
            }
        }
    }
}
