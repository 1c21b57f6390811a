/* Attention between an application's own OpenCL commands: its context, its queue, its buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Q, K and V lie one after another in a single buffer, filled by a command whose event the attention waits for; the read of
 * the result waits for the attention. Nothing blocks before the end. Ends with 77 where there is no OpenCL device.
 */
#include <clattn/clattn_opencl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 2, LEN = 64, DIM = 32, COUNT = HEADS * LEN * DIM, NO_DEVICE = 77 };

static void fail(const char *what, long code) {
    fprintf(stderr, "%s: %ld\n", what, code);
    exit(1);
}

static void check_cl(const char *what, cl_int code) {
    if (code != CL_SUCCESS) fail(what, code);
}

static void check_clattn(const char *what, clattn_status status, clattn_context *context) {
    if (status == CLATTN_OK) return;
    char text[1024] = "";
    clattn_context_error(context, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    fail(what, status);
}

/* The first device there is. */
static cl_device_id find_device(void) {
    cl_platform_id platforms[16];
    cl_uint count = 0;
    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) return NULL;
    for (cl_uint p = 0; p < count && p < 16; p++) {
        cl_device_id device;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS) return device;
    }
    return NULL;
}

static clattn_plan *plan_attention(clattn_context *context) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, HEADS, LEN, DIM);
    clattn_plan *plan;
    check_clattn("plan", clattn_plan_create_attention(context, &desc, NULL, &plan), context);
    return plan;
}

/* The same on the library's own CPU path, to compare with. */
static void attend_natively(const float *qkv, float *out) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "native";
    clattn_context *context;
    check_clattn("native context", clattn_context_create(&options, &context), NULL);
    check_clattn("native attention",
                 clattn_attention_f32(context, 1, HEADS, HEADS, LEN, LEN, DIM, 0, qkv, qkv + COUNT, qkv + 2 * COUNT, out),
                 context);
    clattn_context_destroy(context);
}

static float largest_difference(const float *a, const float *b) {
    float largest = 0;
    for (int i = 0; i < COUNT; i++) {
        float difference = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
        if (!(difference <= largest)) largest = difference;
    }
    return largest;
}

int main(void) {
    cl_device_id device = find_device();
    if (device == NULL) return fputs("no OpenCL device here\n", stderr), NO_DEVICE;
    cl_int code;
    cl_context cl = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    check_cl("clCreateContext", code);
    cl_command_queue queue = clCreateCommandQueue(cl, device, 0, &code);
    check_cl("clCreateCommandQueue", code);

    static float qkv[3 * COUNT], out[COUNT], expected[COUNT];
    for (int i = 0; i < 3 * COUNT; i++) qkv[i] = (float)((i * 7919) % 1009) / 1009 - 0.5f;
    cl_mem in_buffer = clCreateBuffer(cl, CL_MEM_READ_ONLY, sizeof qkv, NULL, &code);
    check_cl("clCreateBuffer", code);
    cl_mem out_buffer = clCreateBuffer(cl, CL_MEM_WRITE_ONLY, sizeof out, NULL, &code);
    check_cl("clCreateBuffer", code);

    clattn_context *context;
    check_clattn("context", clattn_cl_context_create(NULL, cl, device, &context), NULL);
    clattn_plan *plan = plan_attention(context);
    const clattn_cl_arg args[] = {
        {CLATTN_TENSOR_Q, in_buffer, 0},
        {CLATTN_TENSOR_K, in_buffer, COUNT * sizeof(float)},
        {CLATTN_TENSOR_V, in_buffer, 2 * COUNT * sizeof(float)},
        {CLATTN_TENSOR_OUT, out_buffer, 0},
    };
    cl_event written, attended;
    check_cl("write", clEnqueueWriteBuffer(queue, in_buffer, CL_FALSE, 0, sizeof qkv, qkv, 0, NULL, &written));
    check_clattn("enqueue", clattn_cl_plan_enqueue(plan, queue, args, 4, 1, &written, &attended), context);
    check_cl("read", clEnqueueReadBuffer(queue, out_buffer, CL_TRUE, 0, sizeof out, out, 1, &attended, NULL));

    attend_natively(qkv, expected);
    float difference = largest_difference(out, expected);
    printf("largest difference from native: %g\n", difference);

    clReleaseEvent(written);
    clReleaseEvent(attended);
    clattn_plan_destroy(plan);
    clattn_context_destroy(context);
    clReleaseMemObject(in_buffer);
    clReleaseMemObject(out_buffer);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl);
    return difference <= 1e-5f ? 0 : 1;
}
