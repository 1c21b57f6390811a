/* A tile of a product, TILE_M rows by TILE_N columns, of fragments (mma.h): how operands come into local memory, how they are
 * multiplied, and which sums a work-item then has.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Work-item       a lane of a warp; a warp has WARP_M x WARP_N of the tile, as fragments in registers
 * Local memory    tiles of both operands, TILE_K deep; while one is multiplied the next is on its way
 * Work-group      a warp for each part of WARP_M x WARP_N
 * Layout          a tile's lines lie along the depth or, of columns, across it: as the operand does, so that sixteen bytes are
 *                 copied at a time; fragments are loaded accordingly
 */
#ifndef CLATTN_GPU_MMA_TILE_H
#define CLATTN_GPU_MMA_TILE_H

#include "mma.h"

#if !defined(TILE_M) || !defined(TILE_N) || !defined(TILE_K) || !defined(WARP_M) || !defined(WARP_N)
#error "TILE_M, TILE_N, TILE_K, WARP_M and WARP_N come from the kernel's row"
#endif
#if TILE_M % WARP_M || TILE_N % WARP_N || TILE_M / WARP_M * (TILE_N / WARP_N) != WARPS
#error "the warps must cover the tile"
#endif
#if WARP_M % WARP_ROWS || WARP_N % 16 || TILE_K % 16
#error "fragments are 16 deep; rows go by WARP_ROWS and columns by 16"
#endif
#if TILE_M * TILE_K / 8 % WORK_GROUP || TILE_N * TILE_K / 8 % WORK_GROUP
#error "each work-item copies the same number of eights"
#endif

#define ROW_ELEMENTS (TILE_M * LINE(TILE_K))
#define COLUMN_ELEMENTS(across) ((across) ? TILE_K * LINE(TILE_N) : TILE_N * LINE(TILE_K))
#define EIGHTS(size) ((size)*TILE_K / 8 / WORK_GROUP) /* that a work-item copies of a tile of `size` rows or columns */
#define MOST_EIGHTS EIGHTS(MAX(TILE_M, TILE_N))
#define ROW_BLOCKS (WARP_M / WARP_ROWS)
#define COLUMN_BLOCKS (WARP_N / 16)
#define SUMS (ROW_BLOCKS * COLUMN_BLOCKS * BLOCK)

INLINE int warp_row(void) {
    return warp_id() / (TILE_N / WARP_N) * WARP_M;
}
INLINE int warp_column(void) {
    return warp_id() % (TILE_N / WARP_N) * WARP_N;
}

/* ---- copies ---------------------------------------------------------------------------------------------------------- */

/* How this work-item copies the tiles of an operand that follow one another along the depth: eight elements of a line at a
 * time, of every EIGHT_LINES-th line. */
typedef struct copies {
    const global element *from[MOST_EIGHTS];
    i64 along, step;    /* strides: of a line's elements; from a tile to the next */
    i64 exist;          /* rows or columns, from the tile's first on */
    int size;           /* of the tile */
    bool across, plain; /* lines across the depth; and all exist, aligned to 16 bytes, until the depth ends */
} copies;

/* Of tiles with lines of `extent`: this work-item's first line, its eight of each, and from one of its lines to the next. */
#define EIGHT_LINE(extent) ((int)get_local_id(0) / ((extent) / 8))
#define EIGHT_AT(extent) ((int)get_local_id(0) % ((extent) / 8) * 8)
#define EIGHT_LINES(extent) (WORK_GROUP / ((extent) / 8))

/* Of an operand whose tile begins at `at`, with strides from line to line and along a line. */
INLINE copies copies_of(const global element *at, i64 line, i64 along, i64 exist, int size, bool across) {
    copies c;
    const int extent = across ? size : TILE_K;
    EACH(n, EIGHTS(size), MOST_EIGHTS)
    c.from[n] = at + (EIGHT_LINE(extent) + n * EIGHT_LINES(extent)) * line + EIGHT_AT(extent) * along;
    c.along = along;
    c.step = TILE_K * (across ? line : along);
    c.exist = exist;
    c.size = size;
    c.across = across;
    c.plain = exist >= size && along == 1 && line % 8 == 0 && ((size_t)at & 15) == 0;
    return c;
}

INLINE local ushort *eight_place(local ushort *tile, int n, int extent) {
    return tile + (EIGHT_LINE(extent) + n * EIGHT_LINES(extent)) * LINE(extent) + EIGHT_AT(extent);
}

