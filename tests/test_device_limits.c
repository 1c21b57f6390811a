/* Devices that have less: a device that is here, with its limits lowered to those of others. On each of them every operator
 * either has a plan that keeps to the limits and computes the right thing, or is refused in words that say what it lacks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_problem.h"
#include "plain_problem.h"

#ifdef CLATTN_TESTS_OPENCL
#include "../host/opencl/opencl.h"
#endif

static const size_t work_groups[] = {1, 16, 64, 128, 256};
static const size_t local_sizes[] = {0, 16 << 10, 32 << 10, 48 << 10};

/* The least that any row needs, where there is local memory at all: OpenCL 1.2 promises 32 KiB. */
enum { ENOUGH_LOCAL = 16 << 10 };

static const attention_case attention_cases[] = {
    {"all options", 1, 2, 1, 5, 69, 19, 21, .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT,
     .mask = {.given = true, .per_cent = 20}, .bias = {.given = true}, .softcap = 3, .alibi = ALIBI_STANDARD, .sinks = true,
     .lengths = true},
    {"f16 in place", 2, 2, 1, 3, 3, 10, 7, .cache = CACHE_IN_PLACE, .past = 40, .rotary = CLATTN_ROTARY_HALF, .pairs = 3,
     .dtype = CLATTN_F16},
};

static const plain_sizes sizes = {
    .batch = 2, .len = 35, .len_kv = 3, .d_in = 19, .heads = 3, .heads_kv = 1, .dim = 23, .parts = 3};
static const plain_sizes rnn_sizes = {.cell = CLATTN_CELL_RNN, .batch = 3, .len = 3, .d_in = 5, .dim = 37};
static const plain_sizes lstm_sizes = {.cell = CLATTN_CELL_LSTM, .batch = 3, .len = 3, .d_in = 5, .dim = 37};

/* ---- devices ------------------------------------------------------------------------------------------------------- */

