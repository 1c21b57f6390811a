/* Blocks of queries that stand in lanes: what they look at, how their scores become weights, and where their results go. For
 * attention.cl, and for what computes the same by other products.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Who includes it says how a group's memory looks: a struct `memory` with
 *      real *ot            the sums of values of the group's blocks, [OUT_DIM][LANES] each
 *      real *s, *addends   one block's scores and what options.h adds to them, [TILE_KV][LANES]
 * attention_walk.h, included behind the products, says what these are.
 */
#ifndef CLATTN_KERNELS_CPU_ATTENTION_BLOCK_H
#define CLATTN_KERNELS_CPU_ATTENTION_BLOCK_H

#include "lane_options.h"
#include "transpose.h"

#if !defined(MODIFIED)
#error "MODIFIED: whether scores go through options.h"
#endif
#define BLOCKS (TILE_Q / LANES)
#if !defined(GROUPED) /* rows of all query heads that share a key head, over a part of the keys; else those of one head */
#define GROUPED 0
#endif
#if TILE_Q % (VECTORS * VECTOR_WIDTH)
#error "TILE_Q must be a multiple of VECTORS * VECTOR_WIDTH"
#endif

/* Where kernels that take keys as they are stored, or converted to reals, read them. */
#if STORED_IS_REAL
#define KEY_SPACE __global
#define multiply_keys multiply
#else
#define KEY_SPACE __private
#define multiply_keys multiply_packed
#endif

/* The unit of scores: how many make a natural one, and the reverse. */
#if MODIFIED
#define FROM_NATURAL REAL(1.0)
#define TO_NATURAL REAL(1.0)
#define weight_of(score) vec_exp2((score)*LOG2_E)
#else
#define FROM_NATURAL LOG2_E
#define TO_NATURAL LN_2
#define weight_of(score) vec_exp2(score)
#endif

INLINE int asks_elements(const attention_params *p) {
    return MODIFIED && has_elements(p);
}

/* Results of a part of the keys are of f32, whatever is stored. */
#if GROUPED
typedef float result;
#else
typedef stored result;
#endif

/* What one query head of one member works on, from that member's first query and first key on. GROUPED: what all heads of a group do,
 * from the first of them on; row r is query r % len_q of head h + r / len_q. */
typedef struct head {
    __global const stored *q, *k, *v;
    __global result *out;
    __global float *lse;
    __global const uchar *mask;
    __global const void *bias;
    __global const float *slopes;
    i64 b, h;
    i64 rows;       /* its queries; GROUPED: those of all heads */
    key_range part; /* its keys */
    real sink;
} head;

INLINE i64 query_of_row(const member *m, i64 row) { return GROUPED ? row % m->len_q : row; }
INLINE i64 head_of_row(const member *m, i64 row) { return GROUPED ? row / m->len_q : 0; }

/* Where a row of a view begins. */
INLINE i64 row_at(const strides *stride, const member *m, i64 row) {
    return head_of_row(m, row) * stride->h + query_of_row(m, row) * stride->l;
}

/* The running state of a block of queries. */
typedef struct block {
    vec row_max[VECTORS], row_sum[VECTORS]; /* of scores */
    vec shift[VECTORS];                     /* what this tile's exponents subtract: row_max, or 0 while that is -inf */
    vec rescale[VECTORS];                   /* e^(old row_max - new) */
#if !MODIFIED
    ivec first[VECTORS], end[VECTORS]; /* the lane's live keys in this tile, counted from `start` */
#endif
    i64 start;   /* the first key of this tile that any lane looks at, */
    int keys;    /* and how many from there until the last such */
    int partial; /* whether some lane looks at fewer */
} block;

/* The row in a lane of the block from `first` on; the last one again where there are no more. */
INLINE i64 row_in_lane(const head *hd, i64 first, int lane) {
    return first + lane < hd->rows ? first + lane : hd->rows - 1;
}

/* What raw scores are multiplied by: of a softcap, that they are divided by, too. */
INLINE real block_scale(const attention_params *p) {
    const real scale = real_parameter(p, scale), softcap = real_parameter(p, softcap);
    if (!MODIFIED || softcap == REAL(0.0)) return scale * FROM_NATURAL;
    return fmax(fmin(scale / softcap, REAL_MAX), -REAL_MAX);
}

/* WIDTH dims, from d on, of WIDTH rows from `first` on, which stand in lanes then. */
INLINE void load_square(real *qt, const head *hd, const strides *q, const member *m, i64 first, int d, real scale) {
    vec square[WIDTH];
    UNROLL for (int n = 0; n < WIDTH; n++) square[n] = stored_vec_load(hd->q + row_at(q, m, row_in_lane(hd, first, n)) + d) * scale;
    transpose(square);
    UNROLL for (int n = 0; n < WIDTH; n++) vec_store_aligned(square[n], qt + n * LANES);
}

