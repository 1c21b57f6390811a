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
 * chunk are in flight while this one is multiplied: see `product`. Slots hold elements as they are stored; tiles hold floats.
 *
 * Extents are compile-time constants once the functions are inlined: powers of two or multiples of 64. WORK_GROUP is a power
 * of two.
 */
#ifndef CLATTN_GPU_TILE_H
#define CLATTN_GPU_TILE_H

#include "element.h"

#if !defined(TILE_M) || !defined(TILE_N) || !defined(TILE_K) || !defined(REG_M)
#error "TILE_M, TILE_N, TILE_K and REG_M come from the kernel's row"
#endif
#define ACROSS (WORK_GROUP * REG_M / TILE_M)
#if ACROSS < 1 || ACROSS * TILE_M != WORK_GROUP * REG_M || TILE_N % (4 * ACROSS)
#error "the work-group must cover TILE_M rows, REG_M a work-item, and whole float4 of TILE_N columns"
#endif
#if TILE_M * TILE_K % WORK_GROUP || TILE_N * TILE_K % WORK_GROUP
#error "each work-item moves the same number of a tile's elements"
#endif

/* Floats from one line of a tile to the next, and how many float4 hold `depth` lines. */
#define TILE_LINE(rows) ((rows) + 4)
#define TILE_VECTORS(rows, depth) (TILE_LINE(rows) * (depth) / 4)
/* Elements of a tile that one work-item moves. */
#define TILE_SLOTS(rows, depth) ((rows) * (depth) / WORK_GROUP)
/* float4 of a line of `columns` that one work-item multiplies. */
#define TILE_COLUMNS(columns) ((columns) / 4 / ACROSS)

/* The most of each that a kernel asks for; one with further tiles says so before it includes this. */
#ifndef MOST_SLOTS
#define MOST_SLOTS MAX(TILE_SLOTS(TILE_M, TILE_K), TILE_SLOTS(TILE_N, TILE_K))
#endif
#ifndef MOST_COLUMNS
#define MOST_COLUMNS TILE_COLUMNS(TILE_N)
#endif

/* An operand from the first row of a tile on. Work-items load it side by side along the depth or along the rows, which should
 * be where its stride is 1: one way, known when the kernel is compiled, costs fewer registers than both. Memory may hold the
 * rows in periods: after `period` of them, counted from `first` before this tile's, the address jumps by `jump` more. Or a
 * table says where each row is, which costs no registers for what the rows' addresses have in them. */
typedef struct operand {
    const global element *at;
    i64 row, depth; /* strides */
    i64 rows;       /* that exist from here on */
    bool along_depth;
    i64 first, period, jump; /* first < period */
    bool placed;
    const local i64 *places; /* where placed: of each row, instead of row * its stride */
} operand;

INLINE operand operand_of(const global element *at, i64 row_stride, i64 depth_stride, i64 rows, bool along_depth) {
    const operand plain = {at, row_stride, depth_stride, rows, along_depth, 0, 1, 0, false, 0};
    return plain;
}

INLINE int item_row(void) {
    return (int)get_local_id(0) / ACROSS * REG_M;
}
INLINE int item_column(void) {
    return (int)get_local_id(0) % ACROSS;
}

/* By what is missing, as `left` may be a widened int: see `count` in element.h. */
INLINE int clamp_to_tile(i64 left, int extent) {
    const i64 missing = extent - left;
    return missing > extent ? 0 : missing > 0 ? (int)left : extent;
}

/* Work-items that stand side by side along an extent when tiles move: all, 64, or the largest power of two that divides it. */
INLINE int movers_along(int extent) {
    const int power = extent & -extent;
    const int wanted = power < 64 ? power : 64;
    return wanted < WORK_GROUP ? wanted : WORK_GROUP;
}

/* How work-items walk a slow x fast tile: `movers` of them side by side along the fast extent and `lines` below one another,
 * so that slot n is `per_line` to a line. */
typedef struct walk {
    int movers, lines, per_line, count;
    int mover, line; /* where this work-item begins */
} walk;

INLINE walk walk_of(int slow, int fast) {
    walk w;
    w.movers = movers_along(fast);
    w.lines = WORK_GROUP / w.movers;
    w.per_line = fast / w.movers;
    w.count = TILE_SLOTS(slow, fast);
    w.mover = (int)get_local_id(0) % w.movers;
    w.line = (int)get_local_id(0) / w.movers;
    return w;
}

/* Fill the slots; unless the tile is `whole`, what lies past a limit is 0 and not read. Addresses are stepped, not multiplied
 * out: the offsets of all slots, loop-invariant as they are, would fill the registers. */
