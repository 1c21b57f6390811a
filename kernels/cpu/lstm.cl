/* i, o, f = sigmoid, c~ = tanh of the gates xw_t + W_h h_{t-1}; c_t = f c_{t-1} + i c~; h_t = o tanh(c_t)
 * (Hochreiter, Schmidhuber 1997). Row blocks of W_h and xw in ONNX's order i, o, f, c~; forget_bias is added to f's sum.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * lstm_step: one step; groups: recurrence.h.
 * lstm_loop: all steps; group = batch member.
 * h_{t-1} is read from out, or h_0; the buffer c holds c_t and is read back as c_{t-1}, but for c_0 at the first step. Layout and
 * register block: recurrence.h. No private memory beyond the registers.
 */
#define GATES 4
#include "recurrence.h"

/* c_t of a vector of units, stored; returns h_t. */
INLINE vec lstm_cell(const vec *sums, const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit) {
    __global float *c = at->c + member * p->c_n.b + unit * p->c_n.d;
    __global const float *c_0 = at->c_0 + member * p->c_0.b + unit * p->c_0.d;
    i64 left = p->hidden - unit;
    vec state = vec_splat(0.0f);
    if (step > 0)
        state = row_load(c, p->c_n.d, left, 0.0f);
    else if (p->has_c_0)
        state = row_load(c_0, p->c_0.d, left, 0.0f);
    vec input = vec_sigmoid(sums[0]), output = vec_sigmoid(sums[GATE_VECTORS]);
    vec forget = vec_sigmoid(sums[2 * GATE_VECTORS] + p->forget_bias), candidate = vec_tanh(sums[3 * GATE_VECTORS]);
    state = forget * state + input * candidate;
    row_store(c, p->c_n.d, left, state);
    return output * vec_tanh(state);
}

INLINE void cell_finish(const vec sums[VECTORS], const cell_buffers *at, const recurrence_params *p, i64 step, i64 member, i64 unit) {
    for (int v = 0; v < GATE_VECTORS && unit + v * VECTOR_WIDTH < p->hidden; v++) {
        vec h = lstm_cell(sums + v, at, p, step, member, unit + v * VECTOR_WIDTH);
        store_h(h, at, p, step, member, unit + v * VECTOR_WIDTH);
    }
}

INLINE cell_buffers buffers_at(const recurrence_params *p, __global const float *packed, __global const float *xw,
                               __global const float *h_0, __global const float *c_0, __global float *out, __global float *h_n,
                               __global float *c) {
    cell_buffers at;
    at.packed = packed + p->base[0];
    at.xw = xw + p->base[1];
    at.h_0 = h_0 + p->base[2];
    at.c_0 = c_0 + p->base[3];
    at.out = out + p->base[4];
    at.h_n = h_n + p->base[5];
    at.c = c + p->base[6];
    return at;
}

__kernel GROUP_OF_ONE void lstm_step(__global const float *packed, __global const float *xw, __global const float *h_0,
                                     __global const float *c_0, __global float *out, __global float *h_n, __global float *c,
                                     recurrence_params p) {
    cell_buffers at = buffers_at(&p, packed, xw, h_0, c_0, out, h_n, c);
    cell_step(&at, &p);
}

__kernel GROUP_OF_ONE void lstm_loop(__global const float *packed, __global const float *xw, __global const float *h_0,
                                     __global const float *c_0, __global float *out, __global float *h_n, __global float *c,
                                     recurrence_params p) {
    cell_buffers at = buffers_at(&p, packed, xw, h_0, c_0, out, h_n, c);
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        cell_loop(&at, &p, group);
        if (p.steps == 0 && p.has_c_n) copy_state(at.c, p.c_n, at.c_0, p.c_0, p.has_c_0, group, p.hidden);
    }
}
