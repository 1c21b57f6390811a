/* Products of matrix fragments: NVIDIA's tensor cores where the compiler makes code for them, else the same by other means.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * C (16 x 8, f32) += A (16 x 16) B (16 x 8) of f16 or bf16, by the 32 lanes of a warp. A lane holds, with g = lane / 4 and
 * t = lane % 4, two elements to a uint, the lower in the low half (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
 *   A  4 uints: rows g, g + 8, g, g + 8; columns 2t and 2t + 1, for the last two 8 more
 *   B  2 uints: rows 2t and 2t + 1, for the second 8 more; column g
 *   C  4 floats: rows g, g, g + 8, g + 8; columns 2t, 2t + 1, 2t, 2t + 1
 * so that C of two neighbouring products, narrowed, is A of the next.
 *
 * With PTX (sm_80 and newer) these are mma, ldmatrix, shfl and cp.async. Without, lanes put their fragments into local memory and
 * read the others': every work-item of the group must come to each product and each maximum or sum, as often as the others. That
 * computes the same sums in another order; it is there for tests, and is slow.
 */
#ifndef CLATTN_GPU_MMA_H
#define CLATTN_GPU_MMA_H

#include "element.h"

#define WARP 32
#define WARPS (WORK_GROUP / WARP)
#if WORK_GROUP % WARP
#error "WORK_GROUP must be whole warps"
#endif
#if DTYPE != DTYPE_F16 && DTYPE != DTYPE_BF16
#error "fragments are of f16 or bf16"
#endif

#if defined(__NVPTX__) || defined(__NV_CL_C_VERSION)
#define MMA_PTX 1
#else
#define MMA_PTX 0
#endif

INLINE int lane_id(void) { return (int)get_local_id(0) % WARP; }
INLINE int warp_id(void) { return (int)get_local_id(0) / WARP; }

#if MMA_PTX
/* ---- PTX ----------------------------------------------------------------------------------------------------------- */

#define MMA_UNROLL UNROLL
#define EXCHANGE_UINTS 1 /* nothing is exchanged */

#if DTYPE == DTYPE_F16
#define MMA_TYPE "f16"
#else
#define MMA_TYPE "bf16"
#endif

INLINE uint local_address(const local void *at) { return (uint)(size_t)at; }

/* c += a b */
INLINE void mma(local uint *exchange, float *c, const uint *a, const uint *b) {
    (void)exchange;
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four 8 x 8 blocks of `tile`, whose lines are `line` elements: this lane says where one row of one of them begins. */
INLINE void load_blocks(uint *out, const local ushort *row) {
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(local_address(row))
                     : "memory");
}

INLINE void load_blocks_transposed(uint *out, const local ushort *row) {
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(local_address(row))
                     : "memory");
}

/* Of a row-major tile: block n of the four begins 8 * (n % 2) rows and 8 * (n / 2) columns on. */
INLINE const local ushort *own_row(const local ushort *tile, int line) {
    const int lane = lane_id();
    return tile + (lane % 16) * line + lane / 16 * 8;
}

/* A of the 16 x 16 elements at `tile`, rows of A being lines. */
INLINE void load_a(uint *a, const local ushort *tile, int line) { load_blocks(a, own_row(tile, line)); }

/* B of the same elements transposed: lines are columns of two products, b[0..1] and b[2..3]. */
INLINE void load_b(uint *b, const local ushort *tile, int line) {
    uint blocks[4];
    load_blocks(blocks, own_row(tile, line));
    b[0] = blocks[0];
    b[1] = blocks[2];
    b[2] = blocks[1];
    b[3] = blocks[3];
}

/* B of the elements as they lie: lines are rows of B, 16 columns those of two products. */
INLINE void load_b_lines(uint *b, const local ushort *tile, int line) { load_blocks_transposed(b, own_row(tile, line)); }

INLINE float of_lane(float x, int distance) {
    uint y;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(as_uint(x)), "r"(distance));
    return as_float(y);
}

/* Over the four lanes that share a row. */
INLINE float quad_max(local uint *exchange, float x) {
    (void)exchange;
    x = fmax(x, of_lane(x, 1));
    return fmax(x, of_lane(x, 2));
}

INLINE float quad_sum(local uint *exchange, float x) {
    (void)exchange;
    x += of_lane(x, 1);
    return x + of_lane(x, 2);
}

