/* Fused attention: out = softmax(scale * Q K^T) V and the log-sum-exp of each row, without the matrix of scores.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Queries in lanes. A block of LANES = VECTORS * VECTOR_WIDTH queries is transposed once (scale and log2(e) folded in); for
 * each tile of TILE_KV keys
 *      S^T[key][lane]  = K[key][d] (broadcast) * Q^T[d][lane]
 *      P^T             = 2^(S^T - max), the running maximum and sum of a lane rescaled       (Dao 2023, algorithm 1)
 *      O^T[d][lane]   += V[key][d] (broadcast) * P^T[key][lane]
 * No reduction crosses lanes, and K is read where it lies, whatever its strides. A tile of keys serves the TILE_Q / LANES
 * blocks of a group while it is in the nearest cache; its values are packed once for all of them.
 *
 * group = (b * heads_q + h) * ceil(len_q / TILE_Q) + tile of queries.
 * Private memory: (HEAD_DIM_MAX + VALUE_DIM_MAX) * TILE_Q + TILE_KV * (LANES + VALUE_DIM_MAX) floats; of it only the dims in
 * use are touched.
 *
 * Masks: of a tile, a block visits what any of its lanes looks at. In a tile where lanes differ, masked scores become -inf and
 * weigh 0; if a sum then is not finite, its rows are done again with the masked keys left out, for 0 * V may have been 0 * NaN.
 * The running maximum need not keep a NaN: 2^(NaN - max) is NaN and so are the lane's sum and output from there on.
 *
 * Tried (AVX2, one core, H2 N4096 D64, percent of the FMA peak in the same process): rows x vectors of the register block 4 x 3
 * 82, 6 x 2 70.
 * Tried (likewise; K and V of 4.3 MiB at D128, so in the last cache; speed against values read where they lie with TILE_Q 96
 * and TILE_KV 128, in turns on a busy machine; D128, D64): packed, TILE_Q 96 0.99, 1.01; 144 1.07, 1.02; 192 1.10, 1.05; 288 1.12,
 * 1.06, but fewer groups; 192 with TILE_KV 64 1.09, 1.02, with 256 1.10, 1.05, without the line between panels 1.09, 1.03; not
 * packed, TILE_Q 192 1.05, 1.03.
 */
#include "../mask.h"
#include "gemm.h"

#if !defined(ROWS) || !defined(VECTORS) || !defined(TILE_Q) || !defined(TILE_KV) || !defined(HEAD_DIM_MAX) || !defined(VALUE_DIM_MAX)
#error "ROWS, VECTORS: the register block; TILE_Q: queries of a group; TILE_KV: keys of a tile; *_DIM_MAX: bounds of the dims"
#endif
#define BLOCKS (TILE_Q / LANES)
/* ROWS elements of each value of a tile, and a line of a cache: without it the panels of a key fall into few sets. */
#define PANEL (TILE_KV * ROWS + 16)
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

INLINE void block_load(block *blk, float *qt, __global const float *q, const attention_params *p, i64 first) {
    for (int lane = 0; lane < LANES; lane++) {
        i64 i = first + lane < p->len_q ? first + lane : p->len_q - 1;
        __global const float *row = q + i * p->q.l;
        for (int d = 0; d < p->head_dim; d++) qt[d * LANES + lane] = row[d * p->q.d] * (p->scale * LOG2_E);
    }
    UNROLL for (int v = 0; v < VECTORS; v++) {
        blk->row_max[v] = vec_splat(-INFINITY);
        blk->row_sum[v] = vec_splat(0.0f);
    }
}

