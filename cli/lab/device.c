/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <stdio.h>
#include <string.h>

#include "guard.h"

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 16 };

bool lab_device_fail(lab_reply *reply, const char *call, cl_int code) {
    reply->failed = 1;
    snprintf(reply->text, sizeof reply->text, "%s: %s (%d)", call, clattn__opencl_code(code), (int)code);
    return false;
}

static bool fail(lab_reply *reply, const char *text) {
    reply->failed = 1;
    snprintf(reply->text, sizeof reply->text, "%s", text);
    return false;
}

/* ---- the device ---------------------------------------------------------------------------------------------------- */

static bool is_of_type(const clattn__opencl_api *api, cl_device_id device, cl_device_type wanted) {
    cl_device_type type = 0;
    return api->GetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL) == CL_SUCCESS && (type & wanted) != 0;
}

/* "opencl:1:0" is device 0 of platform 1; "opencl" the first, but a GPU before others. */
static cl_device_id find_device(const clattn__opencl_api *api, const char *name, lab_reply *reply) {
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint platform_count = 0;
    unsigned wanted_platform = 0, wanted_device = 0;
    const bool is_named = sscanf(name, "opencl:%u:%u", &wanted_platform, &wanted_device) == 2;
    cl_device_id best = NULL;
    if (api->GetPlatformIDs(MAX_PLATFORMS, platforms, &platform_count) != CL_SUCCESS) return NULL;
    for (cl_uint p = 0; p < platform_count && p < MAX_PLATFORMS; p++) {
        cl_device_id devices[MAX_DEVICES];
        cl_uint count = 0;
        if (api->GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &count) != CL_SUCCESS) continue;
        for (cl_uint d = 0; d < count && d < MAX_DEVICES; d++) {
            const bool is_it = is_named && p == wanted_platform && d == wanted_device;
            const bool is_better =
                best == NULL || (is_of_type(api, devices[d], CL_DEVICE_TYPE_GPU) && !is_of_type(api, best, CL_DEVICE_TYPE_GPU));
            if (!is_it && (is_named || !is_better)) continue;
            best = devices[d];
            reply->values[0] = p;
            reply->values[1] = d;
        }
    }
    return best;
}

bool lab_device_open(lab_device *device, const char *name, lab_reply *reply) {
    const clattn__opencl_api *api = &device->api;
    char why[256] = "";
    cl_int code;
    if (!clattn__opencl_load(&device->api, why, sizeof why)) return fail(reply, why);
    device->device = find_device(api, name, reply);
    if (device->device == NULL) return fail(reply, "OpenCL has no such device here; clattn devices lists what there is");
    device->context = api->CreateContext(NULL, 1, &device->device, NULL, NULL, &code);
    if (device->context == NULL) return lab_device_fail(reply, "clCreateContext", code);
    device->queue = api->CreateCommandQueue(device->context, device->device, 0, &code);
    if (device->queue == NULL) return lab_device_fail(reply, "clCreateCommandQueue", code);
    reply->argument = is_of_type(api, device->device, CL_DEVICE_TYPE_CPU);
    api->GetDeviceInfo(device->device, CL_DEVICE_NAME, sizeof reply->text, reply->text, NULL);
    return true;
}

/* ---- the program --------------------------------------------------------------------------------------------------- */

/* A line for each argument: its address space and its type. */
static size_t list_arguments(lab_device *device, cl_uint count, size_t used) {
    const clattn__opencl_api *api = &device->api;
    for (cl_uint i = 0; i < count && used < LAB_TEXT_BYTES; i++) {
        char type[64] = "";
        cl_kernel_arg_address_qualifier address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
        api->GetKernelArgInfo(device->kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL);
        api->GetKernelArgInfo(device->kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof address, &address, NULL);
        used += (size_t)snprintf(device->text + used, LAB_TEXT_BYTES - used, "%s %s\n",
                                 address == CL_KERNEL_ARG_ADDRESS_GLOBAL ? "global" : "private", type[0] != 0 ? type : "?");
    }
    return used;
}

