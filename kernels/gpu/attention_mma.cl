/* The contract of attention.cl, for f16 and bf16 on matrix units: products of fragments (mma.h) in place of tiles of floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One pass over the keys: Dao 2023 (FlashAttention-2), alg. 1. Weights are narrowed to the type of the elements before they
 * meet the values; sums are f32, and the row's sum is of the weights before.
 *
 * Group           TILE_Q queries of one head, over tiles of TILE_KV keys; the queries with most keys come first
 * Work-item       a lane of a warp; a warp has WARP_ROWS queries, of which its lanes hold fragments: q, scores, outputs
 * Local memory    a tile of keys and one of values, where q comes first and the outputs last; while one is multiplied the
 *                 other is on its way. With Q_TILE, for heads whose q would not fit into registers, q stays in one of its own
 * Work-group      a warp for each WARP_ROWS queries
 * Masked          a score is -infinity before the maximum and its weight 0. 0 * NaN would be NaN, so that a tile in which
 *                 some row may not use all keys, and a value is not finite, is added by plain loops that leave out what is
 *                 hidden.
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured
 */
#define LIVE_BLOCKS (VALUE_DIM_MAX / 16)
#include "heads.h"
#include "mma_masked.h"
#include "options.h"

#if !defined(TILE_Q) || !defined(TILE_KV) || !defined(HEAD_DIM_MAX) || !defined(VALUE_DIM_MAX) || !defined(MODIFIED)
#error "TILE_Q and TILE_KV come from the kernel's row, HEAD_DIM_MAX, VALUE_DIM_MAX and MODIFIED from the plan"
#endif
#if TILE_Q != WARP_ROWS * WARPS || TILE_KV % 16 || HEAD_DIM_MAX % 16 || VALUE_DIM_MAX % 16
#error "a warp has WARP_ROWS queries, and fragments are 16 deep"
#endif
#if TILE_KV / 16 * BLOCK > 32
#error "a work-item keeps a bit for each of its scores"
#endif

#define KEY_BLOCKS (TILE_KV / 16)
#define VALUE_BLOCKS (VALUE_DIM_MAX / 16)
#define SCORES (KEY_BLOCKS * BLOCK)
#define OUTPUTS (VALUE_BLOCKS * BLOCK)
#define LOG2_E 1.44269504f
#define KEY_ELEMENTS (TILE_KV * LINE(HEAD_DIM_MAX))
#define VALUE_ELEMENTS (TILE_KV * LINE(VALUE_DIM_MAX))
#ifndef Q_TILE
#define Q_TILE 0
#endif
#define QUERY_ELEMENTS (TILE_Q * LINE(HEAD_DIM_MAX))
#if Q_TILE
#define TILE_ELEMENTS (QUERY_ELEMENTS + MAX(KEY_ELEMENTS + VALUE_ELEMENTS, TILE_Q * LINE(VALUE_DIM_MAX)))
#else
#define TILE_ELEMENTS MAX(KEY_ELEMENTS + VALUE_ELEMENTS, TILE_Q * MAX(LINE(HEAD_DIM_MAX), LINE(VALUE_DIM_MAX)))
#endif
#if TILE_Q > LINE(HEAD_DIM_MAX)
#error "the weights of a tile take the place of its keys"
#endif

/* Which query of the group a lane's row r is, and which column its element e of several blocks side by side. */
INLINE int lane_row(int r) {
    (void)r; /* most layouts have one row a lane */
    return warp_id() * WARP_ROWS + BLOCK_ROW(lane_id(), ROW_ELEMENT(r, 0));
}
INLINE int lane_column(int e) {
    return e / BLOCK * 16 + BLOCK_COLUMN(lane_id(), e % BLOCK);
}

/* A matrix of rows in global memory. */
typedef struct matrix {
    const global element *at;
    i64 row, depth; /* strides */
    i64 rows;       /* that exist */
    int columns;
} matrix;

