/* Tiles of matrix products, for the kernels that walk matrices: project, scores, weighted_values.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A tile of C, [TILE_M][LANES], gathers the products of packed panels of B, [TILE_K][LANES], as depth goes on TILE_K at a time:
 * a panel and the ROWS rows of A that meet it stay in the nearest cache.
 */
#ifndef CLATTN_KERNELS_CPU_TILE_H
#define CLATTN_KERNELS_CPU_TILE_H

#include "gemm.h"

#if !defined(ROWS) || !defined(VECTORS) || !defined(TILE_M) || !defined(TILE_N) || !defined(TILE_K)
#error "ROWS, VECTORS: the register block; TILE_M, TILE_N: rows and columns of a group; TILE_K: depth of a packed panel"
#endif
#if TILE_N % (VECTORS * VECTOR_WIDTH)
#error "TILE_N must be a multiple of VECTORS * VECTOR_WIDTH"
#endif

INLINE void tile_clear(real *c, int rows) {
    for (int n = 0; n < rows * LANES; n += WIDTH) vec_store(vec_splat(REAL(0.0)), c + n);
}

/* C += A panel for `rows` rows, ROWS at most. */
INLINE void tile_multiply_rows(int rows, real *c, __global const real *a, i64 a_row, i64 a_step, const real *panel, i64 depth) {
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v) acc[r][v] = vec_load(c + ROW_AT(r, rows) * LANES + v * WIDTH);
    multiply(acc, rows, a, a_row, a_step, panel, LANES, depth);
    FOR_BLOCK(r, v) if (r < rows) vec_store(acc[r][v], c + r * LANES + v * WIDTH);
}

/* panel[k][lane] = b[k * b_step + lane * b_lane] for the first `lanes` lanes, 0 for the others. */
INLINE void panel_pack(real *panel, __global const real *b, i64 b_step, i64 b_lane, int depth, int lanes) {
    if (b_lane == 1 && lanes == LANES) {
        for (int k = 0; k < depth; k++, b += b_step, panel += LANES) {
            UNROLL for (int v = 0; v < VECTORS; v++) vec_store(vec_load(b + v * WIDTH), panel + v * WIDTH);
        }
        return;
    }
    for (int lane = 0; lane < LANES; lane++) {
        for (int k = 0; k < depth; k++)
            panel[k * LANES + lane] = lane < lanes ? b[k * b_step + lane * b_lane] : REAL(0.0);
    }
}

/* to[lane * stride] = scale * from[lane] for the first `lanes` lanes. */
INLINE void lanes_store(__global real *to, i64 stride, const real *from, real scale, int lanes) {
    if (stride == 1 && lanes == LANES) {
        UNROLL for (int v = 0; v < VECTORS; v++) vec_store(scale * vec_load(from + v * WIDTH), to + v * WIDTH);
        return;
    }
    for (int lane = 0; lane < lanes; lane++) to[lane * stride] = scale * from[lane];
}

#endif
