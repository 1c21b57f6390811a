/* Fused attention: out = softmax(scores) V and the log-sum-exp of each row, without the matrix of scores.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Queries in lanes. A block of LANES = VECTORS * WIDTH queries is transposed once (scale folded in); for each tile of
 * TILE_KV keys
 *      S^T[key][lane]  = K[key][d] (broadcast) * Q^T[d][lane]
 *      P^T             = e^(S^T - max), the running maximum and sum of a lane rescaled       (Dao 2023, algorithm 1)
 *      O^T[d][lane]   += V[key][d] (broadcast) * P^T[key][lane]
 * No reduction crosses lanes. K is read where it lies, whatever its strides, or, of f16 and bf16, converted a tile at a
 * time; so is V, unless PACK_VALUES or a conversion has it packed a tile at a time. A tile serves the TILE_Q / LANES blocks of
 * a group while it is in the nearest caches.
 *
 * group: query_tile_at (mask.h) with tiles of TILE_Q queries.
 * Private memory: (HEAD_DIM_MAX + VALUE_DIM_MAX) * TILE_Q + TILE_KV * (LANES + VALUE_DIM_MAX) reals; in f16 and bf16
 * HEAD_DIM_MAX * TILE_KV more; where MODIFIED TILE_KV * LANES more. In C the dims in use take the place of the bounds: a caller's
 * thread may have a small stack.
 *
 * MODIFIED 0: scores are in units of log2(e), which the scale holds, and a row's live keys are a range. MODIFIED 1: they go
 * through options.h, and nothing multiplies them before the maximum is subtracted: -FLT_MAX is a score.
 * Its speed, of MODIFIED 0's (AVX2, D64): ALiBi 0.88, softcap 0.71, bias 0.75 and mask 0.67 of each pair.
 *
 * Masks: of a tile, a block visits what any of its lanes looks at, and nothing where elements mask all of that. In a tile
 * where lanes differ, masked scores become -inf and weigh 0; if a sum then is not finite, its rows are done again with the
 * masked keys left out, for 0 * V may have been 0 * NaN.
 * The running maximum need not keep a NaN: e^(NaN - max) is NaN and so are the lane's sum and output from there on.
 *
 * Tried (AVX-512, one core, in turns; 512 heads of 128 queries and keys, D64, in memory, in the last cache): queries and output
 * transposed by shuffles 1.0, 1.17 times as fast; with it the first keys fetched while queries are 1.08, 1.15; each next tile fetched
 * before it is needed 1 to 3 % slower at N 2048.
 * Tried (AVX2, one core, H2 N4096 D64, percent of the FMA peak in the same process): rows x vectors of the register block
 * 4 x 3 82, 6 x 2 70.
 * Tried (likewise; K and V of 4.3 MiB at D128, so in the last cache; speed against values read where they lie with TILE_Q 96
 * and TILE_KV 128, in turns on a busy machine; D128, D64): packed, TILE_Q 96 0.99, 1.01; 144 1.07, 1.02; 192 1.10, 1.05; 288
 * 1.12, 1.06, but fewer groups; 192 with TILE_KV 64 1.09, 1.02, with 256 1.10, 1.05, without the line between panels 1.09,
 * 1.03; not packed, TILE_Q 192 1.05, 1.03.
 * Tried (AVX-512, one core, H2 N2048, in turns; D128, D64; a nearest cache of 48 KiB and 12 ways): against packed with TILE_Q
 * 192, not packed 1.03, 1.02; with TILE_Q 96 0.98, 1.02; 384 1.01, 1.02. TILE_KV 64, 96, 128: alike.
 */
#include "lane_options.h"
#include "transpose.h"

#if !defined(ROWS) || !defined(VECTORS) || !defined(TILE_Q) || !defined(TILE_KV) || !defined(HEAD_DIM_MAX) ||                  \
    !defined(VALUE_DIM_MAX)
#error "ROWS, VECTORS: the register block; TILE_Q: queries of a group; TILE_KV: keys of a tile; *_DIM_MAX: bounds of the dims"
#endif
#if !defined(PACK_VALUES) /* values that need no conversion, too */
#define PACK_VALUES 0
#endif
#if !defined(MODIFIED)
#error "MODIFIED: whether scores go through options.h"
#endif
#define BLOCKS (TILE_Q / LANES)
/* ROWS elements of each value of a tile, and a line of a cache: without it the panels of a key fall into few sets. */
#define PANEL (TILE_KV * ROWS + 16)
#define PANELS(value_dim) (((value_dim) + ROWS - 1) / ROWS)
#if TILE_Q % (VECTORS * VECTOR_WIDTH)
#error "TILE_Q must be a multiple of VECTORS * VECTOR_WIDTH"
#endif
#if ROWS % WIDTH && WIDTH % ROWS
#error "of ROWS and the width of a vector one must divide the other"
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

