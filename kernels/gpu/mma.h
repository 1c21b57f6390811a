/* Products of matrix fragments: on the matrix units of a GPU where the compiler makes code for them, else the same by other
 * means.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The lanes of a warp (a wave, a sub-group) multiply WARP_ROWS rows by 16 columns, 16 deep, in f16 or bf16, and add to f32.
 * What a kernel calls rows are its queries, and columns its keys, or the elements of its values. Each lane holds, two elements
 * to a uint, the lower in the low half, rows     ROW_UINTS of the WARP_ROWS x 16 operand columns  COLUMN_UINTS of the 16 x 16
 * operand block    BLOCK floats of the WARP_ROWS x 16 sums, those of LANE_ROWS rows and which they are is the layout, MMA of
 * the kernel's row. With l the lane and e the element:
 *
 *   MMA          what it is for                          rows                columns             block
 *   MMA_NVIDIA   mma.sync.m16n8k16, twice, sm_80         row l/4 + 8(e/2%2)  column l/4 + 8(e/4) row as of rows
 *                (PTX ISA, "Matrix Fragments")           depth 2(l%4) + e%2  depth 2(l%4) + e%2  column 2(l%4) + e%2
 *                                                              + 8(e/4)            + 8(e/2%2)           + 8(e/4)
 *   MMA_CDNA     v_mfma_f32_16x16x16 f16, bf16_1k;       row l%16            column l%16         row l%16
 *                gfx90a, wave64                          depth 4(l/16) + e   as of rows          column 4(l/16) + e
 *   MMA_RDNA3    v_wmma_f32_16x16x16 f16, bf16;          row l%16            column l%16         row l%16
 *                gfx11, wave32; both halves of a wave    depth e             depth e             column 2e + l/16
 *                hold the operands
 *   MMA_XE8      intel_sub_group_*_matrix_mad_k16,       row l               column e/2          row l
 *                twice; sub-groups of 8 (Arc)            depth e             depth 2l + e%2      column e
 *   MMA_XE16     the same in sub-groups of 16            row l               column e            row l
 *                (Max, Xe2)                              depth e             depth l             column e
 *
 * So that a block of weights, narrowed, is the rows of the next product, in registers; but on RDNA 3, where the other half of
 * the wave has every second one. All but NVIDIA's compute the transposed product: columns are the instruction's first operand.
 * (AMD, "CDNA 2 Instruction Set Architecture", "RDNA 3 Instruction Set Architecture"; the extension's text of
 * cl_intel_subgroup_matrix_multiply_accumulate.) Of these layouts only NVIDIA's instructions were assembled by the vendor's own
 * tool for more than one generation; AMD's and Intel's are compiled offline, and not yet run on hardware.
 *
 * Without the instructions, lanes put their operands into local memory where the layout says, and multiply what lies there:
 * every work-item of the group must come to each product and each exchange, as often as the others. That computes the same sums
 * in another order; it is there for tests, and is slow.
 *
 * Under a detector of races (MMA_WATCHED) those exchanges are atomic, and their barriers are of no use to accesses of tiles:
 * else they would hide that a barrier of the kernel is missing.
 */
#ifndef CLATTN_GPU_MMA_H
#define CLATTN_GPU_MMA_H

#include "../mma_layouts.h"
#include "element.h"

#if DTYPE != DTYPE_F16 && DTYPE != DTYPE_BF16
#error "fragments are of f16 or bf16"
#endif

/* ---- layouts ------------------------------------------------------------------------------------------------------- */

/* Lanes that share a row stand ROW_LANES_APART from one another, ROW_LANES of them; OPERAND_COPIES: how many lanes hold each
 * element of an operand. ROW_ELEMENT(r, n) is the n-th element of a lane's row r in a block; NEIGHBOURS of them, one after another, are
 * in neighbouring columns. */
