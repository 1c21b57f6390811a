/* Callers with their own cl_context, queue and buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attention_problem.h"
#include "clattn/clattn_opencl.h"

enum { SKIPPED = 77 };

/* ---- the caller's objects ----------------------------------------------------------------------------------------- */

static cl_device_id device, second_device; /* the second only where the platform has one */

#define assert_cl(call) ck_assert_msg((call) == CL_SUCCESS, "%s failed", #call)

static bool find_device(void) {
    cl_platform_id platforms[16];
    cl_uint platform_count = 0;
    if (clGetPlatformIDs(COUNT(platforms), platforms, &platform_count) != CL_SUCCESS) return false;
    for (cl_uint p = 0; p < platform_count && p < COUNT(platforms); p++) {
        cl_device_id devices[2];
        cl_uint count = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 2, devices, &count) != CL_SUCCESS || !count) continue;
        device = devices[0];
        second_device = count > 1 ? devices[1] : NULL;
        return true;
    }
    return false;
}

typedef struct caller {
    cl_context cl;
    cl_command_queue queue;
    clattn_context *context;
} caller;

static cl_context make_cl_context(void) {
    cl_int code;
    cl_context cl = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return cl;
}

static cl_command_queue make_queue(cl_context cl, cl_command_queue_properties properties) {
    cl_int code;
    cl_command_queue queue = clCreateCommandQueue(cl, device, properties, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return queue;
}

static caller caller_make(cl_command_queue_properties properties) {
    caller c = {.cl = make_cl_context()};
    c.queue = make_queue(c.cl, properties);
    char error[512];
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.error = error;
    options.error_size = sizeof error;
    clattn_status status = clattn_cl_context_create(&options, c.cl, device, &c.context);
    ck_assert_msg(status == CLATTN_OK, "%s", error);
    return c;
}

/* Every OpenCL object holds its context: what the library forgot to release would be counted. A driver's thread may still hold a
 * command that it has just finished. */
static cl_uint references_to(cl_context cl) {
    cl_uint references = 0;
    for (int n = 0; n < 500; n++) {
        assert_cl(clGetContextInfo(cl, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references, NULL));
        if (references == 1) break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return references;
}

static void caller_free(caller *c) {
    clattn_context_destroy(c->context);
    assert_cl(clReleaseCommandQueue(c->queue));
    ck_assert_uint_eq(references_to(c->cl), 1);
    assert_cl(clReleaseContext(c->cl));
}

/* A buffer with `offset` bytes of NaN before and 64 after what it is for. */
typedef struct buffer {
    cl_mem mem;
    size_t offset, span;
    float *before;
} buffer;

enum { TAIL = 64 };

static buffer buffer_make(const caller *c, cl_mem_flags flags, size_t offset, const float *data, size_t floats) {
    buffer b = {.offset = offset, .span = floats * sizeof(float)};
    const size_t total = offset + b.span + TAIL;
    b.before = test_alloc(total, 1);
    memset(b.before, 0xff, total); /* NaN */
    if (data) memcpy((char *)b.before + offset, data, b.span);
    cl_int code;
    b.mem = clCreateBuffer(c->cl, flags | CL_MEM_COPY_HOST_PTR, total, b.before, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return b;
}

/* What the buffer's tensor holds; asserts that nothing around it was written. */
static float *buffer_read(const caller *c, const buffer *b) {
    const size_t total = b->offset + b->span + TAIL;
    char *all = test_alloc(total, 1);
    cl_command_queue queue = make_queue(c->cl, 0);
    assert_cl(clEnqueueReadBuffer(queue, b->mem, CL_TRUE, 0, total, all, 0, NULL, NULL));
    assert_cl(clReleaseCommandQueue(queue));
    ck_assert_mem_eq(all, b->before, b->offset);
    ck_assert_mem_eq(all + b->offset + b->span, (char *)b->before + b->offset + b->span, TAIL);
    float *data = test_alloc(b->span, 1);
    memcpy(data, all + b->offset, b->span);
    free(all);
    return data;
}

static bool buffer_untouched(const caller *c, const buffer *b) {
    float *now = buffer_read(c, b);
    const bool same = memcmp(now, (char *)b->before + b->offset, b->span) == 0;
    free(now);
    return same;
}

static void buffer_free(buffer *b) {
    assert_cl(clReleaseMemObject(b->mem));
    free(b->before);
}

/* ---- a problem in buffers ----------------------------------------------------------------------------------------- */

static const attention_case plain_case = {"plain", 2, 4, 2, 37, 53, 24, 24, .causal = 1};

typedef struct job {
    attention_problem problem;
    clattn_plan *plan;
    buffer q, k, v, out;
    clattn_cl_arg args[6];
    size_t count;
    size_t workspace_bytes;
} job;

static job job_make(const caller *c, uint64_t stream, clattn_algorithm algorithm, size_t offset) {
    rng r = rng_make(stream);
    job j = {.problem = attention_problem_make(&plain_case, &r)};
    const attention_case *a = &j.problem.c;
    const int64_t rows = a->batch * a->heads_q * a->len_q, keys = a->batch * a->heads_kv * a->len_kv;
    clattn_attention_desc desc = attention_desc(&j.problem, LAYOUT_BHLD, 0);
    assert_ok(c->context, clattn_plan_create_attention(c->context, &desc, OPTIONS(.algorithm = algorithm), &j.plan));
    clattn_plan_info info = {.struct_size = sizeof info};
    assert_ok(c->context, clattn_plan_get_info(j.plan, &info));
    j.workspace_bytes = info.workspace_bytes;
    float *q = narrowed(j.problem.data[CLATTN_TENSOR_Q], rows * a->head_dim);
    float *k = narrowed(j.problem.data[CLATTN_TENSOR_K], keys * a->head_dim);
    float *v = narrowed(j.problem.data[CLATTN_TENSOR_V], keys * a->value_dim);
    j.q = buffer_make(c, CL_MEM_READ_ONLY, offset, q, (size_t)(rows * a->head_dim));
    j.k = buffer_make(c, CL_MEM_READ_ONLY, 3 * offset, k, (size_t)(keys * a->head_dim));
    j.v = buffer_make(c, CL_MEM_READ_WRITE, 7 * offset, v, (size_t)(keys * a->value_dim));
    free(v);
    free(k);
    free(q);
    j.out = buffer_make(c, CL_MEM_READ_WRITE, 11 * offset, NULL, (size_t)(rows * a->value_dim));
    j.args[j.count++] = (clattn_cl_arg){CLATTN_TENSOR_OUT, j.out.mem, j.out.offset};
    j.args[j.count++] = (clattn_cl_arg){CLATTN_TENSOR_Q, j.q.mem, j.q.offset};
    j.args[j.count++] = (clattn_cl_arg){CLATTN_TENSOR_K, j.k.mem, j.k.offset};
    j.args[j.count++] = (clattn_cl_arg){CLATTN_TENSOR_V, j.v.mem, j.v.offset};
    return j;
}

static void job_assert_done(const caller *c, const job *j, const char *where) {
    float *out = buffer_read(c, &j->out);
    attention_assert_out(out, &j->problem, where);
    free(out);
    ck_assert(buffer_untouched(c, &j->q) && buffer_untouched(c, &j->k) && buffer_untouched(c, &j->v));
}

static void job_free(job *j) {
    clattn_plan_destroy(j->plan);
    buffer_free(&j->q);
    buffer_free(&j->k);
    buffer_free(&j->v);
    buffer_free(&j->out);
    attention_problem_free(&j->problem);
}

static cl_int event_status(cl_event event) {
    cl_int status = -1;
    assert_cl(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

/* ---- runs --------------------------------------------------------------------------------------------------------- */

static const cl_command_queue_properties orders[] = {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
static const clattn_algorithm algorithms[] = {CLATTN_ALGORITHM_FUSED, CLATTN_ALGORITHM_STAGED};

/* Offsets that are a multiple of 4 bytes and of nothing more; the plan's workspace. */
START_TEST(buffers_at_any_offset) {
    caller c = caller_make(orders[_i % 2]);
    static const size_t offsets[] = {0, 4, 20};
    for (size_t n = 0; n < COUNT(offsets); n++) {
        job j = job_make(&c, n, algorithms[_i / 2], offsets[n]);
        cl_event done = NULL;
        assert_ok(c.context, clattn_cl_plan_enqueue(j.plan, c.queue, j.args, j.count, 0, NULL, &done));
        assert_cl(clWaitForEvents(1, &done));
        job_assert_done(&c, &j, "offsets");
        assert_cl(clReleaseEvent(done));
        job_free(&j);
    }
    caller_free(&c);
}
END_TEST

/* A run behind a user event: the call returns, nothing happens before the event, all of it after. */
START_TEST(enqueue_waits_and_does_not_block) {
    caller c = caller_make(orders[_i % 2]);
    job j = job_make(&c, 10, algorithms[_i / 2], 4);
    cl_int code;
    cl_event gates[2] = {clCreateUserEvent(c.cl, &code), clCreateUserEvent(c.cl, &code)}, done = NULL;
    assert_ok(c.context, clattn_cl_plan_enqueue(j.plan, c.queue, j.args, j.count, 2, gates, &done));
    ck_assert_ptr_nonnull(done);
    assert_cl(clFlush(c.queue));
    ck_assert_int_gt(event_status(done), CL_COMPLETE);
    assert_cl(clSetUserEventStatus(gates[0], CL_COMPLETE));
    ck_assert_int_gt(event_status(done), CL_COMPLETE);
    ck_assert(buffer_untouched(&c, &j.out));
    assert_cl(clSetUserEventStatus(gates[1], CL_COMPLETE));
    assert_cl(clWaitForEvents(1, &done));
    job_assert_done(&c, &j, "behind an event");
    cl_uint references = 0;
    assert_cl(clFinish(c.queue));
    assert_cl(clGetEventInfo(gates[0], CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL));
    ck_assert_uint_eq(references, 1);
    assert_cl(clReleaseEvent(gates[0]));
    assert_cl(clReleaseEvent(gates[1]));
    assert_cl(clReleaseEvent(done));
    job_free(&j);
    caller_free(&c);
}
END_TEST

START_TEST(workspace_of_the_caller) {
    caller c = caller_make(orders[_i]);
    job j = job_make(&c, 20, CLATTN_ALGORITHM_STAGED, 4);
    ck_assert_uint_gt(j.workspace_bytes, 0);
    buffer workspace = buffer_make(&c, CL_MEM_READ_WRITE, 64, NULL, j.workspace_bytes / sizeof(float));
    j.args[j.count++] = (clattn_cl_arg){CLATTN_TENSOR_WORKSPACE, workspace.mem, workspace.offset};
    assert_ok(c.context, clattn_cl_plan_enqueue(j.plan, c.queue, j.args, j.count, 0, NULL, NULL));
    assert_cl(clFinish(c.queue));
    job_assert_done(&c, &j, "own workspace");
    ck_assert_msg(!buffer_untouched(&c, &workspace), "the caller's workspace was not used");
    buffer_free(&workspace);
    job_free(&j);
    caller_free(&c);
}
END_TEST

/* Two plans, and each of them twice on other data, enqueued before anything may start. */
START_TEST(plans_in_flight) {
    caller c = caller_make(orders[_i]);
    enum { JOBS = 4 };
    job jobs[JOBS];
    cl_event done[JOBS];
    cl_int code;
    cl_event gate = clCreateUserEvent(c.cl, &code);
    for (int n = 0; n < JOBS; n++) {
        jobs[n] = job_make(&c, 30 + (uint64_t)n, n % 2 ? CLATTN_ALGORITHM_STAGED : CLATTN_ALGORITHM_FUSED, 4);
    }
    for (int n = 0; n < JOBS; n++) {
        assert_ok(c.context, clattn_cl_plan_enqueue(jobs[n % 2].plan, c.queue, jobs[n].args, jobs[n].count, 1, &gate, &done[n]));
    }
    assert_cl(clFlush(c.queue));
    assert_cl(clSetUserEventStatus(gate, CL_COMPLETE));
    assert_cl(clWaitForEvents(JOBS, done));
    for (int n = 0; n < JOBS; n++) {
        job_assert_done(&c, &jobs[n], "in flight");
        assert_cl(clReleaseEvent(done[n]));
        job_free(&jobs[n]);
    }
    assert_cl(clReleaseEvent(gate));
    caller_free(&c);
}
END_TEST

/* One plan's runs on two queues share its workspace and still do not meet in it. */
START_TEST(one_plan_on_two_queues) {
    caller c = caller_make(0);
    cl_command_queue other = make_queue(c.cl, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    job a = job_make(&c, 40, CLATTN_ALGORITHM_STAGED, 4), b = job_make(&c, 41, CLATTN_ALGORITHM_STAGED, 4);
    for (int n = 0; n < 5; n++) {
        assert_ok(c.context, clattn_cl_plan_enqueue(a.plan, c.queue, a.args, a.count, 0, NULL, NULL));
        assert_ok(c.context, clattn_cl_plan_enqueue(a.plan, other, b.args, b.count, 0, NULL, NULL));
    }
    assert_cl(clFinish(c.queue));
    assert_cl(clFinish(other));
    job_assert_done(&c, &a, "one queue");
    job_assert_done(&c, &b, "the other queue");
    job_free(&a);
    job_free(&b);
    assert_cl(clReleaseCommandQueue(other));
    caller_free(&c);
}
END_TEST

/* Plan and context may go as soon as a run is enqueued. */
START_TEST(destroyed_in_flight) {
    caller c = caller_make(orders[_i]);
    job j = job_make(&c, 50, CLATTN_ALGORITHM_STAGED, 4);
    cl_int code;
    cl_event gate = clCreateUserEvent(c.cl, &code), done = NULL;
    assert_ok(c.context, clattn_cl_plan_enqueue(j.plan, c.queue, j.args, j.count, 1, &gate, &done));
    clattn_plan_destroy(j.plan);
    clattn_context_destroy(c.context);
    j.plan = NULL;
    c.context = NULL;
    assert_cl(clSetUserEventStatus(gate, CL_COMPLETE));
    assert_cl(clWaitForEvents(1, &done));
    job_assert_done(&c, &j, "destroyed in flight");
    assert_cl(clReleaseEvent(done));
    assert_cl(clReleaseEvent(gate));
    job_free(&j);
    caller_free(&c);
}
END_TEST

/* Results on the caller's queue are those of host memory on the same device, bitwise. */
START_TEST(host_memory_on_the_callers_context) {
    caller c = caller_make(0);
    job j = job_make(&c, 60, CLATTN_ALGORITHM_FUSED, 4);
    assert_ok(c.context, clattn_cl_plan_enqueue(j.plan, c.queue, j.args, j.count, 0, NULL, NULL));
    assert_cl(clFinish(c.queue));
    float *queued = buffer_read(&c, &j.out);
    attention_results r = attention_run(c.context, &j.problem, LAYOUT_BHLD, CLATTN_ALGORITHM_FUSED, 0);
    const int64_t count = attention_count(&j.problem, CLATTN_TENSOR_OUT);
    float *on_host = narrowed(r.data[CLATTN_TENSOR_OUT], count);
    assert_same(on_host, queued, count, "host memory", "out");
    free(on_host);
    attention_results_free(&r);
    free(queued);
    job_free(&j);
    caller_free(&c);
}
END_TEST

static const clattn_cl_arg empty_args[] = {{CLATTN_TENSOR_Q}, {CLATTN_TENSOR_K}, {CLATTN_TENSOR_V}, {CLATTN_TENSOR_OUT}};

static clattn_plan *empty_plan(const caller *c) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.out = clattn_tensor_bhld(CLATTN_F32, 0, 2, 3, 4);
    desc.k = desc.v = clattn_tensor_bhld(CLATTN_F32, 0, 2, 5, 4);
    clattn_plan *plan;
    assert_ok(c->context, clattn_plan_create_attention(c->context, &desc, NULL, &plan));
    return plan;
}

/* Nothing to compute still gives an event. */
START_TEST(empty_run_gives_an_event) {
    caller c = caller_make(orders[_i]);
    clattn_plan *plan = empty_plan(&c);
    cl_event done = NULL;
    assert_ok(c.context, clattn_cl_plan_enqueue(plan, c.queue, empty_args, COUNT(empty_args), 0, NULL, &done));
    assert_cl(clWaitForEvents(1, &done));
    assert_cl(clReleaseEvent(done));
    clattn_plan_destroy(plan);
    caller_free(&c);
}
END_TEST

/* An lstm with one launch a step: a long chain on an out-of-order queue. */
START_TEST(chain_of_launches) {
    enum { STEPS = 60, HIDDEN = 20, D_IN = 12 };
    caller c = caller_make(orders[_i]);
    clattn_recurrence_desc desc = CLATTN_RECURRENCE_DESC_INIT;
    desc.cell = CLATTN_CELL_LSTM;
    desc.x = clattn_tensor_bhld(CLATTN_F32, 1, 1, STEPS, D_IN);
    desc.w_in = clattn_tensor_matrix(CLATTN_F32, 4 * HIDDEN, D_IN);
    desc.w_h = clattn_tensor_matrix(CLATTN_F32, 4 * HIDDEN, HIDDEN);
    desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 1, STEPS, HIDDEN);
    const clattn_plan_options *options = OPTIONS(.recurrence = CLATTN_RECURRENCE_STEPS);
    rng r = rng_make(70);
    float *x = rng_floats(&r, STEPS * D_IN, 1), *w_in = rng_floats(&r, 4 * HIDDEN * D_IN, 0.3f);
    float *w_h = rng_floats(&r, 4 * HIDDEN * HIDDEN, 0.2f), *on_host = test_alloc(STEPS * HIDDEN, sizeof *on_host);
    const clattn_arg host_args[] = {{CLATTN_TENSOR_X, x, 0}, {CLATTN_TENSOR_W_IN, w_in, 0}, {CLATTN_TENSOR_W_H, w_h, 0},
                                    {CLATTN_TENSOR_OUT, on_host, 0}};
    assert_ok(c.context, clattn_recurrence(c.context, &desc, options, host_args, COUNT(host_args)));
    buffer bx = buffer_make(&c, CL_MEM_READ_ONLY, 4, x, STEPS * D_IN), bi = buffer_make(&c, 0, 8, w_in, 4 * HIDDEN * D_IN);
    buffer bh = buffer_make(&c, 0, 12, w_h, 4 * HIDDEN * HIDDEN), out = buffer_make(&c, 0, 36, NULL, STEPS * HIDDEN);
    const clattn_cl_arg args[] = {{CLATTN_TENSOR_X, bx.mem, bx.offset}, {CLATTN_TENSOR_W_IN, bi.mem, bi.offset},
                                  {CLATTN_TENSOR_W_H, bh.mem, bh.offset}, {CLATTN_TENSOR_OUT, out.mem, out.offset}};
    clattn_plan *plan;
    assert_ok(c.context, clattn_plan_create_recurrence(c.context, &desc, options, &plan));
    assert_ok(c.context, clattn_cl_plan_enqueue(plan, c.queue, args, COUNT(args), 0, NULL, NULL));
    assert_cl(clFinish(c.queue));
    float *queued = buffer_read(&c, &out);
    assert_same(queued, on_host, STEPS * HIDDEN, "a chain of launches", "out");
    clattn_plan_destroy(plan);
    buffer *buffers[] = {&bx, &bi, &bh, &out};
    for (size_t n = 0; n < COUNT(buffers); n++) buffer_free(buffers[n]);
    void *arrays[] = {queued, x, w_in, w_h, on_host};
    for (size_t n = 0; n < COUNT(arrays); n++) free(arrays[n]);
    caller_free(&c);
}
END_TEST

/* ---- contexts ----------------------------------------------------------------------------------------------------- */

START_TEST(context_is_retained_and_given_back) {
    cl_context cl = make_cl_context();
    cl_uint before = 0, during = 0, after = 0;
    clattn_context *context;
    assert_cl(clGetContextInfo(cl, CL_CONTEXT_REFERENCE_COUNT, sizeof before, &before, NULL));
    ck_assert_int_eq(clattn_cl_context_create(NULL, cl, device, &context), CLATTN_OK);
    assert_cl(clGetContextInfo(cl, CL_CONTEXT_REFERENCE_COUNT, sizeof during, &during, NULL));
    ck_assert_uint_eq(during, before + 1);
    clattn_context_destroy(context);
    assert_cl(clGetContextInfo(cl, CL_CONTEXT_REFERENCE_COUNT, sizeof after, &after, NULL));
    ck_assert_uint_eq(after, before);
    assert_cl(clReleaseContext(cl));
}
END_TEST

START_TEST(contexts_that_cannot_be) {
    char error[256];
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.error = error;
    options.error_size = sizeof error;
    cl_context cl = make_cl_context();
    clattn_context *context = (clattn_context *)&options;
    ck_assert_int_eq(clattn_cl_context_create(&options, NULL, device, &context), CLATTN_ERROR_ARGUMENT);
    ck_assert_ptr_null(context);
    ck_assert_ptr_nonnull(strstr(error, "cl_context"));
    ck_assert_int_eq(clattn_cl_context_create(&options, cl, NULL, &context), CLATTN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error, "cl_device_id"));
    ck_assert_int_eq(clattn_cl_context_create(&options, cl, device, NULL), CLATTN_ERROR_ARGUMENT);
    options.device = "native";
    ck_assert_int_eq(clattn_cl_context_create(&options, cl, device, &context), CLATTN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error, "native"));
    options.device = NULL;
    if (second_device) {
        ck_assert_int_eq(clattn_cl_context_create(&options, cl, second_device, &context), CLATTN_ERROR_DEVICE);
        ck_assert_ptr_null(context);
    }
    assert_cl(clReleaseContext(cl));
}
END_TEST

/* ---- runs that cannot be ------------------------------------------------------------------------------------------ */

static void assert_refused(const caller *c, const job *j, cl_command_queue queue, const clattn_cl_arg *args, size_t count,
                           clattn_status status, const char *words) {
    cl_event done = NULL;
    clattn_status got = clattn_cl_plan_enqueue(j->plan, queue, args, count, 0, NULL, &done);
    ck_assert_msg(got == status, "%s: %s instead of %s: %s", words, clattn_status_name(got), clattn_status_name(status),
                  error_text(c->context));
    ck_assert_ptr_null(done);
    char copy[128];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *rest = NULL, *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        ck_assert_msg(strstr(error_text(c->context), word) != NULL, "no \"%s\" in: %s", word, error_text(c->context));
    }
    assert_cl(clFinish(c->queue));
    ck_assert_msg(buffer_untouched(c, &j->out), "%s: out was written", words);
}

START_TEST(arguments_are_refused) {
    caller c = caller_make(0), other = caller_make(0);
    job j = job_make(&c, 80, CLATTN_ALGORITHM_STAGED, 4);
    clattn_cl_arg args[6];
    const size_t all = j.count;
    enum { OUT, Q, K, V };
#define FRESH memcpy(args, j.args, sizeof args)
    FRESH;
    assert_refused(&c, &j, NULL, args, all, CLATTN_ERROR_ARGUMENT, "queue NULL");
    assert_refused(&c, &j, other.queue, args, all, CLATTN_ERROR_ARGUMENT, "queue cl_context");
    assert_refused(&c, &j, c.queue, NULL, 2, CLATTN_ERROR_ARGUMENT, "args NULL 2");
    assert_refused(&c, &j, c.queue, args, all - 1, CLATTN_ERROR_ARGUMENT, "v missing");
    args[K].id = CLATTN_TENSOR_Q;
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ARGUMENT, "q twice");
    args[K].id = CLATTN_TENSOR_H_0;
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ARGUMENT, "h_0");
    FRESH;
    args[V].mem = NULL;
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ARGUMENT, "v NULL");
    FRESH;
    args[V].offset += 2;
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ARGUMENT, "v multiple 4");
    FRESH;
    args[V].offset += TAIL + 4;
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ARGUMENT, "v bytes");
    args[V].offset = SIZE_MAX - 3;
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ARGUMENT, "v bytes");
    FRESH;
    buffer foreign = buffer_make(&other, CL_MEM_READ_WRITE, 0, NULL, 20000);
    args[K].mem = foreign.mem;
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ARGUMENT, "k cl_context");
    FRESH;
    buffer small = buffer_make(&c, CL_MEM_READ_WRITE, 0, NULL, j.workspace_bytes / sizeof(float) - 17);
    args[all] = (clattn_cl_arg){CLATTN_TENSOR_WORKSPACE, small.mem, 0};
    assert_refused(&c, &j, c.queue, args, all + 1, CLATTN_ERROR_WORKSPACE, "workspace bytes");
    FRESH;
    buffer read_only = buffer_make(&c, CL_MEM_READ_ONLY, 0, NULL, 20000);
    args[OUT] = (clattn_cl_arg){CLATTN_TENSOR_OUT, read_only.mem, 0};
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ARGUMENT, "out READ_ONLY");
    FRESH;
    ck_assert_int_eq(clattn_cl_plan_enqueue(NULL, c.queue, args, all, 0, NULL, NULL), CLATTN_ERROR_ARGUMENT);
    ck_assert_int_eq(clattn_cl_plan_enqueue(j.plan, c.queue, args, all, 1, NULL, NULL), CLATTN_ERROR_ARGUMENT);
    cl_event event = NULL;
    ck_assert_int_eq(clattn_cl_plan_enqueue(j.plan, c.queue, args, all, 0, &event, NULL), CLATTN_ERROR_ARGUMENT);
    buffer_free(&read_only);
    buffer_free(&small);
    buffer_free(&foreign);
    job_free(&j);
    caller_free(&other);
    caller_free(&c);
}
END_TEST

