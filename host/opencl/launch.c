/* A plan's steps on a command queue: arguments, geometry, and the events that chain them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every launch waits for the one before it: through its event on an out-of-order queue, through the queue on an in-order one.
 * Nothing here blocks.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../split.h"
#include "opencl.h"

/* ---- the plan's state ---------------------------------------------------------------------------------------------- */

clattn__opencl_plan *clattn__opencl_plan_state(clattn_plan *plan) {
    if (!plan->state) plan->state = calloc(1, sizeof(clattn__opencl_plan));
    if (!plan->state) clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for the OpenCL side of a plan");
    return plan->state;
}

/* Let go of the last run in the workspace once it has ended: had it failed, whoever waits for it would fail too. */
static cl_event last_user(clattn_plan *plan) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    clattn__opencl_plan *state = plan->state;
    cl_int progress = CL_COMPLETE;
    if (!state->last_user) return NULL;
    cl_int code = cl->api.GetEventInfo(state->last_user, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof progress, &progress, NULL);
    if (code == CL_SUCCESS && progress > CL_COMPLETE) return state->last_user;
    cl->api.ReleaseEvent(state->last_user);
    state->last_user = NULL;
    return NULL;
}

clattn_status clattn__opencl_own_workspace(clattn_plan *plan, clattn_cl_arg *bound, cl_event *after) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    clattn__opencl_plan *state = clattn__opencl_plan_state(plan);
    if (!state) return CLATTN_ERROR_MEMORY;
    if (!state->workspace && plan->workspace_bytes > 0) {
        cl_int code;
        state->workspace = cl->api.CreateBuffer(cl->cl, CL_MEM_READ_WRITE, plan->workspace_bytes, NULL, &code);
        if (!state->workspace) return clattn__opencl_fail_buffer(plan->context, "the workspace", plan->workspace_bytes, code);
    }
    *bound = (clattn_cl_arg){CLATTN_TENSOR_WORKSPACE, state->workspace, 0};
    *after = last_user(plan);
    return CLATTN_OK;
}

cl_mem clattn__opencl_kept_buffer(clattn_plan *plan, int n, size_t size) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    clattn__opencl_plan *state = clattn__opencl_plan_state(plan);
    if (!state) return NULL;
    if (state->buffers[n].size >= size) return state->buffers[n].mem;
    if (state->buffers[n].mem) cl->api.ReleaseMemObject(state->buffers[n].mem);
    state->buffers[n].size = 0;
    cl_int code;
    state->buffers[n].mem = cl->api.CreateBuffer(cl->cl, CL_MEM_READ_WRITE, size, NULL, &code);
    if (!state->buffers[n].mem)
        clattn__opencl_fail_buffer(plan->context, "a tensor", size, code);
    else
        state->buffers[n].size = size;
    return state->buffers[n].mem;
}

/* ---- launches ------------------------------------------------------------------------------------------------------ */

typedef struct launch_chain {
    clattn_plan *plan;
    const clattn_cl_arg *bound;
    cl_command_queue queue;
    bool in_order;
    cl_uint wait_count; /* what the next launch waits for */
    const cl_event *wait_list;
    cl_event last;
} launch_chain;

/* Where the n-th buffer of a step begins: the memory object, and elements into it. */
static clattn__matrix step_buffer(const launch_chain *chain, const clattn__step *step, int n) {
    const clattn__place *place = &step->buffers[n];
    if (place->where == CLATTN__IN_PIECE) {
        const clattn__opencl_plan *piece = chain->plan->split->pieces[place->piece].plan->state;
        return (clattn__matrix){piece->buffers[place->tensor].mem, 0};
    }
    const clattn_cl_arg *arg = &chain->bound[place->where == CLATTN__IN_WORKSPACE ? CLATTN_TENSOR_WORKSPACE : place->tensor];
    return (clattn__matrix){arg->mem, (arg->offset + place->offset) / place->element};
}

static void chain_advance(launch_chain *chain, cl_event done) {
    clattn__opencl *cl = clattn__opencl_of(chain->plan->context);
    if (chain->last) cl->api.ReleaseEvent(chain->last);
    chain->last = done;
    chain->wait_count = chain->in_order ? 0 : 1;
    chain->wait_list = chain->in_order ? NULL : &chain->last;
}

/* Groups walk the work with a stride, so that any number of them does it; see kernels/params.h. */
static void step_geometry(const clattn_context *context, const clattn__step *step, size_t *global, size_t *local) {
    const i64 work_group = clattn__row_macro(step->row, "WORK_GROUP", 1);
    i64 groups = step->params.groups, limit = INT32_MAX / work_group; /* drivers count work-items in 32 bits */
    if (context->work_groups > 0 && context->work_groups < limit) limit = context->work_groups;
    if (groups > limit) groups = limit;
    *local = (size_t)work_group;
    *global = (size_t)(groups * work_group);
}

