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
 * Whole tiles of aligned rows are loaded by vectors of up to four elements; others, and those of other strides, one by one.
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

/* Lines of a tile a turn of the loop that multiplies: more where an item has few rows, since a line is few multiply-adds there,
 * but fewer than there are, or the loop that compilers keep loads together by is gone. */
#define LINES_A_TURN(depth) (REG_M <= 2 || (depth) <= 32 / REG_M ? ((depth) + 1) / 2 : 16 / REG_M)
#define MOST_LINES_A_TURN 16

/* The most of each that a kernel asks for; one with further tiles says so before it includes this. */
#ifndef MOST_SLOTS
#define MOST_SLOTS MAX(TILE_SLOTS(TILE_M, TILE_K), TILE_SLOTS(TILE_N, TILE_K))
#endif
#ifndef MOST_COLUMNS
#define MOST_COLUMNS TILE_COLUMNS(TILE_N)
#endif

/* By what is missing, as `left` may be a widened int: see `count` in element.h. */
INLINE int clamp_to_tile(i64 left, int extent) {
    const i64 missing = extent - left;
    return missing > extent ? 0 : missing > 0 ? (int)left : extent;
}

/* More than any tile has. */
#define MANY_ROWS (1 << 20)

/* An operand from the first row of a tile on. Work-items load it side by side along the depth or along the rows, which should
 * be where its stride is 1: one way, known when the kernel is compiled, costs fewer registers than both. Memory may hold the
 * rows in periods: after `period` of them, counted from `first` before this tile's, the address jumps by `jump` more. Or a
 * table says where each row is, which costs no registers for what the rows' addresses have in them. */
typedef struct operand {
    const global element *at;
    i64 row, depth; /* strides */
    int rows;       /* that exist from here on, or MANY_ROWS */
    bool along_depth;
    bool aligned;            /* loaded along stride 1, every line at a multiple of four elements */
    i64 first, period, jump; /* first < period */
    bool placed;
    const local i64 *places; /* where placed: of each row, instead of row * its stride */
} operand;

INLINE operand operand_of(const global element *at, i64 row_stride, i64 depth_stride, i64 rows, bool along_depth) {
    const i64 line = along_depth ? row_stride : depth_stride, step = along_depth ? depth_stride : row_stride;
    const bool aligned = step == 1 && line % 4 == 0 && (size_t)at % sizeof(element4) == 0;
    const int exist = clamp_to_tile(rows, MANY_ROWS);
    const operand plain = {at, row_stride, depth_stride, exist, along_depth, aligned, 0, 1, 0, false, 0};
    return plain;
}

INLINE int item_row(void) {
    return (int)get_local_id(0) / ACROSS * REG_M;
}
INLINE int item_column(void) {
    return (int)get_local_id(0) % ACROSS;
}

/* Work-items that stand side by side along an extent when tiles move: all, 64, or the largest power of two that divides it. */
INLINE int movers_along(int extent) {
    const int power = extent & -extent;
    const int wanted = power < 64 ? power : 64;
    return wanted < WORK_GROUP ? wanted : WORK_GROUP;
}

INLINE bool moves_in_runs(int slow, int fast, int run) {
    return TILE_SLOTS(slow, fast) % run == 0 && fast % run == 0 && slow % (WORK_GROUP / movers_along(fast / run)) == 0;
}

/* How work-items walk a slow x fast tile: each moves runs of neighbours along the fast extent, `movers` items side by side and
 * `lines` below one another, so that `per_line` of an item's runs are in a line. */
typedef struct walk {
    int run, movers, lines, per_line, count; /* slots of a run; ...; runs of an item */
    int place, line;                         /* where this work-item begins */
} walk;

INLINE walk walk_of(int slow, int fast) {
    walk w;
    w.run = moves_in_runs(slow, fast, 4) ? 4 : moves_in_runs(slow, fast, 2) ? 2 : 1;
    w.movers = movers_along(fast / w.run);
    w.lines = WORK_GROUP / w.movers;
    w.per_line = fast / w.run / w.movers;
    w.count = TILE_SLOTS(slow, fast) / w.run;
    w.place = (int)get_local_id(0) % w.movers * w.run;
    w.line = (int)get_local_id(0) / w.movers;
    return w;
}

/* Line of run n, and its first place in that line. */
INLINE int line_of(walk w, int n) {
    return w.line + n / w.per_line * w.lines;
}
INLINE int place_of(walk w, int n) {
    return w.place + n % w.per_line * w.movers * w.run;
}

INLINE void load_run(element *slots, const global element *at, int run) {
    if (run == 4) {
        const element4 four = *(const global element4 *)at;
        slots[0] = four.x;
        slots[1] = four.y;
        slots[2] = four.z;
        slots[3] = four.w;
    } else if (run == 2) {
        const element2 two = *(const global element2 *)at;
        slots[0] = two.x;
        slots[1] = two.y;
    } else {
        slots[0] = *at;
    }
}

/* Fill the slots, by vectors where `vectors` says that the tile is whole, unit-strided and aligned; else what lies past a limit
 * is 0 and not read. Addresses are stepped, not multiplied out: the offsets of all slots, loop-invariant as they are, would
 * fill the registers. */
