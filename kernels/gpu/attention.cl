/* out[b,h,i,:] = sum over live j of softmax_j(scale * <q[b,h,i,:], k[b,g,j,:]>) * v[b,g,j,:],  g = h / (heads_q / heads_kv);
 * lse[b,h,i] = natural log of the sum over live j of exp(score). One pass over the keys: Dao 2023 (FlashAttention-2), alg. 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          q (batch, heads_q, len_q, head_dim), k (batch, heads_kv, len_kv, head_dim), v (.., len_kv, value_dim),
 *                 out (batch, heads_q, len_q, value_dim), lse (batch, heads_q, len_q, 1) where has_lse
 * Group           TILE_Q queries of one head, over tiles of TILE_KV keys; the queries with most keys come first
 * Work-item       REG_M queries by TILE_KV / ACROSS scores and VALUE_DIM_MAX / ACROSS outputs, in registers (tile.h); each of
 *                 the ACROSS items of a row knows its maximum, and sums the weights of its own columns until the end
 * Local memory    the weights of a tile, TILE_KV * (TILE_Q + 4) floats, and one buffer that holds in turn TILE_K-deep tiles of
 *                 q and k, what a row's items share, and TILE_J lines of v
 * Work-group      WORK_GROUP, a power of two
 * Compiled        for sm_90 by clang 15 and ptxas 13, no spills; registers, and FFMA in the inner loops of scores / of values:
 *                 64x64 254, 84 % / 90 % (VALUE_DIM_MAX 128); 64x64_wide 246, 76 % / 89 % (256); 32x64 250, 62 % / 85 % (576);
 *                 not yet measured on a GPU
 * Tried           both directions of loading for each operand: 40 registers more, and spills; TILE_J 16 in 64x64: spills;
 *                 loops bounded by function arguments: unrolled before they were inlined, arrays in local memory
 *
 * head_dim may be anything: q is read again for each tile of keys (from a cache) instead of being kept. VALUE_DIM_MAX, to which
 * the host rounds value_dim up, decides registers and local memory.
 *
 * A masked score is -infinity before the maximum, so that no NaN of a masked key gets further; its value is left out of the sum
 * rather than multiplied by 0. Tiles whose every key is masked for every row are not visited. fmax drops a NaN, but the weight
 * of a NaN score is NaN and through the row's sum spoils that row alone.
 */
#if !defined(TILE_Q) || !defined(TILE_KV) || !defined(TILE_J) || !defined(VALUE_DIM_MAX)
#error "TILE_Q, TILE_KV and TILE_J come from the kernel's row, VALUE_DIM_MAX from the host"
#endif
#define TILE_M TILE_Q
#define TILE_N TILE_KV
#define MOST_SLOTS MAX(MAX(TILE_SLOTS(TILE_Q, TILE_K), TILE_SLOTS(TILE_KV, TILE_K)), TILE_SLOTS(VALUE_DIM_MAX, TILE_J))
#define MOST_COLUMNS MAX(TILE_COLUMNS(TILE_KV), TILE_COLUMNS(VALUE_DIM_MAX))
#include "masked.h"

#define KEY_VECTORS TILE_COLUMNS(TILE_KV)
#define VALUE_VECTORS TILE_COLUMNS(VALUE_DIM_MAX)
#if VALUE_DIM_MAX % (4 * ACROSS) || TILE_KV % TILE_J
#error "work-items share value_dim evenly, and TILE_J divides TILE_KV"
#endif

#define Q_VECTORS TILE_VECTORS(TILE_Q, TILE_K)
#define BUFFER_VECTORS                                                                                                         \
    MAX(MAX(Q_VECTORS + TILE_VECTORS(TILE_KV, TILE_K), TILE_VECTORS(VALUE_DIM_MAX, TILE_J)), (TILE_Q * (ACROSS + 2) + 3) / 4)

#define LOG2_E 1.44269504f

/* A work-item's rows while the keys go by. */
typedef struct rows_state {
    float4 acc[REG_M * VALUE_VECTORS]; /* sum of weight * value so far */
    float max[REG_M];                  /* of the row's scores so far, and what weights are relative to */
    float sum[REG_M];                  /* of this item's columns' weights so far */
} rows_state;

INLINE void scale_scores(float4 *scores, float scale) {
    UNROLL for (int n = 0; n < REG_M * KEY_VECTORS; n++) scores[n] *= scale;
}

/* Scores of the tile of queries at i and keys at j. */
INLINE void mask_scores(const attention_params *p, const member *m, float4 *scores, i64 i, i64 j) {
    const row_ranges live = live_of_rows(p, m, i, j, TILE_KV);
    UNROLL for (int c = 0; c < KEY_VECTORS; c++) {
        const int4 key = 4 * (c * ACROSS + item_column()) + (int4)(0, 1, 2, 3);
        UNROLL for (int r = 0; r < REG_M; r++) {
            const int n = r * KEY_VECTORS + c;
            const int4 is_in = (key >= (int4)(live.first[r])) & (key < (int4)(live.end[r]));
            scores[n] = select((float4)(-INFINITY), scores[n], is_in);
        }
    }
}

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

/* acc += weights * values over `keys` keys from `first` on; where `masked`, a row of those from i on uses its live ones only.
 * What is live is asked again for every few lines: kept, it would cost the registers that are left. */
