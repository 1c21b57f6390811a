/* attention_split where so many rows share a key that they fill vectors: softmax(scores) V over a part of the keys, and the
 * log-sum-exp, which the role merge makes one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows are the queries of all heads that share a key/value head. Bound by multiply-adds, not by memory as attention_split.cl is. For
 * each tile of TILE_KV keys and each block of LANES = VECTORS * WIDTH rows
 *      S^T[key][row]   = K[key][d] (broadcast) * Q^T[d][row]                rows in lanes: no sum across them
 *      P^T             = as in attention.cl                                 (attention_block.h)
 *      O[row][d]      += P^T[key][row] (broadcast) * V[key][d]              dims in lanes: V is read in the order in which it lies
 * K is read where it lies, whatever its strides; V if kernels of whole vectors can; 16-bit ones are converted a tile at a time.
 * Lines of V are fetched while scores are computed, of the next K while values are added: a few at a time, by all blocks alike, in the
 * order in which they lie (fetched by the first block and across rows, 8 queries of 4 heads take 1.1 times as long).
 *
 * Which of the two does it depends on how many rows share a key, and so, then, does the order of sums: on len_q and heads, never on the
 * batch. A row's own sums are the same whatever rows stand beside it.
 * Tried (AVX-512, one core, D128, f32, in the second-level cache, percent of the FMA peak; 16 and 64 rows): attention_split.cl 64, 62;
 * VECTORS 1 66 to 70, 72, since elements of K are then broadcast for one multiply-add each; with two sums for each of its few 64, 67;
 * VECTORS 2 39, 83. TILE_KV 64 for 32: alike. AVX2, 64 rows, of 63 GFLOP/s: VECTORS 2 1.11, 3 1.02. SSE2, VECTORS 2: 0.9, so none.
 *
 * group: split_group_at (mask.h) with tiles of TILE_Q rows.
 * Private memory: (HEAD_DIM_MAX + VALUE_DIM_MAX) * (TILE_Q + TILE_KV) + TILE_KV * LANES floats, where MODIFIED TILE_KV * LANES more.
 * MODIFIED, masks, NaN: as in attention.cl.
 */
#include "lane_options.h"

#if !defined(ROWS) || !defined(VECTORS) || !defined(TILE_Q) || !defined(TILE_KV) || !defined(HEAD_DIM_MAX) ||                  \
    !defined(VALUE_DIM_MAX)
#error "ROWS, VECTORS: the register block; TILE_Q: rows of a group; TILE_KV: keys of a tile; *_DIM_MAX: bounds of the dims"
#endif
#if DTYPE == DTYPE_F64 || TILE_KV % ROWS || VECTORS * VECTOR_WIDTH % ROWS
#error "ROWS must divide TILE_KV and VECTORS * VECTOR_WIDTH; f64 is not served"
#endif
#define GROUPED 1
#define WHOLE_VECTORS(n) (((n) + WIDTH - 1) / WIDTH * WIDTH)
#define OUT_DIM(p) WHOLE_VECTORS((p)->value_dim)

/* What a group has in private memory. */
typedef struct memory {
    real *qt, *ot;     /* the blocks: [head_dim][LANES], and sums [LANES][OUT_DIM] */
    real *s, *addends; /* one block's scores and what options.h adds to them, [TILE_KV][LANES] */
    real *keys;        /* a tile of K, where it must be converted: [TILE_KV][head_dim] */
    real *values;      /* a tile of V, likewise or where it is not of whole vectors: [TILE_KV][OUT_DIM] */
} memory;

#include "attention_block.h"

INLINE void block_load(const memory *mem, int n, const head *hd, const attention_params *p, const member *m, i64 first) {
    rows_load(mem->qt + n * LANES * p->head_dim, hd, p, m, first);
}

/* ---- a tile of keys and values ------------------------------------------------------------------------------------------- */

/* Lines that are to be fetched: `left` of them, `lines` of each row of a view, which are `step` apart. A few at a time and in the
 * order in which they lie, as the processor expects them. */
