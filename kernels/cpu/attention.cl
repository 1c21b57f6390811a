/* Fused attention: out = softmax(scale * Q K^T) V and the log-sum-exp of each row, without the matrix of scores.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Queries in lanes. A block of LANES = VECTORS * VECTOR_WIDTH queries is transposed once (scale and log2(e) folded in); for
 * each tile of TILE_KV keys
 *      S^T[key][lane]  = K[key][d] (broadcast) * Q^T[d][lane]
 *      P^T             = 2^(S^T - max), the running maximum and sum of a lane rescaled       (Dao 2023, algorithm 1)
 *      O^T[d][lane]   += V[key][d] (broadcast) * P^T[key][lane]
 * No reduction crosses lanes, and K and V are read where they lie, whatever their strides. A tile of keys serves the TILE_Q /
 * LANES blocks of a group while it is in the nearest cache.
 *
 * group = (b * heads_q + h) * ceil(len_q / TILE_Q) + tile of queries.
 * Private memory: (HEAD_DIM_MAX + VALUE_DIM_MAX) * TILE_Q + TILE_KV * LANES floats; of it only the dims in use are touched.
 *
 * Masks: of a tile, a block visits what any of its lanes looks at. In a tile where lanes differ, masked scores become -inf and
 * weigh 0; if a sum then is not finite, its rows are done again with the masked keys left out, for 0 * V may have been 0 * NaN.
 * The running maximum need not keep a NaN: 2^(NaN - max) is NaN and so are the lane's sum and output from there on.
 *
 * Tried (AVX2, one core, percent of the FMA peak in the same process, H2 N4096 D64): rows x vectors of the register block 4 x 3
 * 82, 6 x 2 70; TILE_Q 24, 48, 96, 192 (TILE_KV 64) 79, 82, 82, 78; TILE_KV 32, 64, 128, 256 80, 82, 84, 83; K and V copied to
 * private memory first 78. At D128 with TILE_KV 128: 87.
 */
#include "../mask.h"
#include "gemm.h"

#if !defined(ROWS) || !defined(VECTORS) || !defined(TILE_Q) || !defined(TILE_KV) || !defined(HEAD_DIM_MAX) || !defined(VALUE_DIM_MAX)
#error "ROWS, VECTORS: the register block; TILE_Q: queries of a group; TILE_KV: keys of a tile; *_DIM_MAX: bounds of the dims"
#endif
#define BLOCKS (TILE_Q / LANES)
#if TILE_Q % (VECTORS * VECTOR_WIDTH)
#error "TILE_Q must be a multiple of VECTORS * VECTOR_WIDTH"
#endif

/* The running state of a block of queries. */
typedef struct block {
    vec row_max[VECTORS], row_sum[VECTORS]; /* of scores times log2(e) */
    vec shift[VECTORS];                     /* what this tile's exponents subtract: row_max, or 0 while that is -inf */
    vec rescale[VECTORS];                   /* 2^(old row_max - new) */
    ivec first[VECTORS], end[VECTORS];      /* the lane's live keys in this tile, counted from `start` */
    i64 start;                              /* the first key of this tile that any lane looks at, */
    int keys;                               /* and how many from there until the last such */
    int partial;                            /* whether some lane looks at fewer */
} block;

INLINE void block_load(block *blk, float *qt, __global const float *q, const attention_params *p, const member *m,
                       i64 first) {
    for (int lane = 0; lane < LANES; lane++) {
        i64 i = first + lane < m->len_q ? first + lane : m->len_q - 1;
        __global const float *row = q + i * p->q.l;
        for (int d = 0; d < p->head_dim; d++) qt[d * LANES + lane] = row[d * p->q.d] * (p->scale * LOG2_E);
    }
    UNROLL for (int v = 0; v < VECTORS; v++) {
        blk->row_max[v] = vec_splat(-INFINITY);
        blk->row_sum[v] = vec_splat(0.0f);
    }
}

/* Which keys of the tile from `start` the lanes look at. */
INLINE void block_mask(block *blk, const attention_params *p, const member *m, i64 first, i64 start) {
    key_range any = range_in_tile(live_for_any(p, m, first, LANES), start, TILE_KV), all = live_for_all(p, m, first, LANES);
    blk->start = start + any.first;
    blk->keys = (int)(any.end - any.first);
    blk->partial = all.first > blk->start || all.end < blk->start + blk->keys;
    if (!blk->partial) return;
    i64 last = last_query(m, first, LANES);
    i32 firsts[LANES], ends[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        key_range live = live_range(p, m, first + lane < last ? first + lane : last);
        live = range_in_tile(live, blk->start, blk->keys);
        firsts[lane] = (i32)live.first;
        ends[lane] = (i32)live.end;
    }
    UNROLL for (int v = 0; v < VECTORS; v++) {
        blk->first[v] = ivec_load(firsts + v * VECTOR_WIDTH);
        blk->end[v] = ivec_load(ends + v * VECTOR_WIDTH);
    }
}

