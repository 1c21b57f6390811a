/* One plan over several devices: what it computes is bitwise what one of them computes, whatever is cut where; it says what it
 * cut; what it cannot do it refuses.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../host/split.h"
#include "attention_problem.h"
#include "clattn/clattn_opencl.h"
#include "plain_problem.h"

/* ---- the cut, without any device ----------------------------------------------------------------------------------- */

static void assert_cut(i64 total, const double *weights, size_t count, const i64 *expected) {
    i64 units[5];
    clattn__split_cut(total, weights, count, units);
    for (size_t n = 0; n <= count; n++) ck_assert_int_eq(units[n], expected[n]);
}

START_TEST(cut_by_weight) {
    assert_cut(8, (double[]){1, 1}, 2, (i64[]){0, 4, 8});
    assert_cut(7, (double[]){1, 1}, 2, (i64[]){0, 4, 7});
    assert_cut(8, (double[]){1, 3}, 2, (i64[]){0, 2, 8});
    assert_cut(10, (double[]){2400 * 8, 2400 * 8, 1200 * 8, 1200 * 8}, 4, (i64[]){0, 3, 7, 8, 10});
    assert_cut(1, (double[]){1, 1, 1}, 3, (i64[]){0, 0, 1, 1});
    assert_cut(0, (double[]){1, 1}, 2, (i64[]){0, 0, 0});
}
END_TEST

/* Blocks are whole members and groups, in order, each unit in one of them. */
START_TEST(blocks_cover_the_units) {
    rng r = rng_make(0);
    for (int trial = 0; trial < 2000; trial++) {
        const clattn__grid grid = {1 + rng_below(&r, 6), 1 + rng_below(&r, 6)};
        const i64 total = grid.batch * grid.groups, first = rng_below(&r, total + 1),
                  end = first + rng_below(&r, total - first + 1);
        clattn__block blocks[3];
        const int count = clattn__split_blocks(&grid, first, end, blocks);
        i64 unit = first;
        ck_assert_int_le(count, 3);
        for (int n = 0; n < count; n++)
            for (i64 b = blocks[n].member; b < blocks[n].member + blocks[n].members; b++)
                for (i64 g = blocks[n].group; g < blocks[n].group + blocks[n].groups; g++, unit++)
                    ck_assert_msg(b * grid.groups + g == unit, "unit %lld of %lld x %lld from %lld (seed %llu)",
                                  (long long)unit, (long long)grid.batch, (long long)grid.groups, (long long)first,
                                  (unsigned long long)test_seed());
        ck_assert_int_eq(unit, end);
    }
}
END_TEST

/* ---- contexts ------------------------------------------------------------------------------------------------------ */

static clattn_context *open_named(const char *name) {
    char why[512];
    clattn_context *context;
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = name;
    options.error = why;
    options.error_size = sizeof why;
    if (clattn_context_create(&options, &context) != CLATTN_OK) ck_abort_msg("%s: %s", name, why);
    return context;
}

enum { MOST_PARTS = 16 };

/* Devices of a cl_context that the test owns: the platform's two, or the compute units of one of them. */
typedef struct machine {
    const char *name;
    cl_device_id parent, devices[MOST_PARTS];
    cl_uint count;
    cl_context cl;
    bool sub_devices;
} machine;

