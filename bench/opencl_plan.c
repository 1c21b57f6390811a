/* Plans on our own buffers and profiling queue; copies between host and device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "opencl.h"

#if !CLATTN_HAVE_OPENCL

bool bench_opencl_plan(bench_candidate *candidate, clattn_plan *plan, bench_error *error) {
    (void)candidate;
    clattn_plan_destroy(plan);
    return bench_fail(error, "this build has no OpenCL");
}

bool bench_candidate_copy(bench_candidate *candidate, bench_device *device, bench_problem *problem, bool to_device,
                          bench_error *error) {
    (void)candidate, (void)device, (void)problem, (void)to_device;
    return bench_fail(error, "host memory needs no copies");
}

#else

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "opencl_state.h"

static double event_time(bench_opencl *cl, cl_event event, cl_profiling_info what) {
    cl_ulong ns = 0;
    return cl->api.GetEventProfilingInfo(event, what, sizeof ns, &ns, NULL) == CL_SUCCESS ? (double)ns * 1e-6 : NAN;
}

bool bench_opencl_wait(bench_opencl *cl, cl_event first, cl_event last, double start, bench_time *time, bench_error *error) {
    cl_int code = cl->api.WaitForEvents(1, &last);
    time->wall_ms = bench_now_ms() - start;
    double end = event_time(cl, last, CL_PROFILING_COMMAND_END);
    time->event_ms =
        end - (first ? event_time(cl, first, CL_PROFILING_COMMAND_END) : event_time(cl, last, CL_PROFILING_COMMAND_START));
    if (first) cl->api.ReleaseEvent(first);
    cl->api.ReleaseEvent(last);
    return code == CL_SUCCESS || bench_opencl_fail(error, "clWaitForEvents", code);
}

/* ---- buffers ------------------------------------------------------------------------------------------------------- */

bool bench_opencl_buffers_create(bench_opencl *cl, const bench_problem *problem, bench_opencl_buffers *buffers,
                                 bench_error *error) {
    *buffers = (bench_opencl_buffers){0};
    for (size_t i = 0; i < problem->arg_count; i++) {
        const clattn_arg *arg = &problem->args[i];
        buffers->args[i].id = arg->id;
        buffers->count = i + 1;
        if (arg->bytes == 0) continue;
        cl_int code;
        buffers->args[i].mem = cl->api.CreateBuffer(cl->context, CL_MEM_READ_WRITE, arg->bytes, NULL, &code);
        if (!buffers->args[i].mem) return bench_opencl_fail(error, "clCreateBuffer", code);
    }
    return true;
}

void bench_opencl_buffers_free(bench_opencl *cl, bench_opencl_buffers *buffers) {
    for (size_t i = 0; i < buffers->count; i++)
        if (buffers->args[i].mem) cl->api.ReleaseMemObject(buffers->args[i].mem);
    *buffers = (bench_opencl_buffers){0};
}

bool bench_opencl_upload(bench_opencl *cl, const bench_problem *problem, const bench_opencl_buffers *buffers, bool output,
                         bench_error *error) {
    for (size_t i = 0; i + !output < problem->arg_count; i++) {
        const clattn_arg *arg = &problem->args[i];
        if (arg->bytes == 0) continue;
        cl_int code =
            cl->api.EnqueueWriteBuffer(cl->queue, buffers->args[i].mem, CL_TRUE, 0, arg->bytes, arg->data, 0, NULL, NULL);
        if (code != CL_SUCCESS) return bench_opencl_fail(error, "clEnqueueWriteBuffer", code);
    }
    return true;
}

bool bench_opencl_download(bench_opencl *cl, const bench_problem *problem, const bench_opencl_buffers *buffers,
                           bench_error *error) {
    const clattn_arg *arg = &problem->args[problem->arg_count - 1];
    cl_mem mem = buffers->args[problem->arg_count - 1].mem;
    if (arg->bytes == 0) return true;
    cl_int code = cl->api.EnqueueReadBuffer(cl->queue, mem, CL_TRUE, 0, arg->bytes, arg->data, 0, NULL, NULL);
    return code == CL_SUCCESS || bench_opencl_fail(error, "clEnqueueReadBuffer", code);
}

/* ---- plans --------------------------------------------------------------------------------------------------------- */

typedef struct plan_state {
    clattn_plan *plan;
    bench_opencl_buffers buffers;
} plan_state;

