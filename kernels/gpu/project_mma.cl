/* The contract of project.cl, for f16 and bf16 on matrix units: products of fragments (mma.h) in place of tiles of floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Group           one TILE_M x TILE_N tile of the batch * len by columns matrix; tiles of a row of tiles follow one another
 * Work-item       a lane of a warp; a warp has WARP_M x WARP_N of the tile, as fragments in registers
 * Local memory    two tiles of x and two of w, TILE_K deep: while one of each is multiplied the next is on its way
 * Work-group      a warp for each part of WARP_M x WARP_N
 * Layout of w     its tile lies as w does, along the columns or along the depth (a weight stored as outputs by inputs), so that
 *                 sixteen bytes are copied at a time either way; fragments are loaded accordingly
 * Sums            f32, bias and residual added, rounded once
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
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

#define X_ELEMENTS (TILE_M * LINE(TILE_K))
#define W_ELEMENTS MAX(TILE_K * LINE(TILE_N), TILE_N * LINE(TILE_K))
#define X_COPIES (TILE_M * TILE_K / 8 / WORK_GROUP)
#define W_COPIES (TILE_N * TILE_K / 8 / WORK_GROUP)
#define MOST_COPIES MAX(X_COPIES, W_COPIES)
#define ROW_BLOCKS (WARP_M / WARP_ROWS)
#define COLUMN_BLOCKS (WARP_N / 16)
#define SUMS (ROW_BLOCKS * COLUMN_BLOCKS * BLOCK)

INLINE int warp_row(void) { return warp_id() / (TILE_N / WARP_N) * WARP_M; }
INLINE int warp_column(void) { return warp_id() % (TILE_N / WARP_N) * WARP_N; }

/* How this work-item copies the tiles of an operand that follow one another along the depth: eight elements of a line at a time, of
 * every COPY_LINES-th line. A line lies along the depth, or across it. */
typedef struct copies {
    const global element *from[MOST_COPIES];
    i64 along, step;    /* strides: of a line's elements; from a tile to the next */
    i64 exist;          /* rows of x or columns of w, from the tile's first on */
    bool across, plain; /* plain: all exist, aligned to 16 bytes, until the depth ends */
} copies;

/* Of tiles with lines of `extent`: this work-item's first line, its eight of each, and from one of its lines to the next. */
#define COPY_LINE(extent) ((int)get_local_id(0) / ((extent) / 8))
#define COPY_AT(extent) ((int)get_local_id(0) % ((extent) / 8) * 8)
#define COPY_LINES(extent) (WORK_GROUP / ((extent) / 8))

INLINE bool is_plain(const global element *from, i64 line, i64 along, i64 step) {
    return along == 1 && line % 8 == 0 && step % 8 == 0 && ((size_t)from & 15) == 0;
}

/* Row m of the flattened batch is row m % len of member m / len. */
INLINE copies copies_of_x(const project_params *p, const global element *x, i64 m) {
    copies c;
    UNROLL for (int n = 0; n < X_COPIES; n++) {
        const i64 row = m + COPY_LINE(TILE_K) + n * COPY_LINES(TILE_K);
        c.from[n] = x + row / p->len * p->x.b + row % p->len * p->x.l + COPY_AT(TILE_K) * p->x.d;
    }
    c.along = p->x.d;
    c.step = TILE_K * p->x.d;
    c.exist = p->batch * p->len - m;
    c.across = false;
    c.plain = c.exist >= TILE_M && is_plain(x, p->x.l, c.along, c.step) && (p->batch == 1 || p->x.b % 8 == 0);
    return c;
}

/* A line of the tile is a row of w, where its columns are neighbours; else a column. */
INLINE copies copies_of_w(const project_params *p, const global element *w, i64 column, bool across) {
    copies c;
    const int extent = across ? TILE_N : TILE_K;
    const i64 line = across ? p->w.l : p->w.d;
    c.along = across ? p->w.d : p->w.l;
    c.step = TILE_K * p->w.l;
    w += column * p->w.d;
    UNROLL for (int n = 0; n < W_COPIES; n++)
        c.from[n] = w + (COPY_LINE(extent) + n * COPY_LINES(extent)) * line + COPY_AT(extent) * c.along;
    c.exist = p->columns - column;
    c.across = across;
    c.plain = c.exist >= TILE_N && is_plain(w, line, c.along, c.step);
    return c;
}

INLINE local ushort *copy_place(local ushort *tile, int n, int extent) {
    return tile + (COPY_LINE(extent) + n * COPY_LINES(extent)) * LINE(extent) + COPY_AT(extent);
}

/* Begin to copy the next tile, of which `depth` exists from here on. */
INLINE void copy_next(copies *c, int count, int extent, local ushort *tile, i64 depth) {
    if (c->plain && depth >= TILE_K) {
        EACH(n, count, MOST_COPIES) copy_eight(copy_place(tile, n, extent), c->from[n]);
    } else {
        const i64 lines = c->across ? depth : c->exist, elements = c->across ? c->exist : depth;
        EACH(n, count, MOST_COPIES) {
            const bool exists = COPY_LINE(extent) + n * COPY_LINES(extent) < lines;
            copy_eight_carefully(copy_place(tile, n, extent), c->from[n], c->along, exists ? elements - COPY_AT(extent) : 0);
        }
    }
    EACH(n, count, MOST_COPIES) c->from[n] += c->step;
}

