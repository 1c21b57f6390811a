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

#endif