#if MMA == MMA_NVIDIA
#define WARP 32
#define WARP_ROWS 16
#define LANE_ROWS 2
#define ROW_LANES 4
#define ROW_LANES_APART 1
#define ROW_UINTS 4
#define COLUMN_UINTS 4
#define BLOCK 8
#define OPERAND_COPIES 1
#define ROWS_ROW(l, e) ((l) / 4 + (e) / 2 % 2 * 8)
#define ROWS_DEPTH(l, e) ((l) % 4 * 2 + (e) % 2 + (e) / 4 * 8)
#define COLUMNS_COLUMN(l, e) ((l) / 4 + (e) / 4 * 8)
#define COLUMNS_DEPTH(l, e) ((l) % 4 * 2 + (e) % 2 + (e) / 2 % 2 * 8)
#define BLOCK_ROW(l, e) ((l) / 4 + (e) / 2 % 2 * 8)
#define BLOCK_COLUMN(l, e) ((l) % 4 * 2 + (e) % 2 + (e) / 4 * 8)
#define ROW_ELEMENT(r, n) ((n) / 2 * 4 + 2 * (r) + (n) % 2)
#define NEIGHBOURS 2
#elif MMA == MMA_CDNA
#define WARP 64
#define WARP_ROWS 16
#define LANE_ROWS 1
#define ROW_LANES 4
#define ROW_LANES_APART 16
#define ROW_UINTS 2
#define COLUMN_UINTS 2
#define BLOCK 4
#define OPERAND_COPIES 1
#define ROWS_ROW(l, e) ((l) % 16)
#define ROWS_DEPTH(l, e) ((l) / 16 * 4 + (e))
#define COLUMNS_COLUMN(l, e) ((l) % 16)
#define COLUMNS_DEPTH(l, e) ((l) / 16 * 4 + (e))
#define BLOCK_ROW(l, e) ((l) % 16)
#define BLOCK_COLUMN(l, e) ((l) / 16 * 4 + (e))
#define ROW_ELEMENT(r, n) (n)
#define NEIGHBOURS 4
#elif MMA == MMA_RDNA3
#define WARP 32
#define WARP_ROWS 16
#define LANE_ROWS 1
#define ROW_LANES 2
#define ROW_LANES_APART 16
#define ROW_UINTS 8
#define COLUMN_UINTS 8
#define BLOCK 8
#define OPERAND_COPIES 2
#define ROWS_ROW(l, e) ((l) % 16)
#define ROWS_DEPTH(l, e) (e)
#define COLUMNS_COLUMN(l, e) ((l) % 16)
#define COLUMNS_DEPTH(l, e) (e)
#define BLOCK_ROW(l, e) ((l) % 16)
#define BLOCK_COLUMN(l, e) ((e)*2 + (l) / 16)
#define ROW_ELEMENT(r, n) (n)
#define NEIGHBOURS 1
#elif MMA == MMA_XE8
#define WARP 8
#define WARP_ROWS 8
#define LANE_ROWS 1
#define ROW_LANES 1
#define ROW_LANES_APART 1
#define ROW_UINTS 8
#define COLUMN_UINTS 16
#define BLOCK 16
#define OPERAND_COPIES 1
#define ROWS_ROW(l, e) (l)
#define ROWS_DEPTH(l, e) (e)
#define COLUMNS_COLUMN(l, e) ((e) / 2)
#define COLUMNS_DEPTH(l, e) ((l)*2 + (e) % 2)
#define BLOCK_ROW(l, e) (l)
#define BLOCK_COLUMN(l, e) (e)
#define ROW_ELEMENT(r, n) (n)
#define NEIGHBOURS 16
#elif MMA == MMA_XE16
#define WARP 16
#define WARP_ROWS 16
#define LANE_ROWS 1
#define ROW_LANES 1
#define ROW_LANES_APART 1
#define ROW_UINTS 8
#define COLUMN_UINTS 8
#define BLOCK 16
#define OPERAND_COPIES 1
#define ROWS_ROW(l, e) (l)
#define ROWS_DEPTH(l, e) (e)
#define COLUMNS_COLUMN(l, e) (e)
#define COLUMNS_DEPTH(l, e) (l)
#define BLOCK_ROW(l, e) (l)
#define BLOCK_COLUMN(l, e) (e)
#define ROW_ELEMENT(r, n) (n)
#define NEIGHBOURS 16
#else
#error "MMA, the layout of fragments, comes from the kernel's row"
#endif

#define WARPS (WORK_GROUP / WARP)
#if WORK_GROUP % WARP
#error "WORK_GROUP must be whole warps"
#endif