/* The text becomes: the number of arguments (-1: no such kernel), the work-group that the kernel requires, the arguments. */
static bool describe_kernel(lab_device *device, const lab_step *step, lab_reply *reply) {
    const clattn__opencl_api *api = &device->api;
    cl_int code;
    cl_uint count = 0;
    size_t group[3] = {0, 0, 0};
    device->text[0] = 0;
    device->kernel = api->CreateKernel(device->program, step->kernel, &code);
    if (device->kernel == NULL) {
        snprintf(device->text, LAB_TEXT_BYTES, "-1 0 0\n");
        return code == CL_INVALID_KERNEL_NAME || lab_device_fail(reply, "clCreateKernel", code);
    }
    code = api->GetKernelInfo(device->kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (code != CL_SUCCESS) return lab_device_fail(reply, "clGetKernelInfo", code);
    code = api->GetKernelWorkGroupInfo(device->kernel, device->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof group, group,
                                       NULL);
    if (code != CL_SUCCESS) return lab_device_fail(reply, "clGetKernelWorkGroupInfo", code);
    const size_t used = (size_t)snprintf(device->text, LAB_TEXT_BYTES, "%u %zu %zu\n", count, group[0], group[1]);
    list_arguments(device, count, used);
    return true;
}

bool lab_device_build(lab_device *device, const lab_request *request, lab_reply *reply) {
    const clattn__opencl_api *api = &device->api;
    char options[96];
    cl_int code;
    const char *source = device->text;
    snprintf(options, sizeof options, "-cl-std=CL1.2 -cl-kernel-arg-info -DHEAD_DIM_MAX=%d", LAB_HEAD_DIM_MAX);
    device->program = api->CreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (device->program == NULL) return lab_device_fail(reply, "clCreateProgramWithSource", code);
    code = api->BuildProgram(device->program, 1, &device->device, options, NULL, NULL);
    if (code == CL_SUCCESS) return describe_kernel(device, &lab_steps[request->step], reply);
    device->text[0] = 0;
    api->GetProgramBuildInfo(device->program, device->device, CL_PROGRAM_BUILD_LOG, LAB_TEXT_BYTES - 1, device->text, NULL);
    return lab_device_fail(reply, "clBuildProgram", code);
}

/* ---- launches ------------------------------------------------------------------------------------------------------ */

/* On a CPU the kernel works in the mapped memory itself, and so within its guards. */
static bool make_buffer(lab_device *device, const lab_request *request, uint32_t n, lab_reply *reply) {
    const clattn__opencl_api *api = &device->api;
    const lab_buffer *buffer = &request->buffers[n];
    const bool is_copied = request->layout != LAB_GUARDED;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | (is_copied ? 0 : CL_MEM_USE_HOST_PTR);
    cl_int code;
    void *data = lab_guard_map(request->slot, n, buffer);
    if (data == NULL) return fail(reply, "the shared memory cannot be mapped");
    cl_mem mem = api->CreateBuffer(device->context, flags, buffer->padded, is_copied ? NULL : data, &code);
    if (mem == NULL) return lab_device_fail(reply, "clCreateBuffer", code);
    device->slots[request->slot].mem[n] = mem;
    device->slots[request->slot].data[n] = data;
    if (!is_copied) return true;
    code = api->EnqueueWriteBuffer(device->queue, mem, CL_TRUE, 0, buffer->padded, data, 0, NULL, NULL);
    return code == CL_SUCCESS || lab_device_fail(reply, "clEnqueueWriteBuffer", code);
}

static uint32_t buffer_count(const lab_step *step) {
    uint32_t count = 0;
    for (size_t i = 0; i < lab_argument_count(step); i++) count += step->arguments[i].kind <= LAB_OUTPUT;
    return count;
}

bool lab_device_prepare(lab_device *device, const lab_request *request, lab_reply *reply) {
    for (uint32_t n = 0; n < buffer_count(&lab_steps[request->step]); n++)
        if (!make_buffer(device, request, n, reply)) return false;
    lab_guard_watch();
    return true;
}

static bool set_arguments(lab_device *device, const lab_request *request, lab_reply *reply) {
    const lab_step *step = &lab_steps[request->step];
    uint32_t buffers = 0;
    for (cl_uint i = 0; i < lab_argument_count(step); i++) {
        const lab_argument *argument = &step->arguments[i];
        const cl_int number = (cl_int)lab_letter(&request->shape, argument->size[0]);
        const cl_float scale = lab_scale(step, &request->shape);
        cl_int code;
        if (argument->kind <= LAB_OUTPUT)
            code = device->api.SetKernelArg(device->kernel, i, sizeof(cl_mem), &device->slots[request->slot].mem[buffers++]);
        else if (argument->kind == LAB_INT)
            code = device->api.SetKernelArg(device->kernel, i, sizeof number, &number);
        else
            code = device->api.SetKernelArg(device->kernel, i, sizeof scale, &scale);
        if (code != CL_SUCCESS) return lab_device_fail(reply, "clSetKernelArg", code);
    }
    return true;
}

bool lab_device_launch(lab_device *device, const lab_request *request, lab_reply *reply) {
    const lab_step *step = &lab_steps[request->step];
    const size_t local[2] = {(size_t)request->grid.local[0], (size_t)request->grid.local[1]};
    size_t global[2];
    lab_global(step, &request->shape, &request->grid, global);
    if (!set_arguments(device, request, reply)) return false;
    cl_int code = device->api.EnqueueNDRangeKernel(device->queue, device->kernel, (cl_uint)step->dimensions, NULL, global,
                                                   local, 0, NULL, NULL);
    if (code != CL_SUCCESS) return lab_device_fail(reply, "clEnqueueNDRangeKernel", code);
    code = device->api.Finish(device->queue);
    return code == CL_SUCCESS || lab_device_fail(reply, "clFinish", code);
}

/* A driver may keep a copy of its own of a buffer in host memory; mapping it brings that back. */
static cl_int bring_back(lab_device *device, cl_mem mem, size_t bytes) {
    cl_int code;
    void *mapped = device->api.EnqueueMapBuffer(device->queue, mem, CL_TRUE, CL_MAP_READ, 0, bytes, 0, NULL, NULL, &code);
    if (mapped == NULL) return code;
    code = device->api.EnqueueUnmapMemObject(device->queue, mem, mapped, 0, NULL, NULL);
    return code == CL_SUCCESS ? device->api.Finish(device->queue) : code;
}

static bool fetch_buffer(lab_device *device, const lab_request *request, uint32_t n, lab_reply *reply) {
    const size_t bytes = request->buffers[n].padded;
    void *data = device->slots[request->slot].data[n];
    cl_mem mem = device->slots[request->slot].mem[n];
    const cl_int code = request->layout == LAB_GUARDED
                            ? bring_back(device, mem, bytes)
                            : device->api.EnqueueReadBuffer(device->queue, mem, CL_TRUE, 0, bytes, data, 0, NULL, NULL);
    device->api.ReleaseMemObject(mem);
    lab_guard_unmap(request->slot, n);
    device->slots[request->slot].mem[n] = NULL;
    return code == CL_SUCCESS || lab_device_fail(reply, "reading a buffer back", code);
}

bool lab_device_collect(lab_device *device, const lab_request *request, lab_reply *reply) {
    bool right = true;
    for (uint32_t n = 0; n < buffer_count(&lab_steps[request->step]); n++)
        if (device->slots[request->slot].mem[n] != NULL) right = fetch_buffer(device, request, n, reply) && right;
    return right;
}