START_TEST(overlaps_are_refused) {
    caller c = caller_make(0);
    job j = job_make(&c, 90, CLATTN_ALGORITHM_FUSED, 4);
    clattn_cl_arg args[6];
    const size_t all = j.count;
    enum { OUT, Q, K, V };
    FRESH;
    const size_t pool_floats = (j.out.span + j.v.span) / sizeof(float) + 8;
    buffer pool = buffer_make(&c, CL_MEM_READ_WRITE, 0, NULL, pool_floats);
    cl_command_queue queue = make_queue(c.cl, 0);
    float *v = narrowed(j.problem.data[CLATTN_TENSOR_V], attention_count(&j.problem, CLATTN_TENSOR_V));
    assert_cl(clEnqueueWriteBuffer(queue, pool.mem, CL_TRUE, 0, j.v.span, v, 0, NULL, NULL));
    free(v);
    args[V] = (clattn_cl_arg){CLATTN_TENSOR_V, pool.mem, 0};
    args[OUT] = (clattn_cl_arg){CLATTN_TENSOR_OUT, pool.mem, j.v.span - 4};
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ALIAS, "out v");

    /* The same memory by another name. */
    cl_int code;
    const cl_buffer_region region = {0, j.v.span};
    cl_mem part = clCreateSubBuffer(pool.mem, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    args[V] = (clattn_cl_arg){CLATTN_TENSOR_V, part, 0};
    assert_refused(&c, &j, c.queue, args, all, CLATTN_ERROR_ALIAS, "out v");

    /* Side by side in one buffer, which is allowed; a sub-buffer works like any other. */
    args[OUT].offset = j.v.span;
    assert_ok(c.context, clattn_cl_plan_enqueue(j.plan, c.queue, args, all, 0, NULL, NULL));
    float *out = test_alloc(j.out.span, 1);
    assert_cl(clEnqueueReadBuffer(c.queue, pool.mem, CL_TRUE, j.v.span, j.out.span, out, 0, NULL, NULL));
    attention_assert_out(out, &j.problem, "side by side");
    free(out);
    assert_cl(clReleaseMemObject(part));
    assert_cl(clReleaseCommandQueue(queue));
    buffer_free(&pool);
    job_free(&j);
    caller_free(&c);
}
END_TEST
#undef FRESH

