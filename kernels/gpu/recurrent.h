/* W_h h_{t-1} for some hidden units and batch members: what rnn and lstm have in common.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The work-group computes a tile of TILE_H units by TILE_B batch members, all GATES sums of each. A unit belongs to
 * PARTS = WORK_GROUP / TILE_H work-items, each of which takes every PARTS-th k of the sum; their parts are added in local
 * memory in a fixed order. Units stand side by side, so that the packed W_h (params.h: lanes innermost, then gates) is read in
 * whole lines, once for TILE_B members. h_{t-1} passes through local memory in chunks of TILE_K.
 *
 * Local memory: TILE_B * TILE_K + WORK_GROUP * TILE_B * GATES floats.
 */
#ifndef CLATTN_GPU_RECURRENT_H
#define CLATTN_GPU_RECURRENT_H

#include "../params.h"
#include "work_group.h"

#if !defined(TILE_H) || !defined(TILE_B) || !defined(TILE_K)
#error "TILE_H, TILE_B and TILE_K come from the kernel's row"
#endif
#define PARTS (WORK_GROUP / TILE_H)
#if PARTS < 1 || PARTS * TILE_H != WORK_GROUP || TILE_K % PARTS
#error "WORK_GROUP is a multiple of TILE_H, and TILE_K of WORK_GROUP / TILE_H"
#endif

/* A (batch, hidden) view; `at` is NULL where every element is 0. */
typedef struct state {
    const global float *at;
    i64 b, d;
} state;

/* h_{t-1}: the step before, or h_0. */
INLINE state previous_h(const recurrence_params *p, const global float *h_0, const global float *out, i64 t) {
    state h = {out + (t - 1) * p->out.l, p->out.b, p->out.d};
    if (t == 0) {
        h.at = p->has_h_0 ? h_0 : 0;
        h.b = p->h_0.b;
        h.d = p->h_0.d;
    }
    return h;
}

/* chunk[b][k] = h of members first_b + b, units first_k + k; of members past the batch 0. */
INLINE void load_chunk(const recurrence_params *p, local float *chunk, state h, i64 first_b, i64 first_k) {
    for (int n = (int)get_local_id(0); n < TILE_B * TILE_K; n += WORK_GROUP) {
        const i64 b = first_b + n / TILE_K, k = first_k + n % TILE_K;
        if (k < p->hidden) chunk[n] = b < p->batch ? h.at[b * h.b + k * h.d] : 0.0f;
    }
}

/* sums[b * GATES + g] += the work-item's part of the chunk's products. */
INLINE void multiply_chunk(const recurrence_params *p, float *sums, const local float *chunk, const global float *weights,
                           int part, int count) {
    const i64 line = GATES * p->lanes;
#pragma unroll 4
    for (int k = part; k < count; k += PARTS) {
        UNROLL for (int g = 0; g < GATES; g++) {
            const float weight = weights[k * line + g * p->lanes];
            UNROLL for (int b = 0; b < TILE_B; b++) sums[b * GATES + g] += weight * chunk[b * TILE_K + k];
        }
    }
}

/* parts[((b * GATES + g) * PARTS + part) * TILE_H + unit] = the parts of W_h h for the tile's units and members. */
INLINE void recurrent_parts(const recurrence_params *p, local float *parts, local float *chunk, const global float *packed,
                            state h, i64 first_unit, i64 first_b) {
    const int lane = (int)get_local_id(0) % TILE_H, part = (int)get_local_id(0) / TILE_H;
    const i64 unit = first_unit + lane, line = GATES * p->lanes;
    const global float *weights = packed + unit / p->lanes * p->hidden * line + unit % p->lanes;
    float sums[TILE_B * GATES];
    UNROLL for (int n = 0; n < TILE_B * GATES; n++) sums[n] = 0.0f;
    for (i64 k = 0; h.at && k < p->hidden; k += TILE_K) {
        const i64 left = p->hidden - k;
        load_chunk(p, chunk, h, first_b, k);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (unit < p->hidden) multiply_chunk(p, sums, chunk, weights + k * line, part, left < TILE_K ? (int)left : TILE_K);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    UNROLL for (int n = 0; n < TILE_B * GATES; n++) parts[(n * PARTS + part) * TILE_H + lane] = sums[n];
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* (W_h h)[g * hidden + unit] of member b: the parts together. */
INLINE float recurrent_sum(const local float *parts, int b, int g, int lane) {
    float sum = 0.0f;
    for (int part = 0; part < PARTS; part++) sum += parts[((b * GATES + g) * PARTS + part) * TILE_H + lane];
    return sum;
}

#endif
