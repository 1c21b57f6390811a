/* Products over keys that some rows of a tile may not use, for weighted_values and attention.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_GPU_MASKED_H
#define CLATTN_GPU_MASKED_H

#include "heads.h"
#include "tile.h"

/* Of each of a work-item's rows: the keys first <= k < end of a tile, counted from its first. */
typedef struct row_ranges {
    int first[REG_M], end[REG_M];
} row_ranges;

/* The live keys of the work-item's rows of the tile of queries at i, in the tile of `extent` keys at j. */
INLINE row_ranges live_of_rows(const attention_params *p, const member *m, i64 i, i64 j, int extent) {
    row_ranges live;
    UNROLL for (int r = 0; r < REG_M; r++) {
        const key_range range = range_in_tile(live_range(p, m, i + item_row() + r), j, extent);
        live.first[r] = (int)range.first;
        live.end[r] = (int)range.end;
    }
    return live;
}

/* tile_multiply where each row has only its own keys. A dead product is left out, not multiplied by 0: B may be NaN there. */
INLINE void tile_multiply_live(float4 *acc, const local float4 *a, const local float4 *b, int columns, int depth,
                               const row_ranges *live) {
    const int vectors = TILE_COLUMNS(columns);
    for (int k = 0; k < depth; k++) {
        float a_k[REG_M];
        read_rows(a_k, a, k);
        EACH(c, vectors, MOST_COLUMNS) {
            const float4 b_k = b[k * TILE_LINE(columns) / 4 + c * ACROSS + item_column()];
            UNROLL for (int r = 0; r < REG_M; r++)
                if (k >= live->first[r] && k < live->end[r]) acc[r * vectors + c] += a_k[r] * b_k;
        }
    }
}

#endif