typedef struct fetcher {
    __global const stored *row;
    i64 step;
    int at, lines, left;
} fetcher;

INLINE fetcher fetcher_of(__global const stored *rows, const strides *stride, int dim, i64 count) {
    const int lines = (dim + LINE - 1) / LINE;
    const fetcher f = {rows, stride->l, 0, lines, stride->d == 1 ? (int)count * lines : 0};
    return f;
}

INLINE void fetch_some(fetcher *f, int count) {
    for (int n = count < f->left ? count : f->left; n > 0; n--) {
        FETCH(f->row + f->at * LINE);
        f->left--;
        if (++f->at < f->lines) continue;
        f->at = 0;
        f->row += f->step;
    }
}

typedef struct kv_tile {
    KEY_SPACE const real *keys; /* element d of key j at j * key_l + d * key_d */
    i64 key_l, key_d;
    __global const stored *values; /* element d of value j at j * value_l + d; NULL where they had to be copied */
    i64 value_l;
    fetcher next_values, next_keys; /* while scores are computed, while values are added, */
    int fetches;                    /* and how many each time that ROWS * LINE elements are read */
} kv_tile;

INLINE void values_copy(real *to, __global const stored *v, const attention_params *p, key_range keys) {
    for (i64 j = keys.first; j < keys.end; j++) {
        stored_row_load(to + j * OUT_DIM(p), v + j * p->v.l, p->v.d, p->value_dim);
        for (int d = p->value_dim; d < OUT_DIM(p); d++) to[j * OUT_DIM(p) + d] = REAL(0.0);
    }
}

/* The tile from `start` on, of which only live keys are looked at. */
INLINE void kv_tile_load(kv_tile *tile, const memory *mem, const head *hd, const attention_params *p, i64 first, i64 start,
                         key_range live) {
    (void)first; /* all groups of rows begin alike */
    const key_range keys = range_in_tile(live, start, TILE_KV);
    __global const stored *k = hd->k + start * p->k.l, *v = hd->v + start * p->v.l;
    const i64 blocks = ((hd->rows < TILE_Q ? hd->rows : TILE_Q) + LANES - 1) / LANES, left = hd->part.end - start - TILE_KV;
    const i64 next = left < 0 ? 0 : left < TILE_KV ? left : TILE_KV;
    tile->next_keys = fetcher_of(k + TILE_KV * p->k.l, &p->k, p->head_dim, next);
    tile->next_values = STORED_IS_REAL ? fetcher_of(v + keys.first * p->v.l, &p->v, p->value_dim, keys.end - keys.first)
                                       : fetcher_of(v + TILE_KV * p->v.l, &p->v, p->value_dim, next);
    tile->fetches = (int)((ROWS + blocks - 1) / blocks);
#if STORED_IS_REAL
    tile->keys = k, tile->key_l = p->k.l, tile->key_d = p->k.d;
    if (p->v.d == 1 && p->value_dim == OUT_DIM(p)) {
        tile->values = v, tile->value_l = p->v.l;
        return;
    }
#else
    tile->keys = mem->keys, tile->key_l = p->head_dim, tile->key_d = 1;
    for (i64 j = keys.first; j < keys.end; j++)
        stored_row_load(mem->keys + j * p->head_dim, k + j * p->k.l, p->k.d, p->head_dim);
#endif
    tile->values = 0, tile->value_l = OUT_DIM(p);
    values_copy(mem->values, v, p, keys);
}

/* ---- scores -------------------------------------------------------------------------------------------------------------- */

