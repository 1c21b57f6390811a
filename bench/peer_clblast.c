/* Unfused attention by CLBlast: its GEMM, and between the two products clattn's mask and softmax kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "opencl.h"

#if !CLATTN_HAVE_OPENCL

bool bench_candidate_clblast(bench_candidate *candidate, bench_device *device, bench_problem *problem, bench_error *error) {
    (void)candidate, (void)device, (void)problem;
    return bench_fail(error, "this build has no OpenCL");
}

#else

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../host/opencl/opencl.h"
#include "opencl_state.h"

typedef struct clblast_state {
    clattn__clblast clblast;
    bench_opencl_buffers buffers;
    clattn_plan *staged;    /* whose workspace layout, mask and softmax are used */
    clattn_plan middle;     /* the same plan with those steps alone */
    size_t scores, weights; /* bytes into the workspace */
    cl_mem workspace;
} clblast_state;

static const clattn__step *find_step(const clattn_plan *plan, clattn__role role) {
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].row->role == role) return &plan->steps[i];
    return NULL;
}

/* One product a head: scores = Q K^T, or out = weights V. */
static bool multiply(bench_candidate *candidate, bool scores, cl_event *last, bench_error *error) {
    clblast_state *state = candidate->state;
    bench_opencl *cl = candidate->device->cl;
    const bench_shape *s = &candidate->problem->shape;
    const clattn_cl_arg *args = state->buffers.args;
    const size_t len_q = (size_t)s->len_q, len_kv = (size_t)s->len_kv, dim = (size_t)s->head_dim, vdim = (size_t)s->value_dim;
    const clattn__gemm gemm = scores ? (clattn__gemm){len_q, len_kv, dim, dim, dim, len_kv, true}
                                     : (clattn__gemm){len_q, vdim, len_kv, len_kv, vdim, vdim, false};
    for (i64 head = 0; head < s->batch * s->heads_q; head++) {
        const size_t kv = (size_t)(head / s->heads_q * s->heads_kv + head % s->heads_q / (s->heads_q / s->heads_kv));
        const size_t h = (size_t)head, matrix = (scores ? state->scores : state->weights) / sizeof(float) + h * len_q * len_kv;
        const clattn__matrix q = {args[0].mem, h * len_q * dim}, k = {args[1].mem, kv * len_kv * dim},
                             v = {args[2].mem, kv * len_kv * vdim}, out = {args[3].mem, h * len_q * vdim},
                             square = {state->workspace, matrix};
        if (*last) cl->api.ReleaseEvent(*last), *last = NULL;
        int code = scores ? clattn__clblast_sgemm(&state->clblast, cl->queue, &gemm, q, k, square, last)
                          : clattn__clblast_sgemm(&state->clblast, cl->queue, &gemm, square, v, out, last);
        if (code != 0) return bench_fail(error, "CLBlastSgemm: %d", code);
    }
    return true;
}

static bool enqueue_all(bench_candidate *candidate, cl_event *last, bench_error *error) {
    clblast_state *state = candidate->state;
    bench_opencl *cl = candidate->device->cl;
    clattn_cl_arg bound[CLATTN_TENSOR_COUNT] = {{0}};
    for (size_t i = 0; i < state->buffers.count; i++) bound[state->buffers.args[i].id] = state->buffers.args[i];
    bound[CLATTN_TENSOR_WORKSPACE] = (clattn_cl_arg){CLATTN_TENSOR_WORKSPACE, state->workspace, 0};
    if (!multiply(candidate, true, last, error)) return false;
    cl->api.ReleaseEvent(*last);
    *last = NULL;
    if (clattn__opencl_launch(&state->middle, cl->queue, bound, 0, NULL, last) != CLATTN_OK)
        return bench_fail(error, "mask and softmax could not be launched");
    return multiply(candidate, false, last, error);
}

static bool run(bench_candidate *candidate, bench_time *time, bench_error *error) {
    bench_opencl *cl = candidate->device->cl;
    cl_event first = NULL, last = NULL;
    double start = bench_now_ms();
    cl_int code = cl->api.EnqueueMarkerWithWaitList(cl->queue, 0, NULL, &first);
    if (code != CL_SUCCESS) return bench_opencl_fail(error, "clEnqueueMarkerWithWaitList", code);
    if (enqueue_all(candidate, &last, error)) return bench_opencl_wait(cl, first, last, start, time, error);
    cl->api.Finish(cl->queue);
    cl->api.ReleaseEvent(first);
    if (last) cl->api.ReleaseEvent(last);
    return false;
}

static bool fetch(bench_candidate *candidate, bench_error *error) {
    clblast_state *state = candidate->state;
    return bench_opencl_download(candidate->device->cl, candidate->problem, &state->buffers, error);
}

