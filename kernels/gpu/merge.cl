/* The whole of attention from its parts:
 *
 *      lse = log(sum over parts of exp(lse_part) + exp(sink)),   out = sum over parts of exp(lse_part - lse) * out_part
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A row takes its parts in order, so that its result depends on nothing else. A part whose lse is -infinity is not read; a NaN
 * lse makes the row NaN. Source: Dao et al. 2023 (Flash-Decoding).
 *
 * Shapes          out_parts (parts, batch, heads, len, value_dim), lse_parts (.., len, 1), out (batch, heads, len, value_dim),
 *                 lse (batch, heads, len, 1) where has_lse
 * Group           TILE_M rows of one head; LANES = WORK_GROUP / TILE_M work-items walk a row side by side
 * Work-item       COLUMNS columns of a row at a time, in registers; each knows the sum of all parts
 * Local memory    none
 * Work-group      WORK_GROUP, a multiple of TILE_M
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#include "element.h"

#ifndef TILE_M
#error "TILE_M comes from the kernel's row"
#endif
#define LANES (WORK_GROUP / TILE_M)
#define COLUMNS 4

/* What a row's parts weigh: exp(lse_part - shift) / sum. */
typedef struct parts {
    const global float *lse;
    float shift, sum; /* shift: their maximum, or 0 while that is -infinity */
    int empty;        /* no part has keys: whatever the sink, out is 0 */
} parts;

/* fmax drops a NaN, but exp(NaN - shift) is NaN, and so is the sum. */
INLINE parts parts_of(const merge_params *p, const global float *lse, float sink) {
    float top = sink;
    for (i64 n = 0; n < p->parts; n++) top = fmax(top, lse[n * p->lse_part]);
    parts row = {lse, top == -INFINITY ? 0.0f : top, 0.0f, 1};
    for (i64 n = 0; n < p->parts; n++) {
        row.sum += exp(lse[n * p->lse_part] - row.shift);
        row.empty &= lse[n * p->lse_part] == -INFINITY;
    }
    row.sum += exp(sink - row.shift);
    return row;
}

/* Columns d, d + LANES, ... of a row, COLUMNS at most; x and y say where column 0 is. */
INLINE void merge_columns(const merge_params *p, const parts *row, const global void *out_parts, i64 x, global void *out, i64 y,
                          i64 d) {
    const float factor = row->empty ? 1.0f : 1.0f / row->sum;
    float sum[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) sum[c] = 0.0f;
    for (i64 n = 0; n < p->parts; n++, x += p->out_part) {
        const float lse = row->lse[n * p->lse_part], weight = exp(lse - row->shift);
        if (lse == -INFINITY) continue;
        UNROLL for (int c = 0; c < COLUMNS; c++)
            if (d + c * LANES < p->value_dim)
                sum[c] += weight * load_typed(out_parts, x + (d + c * LANES) * p->out_parts.d, p->parts_dtype);
    }
    UNROLL for (int c = 0; c < COLUMNS; c++)
        if (d + c * LANES < p->value_dim) store_typed(out, y + (d + c * LANES) * p->out.d, p->out_dtype, sum[c] * factor);
}

KERNEL void merge(const global void *out_parts, const global float *lse_parts, const global float *sinks, global void *out,
                  global float *lse, const merge_params p) {
    const int lane = (int)get_local_id(0) % LANES, row = (int)get_local_id(0) / LANES;
    const i64 tiles = (p.len + TILE_M - 1) / TILE_M;
    lse_parts += p.base[1];
    sinks += p.base[2];
    lse += p.base[4];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 b = group / tiles / p.heads, h = group / tiles % p.heads, i = group % tiles * TILE_M + row;
        if (i >= p.len) continue;
        const float sink = p.has_sinks ? sinks[b * p.sinks_b + h * p.sinks_h] : -INFINITY;
        const parts of = parts_of(&p, lse_parts + b * p.lse_parts.b + h * p.lse_parts.h + i * p.lse_parts.l, sink);
        const i64 x = p.base[0] + b * p.out_parts.b + h * p.out_parts.h + i * p.out_parts.l;
        const i64 y = p.base[3] + b * p.out.b + h * p.out.h + i * p.out.l;
        for (i64 d = lane; d < p.value_dim; d += COLUMNS * LANES) merge_columns(&p, &of, out_parts, x, out, y, d);
        if (p.has_lse && lane == 0) lse[b * p.lse.b + h * p.lse.h + i * p.lse.l] = of.shift + log(of.sum);
    }
}
