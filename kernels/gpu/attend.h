/* Attention of a tile of rows to a stretch of keys, an online softmax: what attention and attention_split have in common.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One pass over the keys: Dao 2023 (FlashAttention-2), alg. 1. TILE_Q rows by TILE_KV keys; of each product a work-item has, in
 * registers, REG_M rows by TILE_KV / ACROSS scores and VALUE_DIM_MAX / ACROSS outputs (tile.h); each of the ACROSS items of a
 * row knows its maximum, and sums the weights of its own columns until the end.
 *
 * Local memory    the weights of a tile, TILE_KV * (TILE_Q + 4) floats, and one buffer that holds in turn TILE_K-deep tiles of
 *                 q and k, what a row's items share, and TILE_J lines of v; where MODIFIED, a slope a row and a flag
 *
 * head_dim may be anything: q is read again for each tile of keys (from a cache) instead of being kept. VALUE_DIM_MAX, to which
 * the host rounds value_dim up, decides registers and local memory.
 *
 * A masked score is -infinity before the maximum, so that no NaN of a masked key gets further; its weight is marked, and its
 * value left out of the sum (masked.h). Tiles whose every key is out of every row's range, or hidden by the mask, are not
 * computed. fmax drops a NaN, but the weight of a NaN score is NaN and through the row's sum spoils that row alone.
 */
#ifndef CLATTN_GPU_ATTEND_H
#define CLATTN_GPU_ATTEND_H

#if !defined(SPLIT)
#error "SPLIT is 1 where rows are those of a group of heads, else 0"
#endif
#if !defined(TILE_Q) || !defined(TILE_KV) || !defined(TILE_J) || !defined(VALUE_DIM_MAX) || !defined(DTYPE) ||                 \
    !defined(MODIFIED)
#error "TILE_Q, TILE_KV and TILE_J come from the kernel's row, VALUE_DIM_MAX, DTYPE and MODIFIED from the plan"
#endif
#define TILE_M TILE_Q
#define TILE_N TILE_KV
#define MOST_SLOTS MAX(MAX(TILE_SLOTS(TILE_Q, TILE_K), TILE_SLOTS(TILE_KV, TILE_K)), TILE_SLOTS(VALUE_DIM_MAX, TILE_J))
#define MOST_COLUMNS MAX(TILE_COLUMNS(TILE_KV), TILE_COLUMNS(VALUE_DIM_MAX))
#include "masked.h"
#include "options.h"

#define KEY_VECTORS TILE_COLUMNS(TILE_KV)
#define VALUE_VECTORS TILE_COLUMNS(VALUE_DIM_MAX)
#if VALUE_DIM_MAX % (4 * ACROSS) || TILE_KV % TILE_J
#error "work-items share value_dim evenly, and TILE_J divides TILE_KV"
#endif
#if 4 * REG_M * KEY_VECTORS > 32
#error "a work-item keeps a bit for each of its scores"
#endif

#define Q_VECTORS TILE_VECTORS(TILE_Q, TILE_K)
#define BUFFER_VECTORS                                                                                                         \
    MAX(MAX(Q_VECTORS + TILE_VECTORS(TILE_KV, TILE_K), TILE_VECTORS(VALUE_DIM_MAX, TILE_J)), (TILE_Q * (ACROSS + 2) + 3) / 4)

#define LOG2_E 1.44269504f

/* Elements of out: of a part, what sums are. */
#if SPLIT
typedef float result;
#define write_results write_floats
#else
typedef element result;
#define write_results write_elements
#endif

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

/* The rows of a tile: queries of one head or, where SPLIT, the queries of one head after those of another. */
typedef struct row_tile {
    i64 b, h, i; /* of row 0 */
    i64 left;    /* rows that exist from there on */
} row_tile;

/* Heads from row 0's to row r's. */
INLINE int heads_before(const attention_params *p, const row_tile *tile, int r) {
    return SPLIT ? periods_before(tile->i, p->len_q, r, TILE_Q) : 0;
}

INLINE i64 query_of_row(const attention_params *p, const row_tile *tile, int r) {
    return tile->i + r - heads_before(p, tile, r) * p->len_q;
}

/* From row 0's element to row r's, in a view with these strides. */
INLINE i64 row_offset(const attention_params *p, const row_tile *tile, strides stride, int r) {
    const int heads = heads_before(p, tile, r);
    return heads * stride.h + (r - heads * p->len_q) * stride.l;
}