/* False where the device cannot be cut. */
static bool open_machine(machine *m, bool sub_devices) {
    static const cl_device_partition_property units[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_platform_id platform;
    cl_int code;
    *m = (machine){.name = sub_devices ? "sub-devices" : "two devices", .sub_devices = sub_devices};
    ck_assert_int_eq(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
    ck_assert_int_eq(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_PARTS, m->devices, &m->count), CL_SUCCESS);
    ck_assert_uint_ge(m->count, 2);
    m->parent = m->devices[0];
    if (sub_devices && clCreateSubDevices(m->parent, units, MOST_PARTS, m->devices, &m->count) != CL_SUCCESS) return false;
    m->cl = clCreateContext(NULL, m->count, m->devices, NULL, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return true;
}

static void close_machine(machine *m) {
    ck_assert_int_eq(clReleaseContext(m->cl), CL_SUCCESS);
    for (cl_uint n = 0; n < m->count && m->sub_devices; n++) ck_assert_int_eq(clReleaseDevice(m->devices[n]), CL_SUCCESS);
}

static clattn_context *adopt(const machine *m, cl_uint count) {
    char why[512];
    clattn_context *context;
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.error = why;
    options.error_size = sizeof why;
    if (clattn_cl_context_create_devices(&options, m->cl, m->devices, count, &context) != CLATTN_OK) ck_abort_msg("%s", why);
    return context;
}

/* ---- the same as one device's -------------------------------------------------------------------------------------- */

static const attention_case cases[] = {
    {"full", 1, 2, 2, 37, 41, 24, 20},
    {"causal", 2, 3, 3, 67, 67, 64, 64, .causal = 1},
    {"grouped, cut inside a member", 3, 6, 3, 9, 70, 33, 17, .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT},
    {"few queries, many keys", 1, 8, 4, 1, 700, 64, 64},
    {"bias and mask", 3, 4, 2, 11, 29, 16, 16, .mask = {.given = true, .broadcast = ONE_HEAD, .per_cent = 30},
     .bias = {.given = true, .broadcast = ONE_BATCH}},
    {"slopes, sinks, softcap", 2, 6, 3, 17, 23, 8, 12, .alibi = ALIBI_GIVEN, .sinks = true, .by_member = true, .softcap = 3},
    {"standard slopes", 5, 6, 3, 17, 23, 8, 12, .alibi = ALIBI_STANDARD},
    {"lengths", 4, 2, 1, 19, 31, 16, 16, .lengths = true, .poison = true},
    {"ragged", 4, 6, 3, 40, 50, 32, 32, .ragged = true, .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT},
    {"ragged f16", 3, 4, 4, 20, 20, 16, 16, .ragged = true, .dtype = CLATTN_F16},
    {"bf16, window", 2, 4, 2, 33, 33, 32, 32, .has_window = 1, .left = 5, .right = 2, .dtype = CLATTN_BF16},
    {"cache and rotary", 2, 4, 2, 3, 3, 16, 16, .cache = CACHE_PAST, .past = 13, .rotary = CLATTN_ROTARY_HALF, .pairs = 4,
     .by_member = true, .causal = 1, .align = CLATTN_ALIGN_PAST},
    {"a NaN somewhere", 2, 2, 2, 13, 13, 16, 16, .live_nan = true},
};

/* Whether the plan of a split problem says that it is cut. */
static void assert_cut_into(clattn_context *context, const attention_problem *p, layout l, const char *where) {
    char text[8192];
    clattn_plan *plan;
    const clattn_attention_desc desc = attention_desc(p, l, WANT_LSE);
    assert_ok(context, clattn_plan_create_attention(context, &desc, OPTIONS(.split_devices = 1), &plan));
    clattn_plan_explain(plan, text, sizeof text);
    ck_assert_msg(strstr(text, "split over devices by") && strstr(text, "  device 0, opencl:") &&
                      strstr(text, "  device 1, opencl:"),
                  "%s, %s: %s", where, p->c.name, text);
    clattn_plan_info info = CLATTN_PLAN_INFO_INIT;
    assert_ok(context, clattn_plan_get_info(plan, &info));
    ck_assert_uint_eq(info.workspace_bytes, 0);
    ck_assert_int_ge(info.launches, 4);
    assert_ok(context, clattn_supports_attention(context, &desc, OPTIONS(.split_devices = 1)));
    clattn_plan_destroy(plan);
}

/* `several`: a context of several devices; `one`: of the first of them. `few`: every fourth case, as the devices choose: PoCL
 * takes long to compile kernels of the GPU family. */
static void assert_attention(clattn_context *several, clattn_context *one, bool few, const char *where) {
    const clattn_algorithm last = few ? CLATTN_ALGORITHM_AUTO : CLATTN_ALGORITHM_SPLIT;
    static const layout layouts[] = {LAYOUT_BHLD, LAYOUT_BLHD, LAYOUT_PADDED, LAYOUT_INNER2};
    for (size_t n = 0; n < COUNT(cases); n += few ? 4 : 1) {
        rng r = rng_make(n);
        const layout l = layouts[rng_below(&r, COUNT(layouts))];
        attention_problem p = attention_problem_make(&cases[n], &r);
        attention_problem split = p;
        split.c.split_devices = true;
        for (clattn_algorithm algorithm = CLATTN_ALGORITHM_AUTO; algorithm <= last; algorithm++) {
            if (p.c.ragged && (algorithm == CLATTN_ALGORITHM_STAGED || algorithm == CLATTN_ALGORITHM_SPLIT)) continue;
            const int want = algorithm == CLATTN_ALGORITHM_AUTO ? WANT_LSE : attention_outputs(&p, algorithm);
            attention_results whole = attention_run(one, &p, l, algorithm, want);
            attention_results parts = attention_run(several, &split, l, algorithm, want);
            attention_assert_close(&whole, &p, where);
            attention_assert_same(&whole, &parts, &p, where);
            attention_results_free(&whole);
            attention_results_free(&parts);
        }
        assert_cut_into(several, &split, l, where);
        attention_problem_free(&p);
    }
}

static void assert_plain(clattn_context *several, clattn_context *one, const char *where) {
    static const plain_sizes sizes = {.batch = 5, .len = 35, .len_kv = 3, .d_in = 19, .heads = 4, .heads_kv = 2, .dim = 23};
    static const plain_sizes rnn = {.cell = CLATTN_CELL_RNN, .batch = 3, .len = 3, .d_in = 5, .dim = 37};
    static const plain_sizes lstm = {.cell = CLATTN_CELL_LSTM, .batch = 3, .len = 3, .d_in = 5, .dim = 37};
    const plain_problem problems[] = {plain_project_qkv(&sizes), plain_mha(&sizes), plain_recurrence(&rnn),
                                      plain_recurrence(&lstm)};
    for (size_t n = 0; n < COUNT(problems); n++) {
        rng r = rng_make(100 + n);
        char text[8192];
        clattn_plan *plan;
        const verdict v = plain_same(several, one, &problems[n], OPTIONS(.split_devices = 1), &r);
        ck_assert_msg(v.ok, "%s, %s: %s", where, problems[n].op->name, v.text);
        assert_ok(several, plain_plan(several, &problems[n], OPTIONS(.split_devices = 1), &plan));
        clattn_plan_explain(plan, text, sizeof text);
        ck_assert_msg(strstr(text, "split over devices by"), "%s, %s: %s", where, problems[n].op->name, text);
        clattn_plan_destroy(plan);
    }
}

static const char *const families[] = {"", ":gpu"};

START_TEST(same_in_a_context_of_our_own) {
    char all[32], first[32];
    snprintf(all, sizeof all, "opencl:0:all%s", families[_i]);
    snprintf(first, sizeof first, "opencl:0:0%s", families[_i]);
    clattn_context *several = open_named(all), *one = open_named(first);
    const bool few = families[_i][0] != 0;
    assert_attention(several, one, few, all);
    if (!few) assert_plain(several, one, all);
    clattn_context_destroy(several);
    clattn_context_destroy(one);
}
END_TEST

START_TEST(same_in_the_callers_context) {
    machine m;
    if (!open_machine(&m, _i == 1)) {
        printf("sub-devices: not run: the device has one compute unit\n");
        return;
    }
    clattn_context *several = adopt(&m, m.count), *one = adopt(&m, 1);
    assert_attention(several, one, false, m.name);
    assert_plain(several, one, m.name);
    clattn_context_destroy(several);
    clattn_context_destroy(one);
    close_machine(&m);
}
END_TEST

/* ---- the caller's queue -------------------------------------------------------------------------------------------- */

enum { HEADS = 5, LEN = 40, DIM = 24, FLOATS = HEADS * LEN * DIM, PAD = 3 /* floats before a tensor */ };

static clattn_attention_desc queue_desc(void) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_blhd(CLATTN_F32, 1, HEADS, LEN, DIM);
    desc.options.causal = 1;
    return desc;
}

static cl_mem make_buffer(cl_context cl, size_t floats) {
    cl_int code;
    cl_mem mem = clCreateBuffer(cl, CL_MEM_READ_WRITE, floats * sizeof(float), NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return mem;
}

/* Runs behind one another on the caller's queue, each on what the last wrote, held back by an event of the caller's; other
 * memory objects' parts stay as they are. */
static void run_on_queue(clattn_context *several, clattn_context *one, const machine *m,
                         cl_command_queue_properties properties) {
    rng r = rng_make(200);
    float *q = rng_floats(&r, FLOATS, 1), *k = rng_floats(&r, FLOATS, 1), *v = rng_floats(&r, FLOATS, 1), first[FLOATS],
          second[FLOATS];
    float got[FLOATS + PAD];
    const clattn_attention_desc desc = queue_desc();
    const size_t bytes = sizeof first, offset = PAD * sizeof(float);
    const clattn_arg once[] = {
        {CLATTN_TENSOR_Q, q, 0}, {CLATTN_TENSOR_K, k, 0}, {CLATTN_TENSOR_V, v, 0}, {CLATTN_TENSOR_OUT, first, 0}};
    const clattn_arg twice[] = {
        {CLATTN_TENSOR_Q, first, 0}, {CLATTN_TENSOR_K, k, 0}, {CLATTN_TENSOR_V, v, 0}, {CLATTN_TENSOR_OUT, second, 0}};
    assert_ok(one, clattn_attention(one, &desc, NULL, once, COUNT(once)));
    assert_ok(one, clattn_attention(one, &desc, NULL, twice, COUNT(twice)));

    cl_int code;
    cl_command_queue queue = clCreateCommandQueue(m->cl, m->devices[0], properties, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    cl_event gate = clCreateUserEvent(m->cl, &code), done[3];
    cl_mem a = make_buffer(m->cl, FLOATS + PAD), b = make_buffer(m->cl, FLOATS + PAD),
           keys = make_buffer(m->cl, 2 * FLOATS + PAD);
    for (int n = 0; n < FLOATS + PAD; n++) got[n] = 7;
    ck_assert_int_eq(clEnqueueWriteBuffer(queue, b, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL), CL_SUCCESS);
    ck_assert_int_eq(clEnqueueWriteBuffer(queue, keys, CL_TRUE, offset, bytes, k, 0, NULL, NULL), CL_SUCCESS);
    ck_assert_int_eq(clEnqueueWriteBuffer(queue, keys, CL_TRUE, offset + bytes, bytes, v, 0, NULL, NULL), CL_SUCCESS);
    const clattn_cl_arg from_a[] = {{CLATTN_TENSOR_Q, a, offset},
                                    {CLATTN_TENSOR_K, keys, offset},
                                    {CLATTN_TENSOR_V, keys, offset + bytes},
                                    {CLATTN_TENSOR_OUT, b, offset}};
    const clattn_cl_arg from_b[] = {{CLATTN_TENSOR_Q, b, offset},
                                    {CLATTN_TENSOR_K, keys, offset},
                                    {CLATTN_TENSOR_V, keys, offset + bytes},
                                    {CLATTN_TENSOR_OUT, a, offset}};
    clattn_plan *plan;
    assert_ok(several, clattn_plan_create_attention(several, &desc, OPTIONS(.split_devices = 1), &plan));
    ck_assert_int_eq(clEnqueueWriteBuffer(queue, a, CL_FALSE, offset, bytes, q, 1, &gate, &done[0]), CL_SUCCESS);
    assert_ok(several, clattn_cl_plan_enqueue(plan, queue, from_a, COUNT(from_a), 1, &done[0], &done[1]));
    assert_ok(several, clattn_cl_plan_enqueue(plan, queue, from_b, COUNT(from_b), 1, &done[1], &done[2]));
    cl_int progress;
    ck_assert_int_eq(clGetEventInfo(done[2], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof progress, &progress, NULL), CL_SUCCESS);
    ck_assert_msg(progress != CL_COMPLETE, "a run did not wait for its event");
    ck_assert_int_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ck_assert_int_eq(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, sizeof got, got, 1, &done[2], NULL), CL_SUCCESS);
    assert_same(got + PAD, first, FLOATS, m->name, "the first run");
    for (int n = 0; n < PAD; n++) ck_assert_msg(got[n] == 7, "%s: before out something was written", m->name);
    ck_assert_int_eq(clEnqueueReadBuffer(queue, a, CL_TRUE, offset, bytes, got, 1, &done[2], NULL), CL_SUCCESS);
    assert_same(got, second, FLOATS, m->name, "the second run");
    clattn_plan_destroy(plan);
    for (size_t n = 0; n < COUNT(done); n++) ck_assert_int_eq(clReleaseEvent(done[n]), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(gate), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(a), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(b), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(keys), CL_SUCCESS);
    ck_assert_int_eq(clReleaseCommandQueue(queue), CL_SUCCESS);
    free(q);
    free(k);
    free(v);
}

START_TEST(runs_on_the_callers_queue) {
    machine m;
    if (!open_machine(&m, _i == 1)) return;
    clattn_context *several = adopt(&m, m.count), *one = adopt(&m, 1);
    run_on_queue(several, one, &m, 0);
    run_on_queue(several, one, &m, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    clattn_context_destroy(several);
    clattn_context_destroy(one);
    close_machine(&m);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { RUNS = 40 };

/* Plans of its own in a context that others use, too. */
typedef struct worker {
    clattn_context *context;
    const clattn_arg *inputs; /* q, k, v */
    const float *expected;
    clattn_status status;
    int wrong; /* runs with another result */
} worker;

static void *work(void *data) {
    worker *w = data;
    float out[FLOATS];
    const clattn_attention_desc desc = queue_desc();
    const clattn_arg args[] = {w->inputs[0], w->inputs[1], w->inputs[2], {CLATTN_TENSOR_OUT, out, 0}};
    clattn_plan *plan = NULL;
    w->status = clattn_plan_create_attention(w->context, &desc, OPTIONS(.split_devices = 1), &plan);
    for (int n = 0; n < RUNS && w->status == CLATTN_OK; n++) {
        w->status = clattn_plan_run(plan, args, COUNT(args));
        w->wrong += memcmp(out, w->expected, sizeof out) != 0;
    }
    clattn_plan_destroy(plan);
    return NULL;
}

START_TEST(threads_share_a_context) {
    rng r = rng_make(300);
    float *q = rng_floats(&r, FLOATS, 1), *k = rng_floats(&r, FLOATS, 1), *v = rng_floats(&r, FLOATS, 1), expected[FLOATS];
    clattn_context *several = open_named("opencl:0:all"), *one = open_named("opencl:0:0");
    const clattn_attention_desc desc = queue_desc();
    const clattn_arg args[] = {
        {CLATTN_TENSOR_Q, q, 0}, {CLATTN_TENSOR_K, k, 0}, {CLATTN_TENSOR_V, v, 0}, {CLATTN_TENSOR_OUT, expected, 0}};
    assert_ok(one, clattn_attention(one, &desc, NULL, args, COUNT(args)));
    worker workers[3];
    pthread_t threads[COUNT(workers)];
    for (size_t n = 0; n < COUNT(workers); n++) {
        workers[n] = (worker){.context = several, .inputs = args, .expected = expected};
        ck_assert_int_eq(pthread_create(&threads[n], NULL, work, &workers[n]), 0);
    }
    for (size_t n = 0; n < COUNT(workers); n++) {
        ck_assert_int_eq(pthread_join(threads[n], NULL), 0);
        ck_assert_int_eq(workers[n].status, CLATTN_OK);
        ck_assert_int_eq(workers[n].wrong, 0);
    }
    clattn_context_destroy(several);
    clattn_context_destroy(one);
    free(q);
    free(k);
    free(v);
}
END_TEST

/* ---- what is not cut ----------------------------------------------------------------------------------------------- */

static void assert_not_cut(clattn_context *context, const clattn_attention_desc *desc, const char *why) {
    char text[4096];
    clattn_plan *plan;
    assert_ok(context, clattn_plan_create_attention(context, desc, OPTIONS(.split_devices = 1), &plan));
    clattn_plan_explain(plan, text, sizeof text);
    ck_assert_msg(strstr(text, why) != NULL, "\"%s\" is not in: %s", why, text);
    clattn_plan_destroy(plan);
}

START_TEST(not_cut_and_said) {
    clattn_context *several = open_named("opencl:0:all"), *one = open_named("opencl:0:0");
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 2, 9, 8);
    assert_not_cut(one, &desc, "not split over devices: the context has one device");
    desc.q = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 4, 9, 8);
    desc.k = desc.v = clattn_tensor_bhld(CLATTN_F32, 1, 1, 9, 8); /* four query heads share it */
    assert_not_cut(several, &desc, "not split over devices: one device gets all units");
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 0, 2, 9, 8);
    assert_not_cut(several, &desc, "not split over devices: one device gets all units");
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 4, 9, 8);
    desc.options.alibi = 1;
    assert_not_cut(several, &desc, "not split over devices: one device gets all units");
    clattn_context_destroy(several);
    clattn_context_destroy(one);
}
END_TEST

