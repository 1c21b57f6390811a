/* A run on the caller's queue and buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

/* ---- the caller's objects ------------------------------------------------------------------------------------------ */

static clattn_status check_queue(const clattn_plan *plan, cl_command_queue queue) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    cl_context context = NULL;
    cl_device_id device = NULL;
    if (!queue) return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "queue is NULL");
    cl_int code = cl->api.GetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS) code = cl->api.GetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (code != CL_SUCCESS) return clattn__opencl_fail(plan->context, "clGetCommandQueueInfo", code);
    if (context != cl->cl)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "queue belongs to another cl_context than the plan's");
    if (device != cl->device)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "queue belongs to another device than the plan's");
    return CLATTN_OK;
}

/* A memory object as it concerns us; for a sub-buffer, where it lies in its parent. */
typedef struct memory_info {
    cl_context context;
    cl_mem_object_type type;
    cl_mem root;
    size_t size, offset;
    cl_mem_flags flags;
} memory_info;

static cl_int query_memory(const clattn__opencl_api *api, cl_mem mem, memory_info *out) {
    cl_mem parent = NULL;
    cl_int code = api->GetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof out->context, &out->context, NULL);
    if (code == CL_SUCCESS) code = api->GetMemObjectInfo(mem, CL_MEM_TYPE, sizeof out->type, &out->type, NULL);
    if (code == CL_SUCCESS) code = api->GetMemObjectInfo(mem, CL_MEM_SIZE, sizeof out->size, &out->size, NULL);
    if (code == CL_SUCCESS) code = api->GetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof out->flags, &out->flags, NULL);
    if (code == CL_SUCCESS) code = api->GetMemObjectInfo(mem, CL_MEM_OFFSET, sizeof out->offset, &out->offset, NULL);
    if (code == CL_SUCCESS) code = api->GetMemObjectInfo(mem, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
    out->root = parent ? parent : mem;
    return code;
}

/* ---- arguments ----------------------------------------------------------------------------------------------------- */

static clattn_status check_arg(const clattn_plan *plan, const clattn_cl_arg *arg, memory_info *found) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    clattn_context *context = plan->context;
    const char *name = clattn_tensor_name(arg->id);
    const bool workspace = arg->id == CLATTN_TENSOR_WORKSPACE;
    const clattn_tensor view = clattn__plan_view(plan, arg->id);
    const size_t need = clattn__tensor_span(&view), unit = clattn__dtype_size(view.dtype);
    memset(found, 0, sizeof *found);
    if (!arg->mem && need == 0) return CLATTN_OK;
    if (!arg->mem)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: the buffer is NULL, the view needs %zu bytes", name, need);
    cl_int code = query_memory(&cl->api, arg->mem, found);
    if (code != CL_SUCCESS)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: this is no buffer: %s (%d)", name, clattn__opencl_code(code),
                            code);
    if (found->type != CL_MEM_OBJECT_BUFFER)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: this is no buffer: its CL_MEM_TYPE is 0x%x", name,
                            (unsigned)found->type);
    if (found->context != cl->cl)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: the buffer belongs to another cl_context than the plan's",
                            name);
    if (arg->offset % unit)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: the offset %zu is not a multiple of %zu", name, arg->offset,
                            unit);
    if (arg->offset > found->size || found->size - arg->offset < need)
        return clattn__fail(context, workspace ? CLATTN_ERROR_WORKSPACE : CLATTN_ERROR_ARGUMENT,
                            "%s: the buffer has %zu bytes, the view needs %zu from offset %zu", name, found->size, need,
                            arg->offset);
    if ((workspace || plan->access[arg->id] != CLATTN__READ) && found->flags & CL_MEM_READ_ONLY)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: kernels write it, the buffer is CL_MEM_READ_ONLY", name);
    if (plan->access[arg->id] != CLATTN__WRITE && found->flags & CL_MEM_WRITE_ONLY)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: kernels read it, the buffer is CL_MEM_WRITE_ONLY", name);
    return CLATTN_OK;
}