INLINE void fetch_walk(element *slots, const global element *from, i64 slow_stride, i64 fast_stride, walk w, bool whole,
                       int slow_limit, int fast_limit) {
    const i64 next_mover = w.movers * fast_stride, next_line = w.lines * slow_stride - (w.per_line - 1) * next_mover;
    const global element *at = from + w.line * slow_stride + w.mover * fast_stride;
    EACH(n, w.count, MOST_SLOTS) {
        const int line = w.line + n / w.per_line * w.lines, mover = w.mover + n % w.per_line * w.movers;
        slots[n] = whole || (line < slow_limit && mover < fast_limit) ? *at : 0;
        at += (n + 1) % w.per_line ? next_mover : next_line;
    }
}

/* How many periods end before row `row`, where row 0 is number `first` of its period. */
INLINE int periods_before(i64 first, i64 period, int row, int rows) {
    const int left = clamp_to_tile(period - first, rows);
    return row < left ? 0 : 1 + (row - left) / clamp_to_tile(period, rows);
}

/* fetch_walk along the depth of an operand whose rows jump. */
INLINE void fetch_jumping(element *slots, operand from, walk w, int rows, int row_limit, int depth_limit) {
    EACH(n, w.count, MOST_SLOTS) {
        const int row = w.line + n / w.per_line * w.lines, k = w.mover + n % w.per_line * w.movers;
        const i64 jumped = periods_before(from.first, from.period, row, rows) * from.jump;
        slots[n] = row < row_limit && k < depth_limit ? from.at[row * from.row + jumped + k * from.depth] : 0;
    }
}

/* fetch_walk along the depth of an operand whose rows are placed one by one. */
INLINE void fetch_placed(element *slots, operand from, walk w, int row_limit, int depth_limit) {
    EACH(n, w.count, MOST_SLOTS) {
        const int row = w.line + n / w.per_line * w.lines, k = w.mover + n % w.per_line * w.movers;
        slots[n] = row < row_limit && k < depth_limit ? from.at[from.places[row] + k * from.depth] : 0;
    }
}

INLINE void store_walk(local float *tile, const element *slots, int slow_stride, int fast_stride, walk w) {
    local float *at = tile + w.line * slow_stride + w.mover * fast_stride;
    EACH(n, w.count, MOST_SLOTS)
    at[n / w.per_line * w.lines * slow_stride + n % w.per_line * w.movers * fast_stride] = widen(slots[n]);
}

/* Load the work-item's share of the tile that begins at depth k; only `depth_left` lines of it exist. */
INLINE void tile_fetch(element *slots, operand from, i64 k, i64 depth_left, int rows, int depth) {
    const int row_limit = clamp_to_tile(from.rows, rows), depth_limit = clamp_to_tile(depth_left, depth);
    const bool whole = row_limit == rows && depth_limit == depth;
    from.at += k * from.depth;
    if (from.placed)
        fetch_placed(slots, from, walk_of(rows, depth), row_limit, depth_limit);
    else if (from.jump != 0 && from.first + rows > from.period)
        fetch_jumping(slots, from, walk_of(rows, depth), rows, row_limit, depth_limit);
    else if (from.along_depth && whole)
        fetch_walk(slots, from.at, from.row, from.depth, walk_of(rows, depth), true, rows, depth);
    else if (from.along_depth)
        fetch_walk(slots, from.at, from.row, from.depth, walk_of(rows, depth), false, row_limit, depth_limit);
    else if (whole)
        fetch_walk(slots, from.at, from.depth, from.row, walk_of(depth, rows), true, depth, rows);
    else
        fetch_walk(slots, from.at, from.depth, from.row, walk_of(depth, rows), false, depth_limit, row_limit);
}

/* Put what tile_fetch loaded of the same operand into the tile. */
INLINE void tile_store(local float4 *tile, const element *slots, operand from, int rows, int depth) {
    if (from.along_depth)
        store_walk((local float *)tile, slots, 1, TILE_LINE(rows), walk_of(rows, depth));
    else
        store_walk((local float *)tile, slots, TILE_LINE(rows), 1, walk_of(depth, rows));
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
    const int vectors = TILE_COLUMNS(columns);
#pragma unroll 4
    for (int k = 0; k < depth; k++) {
        float a_k[REG_M];
        read_rows(a_k, a, k);
        EACH(c, vectors, MOST_COLUMNS) {
            const float4 b_k = b[k * TILE_LINE(columns) / 4 + c * ACROSS + item_column()];
            UNROLL for (int r = 0; r < REG_M; r++) acc[r * vectors + c] += a_k[r] * b_k;
        }
    }
}

INLINE void clear(float4 *acc, int count) {
    EACH(n, count, REG_M * MOST_COLUMNS) acc[n] = 0.0f;
}

/* acc = the work-item's part of the TILE_M x TILE_N product, summed in the order of k. Begins and ends with the tiles free. */
INLINE void product(float4 *acc, local float4 *tile_a, local float4 *tile_b, operand a, operand b, i64 depth) {
    element slots_a[TILE_SLOTS(TILE_M, TILE_K)], slots_b[TILE_SLOTS(TILE_N, TILE_K)];
    clear(acc, REG_M * TILE_COLUMNS(TILE_N));
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

#endif
