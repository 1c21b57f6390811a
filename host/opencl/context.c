/* Contexts on an OpenCL device: one of ours, or the caller's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../self_check.h"
#include "opencl.h"

/* ---- what both have ------------------------------------------------------------------------------------------------ */

static clattn_status load(clattn_context *context, clattn__opencl_api *api) {
    char why[200];
    if (clattn__opencl_load(api, why, sizeof why)) return CLATTN_OK;
    return clattn__fail(context, CLATTN_ERROR_DEVICE, "no OpenCL on this machine: %s", why);
}

/* Hand a loaded table and a retained cl_context to the context, or give both back. */
static clattn_status adopt(clattn_context *context, clattn__opencl_api *api, cl_device_id device, cl_context cl) {
    clattn__opencl *state = calloc(1, sizeof *state);
    if (state) state->identity = clattn__opencl_identity(api, device, &context->device.info);
    bool made = state && state->identity && pthread_mutex_init(&state->build_lock, NULL) == 0;
    if (made && pthread_mutex_init(&state->queue_lock, NULL) != 0) {
        pthread_mutex_destroy(&state->build_lock);
        made = false;
    }
    if (!made) {
        if (state) free(state->identity);
        free(state);
        api->ReleaseContext(cl);
        clattn__opencl_unload(api);
        return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for the OpenCL side of a context");
    }
    state->api = *api;
    state->device = device;
    state->cl = cl;
    state->in_place =
        context->device.has_cpu_family; /* asked for another family, a CPU device is treated as a GPU throughout */
    context->state = state;
    context->backend = &clattn__backend_opencl;
    clattn_status status = clattn__self_checks_open(context, state->identity);
    if (status != CLATTN_OK) clattn__context_close(context);
    return status;
}

static clattn_status check_usable(clattn_context *context, const clattn__device *device) {
    if (!device->info.problem[0]) return CLATTN_OK;
    return clattn__fail(context, CLATTN_ERROR_DEVICE, "%s (%s) cannot be used: %s", device->info.id, device->info.name,
                        device->info.problem);
}

/* ---- a device of this machine --------------------------------------------------------------------------------------- */

static clattn_status find_device(clattn_context *context, const clattn__opencl_api *api, int platform, int device,
                                 cl_device_id *found) {
    cl_platform_id *platforms = NULL;
    cl_device_id *devices = NULL;
    cl_uint platform_count = 0, device_count = 0;
    clattn_status status = CLATTN_OK;
    cl_int code = clattn__opencl_platforms(api, &platforms, &platform_count);
    if (code != CL_SUCCESS)
        status = clattn__fail(context, CLATTN_ERROR_DEVICE, "no OpenCL platform: %s (%d)", clattn__opencl_code(code), code);
    else if (platform < 0 || (cl_uint)platform >= platform_count)
        status = clattn__fail(context, CLATTN_ERROR_DEVICE, "there is no OpenCL platform %d: they count %u, from 0", platform,
                              platform_count);
    if (status == CLATTN_OK) {
        code = clattn__opencl_devices(api, platforms[platform], &devices, &device_count);
        if (code != CL_SUCCESS)
            status = clattn__fail(context, CLATTN_ERROR_DEVICE, "OpenCL platform %d gives no device: %s (%d)", platform,
                                  clattn__opencl_code(code), code);
        else if (device < 0 || (cl_uint)device >= device_count)
            status = clattn__fail(context, CLATTN_ERROR_DEVICE, "OpenCL platform %d has no device %d: they count %u, from 0",
                                  platform, device, device_count);
    }
    if (status == CLATTN_OK) *found = devices[device];
    free(devices);
    free(platforms);
    return status;
}

static clattn_status narrow_family(clattn_context *context, const char *family, clattn__device *device) {
    if (!family) return CLATTN_OK;
    const bool cpu = strcmp(family, "cpu") == 0, clblast = strcmp(family, "clblast") == 0;
    if (!cpu && !clblast && strcmp(family, "gpu") != 0)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "kernel family \"%s\" is not known; it is cpu, gpu or clblast",
                            family);
    device->has_cpu_family = cpu;
    device->has_gpu_family = !cpu;
    device->has_clblast = clblast;
    /* The id opens the same again. */
    const size_t length = strlen(device->info.id);
    snprintf(device->info.id + length, sizeof device->info.id - length, ":%s", family);
    return CLATTN_OK;
}

static clattn_status open_clblast(clattn_context *context) {
    char why[200];
    if (!context->device.has_clblast) return CLATTN_OK;
    if (clattn__clblast_open(&clattn__opencl_of(context)->clblast, why, sizeof why)) return CLATTN_OK;
    return clattn__fail(context, CLATTN_ERROR_DEVICE, "CLBlast is not here: %s", why);
}

