/* An OpenCL driver that misbehaves. $CLATTN_FAKE_ICD says how:
 *   empty     a platform without devices
 *   failing   a platform that does not list its devices
 *   broken    a GPU that compiles nothing
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * As much of a driver as the loader and clattn need to find that out.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <stdlib.h>
#include <string.h>

#include "fake_answers.h"

/* The loader finds the driver's functions through the first member of every object. */
struct _cl_platform_id {
    const cl_icd_dispatch *dispatch;
};
struct _cl_device_id {
    const cl_icd_dispatch *dispatch;
};
struct _cl_context {
    const cl_icd_dispatch *dispatch;
};
struct _cl_program {
    const cl_icd_dispatch *dispatch;
};

static const cl_icd_dispatch dispatch;
static struct _cl_platform_id platform = {&dispatch};
static struct _cl_device_id gpu = {&dispatch};
static struct _cl_context context = {&dispatch};
static struct _cl_program program = {&dispatch};

static int mode_is(const char *mode) {
    const char *given = getenv("CLATTN_FAKE_ICD");
    return given && strcmp(given, mode) == 0;
}

static cl_int platform_info(cl_platform_id p, cl_platform_info what, size_t size, void *value, size_t *size_ret) {
    (void)p;
    switch (what) {
    case CL_PLATFORM_PROFILE: return answer_text("FULL_PROFILE", size, value, size_ret);
    case CL_PLATFORM_VERSION: return answer_text("OpenCL 1.2 fake", size, value, size_ret);
    case CL_PLATFORM_NAME: return answer_text("fake platform", size, value, size_ret);
    case CL_PLATFORM_VENDOR: return answer_text("nobody", size, value, size_ret);
    case CL_PLATFORM_EXTENSIONS: return answer_text("cl_khr_icd", size, value, size_ret);
    case CL_PLATFORM_ICD_SUFFIX_KHR: return answer_text("FAKE", size, value, size_ret);
    default: return CL_INVALID_VALUE;
    }
}

static cl_int device_ids(cl_platform_id p, cl_device_type type, cl_uint capacity, cl_device_id *devices, cl_uint *count) {
    (void)p;
    if (mode_is("failing")) return CL_OUT_OF_RESOURCES;
    if (!mode_is("broken") || !(type & CL_DEVICE_TYPE_GPU)) return CL_DEVICE_NOT_FOUND;
    if (devices && capacity) devices[0] = &gpu;
    if (count) *count = 1;
    return CL_SUCCESS;
}

static cl_int device_info(cl_device_id d, cl_device_info what, size_t size, void *value, size_t *size_ret) {
    (void)d;
    const cl_device_type type = CL_DEVICE_TYPE_GPU;
    const cl_platform_id of = &platform;
    const cl_bool yes = CL_TRUE;
    const cl_uint units = 4096;
    const cl_ulong bytes = 1 << 16;
    const size_t large = 4096;
    switch (what) {
    case CL_DEVICE_TYPE: return answer(&type, sizeof type, size, value, size_ret);
    case CL_DEVICE_PLATFORM: return answer(&of, sizeof of, size, value, size_ret);
    case CL_DEVICE_NAME: return answer_text("fake GPU", size, value, size_ret);
    case CL_DEVICE_VERSION: return answer_text("OpenCL 1.2 fake", size, value, size_ret);
    case CL_DEVICE_OPENCL_C_VERSION: return answer_text("OpenCL C 1.2 fake", size, value, size_ret);
    case CL_DRIVER_VERSION: return answer_text("0", size, value, size_ret);
    case CL_DEVICE_EXTENSIONS: return answer_text("", size, value, size_ret);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE: return answer(&yes, sizeof yes, size, value, size_ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT: return answer(&units, sizeof units, size, value, size_ret);
    case CL_DEVICE_LOCAL_MEM_SIZE:
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer(&bytes, sizeof bytes, size, value, size_ret);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
    case CL_DEVICE_MAX_PARAMETER_SIZE: return answer(&large, sizeof large, size, value, size_ret);
    default: return CL_INVALID_VALUE;
    }
}

static cl_context create_context(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                                 void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code) {
    (void)properties, (void)count, (void)devices, (void)notify, (void)user;
    if (code) *code = CL_SUCCESS;
    return &context;
}

static cl_int keep_context(cl_context c) {
    (void)c;
    return CL_SUCCESS;
}

static cl_program create_program(cl_context c, cl_uint count, const char **texts, const size_t *lengths, cl_int *code) {
    (void)c, (void)count, (void)texts, (void)lengths;
    if (code) *code = CL_SUCCESS;
    return &program;
}

static cl_int build_program(cl_program p, cl_uint count, const cl_device_id *devices, const char *options,
                            void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
    (void)p, (void)count, (void)devices, (void)options, (void)notify, (void)user;
    return CL_BUILD_PROGRAM_FAILURE;
}

static cl_int build_info(cl_program p, cl_device_id d, cl_program_build_info what, size_t size, void *value, size_t *size_ret) {
    (void)p, (void)d;
    if (what != CL_PROGRAM_BUILD_LOG) return CL_INVALID_VALUE;
    return answer_text("fake compiler: it is all wrong", size, value, size_ret);
}

static cl_int keep_program(cl_program p) {
    (void)p;
    return CL_SUCCESS;
}

static const cl_icd_dispatch dispatch = {
    .clGetPlatformInfo = platform_info,
    .clGetDeviceIDs = device_ids,
    .clGetDeviceInfo = device_info,
    .clCreateContext = create_context,
    .clRetainContext = keep_context,
    .clReleaseContext = keep_context,
    .clCreateProgramWithSource = create_program,
    .clBuildProgram = build_program,
    .clGetProgramBuildInfo = build_info,
    .clRetainProgram = keep_program,
    .clReleaseProgram = keep_program,
};

static cl_int platform_ids(cl_uint capacity, cl_platform_id *platforms, cl_uint *count) {
    if (platforms && capacity) platforms[0] = &platform;
    if (count) *count = 1;
    return CL_SUCCESS;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT cl_int clIcdGetPlatformIDsKHR(cl_uint capacity, cl_platform_id *platforms, cl_uint *count) {
    return platform_ids(capacity, platforms, count);
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id p, cl_platform_info what, size_t size, void *value, size_t *size_ret) {
    return platform_info(p, what, size, value, size_ret);
}

EXPORT void *clGetExtensionFunctionAddress(const char *name) {
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return (void *)clIcdGetPlatformIDsKHR;
    if (strcmp(name, "clGetPlatformInfo") == 0) return (void *)clGetPlatformInfo;
    return NULL;
}