/* 1 where the device has the instructions of the layout, as the host says. */
#ifndef MMA_NATIVE
#define MMA_NATIVE 0
#endif
#if MMA_NATIVE
#define MMA_UNROLL UNROLL
#define EXCHANGE_UINTS 1 /* nothing is exchanged through memory */
#else
#define MMA_UNROLL _Pragma("unroll 1") /* compilers take minutes for all of it */
#define OPERAND_ELEMENTS (16 * (WARP_ROWS + 16))
#define EXCHANGE_UINTS (WARPS * OPERAND_COPIES * OPERAND_ELEMENTS / 2)
#endif

/* Local memory through which the emulation's lanes give one another what they hold; put and taken between meetings. */
#ifndef MMA_WATCHED
#define MMA_WATCHED 0
#endif
#if MMA_WATCHED
INLINE void meet(void) {
    barrier(CLK_GLOBAL_MEM_FENCE);
}
INLINE void put(local uint *at, uint x) {
    (void)atomic_xchg(at, x);
}
INLINE void put_half(local uint *at, int which, uint half_x) {
    (void)atomic_and(at, 0xffff0000 >> 16 * which);
    (void)atomic_or(at, half_x << 16 * which);
}
INLINE uint take(local uint *at) {
    return atomic_or(at, 0);
}
INLINE uint4 take_four(local uint *at) {
    return (uint4)(take(at), take(at + 1), take(at + 2), take(at + 3));
}
#else
INLINE void meet(void) {
    barrier(CLK_LOCAL_MEM_FENCE);
}
INLINE void put(local uint *at, uint x) {
    *at = x;
}
INLINE void put_half(local uint *at, int which, uint half_x) {
    ((local ushort *)at)[which] = (ushort)half_x;
}
INLINE uint take(local uint *at) {
    return *at;
}
INLINE uint4 take_four(local uint *at) {
    return vload4(0, at);
}
#endif

/* Before KERNEL: how many lanes the compiler is to make a sub-group of. */
#if MMA_NATIVE && (MMA == MMA_XE8 || MMA == MMA_XE16)
#define MMA_KERNEL __attribute__((intel_reqd_sub_group_size(WARP))) KERNEL
INLINE int lane_id(void) {
    return (int)get_sub_group_local_id();
}
INLINE int warp_id(void) {
    return (int)get_sub_group_id();
}
#else
#define MMA_KERNEL KERNEL
INLINE int lane_id(void) {
    return (int)get_local_id(0) % WARP;
}
INLINE int warp_id(void) {
    return (int)get_local_id(0) / WARP;
}
#endif

/* ---- elements ------------------------------------------------------------------------------------------------------ */

INLINE uint two_of(ushort low, ushort high) {
    return (uint)low | (uint)high << 16;
}