/* A call of OpenCL that fails, here for an event of another cl_context: its name and code are in the sentence. The run is an
 * empty one, whose marker PoCL checks more strictly than a kernel. */
START_TEST(opencl_errors_are_named) {
    caller c = caller_make(0), other = caller_make(0);
    cl_int code;
    cl_event foreign = clCreateUserEvent(other.cl, &code), done = NULL;
    assert_cl(clSetUserEventStatus(foreign, CL_COMPLETE));
    clattn_plan *plan = empty_plan(&c);
    clattn_status status = clattn_cl_plan_enqueue(plan, c.queue, empty_args, COUNT(empty_args), 1, &foreign, &done);
    ck_assert_msg(status == CLATTN_ERROR_OPENCL, "%s: %s", clattn_status_name(status), error_text(c.context));
    ck_assert_ptr_null(done);
    ck_assert_ptr_nonnull(strstr(error_text(c.context), "clEnqueueMarkerWithWaitList"));
    ck_assert_ptr_nonnull(strstr(error_text(c.context), "CL_INVALID_CONTEXT (-34)"));
    clattn_plan_destroy(plan);
    assert_cl(clReleaseEvent(foreign));
    caller_free(&other);
    caller_free(&c);
}
END_TEST

START_TEST(other_backends_have_no_queues) {
    caller c = caller_make(0);
    static const char *const names[] = {"native", "reference"};
    for (size_t n = 0; n < COUNT(names); n++) {
        clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
        options.device = names[n];
        clattn_context *context;
        clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
        desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 1, 4, 4);
        clattn_plan *plan;
        ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
        assert_ok(context, clattn_plan_create_attention(context, &desc, NULL, &plan));
        ck_assert_int_eq(clattn_cl_plan_enqueue(plan, c.queue, NULL, 0, 0, NULL, NULL), CLATTN_ERROR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(error_text(context), names[n]));
        clattn_plan_destroy(plan);
        clattn_context_destroy(context);
    }
    caller_free(&c);
}
END_TEST

