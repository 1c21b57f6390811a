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

/* A set of types of elements. */
typedef uint32_t clattn__types;
#define CLATTN__TYPE(dtype) ((uint32_t)(dtype) <= CLATTN_I64 ? (clattn__types)1 << ((uint32_t)(dtype) & 31) : 0) /* of none: 0 */
#define CLATTN__ONLY_F32 CLATTN__TYPE(CLATTN_F32)
#define CLATTN__FLOATS_16 (CLATTN__TYPE(CLATTN_F16) | CLATTN__TYPE(CLATTN_BF16))
#define CLATTN__INTEGERS (CLATTN__TYPE(CLATTN_I32) | CLATTN__TYPE(CLATTN_I64))

/* A row of the shapes table that an operator checks: tensor `id`, which stands in the plan's descriptor, must have these sizes and one of these types. `what` explains a size
 * in the message. */
typedef struct clattn__shape {
    clattn_tensor_id id;
    const clattn_tensor *tensor;
    int64_t size[4];
    clattn__types types;
    bool optional;
    clattn__access access;
    const char *what;
} clattn__shape;

/* Declare every tensor of the list, inputs and outputs, in order; SHAPE names the tensor, its sizes and those wanted. */
clattn_status clattn__declare(clattn_plan *, const clattn__shape *shapes, size_t count);

/* Sizes below zero or too large are refused by name before they are multiplied. */
clattn_status clattn__check_sizes(clattn_plan *, const char *name, const clattn_tensor *);

/* ---- attention ------------------------------------------------------------------------------------------------------ */

/* Where the keys before the new ones are. */
typedef enum clattn__cache {
    CLATTN__CACHE_NONE,
    CLATTN__CACHE_PAST,     /* past_k, past_v: `past` keys */
    CLATTN__CACHE_IN_PLACE, /* present_k, present_v hold them; how many, past_lengths says when the plan runs */
} clattn__cache;

typedef struct clattn__attention_sizes {
    clattn_dtype dtype;  /* of the arithmetic's operands */
    clattn_dtype stored; /* of the caller's */
    int64_t batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim;
    int64_t members; /* of the batch; more than `batch` (1) where it is ragged */
    bool ragged, rotary;
    clattn__cache cache;
    int64_t past, fresh; /* keys of a CLATTN__CACHE_PAST; new keys */
} clattn__attention_sizes;

/* Check the options for attention of these sizes, declare their tensors, resolve the scale, count the flops. */
clattn_status clattn__attention_resolve(clattn_plan *, const clattn__attention_sizes *, clattn_attention_options *);
const char *clattn__algorithm_name(clattn_algorithm);
/* Why keys cannot be split, or NULL. */
const char *clattn__cannot_split(const clattn__attention_sizes *);
/* What resolved options hide by position. */
key_mask clattn__key_mask(const clattn_attention_options *, const clattn__attention_sizes *);
/* What a run in host memory can check: each of kv_lengths is 0 to len_kv. */
clattn_status clattn__check_lengths(const clattn_plan *, clattn_tensor_id, void *const tensors[CLATTN_TENSOR_COUNT], int64_t most,
                                    const char *what);

typedef struct clattn__attention_operands {
    clattn__operand q, k, v, out, lse, scores, weights;
    clattn__operand mask, bias, slopes, sinks;
    clattn__operand kv_lengths, q_offsets, kv_offsets;
    int64_t appended; /* added to each of kv_lengths */
} clattn__attention_operands;

/* Fill in the operands that options name. */
void clattn__attention_option_operands(const clattn_plan *, clattn__attention_operands *);
/* Steps for attention on these operands with resolved options; staged, fused or split as the plan was asked. */
clattn_status clattn__attention_emit(clattn_plan *, const clattn_attention_options *, const clattn__attention_sizes *,
                                     const clattn__attention_operands *);

/* ---- copies --------------------------------------------------------------------------------------------------------- */

/* A step for y = x, converted to y's type, its rows placed `at` rows further, and rotated. What is not set is not done. */
typedef struct clattn__copy_operands {
    clattn__operand x, y;
    int64_t at, position; /* where the first row goes, and at what position it stands */
    clattn__operand starts; /* one a batch member, added to the position, and where it `moves` also to `at` */
    bool moves;
    clattn_rotary rotary;
    clattn__operand cosines, sines;
} clattn__copy_operands;

clattn_status clattn__copy_emit(clattn_plan *, const clattn__copy_operands *);
/* Whether a role takes operands `as_stored`: a row does, and none that is likely to be faster serves them `converted` to f32, one
 * of a family that goes before it, or one meant for the device where it is not. */
bool clattn__takes(clattn_plan *, clattn__role, const clattn__params *as_stored, const clattn__params *converted);
/* Replace an operand by a copy of it in workspace, unless it is absent or of the type already. */
clattn_status clattn__convert_emit(clattn_plan *, clattn_dtype, clattn__operand *);
/* What to write in place of an operand: itself where it is of the type already, else new workspace. */
clattn_status clattn__plan_working(clattn_plan *, clattn_dtype, const clattn__operand *, clattn__operand *work);
/* Bring that to the operand, where it is not the operand itself. */
clattn_status clattn__hand_over_emit(clattn_plan *, const clattn__operand *work, const clattn__operand *);
/* The place of a list of integers, as kernels take it, and how it lies. */
int_list clattn__int_list(const clattn__operand *, int dim);

/* ---- merge ------------------------------------------------------------------------------------------------------------- */

/* A step that merges `parts` partial results; part p of member b is member p * batch + b of the first two. */
typedef struct clattn__merge_operands {
    i64 parts;
    clattn__operand out_parts, lse_parts, sinks, out, lse;
} clattn__merge_operands;

clattn_status clattn__merge_emit(clattn_plan *, const clattn__merge_operands *);

/* ---- project ---------------------------------------------------------------------------------------------------------- */

/* Steps for y = x w + bias + residual; bias and residual may be absent. y is (batch, heads, len, dim), columns h * dim + d. What is not
 * in f32 is converted. */
typedef struct clattn__project_operands {
    clattn__operand x, w, bias, residual, y;
} clattn__project_operands;

clattn_status clattn__project_emit(clattn_plan *, const clattn__project_operands *);
/* What a product of operands of a type is computed of: that type, if the kernels that would serve f32 take it too, else f32. */
clattn_dtype clattn__project_type(clattn_plan *, clattn_dtype stored);

#endif