#if MMA_NATIVE && MMA == MMA_NVIDIA
#if DTYPE == DTYPE_F16
#define MMA_TYPE "f16"
#else
#define MMA_TYPE "bf16"
#endif
INLINE uint narrow_two(float low, float high) {
    uint two;
    __asm__("cvt.rn." MMA_TYPE "x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}
#else
INLINE uint narrow_two(float low, float high) {
    return two_of(narrow(low), narrow(high));
}
#endif

/* ---- from lane to lane ---------------------------------------------------------------------------------------------- */

/* x of the lane whose number differs by `distance`, a power of two. */
#if MMA_NATIVE && MMA == MMA_NVIDIA
INLINE uint of_lane(local uint *exchange, uint x, int distance) {
    uint y;
    (void)exchange;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(distance));
    return y;
}
#elif MMA_NATIVE && (MMA == MMA_CDNA || MMA == MMA_RDNA3)
INLINE uint of_lane(local uint *exchange, uint x, int distance) {
    (void)exchange;
    return (uint)__builtin_amdgcn_ds_bpermute((lane_id() ^ distance) * 4, (int)x);
}
#else /* Intel's lanes share nothing */
INLINE uint of_lane(local uint *exchange, uint x, int distance) {
    const int own = (int)get_local_id(0);
    meet();
    put(exchange + own, x);
    meet();
    return take(exchange + (own ^ distance));
}
#endif

/* Over the lanes that share a row. */
INLINE float row_max(local uint *exchange, float x) {
    MMA_UNROLL for (int apart = ROW_LANES_APART; apart < ROW_LANES * ROW_LANES_APART; apart *= 2) x =
        fmax(x, as_float(of_lane(exchange, as_uint(x), apart)));
    return x;
}

INLINE float row_sum(local uint *exchange, float x) {
    MMA_UNROLL for (int apart = ROW_LANES_APART; apart < ROW_LANES * ROW_LANES_APART; apart *= 2) x +=
        as_float(of_lane(exchange, as_uint(x), apart));
    return x;
}

/* The rows of a product, of a block of another, narrowed. */
#if MMA == MMA_RDNA3
INLINE void rows_of_block(local uint *exchange, uint *rows, const float *block) {
    const bool second = lane_id() >= 16;
    MMA_UNROLL for (int n = 0; n < 4; n++) {
        const uint own = narrow_two(block[2 * n], block[2 * n + 1]), other = of_lane(exchange, own, 16);
        const uint even = second ? other : own, odd = second ? own : other;
        rows[2 * n] = (even & 0xffff) | odd << 16;
        rows[2 * n + 1] = even >> 16 | (odd & 0xffff0000);
    }
}
#else
INLINE void rows_of_block(local uint *exchange, uint *rows, const float *block) {
    (void)exchange;
    MMA_UNROLL for (int n = 0; n < ROW_UINTS; n++) rows[n] = narrow_two(block[2 * n], block[2 * n + 1]);
}
#endif

/* ---- operands from tiles -------------------------------------------------------------------------------------------- */

/* Elements from one line of a tile to the next: 16 bytes more than it has, so that eight lines lie in different banks. */
#define LINE(extent) ((extent) + 8)

/* Of the elements at `tile`, whose lines are `line` elements apart:
 * load_rows            lines are rows
 * load_columns         lines are columns
 * load_columns_across  lines are depths, each with an element of each column */
#if MMA_NATIVE && MMA == MMA_NVIDIA
INLINE uint local_address(const local void *at) {
    return (uint)(size_t)at;
}

/* Where this lane says that a row of one of four 8 x 8 blocks begins: block n is 8 * (n % 2) lines and 8 * (n / 2) elements on.
 */
INLINE uint own_row(const local ushort *tile, int line) {
    const int lane = lane_id();
    return local_address(tile + (lane % 16) * line + lane / 16 * 8);
}

INLINE void load_blocks(uint *out, const local ushort *tile, int line) {
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(own_row(tile, line))
                     : "memory");
}

INLINE void load_rows(uint *rows, const local ushort *tile, int line) {
    load_blocks(rows, tile, line);
}

INLINE void load_columns(uint *columns, const local ushort *tile, int line) {
    uint blocks[4];
    load_blocks(blocks, tile, line);
    columns[0] = blocks[0];
    columns[1] = blocks[2];
    columns[2] = blocks[1];
    columns[3] = blocks[3];
}

INLINE void load_columns_across(uint *columns, const local ushort *tile, int line) {
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(columns[0]), "=r"(columns[1]), "=r"(columns[2]), "=r"(columns[3])
                     : "r"(own_row(tile, line))
                     : "memory");
}
#else
/* Two elements of a row are neighbours along the depth; of a column too, but in sub-groups of 16. */
INLINE uint neighbours(const local ushort *at) {
    return *(const local uint *)at;
}

INLINE void load_rows(uint *rows, const local ushort *tile, int line) {
    const int l = lane_id();
    MMA_UNROLL for (int n = 0; n < ROW_UINTS; n++) rows[n] =
        neighbours(tile + ROWS_ROW(l, 2 * n) * line + ROWS_DEPTH(l, 2 * n));
}

INLINE ushort column_element(const local ushort *tile, int column_stride, int depth_stride, int e) {
    const int l = lane_id();
    return tile[COLUMNS_COLUMN(l, e) * column_stride + COLUMNS_DEPTH(l, e) * depth_stride];
}

INLINE void load_columns(uint *columns, const local ushort *tile, int line) {
#if MMA == MMA_XE16
    MMA_UNROLL for (int n = 0; n < COLUMN_UINTS; n++) columns[n] =
        two_of(column_element(tile, line, 1, 2 * n), column_element(tile, line, 1, 2 * n + 1));
#else
    const int l = lane_id();
    MMA_UNROLL for (int n = 0; n < COLUMN_UINTS; n++) columns[n] =
        neighbours(tile + COLUMNS_COLUMN(l, 2 * n) * line + COLUMNS_DEPTH(l, 2 * n));
#endif
}

