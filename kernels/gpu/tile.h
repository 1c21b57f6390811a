/* Matrix products on tiles in local memory: what project, scores, weighted_values and attention have in common.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * C[m][n] = sum over k of A[m][k] B[n][k]. The work-group owns TILE_M rows of C and some number of columns, and walks the depth
 * k in chunks. Of each chunk it keeps one tile of each operand in local memory, depth-major: tile[k][row], so that a work-item
 * reads its rows of A and its columns of B as float4. Lines are padded by four floats, which keeps float4 aligned and
 * spreads a line's neighbours over the banks.
 *
 * Work-items stand ACROSS side by side over the columns, and WORK_GROUP / ACROSS one below the other; each owns REG_M
 * adjacent rows and, in registers, every ACROSS-th float4 of their columns.
 *
 * A tile goes from global to local memory in two moves, global -> registers (`slots`) -> tile, so that the loads of the next
 * chunk are in flight while this one is multiplied: see `product`.
 *
 * Extents are compile-time constants once the functions are inlined: powers of two or multiples of 64. WORK_GROUP is a power
 * of two.
 */
#ifndef CLATTN_GPU_TILE_H
#define CLATTN_GPU_TILE_H

#include "../params.h"
#include "work_group.h"

#if !defined(TILE_M) || !defined(TILE_N) || !defined(TILE_K) || !defined(REG_M)
#error "TILE_M, TILE_N, TILE_K and REG_M come from the kernel's row"
#endif
#define ACROSS (WORK_GROUP * REG_M / TILE_M)
#if ACROSS < 1 || ACROSS * TILE_M != WORK_GROUP * REG_M || TILE_N % (4 * ACROSS)
#error "the work-group must cover TILE_M rows, REG_M a work-item, and whole float4 of TILE_N columns"
#endif

/* Floats from one line of a tile to the next, and how many float4 hold `depth` lines. */
#define TILE_LINE(rows) ((rows) + 4)
#define TILE_VECTORS(rows, depth) (TILE_LINE(rows) * (depth) / 4)
/* Elements of a tile that one work-item moves. */
#define TILE_SLOTS(rows, depth) ((rows) * (depth) / WORK_GROUP)

/* An operand from the first row of a tile on. Memory may hold its rows in periods: after `period` of them, counted from
 * `first` before this tile's, the address jumps by `jump` more. */
typedef struct operand {
    const global float *at;
    i64 row, depth; /* strides */
    i64 rows;       /* that exist from here on */
    i64 first, period, jump;
} operand;

INLINE operand operand_of(const global float *at, i64 row_stride, i64 depth_stride, i64 rows) {
    const operand plain = {at, row_stride, depth_stride, rows, 0, 1, 0};
    return plain;
}

INLINE int item_row(void) { return (int)get_local_id(0) / ACROSS * REG_M; }
INLINE int item_column(void) { return (int)get_local_id(0) % ACROSS; }

INLINE int clamp_to_tile(i64 left, int extent) { return left < 0 ? 0 : left < extent ? (int)left : extent; }

/* Work-items that stand side by side along an extent when tiles move: all, 64, or the largest power of two that divides it. */
INLINE int movers_along(int extent) {
    const int power = extent & -extent;
    const int wanted = power < 64 ? power : 64;
    return wanted < WORK_GROUP ? wanted : WORK_GROUP;
}

/* The work-item's share of a slow x fast tile that lies whole in memory. */
INLINE void fetch_whole(float *slots, const global float *from, i64 slow_stride, i64 fast_stride, int slow, int fast) {
    const int movers = movers_along(fast), lines = WORK_GROUP / movers, item = (int)get_local_id(0);
    const global float *at = from + item / movers * slow_stride + item % movers * fast_stride;
    UNROLL for (int s = 0; s < slow; s += lines) {
        UNROLL for (int f = 0; f < fast; f += movers) *slots++ = at[s * slow_stride + f * fast_stride];
    }
}

/* The same at an edge, or where rows jump: what does not exist is 0 and not read. */
INLINE void fetch_edge(float *slots, operand from, int rows, int depth, int depth_limit, bool along_depth) {
    const int fast = along_depth ? depth : rows, slow = along_depth ? rows : depth;
    const int movers = movers_along(fast), lines = WORK_GROUP / movers, item = (int)get_local_id(0);
    UNROLL for (int s = 0; s < slow; s += lines) {
        UNROLL for (int f = 0; f < fast; f += movers) {
            const int row = along_depth ? s + item / movers : f + item % movers;
            const int k = along_depth ? f + item % movers : s + item / movers;
            float value = 0.0f;
            if (row < from.rows && k < depth_limit) {
                const i64 jumps = from.jump ? (from.first + row) / from.period : 0;
                value = from.at[row * from.row + k * from.depth + jumps * from.jump];
            }
            *slots++ = value;
        }
    }
}

/* Work-items stand along the smaller stride: packed memory is read in whole lines whichever way the matrix lies. */
INLINE bool along_depth(operand matrix) { return matrix.depth <= matrix.row; }

