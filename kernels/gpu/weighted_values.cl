/* out[b,h,i,:] = sum over live j of weights[b,h,i,j] * v[b,g,j,:], with g = h / (heads_q / heads_kv).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Which j are live is for ranges (mask.h), mask and bias to say, never for weights == 0: a masked value is left out even when
 * it is NaN, a live one counts even when its weight is 0.
 *
 * Shapes          weights (batch, heads_q, len_q, len_kv), v (batch, heads_kv, len_kv, value_dim), out (.., len_q, value_dim)
 * Group           one TILE_M x TILE_N tile of one head's output, over the keys that any of its rows may look at
 * Work-item       REG_M rows by TILE_N / ACROSS columns of it, in registers (tile.h)
 * Local memory    (TILE_M + 4 + TILE_N + 4) * TILE_K floats
 * Work-group      WORK_GROUP, a power of two
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 * Tried           hidden weights marked in registers, before they are stored: 76 registers more
 */
#include "masked.h"
#include "options.h"

#define VECTORS TILE_COLUMNS(TILE_N)

/* Mark the weights of the chunk at key j that their rows, of the tile from query i on, may not use. Each work-item does those
 * that it stored itself. */
INLINE void mark_hidden(const attention_params *p, const member *m, const row_options *options, local float *tile, i64 i,
                        i64 j) {
    const walk w = walk_of(TILE_M, TILE_K);
#pragma unroll 1
    for (int n = 0; n < w.count * w.run; n++) {
        const int row = line_of(w, n / w.run), k = place_of(w, n / w.run) + n % w.run;
        if (i + row < p->len_q && is_hidden_below(p, m, options, i, row, j + k))
            tile[k * TILE_LINE(TILE_M) + row] = HIDDEN_WEIGHT;
    }
}

/* acc = the tile from query i on; the structure of `product`, in the order of j. */
INLINE void masked_product(const attention_params *p, const member *m, const row_options *options, float4 *acc,
                           local float4 *tile_w, local float4 *tile_v, operand weights, operand values, i64 i) {
    element slots_w[TILE_SLOTS(TILE_M, TILE_K)], slots_v[TILE_SLOTS(TILE_N, TILE_K)];
    const key_range any = live_for_any(p, m, i, TILE_M), all = live_for_all(p, m, i, TILE_M);
    const i64 start = any.first / TILE_K * TILE_K;
    bool marked = false;
    clear(acc, REG_M * VECTORS);
    for (i64 j = start; j < any.end + TILE_K; j += TILE_K) {
        const bool more = j < any.end;
        if (more) {
            tile_fetch(slots_w, weights, j, any.end - j, TILE_M, TILE_K);
            tile_fetch(slots_v, values, j, any.end - j, TILE_N, TILE_K);
        }
        if (j > start && marked)
            tile_multiply_marked(acc, tile_w, tile_v, TILE_N, TILE_K);
        else if (j > start)
            tile_multiply(acc, tile_w, tile_v, TILE_N, TILE_K);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (more) {
            tile_store(tile_w, slots_w, weights, TILE_M, TILE_K);
            marked = p->has_mask || p->has_bias || j < all.first || j + TILE_K > all.end;
            if (marked) mark_hidden(p, m, options, (local float *)tile_w, i, j);
            tile_store(tile_v, slots_v, values, TILE_N, TILE_K);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

INLINE void write_out(const attention_params *p, global float *out, head at, i64 i, i64 d, const float4 *acc) {
    UNROLL for (int r = 0; r < REG_M; r++) {
        const i64 row = i + item_row() + r;
        UNROLL for (int c = 0; c < VECTORS; c++) {
            const i64 column = d + 4 * (c * ACROSS + item_column());
            if (row < p->len_q && column < p->value_dim)
                write_floats(out + offset_of(p->out, at.b, at.h, row, column), p->out.d, acc[r * VECTORS + c],
                             clamp_to_tile(p->value_dim - column, 4));
        }
    }
}

KERNEL void weighted_values(const global float *weights, const global float *v, global float *out, INT_BUFFER kv_lengths,
                            const global uchar *mask, const global void *bias, const attention_params p) {
    local float4 tile_w[TILE_VECTORS(TILE_M, TILE_K)], tile_v[TILE_VECTORS(TILE_N, TILE_K)];
    float4 acc[REG_M * VECTORS];
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
        const operand rows =
            operand_of(weights + offset_of(p.weights, at.b, at.h, i, 0), p.weights.l, p.weights.d, p.len_q - i, true);
        const operand columns = operand_of(v + offset_of(p.v, at.b, at.g, 0, d), p.v.d, p.v.l, p.value_dim - d, false);
        const row_options options = {mask, bias, p.base[4] + offset_of(p.mask, at.b, at.h, i, 0),
                                     p.base[5] + offset_of(p.bias, at.b, at.h, i, 0), 0, 0.0f};
        masked_product(&p, &m, &options, acc, tile_w, tile_v, rows, columns, i);
        write_out(&p, out, at, i, d, acc);
    }
}