int main(void) {
    if (!find_device()) {
        printf("skipped: no OpenCL device\n");
        return SKIPPED;
    }
    Suite *suite = suite_create("opencl");
    TCase *tests = tcase_create("opencl");
    tcase_add_loop_test(tests, buffers_at_any_offset, 0, 4);
    tcase_add_loop_test(tests, enqueue_waits_and_does_not_block, 0, 4);
    tcase_add_loop_test(tests, workspace_of_the_caller, 0, 2);
    tcase_add_loop_test(tests, plans_in_flight, 0, 2);
    tcase_add_test(tests, one_plan_on_two_queues);
    tcase_add_loop_test(tests, destroyed_in_flight, 0, 2);
    tcase_add_test(tests, host_memory_on_the_callers_context);
    tcase_add_loop_test(tests, empty_run_gives_an_event, 0, 2);
    tcase_add_loop_test(tests, chain_of_launches, 0, 2);
    tcase_add_test(tests, context_is_retained_and_given_back);
    tcase_add_test(tests, contexts_that_cannot_be);
    tcase_add_test(tests, arguments_are_refused);
    tcase_add_test(tests, overlaps_are_refused);
    tcase_add_test(tests, opencl_errors_are_named);
    tcase_add_test(tests, other_backends_have_no_queues);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