/* The rows of the block from `first` on, scaled, in lanes: qt[head_dim][LANES]. */
INLINE void rows_load(real *qt, const head *hd, const attention_params *p, const member *m, i64 first) {
    const real scale = block_scale(p);
    const int whole = p->q.d == 1 ? p->head_dim / WIDTH * WIDTH : 0;
    for (int lane = 0; lane < LANES; lane += WIDTH) {
        for (int d = 0; d < whole; d += WIDTH) load_square(qt + d * LANES + lane, hd, &p->q, m, first + lane, d, scale);
    }
    for (int lane = 0; lane < LANES; lane++) {
        __global const stored *row = hd->q + row_at(&p->q, m, row_in_lane(hd, first, lane));
        for (int d = whole; d < p->head_dim; d++) qt[d * LANES + lane] = stored_load(row + d * p->q.d) * scale;
    }
}

/* Before the first key. */
INLINE void block_start(block *blk) {
    UNROLL for (int v = 0; v < VECTORS; v++) {
        blk->row_max[v] = vec_splat(-INFINITY);
        blk->row_sum[v] = vec_splat(REAL(0.0));
    }
}

/* The keys of the part that any of these rows may look at. Rows of several heads may be any queries. */
INLINE key_range live_for_rows(const head *hd, const attention_params *p, const member *m, i64 first, i64 rows) {
    if (!GROUPED) return live_for_any(p, m, first, rows);
    const key_range any = live_for_any(p, m, 0, m->len_q);
    const key_range part = {mask_clamp(any.first, hd->part.first, hd->part.end), mask_clamp(any.end, hd->part.first, hd->part.end)};
    return part;
}

/* Which keys of the tile from `start` the lanes look at, as far as ranges tell. */
INLINE void block_range(block *blk, const head *hd, const attention_params *p, const member *m, i64 first, i64 start) {
    const key_range any = range_in_tile(live_for_rows(hd, p, m, first, LANES), start, TILE_KV);
    const key_range all = live_for_all(p, m, GROUPED ? 0 : first, GROUPED ? m->len_q : LANES);
    blk->start = start + any.first;
    blk->keys = (int)(any.end - any.first);
    blk->partial = all.first > blk->start || all.end < blk->start + blk->keys;
}

INLINE void block_lane_ranges(const block *blk, const head *hd, const attention_params *p, const member *m, i64 first,
                              integer firsts[LANES], integer ends[LANES]) {
    for (int lane = 0; lane < LANES; lane++) {
        const key_range live = range_in_tile(live_range(p, m, query_of_row(m, row_in_lane(hd, first, lane))), blk->start, blk->keys);
        firsts[lane] = (integer)live.first;
        ends[lane] = (integer)live.end;
    }
}

/* Whether any lane looks at any key of the tile from `start`; if so, which. */
INLINE int block_looks(block *blk, const memory *mem, const row_options *rows, const head *hd, const attention_params *p,
                       const member *m, i64 first, i64 start) {
    integer firsts[LANES], ends[LANES];
    block_range(blk, hd, p, m, first, start);
    if (blk->keys == 0) return 0;
    if (!blk->partial && !asks_elements(p)) return 1;
    block_lane_ranges(blk, hd, p, m, first, firsts, ends);
#if MODIFIED
    const int live = lane_addends(mem->addends, rows, p, blk->start, blk->keys, firsts, ends);
    blk->partial = live == LIVE_SOME;
    return live != LIVE_NONE;
#else
    (void)mem, (void)rows;
    UNROLL for (int v = 0; v < VECTORS; v++) {
        blk->first[v] = ivec_load(firsts + v * WIDTH);
        blk->end[v] = ivec_load(ends + v * WIDTH);
    }
    return 1;
#endif
}

/* The lanes of vector v that look at key j of those visited, where some do not. */
INLINE ivec live_lanes(const block *blk, const memory *mem, int v, int j) {
#if MODIFIED
    (void)blk;
    return vec_load(mem->addends + j * LANES + v * WIDTH) != vec_splat(-INFINITY);
#else
    (void)mem;
    return (ivec_splat(j) >= blk->first[v]) & (ivec_splat(j) < blk->end[v]);
#endif
}

/* Raw scores to scores, -infinity where masked, and their maximum. The block's first key is key `at` of the tile. Distances
 * count from the tile's first key, which does not depend on the queries: nor does, then, how they are rounded. */
INLINE void scores_modify(const block *blk, const memory *mem, const row_options *rows, i64 at, const attention_params *p,
                          vec top[VECTORS]) {
    const real softcap = real_parameter(p, softcap);
    vec slope[VECTORS], distance[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) {
        top[v] = blk->row_max[v];
        if (MODIFIED) slope[v] = lane_slopes(rows, v), distance[v] = lane_distances(rows, v, blk->start - at);
    }
    for (int j = 0; j < blk->keys; j++) {
        UNROLL for (int v = 0; v < VECTORS; v++) {
            const int n = j * LANES + v * WIDTH;
            vec score = vec_load(mem->s + n);
            if (MODIFIED && softcap != REAL(0.0)) score = softcap * vec_tanh(score);
            if (MODIFIED) score = biased(score, p, mem->addends + n, slope[v], distance[v] + (real)(at + j));
            if (blk->partial) score = vec_select(live_lanes(blk, mem, v, j), score, vec_splat(-INFINITY));
            top[v] = vec_max(top[v], score);
            vec_store_aligned(score, mem->s + n);
        }
    }
}

