/* What rnn.cl and lstm.cl share: the product W_h h_{t-1} of a block of LANES hidden units.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * GATES is the cell's. Hidden units lie in lanes. The packed W_h of a block is one contiguous stream, [k][gate][lane], and
 * h_{t-1}[k] is broadcast. One member alone takes all VECTORS sums through the stream at once, and through that of the next block as
 * well where there is one: as many chains as the adders are deep. TILE_B members, or half as many, take PASS or 2 * PASS of the sums at a
 * time, so that each load of W_h serves them all. A member's sums are the same whichever way.
 *
 * Groups of *_step are contiguous shares with the members of a block beside one another: its stream comes once from where W_h lies and
 * then from a nearer cache, and while it is multiplied the next block's is fetched, each tile of members its part.
 *
 * Tried (AVX2, one core with other load beside it, hidden 512; microseconds a step at batch 1 and at batch 4): as here, rnn 17
 * and 41; one block of 2 members x 32 lanes always, 21 and 46; of 1 member x 64 lanes always, 20 and 70. lstm (16 lanes here)
 * 80-90 and 190; 2 members x 8 lanes 92 and 188; 1 member x 16 lanes 79 and 303.
 * Tried (AVX-512, one core, hidden 512, by processor time; microseconds a step of rnn at batch 1, 4, 32, of lstm likewise; a read of W_h
 * takes 7.6 from the second-level cache and 140 from the last): as here 8.2, 14.9, 124-139; 142, 153, 560. Groups with the units beside
 * one another, tiles of 4, one block at a time: 9.1, 15.2, 143; 146, 189, 1410. Members beside one another alone: 9.1, -, 141; 159, -, 696;
 * and tiles of 8 -, -, 125; -, -, 629 to 660; of 6 -, -, 137; -, -, 686; of 10 -, -, 146; -, -, 752. Blocks of 128 units in place of two
 * blocks at a time: 9.0. W_h fetched ahead though it lies near, and for one tile of members: 8.3, 19.7, 125.
 */
#ifndef CLATTN_KERNELS_CPU_RECURRENCE_H
#define CLATTN_KERNELS_CPU_RECURRENCE_H

#include "gemm.h"

#if !defined(LANES) || !defined(TILE_H) || !defined(TILE_B)
#error "LANES: units of a packed block; TILE_H, TILE_B: units (LANES of them) and batch members of a group of *_step"
#endif
#if TILE_H != LANES || LANES % VECTOR_WIDTH || TILE_B % 2
#error "TILE_H must be LANES, LANES a multiple of VECTOR_WIDTH, and TILE_B even"
#endif
#define GATE_VECTORS (LANES / VECTOR_WIDTH)
#define VECTORS (GATES * GATE_VECTORS)
#define FEW (TILE_B / 2)
#define PASS 2
#if (GATES * LANES / VECTOR_WIDTH) % (2 * PASS)
#error "GATES * LANES must be a multiple of 2 * PASS * VECTOR_WIDTH"
#endif
/* From one k of a packed block to the next. */
#define PACKED_STEP (VECTORS * VECTOR_WIDTH)
/* Depth between two fetches, and floats of a line of a cache. */
#define FETCH_DEPTH 32
#define LINE 16
/* Floats of a W_h that no second-level cache holds: 2 MiB. */
#define FAR (1 << 19)
#if defined(__OPENCL_C_VERSION__)
#define FETCH_LINE(p) prefetch(p, LINE)
#else
#define FETCH_LINE(p) __builtin_prefetch(p, 0, 2)
#endif

DEFINE_ROWS_AT(members_at, TILE_B)
DEFINE_MULTIPLY(multiply_member, 1, VECTORS, __global, __global)
DEFINE_MULTIPLY(multiply_few, FEW, 2 * PASS, __global, __global)
DEFINE_MULTIPLY(multiply_members, TILE_B, PASS, __global, __global)

/* The buffers of a step, each at its base; c_0 and c are the LSTM's. */
typedef struct cell_buffers {
    __global const float *packed, *xw, *h_0, *c_0;
    __global float *out, *h_n, *c;
} cell_buffers;

/* What a tile of members fetches of the stream that follows: `lines` from `at` on, evenly along `depth`. */
typedef struct fetch_part {
    __global const float *at;
    i64 lines, depth;
} fetch_part;