/* Which keys of the tile from `start` the lanes look at. */
INLINE void block_mask(block *blk, const attention_params *p, i64 b, i64 first, i64 start) {
    key_range any = range_in_tile(live_for_any(p, b, first, LANES), start, TILE_KV), all = live_for_all(p, b, first, LANES);
    blk->start = start + any.first;
    blk->keys = (int)(any.end - any.first);
    blk->partial = all.first > blk->start || all.end < blk->start + blk->keys;
    if (!blk->partial) return;
    i64 last = last_query(p, first, LANES);
    i32 firsts[LANES], ends[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        key_range live = live_range(p, b, first + lane < last ? first + lane : last);
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

/* packed[d / ROWS][key][d % ROWS] = v[key][d] for `keys` keys, in panels of PANEL floats; beyond value_dim the last element. */
INLINE void values_pack(float *packed, __global const float *v, const strides *stride, int keys, int value_dim) {
    for (int j = 0; j < keys; j++, v += stride->l, packed += ROWS) {
        float *to = packed;
        int d = 0;
        if (stride->d == 1) {
            for (; d + ROWS <= value_dim; d += ROWS, to += PANEL) {
                float group[ROWS];
                UNROLL for (int r = 0; r < ROWS; r++) group[r] = v[d + r];
                UNROLL for (int r = 0; r < ROWS; r++) to[r] = group[r];
            }
        }
        for (; d < value_dim; d += ROWS, to += PANEL)
            for (int r = 0; r < ROWS; r++) to[r] = v[(d + ROW_AT(r, value_dim - d)) * stride->d];
    }
}

/* value_rows without the keys that a lane does not look at: their weights are 0, their values may be anything. */
static void value_row_masked(const block *blk, const float *values, const float *weights, float *ot) {
    for (int v = 0; v < VECTORS; v++) {
        vec sum = blk->rescale[v] * vec_load(ot + v * VECTOR_WIDTH);
        for (int j = 0; j < blk->keys; j++) {
            vec next = sum + vec_splat(values[j * ROWS]) * vec_load(weights + j * LANES + v * VECTOR_WIDTH);
            sum = vec_select(live_lanes(blk, v, j), next, sum);
        }
        vec_store(sum, ot + v * VECTOR_WIDTH);
    }
}

INLINE void value_rows(int rows, const block *blk, const float *values, const float *weights, float *ot) {
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v) acc[r][v] = blk->rescale[v] * vec_load(ot + ROW_AT(r, rows) * LANES + v * VECTOR_WIDTH);
    multiply_packed(acc, ROWS, values, 1, ROWS, weights, LANES, blk->keys);
    if (blk->partial) {
        vec finite = vec_splat(0.0f);
        FOR_BLOCK(r, v) finite += acc[r][v] - acc[r][v];
        if (vec_any_nan(finite)) {
            for (int r = 0; r < ROWS && r < rows; r++) value_row_masked(blk, values + r, weights, ot + r * LANES);
            return;
        }
    }
    FOR_BLOCK(r, v) if (r < rows) vec_store(acc[r][v], ot + r * LANES + v * VECTOR_WIDTH);
}

/* values: the block's first key in the packed tile. */
INLINE void block_values(const block *blk, const float *values, const attention_params *p, const float *weights, float *ot) {
    for (int d = 0; d < p->value_dim; d += ROWS, values += PANEL)
        value_rows(p->value_dim - d, blk, values, weights, ot + d * LANES);
}

/* Divide by the sums. A sum of 0 is that of a row without a finite score, all of whose weights are 0. */
INLINE void block_store(const block *blk, const float *ot, __global float *out, __global float *lse, const attention_params *p,
                        i64 first) {
    float row_max[LANES], row_sum[LANES];
    UNROLL for (int v = 0; v < VECTORS; v++) {
        vec_store(blk->row_max[v], row_max + v * VECTOR_WIDTH);
        vec_store(blk->row_sum[v], row_sum + v * VECTOR_WIDTH);
    }
    for (int lane = 0; lane < LANES && first + lane < p->len_q; lane++) {
        __global float *row = out + (first + lane) * p->out.l;
        float factor = row_sum[lane] == 0.0f ? 1.0f : 1.0f / row_sum[lane];
        for (int d = 0; d < p->value_dim; d++) row[d * p->out.d] = ot[d * LANES + lane] * factor;
        if (p->has_lse) lse[(first + lane) * p->lse.l] = row_max[lane] * LN_2 + log(row_sum[lane]);
    }
}

/* The queries from `first` on, TILE_Q at most, of one head of batch member b. */
INLINE void attend(__global const float *q, __global const float *k, __global const float *v, __global float *out,
                   __global float *lse, const attention_params *p, i64 b, i64 first) {
    vec qt_memory[TILE_Q / VECTOR_WIDTH * HEAD_DIM_MAX], ot_memory[TILE_Q / VECTOR_WIDTH * VALUE_DIM_MAX];
    vec s_memory[TILE_KV * VECTORS], values_memory[(VALUE_DIM_MAX + ROWS - 1) / ROWS * PANEL / VECTOR_WIDTH];
    float *qt = (float *)qt_memory, *ot = (float *)ot_memory, *s = (float *)s_memory, *values = (float *)values_memory;
    block blocks[BLOCKS];
    i64 queries = p->len_q - first < TILE_Q ? p->len_q - first : TILE_Q;
    int count = (int)((queries + LANES - 1) / LANES);

    for (int n = 0; n < count; n++) block_load(&blocks[n], qt + n * LANES * p->head_dim, q, p, first + n * LANES);
    for (int n = 0; n < count * LANES * p->value_dim; n += VECTOR_WIDTH) vec_store(vec_splat(0.0f), ot + n);
    key_range live = live_for_any(p, b, first, queries);
    for (i64 start = live.first / TILE_KV * TILE_KV; start < live.end; start += TILE_KV) {
        i64 begin = start < live.first ? live.first : start, end = start + TILE_KV < live.end ? start + TILE_KV : live.end;
        values_pack(values, v + begin * p->v.l, &p->v, (int)(end - begin), p->value_dim);
        for (int n = 0; n < count; n++) {
            block *blk = &blocks[n];
            block_mask(blk, p, b, first + n * LANES, start);
            if (blk->keys == 0) continue;
            block_scores(blk, k + blk->start * p->k.l, p, qt + n * LANES * p->head_dim, s);
            block_weights(blk, s);
            block_values(blk, values + (blk->start - begin) * ROWS, p, s, ot + n * LANES * p->value_dim);
        }
    }
    for (int n = 0; n < count; n++) block_store(&blocks[n], ot + n * LANES * p->value_dim, out, lse, p, first + n * LANES);
}

__kernel GROUP_OF_ONE void attention(__global const float *restrict q, __global const float *restrict k,
                                     __global const float *restrict v, __global float *restrict out,
                                     __global float *restrict lse, attention_params p) {
    q += p.base[0], k += p.base[1], v += p.base[2], out += p.base[3], lse += p.base[4];
    i64 tiles = (p.len_q + TILE_Q - 1) / TILE_Q;
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        i64 b = group / tiles / p.heads_q, h = group / tiles % p.heads_q, g = h / (p.heads_q / p.heads_kv);
        attend(q + b * p.q.b + h * p.q.h, k + b * p.k.b + g * p.k.h, v + b * p.v.b + g * p.v.h, out + b * p.out.b + h * p.out.h,
               lse + b * p.lse.b + h * p.lse.h, &p, b, group % tiles * TILE_Q);
    }
}
