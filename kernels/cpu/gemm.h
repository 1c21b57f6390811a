/* The one micro-kernel of kernels/cpu: a register block of a matrix product.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *      acc[r][lane] += sum over k of  a[r * a_row + k * a_step] * b[k * LANES + lane]      k = 0 ... depth - 1, in that order
 *
 * Scalars of A are broadcast from where they lie, so that any strides serve, and none costs a copy; B is packed, LANES =
 * VECTORS * VECTOR_WIDTH floats for each k. The block has ROWS rows always: ROWS * VECTORS sums and VECTORS + 1 operands must fit
 * the register file (16 of AVX2, 32 of AVX-512 and NEON). Where fewer rows are left, the last of them fills the block up, and
 * its copies are not stored. A row's sums do not depend on which rows were computed beside it.
 *
 * Loops over the block have constant bounds and unroll; a bound that becomes constant by inlining is too late for PoCL (LLVM
 * 15), which then keeps the sums in memory: 25 instead of 79 GFLOP/s.
 * Register blocks tried in attention (AVX2, one core, of 102 GFLOP/s; TILE_KV 64): 4 rows x 3 vectors 83-86, 6 x 2 70-78.
 */
#ifndef CLATTN_KERNELS_CPU_GEMM_H
#define CLATTN_KERNELS_CPU_GEMM_H

#include "prelude.h"

#if !defined(ROWS) || !defined(VECTORS)
#error "ROWS and VECTORS are the micro-kernel's register block"
#endif
#define LANES_OF_BLOCK (VECTORS * VECTOR_WIDTH)

#define FOR_BLOCK(r, v) UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < VECTORS; v++)
/* The row that stands at place r of a block of which `rows` are left. */
#define ROW_AT(r, rows) ((r) < (rows) ? (r) : (rows) - 1)

/* `multiply`, defined for the address space of its B. */
#define DEFINE_MULTIPLY(B_SPACE)                                                                                           \
    INLINE void multiply(vec acc[ROWS][VECTORS], int rows, __global const float *a, i64 a_row, i64 a_step,                 \
                         B_SPACE const float *b, i64 depth) {                                                              \
        i64 row[ROWS];                                                                                                     \
        UNROLL for (int r = 0; r < ROWS; r++) row[r] = ROW_AT(r, rows) * a_row;                                            \
        for (i64 k = 0; k < depth; k++, a += a_step, b += LANES_OF_BLOCK) {                                                \
            vec lanes[VECTORS];                                                                                            \
            UNROLL for (int v = 0; v < VECTORS; v++) lanes[v] = vec_load(b + v * VECTOR_WIDTH);                            \
            UNROLL for (int r = 0; r < ROWS; r++) {                                                                        \
                vec scalar = vec_splat(a[row[r]]);                                                                         \
                UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] += scalar * lanes[v];                                   \
            }                                                                                                              \
        }                                                                                                                  \
    }

#endif