/* Begin to copy `rows` lines of `extent` elements; what does not exist becomes 0. One batch. */
INLINE void copy_tile(local ushort *tile, matrix from, int rows, int extent) {
    const bool aligned = from.depth == 1 && from.row % 8 == 0 && ((size_t)from.at & 15) == 0;
    const int chunks = extent / 8;
#pragma unroll 1
    for (int n = (int)get_local_id(0); n < rows * chunks; n += WORK_GROUP) {
        const int row = n / chunks, d = n % chunks * 8;
        local ushort *to = tile + row * LINE(extent) + d;
        const global element *at = from.at + row * from.row + d * from.depth;
        const int exist = row < from.rows ? from.columns - d : 0;
        if (aligned && exist >= 8)
            copy_eight(to, at);
        else
            copy_eight_carefully(to, at, from.depth, exist);
    }
    copy_commit();
}

/* The state of a lane's rows while the keys go by. */
typedef struct lane_state {
    float acc[OUTPUTS];
    float max[LANE_ROWS], sum[LANE_ROWS]; /* the sum is of the lane's own columns */
} lane_state;

/* Which query a group's rows are, and what they see. */
typedef struct queries {
    i64 b, h, i;
    i64 left; /* rows that exist */
} queries;

/* ---- scores -------------------------------------------------------------------------------------------------------- */

/* The queries of a warp: in registers, else where they lie in their tile. */
#if Q_TILE
typedef struct warp_queries {
    const local ushort *tile;
} warp_queries;

INLINE void take_queries(warp_queries *q, const local ushort *tile) {
    q->tile = tile;
}

INLINE void rows_of_queries(uint *rows, const warp_queries *q, int k) {
    load_rows(rows, q->tile + 16 * k, LINE(HEAD_DIM_MAX));
}
#else
typedef struct warp_queries {
    uint rows[HEAD_DIM_MAX / 16 * ROW_UINTS];
} warp_queries;

/* Ends with the tile free. */
INLINE void take_queries(warp_queries *q, const local ushort *tile) {
    MMA_UNROLL for (int k = 0; k < HEAD_DIM_MAX / 16; k++)
        load_rows(q->rows + ROW_UINTS * k, tile + 16 * k, LINE(HEAD_DIM_MAX));
    barrier(CLK_LOCAL_MEM_FENCE);
}

INLINE void rows_of_queries(uint *rows, const warp_queries *q, int k) {
    MMA_UNROLL for (int n = 0; n < ROW_UINTS; n++) rows[n] = q->rows[ROW_UINTS * k + n];
}
#endif

/* scores = q k^T of the tile: element e is of key lane_column(e). */
INLINE void multiply_keys(local uint *exchange, float *scores, const warp_queries *q, const local ushort *keys) {
    MMA_UNROLL for (int n = 0; n < SCORES; n++) scores[n] = 0.0f;
    MMA_UNROLL for (int k = 0; k < HEAD_DIM_MAX / 16; k++) {
        uint rows[ROW_UINTS];
        rows_of_queries(rows, q, k);
        MMA_UNROLL for (int n = 0; n < KEY_BLOCKS; n++) {
            uint columns[COLUMN_UINTS];
            load_columns(columns, keys + 16 * n * LINE(HEAD_DIM_MAX) + 16 * k, LINE(HEAD_DIM_MAX));
            multiply(exchange, scores + BLOCK * n, rows, columns);
        }
    }
}

/* A bit for each score that its row may not use: those out of range, and those that elements of mask or bias hide; the others
 * are modified as the options say. */
