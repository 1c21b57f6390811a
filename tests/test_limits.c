/* Sizes where arithmetic of 16, 31 or 32 bits ends, integers that are out of range, and lives long enough to show a leak.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attention_problem.h"

static void check_outputs(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    attention_results r = attention_run(context, p, LAYOUT_BHLD, algorithm, attention_outputs(p, algorithm));
    attention_assert_close(&r, p, where);
    attention_results_free(&r);
}

/* ---- counts ------------------------------------------------------------------------------------------------------- */

static const attention_case large_cases[] = {
    {"70000 members", 70000, 1, 1, 1, 2, 3, 2},
    {"70000 heads", 1, 70000, 35000, 1, 2, 3, 2},
    {"70000 members, modified", 70000, 1, 1, 1, 2, 3, 2, .softcap = 2, .lengths = true},
    {"70000 queries", 1, 1, 1, 70000, 2, 3, 2, .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT},
    {"40000 keys", 1, 1, 1, 3, 40000, 3, 2},
    {"ragged, 5000 members", 5000, 1, 1, 3, 4, 3, 2, .ragged = true},
};

START_TEST(counts_past_16_bits) {
    rng r = rng_make((uint64_t)_i);
    attention_problem p = attention_problem_make(&large_cases[_i], &r);
    attention_on_every_device(&p, check_outputs);
    attention_problem_free(&p);
}
END_TEST

/* One key far above 100002 others, and the same with all of them alike. */
START_TEST(softmax_over_100003_keys) {
    static const attention_case c = {"100003 keys", 1, 2, 1, 2, 100003, 8, 3};
    rng r = rng_make(100 + (uint64_t)_i);
    attention_problem p = attention_problem_draw(&c, &r);
    double *q = p.data[CLATTN_TENSOR_Q], *k = p.data[CLATTN_TENSOR_K];
    for (int64_t n = 0; n < attention_count(&p, CLATTN_TENSOR_Q); n++) q[n] = 1;
    for (int64_t n = 0; n < attention_count(&p, CLATTN_TENSOR_K); n++) k[n] = _i == 0 && n / 8 == 77777 ? 10 : 0.25;
    attention_problem_solve(&p);
    const double *weights = p.expected[CLATTN_TENSOR_WEIGHTS].oracle;
    ck_assert(_i ? fabs(weights[5] * 100003 - 1) < 1e-9 : weights[77777] > 0.99999);
    attention_on_every_row(&p, check_outputs);
    attention_problem_free(&p);
}
END_TEST

/* ---- strides past 31 and 32 bits ---------------------------------------------------------------------------------- */

static const int64_t far_strides[] = {((int64_t)1 << 31) + 8, ((int64_t)1 << 32) + 8};

/* Memory of which only what is touched is there. */
static void *sparse(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* One tensor of the problem with its members far apart, in memory that has holes. */
static void check_far_tensor(clattn_context *context, const attention_problem *p, clattn_tensor_id far_id, int64_t stride,
                             clattn_algorithm algorithm) {
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_Q,    CLATTN_TENSOR_K,    CLATTN_TENSOR_V,
                                           CLATTN_TENSOR_MASK, CLATTN_TENSOR_BIAS, CLATTN_TENSOR_OUT};
    clattn_attention_desc desc = attention_desc(p, LAYOUT_BHLD, 0);
    clattn_arg args[COUNT(ids)];
    clattn_tensor *const far_tensor = attention_tensor(&desc, far_id);
    far_tensor->stride[0] = stride;
    void *far_memory = sparse(clattn__tensor_span(far_tensor));
    if (!far_memory) ck_abort_msg("no addresses for %zu bytes", clattn__tensor_span(far_tensor));
    for (size_t n = 0; n < COUNT(ids); n++) {
        const clattn_tensor t = *attention_tensor(&desc, ids[n]);
        const int64_t member = attention_count(p, ids[n]) / t.size[0];
        args[n] = (clattn_arg){ids[n], ids[n] == far_id ? far_memory : test_alloc(1, clattn__tensor_span(&t)), 0};
        for (int64_t e = 0; e < t.size[0] * member && p->data[ids[n]]; e++) {
            clattn__store(t.dtype, args[n].data, e / member * t.stride[0] + e % member, p->data[ids[n]][e]);
        }
    }
    assert_ok(context, clattn_attention(context, &desc, OPTIONS(.algorithm = algorithm), args, COUNT(ids)));
    const int64_t count = attention_count(p, CLATTN_TENSOR_OUT), member = count / desc.out.size[0];
    attention_results r = {.row = "far apart"};
    r.data[CLATTN_TENSOR_OUT] = test_alloc((size_t)count, sizeof(double));
    for (int64_t e = 0; e < count; e++) {
        const int64_t at = e / member * desc.out.stride[0] + e % member;
        r.data[CLATTN_TENSOR_OUT][e] = clattn__load(CLATTN_F32, args[COUNT(ids) - 1].data, at);
    }
    attention_assert_close(&r, p, clattn_tensor_name(far_id));
    attention_results_free(&r);
    for (size_t n = 0; n < COUNT(ids); n++) {
        if (args[n].data != far_memory) free(args[n].data);
    }
    munmap(far_memory, clattn__tensor_span(far_tensor));
}

