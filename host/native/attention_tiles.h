/* The contract of cpu/attention.cl for bf16, with both products by tiles of bf16 (tiles.h) in place of floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The walk, the masks, the options and the softmax are attention.cl's (attention_block.h, attention_walk.h), on blocks of
 * LANES = TILES_LANES queries. Queries, keys and values meet as they are stored; sums, scores and weights are f32; weights are
 * rounded to bf16 before they meet the values, after their own sum was taken.
 *      S^T (keys x lanes) = K Q^T         A: a tile of keys as they lie;      B: pairs of elements of a query
 *      O^T (dims x lanes) += V^T P^T      A: the values, transposed;          B: pairs of weights of a query
 * No reduction crosses lanes and no weight moves to another lane. What is transposed is Q once and V a tile of keys at a time, for all
 * TILE_Q queries of a group. Dims are padded with zeros to TILES_DEPTH; so are the keys that a block visits.
 *
 * Masks: a weight of 0 times a value that is not finite would be NaN. Such values are left out of the product, as 0, and added one by
 * one for the queries that look at them; the other queries' sums are what they would be without.
 *
 * Private memory, of padded dims: TILE_Q * (head_dim / 2 + value_dim) floats, TILE_KV * LANES * 3 / 2, and (TILE_KV + 32) * (head_dim +
 * value_dim) bf16; where MODIFIED, TILE_KV * LANES floats more.
 * bench/NOTES.md says what is measured. The AMX form was not run on hardware.
 */
#ifndef CLATTN_NATIVE_ATTENTION_TILES_H
#define CLATTN_NATIVE_ATTENTION_TILES_H

#include "native/tiles.h"

#include "cpu/lane_options.h"

#if DTYPE != DTYPE_BF16
#error "tiles are of bf16"
#endif
#if TILE_KV % 32 || VECTORS * VECTOR_WIDTH != 32
#error "TILE_KV must be a multiple of TILES_DEPTH and TILES_ROWS, and VECTORS * VECTOR_WIDTH be TILES_LANES"
#endif
/* A line of transposed values: a tile of keys, and what a block that begins late may read past it. */
#define VALUE_LINE (TILE_KV + TILES_DEPTH)
#define PADDED(n) (((n) + TILES_DEPTH - 1) / TILES_DEPTH * TILES_DEPTH)

/* What a group has in private memory; dims are padded. */
typedef struct memory {
    float *ot;          /* the blocks' sums of values, [value_dim][LANES] each */
    float *s, *addends; /* one block's scores and what options.h adds to them, [TILE_KV][LANES] */
    uint32_t *qt;       /* the blocks' queries in pairs, [head_dim / 2][LANES] each */
    uint32_t *pairs;    /* one block's weights in pairs, [TILE_KV / 2][LANES] */
    ushort *keys;       /* a tile of K, [TILE_KV + TILES_ROWS][head_dim] */
    ushort *values;     /* a tile of V, [value_dim][VALUE_LINE] */
} memory;

#include "cpu/attention_block.h"

INLINE int is_finite(ushort element) { return (element & 0x7f80) != 0x7f80; }

/* ---- queries --------------------------------------------------------------------------------------------------------------- */

INLINE void block_load(const memory *mem, int n, const head *hd, const attention_params *p, const member *m, i64 first) {
    const int dim = p->head_dim, pairs = PADDED(dim) / 2;
    uint32_t *qt = mem->qt + n * pairs * LANES;
    for (int lane = 0; lane < LANES; lane++) {
        const stored *row = hd->q + row_at(&p->q, m, row_in_lane(hd, first, lane));
        for (int k = 0; k < pairs; k++) {
            const uint32_t low = 2 * k < dim ? row[2 * k * p->q.d] : 0, high = 2 * k + 1 < dim ? row[(2 * k + 1) * p->q.d] : 0;
            qt[k * LANES + lane] = low | high << 16;
        }
    }
}

/* ---- a tile of keys and values ----------------------------------------------------------------------------------------------- */

typedef struct kv_tile {
    const stored *values; /* where they lie */
    int finite;           /* whether all of them are; those that are not are 0 in memory->values */
} kv_tile;