INLINE uint hide(const attention_params *p, const member *m, queries at, const row_options *options, float *scores, i64 j,
                 bool marked) {
    uint hidden = 0;
    MMA_UNROLL for (int r = 0; r < LANE_ROWS; r++) {
        const i64 i = at.i + lane_row(r);
        const key_range live = range_in_tile(live_range(p, m, i), j, TILE_KV);
        if (lane_row(r) >= at.left) continue;
        row_options row = *options;
        row.mask_at += lane_row(r) * p->mask.l;
        row.bias_at += lane_row(r) * p->bias.l;
        row.position = i + m->offset;
        MMA_UNROLL for (int n = 0; n < SCORES / LANE_ROWS; n++) {
            const int e = ROW_ELEMENT(r, n), key = lane_column(e);
            bool is_hidden = marked && (key < live.first || key >= live.end);
            if (MODIFIED) {
                bool by_element;
                scores[e] = modified_score(p, &row, scores[e], j + key, &by_element);
                is_hidden |= by_element;
            }
            hidden |= (uint)is_hidden << e;
        }
    }
    return hidden;
}

/* scores -> weights relative to the new maxima, of hidden ones 0; what was summed before is brought to the same measure. */
INLINE void weigh(local uint *exchange, lane_state *state, float *scores, uint hidden) {
    MMA_UNROLL for (int r = 0; r < LANE_ROWS; r++) {
        float top = state->max[r];
        MMA_UNROLL for (int n = 0; n < SCORES / LANE_ROWS; n++) {
            const int e = ROW_ELEMENT(r, n);
            if (hidden >> e & 1) scores[e] = -INFINITY;
            top = fmax(top, scores[e]);
        }
        top = row_max(exchange, top);
        const float measure = pivot(top), shrink = exp2((state->max[r] - measure) * LOG2_E);
        float sum = 0.0f;
        MMA_UNROLL for (int n = 0; n < SCORES / LANE_ROWS; n++) {
            const int e = ROW_ELEMENT(r, n);
            scores[e] = exp2((scores[e] - measure) * LOG2_E);
            sum += scores[e];
        }
        state->sum[r] = state->sum[r] * shrink + sum;
        state->max[r] = top;
        MMA_UNROLL for (int n = 0; n < OUTPUTS / LANE_ROWS; n++) state->acc[ROW_ELEMENT(r, n)] *= shrink;
    }
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

INLINE void multiply_values(local uint *exchange, float *acc, const float *weights, const local ushort *values) {
    MMA_UNROLL for (int k = 0; k < KEY_BLOCKS; k++) {
        uint rows[ROW_UINTS];
        rows_of_block(exchange, rows, weights + BLOCK * k);
        MMA_UNROLL for (int n = 0; n < VALUE_BLOCKS; n++) {
            uint columns[COLUMN_UINTS];
            load_columns_across(columns, values + 16 * k * LINE(VALUE_DIM_MAX) + 16 * n, LINE(VALUE_DIM_MAX));
            multiply(exchange, acc + BLOCK * n, rows, columns);
        }
    }
}

/* The weights of the tile, row by row, where all can read them. */
INLINE void share_weights(local ushort *shared, const float *weights, uint hidden) {
    MMA_UNROLL for (int r = 0; r < LANE_ROWS; r++) {
        MMA_UNROLL for (int n = 0; n < SCORES / LANE_ROWS; n++) {
            const int e = ROW_ELEMENT(r, n);
            const ushort weight = (ushort)(narrow_two(weights[e], 0.0f) & 0x7fff);
            shared[lane_row(r) * TILE_KV + lane_column(e)] = hidden >> e & 1 ? HIDDEN : weight;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* ---- the whole ----------------------------------------------------------------------------------------------------- */

INLINE matrix rows_from(matrix all, i64 first) {
    all.at += first * all.row;
    all.rows -= first;
    return all;
}

/* The keys of `within`, tile by tile: the next tile of keys is copied while values are multiplied, and the other way round. */
INLINE void attend(const attention_params *p, const member *m, queries at, lane_state *state, const warp_queries *q,
                   local ushort *keys, local ushort *values, local uint *exchange, local int *flag, matrix k, matrix v,
                   const row_options *options) {
    const key_range within = live_for_any(p, m, at.i, TILE_Q), all = live_for_all(p, m, at.i, TILE_Q);
    const i64 start = within.first / TILE_KV * TILE_KV;
    if (start < within.end) copy_tile(keys, rows_from(k, start), TILE_KV, HEAD_DIM_MAX);
    for (i64 j = start; j < within.end; j += TILE_KV) {
        const bool ranged = j < all.first || j + TILE_KV > all.end, more = j + TILE_KV < within.end;
        float scores[SCORES];
        uint hidden = 0;
        copy_tile(values, rows_from(v, j), TILE_KV, VALUE_DIM_MAX);
        copy_wait_but_one();
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_keys(exchange, scores, q, keys);
        barrier(CLK_LOCAL_MEM_FENCE);
        MMA_UNROLL for (int n = 0; n < SCORES; n++) scores[n] *= p->scale;
        if (ranged || MODIFIED) hidden = hide(p, m, at, options, scores, j, ranged);
        weigh(exchange, state, scores, hidden);
        if (ranged || (MODIFIED && (p->has_mask || p->has_bias))) {
            copy_wait();
            barrier(CLK_LOCAL_MEM_FENCE);
            if (has_nonfinite(values, TILE_KV, VALUE_DIM_MAX, flag)) {
                share_weights(keys, scores, hidden);
                const shared_weights own = {keys + warp_id() * WARP_ROWS * TILE_KV, TILE_KV, 1, 0};
                add_live(state->acc, own, values, LINE(VALUE_DIM_MAX), TILE_KV);
            } else {
                multiply_values(exchange, state->acc, scores, values);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (more) copy_tile(keys, rows_from(k, j + TILE_KV), TILE_KV, HEAD_DIM_MAX);
        } else {
            if (more) copy_tile(keys, rows_from(k, j + TILE_KV), TILE_KV, HEAD_DIM_MAX);
            if (more)
                copy_wait_but_one();
            else
                copy_wait();
            barrier(CLK_LOCAL_MEM_FENCE);
            multiply_values(exchange, state->acc, scores, values);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}

/* The rows of `tile`, which begins and ends free for others, to out. */
INLINE void copy_rows_out(const attention_params *p, i64 rows, const local ushort *tile, global element *out) {
    const bool aligned = p->out.d == 1 && p->out.l % 8 == 0 && ((size_t)out & 15) == 0;
    const int chunks = VALUE_DIM_MAX / 8;
#pragma unroll 1
    for (int n = (int)get_local_id(0); n < TILE_Q * chunks; n += WORK_GROUP) {
        const int row = n / chunks, d = n % chunks * 8;
        const local ushort *from = tile + row * LINE(VALUE_DIM_MAX) + d;
        global element *to = out + row * p->out.l + d * p->out.d;
        if (row >= rows) break;
        if (aligned && d + 8 <= p->value_dim) {
            *(global uint4 *)to = *(const local uint4 *)from;
        } else {
#pragma unroll 1
            for (int e = 0; e < 8 && d + e < p->value_dim; e++) to[e * p->out.d] = from[e];
        }
    }
}

/* Normalise and write, by way of `tile`; out and lse (or NULL) are at row 0, a sink of -infinity is none. */
INLINE void write_rows(const attention_params *p, queries at, local uint *exchange, local ushort *tile, const lane_state *state,
                       global element *out, global float *lse, float sink) {
    MMA_UNROLL for (int r = 0; r < LANE_ROWS; r++) {
        const i64 row = lane_row(r);
        const float sum = row_sum(exchange, state->sum[r]), max = fmax(state->max[r], sink), top = pivot(max);
        const float shrink = exp2((state->max[r] - top) * LOG2_E), whole = sum * shrink + exp2((sink - top) * LOG2_E);
        const float share = sum == 0.0f ? 0.0f : shrink / whole;
        if (lse && row < at.left && lane_column(ROW_ELEMENT(r, 0)) == 0) lse[row * p->lse.l] = max + log(whole);
        MMA_UNROLL for (int n = 0; n < OUTPUTS / LANE_ROWS; n++) {
            const int e = ROW_ELEMENT(r, n);
            const float mean = sum == 0.0f ? 0.0f : state->acc[e] * share;
            tile[row * LINE(VALUE_DIM_MAX) + lane_column(e)] = (ushort)narrow_two(mean, 0.0f);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    copy_rows_out(p, at.left, tile, out);
    barrier(CLK_LOCAL_MEM_FENCE);
}

MMA_KERNEL void attention(const global element *q, const global element *k, const global element *v, global element *out,
                          global float *lse, INT_BUFFER kv_lengths, INT_BUFFER q_offsets, INT_BUFFER kv_offsets,
                          const global uchar *mask, const global void *bias, const global float *slopes,
                          const global float *sinks, const attention_params p) {
    local ushort tiles[TILE_ELEMENTS] __attribute__((aligned(16)));
    local ushort *keys = Q_TILE ? tiles + QUERY_ELEMENTS : tiles, *values = keys + KEY_ELEMENTS;
    local uint exchange[EXCHANGE_UINTS];
    local int flag;
    q += p.base[0];
    k += p.base[1];
    v += p.base[2];
    out += p.base[3];
    lse += p.base[4];
    kv_lengths += p.base[5];
    q_offsets += p.base[6];
    kv_offsets += p.base[7];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const query_tile tile = query_tile_at(&p, q_offsets, TILE_Q, group);
        const member m = member_of(&p, kv_lengths, q_offsets, kv_offsets, tile.b);
        const i64 i = (tiles_of(m.len_q, TILE_Q) - 1 - tile.tile) * TILE_Q;
        if (i < 0) continue;
        const queries at = {tile.b, tile.h, i, m.len_q - i};
        const matrix rows = {q + offset_of(p.q, at.b, at.h, m.q_first + i, 0), p.q.l, p.q.d, at.left, p.head_dim};
        const matrix all_keys = {k + offset_of(p.k, at.b, tile.g, m.kv_first, 0), p.k.l, p.k.d, m.len_kv, p.head_dim};
        const matrix all_values = {v + offset_of(p.v, at.b, tile.g, m.kv_first, 0), p.v.l, p.v.d, m.len_kv, p.value_dim};
        const row_options options = {mask,
                                     bias,
                                     p.base[8] + offset_of(p.mask, at.b, at.h, i, 0),
                                     p.base[9] + offset_of(p.bias, at.b, at.h, i, 0),
                                     0,
                                     MODIFIED ? alibi_slope(&p, slopes + p.base[10], at.b, at.h) : 0.0f};
        warp_queries own;
        lane_state state;
        MMA_UNROLL for (int n = 0; n < OUTPUTS; n++) state.acc[n] = 0.0f;
        MMA_UNROLL for (int r = 0; r < LANE_ROWS; r++) {
            state.max[r] = -INFINITY;
            state.sum[r] = 0.0f;
        }
        copy_tile(tiles, rows, TILE_Q, HEAD_DIM_MAX);
        copy_wait();
        barrier(CLK_LOCAL_MEM_FENCE);
        take_queries(&own, tiles + warp_id() * WARP_ROWS * LINE(HEAD_DIM_MAX));
        attend(&p, &m, at, &state, &own, keys, values, exchange, &flag, all_keys, all_values, &options);
        write_rows(&p, at, exchange, keys, &state, out + offset_of(p.out, at.b, at.h, m.q_first + i, 0),
                   p.has_lse ? lse + offset_of(p.lse, at.b, at.h, m.q_first + i, 0) : 0,
                   p.has_sinks ? sinks[p.base[11] + at.b * p.sinks_b + at.h * p.sinks_h] : -INFINITY);
    }
}
