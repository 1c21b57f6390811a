/* A platform with two devices, and devices cut into parts: results are bitwise those of one whole device, in contexts of the
 * library's own, in a caller's context of both devices, and on both at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_problem.h"
#include "clattn/clattn_opencl.h"
#include "plain_problem.h"

static const attention_case attention_cases[] = {
    {"all options", 2, 4, 2, 5, 139, 19, 21, .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT,
     .mask = {.given = true, .per_cent = 20}, .bias = {.given = true}, .softcap = 3, .alibi = ALIBI_STANDARD, .sinks = true,
     .lengths = true},
    {"f16 causal", 1, 2, 1, 67, 67, 64, 64, .causal = 1, .dtype = CLATTN_F16},
};
static const plain_sizes sizes = {
    .batch = 2, .len = 35, .len_kv = 3, .d_in = 19, .heads = 3, .heads_kv = 1, .dim = 23, .parts = 3};
static const plain_sizes rnn_sizes = {.cell = CLATTN_CELL_RNN, .batch = 3, .len = 3, .d_in = 5, .dim = 37};
static const plain_sizes lstm_sizes = {.cell = CLATTN_CELL_LSTM, .batch = 3, .len = 3, .d_in = 5, .dim = 37};

/* ---- the same everywhere ------------------------------------------------------------------------------------------- */

static void assert_same_attention(clattn_context *a, clattn_context *b, const char *where) {
    for (size_t n = 0; n < COUNT(attention_cases); n++) {
        rng r = rng_make(n);
        attention_problem p = attention_problem_make(&attention_cases[n], &r);
        for (clattn_algorithm algorithm = CLATTN_ALGORITHM_STAGED; algorithm <= CLATTN_ALGORITHM_SPLIT; algorithm++) {
            const int want = attention_outputs(&p, algorithm);
            attention_results on_a = attention_run(a, &p, LAYOUT_BLHD, algorithm, want);
            attention_results on_b = attention_run(b, &p, LAYOUT_BLHD, algorithm, want);
            attention_assert_close(&on_a, &p, where);
            attention_assert_same(&on_a, &on_b, &p, where);
            attention_results_free(&on_a);
            attention_results_free(&on_b);
        }
        attention_problem_free(&p);
    }
}

static void assert_same_plain(clattn_context *a, clattn_context *b, const char *where) {
    const plain_problem problems[] = {plain_merge(&sizes), plain_project_qkv(&sizes), plain_mha(&sizes),
                                      plain_recurrence(&rnn_sizes), plain_recurrence(&lstm_sizes)};
    for (size_t n = 0; n < COUNT(problems); n++) {
        rng r = rng_make(10 + n);
        const verdict v = plain_same(a, b, &problems[n], NULL, &r);
        ck_assert_msg(v.ok, "%s, %s: %s", where, problems[n].op->name, v.text);
    }
}

static void assert_same_results(clattn_context *a, clattn_context *b, const char *where) {
    assert_same_attention(a, b, where);
    assert_same_plain(a, b, where);
}

/* ---- contexts of our own ------------------------------------------------------------------------------------------- */

static clattn_context *open_device(int device, const char *family) {
    char name[32], why[512];
    clattn_context *context;
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    snprintf(name, sizeof name, "opencl:0:%d:%s", device, family);
    options.device = name;
    options.error = why;
    options.error_size = sizeof why;
    if (clattn_context_create(&options, &context) != CLATTN_OK) ck_abort_msg("%s: %s", name, why);
    return context;
}

static const char *const families[] = {"cpu", "gpu"};

START_TEST(two_devices_agree) {
    clattn_context *first = open_device(0, families[_i]), *second = open_device(1, families[_i]);
    assert_same_results(first, second, families[_i]);
    clattn_context_destroy(first);
    clattn_context_destroy(second);
}
END_TEST

/* ---- both at once --------------------------------------------------------------------------------------------------- */

enum { RUNS = 50, LEN = 96, DIM = 32, FLOATS = LEN * DIM };

typedef struct worker {
    clattn_context *context;
    const float *q, *k, *v, *expected;
    clattn_status status;
    int wrong; /* runs with another result */
} worker;

static void *work(void *data) {
    worker *w = data;
    float out[FLOATS];
    for (int n = 0; n < RUNS && w->status == CLATTN_OK; n++) {
        w->status = clattn_attention_f32(w->context, 1, 1, 1, LEN, LEN, DIM, 1, w->q, w->k, w->v, out);
        w->wrong += memcmp(out, w->expected, sizeof out) != 0;
    }
    return NULL;
}