static clattn_status set_buffers(const launch_chain *chain, clattn__step *step) {
    clattn_context *context = chain->plan->context;
    clattn__opencl *cl = clattn__opencl_of(context);
    for (int n = 0; n < clattn__roles[step->row->role].buffers; n++) {
        const clattn__matrix buffer = step_buffer(chain, step, n);
        step->params.base[n] = (i64)buffer.offset;
        /* An empty tensor has no memory: NULL, which the kernel does not follow. */
        cl_int code = cl->api.SetKernelArg(step->prepared, (cl_uint)n, sizeof(cl_mem), buffer.mem ? &buffer.mem : NULL);
        if (code != CL_SUCCESS) return clattn__opencl_fail(context, "clSetKernelArg of a buffer", code);
    }
    return CLATTN_OK;
}

static clattn_status launch_kernel(launch_chain *chain, clattn__step *step) {
    clattn_context *context = chain->plan->context;
    clattn__opencl *cl = clattn__opencl_of(context);
    const clattn__role_info *role = &clattn__roles[step->row->role];
    size_t global, local;
    step_geometry(context, step, &global, &local);
    clattn_status status = set_buffers(chain, step);
    for (i64 n = 0; n < step->repeat && status == CLATTN_OK; n++) {
        clattn__params params = step->params;
        params.step = n;
        cl_event done;
        const char *call = "clSetKernelArg of the parameters";
        cl_int code = cl->api.SetKernelArg(step->prepared, (cl_uint)role->buffers, role->params_size, &params);
        if (code == CL_SUCCESS) {
            call = "clEnqueueNDRangeKernel";
            code = cl->api.EnqueueNDRangeKernel(chain->queue, step->prepared, 1, NULL, &global, &local, chain->wait_count,
                                                chain->wait_list, &done);
        }
        if (code != CL_SUCCESS) return clattn__opencl_fail(context, call, code);
        chain_advance(chain, done);
    }
    return status;
}

/* CLBlast takes no wait list: a barrier holds its kernels back. */
static clattn_status launch_clblast(launch_chain *chain, const clattn__step *step) {
    clattn_context *context = chain->plan->context;
    clattn__opencl *cl = clattn__opencl_of(context);
    clattn__gemm gemm;
    if (!clattn__project_gemm(&step->params.project, &gemm))
        return clattn__fail(context, CLATTN_ERROR_INTERNAL, "%s was chosen for what is no plain product", step->row->name);
    if (chain->wait_count > 0) {
        cl_int code = cl->api.EnqueueBarrierWithWaitList(chain->queue, chain->wait_count, chain->wait_list, NULL);
        if (code != CL_SUCCESS) return clattn__opencl_fail(context, "clEnqueueBarrierWithWaitList", code);
    }
    cl_event done = NULL;
    int code = clattn__clblast_sgemm(&cl->clblast, chain->queue, &gemm, step_buffer(chain, step, 0),
                                     step_buffer(chain, step, 1), step_buffer(chain, step, 4), &done);
    if (code != 0) return clattn__opencl_fail(context, "CLBlastSgemm", code);
    chain_advance(chain, done);
    return CLATTN_OK;
}

/* A plan of nothing (an empty output) still owes its caller an event. */
static clattn_status launch_nothing(launch_chain *chain) {
    clattn__opencl *cl = clattn__opencl_of(chain->plan->context);
    cl_event done;
    cl_int code = cl->api.EnqueueMarkerWithWaitList(chain->queue, chain->wait_count, chain->wait_list, &done);
    if (code != CL_SUCCESS) return clattn__opencl_fail(chain->plan->context, "clEnqueueMarkerWithWaitList", code);
    chain_advance(chain, done);
    return CLATTN_OK;
}

clattn_status clattn__opencl_launch_steps(clattn_plan *plan, cl_command_queue queue,
                                          const clattn_cl_arg bound[CLATTN_TENSOR_COUNT], size_t first, size_t end,
                                          cl_uint wait_count, const cl_event *wait_list, cl_event *last) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    cl_command_queue_properties properties = 0;
    *last = NULL;
    cl_int code = cl->api.GetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (code != CL_SUCCESS) return clattn__opencl_fail(plan->context, "clGetCommandQueueInfo", code);
    launch_chain chain = {
        .plan = plan,
        .bound = bound,
        .queue = queue,
        .in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
        .wait_count = wait_count,
        .wait_list = wait_list,
    };
    clattn_status status = CLATTN_OK;
    for (size_t n = first; n < end && status == CLATTN_OK; n++) {
        clattn__step *step = &plan->steps[n];
        const bool clblast = step->row->family == CLATTN__FAMILY_CLBLAST;
        status = clblast ? launch_clblast(&chain, step) : launch_kernel(&chain, step);
    }
    if (status == CLATTN_OK && first == end) status = launch_nothing(&chain);
    *last = chain.last;
    return status;
}

clattn_status clattn__opencl_launch(clattn_plan *plan, cl_command_queue queue, const clattn_cl_arg bound[CLATTN_TENSOR_COUNT],
                                    cl_uint wait_count, const cl_event *wait_list, cl_event *last) {
    if (plan->split) return clattn__opencl_launch_split(plan, queue, bound, wait_count, wait_list, last);
    return clattn__opencl_launch_steps(plan, queue, bound, 0, plan->step_count, wait_count, wait_list, last);
}