/* ---- scores -------------------------------------------------------------------------------------------------------- */

/* The options' buffers. Absent ones are not read. */
typedef struct tile_options {
    const global uchar *mask;
    const global void *bias;
    i64 mask_at, bias_at;      /* element of row 0's key 0 */
    const local float *slopes; /* of each row */
    local int *flag;           /* see mask_attends */
} tile_options;

/* A work-item's scores, one bit each: REG_M * KEY_VECTORS float4. */
INLINE uint bits_of(int4 are, int n) {
    const int4 bits = are & (int4)(1, 2, 4, 8);
    return (uint)(bits.x | bits.y | bits.z | bits.w) << 4 * n;
}

INLINE void replace_hidden(float4 *scores, uint hidden, float value) {
    UNROLL for (int n = 0; n < REG_M * KEY_VECTORS; n++) {
        const int4 in_sign = (int4)((int)hidden) << ((int4)(31, 30, 29, 28) - 4 * n);
        scores[n] = select(scores[n], (float4)(value), in_sign);
    }
}

/* Scores that the ranges of the tile's rows leave out; the tile of keys begins at j. */
INLINE uint out_of_range(const attention_params *p, const member *m, const row_tile *tile, i64 j) {
    uint hidden = 0;
    UNROLL for (int r = 0; r < REG_M; r++) {
        const key_range live = range_in_tile(live_range(p, m, query_of_row(p, tile, item_row() + r)), j, TILE_KV);
        UNROLL for (int c = 0; c < KEY_VECTORS; c++) {
            const int4 key = 4 * (c * ACROSS + item_column()) + (int4)(0, 1, 2, 3);
            hidden |= bits_of((key < (int4)((int)live.first)) | (key >= (int4)((int)live.end)), r * KEY_VECTORS + c);
        }
    }
    return hidden;
}

/* Softcap, bias and ALiBi; returns the scores that elements of mask or bias hide. */
INLINE uint modify_scores(const attention_params *p, const member *m, const row_tile *tile, tile_options options,
                          float4 *scores, i64 j) {
    uint hidden = 0;
    UNROLL for (int r = 0; r < REG_M; r++) {
        const int row = item_row() + r;
        if (row >= tile->left) continue;
        const row_options at = {options.mask,
                                options.bias,
                                options.mask_at + row_offset(p, tile, p->mask, row),
                                options.bias_at + row_offset(p, tile, p->bias, row),
                                query_of_row(p, tile, row) + m->offset,
                                options.slopes[row]};
        UNROLL for (int c = 0; c < KEY_VECTORS; c++) {
            const int n = r * KEY_VECTORS + c;
            const i64 key = j + 4 * (c * ACROSS + item_column());
            float each[4] = {scores[n].x, scores[n].y, scores[n].z, scores[n].w};
            UNROLL for (int e = 0; e < 4; e++) {
                bool is_hidden;
                each[e] = modified_score(p, &at, each[e], key + e, &is_hidden);
                hidden |= (uint)is_hidden << (4 * n + e);
            }
            scores[n] = (float4)(each[0], each[1], each[2], each[3]);
        }
    }
    return hidden;
}

/* Whether the mask lets any row of the tile look at any key of the tile that begins at j. */
INLINE bool mask_attends(const attention_params *p, const row_tile *tile, tile_options options, i64 j) {
    bool attends = false;
#pragma unroll 1
    for (int n = (int)get_local_id(0); n < TILE_Q * TILE_KV && !attends; n += WORK_GROUP) {
        const int row = n / TILE_KV;
        const i64 key = j + n % TILE_KV;
        if (row < tile->left && key < p->mask_len)
            attends = options.mask[options.mask_at + row_offset(p, tile, p->mask, row) + key * p->mask.d];
    }
    return any_found(attends, options.flag);
}

/* ---- softmax ------------------------------------------------------------------------------------------------------- */

/* A work-item's rows while the keys go by. */
typedef struct rows_state {
    float4 acc[REG_M * VALUE_VECTORS]; /* sum of weight * value so far */
    float max[REG_M];                  /* of the row's scores so far, and what weights are relative to */
    float sum[REG_M];                  /* of this item's columns' weights so far */
} rows_state;