INLINE void keys_load(const memory *mem, const stored *k, const attention_params *p, key_range keys) {
    const int dim = p->head_dim, line = PADDED(dim);
    for (i64 j = keys.first; j < keys.end; j++) {
        const stored *from = k + j * p->k.l;
        ushort *to = mem->keys + j * line;
        if (p->k.d == 1) {
            __builtin_memcpy(to, from, (size_t)dim * sizeof *to);
        } else {
            for (int d = 0; d < dim; d++) to[d] = from[d * p->k.d];
        }
        for (int d = dim; d < line; d++) to[d] = 0;
    }
    __builtin_memset(mem->keys + keys.end * line, 0, (size_t)(TILES_ROWS * line) * sizeof *mem->keys);
}

#if VECTOR_WIDTH == 16 && defined(__AVX512BW__) && defined(__AVX512VL__)
/* 16 x 16 elements of 4 bytes, transposed. */
INLINE void transpose_16(__m512i x[16]) {
    __m512i y[16];
    UNROLL for (int n = 0; n < 16; n += 2) {
        y[n] = _mm512_unpacklo_epi32(x[n], x[n + 1]);
        y[n + 1] = _mm512_unpackhi_epi32(x[n], x[n + 1]);
    }
    UNROLL for (int n = 0; n < 16; n += 4) {
        x[n] = _mm512_unpacklo_epi64(y[n], y[n + 2]);
        x[n + 1] = _mm512_unpackhi_epi64(y[n], y[n + 2]);
        x[n + 2] = _mm512_unpacklo_epi64(y[n + 1], y[n + 3]);
        x[n + 3] = _mm512_unpackhi_epi64(y[n + 1], y[n + 3]);
    }
    /* x[4 a + b]: of rows 4 a ... 4 a + 3, the columns b, b + 4, b + 8 and b + 12. */
    UNROLL for (int b = 0; b < 4; b++) {
        const __m512i even = _mm512_shuffle_i32x4(x[b], x[4 + b], 0x88), odd = _mm512_shuffle_i32x4(x[b], x[4 + b], 0xdd);
        const __m512i last_even = _mm512_shuffle_i32x4(x[8 + b], x[12 + b], 0x88);
        const __m512i last_odd = _mm512_shuffle_i32x4(x[8 + b], x[12 + b], 0xdd);
        y[b] = _mm512_shuffle_i32x4(even, last_even, 0x88);
        y[8 + b] = _mm512_shuffle_i32x4(even, last_even, 0xdd);
        y[4 + b] = _mm512_shuffle_i32x4(odd, last_odd, 0x88);
        y[12 + b] = _mm512_shuffle_i32x4(odd, last_odd, 0xdd);
    }
    UNROLL for (int n = 0; n < 16; n++) x[n] = y[n];
}

/* 32 keys, of which those in `keys` exist, by 16 elements, of which `dims` do, 16 at most: transposed to `to`. Whether all are
 * finite. */
INLINE int values_transpose(ushort *to, const stored *v, i64 row, i64 j, key_range keys, int dims) {
    const __mmask16 here = (__mmask16)((1u << dims) - 1);
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 strange = 0;
    __m512i x[16];
    UNROLL for (int n = 0; n < 16; n++) {
        const i64 low = j + 2 * n, high = low + 1;
        const __m256i a = _mm256_maskz_loadu_epi16(low >= keys.first && low < keys.end ? here : 0, v + low * row);
        const __m256i b = _mm256_maskz_loadu_epi16(high >= keys.first && high < keys.end ? here : 0, v + high * row);
        x[n] = _mm512_or_si512(_mm512_cvtepu16_epi32(a), _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16));
        const __mmask32 bad = _mm512_cmpeq_epi16_mask(_mm512_and_si512(x[n], exponent), exponent);
        x[n] = _mm512_maskz_mov_epi16((__mmask32)~bad, x[n]);
        strange |= bad;
    }
    transpose_16(x);
    for (int d = 0; d < dims; d++) _mm512_storeu_si512(to + d * VALUE_LINE, x[d]);
    return strange == 0;
}