/* Where keys and values are read. */
#if STORED_IS_REAL
#define KEY_SPACE __global
#define multiply_keys multiply
#else
#define KEY_SPACE __private
#define multiply_keys multiply_packed
#endif
#define VALUES_PACKED (PACK_VALUES || !STORED_IS_REAL)
#if VALUES_PACKED
#define VALUE_SPACE __private
#define multiply_values multiply_packed
#else
#define VALUE_SPACE __global
#define multiply_values multiply
#endif

INLINE int asks_elements(const attention_params *p) {
    return MODIFIED && has_elements(p);
}

/* What one query head of one member works on, from that member's first query and first key on. */
typedef struct head {
    __global const stored *q, *k, *v;
    __global stored *out;
    __global float *lse;
    __global const uchar *mask;
    __global const void *bias;
    i64 b, h;
    real slope, sink;
} head;

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

/* What a group has in private memory. */
typedef struct memory {
    real *qt, *ot;     /* the blocks, [dim][LANES] each */
    real *s, *addends; /* one block's scores and what options.h adds to them, [TILE_KV][LANES] */
    real *keys;        /* a tile of K, where it must be converted: [TILE_KV][head_dim] */
    real *values;      /* a tile of V, where it is packed: [value_dim / ROWS][TILE_KV][ROWS] in panels of PANEL */
} memory;

/* A tile of V: element r of ROWS of its key j lies at j * l + r * step, those of the next ROWS `panel` further on. */
typedef struct value_tile {
    VALUE_SPACE const real *at;
    i64 l, step, panel;
} value_tile;

/* A tile of K: element d of its key j lies at j * l + d * step. */
typedef struct key_tile {
    KEY_SPACE const real *at;
    i64 l, step;
} key_tile;

INLINE key_tile keys_load(const memory *mem, __global const stored *k, const attention_params *p, key_range keys) {
#if STORED_IS_REAL
    (void)mem, (void)keys;
    const key_tile tile = {k, p->k.l, p->k.d};
#else
    for (i64 j = keys.first; j < keys.end; j++)
        stored_row_load(mem->keys + j * p->head_dim, k + j * p->k.l, p->k.d, p->head_dim);
    const key_tile tile = {mem->keys, p->head_dim, 1};
#endif
    return tile;
}

#if VALUES_PACKED
/* Where element d of a packed value lies, from its element 0. */
INLINE int in_panels(int d) {
    return d / ROWS * PANEL + d % ROWS;
}

/* Elements of a vector that lie side by side in a panel: of ROWS and WIDTH one divides the other. */
#if ROWS < WIDTH
#define BESIDE ROWS
#else
#define BESIDE WIDTH
#endif

/* Beyond value_dim the last panel repeats the last element. */
INLINE value_tile values_load(const memory *mem, __global const stored *v, const attention_params *p, key_range keys) {
    const value_tile tile = {mem->values, ROWS, 1, PANEL};
    const int dim = p->value_dim, vectors = p->v.d == 1 ? dim / WIDTH * WIDTH : 0, end = (dim + ROWS - 1) / ROWS * ROWS;
    for (i64 j = keys.first; j < keys.end; j++) {
        __global const stored *from = v + j * p->v.l;
        real *to = mem->values + j * ROWS;
        for (int d = 0; d < vectors; d += WIDTH) {
            real lanes[WIDTH];
            vec_store(stored_vec_load(from + d), lanes);
            UNROLL for (int n = 0; n < WIDTH; n += BESIDE) reals_copy(BESIDE, lanes + n, to + in_panels(d + n));
        }
        for (int d = vectors; d < end; d++) to[in_panels(d)] = stored_load(from + (d < dim ? d : dim - 1) * p->v.d);
    }
    return tile;
}
#else
INLINE value_tile values_load(const memory *mem, __global const stored *v, const attention_params *p, key_range keys) {
    (void)mem, (void)keys;
    const value_tile tile = {v, p->v.l, p->v.d, ROWS * p->v.d};
    return tile;
}
#endif

/* The query in a lane of the block from `first` on; the last one again where there are no more. */
INLINE i64 query_in_lane(const member *m, i64 first, int lane) {
    return first + lane < m->len_q ? first + lane : m->len_q - 1;
}

