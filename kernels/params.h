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

enum { PARAMS_BUFFERS = 12 };

/* The types of elements, as the macro DTYPE and the fields called *dtype name them: the values of clattn_dtype. */
#define DTYPE_F32 1
#define DTYPE_F16 2
#define DTYPE_BF16 3
#define DTYPE_F64 4
#define DTYPE_BOOL 5
#define DTYPE_I32 6
#define DTYPE_I64 7

/* Element strides of a (batch, head, len, dim) view. */
typedef struct strides {
    i64 b, h, l, d;
} strides;

/* Which keys a query may look at (mask.h): query i stands at position i + offset, and sees the keys from position - left to
 * position + right. A bound of -1 is none; a causal mask is right = 0. Where `from_end` is 1, len_kv - len_q of the batch member
 * is added to the offset. */
typedef struct key_mask {
    i64 offset, left, right;
    i64 from_end;
} key_mask;

/* A list of integers in a buffer: element n lies at n * stride, as i64 where `wide`, else as i32. Where it is not `present` its
 * buffer is another one. */
typedef struct int_list {
    i64 stride;
    i32 present, wide;
} int_list;

/* Where the slopes of ALiBi come from. */
#define ALIBI_NONE 0
#define ALIBI_STANDARD 1 /* of Press et al. 2022: see alibi_slope in mask.h */
#define ALIBI_GIVEN 2    /* one a head, in a buffer */

/* Roles scores, mask, softmax, weighted_values, attention and attention_split. len_q and len_kv are what the views have; what a
 * batch member has of them, member_of (mask.h) says. */
typedef struct attention_params {
    i64 groups, step;
    i64 base[PARAMS_BUFFERS];
    strides q, k, v, out, lse;
    strides scores;  /* scores: destination; mask: source */
    strides weights; /* mask: destination; softmax: destination (its source: scores); weighted_values: source */
    strides mask;    /* of bytes, 0: masked; 0 where broadcast, as all strides are */
    strides bias;
    i64 mask_len, bias_len; /* the keys that mask and bias tell of; those past them are masked */
    i64 batch, heads_q, heads_kv, len_q, len_kv;
    key_mask keys;
    int_list kv_lengths, q_offsets, kv_offsets;
    i64 appended;            /* added to each of kv_lengths */
    i64 slopes_b, slopes_h, sinks_b, sinks_h; /* strides of one a head */
    i64 split;               /* attention_split: keys of a part, a multiple of every TILE_KV */
    i64 scale_f64, softcap_f64; /* the bits of the doubles, for DTYPE_F64 */
    i32 head_dim, value_dim;
    float scale;
    float softcap;           /* 0: none */
    i32 has_lse, has_mask, has_bias, has_sinks;
    i32 alibi;               /* ALIBI_* */
    i32 dtype;               /* of q, k, v and out; the variant's DTYPE */
    i32 bias_dtype;          /* DTYPE_F32, or dtype */
    i32 modified;            /* whether more than ranges and scale makes a score: softcap, mask, bias or alibi; the variant's MODIFIED */
} attention_params;

/* Role copy: y[b, h, at + l, :] = x[b, h, l, :], converted, and rotated at position `position` + l where rotary is not 0. Where starts
 * is present, starts[b] is added to `position`, and to `at` if moves is 1. */
#define ROTARY_NONE 0
#define ROTARY_HALF 1        /* pairs (d, d + rotary_dim / 2) */
#define ROTARY_INTERLEAVED 2 /* pairs (2 d, 2 d + 1) */
typedef struct copy_params {
    i64 groups, step;
    i64 base[PARAMS_BUFFERS];
    strides x, y;        /* (batch, heads, len, dim) */
    strides cosines, sines; /* (batch or 0, -, positions, rotary_dim / 2) of fp32 */
    i64 batch, heads, len, dim;
    i64 capacity;        /* rows of y: what would lie past them is not written */
    i64 positions;       /* rows of the tables: positions past them use the last */
    i64 at, position;
    int_list starts;
    i32 x_dtype, y_dtype;
    i32 rotary, rotary_dim;
    i32 moves, pad;
} copy_params;

/* Role merge: out, lse = the whole of `parts` partial results, each the (out, lse) of some of the keys. */
typedef struct merge_params {
    i64 groups, step;
    i64 base[PARAMS_BUFFERS];
    strides out_parts, lse_parts; /* of one part */
    strides out, lse;
    i64 out_part, lse_part;       /* from one part to the next */
    i64 batch, heads, len, parts;
    i64 sinks_b, sinks_h;
    i32 value_dim;
    i32 has_lse, has_sinks;
    i32 parts_dtype, out_dtype;
    i32 pad;
} merge_params;

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
    i32 dtype, pad;   /* of all five; the variant's DTYPE */
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
