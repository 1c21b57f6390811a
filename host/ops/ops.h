/* What operators take from one another.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each file here validates one descriptor and emits its steps. mha is made of project_qkv's and attention's parts, and a
 * recurrence projects its inputs with project's, so those are functions on operands (a view and where it lies).
 */
#ifndef CLATTN_OPS_H
#define CLATTN_OPS_H

#include "../internal.h"

/* A row of the shapes table that an operator checks: tensor `id` must have these sizes and this dtype. `what` explains a size in
 * the message. */
typedef struct clattn__shape {
    clattn_tensor_id id;
    const clattn_tensor *tensor;
    int64_t size[4];
    clattn_dtype dtype;
    bool optional;
    clattn__access access;
    const char *what;
} clattn__shape;

/* Declare every tensor of the list, inputs and outputs, in order; SHAPE names the tensor, its sizes and those wanted. */
clattn_status clattn__declare(clattn_plan *, const clattn__shape *shapes, size_t count);

/* Sizes below zero or too large are refused by name before they are multiplied. */
clattn_status clattn__check_sizes(clattn_plan *, const char *name, const clattn_tensor *);

/* ---- attention ------------------------------------------------------------------------------------------------------ */

typedef struct clattn__attention_sizes {
    int64_t batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim;
} clattn__attention_sizes;

/* Check the options for attention of these sizes, count its flops in the plan and resolve the defaults: afterwards has_scale is
 * 1, align is CLATTN_ALIGN_OFFSET and offset the offset. */
clattn_status clattn__attention_resolve(clattn_plan *, const clattn__attention_sizes *, clattn_attention_options *);

typedef struct clattn__attention_operands {
    clattn__operand q, k, v, out, lse, scores, weights;
} clattn__attention_operands;

/* Steps for softmax(scale q k^T) v on these operands with resolved options; staged or fused as the plan was asked. */
clattn_status clattn__attention_emit(clattn_plan *, const clattn_attention_options *, const clattn__attention_operands *);

/* ---- project ---------------------------------------------------------------------------------------------------------- */

/* A step for y = x w + bias + residual; bias and residual may be absent. y is (batch, heads, len, dim), columns h * dim + d. */
typedef struct clattn__project_operands {
    clattn__operand x, w, bias, residual, y;
} clattn__project_operands;

clattn_status clattn__project_emit(clattn_plan *, const clattn__project_operands *);

#endif