START_TEST(members_far_apart) {
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_Q,    CLATTN_TENSOR_K,    CLATTN_TENSOR_V,
                                           CLATTN_TENSOR_MASK, CLATTN_TENSOR_BIAS, CLATTN_TENSOR_OUT};
    static const attention_case c = {"far apart", 2, 2, 1, 5, 300, 8, 8, .mask = {.given = true, .per_cent = 20},
                                     .bias = {.given = true, .per_cent = 20}};
    rng r = rng_make(200);
    attention_problem p = attention_problem_make(&c, &r);
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!context || context->device.info.kind >= CLATTN_DEVICE_OPENCL_CPU) continue; /* a device would copy the holes */
        for (size_t n = 0; n < COUNT(ids); n++) {
            for (size_t f = 0; f < COUNT(far_strides); f++) {
                for (clattn_algorithm a = CLATTN_ALGORITHM_STAGED; a <= CLATTN_ALGORITHM_SPLIT; a++) {
                    check_far_tensor(context, &p, ids[n], far_strides[f], a);
                }
            }
        }
    }
    attention_problem_free(&p);
}
END_TEST

/* What no memory holds is planned nevertheless, or refused by name. */
START_TEST(products_past_any_index) {
    static const struct {
        int64_t batch, heads, len_q, len_kv, dim;
        clattn_status status;
    } shapes[] = {
        {70000, 70000, 1, 1, 64, CLATTN_OK},
        {1, 1, 100000, 100000, 64, CLATTN_OK},
        {3, 1000, 100000, 100000, 64, CLATTN_OK},
        {(int64_t)1 << 31, 1, 1, 1, 1, CLATTN_OK},
        {(int64_t)1 << 40, (int64_t)1 << 20, 1, 1, 1, CLATTN_ERROR_OVERFLOW},
        {1, 1, 1, (int64_t)1 << 60, 1, CLATTN_ERROR_OVERFLOW},
    };
    for (size_t n = 0; n < COUNT(shapes); n++) {
        clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
        desc.q = desc.out = clattn_tensor_bhld(CLATTN_F32, shapes[n].batch, shapes[n].heads, shapes[n].len_q, shapes[n].dim);
        desc.k = desc.v = clattn_tensor_bhld(CLATTN_F32, shapes[n].batch, shapes[n].heads, shapes[n].len_kv, shapes[n].dim);
        for (size_t d = 0; d < test_device_count(); d++) {
            if (test_context(d))
                assert_status(test_context(d), clattn_supports_attention(test_context(d), &desc, NULL), shapes[n].status);
        }
    }
}
END_TEST

/* ---- integers ----------------------------------------------------------------------------------------------------- */

static const attention_case lengths_case = {"lengths", 3, 2, 2, 4, 20, 8, 8, .lengths = true};
static const attention_case wide_case = {"wide lengths", 3, 2, 2, 4, 20, 8, 8, .lengths = true, .wide = true};
static const attention_case in_place_case = {"cache", 3, 2, 2, 4, 4, 8, 8, .cache = CACHE_IN_PLACE, .past = 20};
static const attention_case ragged_case = {"ragged", 3, 2, 2, 9, 20, 8, 8, .ragged = true};

static const struct {
    const attention_case *c;
    clattn_tensor_id id;
    int at;
    double value, relative_to_last; /* the latter added times the last element */
} wrong_integers[] = {
    {&lengths_case, CLATTN_TENSOR_KV_LENGTHS, 1, -1, 0},
    {&lengths_case, CLATTN_TENSOR_KV_LENGTHS, 2, 21, 0},
    {&lengths_case, CLATTN_TENSOR_KV_LENGTHS, 0, INT32_MIN, 0},
    {&wide_case, CLATTN_TENSOR_KV_LENGTHS, 0, 4294967296.0 + 3, 0}, /* 3, as i32 */
    {&wide_case, CLATTN_TENSOR_KV_LENGTHS, 2, -9e18, 0},
    {&in_place_case, CLATTN_TENSOR_PAST_LENGTHS, 1, -1, 0},
    {&in_place_case, CLATTN_TENSOR_PAST_LENGTHS, 1, 21, 0},
    {&ragged_case, CLATTN_TENSOR_Q_OFFSETS, 0, 1, 0},
    {&ragged_case, CLATTN_TENSOR_Q_OFFSETS, 1, 1, 1},
    {&ragged_case, CLATTN_TENSOR_KV_OFFSETS, 1, -1, 0},
    {&ragged_case, CLATTN_TENSOR_KV_OFFSETS, 3, 100, 0},
    {&ragged_case, CLATTN_TENSOR_Q_OFFSETS, 3, 100, 0},
};