static bool run_plan(bench_candidate *candidate, bench_time *time, bench_error *error) {
    plan_state *state = candidate->state;
    bench_opencl *cl = candidate->device->cl;
    cl_event first = NULL, last = NULL;
    double start = bench_now_ms();
    cl_int code = cl->api.EnqueueMarkerWithWaitList(cl->queue, 0, NULL, &first);
    if (code != CL_SUCCESS) return bench_opencl_fail(error, "clEnqueueMarkerWithWaitList", code);
    if (clattn_cl_plan_enqueue(state->plan, cl->queue, state->buffers.args, state->buffers.count, 0, NULL, &last) == CLATTN_OK)
        return bench_opencl_wait(cl, first, last, start, time, error);
    char text[512];
    clattn_context_error(candidate->device->context, text, sizeof text);
    cl->api.ReleaseEvent(first);
    return bench_fail(error, "%s", text);
}

static bool fetch_plan(bench_candidate *candidate, bench_error *error) {
    plan_state *state = candidate->state;
    return bench_opencl_download(candidate->device->cl, candidate->problem, &state->buffers, error);
}

static void release_plan(bench_candidate *candidate) {
    plan_state *state = candidate->state;
    clattn_plan_destroy(state->plan);
    bench_opencl_buffers_free(candidate->device->cl, &state->buffers);
    free(state);
}

static const bench_candidate_class opencl_plan = {.run = run_plan, .fetch = fetch_plan, .release = release_plan};

bool bench_opencl_plan(bench_candidate *candidate, clattn_plan *plan, bench_error *error) {
    bench_opencl *cl = candidate->device->cl;
    plan_state *state = calloc(1, sizeof *state);
    if (!state) {
        clattn_plan_destroy(plan);
        return bench_fail(error, "out of memory");
    }
    state->plan = plan;
    candidate->state = state;
    candidate->class = &opencl_plan;
    bench_problem_poison(candidate->problem);
    if (bench_opencl_buffers_create(cl, candidate->problem, &state->buffers, error) &&
        bench_opencl_upload(cl, candidate->problem, &state->buffers, true, error))
        return true;
    bench_candidate_release(candidate);
    return false;
}

/* ---- copies -------------------------------------------------------------------------------------------------------- */

static bool run_upload(bench_candidate *candidate, bench_time *time, bench_error *error) {
    double start = bench_now_ms();
    bool right = bench_opencl_upload(candidate->device->cl, candidate->problem, candidate->state, false, error);
    *time = (bench_time){bench_now_ms() - start, NAN};
    return right;
}

static bool run_download(bench_candidate *candidate, bench_time *time, bench_error *error) {
    double start = bench_now_ms();
    bool right = bench_opencl_download(candidate->device->cl, candidate->problem, candidate->state, error);
    *time = (bench_time){bench_now_ms() - start, NAN};
    return right;
}

static void release_copy(bench_candidate *candidate) {
    bench_opencl_buffers_free(candidate->device->cl, candidate->state);
    free(candidate->state);
}

static const bench_candidate_class upload_copy = {.run = run_upload, .release = release_copy};
static const bench_candidate_class download_copy = {.run = run_download, .release = release_copy};

bool bench_candidate_copy(bench_candidate *candidate, bench_device *device, bench_problem *problem, bool to_device,
                          bench_error *error) {
    *candidate = (bench_candidate){.device = device,
                                   .problem = problem,
                                   .contrast = "copies",
                                   .workspace_bytes = -1,
                                   .launches = -1,
                                   .dependent_steps = -1};
    snprintf(candidate->path, sizeof candidate->path, "%s", to_device ? "host to device" : "device to host");
    for (size_t i = 0; i < problem->arg_count; i++)
        if (to_device == (i + 1 < problem->arg_count)) candidate->bytes += (double)problem->args[i].bytes;
    bench_opencl_buffers *buffers = calloc(1, sizeof *buffers);
    if (!buffers) return bench_fail(error, "out of memory");
    candidate->state = buffers;
    candidate->class = to_device ? &upload_copy : &download_copy;
    if (bench_opencl_buffers_create(device->cl, problem, buffers, error) &&
        bench_opencl_upload(device->cl, problem, buffers, true, error))
        return true;
    bench_candidate_release(candidate);
    return false;
}

#endif