/* Each row's value of all its work-items in local memory: place[row][column]. */
INLINE void share(local float *place, const float *values) {
    UNROLL for (int r = 0; r < REG_M; r++) place[(item_row() + r) * ACROSS + item_column()] = values[r];
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* max = the maximum over these scores, too. */
INLINE void raise_maxima(local float *place, float *max, const float4 *scores) {
    float own[REG_M];
    UNROLL for (int r = 0; r < REG_M; r++) {
        own[r] = max[r];
        UNROLL for (int c = 0; c < KEY_VECTORS; c++) {
            const float4 four = scores[r * KEY_VECTORS + c];
            own[r] = fmax(own[r], fmax(fmax(four.x, four.y), fmax(four.z, four.w)));
        }
    }
    share(place, own);
    UNROLL for (int r = 0; r < REG_M; r++) {
        UNROLL for (int column = 0; column < ACROSS; column++) max[r] = fmax(max[r], place[(item_row() + r) * ACROSS + column]);
    }
}

/* scores -> weights relative to the new maxima; what was summed before is brought to the same measure. */
INLINE void weigh(local float *place, rows_state *rows, float4 *scores) {
    float before[REG_M];
    UNROLL for (int r = 0; r < REG_M; r++) before[r] = rows->max[r];
    raise_maxima(place, rows->max, scores);
    UNROLL for (int r = 0; r < REG_M; r++) {
        const float top = pivot(rows->max[r]), shrink = exp2((before[r] - top) * LOG2_E);
        float4 four = 0.0f;
        UNROLL for (int c = 0; c < KEY_VECTORS; c++) {
            scores[r * KEY_VECTORS + c] = exp2((scores[r * KEY_VECTORS + c] - top) * LOG2_E);
            four += scores[r * KEY_VECTORS + c];
        }
        rows->sum[r] = rows->sum[r] * shrink + ((four.x + four.y) + (four.z + four.w));
        UNROLL for (int c = 0; c < VALUE_VECTORS; c++) rows->acc[r * VALUE_VECTORS + c] *= shrink;
    }
}

/* The tile of weights, key-major as tile_multiply reads it. */
INLINE void store_weights(local float4 *tile, const float4 *weights) {
    UNROLL for (int c = 0; c < KEY_VECTORS; c++) {
        local float *at = (local float *)tile + 4 * (c * ACROSS + item_column()) * TILE_LINE(TILE_Q) + item_row();
#if REG_M % 4 == 0
        UNROLL for (int r = 0; r < REG_M; r += 4) {
            const float4 a = weights[r * KEY_VECTORS + c], b = weights[(r + 1) * KEY_VECTORS + c];
            const float4 d = weights[(r + 2) * KEY_VECTORS + c], e = weights[(r + 3) * KEY_VECTORS + c];
            *(local float4 *)(at + r) = (float4)(a.x, b.x, d.x, e.x);
            *(local float4 *)(at + r + TILE_LINE(TILE_Q)) = (float4)(a.y, b.y, d.y, e.y);
            *(local float4 *)(at + r + 2 * TILE_LINE(TILE_Q)) = (float4)(a.z, b.z, d.z, e.z);
            *(local float4 *)(at + r + 3 * TILE_LINE(TILE_Q)) = (float4)(a.w, b.w, d.w, e.w);
        }
#else
        UNROLL for (int r = 0; r < REG_M; r++) {
            const float4 four = weights[r * KEY_VECTORS + c];
            at[r] = four.x;
            at[r + TILE_LINE(TILE_Q)] = four.y;
            at[r + 2 * TILE_LINE(TILE_Q)] = four.z;
            at[r + 3 * TILE_LINE(TILE_Q)] = four.w;
        }
#endif
    }
}

/* acc += weights * values over `keys` keys; where `marked`, some weights may be. */
INLINE void add_values(float4 *acc, const local float4 *weights, local float4 *buffer, operand values, int keys, bool marked) {
    element slots[TILE_SLOTS(VALUE_DIM_MAX, TILE_J)];
    for (int j = 0; j < keys + TILE_J; j += TILE_J) {
        if (j < keys) tile_fetch(slots, values, j, keys - j, VALUE_DIM_MAX, TILE_J);
        if (j > 0) {
            const local float4 *lines = weights + (j - TILE_J) * TILE_LINE(TILE_Q) / 4;
            if (marked)
                tile_multiply_marked(acc, lines, buffer, VALUE_DIM_MAX, TILE_J);
            else
                tile_multiply(acc, lines, buffer, VALUE_DIM_MAX, TILE_J);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (j < keys) tile_store(buffer, slots, values, VALUE_DIM_MAX, TILE_J);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* ---- the whole ----------------------------------------------------------------------------------------------------- */

INLINE void begin_rows(rows_state *rows) {
    clear(rows->acc, REG_M * VALUE_VECTORS);
    UNROLL for (int r = 0; r < REG_M; r++) {
        rows->max[r] = -INFINITY;
        rows->sum[r] = 0.0f;
    }
}

/* The keys of `within`, tile by tile. k and v are at the member's first key; queries at the tile's row 0. */
INLINE void attend(const attention_params *p, const member *m, const row_tile *tile, rows_state *rows, local float4 *weights,
                   local float4 *buffer, operand queries, const global element *k, const global element *v,
                   tile_options options, key_range within, key_range all) {
    for (i64 j = within.first / TILE_KV * TILE_KV; j < within.end; j += TILE_KV) {
        if (MODIFIED && p->has_mask && !mask_attends(p, tile, options, j)) continue;
        const operand keys = operand_of(k + j * p->k.l, p->k.l, p->k.d, within.end - j, true);
        const operand values = operand_of(v + j * p->v.l, p->v.d, p->v.l, p->value_dim, false);
        const int count = clamp_to_tile(within.end - j, TILE_KV);
        bool marked = j < all.first || j + TILE_KV > all.end;
        uint hidden = 0;
        float4 scores[REG_M * KEY_VECTORS];
        product(scores, buffer, buffer + Q_VECTORS, queries, keys, p->head_dim);
        UNROLL for (int n = 0; n < REG_M * KEY_VECTORS; n++) scores[n] *= p->scale;
        if (marked) hidden = out_of_range(p, m, tile, j);
        if (MODIFIED) {
            hidden |= modify_scores(p, m, tile, options, scores, j);
            marked |= p->has_mask || p->has_bias;
        }
        if (marked) replace_hidden(scores, hidden, -INFINITY);
        weigh((local float *)buffer, rows, scores);
        if (marked) replace_hidden(scores, hidden, HIDDEN_WEIGHT);
        store_weights(weights, scores);
        add_values(rows->acc, weights, buffer, values, count, marked);
    }
}

/* The sums of the tile's rows over their work-items, joined by a sink: lse gets their logarithms, scales[row] what normalises
 * the row (-1 where it is empty). One work-item a row. */
INLINE void finish_sums(const attention_params *p, const row_tile *tile, local float *scales, const local float *sums,
                        const local float *maxima, global float *lse, float sink) {
    for (int row = (int)get_local_id(0); row < TILE_Q; row += WORK_GROUP) {
        float sum = 0.0f;
        for (int column = 0; column < ACROSS; column++) sum += sums[row * ACROSS + column];
        const float max = fmax(maxima[row], sink), top = pivot(max);
        const float shrink = exp2((maxima[row] - top) * LOG2_E), whole = sum * shrink + exp2((sink - top) * LOG2_E);
        scales[row] = sum == 0.0f ? -1.0f : shrink / whole;
        if (lse && row < tile->left) lse[row_offset(p, tile, p->lse, row)] = max + log(whole);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Normalise and write the rows; out and lse (or NULL) are at the tile's row 0, a sink of -infinity is none. */
INLINE void write_rows(const attention_params *p, const row_tile *tile, const rows_state *rows, local float *place,
                       global result *out, global float *lse, float sink) {
    local float *maxima = place + TILE_Q * ACROSS, *scales = maxima + TILE_Q;
    UNROLL for (int r = 0; r < REG_M; r++) if (item_column() == 0) maxima[item_row() + r] = rows->max[r];
    share(place, rows->sum);
    finish_sums(p, tile, scales, place, maxima, lse, sink);
    UNROLL for (int r = 0; r < REG_M; r++) {
        const int row = item_row() + r;
        const float scale = scales[row];
        UNROLL for (int c = 0; c < VALUE_VECTORS; c++) {
            const i64 d = 4 * (c * ACROSS + item_column());
            const float4 mean = scale == -1.0f ? (float4)(0.0f) : rows->acc[r * VALUE_VECTORS + c] * scale;
            if (row < tile->left && d < p->value_dim)
                write_results(out + row_offset(p, tile, p->out, row) + d * p->out.d, p->out.d, mean, (int)(p->value_dim - d));
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE); /* before `place` is used again */
}

#endif