/* The OpenCL devices that run work-group kernels alone, whose limits count. */
static bool has_limits(const clattn_context *context) {
    return context && context->device.info.kind >= CLATTN_DEVICE_OPENCL_CPU && context->device.has_gpu_family &&
           !context->device.has_cpu_family;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* No more than the device has in truth. */
static void lower_limits(clattn_context *context, size_t work_group, size_t local_bytes) {
    const clattn_device_info *info = &context->device.info;
    context->device.max_work_group = least(work_group, (size_t)info->max_work_group);
    context->device.local_bytes = least(local_bytes, (size_t)info->local_bytes);
    force_none(context);
}

static void restore_limits(clattn_context *context) {
    context->device.max_work_group = (size_t)context->device.info.max_work_group;
    context->device.local_bytes = (size_t)context->device.info.local_bytes;
    context->device.max_alloc_bytes = (size_t)context->device.info.max_alloc_bytes;
    force_none(context);
}

/* ---- what is checked ----------------------------------------------------------------------------------------------- */

typedef struct counts {
    size_t served, refused;
} counts;

static void assert_fits(const clattn_plan *plan, const char *what) {
    const clattn__device *device = &plan->context->device;
    for (size_t n = 0; n < plan->step_count; n++) {
        const clattn__row *row = plan->steps[n].row;
        ck_assert_msg((size_t)clattn__row_macro(row, "WORK_GROUP", 1) <= device->max_work_group,
                      "%s: %s has a work-group past %zu", what, row->name, device->max_work_group);
        ck_assert_msg((size_t)clattn__row_macro(row, "LOCAL_BYTES", 0) <= device->local_bytes,
                      "%s: %s takes more than %zu bytes", what, row->name, device->local_bytes);
    }
    ck_assert_msg(!plan->dropped.length, "%s: %s", what, plan->dropped.data);
}

/* Whether a plan was made, and fits; else the refusal is one that these limits excuse. */
static bool is_served(clattn_context *context, clattn_status status, clattn_plan *plan, const char *what, counts *c) {
    const bool excused = context->device.local_bytes < ENOUGH_LOCAL;
    if (status == CLATTN_OK) {
        assert_fits(plan, what);
        clattn_plan_destroy(plan);
        c->served++;
        return true;
    }
    ck_assert_msg(status == CLATTN_ERROR_UNSUPPORTED && excused, "%s with work-groups of %zu and %zu bytes: %s", what,
                  context->device.max_work_group, context->device.local_bytes, error_text(context));
    ck_assert_msg(strstr(error_text(context), "needs more local memory") != NULL, "%s: %s", what, error_text(context));
    c->refused++;
    return false;
}

static void check_attention(clattn_context *context, const attention_case *c, clattn_algorithm algorithm, counts *count) {
    rng r = rng_make(1);
    attention_problem p = attention_problem_make(c, &r);
    const int want = attention_outputs(&p, algorithm);
    const clattn_attention_desc desc = attention_desc(&p, LAYOUT_BHLD, want);
    clattn_plan *plan = NULL;
    const clattn_status status = clattn_plan_create_attention(context, &desc, OPTIONS(.algorithm = algorithm), &plan);
    if (is_served(context, status, plan, c->name, count)) {
        attention_results results = attention_run(context, &p, LAYOUT_BHLD, algorithm, want);
        attention_assert_close(&results, &p, "limited");
        attention_results_free(&results);
    }
    attention_problem_free(&p);
}

static void check_plain(clattn_context *context, clattn_context *reference, const plain_problem *p,
                        const clattn_plan_options *options, counts *count) {
    clattn_plan *plan = NULL;
    const clattn_status status = plain_plan(context, p, options, &plan);
    if (!is_served(context, status, plan, p->op->name, count)) return;
    rng r = rng_make(2);
    const verdict v = plain_try(context, reference, p, options, &r);
    ck_assert_msg(v.ok, "%s with work-groups of %zu and %zu bytes: %s", p->op->name, context->device.max_work_group,
                  context->device.local_bytes, v.text);
}

static void check_operators(clattn_context *context, clattn_context *reference, counts *count) {
    const plain_problem plain[] = {plain_merge(&sizes), plain_project_qkv(&sizes), plain_mha(&sizes)};
    const plain_problem recurrences[] = {plain_recurrence(&rnn_sizes), plain_recurrence(&lstm_sizes)};
    for (size_t n = 0; n < COUNT(attention_cases); n++)
        for (clattn_algorithm a = CLATTN_ALGORITHM_STAGED; a <= CLATTN_ALGORITHM_SPLIT; a++)
            check_attention(context, &attention_cases[n], a, count);
    for (size_t n = 0; n < COUNT(plain); n++) check_plain(context, reference, &plain[n], NULL, count);
    for (size_t n = 0; n < COUNT(recurrences); n++)
        for (clattn_recurrence_form form = CLATTN_RECURRENCE_AUTO; form <= CLATTN_RECURRENCE_STEPS; form++)
            check_plain(context, reference, &recurrences[n], OPTIONS(.recurrence = form), count);
}

static clattn_context *open_reference(void) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context;
    options.device = "reference";
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    return context;
}

START_TEST(every_operator_on_lesser_devices) {
    clattn_context *reference = open_reference();
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!has_limits(context)) continue;
        for (size_t w = 0; w < COUNT(work_groups); w++)
            for (size_t l = 0; l < COUNT(local_sizes); l++) {
                counts c = {0};
                lower_limits(context, work_groups[w], local_sizes[l]);
                check_operators(context, reference, &c);
                printf("%s, work-groups of %zu, %zu KiB local: %zu served, %zu refused\n", test_device_name(d), work_groups[w],
                       local_sizes[l] >> 10, c.served, c.refused);
                ck_assert_uint_gt(c.served, 0); /* merging takes no local memory */
            }
        restore_limits(context);
    }
    clattn_context_destroy(reference);
}
END_TEST

/* Staged attention keeps a matrix: where that is more than the device gives at once the plan is refused before anything is
 * allocated; fused attention of the same problem serves. */
