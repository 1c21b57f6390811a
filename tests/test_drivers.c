/* What drivers are known to get wrong, each fault as the smallest kernel that shows it: a fault that is not known fails, and so
 * does one that is mended, whose quirk and way round are then to go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "../host/opencl/opencl.h"
#include "support.h"

enum { RESULTS = 8 };

/* Each kernel writes results from x, which is 5; right ones are `right`. */
static const struct probe {
    const char *name, *body;
    int right[RESULTS], count;
    const char *platform, *device, *driver; /* beginnings: where it goes wrong; NULL: nowhere */
} probes[] = {
    /* Mesa's commit 270446ee, of 24.1.3: the rule for comparisons of widened integers took -2^31 for 2^31. */
    {"a widened integer and a constant",
     "const long wide = x;\n"
     "y[0] = 7; if (wide < 8L) y[0] = 1;\n"
     "y[1] = 7; if (wide >= 8L) y[1] = 1;\n"
     "y[2] = 7; if (wide <= 4L) y[2] = 1;\n"
     "y[3] = 7; if (wide > -3L) y[3] = 1;\n",
     {1, 7, 7, 1},
     4,
     "rusticl",
     "",
     "22."},
    /* What the kernels do in its place. */
    {"two integers", "y[0] = 7; if (x < 8) y[0] = 1;\ny[1] = 7; if (x >= 8) y[1] = 1;\n", {1, 7}, 2, NULL, NULL, NULL},
    {"a difference and a constant",
     "const long left = x, missing = 8 - left, none = 8 + left;\n"
     "y[0] = missing > 8 ? 0 : missing > 0 ? (int)left : 8;\n"
     "y[1] = none > 8 ? 0 : none > 0 ? 1 : 8;\n"
     "y[2] = 3 - left > 3 ? 0 : 3 - left > 0 ? (int)left : 3;\n",
     {5, 0, 3},
     3,
     NULL,
     NULL,
     NULL},
    /* Mesa's commit ac0f643d, of 25.0.0: all rounds of a kernel's loops were counted together, and ended with the 65535th. */
    {"many rounds",
     "int rounds = 0;\n"
     "for (int i = 0; i < 20000 * x; i++) { rounds++; y[1] = i; }\n"
     "y[0] = rounds;\n",
     {100000, 99999},
     2,
     "rusticl",
     "llvmpipe",
     "22."},
};

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_known(const struct probe *p, const clattn_device_info *info) {
    return p->platform && begins(info->platform, p->platform) && begins(info->name, p->device) &&
           begins(info->driver, p->driver);
}

static cl_program build(const clattn__opencl *cl, const struct probe *p) {
    clattn__text text = {0};
    clattn__text_add(&text, "kernel void probe(global int *y, int x) {\n%s}\n", p->body);
    ck_assert(!text.failed);
    cl_int code;
    cl_program program = cl->api.CreateProgramWithSource(cl->cl, 1, (const char **)&text.data, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    code = cl->api.BuildProgram(program, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL);
    ck_assert_msg(code == CL_SUCCESS, "%s does not build: %s", p->name, clattn__opencl_code(code));
    clattn__text_free(&text);
    return program;
}

static void run_kernel(const clattn__opencl *cl, cl_kernel kernel, int results[RESULTS]) {
    const int x = 5;
    const size_t one = 1, bytes = RESULTS * sizeof *results;
    cl_int code;
    cl_command_queue queue = cl->api.CreateCommandQueue(cl->cl, cl->device, 0, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    cl_mem y = cl->api.CreateBuffer(cl->cl, CL_MEM_READ_WRITE, bytes, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(cl->api.SetKernelArg(kernel, 0, sizeof y, &y), CL_SUCCESS);
    ck_assert_int_eq(cl->api.SetKernelArg(kernel, 1, sizeof x, &x), CL_SUCCESS);
    ck_assert_int_eq(cl->api.EnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL), CL_SUCCESS);
    ck_assert_int_eq(cl->api.EnqueueReadBuffer(queue, y, CL_TRUE, 0, bytes, results, 0, NULL, NULL), CL_SUCCESS);
    ck_assert_int_eq(cl->api.ReleaseMemObject(y), CL_SUCCESS);
    ck_assert_int_eq(cl->api.ReleaseCommandQueue(queue), CL_SUCCESS);
}

static bool is_right(const clattn__opencl *cl, const struct probe *p) {
    int results[RESULTS];
    cl_int code;
    cl_program program = build(cl, p);
    cl_kernel kernel = cl->api.CreateKernel(program, "probe", &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    run_kernel(cl, kernel, results);
    ck_assert_int_eq(cl->api.ReleaseKernel(kernel), CL_SUCCESS);
    ck_assert_int_eq(cl->api.ReleaseProgram(program), CL_SUCCESS);
    return memcmp(results, p->right, (size_t)p->count * sizeof *results) == 0;
}

START_TEST(faults_are_those_that_are_known) {
    const struct probe *p = &probes[_i];
    for (size_t d = 0; d < test_device_count(); d++) {
        const clattn_context *context = test_context(d);
        if (!context || context->device.info.kind < CLATTN_DEVICE_OPENCL_CPU) continue;
        const clattn_device_info *info = &context->device.info;
        const bool right = is_right(clattn__opencl_of(context), p), known = is_known(p, info);
        printf("%s, %s: %s\n", test_device_name(d), p->name, right ? "right" : "wrong, as is known");
        ck_assert_msg(right || known, "%s %s on %s gets wrong: %s", info->platform, info->driver, info->name, p->name);
        ck_assert_msg(!right || !known, "%s %s on %s has mended: %s", info->platform, info->driver, info->name, p->name);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("drivers");
    TCase *tests = tcase_create("drivers");
    tcase_add_loop_test(tests, faults_are_those_that_are_known, 0, COUNT(probes));
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