INLINE void add_values(const attention_params *p, const member *m, float4 *acc, const local float4 *weights,
                       local float4 *buffer, operand values, int keys, bool masked, i64 i, i64 first) {
    float slots[TILE_SLOTS(VALUE_DIM_MAX, TILE_J)];
    for (int j = 0; j < keys + TILE_J; j += TILE_J) {
        if (j < keys) tile_fetch(slots, values, j, keys - j, VALUE_DIM_MAX, TILE_J);
        if (j > 0) {
            const local float4 *lines = weights + (j - TILE_J) * TILE_LINE(TILE_Q) / 4;
            if (masked) {
                const row_ranges live = live_of_rows(p, m, i, first + j - TILE_J, TILE_J);
                tile_multiply_live(acc, lines, buffer, VALUE_DIM_MAX, TILE_J, &live);
            } else {
                tile_multiply(acc, lines, buffer, VALUE_DIM_MAX, TILE_J);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (j < keys) tile_store(buffer, slots, values, VALUE_DIM_MAX, TILE_J);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The sums of the tile's rows over their work-items: lse gets their logarithms, scales[row] what normalises the row (0 where it
 * is empty). One work-item a row. */
INLINE void finish_sums(const attention_params *p, local float *scales, const local float *sums, const local float *maxima,
                        global float *lse, i64 left) {
    for (int row = (int)get_local_id(0); row < TILE_Q; row += WORK_GROUP) {
        float sum = 0.0f;
        for (int column = 0; column < ACROSS; column++) sum += sums[row * ACROSS + column];
        scales[row] = sum == 0.0f ? 0.0f : 1.0f / sum;
        if (p->has_lse && row < left) lse[row * p->lse.l] = maxima[row] + log(sum);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Normalise and write the rows, of which `left` exist; out and lse are the first one's. */
INLINE void write_rows(const attention_params *p, local float *place, global float *out, global float *lse, i64 left,
                       const rows_state *rows) {
    local float *maxima = place + TILE_Q * ACROSS, *scales = maxima + TILE_Q;
    UNROLL for (int r = 0; r < REG_M; r++) if (item_column() == 0) maxima[item_row() + r] = rows->max[r];
    share(place, rows->sum);
    finish_sums(p, scales, place, maxima, lse, left);
    UNROLL for (int r = 0; r < REG_M; r++) {
        const i64 row = item_row() + r;
        const float scale = scales[row];
        UNROLL for (int c = 0; c < VALUE_VECTORS; c++) {
            const i64 d = 4 * (c * ACROSS + item_column());
            const float4 mean = scale == 0.0f ? (float4)(0.0f) : rows->acc[r * VALUE_VECTORS + c] * scale;
            if (row < left && d < p->value_dim)
                write_vector(out + row * p->out.l + d * p->out.d, p->out.d, mean, p->value_dim - d);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE); /* before `place` is used again */
}

KERNEL void attention(const global float *q, const global float *k, const global float *v, global float *out, global float *lse,
                      INT_BUFFER kv_lengths, INT_BUFFER q_offsets, INT_BUFFER kv_offsets, const global uchar *mask,
                      const global void *bias, const global float *slopes, const global float *sinks,
                      const attention_params p) {
    local float4 weights[TILE_VECTORS(TILE_Q, TILE_KV)], buffer[BUFFER_VECTORS];
    local float *place = (local float *)buffer;
    q += p.base[0];
    k += p.base[1];
    v += p.base[2];
    out += p.base[3];
    lse += p.base[4];
    kv_lengths += p.base[5];
    q_offsets += p.base[6];
    kv_offsets += p.base[7];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const query_tile at = query_tile_at(&p, q_offsets, TILE_Q, group);
        const member m = member_of(&p, kv_lengths, q_offsets, kv_offsets, at.b);
        const i64 i = (tiles_of(m.len_q, TILE_Q) - 1 - at.tile) * TILE_Q;
        if (i < 0) continue;
        const key_range any = live_for_any(&p, &m, i, TILE_Q), all = live_for_all(&p, &m, i, TILE_Q);
        const operand queries =
            operand_of(q + offset_of(p.q, at.b, at.h, m.q_first + i, 0), p.q.l, p.q.d, m.len_q - i, true);
        rows_state rows;
        clear(rows.acc, REG_M * VALUE_VECTORS);
        for (int r = 0; r < REG_M; r++) {
            rows.max[r] = -INFINITY;
            rows.sum[r] = 0.0f;
        }
        for (i64 j = any.first / TILE_KV * TILE_KV; j < any.end; j += TILE_KV) {
            const i64 key = m.kv_first + j;
            const operand keys = operand_of(k + offset_of(p.k, at.b, at.g, key, 0), p.k.l, p.k.d, any.end - j, true);
            const operand values = operand_of(v + offset_of(p.v, at.b, at.g, key, 0), p.v.d, p.v.l, p.value_dim, false);
            const int count = clamp_to_tile(any.end - j, TILE_KV);
            float4 scores[REG_M * KEY_VECTORS];
            product(scores, buffer, buffer + Q_VECTORS, queries, keys, p.head_dim);
            scale_scores(scores, p.scale);
            if (j < all.first || j + TILE_KV > all.end) mask_scores(&p, &m, scores, i, j);
            weigh(place, &rows, scores);
            store_weights(weights, scores);
            add_values(&p, &m, rows.acc, weights, buffer, values, count, j < all.first || j + count > all.end, i, j);
        }
        write_rows(&p, place, out + offset_of(p.out, at.b, at.h, m.q_first + i, 0),
                   lse + offset_of(p.lse, at.b, at.h, m.q_first + i, 0), m.len_q - i, &rows);
    }
}
