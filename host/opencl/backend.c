/* The OpenCL backend's table: kernels of steps, and what plans and contexts give back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "opencl.h"

clattn_status clattn__opencl_fail(clattn_context *context, const char *call, cl_int code) {
    const bool memory =
        code == CL_OUT_OF_HOST_MEMORY || code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_INVALID_BUFFER_SIZE;
    return clattn__fail(context, memory ? CLATTN_ERROR_MEMORY : CLATTN_ERROR_OPENCL, "%s failed: %s (%d)", call,
                        clattn__opencl_code(code), code);
}

clattn_status clattn__opencl_fail_buffer(clattn_context *context, const char *what, size_t bytes, cl_int code) {
    char call[160];
    snprintf(call, sizeof call, "clCreateBuffer of %s, %zu bytes where the device gives at most %llu,", what, bytes,
             (unsigned long long)context->device.info.max_alloc_bytes);
    return clattn__opencl_fail(context, call, code);
}

/* CLBlast builds its kernels at the first product; a product of one element has that done before a run is timed or must not
 * block. */
static clattn_status prepare_clblast(clattn_context *context, const clattn__step *step) {
    clattn__opencl *cl = clattn__opencl_of(context);
    const clattn__gemm one = {.m = 1, .n = 1, .k = 1, .lda = 1, .ldb = 1, .ldc = 1};
    cl_event done = NULL;
    cl_mem mem = NULL;
    cl_int code;
    cl_command_queue queue = cl->api.CreateCommandQueue(cl->cl, cl->device, 0, &code);
    if (queue) mem = cl->api.CreateBuffer(cl->cl, CL_MEM_READ_WRITE, 3 * sizeof(float), NULL, &code);
    if (mem)
        code = clattn__clblast_sgemm(&cl->clblast, queue, &one, (clattn__matrix){mem, 0}, (clattn__matrix){mem, 1},
                                     (clattn__matrix){mem, 2}, &done);
    if (done) {
        code = cl->api.WaitForEvents(1, &done);
        cl->api.ReleaseEvent(done);
    }
    if (mem) cl->api.ReleaseMemObject(mem);
    if (queue) cl->api.ReleaseCommandQueue(queue);
    if (code == CL_SUCCESS) return CLATTN_OK;
    return clattn__fail(context, CLATTN_ERROR_BUILD, "%s: CLBlast fails on this device: %s (%d)", step->row->name,
                        clattn__opencl_code(code), code);
}

static clattn_status opencl_prepare(clattn_plan *plan, clattn__step *step) {
    if (step->row->family == CLATTN__FAMILY_CLBLAST) return prepare_clblast(plan->context, step);
    cl_kernel kernel;
    clattn_status status = clattn__opencl_kernel(plan->context, step, &kernel);
    if (status == CLATTN_OK) step->prepared = kernel;
    return status;
}

static void opencl_release(clattn_context *context, clattn__step *step) {
    if (step->prepared) clattn__opencl_of(context)->api.ReleaseKernel(step->prepared);
    step->prepared = NULL;
}

static void opencl_plan_destroy(clattn_plan *plan) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    clattn__opencl_plan *state = plan->state;
    if (!state) return;
    for (int n = 0; n < CLATTN_TENSOR_COUNT; n++)
        if (state->buffers[n].mem) cl->api.ReleaseMemObject(state->buffers[n].mem);
    if (state->queue) cl->api.ReleaseCommandQueue(state->queue);
    if (state->last_user) cl->api.ReleaseEvent(state->last_user);
    if (state->workspace) cl->api.ReleaseMemObject(state->workspace);
    free(state->staging);
    free(state);
    plan->state = NULL;
}

static void opencl_context_destroy(clattn_context *context) {
    clattn__opencl *cl = clattn__opencl_of(context);
    if (!cl) return;
    clattn__clblast_close(&cl->clblast);
    clattn__opencl_programs_free(cl);
    if (cl->queue) cl->api.ReleaseCommandQueue(cl->queue);
    cl->api.ReleaseContext(cl->cl);
    clattn__opencl_unload(&cl->api);
    pthread_mutex_destroy(&cl->queue_lock);
    pthread_mutex_destroy(&cl->build_lock);
    free(cl->identity);
    free(cl);
    context->state = NULL;
}

const clattn__backend clattn__backend_opencl = {
    .name = "opencl",
    .splits = true,
    .prepare = opencl_prepare,
    .release = opencl_release,
    .run = clattn__opencl_run,
    .keep = clattn__opencl_programs_keep,
    .plan_destroy = opencl_plan_destroy,
    .context_destroy = opencl_context_destroy,
};
