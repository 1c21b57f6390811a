/* project_qkv: Q, K and V from X in one call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../reference/reference.h"
#include "ops.h"

/* The kernels take x, w, bias, residual and y as one type. */
static clattn_status emit_typed(clattn_plan *plan, clattn_dtype dtype, const clattn__project_operands *o) {
    const clattn__params params = {.project = {
        .x = clattn__strides(&o->x.view),
        .w = clattn__strides(&o->w.view),
        .y = clattn__strides(&o->y.view),
        .residual = clattn__strides(&o->residual.view),
        .batch = o->x.view.size[0],
        .len = o->x.view.size[2],
        .depth = o->w.view.size[2],
        .columns = o->w.view.size[3],
        .dim = o->y.view.size[3],
        .bias_stride = clattn__strides(&o->bias.view).d,
        .has_bias = o->bias.view.dtype != CLATTN_ABSENT,
        .has_residual = o->residual.view.dtype != CLATTN_ABSENT,
        .dtype = (i32)dtype,
    }};
    const clattn__place buffers[] = {o->x.place, o->w.place, o->bias.place, o->residual.place, o->y.place};
    return clattn__plan_step(plan, CLATTN__ROLE_PROJECT, buffers, &params, 1);
}

/* A product of a type, of any size: of what is asked here, those are not. */
static clattn__params product_of(clattn_dtype dtype) {
    const strides packed = {1, 1, 1, 1};
    return (clattn__params){.project = {.x = packed, .w = packed, .y = packed, .batch = 1, .len = 1, .depth = 1, .columns = 1,
                                        .dim = 1, .dtype = (i32)dtype}};
}

clattn_dtype clattn__project_type(clattn_plan *plan, clattn_dtype stored) {
    if (stored == CLATTN_F32) return stored;
    const clattn__params as_stored = product_of(stored), of_f32 = product_of(CLATTN_F32);
    return clattn__takes(plan, CLATTN__ROLE_PROJECT, &as_stored, &of_f32) ? stored : CLATTN_F32;
}

/* What the product is computed of: the type that all operands have, where a kernel takes it; else f32. */
static clattn_dtype common_type(clattn_plan *plan, const clattn__project_operands *o) {
    const clattn_dtype type = o->x.view.dtype;
    const clattn__operand *const others[] = {&o->w, &o->bias, &o->residual, &o->y};
    for (size_t n = 0; n < sizeof others / sizeof *others; n++)
        if (others[n]->place.where != CLATTN__NOWHERE && others[n]->view.dtype != type) return CLATTN_F32;
    return clattn__project_type(plan, type);
}

clattn_status clattn__project_emit(clattn_plan *plan, const clattn__project_operands *given) {
    clattn__project_operands o = *given;
    const clattn_dtype type = common_type(plan, given);
    clattn__operand *const inputs[] = {&o.x, &o.w, &o.bias, &o.residual};
    clattn_status status = CLATTN_OK;
    for (size_t n = 0; n < sizeof inputs / sizeof *inputs && status == CLATTN_OK; n++)
        status = clattn__convert_emit(plan, type, inputs[n]);
    if (status == CLATTN_OK) status = clattn__plan_working(plan, type, &given->y, &o.y);
    if (status == CLATTN_OK) status = emit_typed(plan, type, &o);
    return status == CLATTN_OK ? clattn__hand_over_emit(plan, &o.y, &given->y) : status;
}

/* One of q, k, v: which tensors it is made of. */
typedef struct product {
    clattn_tensor_id x, w, bias, y;
} product;

static const product products[3] = {
    {CLATTN_TENSOR_X, CLATTN_TENSOR_W_Q, CLATTN_TENSOR_B_Q, CLATTN_TENSOR_Q},
    {CLATTN_TENSOR_X_KV, CLATTN_TENSOR_W_K, CLATTN_TENSOR_B_K, CLATTN_TENSOR_K},
    {CLATTN_TENSOR_X_KV, CLATTN_TENSOR_W_V, CLATTN_TENSOR_B_V, CLATTN_TENSOR_V},
};

