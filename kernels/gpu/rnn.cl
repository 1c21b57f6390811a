/* h_t = tanh(W_h h_{t-1} + xw_t), where xw_t = W_in x_t + bias (Elman 1990); out[b,t,:] = h_t.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes          packed W_h (params.h), xw, out (batch, 1, steps, hidden), h_0, h_n (batch, 1, 1, hidden)
 * rnn_step        step p.step; group = TILE_H units of TILE_B batch members
 * rnn_loop        every step; group = one batch member, which takes its tiles of units in turn, with a barrier after each
 * Work-item       one unit's part of the sum (recurrent.h)
 * Local memory    TILE_B * TILE_K + WORK_GROUP * TILE_B floats
 * Work-group      WORK_GROUP, a multiple of TILE_H
 * Compiled        what compilers make of each row, offline.md in the results of `./run test --all` says; not yet measured on a GPU
 */
#define GATES 1
#include "recurrent.h"

/* h_t of the tile's units and members, from the parts. */
INLINE void finish_tile(const recurrence_params *p, const local float *parts, const global float *xw, global float *out,
                        global float *h_n, i64 t, i64 first_unit, i64 first_b, i64 end_b) {
    for (int n = (int)get_local_id(0); n < TILE_H * TILE_B; n += WORK_GROUP) {
        const i64 unit = first_unit + n % TILE_H, b = first_b + n / TILE_H;
        if (unit >= p->hidden || b >= end_b) continue;
        const float sum = recurrent_sum(parts, n / TILE_H, 0, n % TILE_H);
        const float h = tanh(sum + xw[b * p->xw.b + t * p->xw.l + unit * p->xw.d]);
        out[b * p->out.b + t * p->out.l + unit * p->out.d] = h;
        if (p->has_h_n && t == p->steps - 1) h_n[b * p->h_n.b + unit * p->h_n.d] = h;
    }
}

KERNEL void rnn_step(const global float *packed, const global float *xw, const global float *h_0, global float *out,
                     global float *h_n, const recurrence_params p) {
    local float parts[WORK_GROUP * TILE_B], chunk[TILE_B * TILE_K];
    const i64 tiles = (p.hidden + TILE_H - 1) / TILE_H;
    packed += p.base[0];
    xw += p.base[1];
    h_0 += p.base[2];
    out += p.base[3];
    h_n += p.base[4];
    const state h = previous_h(&p, h_0, out, p.step);
    for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0)) {
        const i64 unit = group % tiles * TILE_H, b = group / tiles * TILE_B;
        recurrent_parts(&p, parts, chunk, packed, h, unit, b);
        finish_tile(&p, parts, xw, out, h_n, p.step, unit, b, p.batch);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

KERNEL void rnn_loop(const global float *packed, const global float *xw, const global float *h_0, global float *out,
                     global float *h_n, const recurrence_params p) {
    local float parts[WORK_GROUP * TILE_B], chunk[TILE_B * TILE_K];
    packed += p.base[0];
    xw += p.base[1];
    h_0 += p.base[2];
    out += p.base[3];
    h_n += p.base[4];
    for (i64 b = get_group_id(0); b < p.groups; b += get_num_groups(0)) {
        if (p.steps == 0 && p.has_h_n) {
            const state h = previous_h(&p, h_0, out, 0);
            for (i64 unit = (i64)get_local_id(0); unit < p.hidden; unit += WORK_GROUP)
                h_n[b * p.h_n.b + unit * p.h_n.d] = h.at ? h.at[b * h.b + unit * h.d] : 0.0f;
        }
        for (i64 t = 0; t < p.steps; t++) {
            const state h = previous_h(&p, h_0, out, t);
            for (i64 unit = 0; unit < p.hidden; unit += TILE_H) {
                recurrent_parts(&p, parts, chunk, packed, h, unit, b);
                finish_tile(&p, parts, xw, out, h_n, t, unit, b, b + 1);
                barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* the next step reads h_t from `out` */
            }
        }
    }
}