INLINE void load_columns_across(uint *columns, const local ushort *tile, int line) {
    MMA_UNROLL for (int n = 0; n < COLUMN_UINTS; n++) columns[n] =
        two_of(column_element(tile, 1, line, 2 * n), column_element(tile, 1, line, 2 * n + 1));
}
#endif

/* ---- products ------------------------------------------------------------------------------------------------------- */

/* block += rows * columns */
#if MMA_NATIVE && MMA == MMA_NVIDIA
INLINE void multiply_half(float *c, const uint *a, const uint *b) {
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

INLINE void multiply(local uint *exchange, float *block, const uint *rows, const uint *columns) {
    (void)exchange;
    multiply_half(block, rows, columns);
    multiply_half(block + 4, rows, columns + 2);
}
#elif MMA_NATIVE && MMA == MMA_CDNA
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
INLINE void multiply(local uint *exchange, float *block, const uint *rows, const uint *columns) {
    const uint2 a = (uint2)(columns[0], columns[1]), b = (uint2)(rows[0], rows[1]);
    float4 c = (float4)(block[0], block[1], block[2], block[3]);
    (void)exchange;
#if DTYPE == DTYPE_F16
    c = __builtin_amdgcn_mfma_f32_16x16x16f16(as_half4(a), as_half4(b), c, 0, 0, 0);
#else
    c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4(a), as_short4(b), c, 0, 0, 0);
#endif
    block[0] = c.x;
    block[1] = c.y;
    block[2] = c.z;
    block[3] = c.w;
}
#elif MMA_NATIVE
INLINE uint8 eight_uints(const uint *x) {
    return (uint8)(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
}

INLINE float8 eight_floats(const float *x) {
    return (float8)(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
}

INLINE void put_eight_floats(float *x, float8 all) {
    x[0] = all.s0;
    x[1] = all.s1;
    x[2] = all.s2;
    x[3] = all.s3;
    x[4] = all.s4;
    x[5] = all.s5;
    x[6] = all.s6;
    x[7] = all.s7;
}

#if MMA == MMA_RDNA3
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
INLINE void multiply(local uint *exchange, float *block, const uint *rows, const uint *columns) {
    const uint8 a = eight_uints(columns), b = eight_uints(rows);
    const float8 c = eight_floats(block);
    (void)exchange;
#if DTYPE == DTYPE_F16
    put_eight_floats(block, __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16(a), as_half16(b), c));
#else
    put_eight_floats(block, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16(a), as_short16(b), c));
#endif
}
#else
#if DTYPE == DTYPE_F16
#define MATRIX_MAD intel_sub_group_f16_f16_matrix_mad_k16
#else
#define MATRIX_MAD intel_sub_group_bf16_bf16_matrix_mad_k16
#endif
/* Compilers have the functions where the device has the extension; not each declares them. */
#if MMA == MMA_XE8
__attribute__((overloadable)) float8 MATRIX_MAD(int8 a, int8 b, float8 c);
#define EIGHT_COLUMNS(columns, half) as_int8(eight_uints((columns) + 8 * (half)))
#else
__attribute__((overloadable)) float8 MATRIX_MAD(short8 a, int8 b, float8 c);
#define EIGHT_COLUMNS(columns, half)                                                                                           \
    as_short8((uint4)((columns)[4 * (half)], (columns)[4 * (half) + 1], (columns)[4 * (half) + 2], (columns)[4 * (half) + 3]))
#endif
INLINE void multiply(local uint *exchange, float *block, const uint *rows, const uint *columns) {
    const int8 b = as_int8(eight_uints(rows));
    (void)exchange;
    put_eight_floats(block, MATRIX_MAD(EIGHT_COLUMNS(columns, 0), b, eight_floats(block)));
    put_eight_floats(block + 8, MATRIX_MAD(EIGHT_COLUMNS(columns, 1), b, eight_floats(block + 8)));
}
#endif
#else
/* Eight elements. Vectors, because what interprets kernels takes as long for one of them as for a number; not of sixteen, of
 * which oclgrind 21.10 takes the twelfth for unset. */
