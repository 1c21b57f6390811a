/* What rnn.cl and lstm.cl share: the product W_h h_{t-1} of a block of LANES hidden units.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * GATES is the cell's. Hidden units lie in lanes. The packed W_h of a block is one contiguous stream, [k][gate][lane], read once
 * for TILE_B batch members, whose h_{t-1}[k] is broadcast; the micro-kernel of gemm.h does it in the registers that TILE_B and
 * GATES * LANES / VECTOR_WIDTH ask for.
 */
#ifndef CLATTN_KERNELS_CPU_RECURRENCE_H
#define CLATTN_KERNELS_CPU_RECURRENCE_H

#if !defined(LANES) || !defined(TILE_H) || !defined(TILE_B)
#error "LANES: units of a packed block; TILE_H, TILE_B: units (a multiple of LANES) and batch members of a group of *_step"
#endif
#if TILE_H % LANES || LANES % VECTOR_WIDTH
#error "TILE_H must be a multiple of LANES, LANES one of VECTOR_WIDTH"
#endif
#define ROWS TILE_B
#define GATE_VECTORS (LANES / VECTOR_WIDTH)
#define VECTORS (GATES * GATE_VECTORS)
#include "gemm.h"

DEFINE_MULTIPLY(__global)

/* The buffers of a step, each at its base; c_0 and c are the LSTM's. */
typedef struct cell_buffers {
    __global const float *packed, *xw, *h_0, *c_0;
    __global float *out, *h_n, *c;
} cell_buffers;

/* acc[member][gate and vector] = xw[step] + W_h h_{step-1}, for units from `unit` on of `rows` members from `member` on. */
INLINE void gate_sums(vec acc[ROWS][VECTORS], int rows, const cell_buffers *at, const recurrence_params *p, i64 step, i64 member,
                      i64 unit) {
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int g = 0; g < GATES; g++) UNROLL for (int v = 0; v < GATE_VECTORS; v++) {
        i64 first = unit + v * VECTOR_WIDTH;
        __global const float *xw = at->xw + (member + ROW_AT(r, rows)) * p->xw.b + step * p->xw.l;
        acc[r][g * GATE_VECTORS + v] = row_load(xw + (g * p->hidden + first) * p->xw.d, p->xw.d, p->hidden - first, 0.0f);
    }
    __global const float *packed = at->packed + unit * GATES * p->hidden;
    if (step > 0)
        multiply(acc, rows, at->out + member * p->out.b + (step - 1) * p->out.l, p->out.b, p->out.d, packed, p->hidden);
    else if (p->has_h_0)
        multiply(acc, rows, at->h_0 + member * p->h_0.b, p->h_0.b, p->h_0.d, packed, p->hidden);
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