/* Load the work-item's share of the tile that begins at depth k; only `depth_left` lines of it exist. */
INLINE void tile_fetch(float *slots, operand from, i64 k, i64 depth_left, int rows, int depth) {
    const bool whole = from.rows >= rows && depth_left >= depth && (from.jump == 0 || from.first + rows <= from.period);
    from.at += k * from.depth;
    if (along_depth(from)) {
        if (whole)
            fetch_whole(slots, from.at, from.row, from.depth, rows, depth);
        else
            fetch_edge(slots, from, rows, depth, clamp_to_tile(depth_left, depth), true);
    } else {
        if (whole)
            fetch_whole(slots, from.at, from.depth, from.row, depth, rows);
        else
            fetch_edge(slots, from, rows, depth, clamp_to_tile(depth_left, depth), false);
    }
}

INLINE void store_walk(local float *tile, const float *slots, int slow_stride, int fast_stride, int slow, int fast) {
    const int movers = movers_along(fast), lines = WORK_GROUP / movers, item = (int)get_local_id(0);
    local float *at = tile + item / movers * slow_stride + item % movers * fast_stride;
    UNROLL for (int s = 0; s < slow; s += lines) {
        UNROLL for (int f = 0; f < fast; f += movers) at[s * slow_stride + f * fast_stride] = *slots++;
    }
}

/* Put what tile_fetch loaded of the same operand into the tile. */
INLINE void tile_store(local float4 *tile, const float *slots, operand from, int rows, int depth) {
    if (along_depth(from))
        store_walk((local float *)tile, slots, 1, TILE_LINE(rows), rows, depth);
    else
        store_walk((local float *)tile, slots, TILE_LINE(rows), 1, depth, rows);
}

/* The work-item's REG_M rows of line k of A's tile. */
INLINE void read_rows(float *rows, const local float4 *tile, int k) {
    const local float *line = (const local float *)tile + k * TILE_LINE(TILE_M) + item_row();
#if REG_M % 4 == 0
    UNROLL for (int r = 0; r < REG_M; r += 4) {
        const float4 four = *(const local float4 *)(line + r);
        rows[r] = four.x;
        rows[r + 1] = four.y;
        rows[r + 2] = four.z;
        rows[r + 3] = four.w;
    }
#else
    UNROLL for (int r = 0; r < REG_M; r++) rows[r] = line[r];
#endif
}

/* acc[r][c] += sum over k < depth of A[k][row r] * B[k][column float4 c], in the order of k. */
INLINE void tile_multiply(float4 *acc, const local float4 *a, const local float4 *b, int columns, int depth) {
    const int vectors = columns / 4 / ACROSS;
#pragma unroll 4
    for (int k = 0; k < depth; k++) {
        float a_k[REG_M];
        read_rows(a_k, a, k);
        UNROLL for (int c = 0; c < vectors; c++) {
            const float4 b_k = b[k * TILE_LINE(columns) / 4 + c * ACROSS + item_column()];
            UNROLL for (int r = 0; r < REG_M; r++) acc[r * vectors + c] += a_k[r] * b_k;
        }
    }
}

/* tile_multiply where row r ends before k = live[r]. A dead product is left out, not multiplied by 0: B may be NaN there. */
INLINE void tile_multiply_live(float4 *acc, const local float4 *a, const local float4 *b, int columns, int depth,
                               const int *live) {
    const int vectors = columns / 4 / ACROSS;
    for (int k = 0; k < depth; k++) {
        float a_k[REG_M];
        read_rows(a_k, a, k);
        UNROLL for (int c = 0; c < vectors; c++) {
            const float4 b_k = b[k * TILE_LINE(columns) / 4 + c * ACROSS + item_column()];
            UNROLL for (int r = 0; r < REG_M; r++)
                if (k < live[r]) acc[r * vectors + c] += a_k[r] * b_k;
        }
    }
}

INLINE void clear(float4 *acc, int count) {
    UNROLL for (int n = 0; n < count; n++) acc[n] = 0.0f;
}

/* acc = the work-item's part of the TILE_M x TILE_N product, summed in the order of k. Begins with the tiles free, and ends so. */
INLINE void product(float4 *acc, local float4 *tile_a, local float4 *tile_b, operand a, operand b, i64 depth) {
    float slots_a[TILE_SLOTS(TILE_M, TILE_K)], slots_b[TILE_SLOTS(TILE_N, TILE_K)];
    clear(acc, REG_M * TILE_N / 4 / ACROSS);
    for (i64 k = 0; k < depth + TILE_K; k += TILE_K) {
        const bool more = k < depth;
        if (more) {
            tile_fetch(slots_a, a, k, depth - k, TILE_M, TILE_K);
            tile_fetch(slots_b, b, k, depth - k, TILE_N, TILE_K);
        }
        if (k > 0) tile_multiply(acc, tile_a, tile_b, TILE_N, TILE_K);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (more) {
            tile_store(tile_a, slots_a, a, TILE_M, TILE_K);
            tile_store(tile_b, slots_b, b, TILE_N, TILE_K);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* to[0], to[stride], ...: the first `count` of four; one store where memory allows it. */
INLINE void write_vector(global float *to, i64 stride, float4 value, i64 count) {
    if (count >= 4 && stride == 1 && ((size_t)to & 15) == 0) {
        *(global float4 *)to = value;
        return;
    }
    if (count > 0) to[0] = value.x;
    if (count > 1) to[stride] = value.y;
    if (count > 2) to[2 * stride] = value.z;
    if (count > 3) to[3 * stride] = value.w;
}

#endif
