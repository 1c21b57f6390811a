/* Check tensors against the sizes that an operator wants, and declare them in its plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ops.h"

clattn_status clattn__check_sizes(clattn_plan *plan, const char *name, const clattn_tensor *tensor) {
    if (tensor->dtype == CLATTN_ABSENT) return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s is missing", name);
    return clattn__tensor_check(plan->context, name, tensor);
}

static clattn_status refuse_type(clattn_plan *plan, const char *name, clattn_dtype dtype, clattn__types types) {
    clattn__text allowed = {0};
    for (int n = CLATTN_F32; n <= CLATTN_I64; n++)
        if (types & CLATTN__TYPE(n)) clattn__text_add(&allowed, "%s%s", allowed.length ? " or " : "", clattn_dtype_name((clattn_dtype)n));
    clattn_status status = clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s: the type is %s and must be %s", name,
                                        clattn_dtype_name(dtype), allowed.data ? allowed.data : "another");
    clattn__text_free(&allowed);
    return status;
}

static clattn_status declare_one(clattn_plan *plan, const clattn__shape *shape) {
    const char *name = clattn_tensor_name(shape->id);
    if (shape->tensor->dtype == CLATTN_ABSENT && shape->optional) return CLATTN_OK;
    clattn_status status = clattn__check_sizes(plan, name, shape->tensor);
    if (status != CLATTN_OK) return status;
    if (!(shape->types & CLATTN__TYPE(shape->tensor->dtype))) return refuse_type(plan, name, shape->tensor->dtype, shape->types);
    for (int d = 0; d < 4; d++)
        if (shape->tensor->size[d] != shape->size[d])
            return clattn__fail(plan->context, CLATTN_ERROR_SHAPE, "%s: %s is %lld and must be %lld (%s)", name,
                                clattn__dim_names[d], (long long)shape->tensor->size[d], (long long)shape->size[d], shape->what);
    plan->fields[shape->id] = (size_t)((const char *)shape->tensor - (const char *)&plan->desc);
    return clattn__plan_declare(plan, shape->id, shape->tensor, shape->access);
}

clattn_status clattn__declare(clattn_plan *plan, const clattn__shape *shapes, size_t count) {
    clattn_status status = CLATTN_OK;
    for (size_t n = 0; n < count && status == CLATTN_OK; n++) status = declare_one(plan, &shapes[n]);
    return status;
}