INLINE float8 take_eight(local uint *at) {
    const ushort8 bits = as_ushort8(take_four(at));
#if DTYPE == DTYPE_F16
    return vload_half8(0, (const half *)&bits);
#else
    return as_float8(convert_uint8(bits) << 16);
#endif
}

INLINE float sum_of_eight(float8 x) {
    const float4 four = x.lo + x.hi;
    return four.x + four.y + (four.z + four.w);
}

/* Elements lie line by line, those of a line along the depth. */
INLINE void put_rows(local uint *operand, const uint *rows) {
    const int l = lane_id();
    MMA_UNROLL for (int n = 0; n < ROW_UINTS; n++) put(operand + ROWS_ROW(l, 2 * n) * 8 + ROWS_DEPTH(l, 2 * n) / 2, rows[n]);
}

INLINE void put_columns(local uint *operand, const uint *columns) {
    const int l = lane_id();
#if MMA == MMA_XE16
    MMA_UNROLL for (int e = 0; e < 2 * COLUMN_UINTS; e++)
        put_half(operand + COLUMNS_COLUMN(l, e) * 8 + COLUMNS_DEPTH(l, e) / 2, COLUMNS_DEPTH(l, e) % 2,
                 columns[e / 2] >> 16 * (e % 2) & 0xffff);
#else
    MMA_UNROLL for (int n = 0; n < COLUMN_UINTS; n++)
        put(operand + COLUMNS_COLUMN(l, 2 * n) * 8 + COLUMNS_DEPTH(l, 2 * n) / 2, columns[n]);
#endif
}

/* Each copy of the operands computes the sums of the lanes that hold it. */
INLINE void multiply(local uint *exchange, float *block, const uint *rows, const uint *columns) {
    const int l = lane_id(), copy = l / (WARP / OPERAND_COPIES);
    local uint *all_rows = exchange + (warp_id() * OPERAND_COPIES + copy) * (OPERAND_ELEMENTS / 2);
    local uint *all_columns = all_rows + 8 * WARP_ROWS;
    meet();
    put_rows(all_rows, rows);
    put_columns(all_columns, columns);
    meet();
    MMA_UNROLL for (int r = 0; r < LANE_ROWS; r++) {
        local uint *row = all_rows + BLOCK_ROW(l, ROW_ELEMENT(r, 0)) * 8;
        const float8 low = take_eight(row), high = take_eight(row + 4);
        MMA_UNROLL for (int n = 0; n < BLOCK / LANE_ROWS; n++) {
            const int e = ROW_ELEMENT(r, n);
            local uint *column = all_columns + BLOCK_COLUMN(l, e) * 8;
            block[e] += sum_of_eight(low * take_eight(column) + high * take_eight(column + 4));
        }
    }
}
#endif

/* ---- copies into tiles ------------------------------------------------------------------------------------------------ */

/* copy_eight          eight elements, both addresses multiples of 16 bytes; there after a wait and a barrier
 * copy_commit         what was copied since the last call is one batch
 * copy_wait_but_one   until all batches but the last are there
 * copy_wait           until all are */
#if MMA_NATIVE && MMA == MMA_NVIDIA
INLINE void copy_eight(local ushort *to, const global ushort *from) {
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(local_address(to)), "l"(from) : "memory");
}
INLINE void copy_commit(void) {
    __asm__ volatile("cp.async.commit_group;" : : : "memory");
}
INLINE void copy_wait_but_one(void) {
    __asm__ volatile("cp.async.wait_group 1;" : : : "memory");
}
INLINE void copy_wait(void) {
    __asm__ volatile("cp.async.wait_group 0;" : : : "memory");
}
#else
INLINE void copy_eight(local ushort *to, const global ushort *from) {
    *(local uint4 *)to = *(const global uint4 *)from;
}
INLINE void copy_commit(void) {}
INLINE void copy_wait_but_one(void) {}
INLINE void copy_wait(void) {}
#endif

/* Eight elements at any address and stride, of which `exist` do; the others become 0. */
INLINE void copy_eight_carefully(local ushort *to, const global ushort *from, i64 stride, i64 exist) {
#pragma unroll 1
    for (int e = 0; e < 8; e++) to[e] = e < exist ? from[e * stride] : (ushort)0;
}

#endif