static void assert_refused(clattn_context *context, clattn_status status, clattn_status expected, const char *why) {
    ck_assert_msg(status == expected && strstr(error_text(context), why), "%s: %s, not %s", clattn_status_name(status),
                  error_text(context), why);
}

START_TEST(refusals) {
    clattn_context *several = open_named("opencl:0:all"), *native = open_named("native"), *reference = open_named("reference");
    clattn_attention_desc desc = queue_desc();
    clattn_plan *plan;
    const clattn_plan_options *split = OPTIONS(.split_devices = 1);
    assert_refused(native, clattn_plan_create_attention(native, &desc, split, &plan), CLATTN_ERROR_ARGUMENT,
                   "native has no use");
    assert_refused(reference, clattn_supports_attention(reference, &desc, split), CLATTN_ERROR_ARGUMENT,
                   "reference has no use");
    assert_refused(several, clattn_plan_create_attention(several, &desc, OPTIONS(.split_devices = 2), &plan),
                   CLATTN_ERROR_ARGUMENT, "split_devices is 2; it is 0 to 1");
    assert_refused(several, clattn_plan_create_attention(several, &desc, OPTIONS(.reserved = 1), &plan), CLATTN_ERROR_ARGUMENT,
                   "reserved is 0x1");
    const plain_problem merge = plain_merge(&(plain_sizes){.batch = 2, .len = 3, .heads = 2, .dim = 4, .parts = 2});
    assert_refused(several, plain_plan(several, &merge, split, &plan), CLATTN_ERROR_ARGUMENT, "merge has no use");
    desc.k = desc.v = clattn_tensor_bhld(CLATTN_F32, 1, HEADS, 1, DIM);
    desc.present_k = desc.present_v = clattn_tensor_bhld(CLATTN_F32, 1, HEADS, 64, DIM);
    desc.past_lengths = clattn_tensor_bhld(CLATTN_I32, 1, 1, 1, 1);
    assert_refused(several, clattn_plan_create_attention(several, &desc, split, &plan), CLATTN_ERROR_UNSUPPORTED,
                   "present_k is changed in place");
    clattn_context_destroy(several);
    clattn_context_destroy(native);
    clattn_context_destroy(reference);
}
END_TEST

