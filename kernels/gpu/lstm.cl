/* i, o, f = sigmoid and c~ = tanh of the four blocks of W_h h_{t-1} + xw_t, where xw_t = W_in x_t + bias and f's sum gets
 * forget_bias; c_t = f c_{t-1} + i c~, h_t = o tanh(c_t) (Hochreiter, Schmidhuber 1997); out[b,t,:] = h_t.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          packed W_h (params.h), xw (batch, 1, steps, 4 * hidden), h_0, c_0, h_n, c (batch, 1, 1, hidden),
 *                 out (batch, 1, steps, hidden); c holds c_{t-1} and gets c_t, and is read from the second step on
 * lstm_step       step p.step; group = TILE_H units of TILE_B batch members
 * lstm_loop       every step; group = one batch member, which takes its tiles of units in turn, with a barrier after each
 * Work-item       one unit's part of its four sums (recurrent.h)
 * Local memory    TILE_B * TILE_K + 4 * WORK_GROUP * TILE_B floats
 * Work-group      WORK_GROUP, a multiple of TILE_H
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#define GATES 4 /* rows of W_h: i, o, f, c~ */
#include "recurrent.h"

INLINE float sigmoid(float x) {
    return 1.0f / (1.0f + exp(-x));
}

INLINE float previous_c(const recurrence_params *p, const global float *c_0, const global float *c, i64 t, i64 b, i64 unit) {
    if (t > 0) return c[b * p->c_n.b + unit * p->c_n.d];
    return p->has_c_0 ? c_0[b * p->c_0.b + unit * p->c_0.d] : 0.0f;
}

/* c_t and h_t of the tile's units and members, from the parts. */
INLINE void finish_tile(const recurrence_params *p, const local float *parts, const global float *xw, const global float *c_0,
                        global float *out, global float *h_n, global float *c, i64 t, i64 first_unit, i64 first_b, i64 end_b) {
    for (int n = (int)get_local_id(0); n < TILE_H * TILE_B; n += WORK_GROUP) {
        const i64 unit = first_unit + n % TILE_H, b = first_b + n / TILE_H;
        if (unit >= p->hidden || b >= end_b) continue;
        float sum[GATES];
        UNROLL for (int g = 0; g < GATES; g++) {
            sum[g] = recurrent_sum(parts, n / TILE_H, g, n % TILE_H);
            sum[g] += xw[b * p->xw.b + t * p->xw.l + (g * p->hidden + unit) * p->xw.d];
        }
        const float keep = sigmoid(sum[2] + p->forget_bias) * previous_c(p, c_0, c, t, b, unit);
        const float cell = keep + sigmoid(sum[0]) * tanh(sum[3]);
        const float h = sigmoid(sum[1]) * tanh(cell);
        c[b * p->c_n.b + unit * p->c_n.d] = cell;
        out[b * p->out.b + t * p->out.l + unit * p->out.d] = h;
        if (p->has_h_n && t == p->steps - 1) h_n[b * p->h_n.b + unit * p->h_n.d] = h;
    }
}

KERNEL void lstm_step(const global float *packed, const global float *xw, const global float *h_0, const global float *c_0,
                      global float *out, global float *h_n, global float *c, const recurrence_params p) {
    local float parts[WORK_GROUP * TILE_B * GATES], chunk[TILE_B * TILE_K];
    const i64 tiles = (p.hidden + TILE_H - 1) / TILE_H;
    packed += p.base[0];
    xw += p.base[1];
    h_0 += p.base[2];
    c_0 += p.base[3];
    out += p.base[4];
    h_n += p.base[5];
    c += p.base[6];
    const state h = previous_h(&p, h_0, out, p.step);
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 unit = group % tiles * TILE_H, b = group / tiles * TILE_B;
        recurrent_parts(&p, parts, chunk, packed, h, unit, b);
        finish_tile(&p, parts, xw, c_0, out, h_n, c, p.step, unit, b, p.batch);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

KERNEL void lstm_loop(const global float *packed, const global float *xw, const global float *h_0, const global float *c_0,
                      global float *out, global float *h_n, global float *c, const recurrence_params p) {
    local float parts[WORK_GROUP * TILE_B * GATES], chunk[TILE_B * TILE_K];
    packed += p.base[0];
    xw += p.base[1];
    h_0 += p.base[2];
    c_0 += p.base[3];
    out += p.base[4];
    h_n += p.base[5];
    c += p.base[6];
    for (i64 b = get_group_id(0); b < p.groups; b += get_num_groups(0)) {
        if (p.steps == 0) {
            const state h = previous_h(&p, h_0, out, 0);
            for (i64 unit = (i64)get_local_id(0); unit < p.hidden; unit += WORK_GROUP) {
                if (p.has_h_n) h_n[b * p.h_n.b + unit * p.h_n.d] = h.at ? h.at[b * h.b + unit * h.d] : 0.0f;
                c[b * p.c_n.b + unit * p.c_n.d] = previous_c(&p, c_0, c, 0, b, unit);
            }
        }
        for (i64 t = 0; t < p.steps; t++) {
            const state h = previous_h(&p, h_0, out, t);
            for (i64 unit = 0; unit < p.hidden; unit += TILE_H) {
                recurrent_parts(&p, parts, chunk, packed, h, unit, b);
                finish_tile(&p, parts, xw, c_0, out, h_n, c, t, unit, b, b + 1);
                barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* the next step reads h_t from `out` */
            }
        }
    }
}