/* The part of `rows` members from `member` on, while they multiply the block from `unit` on: nothing where W_h may lie near. The last
 * block is followed by the first, which the next step begins with. */
INLINE fetch_part fetch_part_of(const cell_buffers *at, const recurrence_params *p, int rows, i64 member, i64 unit) {
    const i64 next = unit + LANES < p->hidden ? unit + LANES : 0, lines = GATES * LANES * p->hidden / LINE;
    const int far = p->batch > TILE_B && GATES * p->hidden * p->hidden >= FAR;
    const fetch_part part = {at->packed + next * GATES * p->hidden + lines * member / p->batch * LINE,
                             far ? lines * rows / p->batch : 0, p->hidden};
    return part;
}

/* acc[member][first ... first + PASS] += W_h h, with `multiply` of ROWS members. */
#define DEFINE_PASSES(name, multiply, ROWS, PASS)                                                                             \
    INLINE void name(vec acc[TILE_B][VECTORS], const i64 member[TILE_B], __global const float *h, i64 step,                    \
                     __global const float *packed, i64 hidden, fetch_part fetch) {                                             \
        const i64 lines = fetch.lines * FETCH_DEPTH / (fetch.depth * (VECTORS / (PASS)));                                      \
        UNROLL for (int first = 0; first < VECTORS; first += PASS) {                                                           \
            vec part[ROWS][PASS];                                                                                              \
            UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < PASS; v++) part[r][v] = acc[r][first + v];        \
            for (i64 k = 0; k < hidden; k += FETCH_DEPTH) {                                                                    \
                const i64 depth = hidden - k < FETCH_DEPTH ? hidden - k : FETCH_DEPTH;                                         \
                for (i64 n = 0; n < lines; n++, fetch.at += LINE) FETCH_LINE(fetch.at);                                        \
                multiply(part, member, h + k * step, step, packed + k * PACKED_STEP + first * VECTOR_WIDTH, PACKED_STEP, depth);\
            }                                                                                                                  \
            UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < PASS; v++) acc[r][first + v] = part[r][v];        \
        }                                                                                                                      \
    }
DEFINE_PASSES(passes_few, multiply_few, FEW, 2 * PASS)
DEFINE_PASSES(passes_members, multiply_members, TILE_B, PASS)

/* acc[member][vector] += W_h h for `rows` members, h's rows and elements at the strides given. */
INLINE void multiply_h(vec acc[TILE_B][VECTORS], int rows, __global const float *h, strides stride, __global const float *packed,
                       i64 hidden, fetch_part fetch) {
    i64 member[TILE_B];
    members_at(member, rows, stride.b);
    if (rows == 1)
        multiply_member(acc, member, h, stride.d, packed, PACKED_STEP, hidden);
    else if (rows <= FEW)
        passes_few(acc, member, h, stride.d, packed, hidden, fetch);
    else
        passes_members(acc, member, h, stride.d, packed, hidden, fetch);
}

/* sums[gate and vector] = xw[step] of a member's units from `unit` on. */
INLINE void gate_start(vec sums[VECTORS], const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit) {
    __global const float *xw = at->xw + member * p->xw.b + step * p->xw.l;
    UNROLL for (int g = 0; g < GATES; g++) UNROLL for (int v = 0; v < GATE_VECTORS; v++) {
        i64 first = unit + v * VECTOR_WIDTH;
        sums[g * GATE_VECTORS + v] = row_load(xw + (g * p->hidden + first) * p->xw.d, p->xw.d, p->hidden - first, 0.0f);
    }
}

/* h_{step-1} from `member` on, and its strides; whether there is one. */
INLINE int has_h(const recurrence_params *p, i64 step) { return step > 0 || p->has_h_0; }
INLINE strides h_strides(const recurrence_params *p, i64 step) { return step > 0 ? p->out : p->h_0; }
INLINE __global const float *h_before(const cell_buffers *at, const recurrence_params *p, i64 step, i64 member) {
    return step > 0 ? at->out + member * p->out.b + (step - 1) * p->out.l : at->h_0 + member * p->h_0.b;
}

/* h_{step} of a vector of units to out, and to h_n when it is the last. */
INLINE void store_h(vec h, const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit) {
    row_store(at->out + member * p->out.b + step * p->out.l + unit * p->out.d, p->out.d, p->hidden - unit, h);
    if (p->has_h_n && step == p->steps - 1)
        row_store(at->h_n + member * p->h_n.b + unit * p->h_n.d, p->h_n.d, p->hidden - unit, h);
}

