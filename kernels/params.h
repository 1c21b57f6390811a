/* The one argument struct of each role, passed by value to every kernel of that role after its buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Read by the host (C), by OpenCL C, and by the native build of kernels/cpu. Only fixed-size members, 64-bit first, so that
 * every compiler lays it out alike.
 *
 * `groups` is the number of work-groups' worth of work. A kernel walks them with stride get_num_groups(0):
 *     for (i64 group = get_group_id(0); group < p.groups; group += get_num_groups(0))
 * so that the host may launch fewer work-groups than there is work (grid limits, scaling measurements).
 *
 * `step` is the number of this launch where a step of the plan is launched many times, one after another; else 0.
 *
 * `base[n]` is the element offset of the n-th buffer, in the order of roles.def: a caller's cl_mem may hold its tensor at any
 * byte offset, and a sub-buffer may begin only where the device's alignment allows. A kernel adds it first thing, to every
 * buffer it uses (`q += p.base[0];`). Zero where pointers are the host's own.
 */
#ifndef CLATTN_KERNELS_PARAMS_H
#define CLATTN_KERNELS_PARAMS_H

#if defined(__OPENCL_C_VERSION__)
typedef long i64;
typedef int i32;
#else
#include <stdint.h>
typedef int64_t i64;
typedef int32_t i32;
#endif

enum { PARAMS_BUFFERS = 7 };

/* Element strides of a (batch, head, len, dim) view. */
typedef struct strides {
    i64 b, h, l, d;
} strides;

/* Which keys a query may look at (mask.h): query i stands at position i + offset, and sees the keys from position - left to
 * position + right. A bound of -1 is none; a causal mask is right = 0. */
typedef struct key_mask {
    i64 offset, left, right;
} key_mask;

/* Roles scores, mask, softmax, weighted_values and attention: design.md's names. */
typedef struct attention_params {
    i64 groups, step;
    i64 base[PARAMS_BUFFERS];
    strides q, k, v, out, lse;
    strides scores;  /* scores: destination; mask: source */
    strides weights; /* mask: destination; softmax: destination (its source: scores); weighted_values: source */
    i64 batch, heads_q, heads_kv, len_q, len_kv;
    key_mask mask;
    i32 head_dim, value_dim;
    float scale;
    i32 has_lse;
} attention_params;

/* Role project: y = x W + bias + residual, rows (b, l) by columns n = h * dim + d. */
typedef struct project_params {
    i64 groups, step;
    i64 base[PARAMS_BUFFERS];
    strides x;        /* (batch, 1, len, depth) */
    strides w;        /* (1, 1, depth, columns) */
    strides y;        /* (batch, heads, len, dim), columns = heads * dim */
    strides residual; /* (batch, 1, len, columns) */
    i64 batch, len, depth, columns, dim;
    i64 bias_stride;
    i32 has_bias, has_residual;
} project_params;

/* Roles pack_recurrent, rnn_step, lstm_step, rnn_loop, lstm_loop. G = 1 (rnn) or 4 (lstm). */
typedef struct recurrence_params {
    i64 groups, step;
    i64 base[PARAMS_BUFFERS];
    strides w_h;      /* (1, 1, G * hidden, hidden) */
    strides xw;       /* (batch, 1, steps, G * hidden): W_in x + bias, made beforehand by `project` */
    strides h_0, c_0; /* (batch, 1, 1, hidden) */
    strides out;      /* (batch, 1, steps, hidden) */
    strides h_n, c_n; /* (batch, 1, 1, hidden) */
    i64 batch, steps, hidden;
    i64 lanes;        /* of the packed W_h: packed[((block * hidden + k) * gates + g) * lanes + lane] is
                         W_h[g * hidden + block * lanes + lane, k], zero beyond the last row; blocks = ceil(hidden / lanes) */
    i64 gates;        /* G */
    i32 has_h_0, has_c_0, has_h_n, has_c_n;
    float forget_bias;
    i32 pad;
} recurrence_params;

#endif
