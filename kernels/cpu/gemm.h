/* The one micro-kernel of kernels/cpu: a register block of a matrix product.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *      acc[r][lane] += sum over k of  a[r * a_row + k * a_step] * b[k * b_step + lane]        k = 0 ... depth - 1, in that order
 *
 * for VECTORS * WIDTH lanes. Scalars of A are broadcast from where they lie, so that any strides serve, and none costs a copy;
 * B's lanes lie packed. The block has ROWS rows always: ROWS * VECTORS sums and VECTORS + 1 operands must fit the register
 * file (16 of AVX2, 32 of AVX-512 and NEON). Where fewer rows are left, the last of them fills the block up, and its copies are
 * not stored. A row's sums do not depend on which rows were computed beside it.
 *
 * Loops over the block have constant bounds and unroll; a bound that becomes constant by inlining is too late for PoCL (LLVM
 * 15), which then keeps the sums in memory: 25 instead of 79 GFLOP/s.
 * Register blocks tried in attention (AVX2, one core, of 102 GFLOP/s; TILE_KV 64): 4 rows x 3 vectors 83-86, 6 x 2 70-78.
 * Alone on data in the nearest cache, percent of the peak of its own instructions (Golden Cove; depth 64 to 128): AVX-512 8 x 3 98-99;
 * AVX2 4 x 3 93-95, 6 x 2 82-90; SSE2 4 x 2 88-90, 6 x 2 87, 4 x 3 96-98, 2 x 4 99: there a scalar takes two instructions to broadcast.
 */
#ifndef CLATTN_KERNELS_CPU_GEMM_H
#define CLATTN_KERNELS_CPU_GEMM_H

#include "prelude.h"

/* The row that stands at place r of a block of which `rows` are left. */
#define ROW_AT(r, rows) ((r) < (rows) ? (r) : (rows) - 1)

/* Where the rows of a block begin of which `rows` are left. Worked out apart from the micro-kernel, so that it is done once for
 * all blocks that are full: it takes as long as a few steps of depth. */
#define DEFINE_ROWS_AT(name, ROWS)                                                                                         \
    INLINE void name(i64 row[ROWS], int rows, i64 a_row) {                                                              \
        UNROLL for (int r = 0; r < ROWS; r++) row[r] = ROW_AT(r, rows) * a_row;                                            \
    }

/* What micro-kernels do; `beside` is done at each step. */
#define MULTIPLY(ROWS, VECTORS, beside)                                                                                    \
    vec sum[ROWS][VECTORS];                                                                                                \
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = acc[r][v];                  \
    for (i64 k = 0; k < depth; k++, a += a_step, b += b_step) {                                                            \
        beside;                                                                                                            \
        vec lanes[VECTORS];                                                                                                \
        UNROLL for (int v = 0; v < VECTORS; v++) lanes[v] = vec_load(b + v * WIDTH);                                       \
        UNROLL for (int r = 0; r < ROWS; r++) {                                                                            \
            vec scalar = vec_splat(a[row[r]]);                                                                             \
            UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] += scalar * lanes[v];                                       \
        }                                                                                                                  \
    }                                                                                                                      \
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] = sum[r][v]

/* The micro-kernel `name` for a register block and the address spaces of its A and B. */
#define DEFINE_MULTIPLY(name, ROWS, VECTORS, A_SPACE, B_SPACE)                                                             \
    INLINE void name(vec acc[ROWS][VECTORS], const i64 row[ROWS], A_SPACE const real *a, i64 a_step,                       \
                     B_SPACE const real *b, i64 b_step, i64 depth) {                                                       \
        MULTIPLY(ROWS, VECTORS, (void)0);                                                                                  \
    }

/* The same, which has the lines at far, far + far_step ... in the second-level cache soon, one for each step of depth. */
#define DEFINE_MULTIPLY_FETCHING(name, ROWS, VECTORS, A_SPACE, B_SPACE)                                                    \
    INLINE void name(vec acc[ROWS][VECTORS], const i64 row[ROWS], A_SPACE const real *a, i64 a_step,                       \
                     B_SPACE const real *b, i64 b_step, i64 depth, __global const uchar *far, i64 far_step) {              \
        MULTIPLY(ROWS, VECTORS, FETCH_FAR(far); far += far_step);                                                          \
    }

#if defined(ROWS) && defined(VECTORS)
#define LANES (VECTORS * WIDTH)
#define FOR_BLOCK(r, v) UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < VECTORS; v++)
DEFINE_ROWS_AT(rows_at, ROWS)
DEFINE_MULTIPLY(multiply, ROWS, VECTORS, __global, __private)
DEFINE_MULTIPLY(multiply_packed, ROWS, VECTORS, __private, __private)
#endif

#endif