/* The lanes of vector v that look at key j of those visited. */
INLINE ivec live_lanes(const block *blk, int v, int j) {
    return (ivec_splat(j) >= blk->first[v]) & (ivec_splat(j) < blk->end[v]);
}

/* Scores of `rows` keys, and their maximum with what `top` holds. */
INLINE void score_rows(int rows, __global const float *k, const strides *stride, const float *qt, i64 head_dim, float *s,
                       vec top[VECTORS]) {
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v) acc[r][v] = vec_splat(0.0f);
    multiply(acc, rows, k, stride->l, stride->d, qt, LANES, head_dim);
    FOR_BLOCK(r, v) {
        top[v] = vec_max(top[v], acc[r][v]);
        if (r < rows) vec_store(acc[r][v], s + r * LANES + v * VECTOR_WIDTH);
    }
}

INLINE void block_scores(block *blk, __global const float *k, const attention_params *p, const float *qt, float *s) {
    vec top[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) top[v] = blk->row_max[v];
    for (int j = 0; j < blk->keys; j += ROWS) score_rows(blk->keys - j, k + j * p->k.l, &p->k, qt, p->head_dim, s + j * LANES, top);
    if (blk->partial) {
        UNROLL for (int v = 0; v < VECTORS; v++) top[v] = blk->row_max[v];
        for (int j = 0; j < blk->keys; j++, s += LANES) {
            UNROLL for (int v = 0; v < VECTORS; v++) {
                vec score = vec_select(live_lanes(blk, v, j), vec_load(s + v * VECTOR_WIDTH), vec_splat(-INFINITY));
                top[v] = vec_max(top[v], score);
                vec_store(score, s + v * VECTOR_WIDTH);
            }
        }
    }
    UNROLL for (int v = 0; v < VECTORS; v++) {
        blk->shift[v] = vec_select(top[v] == vec_splat(-INFINITY), vec_splat(0.0f), top[v]);
        blk->rescale[v] = vec_exp2(blk->row_max[v] - blk->shift[v]);
        blk->row_max[v] = top[v];
    }
}

/* Scores to weights, not yet divided by their sum. */
INLINE void block_weights(block *blk, float *s) {
    vec sum[VECTORS], shift[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) {
        sum[v] = blk->row_sum[v] * blk->rescale[v];
        shift[v] = blk->shift[v];
    }
    for (int j = 0; j < blk->keys; j++, s += LANES) {
        UNROLL for (int v = 0; v < VECTORS; v++) {
            vec weight = vec_exp2(vec_load(s + v * VECTOR_WIDTH) - shift[v]);
            sum[v] += weight;
            vec_store(weight, s + v * VECTOR_WIDTH);
        }
    }
    UNROLL for (int v = 0; v < VECTORS; v++) blk->row_sum[v] = sum[v];
}

/* value_rows without the keys that a lane does not look at: their weights are 0, their values may be anything. */
static void value_row_masked(const block *blk, __global const float *v_d, i64 step, const float *weights, float *ot) {
    for (int v = 0; v < VECTORS; v++) {
        vec sum = blk->rescale[v] * vec_load(ot + v * VECTOR_WIDTH);
        for (int j = 0; j < blk->keys; j++) {
            vec next = sum + vec_splat(v_d[j * step]) * vec_load(weights + j * LANES + v * VECTOR_WIDTH);
            sum = vec_select(live_lanes(blk, v, j), next, sum);
        }
        vec_store(sum, ot + v * VECTOR_WIDTH);
    }
}

INLINE void value_rows(int rows, const block *blk, __global const float *v_d, const strides *stride, const float *weights,
                       float *ot) {
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v) acc[r][v] = blk->rescale[v] * vec_load(ot + ROW_AT(r, rows) * LANES + v * VECTOR_WIDTH);
    multiply(acc, rows, v_d, stride->d, stride->l, weights, LANES, blk->keys);
    if (blk->partial) {
        vec finite = vec_splat(0.0f);
        FOR_BLOCK(r, v) finite += acc[r][v] - acc[r][v];
        if (vec_any_nan(finite)) {
            for (int r = 0; r < ROWS && r < rows; r++)
                value_row_masked(blk, v_d + r * stride->d, stride->l, weights, ot + r * LANES);
            return;
        }
    }
    FOR_BLOCK(r, v) if (r < rows) vec_store(acc[r][v], ot + r * LANES + v * VECTOR_WIDTH);
}