START_TEST(a_workspace_past_the_largest_allocation) {
    static const attention_case c = {"small allocations", 1, 2, 2, 70, 70, 8, 8};
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!has_limits(context)) continue;
        rng r = rng_make(3);
        attention_problem p = attention_problem_make(&c, &r);
        clattn_attention_desc desc = attention_desc(&p, LAYOUT_BHLD, 0);
        const clattn_plan_options *staged = OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED);
        context->device.max_alloc_bytes = 32 << 10;
        assert_status(context, clattn_supports_attention(context, &desc, staged), CLATTN_ERROR_MEMORY);
        ck_assert_msg(strstr(error_text(context), "workspace") && strstr(error_text(context), "32768"), "%s",
                      error_text(context));
        check_attention(context, &c, CLATTN_ALGORITHM_AUTO, &(counts){0});
        restore_limits(context);
        assert_ok(context, clattn_supports_attention(context, &desc, staged));
        attention_problem_free(&p);
    }
}
END_TEST

/* No kernel depends on an extension but those in f64. */
START_TEST(a_device_without_f64) {
    static const attention_case c = {"f64", 1, 1, 1, 3, 3, 8, 8, .dtype = CLATTN_F64};
    rng r = rng_make(4);
    attention_problem p = attention_problem_make(&c, &r);
    const clattn_attention_desc desc = attention_desc(&p, LAYOUT_BHLD, 0);
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!context || context->backend->runs_operators) continue;
        const bool has_f64 = context->device.has_f64;
        context->device.has_f64 = false;
        assert_status(context, clattn_supports_attention(context, &desc, NULL), CLATTN_ERROR_UNSUPPORTED);
        ck_assert_msg(strstr(error_text(context), "f64") != NULL, "%s", error_text(context));
        context->device.has_f64 = has_f64;
    }
    attention_problem_free(&p);
}
END_TEST

#ifdef CLATTN_TESTS_OPENCL
/* ---- what a driver answers ------------------------------------------------------------------------------------------ */

/* A kernel may have room for fewer work-items than the device, which only its compiler knows. */
enum { FEW_ITEMS = 64 };

static cl_int CL_API_CALL kernel_of_few_items(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                                              size_t size, void *value, size_t *size_ret) {
    const cl_int code = clGetKernelWorkGroupInfo(kernel, device, what, size, value, size_ret);
    if (code == CL_SUCCESS && what == CL_KERNEL_WORK_GROUP_SIZE) *(size_t *)value = FEW_ITEMS;
    return code;
}

START_TEST(kernels_with_room_for_few_items) {
    rng r = rng_make(5);
    attention_problem p = attention_problem_make(&attention_cases[0], &r);
    const clattn_attention_desc desc = attention_desc(&p, LAYOUT_BHLD, 0);
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!has_limits(context)) continue;
        clattn__opencl_api *api = &clattn__opencl_of(context)->api;
        clattn_plan *plan;
        char text[8192];
        api->GetKernelWorkGroupInfo = kernel_of_few_items;
        assert_ok(context, clattn_plan_create_attention(context, &desc, OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED), &plan));
        for (size_t n = 0; n < plan->step_count; n++)
            ck_assert_int_le(clattn__row_macro(plan->steps[n].row, "WORK_GROUP", 1), FEW_ITEMS);
        clattn_plan_explain(plan, text, sizeof text);
        ck_assert_msg(strstr(text, "dropped scores_64x64") && strstr(text, "runs it with at most 64"), "%s", text);
        clattn_plan_destroy(plan);
        check_attention(context, &attention_cases[0], CLATTN_ALGORITHM_STAGED, &(counts){0});
        api->GetKernelWorkGroupInfo = clGetKernelWorkGroupInfo;
        restore_limits(context);
    }
    attention_problem_free(&p);
}
END_TEST