static void release(bench_candidate *candidate) {
    clblast_state *state = candidate->state;
    bench_opencl *cl = candidate->device->cl;
    if (state->workspace) cl->api.ReleaseMemObject(state->workspace);
    bench_opencl_buffers_free(cl, &state->buffers);
    clattn_plan_destroy(state->staged);
    free(state->middle.steps);
    clattn__clblast_close(&state->clblast);
    free(state);
}

static const bench_candidate_class class = {.run = run, .fetch = fetch, .release = release};

/* The staged plan, and of its steps the mask and the softmax. */
static bool make_middle(bench_candidate *candidate, bench_error *error) {
    clblast_state *state = candidate->state;
    const bench_variant staged = {.algorithm = CLATTN_ALGORITHM_STAGED};
    const bench_problem *problem = candidate->problem;
    if (bench_plan_create(candidate->device->context, problem->shape.op, &problem->desc, staged, &state->staged) != CLATTN_OK)
        return bench_fail(error, "the device has no staged kernels");
    const clattn__step *scores = find_step(state->staged, CLATTN__ROLE_SCORES);
    const clattn__step *values = find_step(state->staged, CLATTN__ROLE_WEIGHTED_VALUES);
    state->middle = *state->staged;
    state->middle.step_count = 0;
    state->middle.steps = calloc(state->staged->step_count + 1, sizeof *state->middle.steps);
    if (!state->middle.steps || !scores || !values) return bench_fail(error, "the staged plan has no scores or no values");
    for (size_t i = 0; i < state->staged->step_count; i++) {
        clattn__role role = state->staged->steps[i].row->role;
        if (role == CLATTN__ROLE_MASK || role == CLATTN__ROLE_SOFTMAX)
            state->middle.steps[state->middle.step_count++] = state->staged->steps[i];
    }
    state->scores = scores->buffers[2].offset;
    state->weights = values->buffers[0].offset;
    return true;
}

static bool make_buffers(bench_candidate *candidate, bench_error *error) {
    clblast_state *state = candidate->state;
    bench_opencl *cl = candidate->device->cl;
    cl_int code;
    if (!bench_opencl_buffers_create(cl, candidate->problem, &state->buffers, error)) return false;
    state->workspace = cl->api.CreateBuffer(cl->context, CL_MEM_READ_WRITE, state->staged->workspace_bytes, NULL, &code);
    if (!state->workspace) return bench_opencl_fail(error, "clCreateBuffer", code);
    return bench_opencl_upload(cl, candidate->problem, &state->buffers, false, error);
}

/* The product takes no factor: this peer's own copy of Q carries the scale, and the peer is spared the work. */
static bool scale_q(bench_candidate *candidate, bench_error *error) {
    clblast_state *state = candidate->state;
    bench_opencl *cl = candidate->device->cl;
    const clattn_arg *q = &candidate->problem->args[0];
    const float scale = (float)(1 / sqrt((double)candidate->problem->shape.head_dim));
    float *scaled = malloc(q->bytes + 1);
    if (!scaled) return bench_fail(error, "out of memory");
    for (size_t i = 0; i < q->bytes / sizeof(float); i++) scaled[i] = scale * ((const float *)q->data)[i];
    cl_int code =
        cl->api.EnqueueWriteBuffer(cl->queue, state->buffers.args[0].mem, CL_TRUE, 0, q->bytes, scaled, 0, NULL, NULL);
    free(scaled);
    return code == CL_SUCCESS || bench_opencl_fail(error, "clEnqueueWriteBuffer", code);
}

bool bench_candidate_clblast(bench_candidate *candidate, bench_device *device, bench_problem *problem, bench_error *error) {
    *candidate = (bench_candidate){.device = device, .problem = problem, .launches = -1, .dependent_steps = -1};
    if (!device->cl) return bench_fail(error, "CLBlast needs an OpenCL device");
    clblast_state *state = calloc(1, sizeof *state);
    if (!state) return bench_fail(error, "out of memory");
    candidate->state = state;
    candidate->class = &class;
    snprintf(candidate->path, sizeof candidate->path, "clblast unfused");
    snprintf(candidate->algorithm, sizeof candidate->algorithm, "unfused");
    char why[256] = "";
    bool open = clattn__clblast_open(&state->clblast, why, sizeof why);
    if (!open) bench_fail(error, "%s", why);
    if (open && make_middle(candidate, error) && make_buffers(candidate, error) && scale_q(candidate, error)) {
        candidate->workspace_bytes = (int64_t)state->staged->workspace_bytes;
        return true;
    }
    bench_candidate_release(candidate);
    return false;
}

#endif