/* Refused by name, before anything is written. */
START_TEST(integers_out_of_range) {
    rng r = rng_make(300 + (uint64_t)_i);
    const clattn_tensor_id id = wrong_integers[_i].id;
    attention_problem p = attention_problem_draw(wrong_integers[_i].c, &r);
    const double last = p.data[id][attention_count(&p, id) - 1];
    p.data[id][wrong_integers[_i].at] = wrong_integers[_i].value + wrong_integers[_i].relative_to_last * last;
    for (size_t d = 0; d < test_device_count(); d++) {
        if (!test_context(d)) continue;
        attention_results results;
        const verdict v = attention_try(test_context(d), &p, LAYOUT_PADDED, CLATTN_ALGORITHM_AUTO, WANT_LSE, &results);
        ck_assert_msg(!v.ok && strstr(v.text, "CLATTN_ERROR_ARGUMENT") && strstr(v.text, clattn_tensor_name(id)), "%s: %s",
                      test_device_name(d), v.text);
    }
    attention_problem_free(&p);
}
END_TEST

/* ---- lives -------------------------------------------------------------------------------------------------------- */

/* Bytes that the process has in memory. */
static size_t resident(void) {
    size_t pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%zu %zu", &all, &pages) != 2) pages = 0;
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Sanitizers keep what is freed for a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLACK = 1 << 30 };
#else
enum { SLACK = 2 << 20 };
#endif

static void assert_flat(size_t before, const char *where) {
    const size_t after = resident();
    ck_assert_msg(after < before + SLACK, "%s: memory grew by %zu KiB", where, (after - before) / 1024);
}

static const char *const own_devices[] = {"native", "reference", "opencl"};

static clattn_context *open_device(const char *device) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context;
    options.device = device;
    return clattn_context_create(&options, &context) == CLATTN_OK ? context : NULL;
}

static void attend(clattn_context *context) {
    static const float q[] = {1, 0, 0, 1, 1, 1}, v[] = {1, 2, 3, 4, 5, 6};
    float out[6];
    assert_ok(context, clattn_attention_f32(context, 1, 1, 1, 3, 3, 2, 1, q, q, v, out));
    if (out[0] != 1 || out[1] != 2) ck_abort_msg("%s: a wrong result", context->device.info.id);
}

START_TEST(contexts_come_and_go) {
    const char *device = own_devices[_i];
    const int lives = strcmp(device, "opencl") == 0 ? 20 : 200; /* each of them compiles */
    size_t before = 0;
    for (int n = 0; n < lives + lives / 2; n++) {
        clattn_context *context = open_device(device);
        if (!context) return;
        attend(context);
        clattn_context_destroy(context);
        if (n == lives / 2) before = resident();
    }
    if (strcmp(device, "opencl") != 0) assert_flat(before, device); /* PoCL's compiler keeps what it had */
    for (int n = 0; n < 200; n++) clattn_context_destroy(open_device(device));
}
END_TEST

START_TEST(many_small_runs) {
    const char *device = own_devices[_i];
    clattn_context *context = open_device(device);
    if (!context) return;
    const int runs = strcmp(device, "opencl") == 0 ? 2000 : 100000;
    for (int n = 0; n < runs / 10; n++) attend(context);
    const size_t before = resident();
    for (int n = 0; n < runs; n++) attend(context);
    assert_flat(before, device);
    clattn_context_destroy(context);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("limits");
    TCase *tests = tcase_create("limits");
    tcase_add_loop_test(tests, counts_past_16_bits, 0, COUNT(large_cases));
    tcase_add_loop_test(tests, softmax_over_100003_keys, 0, 2);
    tcase_add_test(tests, members_far_apart);
    tcase_add_test(tests, products_past_any_index);
    tcase_add_loop_test(tests, integers_out_of_range, 0, COUNT(wrong_integers));
    tcase_add_loop_test(tests, contexts_come_and_go, 0, COUNT(own_devices));
    tcase_add_loop_test(tests, many_small_runs, 0, COUNT(own_devices));
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