/* to = from, or 0: the state of a recurrence without a step. */
INLINE void copy_state(__global float *to, strides to_stride, __global const float *from, strides from_stride, int has_from,
                       i64 member, i64 hidden) {
    for (i64 n = 0; n < hidden; n++)
        to[member * to_stride.b + n * to_stride.d] = has_from ? from[member * from_stride.b + n * from_stride.d] : 0.0f;
}

/* The cell itself, of rnn.cl or lstm.cl: the sums of a member's units from `unit` on become its state and output. */
INLINE void cell_finish(const vec sums[VECTORS], const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit);

/* A block of units from `unit` on, of `rows` members. */
INLINE void cell_block(int rows, const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit) {
    vec acc[TILE_B][VECTORS];
    for (int r = 0; r < rows; r++) gate_start(acc[r], at, p, step, member + r, unit);
    if (has_h(p, step))
        multiply_h(acc, rows, h_before(at, p, step, member), h_strides(p, step), at->packed + unit * GATES * p->hidden, p->hidden,
                   fetch_part_of(at, p, rows, member, unit));
    for (int r = 0; r < rows; r++) cell_finish(acc[r], at, p, step, member + r, unit);
}

/* sum[block][vector] += W_h h of two blocks whose streams begin at a and b. */
INLINE void multiply_two(vec sum[2][VECTORS], __global const float *h, i64 h_step, __global const float *a, __global const float *b,
                         i64 depth) {
    vec first[VECTORS], second[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) first[v] = sum[0][v], second[v] = sum[1][v];
    for (i64 k = 0; k < depth; k++, h += h_step, a += PACKED_STEP, b += PACKED_STEP) {
        const vec scalar = vec_splat(*h);
        UNROLL for (int v = 0; v < VECTORS; v++) first[v] += scalar * vec_load(a + v * VECTOR_WIDTH);
        UNROLL for (int v = 0; v < VECTORS; v++) second[v] += scalar * vec_load(b + v * VECTOR_WIDTH);
    }
    UNROLL for (int v = 0; v < VECTORS; v++) sum[0][v] = first[v], sum[1][v] = second[v];
}

/* Two blocks of one member. */
INLINE void cell_two(const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit) {
    vec sum[2][VECTORS];
    __global const float *packed = at->packed + unit * GATES * p->hidden;
    UNROLL for (int n = 0; n < 2; n++) gate_start(sum[n], at, p, step, member, unit + n * LANES);
    if (has_h(p, step))
        multiply_two(sum, h_before(at, p, step, member), h_strides(p, step).d, packed, packed + LANES * GATES * p->hidden, p->hidden);
    UNROLL for (int n = 0; n < 2; n++) cell_finish(sum[n], at, p, step, member, unit + n * LANES);
}

/* The blocks from `unit` to `end` of one member. */
INLINE void cell_blocks(const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit, i64 end) {
    for (; VECTORS < 8 && unit + LANES < end; unit += 2 * LANES) cell_two(at, p, step, member, unit);
    for (; unit < end; unit += LANES) cell_block(1, at, p, step, member, unit);
}

/* This group's share of a step: group = block of units * ceil(batch / TILE_B) + tile of members. */
INLINE void cell_step(const cell_buffers *at, const recurrence_params *p) {
    const i64 tiles = (p->batch + TILE_B - 1) / TILE_B, shares = get_num_groups(0), share = get_group_id(0);
    const i64 first = p->groups * share / shares, end = p->groups * (share + 1) / shares;
    if (p->batch == 1) {
        cell_blocks(at, p, p->step, 0, first * LANES, end * LANES < p->hidden ? end * LANES : p->hidden);
        return;
    }
    for (i64 group = first; group < end; group++) {
        const i64 member = group % tiles * TILE_B, members = p->batch - member < TILE_B ? p->batch - member : TILE_B;
        cell_block((int)members, at, p, p->step, member, group / tiles * LANES);
    }
}

/* group = batch member: all its steps. */
INLINE void cell_loop(const cell_buffers *at, const recurrence_params *p, i64 member) {
    for (i64 step = 0; step < p->steps; step++) cell_blocks(at, p, step, member, 0, p->hidden);
    if (p->steps == 0 && p->has_h_n) copy_state(at->h_n, p->h_n, at->h_0, p->h_0, p->has_h_0, member, p->hidden);
}

#endif