/* One answer of a device, in place of the true one. */
static const struct answer {
    cl_device_info what;
    const void *value;
    size_t size;
    const char *problem;    /* words of it; NULL: the device can be used */
    size_t limit, expected; /* offset of a size in clattn__device, and what it must be */
} answers[] = {
#define SIZE(n) (const size_t[]){n}, sizeof(size_t)
#define ULONG(n) (const cl_ulong[]){n}, sizeof(cl_ulong)
#define NO (const cl_bool[]){CL_FALSE}, sizeof(cl_bool)
#define TEXT(t) t, sizeof t
    {CL_DEVICE_MAX_WORK_GROUP_SIZE, SIZE(16), NULL, offsetof(clattn__device, max_work_group), 16},
    {CL_DEVICE_MAX_WORK_ITEM_SIZES, (const size_t[]){8, 1, 1}, 3 * sizeof(size_t), NULL,
     offsetof(clattn__device, max_work_group), 8},
    {CL_DEVICE_LOCAL_MEM_SIZE, ULONG(0), NULL, offsetof(clattn__device, local_bytes), 0},
    {CL_DEVICE_MAX_MEM_ALLOC_SIZE, ULONG(1 << 20), NULL, offsetof(clattn__device, max_alloc_bytes), 1 << 20},
    {CL_DEVICE_MAX_PARAMETER_SIZE, SIZE(256), "it takes 256 bytes", offsetof(clattn__device, max_params_bytes), 256},
    {CL_DEVICE_VERSION, TEXT("OpenCL 1.1 old"), "it speaks OpenCL 1.1", 0, 0},
    {CL_DEVICE_VERSION, TEXT("none"), "it does not say which OpenCL", 0, 0},
    {CL_DEVICE_AVAILABLE, NO, "not available", 0, 0},
    {CL_DEVICE_COMPILER_AVAILABLE, NO, "no compiler", 0, 0},
    {CL_DEVICE_ENDIAN_LITTLE, NO, "big-endian", 0, 0},
    {CL_DEVICE_EXTENSIONS, TEXT(""), NULL, 0, 0},
};

static const struct answer *given;

static cl_int CL_API_CALL device_with_answer(cl_device_id device, cl_device_info what, size_t size, void *value,
                                             size_t *size_ret) {
    if (what != given->what) return clGetDeviceInfo(device, what, size, value, size_ret);
    if (value && size < given->size) return CL_INVALID_VALUE;
    if (value) memcpy(value, given->value, given->size);
    if (size_ret) *size_ret = given->size;
    return CL_SUCCESS;
}

START_TEST(answers_become_limits) {
    given = &answers[_i];
    for (size_t d = 0; d < test_device_count(); d++) {
        if (!has_limits(test_context(d))) continue;
        const clattn__opencl *cl = clattn__opencl_of(test_context(d));
        clattn__opencl_api api = cl->api;
        clattn__device device;
        api.GetDeviceInfo = device_with_answer;
        clattn__opencl_describe(&api, cl->device, &device);
        const char *problem = device.info.problem;
        ck_assert_msg(given->problem ? strstr(problem, given->problem) != NULL : !problem[0], "answer %d: \"%s\"", _i, problem);
        ck_assert_int_eq(device.has_gpu_family, !given->problem);
        if (given->limit) ck_assert_uint_eq(*(const size_t *)((const char *)&device + given->limit), given->expected);
        if (given->what == CL_DEVICE_EXTENSIONS) ck_assert_ptr_null(strstr(device.info.features, "fp64"));
    }
}
END_TEST
#endif

int main(void) {
    Suite *suite = suite_create("device limits");
    TCase *tests = tcase_create("device limits");
    tcase_add_test(tests, every_operator_on_lesser_devices);
    tcase_add_test(tests, a_workspace_past_the_largest_allocation);
    tcase_add_test(tests, a_device_without_f64);
#ifdef CLATTN_TESTS_OPENCL
    tcase_add_test(tests, kernels_with_room_for_few_items);
    tcase_add_loop_test(tests, answers_become_limits, 0, COUNT(answers));
#endif
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
