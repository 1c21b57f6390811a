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
    for (int n = 0; n < rows * LANES; n += WIDTH) vec_store_aligned(vec_splat(REAL(0.0)), c + n);
}

/* C += A panel for `rows` rows, ROWS at most. */
#define DEFINE_TILE_MULTIPLY(name, multiply, VECTORS)                                                                      \
    INLINE void name(int rows, real *c, __global const real *a, i64 a_row, i64 a_step, const real *panel, i64 depth) {     \
        vec acc[ROWS][VECTORS];                                                                                            \
        UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < VECTORS; v++)                                     \
            acc[r][v] = vec_load(c + ROW_AT(r, rows) * LANES + v * WIDTH);                                                 \
        i64 row[ROWS];                                                                                                     \
        rows_at(row, rows, a_row);                                                                                         \
        multiply(acc, row, a, a_step, panel, LANES, depth);                                                                \
        UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < VECTORS; v++)                                     \
            if (r < rows) vec_store_aligned(acc[r][v], c + r * LANES + v * WIDTH);                                         \
    }

DEFINE_TILE_MULTIPLY(tile_multiply_rows, multiply, VECTORS)

/* A panel of which only the first NARROW lanes are in use takes a vector less. */
#define NARROW_VECTORS (VECTORS - 1)
#define NARROW (NARROW_VECTORS * WIDTH)
DEFINE_MULTIPLY(multiply_narrow, ROWS, NARROW_VECTORS, __global, __private)
DEFINE_TILE_MULTIPLY(tile_multiply_narrow, multiply_narrow, NARROW_VECTORS)

/* The lanes of the next panel where `left` columns are left: two narrow panels in place of a full one and a single vector, whose
 * few sums would leave the multipliers waiting. */
INLINE int panel_lanes(i64 left) {
    if (left > LANES && left <= 2 * NARROW) return NARROW;
    return left < LANES ? (int)left : LANES;
}

/* panel[k][lane] = b[k * b_step + lane * b_lane] for the first `lanes` lanes, 0 for the others. */
INLINE void panel_pack(real *panel, __global const real *b, i64 b_step, i64 b_lane, int depth, int lanes) {
    if (b_lane == 1) {
        for (int k = 0; k < depth; k++, b += b_step, panel += LANES) {
            UNROLL for (int v = 0; v < VECTORS; v++)
                vec_store_aligned(row_load(b + v * WIDTH, 1, lanes - v * WIDTH, REAL(0.0)), panel + v * WIDTH);
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
    UNROLL for (int v = 0; v < VECTORS; v++) {
        int n = v * WIDTH;
        row_store(to + n * stride, stride, lanes - n, scale * vec_load(from + n));
    }
}

#endif
