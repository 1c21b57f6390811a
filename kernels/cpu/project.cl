/* y = x W + bias + residual: rows (b, l) of x by columns h * dim + d, stored as a (batch, heads, len, dim) view.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = row tile * ceil(columns / TILE_N) + column tile; TILE_M rows, TILE_N columns of a group.
 * A block of LANES = VECTORS * VECTOR_WIDTH columns of W is packed TILE_K deep and used for all rows of the tile; columns lie
 * in lanes, elements of x are broadcast (tile.h).
 * Private memory: TILE_K * LANES floats of W, TILE_M * LANES of y.
 *
 * Tried (AVX2, one core, times OpenBLAS's speed at 2048x512x512 and 2048x2048x512, medians of 21 in turns; TILE_M, TILE_N,
 * TILE_K): 512, 96, 512 0.91-0.97; 256, 96, 512 0.88-0.97; 512, 96, 256 0.84-0.94; 256, 96, 256 0.85-0.92; 128, 96, 256
 * 0.86-0.91; 64, 528, 256 0.83-0.86. Prefetching the next rows of x: 4 % slower. All panels of a tile packed first, so that a
 * strip of x meets them one after another: 2 % slower, other tiles slower still. Narrow panels (tile.h), as 512 columns need
 * them: 2 to 4 % faster.
 * Tried (AVX-512, one core, likewise by processor time; 2048x512x512, 512x512x512, 128x512x512, 512x2048x512): 512, 96, 512 1.09,
 * 1.10, 1.18, 1.02; 256, 192, 256 0.97, 1.04, 1.15, 0.90; 256, 192, 512 1.01, 1.06, 1.18, 0.98; 512, 192, 512 1.02, 1.08, 1.21, 1.02;
 * 1024, 192, 512 1.01, 1.06, 1.18, 1.02; 256, 192, 128, whose panel leaves half of the nearest cache to the rest, 0.95, 1.03, 1.16, -.
 * Two cores, 128, 96, 512 beside 256, 192, 256 as `clattn tune` sees it, 512 by 512: 0.998 at 1024 rows, 1.07 at 128 and 1.00 at 1, none
 * beyond noise twice.
 */
#include "tile.h"

/* One row of the tile, `lanes` columns from `column` on, to its place: what falls into one head lies evenly. */
INLINE void store_row(const float *c, __global float *y, const project_params *p, i64 column, int lanes) {
    i64 h = column / p->dim, d = column % p->dim;
    if (d + lanes <= p->dim || p->y.h == p->dim * p->y.d) {
        lanes_store(y + h * p->y.h + d * p->y.d, p->y.d, c, 1.0f, lanes);
        return;
    }
    for (int lane = 0; lane < lanes; d = 0, h++) {
        const int end = p->dim - d < lanes - lane ? lane + (int)(p->dim - d) : lanes;
        __global float *to = y + h * p->y.h + d * p->y.d;
        for (; p->y.d == 1 && lane + WIDTH <= end; lane += WIDTH, to += WIDTH) vec_store(vec_load(c + lane), to);
        for (; lane < end; lane++, to += p->y.d) *to = c[lane];
    }
}

INLINE void finish_row(float *c, __global const float *bias, __global const float *residual, __global float *y,
                       const project_params *p, i64 b, i64 l, i64 column, int lanes) {
    if (p->has_bias)
        for (int lane = 0; lane < lanes; lane++) c[lane] += bias[(column + lane) * p->bias_stride];
    residual += b * p->residual.b + l * p->residual.l + column * p->residual.d;
    if (p->has_residual)
        for (int lane = 0; lane < lanes; lane++) c[lane] += residual[lane * p->residual.d];
    store_row(c, y + b * p->y.b + l * p->y.l, p, column, lanes);
}

/* `lanes` columns from `column` on, of `rows` rows from `first` on. Rows are stored as soon as they are done, beside the next
 * ones' arithmetic. */
INLINE void project_block(__global const float *x, __global const float *w, __global const float *bias,
                          __global const float *residual, __global float *y, const project_params *p, i64 first, int rows,
                          i64 column, int lanes) {
    vec panel_memory[TILE_K * VECTORS], c_memory[TILE_M * VECTORS];
    float *panel = (float *)panel_memory, *c = (float *)c_memory;
    /* A block of rows has one stride, so where batches do not follow one another it ends with the batch. */
    i64 x_row = p->len == 1 ? p->x.b : p->x.l, run = p->x.b == p->len * x_row ? p->batch * p->len : p->len;
    tile_clear(c, rows);
    for (i64 k = 0; k == 0 || k < p->depth; k += TILE_K) {
        int depth = (int)(p->depth - k < TILE_K ? p->depth - k : TILE_K);
        panel_pack(panel, w + k * p->w.l + column * p->w.d, p->w.l, p->w.d, depth, lanes);
        for (int r = 0, count; r < rows; r += count) {
            i64 b = (first + r) / p->len, l = (first + r) % p->len, left = run - (first + r) % run;
            count = rows - r < left ? rows - r : (int)left;
            if (count > ROWS) count = ROWS;
            __global const float *row = x + b * p->x.b + l * p->x.l + k * p->x.d;
            if (lanes <= NARROW)
                tile_multiply_narrow(count, c + r * LANES, row, x_row, p->x.d, panel, depth);
            else
                tile_multiply_rows(count, c + r * LANES, row, x_row, p->x.d, panel, depth);
            if (k + TILE_K < p->depth) continue;
            for (int n = r; n < r + count; n++)
                finish_row(c + n * LANES, bias, residual, y, p, (first + n) / p->len, (first + n) % p->len, column, lanes);
        }
    }
}

__kernel GROUP_OF_ONE void project(__global const float *x, __global const float *w, __global const float *bias,
                                   __global const float *residual, __global float *y, project_params p) {
    x += p.base[0], w += p.base[1], bias += p.base[2], residual += p.base[3], y += p.base[4];
    i64 column_tiles = (p.columns + TILE_N - 1) / TILE_N;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        i64 first = group / column_tiles * TILE_M, start = group % column_tiles * TILE_N;
        i64 rows = p.batch * p.len - first < TILE_M ? p.batch * p.len - first : TILE_M;
        i64 end = start + TILE_N < p.columns ? start + TILE_N : p.columns;
        for (i64 column = start; column < end;) {
            int lanes = panel_lanes(end - column);
            project_block(x, w, bias, residual, y, &p, first, (int)rows, column, lanes);
            column += lanes;
        }
    }
}
