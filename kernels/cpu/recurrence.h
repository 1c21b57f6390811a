/* What rnn.cl and lstm.cl share: the product W_h h_{t-1} of a block of LANES hidden units.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * GATES is the cell's. Hidden units lie in lanes. The packed W_h of a block is one contiguous stream, [k][gate][lane], and
 * h_{t-1}[k] is broadcast. One member alone takes all its VECTORS sums through the stream at once, as many chains as the adders
 * are deep; TILE_B members take PASS of them at a time, so that each load of W_h serves them all. A member's sums are the same
 * either way.
 *
 * Tried (AVX2, one core with other load beside it, hidden 512; microseconds a step at batch 1 and at batch 4): as here, rnn 17
 * and 41; one block of 2 members x 32 lanes always, 21 and 46; of 1 member x 64 lanes always, 20 and 70. lstm (16 lanes here)
 * 80-90 and 190; 2 members x 8 lanes 92 and 188; 1 member x 16 lanes 79 and 303.
 */
#ifndef CLATTN_KERNELS_CPU_RECURRENCE_H
#define CLATTN_KERNELS_CPU_RECURRENCE_H

#include "gemm.h"

#if !defined(LANES) || !defined(TILE_H) || !defined(TILE_B)
#error "LANES: units of a packed block; TILE_H, TILE_B: units (a multiple of LANES) and batch members of a group of *_step"
#endif
#if TILE_H % LANES || LANES % VECTOR_WIDTH
#error "TILE_H must be a multiple of LANES, LANES one of VECTOR_WIDTH"
#endif
#define GATE_VECTORS (LANES / VECTOR_WIDTH)
#define VECTORS (GATES * GATE_VECTORS)
#define PASS 2
#if (GATES * LANES / VECTOR_WIDTH) % PASS
#error "GATES * LANES must be a multiple of PASS * VECTOR_WIDTH"
#endif

DEFINE_ROWS_AT(members_at, TILE_B)
DEFINE_MULTIPLY(multiply_member, 1, VECTORS, __global, __global)
DEFINE_MULTIPLY(multiply_members, TILE_B, PASS, __global, __global)

/* The buffers of a step, each at its base; c_0 and c are the LSTM's. */
typedef struct cell_buffers {
    __global const float *packed, *xw, *h_0, *c_0;
    __global float *out, *h_n, *c;
} cell_buffers;

/* acc[member][vector] += W_h h for `rows` members, h's rows and elements at the strides given. */
INLINE void multiply_h(vec acc[TILE_B][VECTORS], int rows, __global const float *h, strides stride, __global const float *packed,
                       i64 hidden) {
    i64 member[TILE_B];
    members_at(member, rows, stride.b);
    if (rows == 1) {
        multiply_member(acc, member, h, stride.d, packed, VECTORS * VECTOR_WIDTH, hidden);
        return;
    }
    UNROLL for (int first = 0; first < VECTORS; first += PASS) {
        vec part[TILE_B][PASS];
        UNROLL for (int r = 0; r < TILE_B; r++) UNROLL for (int v = 0; v < PASS; v++) part[r][v] = acc[r][first + v];
        multiply_members(part, member, h, stride.d, packed + first * VECTOR_WIDTH, VECTORS * VECTOR_WIDTH, hidden);
        UNROLL for (int r = 0; r < TILE_B; r++) UNROLL for (int v = 0; v < PASS; v++) acc[r][first + v] = part[r][v];
    }
}

/* acc[member][gate and vector] = xw[step] + W_h h_{step-1}, for units from `unit` on of `rows` members from `member` on. */
INLINE void gate_sums(vec acc[TILE_B][VECTORS], int rows, const cell_buffers *at, const recurrence_params *p, i64 step,
                      i64 member, i64 unit) {
    for (int r = 0; r < rows; r++) {
        __global const float *xw = at->xw + (member + r) * p->xw.b + step * p->xw.l;
        UNROLL for (int g = 0; g < GATES; g++) UNROLL for (int v = 0; v < GATE_VECTORS; v++) {
            i64 first = unit + v * VECTOR_WIDTH;
            acc[r][g * GATE_VECTORS + v] = row_load(xw + (g * p->hidden + first) * p->xw.d, p->xw.d, p->hidden - first, 0.0f);
        }
    }
    __global const float *packed = at->packed + unit * GATES * p->hidden;
    if (step > 0)
        multiply_h(acc, rows, at->out + member * p->out.b + (step - 1) * p->out.l, p->out, packed, p->hidden);
    else if (p->has_h_0)
        multiply_h(acc, rows, at->h_0 + member * p->h_0.b, p->h_0, packed, p->hidden);
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

/* The cell itself, of rnn.cl or lstm.cl: a block of units from `unit` on, of `rows` members. */
INLINE void cell_block(int rows, const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit);

/* group = tile of members * ceil(hidden / TILE_H) + tile of units. */
INLINE void cell_step(const cell_buffers *at, const recurrence_params *p, i64 group) {
    i64 tiles = (p->hidden + TILE_H - 1) / TILE_H, member = group / tiles * TILE_B, first = group % tiles * TILE_H;
    i64 members = p->batch - member < TILE_B ? p->batch - member : TILE_B;
    for (i64 unit = first; unit < first + TILE_H && unit < p->hidden; unit += LANES)
        cell_block((int)members, at, p, p->step, member, unit);
}

/* group = batch member: all its steps. */
INLINE void cell_loop(const cell_buffers *at, const recurrence_params *p, i64 member) {
    for (i64 step = 0; step < p->steps; step++)
        for (i64 unit = 0; unit < p->hidden; unit += LANES) cell_block(1, at, p, step, member, unit);
    if (p->steps == 0 && p->has_h_n) copy_state(at->h_n, p->h_n, at->h_0, p->h_0, p->has_h_0, member, p->hidden);
}

#endif