static clattn_status declare_product(clattn_plan *plan, const product *ids, const clattn_tensor *x, const clattn_tensor *w,
                                     const clattn_tensor *bias, const clattn_tensor *y) {
    const char *w_name = clattn_tensor_name(ids->w), *y_name = clattn_tensor_name(ids->y);
    if (w->dtype == CLATTN_ABSENT && y->dtype == CLATTN_ABSENT && bias->dtype == CLATTN_ABSENT) return CLATTN_OK;
    clattn_status status = clattn__check_sizes(plan, w_name, w);
    if (status == CLATTN_OK) status = clattn__check_sizes(plan, y_name, y);
    if (status != CLATTN_OK) return status;
    const int64_t columns = w->size[3];
    const clattn__types type = CLATTN__TYPE(plan->desc.project_qkv.x.dtype);
    if (y->size[1] * y->size[3] != columns)
        return clattn__fail(plan->context, CLATTN_ERROR_SHAPE, "%s has %lld heads of %lld and %s has %lld columns", y_name,
                            (long long)y->size[1], (long long)y->size[3], w_name, (long long)columns);
    const clattn__shape shapes[] = {
        {ids->w, w, {1, 1, x->size[3], columns}, type, false, CLATTN__READ, "x's dim rows"},
        {ids->bias, bias, {1, 1, 1, columns}, type, true, CLATTN__READ, "one for each column of the weight"},
        {ids->y, y, {x->size[0], y->size[1], x->size[2], y->size[3]}, type, false, CLATTN__WRITE, "x's batch and len"},
    };
    plan->flops += 2.0 * (double)x->size[0] * (double)x->size[2] * (double)x->size[3] * (double)columns;
    return clattn__declare(plan, shapes, sizeof shapes / sizeof *shapes);
}

static clattn_status project_qkv_validate(clattn_plan *plan) {
    const clattn_project_qkv_desc *d = &plan->desc.project_qkv;
    const clattn_tensor *x_kv = d->x_kv.dtype == CLATTN_ABSENT ? &d->x : &d->x_kv;
    const clattn__shape inputs[] = {
        {CLATTN_TENSOR_X, &d->x, {d->x.size[0], 1, d->x.size[2], d->x.size[3]}, CLATTN__ONLY_F32 | CLATTN__FLOATS_16, false, CLATTN__READ, "one head"},
        {CLATTN_TENSOR_X_KV, &d->x_kv, {d->x.size[0], 1, d->x_kv.size[2], d->x_kv.size[3]}, CLATTN__TYPE(d->x.dtype), true, CLATTN__READ,
         "x's batch, one head"},
    };
    clattn_status status = clattn__declare(plan, inputs, sizeof inputs / sizeof *inputs);
    if (status == CLATTN_OK) status = declare_product(plan, &products[0], &d->x, &d->w_q, &d->b_q, &d->q);
    if (status == CLATTN_OK) status = declare_product(plan, &products[1], x_kv, &d->w_k, &d->b_k, &d->k);
    if (status == CLATTN_OK) status = declare_product(plan, &products[2], x_kv, &d->w_v, &d->b_v, &d->v);
    if (status == CLATTN_OK && d->q.dtype == CLATTN_ABSENT && d->k.dtype == CLATTN_ABSENT && d->v.dtype == CLATTN_ABSENT)
        status = clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "none of q, k and v is given; at least one is needed");
    if (status == CLATTN_OK && d->x_kv.dtype != CLATTN_ABSENT && d->k.dtype == CLATTN_ABSENT && d->v.dtype == CLATTN_ABSENT)
        status = clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "x_kv is given and neither k nor v, which alone are made of it");
    return status;
}

static clattn_status project_qkv_build(clattn_plan *plan) {
    clattn__operand x = clattn__plan_operand(plan, CLATTN_TENSOR_X), x_kv = clattn__plan_operand(plan, CLATTN_TENSOR_X_KV);
    const clattn_dtype stored = x.view.dtype, type = clattn__project_type(plan, stored);
    clattn_status status = clattn__convert_emit(plan, type, &x); /* once for all products */
    if (status == CLATTN_OK) status = clattn__convert_emit(plan, type, &x_kv);
    plan->algorithm = "project";
    for (int n = 0; n < 3; n++) {
        clattn__project_operands o = {
            .x = products[n].x == CLATTN_TENSOR_X_KV && x_kv.place.where != CLATTN__NOWHERE ? x_kv : x,
            .w = clattn__plan_operand(plan, products[n].w),
            .bias = clattn__plan_operand(plan, products[n].bias),
            .y = clattn__plan_operand(plan, products[n].y),
        };
        if (o.y.place.where == CLATTN__NOWHERE) continue;
        if (status == CLATTN_OK) status = clattn__project_emit(plan, &o);
    }
    /* The products do not wait for one another, though for the copies that convert their operands, and the other way round. */
    plan->dependent_steps = plan->launches == 0 ? 0 : stored == type ? 1 : 3;
    return status;
}

static clattn__grid project_qkv_grid(const clattn_plan *plan) { return (clattn__grid){plan->desc.project_qkv.x.size[0], 1}; }

const clattn__operator clattn__operator_project_qkv = {
    .name = "project_qkv",
    .desc_size = sizeof(clattn_project_qkv_desc),
    .validate = project_qkv_validate,
    .reference = clattn__reference_project_qkv,
    .build = project_qkv_build,
    .grid = project_qkv_grid,
};