INLINE int values_load_lines(const memory *mem, const stored *v, const attention_params *p, key_range keys) {
    int finite = 1;
    for (i64 j = keys.first / TILES_DEPTH * TILES_DEPTH; j < keys.end; j += TILES_DEPTH) {
        for (int d = 0; d < p->value_dim; d += 16) {
            const int dims = p->value_dim - d < 16 ? p->value_dim - d : 16;
            finite &= values_transpose(mem->values + d * VALUE_LINE + j, v + d, p->v.l, j, keys, dims);
        }
    }
    return finite;
}
#else
#define values_load_lines values_load_elements
#endif

INLINE int values_load_elements(const memory *mem, const stored *v, const attention_params *p, key_range keys) {
    int finite = 1;
    for (int d = 0; d < p->value_dim; d++) {
        for (i64 j = keys.first; j < keys.end; j++) {
            const ushort element = v[j * p->v.l + d * p->v.d];
            finite &= is_finite(element);
            mem->values[d * VALUE_LINE + j] = is_finite(element) ? element : 0;
        }
    }
    return finite;
}

/* Behind the last key, zeros: a block's last products go on to a multiple of TILES_DEPTH. */
INLINE int values_load(const memory *mem, const stored *v, const attention_params *p, key_range keys) {
    const int finite = p->v.d == 1 ? values_load_lines(mem, v, p, keys) : values_load_elements(mem, v, p, keys);
    for (int d = 0; d < p->value_dim; d++)
        __builtin_memset(mem->values + d * VALUE_LINE + keys.end, 0, TILES_DEPTH * sizeof *mem->values);
    for (int d = p->value_dim; d < PADDED(p->value_dim); d++)
        __builtin_memset(mem->values + d * VALUE_LINE, 0, VALUE_LINE * sizeof *mem->values);
    return finite;
}

INLINE void kv_tile_load(kv_tile *tile, const memory *mem, const head *hd, const attention_params *p, i64 first, i64 start,
                         key_range live) {
    (void)first;
    const key_range keys = range_in_tile(live, start, TILE_KV);
    tile->values = hd->v + start * p->v.l;
    keys_load(mem, hd->k + start * p->k.l, p, keys);
    tile->finite = values_load(mem, tile->values, p, keys);
}

/* ---- scores ------------------------------------------------------------------------------------------------------------------ */

INLINE void block_scores(block *blk, const memory *mem, int n, const row_options *rows, const kv_tile *tile, i64 at,
                         const attention_params *p) {
    const int line = PADDED(p->head_dim);
    const vec scale = vec_splat(block_scale(p));
    const uint32_t *qt = mem->qt + n * line / 2 * LANES;
    vec top[VECTORS];
    (void)tile;
    for (int j = 0; j < blk->keys; j += TILES_ROWS)
        tiles_product(mem->s + j * LANES, LANES, mem->keys + (at + j) * line, line, qt, LANES, line, 0);
    UNROLL for (int v = 0; v < VECTORS; v++) top[v] = blk->row_max[v];
    for (int j = 0; j < blk->keys; j++) {
        UNROLL for (int v = 0; v < VECTORS; v++) {
            const vec score = scale * vec_load(mem->s + j * LANES + v * WIDTH);
            top[v] = vec_max(top[v], score);
            vec_store_aligned(score, mem->s + j * LANES + v * WIDTH);
        }
    }
    if (MODIFIED || blk->partial) scores_modify(blk, mem, rows, at, p, top);
    block_maximum(blk, top);
}

/* ---- values ------------------------------------------------------------------------------------------------------------------ */

/* The bits of two weights, rounded to bf16, halves away from 0. A NaN may become another number: its row's sum is NaN. */
INLINE uvec pair_of(vec low, vec high) {
    return (uvec_bits(low) + 0x8000) >> 16 | ((uvec_bits(high) + 0x8000) & 0xffff0000);
}