/* acc += the warp's part of one tile's product. */
INLINE void multiply_tile(local uint *exchange, float *acc, const local ushort *tile_x, const local ushort *tile_w, bool by_lines) {
    MMA_UNROLL for (int k = 0; k < TILE_K; k += 16) {
        uint rows[ROW_BLOCKS * ROW_UINTS];
        MMA_UNROLL for (int r = 0; r < ROW_BLOCKS; r++)
            load_rows(rows + ROW_UINTS * r, tile_x + (warp_row() + WARP_ROWS * r) * LINE(TILE_K) + k, LINE(TILE_K));
        MMA_UNROLL for (int c = 0; c < COLUMN_BLOCKS; c++) {
            const int column = warp_column() + 16 * c;
            uint columns[COLUMN_UINTS];
            if (by_lines)
                load_columns_across(columns, tile_w + k * LINE(TILE_N) + column, LINE(TILE_N));
            else
                load_columns(columns, tile_w + column * LINE(TILE_K) + k, LINE(TILE_K));
            MMA_UNROLL for (int r = 0; r < ROW_BLOCKS; r++)
                multiply(exchange, acc + BLOCK * (r * COLUMN_BLOCKS + c), rows + ROW_UINTS * r, columns);
        }
    }
}

/* acc = the warp's part of the tile at row m, column n. Begins and ends with the tiles free. */
INLINE void multiply_all(local uint *exchange, float *acc, local ushort *tile_x, local ushort *tile_w, const project_params *p,
                     const global element *x, const global element *w, i64 m, i64 n, bool by_lines) {
    copies of_x = copies_of_x(p, x, m), of_w = copies_of_w(p, w, n, by_lines);
    MMA_UNROLL for (int e = 0; e < SUMS; e++) acc[e] = 0.0f;
    int turn = 0;
    for (i64 k = -TILE_K; k < p->depth; k += TILE_K) {
        const int other = 1 - turn;
        if (k + TILE_K < p->depth) {
            copy_next(&of_x, X_COPIES, TILE_K, tile_x + other * X_ELEMENTS, p->depth - k - TILE_K);
            copy_next(&of_w, W_COPIES, by_lines ? TILE_N : TILE_K, tile_w + other * W_ELEMENTS, p->depth - k - TILE_K);
        }
        copy_commit();
        if (k >= 0) {
            copy_wait_but_one();
            barrier(CLK_LOCAL_MEM_FENCE);
            multiply_tile(exchange, acc, tile_x + turn * X_ELEMENTS, tile_w + turn * W_ELEMENTS, by_lines);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        turn = other;
    }
}

/* Bias and residual added, and to its place. */
INLINE void write_element(const project_params *p, const global element *bias, const global element *residual, global element *y,
                          i64 b, i64 l, i64 column, float value) {
    if (p->has_bias) value += widen(bias[column * p->bias_stride]);
    if (p->has_residual) value += widen(residual[b * p->residual.b + l * p->residual.l + column * p->residual.d]);
    y[b * p->y.b + column / p->dim * p->y.h + l * p->y.l + column % p->dim * p->y.d] = (element)narrow_two(value, 0.0f);
}

INLINE void write_tile(const project_params *p, const global element *bias, const global element *residual, global element *y,
                       i64 m, i64 n, const float *acc) {
    MMA_UNROLL for (int r = 0; r < ROW_BLOCKS * LANE_ROWS; r++) {
        const i64 row = m + warp_row() + r / LANE_ROWS * WARP_ROWS + BLOCK_ROW(lane_id(), ROW_ELEMENT(r % LANE_ROWS, 0));
        const i64 b = row / p->len, l = row % p->len;
        if (b >= p->batch) continue;
        MMA_UNROLL for (int c = 0; c < COLUMN_BLOCKS; c++) {
            MMA_UNROLL for (int each = 0; each < BLOCK / LANE_ROWS; each++) {
                const int e = ROW_ELEMENT(r % LANE_ROWS, each);
                const i64 column = n + warp_column() + 16 * c + BLOCK_COLUMN(lane_id(), e);
                if (column < p->columns)
                    write_element(p, bias, residual, y, b, l, column, acc[(r / LANE_ROWS * COLUMN_BLOCKS + c) * BLOCK + e]);
            }
        }
    }
}

MMA_KERNEL void project(const global element *x, const global element *w, const global element *bias, const global element *residual,
                    global element *y, const project_params p) {
    local ushort tile_x[2 * X_ELEMENTS] __attribute__((aligned(16)));
    local ushort tile_w[2 * W_ELEMENTS] __attribute__((aligned(16)));
    local uint exchange[EXCHANGE_UINTS];
    const i64 tiles_n = (p.columns + TILE_N - 1) / TILE_N;
    x += p.base[0];
    w += p.base[1];
    bias += p.base[2];
    residual += p.base[3];
    y += p.base[4];
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 n = group % tiles_n * TILE_N, m = group / tiles_n * TILE_M;
        float acc[SUMS];
        if (p.w.d <= p.w.l) /* known in each loop, not asked for in it */
            multiply_all(exchange, acc, tile_x, tile_w, &p, x, w, m, n, true);
        else
            multiply_all(exchange, acc, tile_x, tile_w, &p, x, w, m, n, false);
        write_tile(&p, bias, residual, y, m, n, acc);
    }
}
