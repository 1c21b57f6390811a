/* The contract of project.cl, for f16 and bf16 on matrix units: products of fragments in place of tiles of floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Group           one TILE_M x TILE_N tile of the batch * len by columns matrix; tiles of a row of tiles follow one another
 * Work-item       as mma_tile.h says
 * Local memory    two tiles of x and two of w. The tile of w lies as w does, along the columns or along the depth (a weight stored
 *                 as outputs by inputs)
 * Sums            f32, bias and residual added, rounded once
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#include "mma_tile.h"

/* Row m of the flattened batch is row m % len of member m / len. */
INLINE copies copies_of_x(const project_params *p, const global element *x, i64 m) {
    copies c = copies_of(x, p->x.l, p->x.d, p->batch * p->len - m, TILE_M, false);
    UNROLL for (int n = 0; n < EIGHTS(TILE_M); n++) {
        const i64 row = m + EIGHT_LINE(TILE_K) + n * EIGHT_LINES(TILE_K);
        c.from[n] = x + row / p->len * p->x.b + row % p->len * p->x.l + EIGHT_AT(TILE_K) * p->x.d;
    }
    c.plain &= p->batch == 1 || p->x.b % 8 == 0;
    return c;
}

/* A line of the tile is a row of w, where its columns are neighbours; else a column. */
INLINE copies copies_of_w(const project_params *p, const global element *w, i64 n, bool across) {
    return copies_of(w + n * p->w.d, across ? p->w.l : p->w.d, across ? p->w.d : p->w.l, p->columns - n, TILE_N, across);
}

/* Bias and residual added, and to its place. */
INLINE void write_element(const project_params *p, const global element *bias, const global element *residual, global element *y,
                          i64 b, i64 l, i64 column, float value) {
    if (p->has_bias) value += widen(bias[column * p->bias_stride]);
    if (p->has_residual) value += widen(residual[b * p->residual.b + l * p->residual.l + column * p->residual.d]);
    y[b * p->y.b + column / p->dim * p->y.h + l * p->y.l + column % p->dim * p->y.d] = (element)narrow_two(value, 0.0f);
}

INLINE void write_tile(const project_params *p, const global element *bias, const global element *residual, global element *y,
                       i64 m, i64 n, const float *acc) {
    MMA_UNROLL for (int r = 0; r < SUM_ROWS; r++) {
        const i64 row = m + sum_row(r), b = row / p->len, l = row % p->len;
        if (b >= p->batch) continue;
        MMA_UNROLL for (int c = 0; c < SUM_COLUMNS; c++) {
            const i64 column = n + sum_column(r, c);
            if (column < p->columns) write_element(p, bias, residual, y, b, l, column, acc[sum_index(r, c)]);
        }
    }
}

MMA_KERNEL void project(const global element *x, const global element *w, const global element *bias, const global element *residual,
                        global element *y, const project_params p) {
    local ushort tile_x[2 * ROW_ELEMENTS] __attribute__((aligned(16)));
    local ushort tile_w[2 * MAX(COLUMN_ELEMENTS(true), COLUMN_ELEMENTS(false))] __attribute__((aligned(16)));
    local uint exchange[EXCHANGE_UINTS];
    const i64 tiles_n = (p.columns + TILE_N - 1) / TILE_N;
    x += p.base[0];
    w += p.base[1];
    bias += p.base[2];
    residual += p.base[3];
    y += p.base[4];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 n = group % tiles_n * TILE_N, m = group / tiles_n * TILE_M;
        const copies of_x = copies_of_x(&p, x, m);
        float acc[SUMS];
        if (p.w.d <= p.w.l) /* known in each loop, not asked for in it */
            multiply_all(exchange, acc, tile_x, tile_w, of_x, copies_of_w(&p, w, n, true), p.depth);
        else
            multiply_all(exchange, acc, tile_x, tile_w, of_x, copies_of_w(&p, w, n, false), p.depth);
        write_tile(&p, bias, residual, y, m, n, acc);
    }
}