/* Begin to copy the next tile, of which `depth` exists from here on. */
INLINE void copy_next(copies *c, local ushort *tile, i64 depth) {
    const int extent = c->across ? c->size : TILE_K;
    if (c->plain && depth >= TILE_K) {
        EACH(n, EIGHTS(c->size), MOST_EIGHTS) copy_eight(eight_place(tile, n, extent), c->from[n]);
    } else {
        const i64 lines = c->across ? depth : c->exist, elements = c->across ? c->exist : depth;
        EACH(n, EIGHTS(c->size), MOST_EIGHTS) {
            const bool exists = EIGHT_LINE(extent) + n * EIGHT_LINES(extent) < lines;
            copy_eight_carefully(eight_place(tile, n, extent), c->from[n], c->along, exists ? elements - EIGHT_AT(extent) : 0);
        }
    }
    EACH(n, EIGHTS(c->size), MOST_EIGHTS) c->from[n] += c->step;
}

/* ---- products -------------------------------------------------------------------------------------------------------- */

/* acc += the warp's part of one tile's product. */
INLINE void multiply_tile(local uint *exchange, float *acc, const local ushort *rows, const local ushort *columns,
                          bool across) {
    MMA_UNROLL for (int k = 0; k < TILE_K; k += 16) {
        uint row_fragments[ROW_BLOCKS * ROW_UINTS];
        MMA_UNROLL for (int r = 0; r < ROW_BLOCKS; r++)
            load_rows(row_fragments + ROW_UINTS * r, rows + (warp_row() + WARP_ROWS * r) * LINE(TILE_K) + k, LINE(TILE_K));
        MMA_UNROLL for (int c = 0; c < COLUMN_BLOCKS; c++) {
            const int column = warp_column() + 16 * c;
            uint fragment[COLUMN_UINTS];
            if (across)
                load_columns_across(fragment, columns + k * LINE(TILE_N) + column, LINE(TILE_N));
            else
                load_columns(fragment, columns + column * LINE(TILE_K) + k, LINE(TILE_K));
            MMA_UNROLL for (int r = 0; r < ROW_BLOCKS; r++)
                multiply(exchange, acc + BLOCK * (r * COLUMN_BLOCKS + c), row_fragments + ROW_UINTS * r, fragment);
        }
    }
}

INLINE void clear_sums(float *acc) {
    MMA_UNROLL for (int e = 0; e < SUMS; e++) acc[e] = 0.0f;
}

/* acc = the warp's part of a product of two operands, by way of two tiles of each. Begins and ends with the tiles free. */
INLINE void multiply_all(local uint *exchange, float *acc, local ushort *tile_rows, local ushort *tile_columns, copies rows,
                         copies columns, i64 depth) {
    const int next = COLUMN_ELEMENTS(columns.across);
    int turn = 0;
    clear_sums(acc);
    for (i64 k = -TILE_K; k < depth; k += TILE_K) {
        const int other = 1 - turn;
        if (k + TILE_K < depth) {
            copy_next(&rows, tile_rows + other * ROW_ELEMENTS, depth - k - TILE_K);
            copy_next(&columns, tile_columns + other * next, depth - k - TILE_K);
        }
        copy_commit();
        if (k >= 0) {
            copy_wait_but_one();
            barrier(CLK_LOCAL_MEM_FENCE);
            multiply_tile(exchange, acc, tile_rows + turn * ROW_ELEMENTS, tile_columns + turn * next, columns.across);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        turn = other;
    }
}

/* ---- sums ------------------------------------------------------------------------------------------------------------ */

/* A work-item has sums of SUM_ROWS rows, in SUM_COLUMNS columns of each. Of its r-th row and the n-th column of that: where in
 * the tile they are, and which of its sums is there. */
#define EACH_ROW (BLOCK / LANE_ROWS) /* sums of one row in one block */
#define SUM_ROWS (ROW_BLOCKS * LANE_ROWS)
#define SUM_COLUMNS (COLUMN_BLOCKS * EACH_ROW)

INLINE int sum_row(int r) {
    return warp_row() + r / LANE_ROWS * WARP_ROWS + BLOCK_ROW(lane_id(), ROW_ELEMENT(r % LANE_ROWS, 0));
}
INLINE int sum_column(int r, int n) {
    (void)r; /* most layouts have one row a lane */
    return warp_column() + n / EACH_ROW * 16 + BLOCK_COLUMN(lane_id(), ROW_ELEMENT(r % LANE_ROWS, n % EACH_ROW));
}
INLINE int sum_index(int r, int n) {
    return (r / LANE_ROWS * COLUMN_BLOCKS + n / EACH_ROW) * BLOCK + ROW_ELEMENT(r % LANE_ROWS, n % EACH_ROW);
}

#endif
