/* h_t = tanh(xw_t + W_h h_{t-1}), with xw = W_in x + bias made beforehand (Elman 1990).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * rnn_step: one step; groups: recurrence.h.
 * rnn_loop: all steps; group = batch member.
 * h_{t-1} is read from out, or h_0. Layout and register block: recurrence.h. No private memory beyond the registers.
 */
#define GATES 1
#include "recurrence.h"

INLINE void cell_finish(const vec sums[VECTORS], const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit) {
    for (int v = 0; v < VECTORS; v++) store_h(vec_tanh(sums[v]), at, p, step, member, unit + v * VECTOR_WIDTH);
}

INLINE cell_buffers buffers_at(const recurrence_params *p, __global const float *packed, __global const float *xw,
                               __global const float *h_0, __global float *out, __global float *h_n) {
    cell_buffers at;
    at.packed = packed + p->base[0];
    at.xw = xw + p->base[1];
    at.h_0 = h_0 + p->base[2];
    at.out = out + p->base[3];
    at.h_n = h_n + p->base[4];
    return at;
}

__kernel GROUP_OF_ONE void rnn_step(__global const float *packed, __global const float *xw, __global const float *h_0,
                                    __global float *out, __global float *h_n, recurrence_params p) {
    cell_buffers at = buffers_at(&p, packed, xw, h_0, out, h_n);
    cell_step(&at, &p);
}

__kernel GROUP_OF_ONE void rnn_loop(__global const float *packed, __global const float *xw, __global const float *h_0,
                                    __global float *out, __global float *h_n, recurrence_params p) {
    cell_buffers at = buffers_at(&p, packed, xw, h_0, out, h_n);
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) cell_loop(&at, &p, group);
}
