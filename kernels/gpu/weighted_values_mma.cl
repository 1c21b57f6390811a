/* The contract of weighted_values.cl, for v and out of f16 or bf16 on matrix units: products of fragments in place of tiles of
 * floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Group           one TILE_M x TILE_N tile of one head's output, over the keys that any of its rows may look at
 * Work-item       as mma_tile.h says
 * Local memory    a tile of weights and two of values, TILE_K keys each. Weights come by way of registers, as f32; in their
 *                 tile each is the sum of WEIGHT_PARTS numbers of the type, which meet the values one after another: of one
 *                 alone, its rounding would be seen in results
 * Masked          the weight of a hidden key is 0, as softmax leaves it, and 0 * NaN is NaN, as are some sums with infinite
 *                 values where a weight has two parts. A group that finds a NaN in its sums starts again: hidden weights are
 *                 then marked (mma_masked.h), and tiles with a value that is not finite are added by plain loops that leave
 *                 out what is hidden
 * Sums            f32, rounded once
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured
 */
#define LIVE_BLOCKS (WARP_N / 16)
#include "mma_masked.h"
#include "mma_tile.h"
#include "options.h"

#define WEIGHT_PARTS 2
#define VALUE_ELEMENTS COLUMN_ELEMENTS(true)
#define WEIGHTS (8 * EIGHTS(TILE_M)) /* of a tile that a work-item brings */

/* Weights are 1 at most, and of many keys far smaller; f16 has no digits for those. */
#if DTYPE == DTYPE_F16
#define WEIGHT_UNIT 32768.0f
#else
#define WEIGHT_UNIT 1.0f
#endif

/* The weights at `from` that this work-item brings of a tile, of which `rows` and `depth` exist. */
INLINE void fetch_weights(const attention_params *p, float *weights, const global float *from, i64 rows, i64 depth) {
    const strides s = p->weights;
    const bool aligned = s.d == 1 && s.l % 4 == 0 && ((size_t)from & 15) == 0;
    UNROLL for (int n = 0; n < EIGHTS(TILE_M); n++) {
        const int row = EIGHT_LINE(TILE_K) + n * EIGHT_LINES(TILE_K);
        const global float *at = from + row * s.l + EIGHT_AT(TILE_K) * s.d;
        const i64 exist = row < rows ? depth - EIGHT_AT(TILE_K) : 0;
        UNROLL for (int e = 0; e < 8; e += 4) {
            float4 four = 0.0f;
            if (aligned && e + 4 <= exist) {
                four = *(const global float4 *)(at + e);
            } else {
                if (e < exist) four.x = at[e * s.d];
                if (e + 1 < exist) four.y = at[(e + 1) * s.d];
                if (e + 2 < exist) four.z = at[(e + 2) * s.d];
                if (e + 3 < exist) four.w = at[(e + 3) * s.d];
            }
            weights[8 * n + e] = four.x;
            weights[8 * n + e + 1] = four.y;
            weights[8 * n + e + 2] = four.z;
            weights[8 * n + e + 3] = four.w;
        }
    }
}

/* Two weights of the type, and in their place what these leave of them. */
INLINE uint take_part(float *low, float *high) {
    const uint two = narrow_two(*low, *high);
    *low -= widen((ushort)(two & 0xffff));
    *high -= widen((ushort)(two >> 16));
    return two;
}

/* Into the parts' tiles, which follow one another. */
INLINE void store_weights(local ushort *tiles, const float *weights) {
    UNROLL for (int n = 0; n < EIGHTS(TILE_M); n++) {
        float left[8];
        UNROLL for (int e = 0; e < 8; e++) left[e] = weights[8 * n + e] * WEIGHT_UNIT;
        UNROLL for (int part = 0; part < WEIGHT_PARTS; part++) {
            uint eight[4];
            UNROLL for (int e = 0; e < 4; e++) eight[e] = take_part(left + 2 * e, left + 2 * e + 1);
            *(local uint4 *)eight_place(tiles + part * ROW_ELEMENTS, n, TILE_K) =
                (uint4)(eight[0], eight[1], eight[2], eight[3]);
        }
    }
}

/* Mark the weights of the tile at key j that their rows, of the tile from query i on, may not use. Each work-item does those
 * that it stored itself. */
INLINE void mark_hidden(const attention_params *p, const member *m, const row_options *options, local ushort *tiles, i64 i,
                        i64 j) {
#pragma unroll 1
    for (int n = 0; n < WEIGHTS; n++) {
        const int row = EIGHT_LINE(TILE_K) + n / 8 * EIGHT_LINES(TILE_K), k = EIGHT_AT(TILE_K) + n % 8;
        if (i + row >= p->len_q || !is_hidden_below(p, m, options, i, row, j + k)) continue;
        UNROLL for (int part = 0; part < WEIGHT_PARTS; part++) tiles[part * ROW_ELEMENTS + row * LINE(TILE_K) + k] = HIDDEN;
    }
}

/* acc += the tile of weights * that of values. */
INLINE void multiply_parts(local uint *exchange, float *acc, const local ushort *weights, const local ushort *values) {
    UNROLL for (int part = 0; part < WEIGHT_PARTS; part++)
        multiply_tile(exchange, acc, weights + part * ROW_ELEMENTS, values, true);
}

