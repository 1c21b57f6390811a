/* The whole of attention from its parts:
 *
 *      lse = log(sum over parts of exp(lse_part) + exp(sink)),   out = sum over parts of exp(lse_part - lse) * out_part
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = (b * heads + h) * ceil(len / TILE_M) + tile of TILE_M rows. A row takes its parts in order, so that its result depends
 * on nothing else. A part whose lse is -infinity is not read; a NaN lse makes the row NaN. Source: Dao et al. 2023
 * (Flash-Decoding).
 * The weights of WIDTH parts are exponentials of one vector. Elements pass CHUNK at a time through private memory,
 * 2 * CHUNK floats.
 */
#include "../mask.h"
#include "element.h"

#if !defined(TILE_M)
#error "TILE_M: rows of a group"
#endif
#define CHUNK 128

/* What a row's parts weigh: exp(lse_part - shift) / sum. */
typedef struct parts {
    __global const float *lse;
    i64 count, step;
    float shift, sum; /* shift: their maximum, or 0 while that is -infinity */
    int empty;        /* no part has keys: whatever the sink, out is 0 */
} parts;

/* The lse of the parts from `first` on, and their weights not yet divided; -infinity and 0 beyond the last. */
INLINE void weigh(const parts *row, i64 first, float lse[WIDTH], float weights[WIDTH]) {
    for (int n = 0; n < WIDTH; n++) lse[n] = first + n < row->count ? row->lse[(first + n) * row->step] : -INFINITY;
    vec_store(vec_exp(vec_load(lse) - row->shift), weights);
}

/* A NaN need not be the maximum: exp(NaN - maximum) is NaN, and so is the sum. */
INLINE parts parts_of(__global const float *lse, const merge_params *p, float sink) {
    parts row = {lse, p->parts, p->lse_part, 0.0f, 0.0f, 1};
    float lanes[WIDTH], weights[WIDTH], top = sink;
    for (i64 n = 0; n < row.count; n++) {
        top = lse[n * row.step] > top ? lse[n * row.step] : top;
        row.empty &= lse[n * row.step] == -INFINITY;
    }
    row.shift = top > -INFINITY ? top : 0.0f;
    for (i64 first = 0; first < row.count; first += WIDTH) {
        weigh(&row, first, lanes, weights);
        for (int n = 0; n < WIDTH; n++) row.sum += weights[n];
    }
    vec_store(vec_exp(vec_splat(sink - row.shift)), weights);
    row.sum += weights[0];
    return row;
}

/* `count` elements of a row: from x on, part after part, to y. */
INLINE void merge_chunk(const parts *row, const merge_params *p, __global const void *x, i64 x_at, __global void *y, i64 y_at,
                        int count) {
    float lse[WIDTH], weights[WIDTH], sum[CHUNK], part[CHUNK];
    const float factor = row->empty ? 1.0f : 1.0f / row->sum;
    for (int d = 0; d < count; d++) sum[d] = 0.0f;
    for (i64 first = 0; first < row->count; first += WIDTH) {
        weigh(row, first, lse, weights);
        for (int n = 0; n < WIDTH; n++) {
            if (lse[n] == -INFINITY) continue;
            run_load(part, x, p->parts_dtype, x_at + (first + n) * p->out_part, p->out_parts.d, count);
            for (int d = 0; d < count; d++) sum[d] += weights[n] * part[d];
        }
    }
    for (int d = 0; d < count; d++) sum[d] *= factor;
    run_store(sum, y, p->out_dtype, y_at, p->out.d, count);
}

__kernel GROUP_OF_ONE void merge(__global const void *out_parts, __global const float *lse_parts, __global const float *sinks,
                                 __global void *out, __global float *lse, merge_params p) {
    lse_parts += p.base[1], sinks += p.base[2], lse += p.base[4];
    const i64 tiles = (p.len + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 b = group / tiles / p.heads, h = group / tiles % p.heads, first = group % tiles * TILE_M;
        const i64 end = first + TILE_M < p.len ? first + TILE_M : p.len;
        const float sink = p.has_sinks ? sinks[b * p.sinks_b + h * p.sinks_h] : -INFINITY;
        for (i64 i = first; i < end; i++) {
            const parts row = parts_of(lse_parts + b * p.lse_parts.b + h * p.lse_parts.h + i * p.lse_parts.l, &p, sink);
            const i64 from = p.base[0] + b * p.out_parts.b + h * p.out_parts.h + i * p.out_parts.l;
            const i64 to = p.base[3] + b * p.out.b + h * p.out.h + i * p.out.l;
            for (i64 d = 0; d < p.value_dim; d += CHUNK)
                merge_chunk(&row, &p, out_parts, from + d * p.out_parts.d, out, to + d * p.out.d,
                            (int)(p.value_dim - d < CHUNK ? p.value_dim - d : CHUNK));
            if (p.has_lse) lse[b * p.lse.b + h * p.lse.h + i * p.lse.l] = row.shift + log(row.sum);
        }
    }
}