/* A tile's maximum, over `top`, becomes the running one. */
INLINE void block_maximum(block *blk, const vec top[VECTORS]) {
    UNROLL for (int v = 0; v < VECTORS; v++) {
        blk->shift[v] = vec_select(top[v] == vec_splat(-INFINITY), vec_splat(REAL(0.0)), top[v]);
        blk->rescale[v] = weight_of(blk->row_max[v] - blk->shift[v]);
        blk->row_max[v] = top[v];
    }
}

/* Scores to weights, not yet divided by their sum. */
INLINE void block_weights(block *blk, real *s) {
    vec sum[VECTORS], shift[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) {
        sum[v] = blk->row_sum[v] * blk->rescale[v];
        shift[v] = blk->shift[v];
    }
    for (int j = 0; j < blk->keys; j++, s += LANES) {
        UNROLL for (int v = 0; v < VECTORS; v++) {
            vec weight = weight_of(vec_load(s + v * WIDTH) - shift[v]);
            sum[v] += weight;
            vec_store_aligned(weight, s + v * WIDTH);
        }
    }
    UNROLL for (int v = 0; v < VECTORS; v++) blk->row_sum[v] = sum[v];
}

/* The factor that makes a row of sums one of averages, and the log-sum-exp. A sum of 0 is that of a row without a finite
 * score, all of whose weights are 0, whatever the sink. A sink is one more logit. */
INLINE void block_finish(const block *blk, const head *hd, const attention_params *p, real factors[LANES], real logs[LANES]) {
    UNROLL for (int v = 0; v < VECTORS; v++) {
        vec top = blk->row_max[v] * TO_NATURAL, sum = blk->row_sum[v], old = vec_splat(REAL(1.0));
        if (p->has_sinks) {
            const vec sink = vec_splat(hd->sink), higher = vec_max(top, sink);
            const vec shift = vec_select(higher == vec_splat(-INFINITY), vec_splat(REAL(0.0)), higher);
            old = vec_exp(top - shift);
            sum = sum * old + vec_exp(sink - shift);
            top = higher;
        }
        vec_store(vec_select(blk->row_sum[v] == vec_splat(REAL(0.0)), vec_splat(REAL(1.0)), old / sum), factors + v * WIDTH);
        real sums[WIDTH];
        vec_store(sum, sums);
        vec_store(top, logs + v * WIDTH);
        for (int lane = 0; p->has_lse && lane < WIDTH; lane++) logs[v * WIDTH + lane] += log(sums[lane]);
    }
}

#if GROUPED
/* A row's sums lie side by side, [LANES][out_dim]. */
INLINE void block_store(const block *blk, const real *sums, const head *hd, const attention_params *p, const member *m, i64 first) {
    real factors[LANES], logs[LANES];
    block_finish(blk, hd, p, factors, logs);
    for (int lane = 0; lane < LANES && first + lane < hd->rows; lane++, sums += OUT_DIM(p)) {
        __global result *row = hd->out + row_at(&p->out, m, first + lane);
        for (int d = 0; d < p->value_dim; d++) row[d * p->out.d] = sums[d] * factors[lane];
        hd->lse[row_at(&p->lse, m, first + lane)] = (float)logs[lane];
    }
}
#else
/* WIDTH dims of the first `count` of WIDTH queries, from lanes. */
INLINE void store_square(const real *ot, const real *factors, __global result *out, i64 l, i64 count) {
    vec square[WIDTH];
    const vec factor = vec_load(factors);
    UNROLL for (int n = 0; n < WIDTH; n++) square[n] = vec_load(ot + n * LANES) * factor;
    transpose(square);
    UNROLL for (int n = 0; n < WIDTH; n++) if (n < count) stored_vec_store(square[n], out + n * l);
}

INLINE void block_store(const block *blk, const real *ot, const head *hd, const attention_params *p, const member *m,
                        i64 first) {
    real factors[LANES], logs[LANES];
    block_finish(blk, hd, p, factors, logs);
    const int whole = p->out.d == 1 ? p->value_dim / WIDTH * WIDTH : 0;
    for (int lane = 0; lane < LANES; lane += WIDTH) {
        for (int d = 0; d < whole; d += WIDTH)
            store_square(ot + d * LANES + lane, factors + lane, hd->out + (first + lane) * p->out.l + d, p->out.l,
                         m->len_q - first - lane);
    }
    for (int lane = 0; lane < LANES && first + lane < m->len_q; lane++) {
        __global stored *row = hd->out + (first + lane) * p->out.l;
        for (int d = whole; d < p->value_dim; d++) stored_store(ot[d * LANES + lane] * factors[lane], row + d * p->out.d);
        if (p->has_lse) hd->lse[(first + lane) * p->lse.l] = (float)logs[lane];
    }
}
#endif

#endif