/* The same without what is marked. */
INLINE void add_live_values(float *acc, const local ushort *weights, const local ushort *values) {
    MMA_UNROLL for (int r = 0; r < ROW_BLOCKS; r++) {
        const shared_weights own = {weights + (warp_row() + r * WARP_ROWS) * LINE(TILE_K), LINE(TILE_K), WEIGHT_PARTS,
                                    ROW_ELEMENTS};
        add_live(acc + BLOCK * COLUMN_BLOCKS * r, own, values + warp_column(), LINE(TILE_N), TILE_K);
    }
}

/* The local memory of a group. */
typedef struct group_tiles {
    local ushort *weights, *values;
    local uint *exchange;
    local int *flag;
} group_tiles;

/* acc = the warp's part of the tile from query i on, whose weights are at `weights` and values at `values`, key 0 first; with
 * care for what is hidden, or none. Begins and ends with the tiles free. */
INLINE void multiply_live(const attention_params *p, const member *m, const row_options *options, const group_tiles *t,
                          float *acc, const global float *weights, const global element *values, i64 columns, i64 i,
                          bool careful) {
    const key_range any = live_for_any(p, m, i, TILE_M), all = live_for_all(p, m, i, TILE_M);
    const i64 start = any.first / TILE_K * TILE_K;
    copies of_v = copies_of(values + start * p->v.l, p->v.l, p->v.d, columns, TILE_N, true);
    int turn = 0;
    clear_sums(acc);
    for (i64 j = start - TILE_K; j < any.end; j += TILE_K) {
        const i64 next = j + TILE_K, left = any.end - next;
        const int other = 1 - turn;
        float fetched[WEIGHTS];
        if (left > 0) {
            fetch_weights(p, fetched, weights + next * p->weights.d, p->len_q - i, left);
            copy_next(&of_v, t->values + other * VALUE_ELEMENTS, left);
        }
        copy_commit();
        if (j >= start) {
            const local ushort *tile = t->values + turn * VALUE_ELEMENTS;
            copy_wait_but_one();
            barrier(CLK_LOCAL_MEM_FENCE);
            if (careful && has_nonfinite(tile, TILE_K, TILE_N, t->flag))
                add_live_values(acc, t->weights, tile);
            else
                multiply_parts(t->exchange, acc, t->weights, tile);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (left > 0) {
            store_weights(t->weights, fetched);
            if (careful && (p->has_mask || p->has_bias || next < all.first || next + TILE_K > all.end))
                mark_hidden(p, m, options, t->weights, i, next);
        }
        turn = other;
    }
}

INLINE bool has_nan(const float *acc) {
    bool found = false;
    MMA_UNROLL for (int e = 0; e < SUMS; e++) found |= isnan(acc[e]);
    return found;
}

/* out is at the tile's first element. */
INLINE void write_out(const attention_params *p, global element *out, i64 rows, i64 columns, const float *acc) {
    MMA_UNROLL for (int r = 0; r < SUM_ROWS; r++) {
        if (sum_row(r) >= rows) continue;
        MMA_UNROLL for (int n = 0; n < SUM_COLUMNS; n++) {
            const int column = sum_column(r, n);
            if (column < columns)
                out[sum_row(r) * p->out.l + column * p->out.d] =
                    (element)narrow_two(acc[sum_index(r, n)] * (1.0f / WEIGHT_UNIT), 0.0f);
        }
    }
}

MMA_KERNEL void weighted_values(const global float *weights, const global element *v, global element *out,
                                INT_BUFFER kv_lengths, const global uchar *mask, const global void *bias,
                                const attention_params p) {
    local ushort tile_w[WEIGHT_PARTS * ROW_ELEMENTS] __attribute__((aligned(16)));
    local ushort tile_v[2 * VALUE_ELEMENTS] __attribute__((aligned(16)));
    local uint exchange[EXCHANGE_UINTS];
    local int flag;
    const group_tiles tiles = {tile_w, tile_v, exchange, &flag};
    const i64 tiles_d = tiles_of(p.value_dim, TILE_N), tiles_i = tiles_of(p.len_q, TILE_M);
    weights += p.base[0];
    v += p.base[1];
    out += p.base[2];
    kv_lengths += p.base[3];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const head_tile tile = head_tile_at(&p, tiles_i, tiles_d, group);
        const head at = tile.at;
        const i64 i = tile.down * TILE_M, d = tile.along * TILE_N;
        const member m = member_of(&p, kv_lengths, kv_lengths, kv_lengths, at.b);
        const row_options options = {
            mask, bias, p.base[4] + offset_of(p.mask, at.b, at.h, i, 0), p.base[5] + offset_of(p.bias, at.b, at.h, i, 0),
            0,    0.0f};
        const global float *rows = weights + offset_of(p.weights, at.b, at.h, i, 0);
        const global element *values = v + offset_of(p.v, at.b, at.g, 0, d);
        float acc[SUMS];
        bool careful = false;
        do multiply_live(&p, &m, &options, &tiles, acc, rows, values, p.value_dim - d, i, careful);
        while (!careful && (careful = any_found(has_nan(acc), &flag)));
        write_out(&p, out + offset_of(p.out, at.b, at.h, i, d), p.len_q - i, p.value_dim - d, acc);
    }
}