/* What raw scores are multiplied by: of a softcap, that they are divided by, too. */
INLINE real block_scale(const attention_params *p) {
    const real scale = real_parameter(p, scale), softcap = real_parameter(p, softcap);
    if (!MODIFIED || softcap == REAL(0.0)) return scale * FROM_NATURAL;
    return fmax(fmin(scale / softcap, REAL_MAX), -REAL_MAX);
}

/* WIDTH dims of WIDTH queries from `first` on, which stand in lanes then. */
INLINE void load_square(real *qt, __global const stored *q, i64 l, const member *m, i64 first, real scale) {
    vec square[WIDTH];
    UNROLL for (int n = 0; n < WIDTH; n++) square[n] = stored_vec_load(q + query_in_lane(m, first, n) * l) * scale;
    transpose(square);
    UNROLL for (int n = 0; n < WIDTH; n++) vec_store_aligned(square[n], qt + n * LANES);
}

INLINE void block_load(block *blk, real *qt, const head *hd, const attention_params *p, const member *m, i64 first) {
    const real scale = block_scale(p);
    const int whole = p->q.d == 1 ? p->head_dim / WIDTH * WIDTH : 0;
    for (int lane = 0; lane < LANES; lane += WIDTH) {
        for (int d = 0; d < whole; d += WIDTH) load_square(qt + d * LANES + lane, hd->q + d, p->q.l, m, first + lane, scale);
    }
    for (int lane = 0; lane < LANES; lane++) {
        __global const stored *row = hd->q + query_in_lane(m, first, lane) * p->q.l;
        for (int d = whole; d < p->head_dim; d++) qt[d * LANES + lane] = stored_load(row + d * p->q.d) * scale;
    }
    UNROLL for (int v = 0; v < VECTORS; v++) {
        blk->row_max[v] = vec_splat(-INFINITY);
        blk->row_sum[v] = vec_splat(REAL(0.0));
    }
}

/* Which keys of the tile from `start` the lanes look at, as far as ranges tell. */
INLINE void block_range(block *blk, const attention_params *p, const member *m, i64 first, i64 start) {
    key_range any = range_in_tile(live_for_any(p, m, first, LANES), start, TILE_KV), all = live_for_all(p, m, first, LANES);
    blk->start = start + any.first;
    blk->keys = (int)(any.end - any.first);
    blk->partial = all.first > blk->start || all.end < blk->start + blk->keys;
}

INLINE void block_lane_ranges(const block *blk, const attention_params *p, const member *m, i64 first, integer firsts[LANES],
                              integer ends[LANES]) {
    for (int lane = 0; lane < LANES; lane++) {
        const key_range live = range_in_tile(live_range(p, m, query_in_lane(m, first, lane)), blk->start, blk->keys);
        firsts[lane] = (integer)live.first;
        ends[lane] = (integer)live.end;
    }
}