/* The weights in pairs, of `keys` keys and of zeros up to a multiple of TILES_DEPTH. */
INLINE void weights_pair(const memory *mem, int keys) {
    for (int j = 0; j < PADDED(keys); j += 2) {
        UNROLL for (int v = 0; v < VECTORS; v++) {
            const float *s = mem->s + j * LANES + v * WIDTH;
            const vec low = j < keys ? vec_load(s) : vec_splat(0.0f), high = j + 1 < keys ? vec_load(s + LANES) : vec_splat(0.0f);
            vec_store_aligned(vec_of_ubits(pair_of(low, high)), (float *)mem->pairs + j / 2 * LANES + v * WIDTH);
        }
    }
}

/* Where no maximum has moved there is nothing to rescale. */
INLINE void sums_rescale(const block *blk, float *ot, int dims) {
    ivec moved = ivec_splat(0);
    UNROLL for (int v = 0; v < VECTORS; v++) moved |= blk->rescale[v] != vec_splat(1.0f);
    if (!ivec_any(moved)) return;
    for (int d = 0; d < dims; d++, ot += LANES) {
        UNROLL for (int v = 0; v < VECTORS; v++) vec_store_aligned(blk->rescale[v] * vec_load(ot + v * WIDTH), ot + v * WIDTH);
    }
}

/* What the product left out: elements that are not finite, for the lanes that look at their keys. */
APART void values_add_strange(const block *blk, const memory *mem, const stored *values, const attention_params *p, float *ot) {
    for (int j = 0; j < blk->keys; j++, values += p->v.l) {
        for (int d = 0; d < p->value_dim; d++) {
            if (is_finite(values[d * p->v.d])) continue;
            for (int v = 0; v < VECTORS; v++) {
                const vec sum = vec_load(ot + d * LANES + v * WIDTH);
                const vec next = sum + vec_splat(bf16_load(values + d * p->v.d)) * vec_load(mem->s + j * LANES + v * WIDTH);
                vec_store(blk->partial ? vec_select(live_lanes(blk, mem, v, j), next, sum) : next, ot + d * LANES + v * WIDTH);
            }
        }
    }
}

INLINE void block_values(const block *blk, const memory *mem, int n, const kv_tile *tile, i64 at, const attention_params *p) {
    const int dims = PADDED(p->value_dim);
    float *ot = mem->ot + n * dims * LANES;
    weights_pair(mem, blk->keys);
    sums_rescale(blk, ot, dims);
    for (int d = 0; d < dims; d += TILES_ROWS)
        tiles_product(ot + d * LANES, LANES, mem->values + d * VALUE_LINE + at, VALUE_LINE, mem->pairs, LANES, PADDED(blk->keys), 1);
    if (!tile->finite) values_add_strange(blk, mem, tile->values + at * p->v.l, p, ot);
}

#define OUT_DIM(p) PADDED((p)->value_dim)
#define FIRST_TILES 2 /* later ones the processor sees coming */
#include "cpu/attention_walk.h"

static void attention(const stored *restrict q, const stored *restrict k, const stored *restrict v, stored *restrict out,
                      float *restrict lse, INT_BUFFER kv_lengths, INT_BUFFER q_offsets, INT_BUFFER kv_offsets, const uchar *mask,
                      const void *bias, const float *slopes, const float *sinks, attention_params p) {
    const int head_dim = EXTENT(PADDED(p.head_dim), HEAD_DIM_MAX), value_dim = EXTENT(PADDED(p.value_dim), VALUE_DIM_MAX);
    vec qt[TILE_Q / WIDTH * head_dim / 2 + 1], ot[TILE_Q / WIDTH * value_dim];
    vec s[TILE_KV * VECTORS], pairs[TILE_KV / 2 * VECTORS], addends[MODIFIED ? TILE_KV * VECTORS : 1];
    ushort keys[(TILE_KV + TILES_ROWS) * head_dim] __attribute__((aligned(64)));
    ushort values[value_dim * VALUE_LINE] __attribute__((aligned(64)));
    const memory mem = {.ot = (float *)ot,
                        .s = (float *)s,
                        .addends = (float *)addends,
                        .qt = (uint32_t *)qt,
                        .pairs = (uint32_t *)pairs,
                        .keys = keys,
                        .values = values};

    tiles_begin();
    attend_groups(&mem, q, k, v, out, lse, kv_lengths, q_offsets, kv_offsets, mask, bias, slopes, sinks, &p);
    tiles_end();
}

#endif
