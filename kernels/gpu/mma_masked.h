/* Products of fragments (mma.h) over keys that some rows of a tile may not use, for attention_mma and weighted_values_mma.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A weight is never negative. In place of that of a key which is hidden from a row stands -0, HIDDEN: as a number it adds
 * nothing, and as a mark it keeps a hidden key's NaN out of a sum. A product of fragments looks at no marks: a tile in which a
 * value is not finite is added by add_live.
 */
#ifndef CLATTN_GPU_MMA_MASKED_H
#define CLATTN_GPU_MMA_MASKED_H

#include "mma.h"

#ifndef LIVE_BLOCKS
#error "LIVE_BLOCKS, how many blocks side by side a warp has of a row, comes from the kernel"
#endif

#define HIDDEN 0x8000

/* Whether an element of a tile is infinite or NaN. */
INLINE bool has_nonfinite(const local ushort *tile, int lines, int extent, local int *flag) {
    bool found = false;
#pragma unroll 1
    for (int n = (int)get_local_id(0); n < lines * extent; n += WORK_GROUP)
        found |= !isfinite(widen(tile[n / extent * LINE(extent) + n % extent]));
    return any_found(found, flag);
}

/* Weights in local memory, row by row: each is the sum of `parts` numbers, `apart` from one another. */
typedef struct shared_weights {
    const local ushort *at;
    int line, parts, apart;
} shared_weights;

/* acc += weights * values of `keys` keys, but for what is hidden: of LIVE_BLOCKS blocks, whose first row and column these begin
 * with. A line of values is a key. */
INLINE void add_live(float *acc, shared_weights weights, const local ushort *values, int values_line, int keys) {
    const int l = lane_id();
#pragma unroll 1
    for (int key = 0; key < keys; key++) {
        MMA_UNROLL for (int r = 0; r < LANE_ROWS; r++) {
            const local ushort *at = weights.at + BLOCK_ROW(l, ROW_ELEMENT(r, 0)) * weights.line + key;
            float weight = widen(*at);
            if (*at == HIDDEN) continue;
            for (int part = 1; part < weights.parts; part++) weight += widen(at[part * weights.apart]);
            MMA_UNROLL for (int n = 0; n < LIVE_BLOCKS * BLOCK / LANE_ROWS; n++) {
                const int e = ROW_ELEMENT(r, n);
                acc[e] += weight * widen(values[key * values_line + e / BLOCK * 16 + BLOCK_COLUMN(l, e % BLOCK)]);
            }
        }
    }
}

#endif