static clattn_status check_args(const clattn_plan *plan, const clattn_cl_arg *args, size_t count,
                                clattn_cl_arg bound[CLATTN_TENSOR_COUNT]) {
    clattn__binding bindings[CLATTN_TENSOR_COUNT] = {{0}};
    if (!args && count) return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "args is NULL, count is %zu", count);
    clattn_status status = clattn__plan_check_names(plan, count ? &args->id : NULL, count, sizeof *args);
    for (size_t n = 0; n < count && status == CLATTN_OK; n++) {
        memory_info found;
        status = check_arg(plan, &args[n], &found);
        bindings[n] = (clattn__binding){args[n].id, found.root, (const void *)(uintptr_t)(found.offset + args[n].offset)};
        bound[args[n].id] = args[n];
    }
    return status == CLATTN_OK ? clattn__plan_check_alias(plan, bindings, count) : status;
}

/* ---- the plan's own workspace -------------------------------------------------------------------------------------- */

static clattn_status launch_in_own_workspace(clattn_plan *plan, cl_command_queue queue,
                                             clattn_cl_arg bound[CLATTN_TENSOR_COUNT], cl_uint wait_count,
                                             const cl_event *wait_list, cl_event *last) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    cl_event after;
    clattn_status status = clattn__opencl_own_workspace(plan, &bound[CLATTN_TENSOR_WORKSPACE], &after);
    if (status != CLATTN_OK) return status;
    clattn__opencl_plan *state = plan->state;
    cl_event *waits = NULL;
    if (after) {
        waits = malloc((wait_count + (size_t)1) * sizeof *waits);
        if (!waits) return clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for a wait list");
        if (wait_count > 0) memcpy(waits, wait_list, wait_count * sizeof *waits);
        waits[wait_count++] = after;
        wait_list = waits;
    }
    status = clattn__opencl_launch(plan, queue, bound, wait_count, wait_list, last);
    free(waits);
    /* Even after a failure: launches that were made are using the workspace. */
    if (*last) {
        if (state->last_user) cl->api.ReleaseEvent(state->last_user);
        cl_int code = cl->api.RetainEvent(*last);
        state->last_user = code == CL_SUCCESS ? *last : NULL;
        if (status == CLATTN_OK && code != CL_SUCCESS) status = clattn__opencl_fail(plan->context, "clRetainEvent", code);
        /* The next run may be on another queue, which may only wait for what this one has submitted. */
        code = cl->api.Flush(queue);
        if (status == CLATTN_OK && code != CL_SUCCESS) status = clattn__opencl_fail(plan->context, "clFlush", code);
    }
    return status;
}

/* ---- the run ------------------------------------------------------------------------------------------------------- */

clattn_status clattn_cl_plan_enqueue(clattn_plan *plan, cl_command_queue queue, const clattn_cl_arg *args, size_t count,
                                     cl_uint wait_count, const cl_event *wait_list, cl_event *event) {
    clattn_cl_arg bound[CLATTN_TENSOR_COUNT] = {0};
    if (!plan) return CLATTN_ERROR_ARGUMENT;
    if (plan->context->backend != &clattn__backend_opencl)
        return clattn__fail(plan->context, CLATTN_ERROR_UNSUPPORTED, "this plan is for %s, which has no queues",
                            plan->context->device.info.id);
    if ((wait_count > 0) != (wait_list != NULL))
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "wait_count is %u and wait_list is %s", wait_count,
                            wait_list ? "given" : "NULL");
    for (cl_uint n = 0; n < wait_count; n++) /* which not every driver refuses */
        if (!wait_list[n]) return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "wait_list[%u] is NULL", n);
    clattn_status status = check_queue(plan, queue);
    if (status == CLATTN_OK) status = check_args(plan, args, count, bound);
    if (status != CLATTN_OK) return status;

    cl_event last = NULL;
    if (plan->split || (plan->workspace_bytes > 0 && !bound[CLATTN_TENSOR_WORKSPACE].mem))
        status = launch_in_own_workspace(plan, queue, bound, wait_count, wait_list, &last);
    else
        status = clattn__opencl_launch(plan, queue, bound, wait_count, wait_list, &last);
    if (status == CLATTN_OK && event)
        *event = last;
    else if (last)
        clattn__opencl_of(plan->context)->api.ReleaseEvent(last);
    return status;
}
