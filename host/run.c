/* Bind host memory to a plan and run it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

clattn_status clattn__plan_check_names(const clattn_plan *plan, const clattn_tensor_id *ids, size_t count, size_t id_stride) {
    bool seen[CLATTN_TENSOR_COUNT] = {false};
    for (size_t n = 0; n < count; n++) {
        const clattn_tensor_id id = *(const clattn_tensor_id *)((const char *)ids + n * id_stride);
        if ((unsigned)id >= CLATTN_TENSOR_COUNT)
            return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "args[%zu]: %d is no tensor", n, (int)id);
        if (id != CLATTN_TENSOR_WORKSPACE && plan->tensors[id].dtype == CLATTN_ABSENT)
            return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "args[%zu]: this plan (%s) has no tensor %s", n, plan->name,
                                clattn_tensor_name(id));
        if (seen[id])
            return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "args[%zu]: %s is given twice", n, clattn_tensor_name(id));
        seen[id] = true;
    }
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++)
        if (plan->tensors[id].dtype != CLATTN_ABSENT && !seen[id])
            return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "args: %s is missing", clattn_tensor_name(id));
    return CLATTN_OK;
}

static clattn_status check_memory(const clattn_plan *plan, const clattn_arg *arg) {
    const char *name = clattn_tensor_name(arg->id);
    const bool workspace = arg->id == CLATTN_TENSOR_WORKSPACE;
    const size_t need = workspace ? plan->workspace_bytes : clattn__tensor_span(&plan->tensors[arg->id]);
    const size_t align = workspace ? 64 : clattn__dtype_size(plan->tensors[arg->id].dtype);
    if (!arg->data && need)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s: the pointer is NULL, the view needs %zu bytes", name, need);
    if ((uintptr_t)arg->data % align)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s: the pointer %p is not a multiple of %zu", name, arg->data,
                            align);
    if (workspace && arg->bytes < need)
        return clattn__fail(plan->context, CLATTN_ERROR_WORKSPACE, "workspace: %zu bytes given, %zu needed", arg->bytes, need);
    if (arg->bytes && arg->bytes < need)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s: %zu bytes given, the view needs %zu", name, arg->bytes,
                            need);
    return CLATTN_OK;
}

clattn_tensor clattn__plan_view(const clattn_plan *plan, clattn_tensor_id id) {
    if (id != CLATTN_TENSOR_WORKSPACE) return plan->tensors[id];
    return clattn_tensor_matrix(CLATTN_F32, 1, (int64_t)(plan->workspace_bytes / sizeof(float)));
}

clattn_status clattn__plan_check_alias(const clattn_plan *plan, const clattn__binding *bindings, size_t count) {
    for (size_t a = 0; a < count; a++) {
        const clattn_tensor_id id = bindings[a].id;
        const clattn_tensor view = clattn__plan_view(plan, id);
        if (plan->access[id] == CLATTN__READ && id != CLATTN_TENSOR_WORKSPACE) continue;
        for (size_t b = 0; b < count; b++) {
            const clattn_tensor other = clattn__plan_view(plan, bindings[b].id);
            if (a == b || bindings[a].object != bindings[b].object) continue;
            if (clattn__tensors_share(&view, bindings[a].address, &other, bindings[b].address))
                return clattn__fail(plan->context, CLATTN_ERROR_ALIAS, "%s at %#zx overlaps %s at %#zx", clattn_tensor_name(id),
                                    (size_t)bindings[a].address, clattn_tensor_name(bindings[b].id),
                                    (size_t)bindings[b].address);
        }
    }
    return CLATTN_OK;
}

clattn_status clattn_plan_run(clattn_plan *plan, const clattn_arg *args, size_t count) {
    if (!plan) return CLATTN_ERROR_ARGUMENT;
    if (!args && count) return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "args is NULL, count is %zu", count);
    clattn_status status = clattn__plan_check_names(plan, count ? &args->id : NULL, count, sizeof *args);
    for (size_t n = 0; n < count && status == CLATTN_OK; n++) status = check_memory(plan, &args[n]);
    if (status != CLATTN_OK) return status;
    clattn__binding bindings[CLATTN_TENSOR_COUNT] = {{0}};
    for (size_t n = 0; n < count; n++) bindings[n] = (clattn__binding){args[n].id, NULL, args[n].data};
    status = clattn__plan_check_alias(plan, bindings, count);
    if (status != CLATTN_OK) return status;

    void *tensors[CLATTN_TENSOR_COUNT] = {NULL};
    for (size_t n = 0; n < count; n++) tensors[args[n].id] = args[n].data;
    if (plan->op->check) status = plan->op->check(plan, tensors);
    return status == CLATTN_OK ? plan->context->backend->run(plan, tensors) : status;
}

clattn_status clattn__plan_own_workspace(clattn_plan *plan, void **workspace) {
    if (*workspace || plan->workspace_bytes == 0) return CLATTN_OK;
    if (!plan->workspace) plan->workspace = aligned_alloc(64, plan->workspace_bytes);
    if (!plan->workspace)
        return clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for a workspace of %zu bytes", plan->workspace_bytes);
    *workspace = plan->workspace;
    return CLATTN_OK;
}

clattn_status clattn_attention_f32(clattn_context *context, int64_t batch, int64_t heads_q, int64_t heads_kv, int64_t len_q,
                                   int64_t len_kv, int64_t head_dim, int causal, const float *q, const float *k, const float *v,
                                   float *out) {
    clattn_context *own = NULL;
    if (!context) {
        clattn_status status = clattn_context_create(NULL, &own);
        if (status != CLATTN_OK) return status;
        context = own;
    }
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.out = clattn_tensor_bhld(CLATTN_F32, batch, heads_q, len_q, head_dim);
    desc.k = desc.v = clattn_tensor_bhld(CLATTN_F32, batch, heads_kv, len_kv, head_dim);
    desc.options.causal = causal != 0;
    const clattn_arg args[] = {
        {CLATTN_TENSOR_Q, (void *)q, 0},
        {CLATTN_TENSOR_K, (void *)k, 0},
        {CLATTN_TENSOR_V, (void *)v, 0},
        {CLATTN_TENSOR_OUT, out, 0},
    };
    clattn_status status = clattn_attention(context, &desc, NULL, args, sizeof args / sizeof *args);
    clattn_context_destroy(own);
    return status;
}
