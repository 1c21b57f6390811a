/* y[b,h,l,d] = sum over k of x[b,l,k] * w[k,n]  + bias[n] + residual[b,l,n], with n = h * dim + d.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          x (batch, 1, len, depth), w (1, 1, depth, columns), y (batch, heads, len, dim), columns = heads * dim
 * Group           one TILE_M x TILE_N tile of the batch * len by columns matrix; tiles of a row of tiles follow one another
 * Work-item       REG_M rows by TILE_N / ACROSS columns of it, in registers (tile.h)
 * Local memory    (TILE_M + 4 + TILE_N + 4) * TILE_K floats
 * Work-group      WORK_GROUP, a power of two
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#include "tile.h"

#define VECTORS TILE_COLUMNS(TILE_N)

/* Row m of the flattened batch is row m % len of member m / len. */
INLINE operand rows_of_x(const project_params *p, const global element *x, i64 m) {
    operand rows = operand_of(x + m / p->len * p->x.b + m % p->len * p->x.l, p->x.l, p->x.d, p->batch * p->len - m, true);
    rows.first = m % p->len;
    rows.period = p->len;
    rows.jump = p->batch > 1 ? p->x.b - p->len * p->x.l : 0;
    if (p->len == 1) { /* its stride says nothing: the rows are the members */
        rows.row = p->x.b;
        rows.jump = 0;
    }
    return rows;
}

/* What is added to the product in row (b, l), columns n .. n + 3. */
INLINE float4 added(const project_params *p, const global element *bias, const global element *residual, i64 b, i64 l, i64 n) {
    float sum[4];
    UNROLL for (int e = 0; e < 4; e++) {
        sum[e] = 0.0f;
        if (n + e < p->columns) {
            if (p->has_bias) sum[e] += widen(bias[(n + e) * p->bias_stride]);
            if (p->has_residual) sum[e] += widen(residual[b * p->residual.b + l * p->residual.l + (n + e) * p->residual.d]);
        }
    }
    return (float4)(sum[0], sum[1], sum[2], sum[3]);
}

/* Columns n .. n + 3 of row (b, l): within one head, or over the seam of heads. */
INLINE void write_columns(const project_params *p, global element *y, i64 b, i64 l, i64 n, float4 value) {
    const float each[4] = {value.x, value.y, value.z, value.w};
    i64 h = n / p->dim, d = n % p->dim;
    global element *row = y + b * p->y.b + l * p->y.l;
    if (d + 4 <= p->dim) {
        write_elements(row + h * p->y.h + d * p->y.d, p->y.d, value, 4);
        return;
    }
    UNROLL for (int e = 0; e < 4; e++) {
        if (n + e < p->columns) row[h * p->y.h + d * p->y.d] = narrow(each[e]);
        if (++d == p->dim) {
            d = 0;
            h++;
        }
    }
}

INLINE void write_tile(const project_params *p, const global element *bias, const global element *residual, global element *y, i64 m,
                       i64 n, const float4 *acc) {
    UNROLL for (int r = 0; r < REG_M; r++) {
        const i64 row = m + item_row() + r, b = row / p->len, l = row % p->len;
        UNROLL for (int c = 0; c < VECTORS; c++) {
            const i64 column = n + 4 * (c * ACROSS + item_column());
            if (b < p->batch && column < p->columns)
                write_columns(p, y, b, l, column, acc[r * VECTORS + c] + added(p, bias, residual, b, l, column));
        }
    }
}

KERNEL void project(const global element *x, const global element *w, const global element *bias, const global element *residual,
                    global element *y, const project_params p) {
    local float4 tile_x[TILE_VECTORS(TILE_M, TILE_K)], tile_w[TILE_VECTORS(TILE_N, TILE_K)];
    float4 acc[REG_M * VECTORS];
    const i64 tiles_n = (p.columns + TILE_N - 1) / TILE_N;
    x += p.base[0];
    w += p.base[1];
    bias += p.base[2];
    residual += p.base[3];
    y += p.base[4];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 n = group % tiles_n * TILE_N, m = group / tiles_n * TILE_M;
        const operand columns = operand_of(w + n * p.w.d, p.w.d, p.w.l, p.columns - n, p.w.l <= p.w.d);
        product(acc, tile_x, tile_w, rows_of_x(&p, x, m), columns, p.depth);
        write_tile(&p, bias, residual, y, m, n, acc);
    }
}
