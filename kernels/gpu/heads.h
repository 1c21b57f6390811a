/* Where a work-group of the attention kernels stands, and addresses from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_GPU_HEADS_H
#define CLATTN_GPU_HEADS_H

#include "../mask.h"
#include "work_group.h"

/* Query head h of batch member b, and the key/value head g that it reads. */
typedef struct head {
    i64 b, h, g;
} head;

INLINE head head_at(const attention_params *p, i64 index) {
    const i64 h = index % p->heads_q;
    const head at = {index / p->heads_q, h, h / (p->heads_q / p->heads_kv)};
    return at;
}

/* Of the tiles of every head, `across` to a row of tiles, the one that a group works on: its head, its row of tiles and its place
 * in that. */
typedef struct head_tile {
    head at;
    i64 down, along;
} head_tile;

INLINE head_tile head_tile_at(const attention_params *p, i64 down, i64 across, i64 group) {
    const head_tile tile = {head_at(p, group / across / down), group / across % down, group % across};
    return tile;
}

INLINE i64 offset_of(strides stride, i64 b, i64 h, i64 l, i64 d) {
    return b * stride.b + h * stride.h + l * stride.l + d * stride.d;
}

INLINE i64 tiles_of(i64 size, i64 tile) {
    return (size + tile - 1) / tile;
}

/* What a softmax subtracts from scores, their maximum; but -infinity - -infinity would be NaN where the weight is 0. */
INLINE float pivot(float max) {
    return max == -INFINITY ? 0.0f : max;
}

#endif
