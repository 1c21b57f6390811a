/* The contract of scores.cl, for q and k of f16 or bf16 on matrix units: products of fragments in place of tiles of floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Group           one TILE_M x TILE_N tile of one head's scores; tiles of a row of tiles follow one another
 * Work-item       as mma_tile.h says
 * Local memory    two tiles of q and two of k
 * Sums            f32, scaled, and kept as f32
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured
 */
#include "heads.h"
#include "mma_tile.h"

/* As many of a row's scores as lie side by side in a work-item, four at most; `plain`: they may be written at once. */
#if NEIGHBOURS >= 4
#define RUN 4
#elif NEIGHBOURS >= 2
#define RUN 2
#else
#define RUN 1
#endif

INLINE void write_run(global float *to, i64 stride, const float *run, i64 exist, bool plain) {
#if RUN == 4
    if (plain && exist >= RUN) {
        *(global float4 *)to = (float4)(run[0], run[1], run[2], run[3]);
        return;
    }
#elif RUN == 2
    if (plain && exist >= RUN) {
        *(global float2 *)to = (float2)(run[0], run[1]);
        return;
    }
#endif
    (void)plain;
    MMA_UNROLL for (int e = 0; e < RUN; e++) if (e < exist) to[e * stride] = run[e];
}

INLINE void write_scores(const attention_params *p, global float *scores, i64 i, i64 j, const float *acc) {
    const bool plain = p->scores.d == 1 && p->scores.l % RUN == 0 && ((size_t)scores & (RUN * sizeof(float) - 1)) == 0;
    MMA_UNROLL for (int r = 0; r < SUM_ROWS; r++) {
        if (i + sum_row(r) >= p->len_q) continue;
        MMA_UNROLL for (int n = 0; n < SUM_COLUMNS; n += RUN) {
            const int column = sum_column(r, n);
            float run[RUN];
            MMA_UNROLL for (int e = 0; e < RUN; e++) run[e] = acc[sum_index(r, n + e)] * p->scale;
            write_run(scores + sum_row(r) * p->scores.l + column * p->scores.d, p->scores.d, run, p->len_kv - j - column,
                      plain);
        }
    }
}

MMA_KERNEL void scores(const global element *q, const global element *k, global float *scores, const attention_params p) {
    local ushort tile_q[2 * ROW_ELEMENTS] __attribute__((aligned(16)));
    local ushort tile_k[2 * COLUMN_ELEMENTS(false)] __attribute__((aligned(16)));
    local uint exchange[EXCHANGE_UINTS];
    const i64 tiles_j = tiles_of(p.len_kv, TILE_N), tiles_i = tiles_of(p.len_q, TILE_M);
    q += p.base[0];
    k += p.base[1];
    scores += p.base[2];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const head_tile tile = head_tile_at(&p, tiles_i, tiles_j, group);
        const head at = tile.at;
        const i64 i = tile.down * TILE_M, j = tile.along * TILE_N;
        const copies rows = copies_of(q + offset_of(p.q, at.b, at.h, i, 0), p.q.l, p.q.d, p.len_q - i, TILE_M, false);
        const copies columns = copies_of(k + offset_of(p.k, at.b, at.g, j, 0), p.k.l, p.k.d, p.len_kv - j, TILE_N, false);
        float acc[SUMS];
        multiply_all(exchange, acc, tile_q, tile_k, rows, columns, p.head_dim);
        write_scores(&p, scores + offset_of(p.scores, at.b, at.h, i, j), i, j, acc);
    }
}
