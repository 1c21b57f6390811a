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
 * HEAD_DIM_MAX * TILE_KV more; where MODIFIED TILE_KV * LANES more. In C the dims in use take the place of the bounds: a
 * caller's thread may have a small stack.
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
 * Tried (AVX-512, one core, H8 N2048, in turns on a still machine; D128, D64): against TILE_KV 64, 128 1.00, 1.005; with it the next
 * tile fetched into the second-level cache, a line for each step of the values' products, 1.04, 1.02; in bursts between blocks of
 * scores 1.045, 1.01, and 1.5 % slower where it lies there already; TILE_KV 192 as 128. Rows of out fetched before the last tile 1.01
 * (N1024 1.015), the next group's queries 1.00. AVX2, whose steps are half as long, 0.99, 0.98: without. Rows x vectors on SSE2:
 * against 4 x 2, 4 x 3 1.11, 1.07, 2 x 4 1.12, 1.11.
 * Tried (AVX2, one core, N1024, in turns; D64, D128): values packed two keys at a time, whole vectors stored; two lines of each of the
 * next keys fetched before a block of scores; loops that begin with a line of the cache; one tile fetched first and not two: together
 * 1.02, 1.02, SSE2 likewise. AVX-512 1.00, where fetching keys is 0.99: without.
 */
#include "lane_options.h"

#if !defined(ROWS) || !defined(VECTORS) || !defined(TILE_Q) || !defined(TILE_KV) || !defined(HEAD_DIM_MAX) ||                  \
    !defined(VALUE_DIM_MAX)
#error "ROWS, VECTORS: the register block; TILE_Q: queries of a group; TILE_KV: keys of a tile; *_DIM_MAX: bounds of the dims"
#endif
#if !defined(PACK_VALUES) /* values that need no conversion, too */
#define PACK_VALUES 0
#endif
#if !defined(FETCH_NEXT) /* what comes next into the second-level cache, beside the products of a tile's values */
#define FETCH_NEXT 0
#endif
#if !defined(FETCH_KEYS) /* where the keys of the next block of scores begin into the nearest cache */
#define FETCH_KEYS 0
#endif
/* ROWS elements of each value of a tile, and a line of a cache: without it the panels of a key fall into few sets. */
#define PANEL (TILE_KV * ROWS + 16)
#define PANELS(value_dim) (((value_dim) + ROWS - 1) / ROWS)
#if ROWS % WIDTH && WIDTH != 2 * ROWS
#error "ROWS must be half the width of a vector, or a multiple of it"
#endif

/* Where values are read. */
#define VALUES_PACKED (PACK_VALUES || !STORED_IS_REAL)
#if VALUES_PACKED
#define VALUE_SPACE __private
#else
#define VALUE_SPACE __global
#endif
#if FETCH_NEXT
DEFINE_MULTIPLY_FETCHING(multiply_values, ROWS, VECTORS, VALUE_SPACE, __private)
#elif VALUES_PACKED
#define multiply_values(acc, row, a, a_step, b, b_step, depth, far, far_step) multiply_packed(acc, row, a, a_step, b, b_step, depth)
#else
#define multiply_values(acc, row, a, a_step, b, b_step, depth, far, far_step) multiply(acc, row, a, a_step, b, b_step, depth)
#endif

/* What a group has in private memory. */
typedef struct memory {
    real *qt, *ot;     /* the blocks, [dim][LANES] each */
    real *s, *addends; /* one block's scores and what options.h adds to them, [TILE_KV][LANES] */
    real *keys;        /* a tile of K, where it must be converted: [TILE_KV][head_dim] */
    real *values;      /* a tile of V, where it is packed: [value_dim / ROWS][TILE_KV][ROWS] in panels of PANEL */
} memory;

#include "attention_block.h"

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

/* The first `dims` elements, whole vectors of them, of as many values as lie in a vector of a panel: of one, or of two that are `next`
 * elements apart. */
#if WIDTH > ROWS
enum { VALUES_AT_ONCE = WIDTH / ROWS };
INLINE void values_pack(real *to, __global const stored *from, i64 next, int dims) {
    for (int d = 0; d < dims; d += WIDTH, to += 2 * PANEL) {
        const vec first = stored_vec_load(from + d), second = stored_vec_load(from + next + d);
        vec_store(first_halves(first, second), to);
        vec_store(second_halves(first, second), to + PANEL);
    }
}
#else
enum { VALUES_AT_ONCE = 1 };
INLINE void values_pack(real *to, __global const stored *from, i64 next, int dims) {
    (void)next;
    for (int d = 0; d < dims; d += WIDTH) vec_store(stored_vec_load(from + d), to + in_panels(d));
}
#endif

