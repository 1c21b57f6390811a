/* merge: partial results over disjoint sets of keys become one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../reference/reference.h"
#include "ops.h"

clattn_status clattn__merge_emit(clattn_plan *plan, const clattn__merge_operands *o) {
    const clattn_tensor *out = &o->out.view;
    const i64 batch = out->size[0];
    clattn__params params = {.merge = {
                                 .out_parts = clattn__strides(&o->out_parts.view),
                                 .lse_parts = clattn__strides(&o->lse_parts.view),
                                 .out = clattn__strides(out),
                                 .lse = clattn__strides(&o->lse.view),
                                 .batch = batch,
                                 .heads = out->size[1],
                                 .len = out->size[2],
                                 .parts = o->parts,
                                 .sinks_b = clattn__strides(&o->sinks.view).b,
                                 .sinks_h = clattn__strides(&o->sinks.view).h,
                                 .value_dim = (i32)out->size[3],
                                 .has_lse = o->lse.place.where != CLATTN__NOWHERE,
                                 .has_sinks = o->sinks.place.where != CLATTN__NOWHERE,
                                 .parts_dtype = (i32)o->out_parts.view.dtype,
                                 .out_dtype = (i32)out->dtype,
                             }};
    params.merge.out_part = batch * params.merge.out_parts.b;
    params.merge.lse_part = batch * params.merge.lse_parts.b;
    const clattn__place buffers[] = {o->out_parts.place, o->lse_parts.place, o->sinks.place, o->out.place, o->lse.place};
    return clattn__plan_step(plan, CLATTN__ROLE_MERGE, buffers, &params, 1);
}

#define FLOATS (CLATTN__ONLY_F32 | CLATTN__TYPE(CLATTN_F16) | CLATTN__TYPE(CLATTN_BF16))

/* How many parts there are: as many as fit a batch that may be 0. */
static int64_t parts_of(const clattn_merge_desc *d) { return d->out.size[0] ? d->out_parts.size[0] / d->out.size[0] : 0; }

static clattn_status merge_validate(clattn_plan *plan) {
    const clattn_merge_desc *d = &plan->desc.merge;
    clattn_status status = clattn__check_sizes(plan, "out_parts", &d->out_parts);
    if (status == CLATTN_OK) status = clattn__check_sizes(plan, "out", &d->out);
    if (status == CLATTN_OK) status = clattn__check_sizes(plan, "sinks", d->sinks.dtype ? &d->sinks : &d->out);
    if (status != CLATTN_OK) return status;
    const int64_t batch = d->out.size[0], heads = d->out.size[1], len = d->out.size[2], dim = d->out.size[3];
    const int64_t members = parts_of(d) * batch;
    if (dim > INT32_MAX)
        return clattn__fail(plan->context, CLATTN_ERROR_OVERFLOW, "out: dim is %lld; it is at most %d", (long long)dim, INT32_MAX);
    const clattn__shape shapes[] = {
        {CLATTN_TENSOR_OUT_PARTS, &d->out_parts, {members, heads, len, dim}, FLOATS, false, CLATTN__READ,
         "a multiple of out's batch, out's heads, len and dim"},
        {CLATTN_TENSOR_LSE_PARTS, &d->lse_parts, {members, heads, len, 1}, CLATTN__ONLY_F32, false, CLATTN__READ,
         "out_parts' batch, heads and len, 1"},
        {CLATTN_TENSOR_SINKS, &d->sinks, {d->sinks.size[0] == 1 ? 1 : batch, heads, 1, 1}, CLATTN__ONLY_F32, true, CLATTN__READ,
         "batch or 1, heads, 1, 1"},
        {CLATTN_TENSOR_OUT, &d->out, {batch, heads, len, dim}, FLOATS, false, CLATTN__WRITE, "out"},
        {CLATTN_TENSOR_LSE, &d->lse, {batch, heads, len, 1}, CLATTN__ONLY_F32, true, CLATTN__WRITE, "out's batch, heads and len, 1"},
    };
    plan->flops = 2.0 * (double)members * (double)heads * (double)len * (double)dim;
    return clattn__declare(plan, shapes, sizeof shapes / sizeof *shapes);
}

static clattn_status merge_build(clattn_plan *plan) {
    const clattn__merge_operands operands = {
        .parts = parts_of(&plan->desc.merge),
        .out_parts = clattn__plan_operand(plan, CLATTN_TENSOR_OUT_PARTS),
        .lse_parts = clattn__plan_operand(plan, CLATTN_TENSOR_LSE_PARTS),
        .sinks = clattn__plan_operand(plan, CLATTN_TENSOR_SINKS),
        .out = clattn__plan_operand(plan, CLATTN_TENSOR_OUT),
        .lse = clattn__plan_operand(plan, CLATTN_TENSOR_LSE),
    };
    plan->algorithm = "merge";
    return clattn__merge_emit(plan, &operands);
}

const clattn__operator clattn__operator_merge = {
    .name = "merge",
    .desc_size = sizeof(clattn_merge_desc),
    .validate = merge_validate,
    .reference = clattn__reference_merge,
    .build = merge_build,
};
