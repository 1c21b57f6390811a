/* The one micro-kernel of kernels/cpu: a register block of a matrix product.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *      acc[r][lane] += sum over k of  a[r * a_row + k * a_step] * b[k * LANES + lane]      k = 0 ... depth - 1, in that order
 *
 * Scalars of A are broadcast from where they lie, so that any strides serve, and none costs a copy; B is packed, LANES =
 * VECTORS * VECTOR_WIDTH floats for each k. `rows` is a constant of each call, ROWS or 1 for what remains: the loops over it
 * unroll and the block lives in registers. ROWS * VECTORS sums and VECTORS + 1 operands must fit the register file (16 of AVX2,
 * 32 of AVX-512 and NEON). A row's sums do not depend on which rows were computed beside it.
 */
#ifndef CLATTN_KERNELS_CPU_GEMM_H
#define CLATTN_KERNELS_CPU_GEMM_H

#include "prelude.h"

#if !defined(ROWS) || !defined(VECTORS)
#error "ROWS and VECTORS are the micro-kernel's register block"
#endif
#define LANES_OF_BLOCK (VECTORS * VECTOR_WIDTH)

#define FOR_BLOCK(r, v, rows)                                                                                              \
    UNROLL for (int r = 0; r < (rows); r++) UNROLL for (int v = 0; v < VECTORS; v++)

/* `multiply`, defined for the address space of its B. */
#define DEFINE_MULTIPLY(B_SPACE)                                                                                           \
    INLINE void multiply(vec acc[ROWS][VECTORS], const int rows, __global const float *a, i64 a_row, i64 a_step,           \
                         B_SPACE const float *b, i64 depth) {                                                              \
        for (i64 k = 0; k < depth; k++, a += a_step, b += LANES_OF_BLOCK) {                                                \
            vec lanes[VECTORS];                                                                                            \
            UNROLL for (int v = 0; v < VECTORS; v++) lanes[v] = vec_load(b + v * VECTOR_WIDTH);                            \
            UNROLL for (int r = 0; r < rows; r++) {                                                                        \
                vec scalar = vec_splat(a[r * a_row]);                                                                      \
                UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] += scalar * lanes[v];                                   \
            }                                                                                                              \
        }                                                                                                                  \
    }

/* ---- tiles of matrices, for the kernels that walk them ---------------------------------------------------------------
 * A tile of C, [rows][LANES], gathers the products of packed panels of B, [depth][LANES], while depth goes on TILE_K at a time;
 * a panel and ROWS rows of A then stay in the nearest cache. */
#if defined(TILE_K)

DEFINE_MULTIPLY(__private)

INLINE void tile_clear(float *c, int rows) {
    for (int n = 0; n < rows * LANES_OF_BLOCK; n += VECTOR_WIDTH) vec_store(vec_splat(0.0f), c + n);
}

/* C += A panel for `rows` rows. */
INLINE void tile_multiply_rows(const int rows, float *c, __global const float *a, i64 a_row, i64 a_step, const float *panel,
                               i64 depth) {
    vec acc[ROWS][VECTORS];
    FOR_BLOCK(r, v, rows) acc[r][v] = vec_load(c + r * LANES_OF_BLOCK + v * VECTOR_WIDTH);
    multiply(acc, rows, a, a_row, a_step, panel, depth);
    FOR_BLOCK(r, v, rows) vec_store(acc[r][v], c + r * LANES_OF_BLOCK + v * VECTOR_WIDTH);
}

/* panel[k][lane] = b[k * b_step + lane * b_lane] for the first `lanes` lanes, 0 for the others. */
INLINE void panel_pack(float *panel, __global const float *b, i64 b_step, i64 b_lane, int depth, int lanes) {
    if (b_lane == 1 && lanes == LANES_OF_BLOCK) {
        for (int k = 0; k < depth; k++, b += b_step, panel += LANES_OF_BLOCK) {
            UNROLL for (int v = 0; v < VECTORS; v++) vec_store(vec_load(b + v * VECTOR_WIDTH), panel + v * VECTOR_WIDTH);
        }
        return;
    }
    for (int lane = 0; lane < LANES_OF_BLOCK; lane++) {
        for (int k = 0; k < depth; k++)
            panel[k * LANES_OF_BLOCK + lane] = lane < lanes ? b[k * b_step + lane * b_lane] : 0.0f;
    }
}

/* to[lane * stride] = scale * from[lane] for the first `lanes` lanes. */
INLINE void lanes_store(__global float *to, i64 stride, const float *from, float scale, int lanes) {
    if (stride == 1 && lanes == LANES_OF_BLOCK) {
        UNROLL for (int v = 0; v < VECTORS; v++) vec_store(scale * vec_load(from + v * VECTOR_WIDTH), to + v * VECTOR_WIDTH);
        return;
    }
    for (int lane = 0; lane < lanes; lane++) to[lane * stride] = scale * from[lane];
}

#endif

#endif