INLINE void block_values(const block *blk, __global const float *v, const attention_params *p, const float *weights, float *ot) {
    for (int d = 0; d < p->value_dim; d += ROWS) value_rows(p->value_dim - d, blk, v + d * p->v.d, &p->v, weights, ot + d * LANES);
}

/* Divide by the sums. A sum of 0 is that of a row without a finite score, all of whose weights are 0. */
INLINE void block_store(const block *blk, const float *ot, __global float *out, __global float *lse, const attention_params *p,
                        const member *m, i64 first) {
    float row_max[LANES], row_sum[LANES];
    UNROLL for (int v = 0; v < VECTORS; v++) {
        vec_store(blk->row_max[v], row_max + v * VECTOR_WIDTH);
        vec_store(blk->row_sum[v], row_sum + v * VECTOR_WIDTH);
    }
    for (int lane = 0; lane < LANES && first + lane < m->len_q; lane++) {
        __global float *row = out + (first + lane) * p->out.l;
        float factor = row_sum[lane] == 0.0f ? 1.0f : 1.0f / row_sum[lane];
        for (int d = 0; d < p->value_dim; d++) row[d * p->out.d] = ot[d * LANES + lane] * factor;
        if (p->has_lse) lse[(first + lane) * p->lse.l] = row_max[lane] * LN_2 + log(row_sum[lane]);
    }
}

/* The queries from `first` on, TILE_Q at most, of one head of batch member b. */
INLINE void attend(__global const float *q, __global const float *k, __global const float *v, __global float *out,
                   __global float *lse, const attention_params *p, const member *m, i64 first) {
    vec qt_memory[TILE_Q / VECTOR_WIDTH * HEAD_DIM_MAX], ot_memory[TILE_Q / VECTOR_WIDTH * VALUE_DIM_MAX];
    vec s_memory[TILE_KV * VECTORS];
    float *qt = (float *)qt_memory, *ot = (float *)ot_memory, *s = (float *)s_memory;
    block blocks[BLOCKS];
    i64 queries = m->len_q - first < TILE_Q ? m->len_q - first : TILE_Q;
    int count = (int)((queries + LANES - 1) / LANES);

    for (int n = 0; n < count; n++) block_load(&blocks[n], qt + n * LANES * p->head_dim, q, p, m, first + n * LANES);
    for (int n = 0; n < count * LANES * p->value_dim; n += VECTOR_WIDTH) vec_store(vec_splat(0.0f), ot + n);
    key_range live = live_for_any(p, m, first, queries);
    for (i64 start = live.first / TILE_KV * TILE_KV; start < live.end; start += TILE_KV) {
        for (int n = 0; n < count; n++) {
            block *blk = &blocks[n];
            block_mask(blk, p, m, first + n * LANES, start);
            if (blk->keys == 0) continue;
            block_scores(blk, k + blk->start * p->k.l, p, qt + n * LANES * p->head_dim, s);
            block_weights(blk, s);
            block_values(blk, v + blk->start * p->v.l, p, s, ot + n * LANES * p->value_dim);
        }
    }
    for (int n = 0; n < count; n++) block_store(&blocks[n], ot + n * LANES * p->value_dim, out, lse, p, m, first + n * LANES);
}

__kernel GROUP_OF_ONE void attention(__global const float *restrict q, __global const float *restrict k,
                                     __global const float *restrict v, __global float *restrict out,
                                     __global float *restrict lse, INT_BUFFER kv_lengths, INT_BUFFER q_offsets,
                                     INT_BUFFER kv_offsets, __global const uchar *mask, __global const void *bias,
                                     __global const float *slopes, __global const float *sinks, attention_params p) {
    q += p.base[0], k += p.base[1], v += p.base[2], out += p.base[3], lse += p.base[4];
    kv_lengths += p.base[5], q_offsets += p.base[6], kv_offsets += p.base[7];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const query_tile at = query_tile_at(&p, q_offsets, TILE_Q, group);
        const member m = member_of(&p, kv_lengths, q_offsets, kv_offsets, at.b);
        const i64 q_b = p.q_offsets.present ? 0 : at.b, kv_b = p.kv_offsets.present ? 0 : at.b;
        if (at.tile * TILE_Q >= m.len_q) continue;
        attend(q + q_b * p.q.b + at.h * p.q.h + m.q_first * p.q.l, k + kv_b * p.k.b + at.g * p.k.h + m.kv_first * p.k.l,
               v + kv_b * p.v.b + at.g * p.v.h + m.kv_first * p.v.l, out + q_b * p.out.b + at.h * p.out.h + m.q_first * p.out.l,
               lse + q_b * p.lse.b + at.h * p.lse.h + m.q_first * p.lse.l, &p, &m, at.tile * TILE_Q);
    }
}
