/* The contract of cpu/project.cl for bf16, by tiles of bf16 (tiles.h): y = x W + bias + residual, sums in f32, rounded once.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = row tile * ceil(columns / TILE_N) + column tile. TILE_K rows of the group's columns of W are packed into pairs at a time and
 * meet all of its rows, 32 by 32. Rows of x are read where they lie, as far as 32 of them lie evenly and 32 elements side by side; what
 * is left goes through a padded copy.
 * Private memory: TILE_K / 2 * TILE_N pairs, TILE_M * TILE_N floats, 32 * TILE_K bf16. The AMX form was not run on hardware.
 */
#ifndef CLATTN_NATIVE_PROJECT_TILES_H
#define CLATTN_NATIVE_PROJECT_TILES_H

#include "native/tiles.h"

#include "cpu/storage.h"

#if DTYPE != DTYPE_BF16
#error "tiles are of bf16"
#endif
#if TILE_M % 32 || TILE_N % 32 || TILE_K % 32
#error "TILE_M, TILE_N and TILE_K must be multiples of 32, of TILES_ROWS, TILES_LANES and TILES_DEPTH"
#endif

/* panel[k / 2][column]: pairs of W from w on, `depth` rows and `columns` columns of it, the rest zeros up to whole tiles. */
INLINE void pairs_pack(uint32_t *panel, const stored *w, const project_params *p, int depth, int columns) {
    const int whole = p->w.d == 1 ? columns / WIDTH * WIDTH : 0;
    const int end = (depth + TILES_DEPTH - 1) / TILES_DEPTH * TILES_DEPTH;
    for (int k = 0; k < end; k += 2, panel += TILE_N) {
        const stored *low = w + k * p->w.l, *high = low + p->w.l;
        const int has_low = k < depth, has_high = k + 1 < depth;
        for (int n = 0; n < whole; n += WIDTH) {
            uvec pairs = uvec_bits(vec_splat(0.0f));
            if (has_low) pairs = ushorts_load(low + n);
            if (has_high) pairs |= ushorts_load(high + n) << 16;
            vec_store(vec_of_ubits(pairs), (float *)panel + n);
        }
        for (int n = whole; n < TILE_N; n++) {
            const uint32_t one = has_low && n < columns ? low[n * p->w.d] : 0, other = has_high && n < columns ? high[n * p->w.d] : 0;
            panel[n] = one | other << 16;
        }
    }
}

/* Row `row` of all rows of x, from element k on. */
INLINE const stored *row_of_x(const stored *x, const project_params *p, i64 row, i64 k) {
    return x + row / p->len * p->x.b + row % p->len * p->x.l + k * p->x.d;
}

/* How far apart `rows` rows from `first` on lie, or 0 where they do not lie evenly. */
INLINE i64 even_distance(const project_params *p, i64 first, int rows) {
    if (first / p->len == (first + rows - 1) / p->len) return p->x.l;
    return p->len == 1 ? p->x.b : p->x.b == p->len * p->x.l ? p->x.l : 0;
}

INLINE void rows_copy(ushort *to, const stored *x, const project_params *p, i64 first, int rows, i64 k, int depth) {
    const int end = (depth + TILES_DEPTH - 1) / TILES_DEPTH * TILES_DEPTH;
    for (int r = 0; r < TILES_ROWS; r++, to += TILE_K) {
        const stored *from = row_of_x(x, p, first + (r < rows ? r : 0), k);
        for (int n = 0; n < end; n++) to[n] = r < rows && n < depth ? from[n * p->x.d] : 0;
    }
}

/* C (32 x TILE_N) = or += the 32 rows from `first` on, `rows` of them there, times the panel of `depth` rows of W from row k on. */
INLINE void rows_multiply(float *c, const stored *x, ushort *copy, const uint32_t *panel, const project_params *p, i64 first, int rows,
                          i64 k, int depth, int columns) {
    const i64 distance = rows == TILES_ROWS && p->x.d == 1 ? even_distance(p, first, rows) : 0;
    const int here = distance ? depth / TILES_DEPTH * TILES_DEPTH : 0, end = (depth + TILES_DEPTH - 1) / TILES_DEPTH * TILES_DEPTH;
    if (here < depth) rows_copy(copy, x, p, first, rows, k + here, depth - here);
    for (int n = 0; n < columns; n += TILES_LANES) {
        const uint32_t *pairs = panel + n;
        if (here || depth == 0) tiles_product(c + n, TILE_N, row_of_x(x, p, first, k), distance, pairs, TILE_N, here, k > 0);
        if (here < depth)
            tiles_product(c + n, TILE_N, copy, TILE_K, pairs + here / 2 * TILE_N, TILE_N, end - here, k > 0 || here > 0);
    }
}

/* Sums of one row from `column` on, with what is added, to their place. */
INLINE void row_finish(float *c, const stored *bias, const stored *residual, stored *y, const project_params *p, i64 row, i64 column,
                       int columns) {
    const i64 b = row / p->len, l = row % p->len;
    i64 h = column / p->dim, d = column % p->dim;
    residual += b * p->residual.b + l * p->residual.l + column * p->residual.d;
    y += b * p->y.b + l * p->y.l;
    for (int n = 0; p->has_bias && n < columns; n++) c[n] += stored_load(bias + (column + n) * p->bias_stride);
    for (int n = 0; p->has_residual && n < columns; n++) c[n] += stored_load(residual + n * p->residual.d);
    int n = 0;
    if (p->y.d == 1 && (d + columns <= p->dim || p->y.h == p->dim)) {
        for (; n + WIDTH <= columns; n += WIDTH, d += WIDTH) stored_vec_store(vec_load(c + n), y + h * p->y.h + d);
    }
    for (; n < columns; n++, d++) {
        while (d >= p->dim) d -= p->dim, h++;
        stored_store(c[n], y + h * p->y.h + d * p->y.d);
    }
}

static void project(const stored *x, const stored *w, const stored *bias, const stored *residual, stored *y, project_params p) {
    uint32_t panel[TILE_K / 2 * TILE_N] __attribute__((aligned(64)));
    float c[TILE_M * TILE_N] __attribute__((aligned(64)));
    ushort copy[TILES_ROWS * TILE_K] __attribute__((aligned(64)));
    x += p.base[0], w += p.base[1], bias += p.base[2], residual += p.base[3], y += p.base[4];
    const i64 column_tiles = (p.columns + TILE_N - 1) / TILE_N, all = p.batch * p.len;
    tiles_begin();
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 first = group / column_tiles * TILE_M, column = group % column_tiles * TILE_N;
        const int rows = (int)(all - first < TILE_M ? all - first : TILE_M);
        const int columns = (int)(p.columns - column < TILE_N ? p.columns - column : TILE_N);
        for (i64 k = 0; k == 0 || k < p.depth; k += TILE_K) {
            const int depth = (int)(p.depth - k < TILE_K ? p.depth - k : TILE_K);
            pairs_pack(panel, w + k * p.w.l + column * p.w.d, &p, depth, columns);
            for (int r = 0; r < rows; r += TILES_ROWS)
                rows_multiply(c + r * TILE_N, x, copy, panel, &p, first + r, rows - r < TILES_ROWS ? rows - r : TILES_ROWS, k, depth,
                              columns);
        }
        for (int r = 0; r < rows; r++) row_finish(c + r * TILE_N, bias, residual, y, &p, first + r, column, columns);
    }
    tiles_end();
}

#endif