START_TEST(refused_contexts) {
    machine m;
    clattn_context *context = NULL;
    char why[256];
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.error = why;
    options.error_size = sizeof why;
    ck_assert(open_machine(&m, false));
    const cl_device_id again[] = {m.devices[0], m.devices[1], m.devices[0]};
    ck_assert_int_eq(clattn_cl_context_create_devices(&options, m.cl, again, 3, &context), CLATTN_ERROR_ARGUMENT);
    ck_assert_str_eq(why, "devices[2] is devices[0] again");
    ck_assert_int_eq(clattn_cl_context_create_devices(&options, m.cl, again, 0, &context), CLATTN_ERROR_ARGUMENT);
    ck_assert_str_eq(why, "there is no device");
    cl_context narrow = clCreateContext(NULL, 1, m.devices, NULL, NULL, NULL);
    ck_assert_int_eq(clattn_cl_context_create_devices(&options, narrow, m.devices, 2, &context), CLATTN_ERROR_DEVICE);
    ck_assert_ptr_null(context);
    ck_assert_int_eq(clReleaseContext(narrow), CL_SUCCESS);
    close_machine(&m);
    static const char *const names[] = {"opencl:7:all", "opencl:0:allx", "opencl:0:all:cpux"};
    static const clattn_status statuses[] = {CLATTN_ERROR_DEVICE, CLATTN_ERROR_ARGUMENT, CLATTN_ERROR_ARGUMENT};
    for (size_t n = 0; n < COUNT(names); n++) {
        options.device = names[n];
        ck_assert_int_eq(clattn_context_create(&options, &context), statuses[n]);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("split devices");
    TCase *tests = tcase_create("split devices");
    tcase_add_test(tests, cut_by_weight);
    tcase_add_test(tests, blocks_cover_the_units);
    tcase_add_loop_test(tests, same_in_a_context_of_our_own, 0, COUNT(families));
    tcase_add_loop_test(tests, same_in_the_callers_context, 0, 2);
    tcase_add_loop_test(tests, runs_on_the_callers_queue, 0, 2);
    tcase_add_test(tests, threads_share_a_context);
    tcase_add_test(tests, not_cut_and_said);
    tcase_add_test(tests, refusals);
    tcase_add_test(tests, refused_contexts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
