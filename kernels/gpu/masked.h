/* Products over keys that some rows of a tile may not use, for weighted_values and attention.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A weight is never negative. That of a key which is hidden from a row, by a range or by an element of the mask or the bias, is
 * written as -0 into the tile of weights: as a number it adds nothing, and as a mark it keeps a hidden key's NaN out of a sum
 * where tiles are multiplied with tile_multiply_marked.
 */
#ifndef CLATTN_GPU_MASKED_H
#define CLATTN_GPU_MASKED_H

#include "heads.h"
#include "tile.h"

#define HIDDEN_WEIGHT -0.0f

INLINE bool is_marked(float weight) { return as_uint(weight) == 0x80000000u; }

/* tile_multiply without the products of marked weights: those are left out, not multiplied by 0, since B may be NaN there. */
INLINE void tile_multiply_marked(float4 *acc, const local float4 *a, const local float4 *b, int columns, int depth) {
    const int vectors = TILE_COLUMNS(columns);
    for (int k = 0; k < depth; k++) {
        float a_k[REG_M];
        read_rows(a_k, a, k);
        EACH(c, vectors, MOST_COLUMNS) {
            const float4 b_k = b[k * TILE_LINE(columns) / 4 + c * ACROSS + item_column()];
            UNROLL for (int r = 0; r < REG_M; r++)
                if (!is_marked(a_k[r])) acc[r * vectors + c] += a_k[r] * b_k;
        }
    }
}

#endif
