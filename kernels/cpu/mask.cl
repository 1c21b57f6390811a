/* weights[b,h,i,j] = scores[b,h,i,j], modified by softcap, bias and ALiBi (options.h), for a live key j of query i; -infinity for a
 * masked one. May work in place.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * group = (b * heads_q + h) * ceil(len_q / TILE_M) + tile of TILE_M queries. Keys lie in lanes. Private memory: CHUNK reals, what is
 * added to as many scores.
 */
#include "../mask.h"
#include "row_options.h"

#if !defined(TILE_M)
#error "TILE_M: queries of a group"
#endif
#define CHUNK 64

/* A row's scores, from key j on with these steps between them. */
typedef struct score_row {
    __global const real *from;
    __global real *to;
    i64 from_step, to_step;
} score_row;

INLINE void copy_scores(const score_row *row, i64 first, i64 end) {
    i64 j = first;
    if (row->from_step == 1 && row->to_step == 1) {
        for (; j + WIDTH <= end; j += WIDTH) vec_store(vec_load(row->from + j), row->to + j);
    }
    for (; j < end; j++) row->to[j * row->to_step] = row->from[j * row->from_step];
}

INLINE void modify_scores(const score_row *row, const row_options *options, const attention_params *p, i64 first, i64 end) {
    real addends[CHUNK];
    for (i64 start = first; start < end; start += CHUNK) {
        const int count = (int)(end - start < CHUNK ? end - start : CHUNK);
        row_addends(addends, options, p, start, count);
        for (int n = count; n < CHUNK; n++) addends[n] = REAL(0.0);
        for (int n = 0; n < count; n += WIDTH) {
            const i64 j = start + n;
            const vec raw = row_load(row->from + j * row->from_step, row->from_step, count - n, REAL(0.0));
            row_store(row->to + j * row->to_step, row->to_step, count - n, row_modified(raw, options, p, addends + n, j));
        }
    }
}

INLINE void mask_row(const score_row *row, const row_options *options, const attention_params *p, key_range live) {
    for (i64 j = 0; j < live.first; j++) row->to[j * row->to_step] = -INFINITY;
    if (real_parameter(p, softcap) != REAL(0.0) || p->alibi || has_elements(p))
        modify_scores(row, options, p, live.first, live.end);
    else
        copy_scores(row, live.first, live.end);
    for (i64 j = live.end; j < p->len_kv; j++) row->to[j * row->to_step] = -INFINITY;
}

__kernel GROUP_OF_ONE void mask(__global const real *scores, __global real *weights, INT_BUFFER kv_lengths,
                                __global const uchar *mask, __global const void *bias, __global const float *slopes,
                                attention_params p) {
    scores += p.base[0], weights += p.base[1], kv_lengths += p.base[2], mask += p.base[3], slopes += p.base[5];
    bias = bias_from(&p, bias, p.base[4]);
    const i64 tiles = (p.len_q + TILE_M - 1) / TILE_M;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 b = group / tiles / p.heads_q, h = group / tiles % p.heads_q, first = group % tiles * TILE_M;
        const i64 end = first + TILE_M < p.len_q ? first + TILE_M : p.len_q;
        const member m = within_elements(&p, member_of(&p, kv_lengths, kv_lengths, kv_lengths, b));
        const real slope = slope_of(&p, slopes, b, h);
        for (i64 i = first; i < end; i++) {
            const score_row row = {scores + b * p.scores.b + h * p.scores.h + i * p.scores.l,
                                   weights + b * p.weights.b + h * p.weights.h + i * p.weights.l, p.scores.d, p.weights.d};
            const row_options options = row_options_of(&p, mask, bias, b, h, i, i + m.offset, slope);
            mask_row(&row, &options, &p, live_range(&p, &m, i));
        }
    }
}