INLINE uint narrow_two(float low, float high) {
    uint two;
    __asm__("cvt.rn." MMA_TYPE "x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}

/* Eight elements, both addresses multiples of 16 bytes; there after copy_wait and a barrier. */
INLINE void copy_eight(local ushort *to, const global ushort *from) {
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(local_address(to)), "l"(from) : "memory");
}
/* What was copied since the last call is one batch. */
INLINE void copy_commit(void) { __asm__ volatile("cp.async.commit_group;" : : : "memory"); }
/* All batches but the last are there, or all. */
INLINE void copy_wait_but_one(void) { __asm__ volatile("cp.async.wait_group 1;" : : : "memory"); }
INLINE void copy_wait(void) { __asm__ volatile("cp.async.wait_group 0;" : : : "memory"); }

#else
/* ---- without ------------------------------------------------------------------------------------------------------- */

#define MMA_UNROLL
#define EXCHANGE_UINTS (WORK_GROUP * 6)

INLINE uint two_of(ushort low, ushort high) { return (uint)low | (uint)high << 16; }
INLINE float half_of(uint two, int which) { return widen((ushort)(two >> 16 * which)); }

INLINE void mma(local uint *exchange, float *c, const uint *a, const uint *b) {
    local uint *mine = exchange + get_local_id(0) * 6;
    const local uint *warp = exchange + warp_id() * WARP * 6;
    const int g = lane_id() / 4, t = lane_id() % 4;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = 0; n < 4; n++) mine[n] = a[n];
    for (int n = 0; n < 2; n++) mine[4 + n] = b[n];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 16; k++) {
        const int holder = k % 8 / 2, late = k / 8;
        for (int n = 0; n < 4; n++) {
            const uint from_a = warp[(4 * g + holder) * 6 + 2 * late + n / 2];
            const uint from_b = warp[(4 * (2 * t + n % 2) + holder) * 6 + 4 + late];
            c[n] += half_of(from_a, k % 2) * half_of(from_b, k % 2);
        }
    }
}

INLINE void load_a(uint *a, const local ushort *tile, int line) {
    const int g = lane_id() / 4, t = lane_id() % 4;
    for (int n = 0; n < 4; n++) {
        const local ushort *at = tile + (g + n % 2 * 8) * line + n / 2 * 8 + 2 * t;
        a[n] = two_of(at[0], at[1]);
    }
}

INLINE void load_b(uint *b, const local ushort *tile, int line) {
    const int g = lane_id() / 4, t = lane_id() % 4;
    for (int n = 0; n < 4; n++) {
        const local ushort *at = tile + (g + n / 2 * 8) * line + n % 2 * 8 + 2 * t;
        b[n] = two_of(at[0], at[1]);
    }
}

INLINE void load_b_lines(uint *b, const local ushort *tile, int line) {
    const int g = lane_id() / 4, t = lane_id() % 4;
    for (int n = 0; n < 4; n++) {
        const local ushort *at = tile + (n % 2 * 8 + 2 * t) * line + n / 2 * 8 + g;
        b[n] = two_of(at[0], at[line]);
    }
}

INLINE void share_in_quad(local uint *exchange, float x, float *all) {
    const int first = (int)get_local_id(0) / 4 * 4;
    barrier(CLK_LOCAL_MEM_FENCE);
    exchange[get_local_id(0)] = as_uint(x);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = 0; n < 4; n++) all[n] = as_float(exchange[first + n]);
}

INLINE float quad_max(local uint *exchange, float x) {
    float all[4];
    share_in_quad(exchange, x, all);
    return fmax(fmax(all[0], all[1]), fmax(all[2], all[3]));
}

INLINE float quad_sum(local uint *exchange, float x) {
    float all[4];
    share_in_quad(exchange, x, all);
    return (all[0] + all[1]) + (all[2] + all[3]);
}

INLINE uint narrow_two(float low, float high) { return two_of(narrow(low), narrow(high)); }

INLINE void copy_eight(local ushort *to, const global ushort *from) {
    for (int n = 0; n < 8; n++) to[n] = from[n];
}
INLINE void copy_commit(void) {}
INLINE void copy_wait_but_one(void) {}
INLINE void copy_wait(void) {}
#endif

#endif