INLINE void fetch_walk(element *slots, const global element *from, i64 slow_stride, i64 fast_stride, walk w, bool vectors,
                       int slow_limit, int fast_limit) {
    const i64 next_run = w.movers * w.run * fast_stride, next_line = w.lines * slow_stride - (w.per_line - 1) * next_run;
    const global element *at = from + w.line * slow_stride + w.place * fast_stride;
    EACH(n, w.count, MOST_SLOTS) {
        if (vectors) {
            load_run(slots + n * w.run, at, w.run);
        } else {
            const int left = line_of(w, n) < slow_limit ? fast_limit - place_of(w, n) : 0;
            const global element *each = at;
            EACH(e, w.run, 4) {
                slots[n * w.run + e] = e < left ? *each : 0;
                each += fast_stride;
            }
        }
        at += (n + 1) % w.per_line ? next_run : next_line;
    }
}

/* How many periods end before row `row`, where row 0 is number `first` of its period. */
INLINE int periods_before(i64 first, i64 period, int row, int rows) {
    const int left = clamp_to_tile(period - first, rows);
    return row < left ? 0 : 1 + (row - left) / clamp_to_tile(period, rows);
}

/* fetch_walk along the depth of an operand whose rows jump. */
INLINE void fetch_jumping(element *slots, operand from, walk w, int rows, int row_limit, int depth_limit) {
    EACH(n, w.count * w.run, MOST_SLOTS) {
        const int row = line_of(w, n / w.run), k = place_of(w, n / w.run) + n % w.run;
        const i64 jumped = periods_before(from.first, from.period, row, rows) * from.jump;
        slots[n] = row < row_limit && k < depth_limit ? from.at[row * from.row + jumped + k * from.depth] : 0;
    }
}

/* fetch_walk along the depth of an operand whose rows are placed one by one. */
INLINE void fetch_placed(element *slots, operand from, walk w, int row_limit, int depth_limit) {
    EACH(n, w.count * w.run, MOST_SLOTS) {
        const int row = line_of(w, n / w.run), k = place_of(w, n / w.run) + n % w.run;
        slots[n] = row < row_limit && k < depth_limit ? from.at[from.places[row] + k * from.depth] : 0;
    }
}

INLINE void store_run(local float *at, const element *slots, int stride, int run) {
    if (run == 4 && stride == 1)
        *(local float4 *)at = (float4)(widen(slots[0]), widen(slots[1]), widen(slots[2]), widen(slots[3]));
    else if (run == 2 && stride == 1)
        *(local float2 *)at = (float2)(widen(slots[0]), widen(slots[1]));
    else
        EACH(e, run, 4) at[e * stride] = widen(slots[e]);
}

INLINE void store_walk(local float *tile, const element *slots, int slow_stride, int fast_stride, walk w) {
    local float *at = tile + w.line * slow_stride + w.place * fast_stride;
    EACH(n, w.count, MOST_SLOTS)
    store_run(at + n / w.per_line * w.lines * slow_stride + n % w.per_line * w.movers * w.run * fast_stride, slots + n * w.run,
              fast_stride, w.run);
}

/* Load the work-item's share of the tile that begins at depth k; only `depth_left` lines of it exist. */
INLINE void tile_fetch(element *slots, operand from, i64 k, i64 depth_left, int rows, int depth) {
    const int row_limit = clamp_to_tile(from.rows, rows), depth_limit = clamp_to_tile(depth_left, depth);
    const bool vectors = from.aligned && row_limit == rows && depth_limit == depth;
    from.at += k * from.depth;
    if (from.placed)
        fetch_placed(slots, from, walk_of(rows, depth), row_limit, depth_limit);
    else if (from.jump != 0 && from.first + rows > from.period)
        fetch_jumping(slots, from, walk_of(rows, depth), rows, row_limit, depth_limit);
    else if (from.along_depth && vectors)
        fetch_walk(slots, from.at, from.row, 1, walk_of(rows, depth), true, rows, depth);
    else if (from.along_depth)
        fetch_walk(slots, from.at, from.row, from.depth, walk_of(rows, depth), false, row_limit, depth_limit);
    else if (vectors)
        fetch_walk(slots, from.at, from.depth, 1, walk_of(depth, rows), true, depth, rows);
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

/* acc[r][c] += sum over k < depth of A[k][row r] * B[k][column float4 c], in the order of k. The line of B is stepped: an index
 * that is multiplied out costs two instructions a line. */
INLINE void tile_multiply(float4 *acc, const local float4 *a, const local float4 *b, int columns, int depth) {
    const int vectors = TILE_COLUMNS(columns);
    const local float4 *line = b + item_column();
    const int turn = LINES_A_TURN(depth);
#pragma unroll 1
    for (int k = 0; k < depth; k += turn) {
        EACH(n, turn, MOST_LINES_A_TURN) {
            float a_k[REG_M];
            read_rows(a_k, a, k + n);
            EACH(c, vectors, MOST_COLUMNS) {
                const float4 b_k = line[c * ACROSS];
                UNROLL for (int r = 0; r < REG_M; r++) acc[r * vectors + c] += a_k[r] * b_k;
            }
            line += TILE_LINE(columns) / 4;
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