START_TEST(two_devices_at_once) {
    rng r = rng_make(20);
    float *q = rng_floats(&r, FLOATS, 1), *k = rng_floats(&r, FLOATS, 1), *v = rng_floats(&r, FLOATS, 1), expected[FLOATS];
    worker workers[2] = {{.context = open_device(0, "cpu")}, {.context = open_device(1, "cpu")}};
    pthread_t threads[COUNT(workers)];
    assert_ok(workers[0].context, clattn_attention_f32(workers[0].context, 1, 1, 1, LEN, LEN, DIM, 1, q, k, v, expected));
    for (size_t n = 0; n < COUNT(workers); n++) {
        workers[n].q = q, workers[n].k = k, workers[n].v = v, workers[n].expected = expected;
        ck_assert_int_eq(pthread_create(&threads[n], NULL, work, &workers[n]), 0);
    }
    for (size_t n = 0; n < COUNT(workers); n++) ck_assert_int_eq(pthread_join(threads[n], NULL), 0);
    for (size_t n = 0; n < COUNT(workers); n++) {
        ck_assert_int_eq(workers[n].status, CLATTN_OK);
        ck_assert_int_eq(workers[n].wrong, 0);
        clattn_context_destroy(workers[n].context);
    }
    free(q);
    free(k);
    free(v);
}
END_TEST

/* ---- the caller's contexts ------------------------------------------------------------------------------------------ */

static cl_device_id devices[2];

static void find_devices(void) {
    cl_platform_id platform;
    cl_uint count = 0;
    ck_assert_int_eq(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
    ck_assert_int_eq(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, &count), CL_SUCCESS);
    ck_assert_uint_eq(count, 2);
}

static cl_context make_context(const cl_device_id *of, cl_uint count) {
    cl_int code;
    cl_context cl = clCreateContext(NULL, count, of, NULL, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return cl;
}

static clattn_context *adopt(cl_context cl, cl_device_id device) {
    char why[512];
    clattn_context *context;
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.error = why;
    options.error_size = sizeof why;
    if (clattn_cl_context_create(&options, cl, device, &context) != CLATTN_OK) ck_abort_msg("%s", why);
    return context;
}

/* One cl_context of both. */
START_TEST(two_devices_of_a_context_agree) {
    find_devices();
    cl_context cl = make_context(devices, 2);
    clattn_context *first = adopt(cl, devices[0]), *second = adopt(cl, devices[1]);
    assert_same_results(first, second, "a context of two");
    clattn_context_destroy(first);
    clattn_context_destroy(second);
    ck_assert_int_eq(clReleaseContext(cl), CL_SUCCESS);
}
END_TEST

/* Single compute units, in a context of all of them, beside the whole. */
START_TEST(sub_devices_agree_with_the_whole) {
    find_devices();
    static const cl_device_partition_property single_units[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id parts[16];
    cl_uint units = 0, count = 0;
    ck_assert_int_eq(clGetDeviceInfo(devices[0], CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL), CL_SUCCESS);
    if (units < 2 || units > COUNT(parts)) {
        printf("sub-devices: not run: the device has %u compute units\n", units);
        return;
    }
    ck_assert_int_eq(clCreateSubDevices(devices[0], single_units, COUNT(parts), parts, &count), CL_SUCCESS);
    ck_assert_uint_ge(count, 2);
    cl_context whole_cl = make_context(devices, 1), cl = make_context(parts, count);
    clattn_context *whole = adopt(whole_cl, devices[0]);
    for (cl_uint n = 0; n < 2; n++) {
        clattn_context *part = adopt(cl, parts[n]);
        assert_same_results(whole, part, "a sub-device");
        clattn_context_destroy(part);
    }
    clattn_context_destroy(whole);
    ck_assert_int_eq(clReleaseContext(cl), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(whole_cl), CL_SUCCESS);
    for (cl_uint n = 0; n < count; n++) ck_assert_int_eq(clReleaseDevice(parts[n]), CL_SUCCESS);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("two devices");
    TCase *tests = tcase_create("two devices");
    tcase_add_loop_test(tests, two_devices_agree, 0, COUNT(families));
    tcase_add_test(tests, two_devices_at_once);
    tcase_add_test(tests, two_devices_of_a_context_agree);
    tcase_add_test(tests, sub_devices_agree_with_the_whole);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