/* Raw scores of `rows` keys, and their maximum with what `top` holds. */
INLINE void score_rows(int rows, const i64 row[ROWS], KEY_SPACE const real *k, i64 step, const real *qt, int dim,
                       fetcher *ahead, int fetches, real *s, vec top[VECTORS]) {
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v) acc[r][v] = vec_splat(REAL(0.0));
    for (int d = 0; d < dim; d += LINE) {
        fetch_some(ahead, fetches);
        multiply_keys(acc, row, k + d * step, step, qt + d * LANES, LANES, dim - d < LINE ? dim - d : LINE);
    }
    FOR_BLOCK(r, v) {
        top[v] = vec_max(top[v], acc[r][v]);
        if (r < rows) vec_store_aligned(acc[r][v], s + r * LANES + v * WIDTH);
    }
}

/* The scores of the keys that block n visits, of which the first is key `at` of the tile. */
INLINE void block_scores(block *blk, const memory *mem, int n, const row_options *rows, kv_tile *tile, i64 at,
                         const attention_params *p) {
    vec top[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) top[v] = blk->row_max[v];
    i64 row[ROWS];
    rows_at(row, ROWS, tile->key_l);
    for (int j = 0; j < blk->keys; j += ROWS) {
        const int left = blk->keys - j;
        if (left < ROWS) rows_at(row, left, tile->key_l);
        score_rows(left, row, tile->keys + (at + j) * tile->key_l, tile->key_d, mem->qt + n * LANES * p->head_dim, p->head_dim,
                   &tile->next_values, tile->fetches, mem->s + j * LANES, top);
    }
    if (MODIFIED || blk->partial) scores_modify(blk, mem, rows, at, p, top);
    block_maximum(blk, top);
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

/* Whether a lane looks at key j of those visited. */
INLINE int lane_looks(const block *blk, const memory *mem, int lane, int j) {
    real lanes[WIDTH];
    const vec one = vec_splat(REAL(1.0)), none = vec_splat(REAL(0.0));
    vec_store(vec_select(live_lanes(blk, mem, lane / WIDTH, j), one, none), lanes);
    return lanes[lane % WIDTH] != REAL(0.0);
}

/* ot += weights * values for ROWS rows and V vectors of dims. Where rows look at part of the keys, weights of the others are 0, their
 * values may be anything: a sum that is not finite is taken again without them. */
#define DEFINE_VALUES(name, V, SPACE)                                                                                    \
    DEFINE_MULTIPLY(multiply_##name, ROWS, V, __private, SPACE)                                                          \
    APART void masked_##name(const block *blk, const memory *mem, int lane, real rescale, SPACE const real *values, i64 l, \
                             real *ot) {                                                                                 \
        for (int v = 0; v < V; v++) {                                                                                    \
            vec sum = rescale * vec_load(ot + v * WIDTH);                                                                \
            for (int j = 0; j < blk->keys; j++) {                                                                        \
                if (!lane_looks(blk, mem, lane, j)) continue;                                                            \
                sum += vec_splat(mem->s[j * LANES + lane]) * vec_load(values + j * l + v * WIDTH);                       \
            }                                                                                                            \
            vec_store(sum, ot + v * WIDTH);                                                                              \
        }                                                                                                                \
    }                                                                                                                    \
    INLINE void name(const block *blk, const memory *mem, int lane, const real rescale[LANES], SPACE const real *values, i64 l, \
                     fetcher *ahead, int fetches, real *ot, i64 out_dim) {                                               \
        vec acc[ROWS][V];                                                                                                \
        i64 row[ROWS];                                                                                                   \
        UNROLL for (int r = 0; r < ROWS; r++) row[r] = r;                                                                \
        UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < V; v++) acc[r][v] =                             \
            rescale[lane + r] * vec_load(ot + r * out_dim + v * WIDTH);                                                  \
        for (int j = 0; j < blk->keys; j += ROWS) {                                                                      \
            fetch_some(ahead, fetches);                                                                                  \
            multiply_##name(acc, row, mem->s + j * LANES + lane, LANES, values + j * l, l,                               \
                            blk->keys - j < ROWS ? blk->keys - j : ROWS);                                                \
        }                                                                                                                \
        if (blk->partial) {                                                                                              \
            vec finite = vec_splat(REAL(0.0));                                                                           \
            UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < V; v++) finite += acc[r][v] - acc[r][v];    \
            if (vec_any_nan(finite)) {                                                                                   \
                for (int r = 0; r < ROWS; r++)                                                                           \
                    masked_##name(blk, mem, lane + r, rescale[lane + r], values, l, ot + r * out_dim);                   \
                return;                                                                                                  \
            }                                                                                                            \
        }                                                                                                                \
        UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < V; v++)                                         \
            vec_store_aligned(acc[r][v], ot + r * out_dim + v * WIDTH);                                                  \
    }