/* Whether any lane looks at any key of the tile from `start`; if so, which. */
INLINE int block_looks(block *blk, const memory *mem, const row_options *rows, const attention_params *p, const member *m,
                       i64 first, i64 start) {
    integer firsts[LANES], ends[LANES];
    block_range(blk, p, m, first, start);
    if (blk->keys == 0) return 0;
    if (!blk->partial && !asks_elements(p)) return 1;
    block_lane_ranges(blk, p, m, first, firsts, ends);
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

/* Scores of `rows` keys, and their maximum with what `top` holds. */
INLINE void score_rows(int rows, const i64 row[ROWS], KEY_SPACE const real *k, const key_tile *keys, const real *qt,
                       i64 head_dim, real *s, vec top[VECTORS]) {
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v) acc[r][v] = vec_splat(REAL(0.0));
    multiply_keys(acc, row, k, keys->step, qt, LANES, head_dim);
    FOR_BLOCK(r, v) {
        top[v] = vec_max(top[v], acc[r][v]);
        if (r < rows) vec_store_aligned(acc[r][v], s + r * LANES + v * WIDTH);
    }
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

INLINE void block_scores(block *blk, const memory *mem, const row_options *rows, const key_tile *keys, i64 at, const real *qt,
                         const attention_params *p) {
    vec top[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) top[v] = blk->row_max[v];
    i64 row[ROWS];
    rows_at(row, ROWS, keys->l);
    for (int j = 0; j < blk->keys; j += ROWS) {
        if (blk->keys - j < ROWS) rows_at(row, blk->keys - j, keys->l);
        score_rows(blk->keys - j, row, keys->at + (at + j) * keys->l, keys, qt, p->head_dim, mem->s + j * LANES, top);
    }
    if (MODIFIED || blk->partial) scores_modify(blk, mem, rows, at, p, top);
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

/* value_rows without the keys that a lane does not look at: their weights are 0, their values may be anything. */
APART void value_row_masked(const block *blk, const memory *mem, VALUE_SPACE const real *values, i64 l, real *ot) {
    for (int v = 0; v < VECTORS; v++) {
        vec sum = blk->rescale[v] * vec_load(ot + v * WIDTH);
        for (int j = 0; j < blk->keys; j++) {
            vec next = sum + vec_splat(values[j * l]) * vec_load(mem->s + j * LANES + v * WIDTH);
            sum = vec_select(live_lanes(blk, mem, v, j), next, sum);
        }
        vec_store(sum, ot + v * WIDTH);
    }
}

INLINE void value_rows(int rows, const i64 row[ROWS], const block *blk, const memory *mem, VALUE_SPACE const real *values,
                       const value_tile *tile, real *ot) {
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v) acc[r][v] = blk->rescale[v] * vec_load(ot + ROW_AT(r, rows) * LANES + v * WIDTH);
    multiply_values(acc, row, values, tile->l, mem->s, LANES, blk->keys);
    if (blk->partial) {
        vec finite = vec_splat(REAL(0.0));
        FOR_BLOCK(r, v) finite += acc[r][v] - acc[r][v];
        if (vec_any_nan(finite)) {
            for (int r = 0; r < ROWS && r < rows; r++) value_row_masked(blk, mem, values + r * tile->step, tile->l, ot + r * LANES);
            return;
        }
    }
    FOR_BLOCK(r, v) if (r < rows) vec_store_aligned(acc[r][v], ot + r * LANES + v * WIDTH);
}

INLINE void block_values(const block *blk, const memory *mem, const value_tile *tile, i64 at, const attention_params *p,
                         real *ot) {
    VALUE_SPACE const real *values = tile->at + at * tile->l;
    i64 row[ROWS];
    rows_at(row, ROWS, tile->step);
    for (int d = 0; d < p->value_dim; d += ROWS, values += tile->panel) {
        if (!VALUES_PACKED && p->value_dim - d < ROWS) rows_at(row, p->value_dim - d, tile->step);
        value_rows(p->value_dim - d, row, blk, mem, values, tile, ot + d * LANES);
    }
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

/* WIDTH dims of the first `count` of WIDTH queries, from lanes. */
INLINE void store_square(const real *ot, const real *factors, __global stored *out, i64 l, i64 count) {
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
            store_square(ot + d * LANES + lane, factors + lane, hd->out + (first + lane) * p->out.l + d, p->out.l, m->len_q - first - lane);
    }
    for (int lane = 0; lane < LANES && first + lane < m->len_q; lane++) {
        __global stored *row = hd->out + (first + lane) * p->out.l;
        for (int d = whole; d < p->value_dim; d++) stored_store(ot[d * LANES + lane] * factors[lane], row + d * p->out.d);
        if (p->has_lse) hd->lse[(first + lane) * p->lse.l] = (float)logs[lane];
    }
}

/* Have the first tiles of K and V near while the queries are transposed; later ones the processor sees coming. */
INLINE void fetch_first(const head *hd, const attention_params *p, key_range live) {
    const i64 end = live.first + 2 * TILE_KV < live.end ? live.first + 2 * TILE_KV : live.end;
    for (i64 j = live.first; j < end; j++) {
        for (int d = 0; d < p->head_dim; d += LINE) FETCH(hd->k + j * p->k.l + d * p->k.d);
        for (int d = 0; d < p->value_dim; d += LINE) FETCH(hd->v + j * p->v.l + d * p->v.d);
    }
}

/* The queries from `first` on, TILE_Q at most, of one head. */
INLINE void attend(const memory *mem, const head *hd, const attention_params *p, const member *m, i64 first) {
    block blocks[BLOCKS];
    row_options rows[MODIFIED ? BLOCKS * LANES : 1];
    const i64 queries = m->len_q - first < TILE_Q ? m->len_q - first : TILE_Q;
    const int count = (int)((queries + LANES - 1) / LANES), q_size = LANES * p->head_dim, out_size = LANES * p->value_dim;

    const key_range live = live_for_any(p, m, first, queries);
    fetch_first(hd, p, live);
    for (int n = 0; n < count; n++) {
        block_load(&blocks[n], mem->qt + n * q_size, hd, p, m, first + n * LANES);
        for (int lane = 0; MODIFIED && lane < LANES; lane++) {
            const i64 i = query_in_lane(m, first + n * LANES, lane);
            rows[n * LANES + lane] = row_options_of(p, hd->mask, hd->bias, hd->b, hd->h, i, i + m->offset, hd->slope);
        }
    }
    for (int n = 0; n < count * out_size; n += WIDTH) vec_store_aligned(vec_splat(REAL(0.0)), mem->ot + n);
    for (i64 start = live.first / TILE_KV * TILE_KV; start < live.end; start += TILE_KV) {
        key_tile keys;
        value_tile values;
        int loaded = 0;
        for (int n = 0; n < count; n++) {
            block *blk = &blocks[n];
            const row_options *block_rows = &rows[MODIFIED ? n * LANES : 0];
            if (!block_looks(blk, mem, block_rows, p, m, first + n * LANES, start)) continue;
            if (!loaded) {
                const key_range rows = range_in_tile(live, start, TILE_KV);
                keys = keys_load(mem, hd->k + start * p->k.l, p, rows);
                values = values_load(mem, hd->v + start * p->v.l, p, rows);
                loaded = 1;
            }
            block_scores(blk, mem, block_rows, &keys, blk->start - start, mem->qt + n * q_size, p);
            block_weights(blk, mem->s);
            block_values(blk, mem, &values, blk->start - start, p, mem->ot + n * out_size);
        }
    }
    for (int n = 0; n < count; n++) block_store(&blocks[n], mem->ot + n * out_size, hd, p, m, first + n * LANES);
}

__kernel GROUP_OF_ONE void attention(__global const stored *restrict q, __global const stored *restrict k,
                                     __global const stored *restrict v, __global stored *restrict out,
                                     __global float *restrict lse, INT_BUFFER kv_lengths, INT_BUFFER q_offsets,
                                     INT_BUFFER kv_offsets, __global const uchar *mask, __global const void *bias,
                                     __global const float *slopes, __global const float *sinks, attention_params p) {
    vec qt[TILE_Q / WIDTH * EXTENT(p.head_dim, HEAD_DIM_MAX)], ot[TILE_Q / WIDTH * EXTENT(p.value_dim, VALUE_DIM_MAX)];
    vec s[TILE_KV * VECTORS];
    vec addends[MODIFIED ? TILE_KV * VECTORS : 1], keys[STORED_IS_REAL ? 1 : TILE_KV / WIDTH * EXTENT(p.head_dim, HEAD_DIM_MAX) + 1];
    vec values[VALUES_PACKED ? PANELS(EXTENT(p.value_dim, VALUE_DIM_MAX)) * PANEL / WIDTH : 1];
    const memory mem = {(real *)qt, (real *)ot, (real *)s, (real *)addends, (real *)keys, (real *)values};

    q += p.base[0], k += p.base[1], v += p.base[2], out += p.base[3], lse += p.base[4];
    kv_lengths += p.base[5], q_offsets += p.base[6], kv_offsets += p.base[7], mask += p.base[8];
    slopes += p.base[10], sinks += p.base[11];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const query_tile at = query_tile_at(&p, q_offsets, TILE_Q, group);
        const member whole = member_of(&p, kv_lengths, q_offsets, kv_offsets, at.b);
        const member m = MODIFIED ? within_elements(&p, whole) : whole;
        if (at.tile * TILE_Q >= m.len_q) continue;
        const i64 q_b = p.q_offsets.present ? 0 : at.b, kv_b = p.kv_offsets.present ? 0 : at.b;
        const head hd = {q + q_b * p.q.b + at.h * p.q.h + m.q_first * p.q.l,
                         k + kv_b * p.k.b + at.g * p.k.h + m.kv_first * p.k.l,
                         v + kv_b * p.v.b + at.g * p.v.h + m.kv_first * p.v.l,
                         out + q_b * p.out.b + at.h * p.out.h + m.q_first * p.out.l,
                         lse + q_b * p.lse.b + at.h * p.lse.h + m.q_first * p.lse.l,
                         mask,
                         bias_from(&p, bias, p.base[9]),
                         at.b,
                         at.h,
                         MODIFIED ? slope_of(&p, slopes, at.b, at.h) : REAL(0.0),
                         p.has_sinks ? sinks[at.b * p.sinks_b + at.h * p.sinks_h] : REAL(0.0)};
        attend(&mem, &hd, &p, &m, at.tile * TILE_Q);
    }
}
