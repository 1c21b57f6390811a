/* y = x W + bias + residual: rows (b, l) of x by columns h * dim + d, stored as a (batch, heads, len, dim) view.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = row tile * ceil(columns / TILE_N) + column tile; TILE_M rows, TILE_N columns of a group.
 * A block of LANES = VECTORS * VECTOR_WIDTH columns of W is packed TILE_K deep and used for all rows of the tile; columns lie
 * in lanes, elements of x are broadcast (tile.h).
 * Private memory: TILE_K * LANES floats of W, TILE_M * LANES of y.
 */
#include "tile.h"

/* C += x[rows of the tile][k ...] panel. A block of rows has one stride, so where batches do not follow one another it ends
 * with the batch. */
INLINE void multiply_tile(float *c, __global const float *x, const project_params *p, i64 first, int rows, const float *panel,
                          i64 k, int depth) {
    i64 a_row = p->len == 1 ? p->x.b : p->x.l;
    int uniform = p->x.b == p->len * a_row;
    for (int r = 0; r < rows;) {
        i64 b = (first + r) / p->len, l = (first + r) % p->len;
        i64 left = uniform || rows - r < p->len - l ? rows - r : p->len - l;
        int count = left < ROWS ? (int)left : ROWS;
        tile_multiply_rows(count, c + r * LANES, x + b * p->x.b + l * p->x.l + k * p->x.d, a_row, p->x.d, panel, depth);
        r += count;
    }
}

/* One row of the tile, columns from `column` on, to its place. */
INLINE void store_row(const float *c, __global float *y, const project_params *p, i64 column, int lanes) {
    i64 h = column / p->dim, d = column % p->dim;
    if (d + lanes <= p->dim || p->y.h == p->dim * p->y.d) {
        lanes_store(y + h * p->y.h + d * p->y.d, p->y.d, c, 1.0f, lanes);
        return;
    }
    for (int lane = 0; lane < lanes; lane++) {
        y[h * p->y.h + d * p->y.d] = c[lane];
        if (++d == p->dim) d = 0, h++;
    }
}

INLINE void store_tile(float *c, __global const float *bias, __global const float *residual, __global float *y,
                       const project_params *p, i64 first, int rows, i64 column, int lanes) {
    for (int r = 0; r < rows; r++, c += LANES) {
        i64 b = (first + r) / p->len, l = (first + r) % p->len;
        __global const float *res = residual + b * p->residual.b + l * p->residual.l + column * p->residual.d;
        if (p->has_bias)
            for (int lane = 0; lane < lanes; lane++) c[lane] += bias[(column + lane) * p->bias_stride];
        if (p->has_residual)
            for (int lane = 0; lane < lanes; lane++) c[lane] += res[lane * p->residual.d];
        store_row(c, y + b * p->y.b + l * p->y.l, p, column, lanes);
    }
}

__kernel GROUP_OF_ONE void project(__global const float *x, __global const float *w, __global const float *bias,
                                   __global const float *residual, __global float *y, project_params p) {
    vec panel_memory[TILE_K * VECTORS], c_memory[TILE_M * VECTORS];
    float *panel = (float *)panel_memory, *c = (float *)c_memory;
    x += p.base[0], w += p.base[1], bias += p.base[2], residual += p.base[3], y += p.base[4];
    i64 column_tiles = (p.columns + TILE_N - 1) / TILE_N;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        i64 first = group / column_tiles * TILE_M, column = group % column_tiles * TILE_N;
        i64 end = column + TILE_N < p.columns ? column + TILE_N : p.columns;
        int rows = (int)(p.batch * p.len - first < TILE_M ? p.batch * p.len - first : TILE_M);
        for (; column < end; column += LANES) {
            int lanes = (int)(end - column < LANES ? end - column : LANES);
            tile_clear(c, rows);
            for (i64 k = 0; k < p.depth; k += TILE_K) {
                int depth = (int)(p.depth - k < TILE_K ? p.depth - k : TILE_K);
                panel_pack(panel, w + k * p.w.l + column * p.w.d, p.w.l, p.w.d, depth, lanes);
                multiply_tile(c, x, &p, first, rows, panel, k, depth);
            }
            store_tile(c, bias, residual, y, &p, first, rows, column, lanes);
        }
    }
}