/* Beyond value_dim the last panel repeats the last element. */
INLINE value_tile values_load(const memory *mem, __global const stored *v, const attention_params *p, key_range keys) {
    const value_tile tile = {mem->values, ROWS, 1, PANEL};
    const int dim = p->value_dim, vectors = p->v.d == 1 ? dim / WIDTH * WIDTH : 0, end = (dim + ROWS - 1) / ROWS * ROWS;
    for (i64 j = keys.first; j < keys.end; j += VALUES_AT_ONCE)
        values_pack(mem->values + j * ROWS, v + j * p->v.l, j + 1 < keys.end ? p->v.l : 0, vectors);
    for (i64 j = keys.first; vectors < end && j < keys.end; j++) {
        for (int d = vectors; d < end; d++)
            mem->values[j * ROWS + in_panels(d)] = stored_load(v + j * p->v.l + (d < dim ? d : dim - 1) * p->v.d);
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

INLINE void block_load(const memory *mem, int n, const head *hd, const attention_params *p, const member *m, i64 first) {
    rows_load(mem->qt + n * LANES * p->head_dim, hd, p, m, first);
}

/* Rows to fetch: element d of row j lies `row_step` * j + `step` * d bytes from `at`. */
typedef struct far_rows {
    __global const uchar *at;
    i64 row_step, step;
} far_rows;

INLINE far_rows far_rows_of(__global const stored *at, strides of) {
    const i64 size = sizeof(stored);
    const far_rows rows = {(__global const uchar *)at, of.l * size, of.d * size};
    return rows;
}

/* Keys and values of a tile. */
enum { FAR_ROWS = 4 };
typedef struct kv_tile {
    key_tile keys;
    value_tile values;
    far_rows far[FAR_ROWS]; /* what the first block, the second ... fetch beside the products of values */
} kv_tile;

/* Values and keys of the next tile, and before the last one the rows of `out` of the queries from `first` on; where there are
 * none, what is near already. */
INLINE void far_rows_choose(far_rows far[FAR_ROWS], const head *hd, const attention_params *p, i64 first, i64 start,
                            i64 end) {
    const i64 next = start + TILE_KV, beyond = next + TILE_KV;
    const far_rows none = {(__global const uchar *)(hd->v + start * p->v.l), 0, 0};
    for (int n = 0; n < FAR_ROWS; n++) far[n] = none;
    if (beyond > end) return;
    far[0] = far_rows_of(hd->v + next * p->v.l, p->v);
    far[1] = far_rows_of(hd->k + next * p->k.l, p->k);
    if (beyond + TILE_KV <= end) return;
    far[2] = far_rows_of(hd->out + first * p->out.l, p->out);
    if (first + TILE_KV < p->len_q) far[3] = far_rows_of(hd->out + (first + TILE_KV) * p->out.l, p->out);
}

/* The tile from `start` on, of which only live keys are looked at. */
INLINE void kv_tile_load(kv_tile *tile, const memory *mem, const head *hd, const attention_params *p, i64 first, i64 start,
                         key_range live) {
    const key_range keys = range_in_tile(live, start, TILE_KV);
    tile->keys = keys_load(mem, hd->k + start * p->k.l, p, keys);
    tile->values = values_load(mem, hd->v + start * p->v.l, p, keys);
    if (FETCH_NEXT) far_rows_choose(tile->far, hd, p, first, start, live.end);
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

/* Have the beginnings of ROWS keys near: the processor sees the rest of each coming. Converted ones are private and just written. */
INLINE void fetch_beginnings(KEY_SPACE const real *k, i64 l) {
#if STORED_IS_REAL
    UNROLL for (int r = 0; r < ROWS; r++) {
        FETCH(k + r * l);
        FETCH(k + r * l + LINE); /* and the next one */
    }
#else
    (void)k, (void)l;
#endif
}

/* The scores of the keys that block n visits, of which the first is key `at` of the tile. */
INLINE void block_scores(block *blk, const memory *mem, int n, const row_options *rows, const kv_tile *tile, i64 at,
                         const attention_params *p) {
    const key_tile *keys = &tile->keys;
    const real *qt = mem->qt + n * LANES * p->head_dim;
    vec top[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) top[v] = blk->row_max[v];
    i64 row[ROWS];
    rows_at(row, ROWS, keys->l);
    for (int j = 0; j < blk->keys; j += ROWS) {
        if (FETCH_KEYS && blk->keys - j >= 2 * ROWS) fetch_beginnings(keys->at + (at + j + ROWS) * keys->l, keys->l);
        if (blk->keys - j < ROWS) rows_at(row, blk->keys - j, keys->l);
        score_rows(blk->keys - j, row, keys->at + (at + j) * keys->l, keys, qt, p->head_dim, mem->s + j * LANES, top);
    }
    if (MODIFIED || blk->partial) scores_modify(blk, mem, rows, at, p, top);
    block_maximum(blk, top);
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
                       const value_tile *tile, real *ot, __global const uchar *far, i64 far_step) {
    (void)far, (void)far_step; /* where nothing is fetched */
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v) acc[r][v] = blk->rescale[v] * vec_load(ot + ROW_AT(r, rows) * LANES + v * WIDTH);
    multiply_values(acc, row, values, tile->l, mem->s, LANES, blk->keys, far, far_step);
    if (blk->partial) {
        vec finite = vec_splat(REAL(0.0));
        FOR_BLOCK(r, v) finite += acc[r][v] - acc[r][v];
        if (vec_any_nan(finite)) {
            for (int r = 0; r < ROWS && r < rows; r++)
                value_row_masked(blk, mem, values + r * tile->step, tile->l, ot + r * LANES);
            return;
        }
    }
    FOR_BLOCK(r, v) if (r < rows) vec_store_aligned(acc[r][v], ot + r * LANES + v * WIDTH);
}

/* The sums of values of block n. */
INLINE void block_values(const block *blk, const memory *mem, int n, const kv_tile *both, i64 at, const attention_params *p) {
    const value_tile *tile = &both->values;
    real *ot = mem->ot + n * LANES * p->value_dim;
    VALUE_SPACE const real *values = tile->at + at * tile->l;
    far_rows far = {0, 0, 0};
    if (FETCH_NEXT) far = both->far[n % FAR_ROWS];
    i64 row[ROWS];
    rows_at(row, ROWS, tile->step);
    for (int d = 0; d < p->value_dim; d += ROWS, values += tile->panel) {
        if (!VALUES_PACKED && p->value_dim - d < ROWS) rows_at(row, p->value_dim - d, tile->step);
        __global const uchar *next = FETCH_NEXT ? far.at + d * far.step : 0;
        value_rows(p->value_dim - d, row, blk, mem, values, tile, ot + d * LANES, next, far.row_step);
    }
}

#define OUT_DIM(p) ((p)->value_dim)
#define FIRST_TILES 1 /* later ones are fetched, or the processor sees them coming */
#include "attention_walk.h"

__kernel GROUP_OF_ONE void attention(__global const stored *restrict q, __global const stored *restrict k,
                                     __global const stored *restrict v, __global stored *restrict out,
                                     __global float *restrict lse, INT_BUFFER kv_lengths, INT_BUFFER q_offsets,
                                     INT_BUFFER kv_offsets, __global const uchar *mask, __global const void *bias,
                                     __global const float *slopes, __global const float *sinks, attention_params p) {
    vec qt[TILE_Q / WIDTH * EXTENT(p.head_dim, HEAD_DIM_MAX)], ot[TILE_Q / WIDTH * EXTENT(p.value_dim, VALUE_DIM_MAX)];
    vec s[TILE_KV * VECTORS];
    vec addends[MODIFIED ? TILE_KV * VECTORS : 1],
        keys[STORED_IS_REAL ? 1 : TILE_KV / WIDTH * EXTENT(p.head_dim, HEAD_DIM_MAX) + 1];
    vec values[VALUES_PACKED ? PANELS(EXTENT(p.value_dim, VALUE_DIM_MAX)) * PANEL / WIDTH : 1];
    const memory mem = {(real *)qt, (real *)ot, (real *)s, (real *)addends, (real *)keys, (real *)values};

    attend_groups(&mem, q, k, v, out, lse, kv_lengths, q_offsets, kv_offsets, mask, bias, slopes, sinks, &p);
}