clattn_status clattn__opencl_open(clattn_context *context, int platform, int device, const char *family) {
    clattn__opencl_api api;
    cl_device_id id = NULL;
    cl_context cl = NULL;
    clattn_status status = load(context, &api);
    if (status != CLATTN_OK) return status;
    clattn__opencl_discovery_begin();
    status = find_device(context, &api, platform, device, &id);
    if (status == CLATTN_OK) {
        clattn__opencl_describe(&api, id, &context->device);
        snprintf(context->device.info.id, sizeof context->device.info.id, "opencl:%d:%d", platform, device);
        status = check_usable(context, &context->device);
    }
    if (status == CLATTN_OK) status = narrow_family(context, family, &context->device);
    if (status == CLATTN_OK) {
        cl_int code;
        cl = api.CreateContext(NULL, 1, &id, NULL, NULL, &code);
        if (!cl) status = clattn__opencl_fail(context, "clCreateContext", code);
    }
    clattn__opencl_discovery_end();
    if (status != CLATTN_OK) {
        clattn__opencl_unload(&api);
        return status;
    }
    status = adopt(context, &api, id, cl);
    if (status == CLATTN_OK) status = open_clblast(context);
    if (status != CLATTN_OK) clattn__context_close(context);
    return status;
}

/* ---- the caller's context ------------------------------------------------------------------------------------------- */

/* Drivers list a sub-device's parent in place of the sub-device (PoCL 3). */
static bool is_or_descends_from(const clattn__opencl_api *api, cl_device_id device, cl_device_id ancestor) {
    while (device && device != ancestor) {
        cl_device_id parent = NULL;
        const cl_int code = api->GetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL);
        device = code == CL_SUCCESS ? parent : NULL;
    }
    return device != NULL;
}

static clattn_status check_member(clattn_context *context, const clattn__opencl_api *api, cl_context cl, cl_device_id device) {
    size_t size = 0;
    cl_int code = api->GetContextInfo(cl, CL_CONTEXT_DEVICES, 0, NULL, &size);
    cl_device_id *devices = code == CL_SUCCESS ? malloc(size ? size : 1) : NULL;
    if (code == CL_SUCCESS && !devices) code = CL_OUT_OF_HOST_MEMORY;
    if (code == CL_SUCCESS) code = api->GetContextInfo(cl, CL_CONTEXT_DEVICES, size, devices, NULL);
    bool member = false;
    for (size_t n = 0; code == CL_SUCCESS && n < size / sizeof *devices; n++)
        member |= is_or_descends_from(api, device, devices[n]);
    free(devices);
    if (code != CL_SUCCESS) return clattn__opencl_fail(context, "clGetContextInfo", code);
    if (!member) return clattn__fail(context, CLATTN_ERROR_DEVICE, "the device is not one of the cl_context's");
    return CLATTN_OK;
}

static clattn_status open_callers(clattn_context *context, cl_context cl, cl_device_id device) {
    clattn__opencl_api api;
    clattn_status status = load(context, &api);
    if (status != CLATTN_OK) return status;
    status = check_member(context, &api, cl, device);
    if (status == CLATTN_OK) {
        clattn__opencl_describe(&api, device, &context->device);
        snprintf(context->device.info.id, sizeof context->device.info.id, "opencl:caller");
        status = check_usable(context, &context->device);
    }
    if (status == CLATTN_OK) {
        cl_int code = api.RetainContext(cl);
        if (code != CL_SUCCESS) status = clattn__opencl_fail(context, "clRetainContext", code);
    }
    if (status == CLATTN_OK) return adopt(context, &api, device, cl);
    clattn__opencl_unload(&api);
    return status;
}

clattn_status clattn_cl_context_create(const clattn_context_options *given, cl_context cl, cl_device_id device,
                                       clattn_context **out) {
    if (!out) return CLATTN_ERROR_ARGUMENT;
    *out = NULL;
    clattn_context_options options;
    clattn_status status = clattn__context_options(given, &options);
    if (status != CLATTN_OK) return status;
    if (options.error && options.error_size) options.error[0] = 0;
    clattn_context *context = clattn__context_new(&options);
    if (!context) return clattn__context_give_up(NULL, &options, CLATTN_ERROR_MEMORY, "no memory for a context");
    if (!cl || !device)
        status = clattn__fail(context, CLATTN_ERROR_ARGUMENT, "the %s is NULL", cl ? "cl_device_id" : "cl_context");
    else if (options.device)
        status = clattn__fail(context, CLATTN_ERROR_ARGUMENT, "options.device is \"%s\"; here the cl_device_id says it",
                              options.device);
    else if (options.work_groups < 0)
        status = clattn__fail(context, CLATTN_ERROR_ARGUMENT, "work_groups is %d; it is not negative", options.work_groups);
    else
        status = open_callers(context, cl, device);
    if (status != CLATTN_OK) return clattn__context_give_up(context, &options, status, NULL);
    clattn__text_add(&context->why, "%s: the caller's cl_context and device\n", context->device.info.id);
    clattn__context_explain_cache(context);
    *out = context;
    return CLATTN_OK;
}