#define VALUE_VECTORS 2
#define VALUE_LANES (VALUE_VECTORS * WIDTH)
#if STORED_IS_REAL
DEFINE_VALUES(values_there, VALUE_VECTORS, __global)
DEFINE_VALUES(value_vector_there, 1, __global)
#endif
DEFINE_VALUES(values_copied, VALUE_VECTORS, __private)
DEFINE_VALUES(value_vector_copied, 1, __private)

/* All dims of a block's rows. */
#define ALL_DIMS(where, from)                                                                                            \
    do {                                                                                                                 \
        int d = 0;                                                                                                       \
        for (; d + VALUE_LANES <= out_dim; d += VALUE_LANES) {                                                           \
            for (int lane = 0; lane < LANES; lane += ROWS)                                                               \
                values_##where(blk, mem, lane, rescale, (from) + d, tile->value_l, &tile->next_keys, tile->fetches,      \
                               ot + lane * out_dim + d, out_dim);                                                        \
        }                                                                                                                \
        for (; d < out_dim; d += WIDTH) {                                                                                \
            for (int lane = 0; lane < LANES; lane += ROWS)                                                               \
                value_vector_##where(blk, mem, lane, rescale, (from) + d, tile->value_l, &tile->next_keys,               \
                                     tile->fetches, ot + lane * out_dim + d, out_dim);                                   \
        }                                                                                                                \
    } while (0)

/* The sums of values of block n. */
INLINE void block_values(const block *blk, const memory *mem, int n, kv_tile *tile, i64 at, const attention_params *p) {
    const i64 out_dim = OUT_DIM(p);
    real *ot = mem->ot + n * LANES * out_dim, rescale[LANES];
    UNROLL for (int v = 0; v < VECTORS; v++) vec_store(blk->rescale[v], rescale + v * WIDTH);
#if STORED_IS_REAL
    if (tile->values != 0) {
        ALL_DIMS(there, tile->values + at * tile->value_l);
        return;
    }
#endif
    ALL_DIMS(copied, mem->values + at * tile->value_l);
}

/* ---- the group ----------------------------------------------------------------------------------------------------------- */

#define FIRST_TILES 1
#include "attention_walk.h"

__kernel GROUP_OF_ONE void attention_split(__global const stored *restrict q, __global const stored *restrict k,
                                           __global const stored *restrict v, __global float *restrict out,
                                           __global float *restrict lse, INT_BUFFER kv_lengths, __global const uchar *mask,
                                           __global const void *bias, __global const float *slopes, attention_params p) {
    vec qt[TILE_Q / WIDTH * EXTENT(p.head_dim, HEAD_DIM_MAX)], ot[TILE_Q / WIDTH * EXTENT(OUT_DIM(&p), WHOLE_VECTORS(VALUE_DIM_MAX))];
    vec s[TILE_KV * VECTORS], addends[MODIFIED ? TILE_KV * VECTORS : 1];
    vec keys[STORED_IS_REAL ? 1 : TILE_KV / WIDTH * EXTENT(p.head_dim, HEAD_DIM_MAX) + 1];
    vec values[TILE_KV / WIDTH * EXTENT(OUT_DIM(&p), WHOLE_VECTORS(VALUE_DIM_MAX))];
    const memory mem = {(real *)qt, (real *)ot, (real *)s, (real *)addends, (real *)keys, (real *)values};
    attend_parts(&mem, q, k, v, out, lse, kv_lengths, mask, bias, slopes, &p);
}
