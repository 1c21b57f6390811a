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

static clattn_status check_usable(clattn_context *context, const clattn__device *device, const char *family) {
    if (!device->info.problem[0]) return CLATTN_OK;
    if (family && device->opens_by_family) {
        clattn__text_add(&context->why, "%s is used as it was asked for, and yet: %s\n", device->info.id, device->info.problem);
        return CLATTN_OK;
    }
    return clattn__fail(context, CLATTN_ERROR_DEVICE, "%s (%s) cannot be used: %s", device->info.id, device->info.name,
                        device->info.problem);
}

/* ---- devices of a cl_context ----------------------------------------------------------------------------------------- */

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

/* A device, and what is to be said of it. */
typedef struct cl_member {
    cl_device_id device;
    char id[32];
} cl_member;

/* Make the context one of a device of `cl`, which is retained. */
static clattn_status open_member(clattn_context *context, cl_context cl, const cl_member *m, const char *family) {
    clattn__opencl_api api;
    clattn_status status = load(context, &api);
    if (status != CLATTN_OK) return status;
    clattn__opencl_describe(&api, m->device, &context->device);
    memcpy(context->device.info.id, m->id, sizeof m->id);
    status = check_usable(context, &context->device, family);
    if (status == CLATTN_OK) status = narrow_family(context, family, &context->device);
    if (status == CLATTN_OK) {
        cl_int code = api.RetainContext(cl);
        if (code != CL_SUCCESS) status = clattn__opencl_fail(context, "clRetainContext", code);
    }
    if (status != CLATTN_OK) {
        clattn__opencl_unload(&api);
        return status;
    }
    status = adopt(context, &api, m->device, cl);
    return status == CLATTN_OK ? open_clblast(context) : status;
}

/* Another device of the same cl_context: a context beside the first, with its settings. */
static clattn_status open_peer(clattn_context *context, cl_context cl, const cl_member *m, const char *family) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.work_groups = context->work_groups;
    options.log = context->log;
    options.log_user = context->log_user;
    options.cache_dir = context->cache.directory ? context->cache.directory : "";
    clattn_context *peer = clattn__context_new(&options);
    if (!peer) return clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for a context");
    context->peers[context->peer_count++] = peer;
    clattn_status status = open_member(peer, cl, m, family);
    return status == CLATTN_OK ? status : clattn__fail(context, status, "%s", clattn__last_error(peer));
}

static clattn_status open_members(clattn_context *context, cl_context cl, const cl_member *members, size_t count,
                                  const char *family) {
    clattn_status status = open_member(context, cl, &members[0], family);
    if (status == CLATTN_OK && count > 1) {
        context->peers = calloc(count - 1, sizeof *context->peers);
        if (!context->peers) status = clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for %zu contexts", count);
    }
    for (size_t n = 1; n < count && status == CLATTN_OK; n++) status = open_peer(context, cl, &members[n], family);
    if (status != CLATTN_OK) clattn__context_close(context);
    return status;
}

/* ---- devices of this machine ---------------------------------------------------------------------------------------- */

/* The devices of a platform, which the caller frees. */
static clattn_status list_devices(clattn_context *context, const clattn__opencl_api *api, int platform, cl_device_id **devices,
                                  cl_uint *count) {
    cl_platform_id *platforms = NULL;
    cl_uint platform_count = 0;
    clattn_status status = CLATTN_OK;
    cl_int code = clattn__opencl_platforms(api, &platforms, &platform_count);
    if (code != CL_SUCCESS)
        status = clattn__fail(context, CLATTN_ERROR_DEVICE, "no OpenCL platform: %s (%d)", clattn__opencl_code(code), code);
    else if (platform < 0 || (cl_uint)platform >= platform_count)
        status = clattn__fail(context, CLATTN_ERROR_DEVICE, "there is no OpenCL platform %d: they count %u, from 0", platform,
                              platform_count);
    if (status == CLATTN_OK) {
        code = clattn__opencl_devices(api, platforms[platform], devices, count);
        if (code != CL_SUCCESS)
            status = clattn__fail(context, CLATTN_ERROR_DEVICE, "OpenCL platform %d gives no device: %s (%d)", platform,
                                  clattn__opencl_code(code), code);
    }
    free(platforms);
    return status;
}

/* One device, or all that can be used, in the order of the platform. The caller frees. */
static clattn_status find_members(clattn_context *context, const clattn__opencl_api *api, int platform, int device,
                                  cl_member **members, size_t *count) {
    cl_device_id *devices = NULL;
    cl_uint device_count = 0;
    clattn_status status = list_devices(context, api, platform, &devices, &device_count);
    if (status == CLATTN_OK && device != CLATTN__ALL_DEVICES && (device < 0 || (cl_uint)device >= device_count))
        status = clattn__fail(context, CLATTN_ERROR_DEVICE, "OpenCL platform %d has no device %d: they count %u, from 0",
                              platform, device, device_count);
    *members = status == CLATTN_OK ? calloc(device_count, sizeof **members) : NULL;
    if (status == CLATTN_OK && !*members)
        status = clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for a list of devices");
    for (cl_uint d = 0; d < device_count && status == CLATTN_OK; d++) {
        clattn__device described;
        if (device != CLATTN__ALL_DEVICES && (cl_uint)device != d) continue;
        if (device == CLATTN__ALL_DEVICES) {
            clattn__opencl_describe(api, devices[d], &described);
            if (described.info.problem[0]) {
                clattn__text_add(&context->why, "left out opencl:%d:%u: %s\n", platform, d, described.info.problem);
                continue;
            }
        }
        cl_member *added = &(*members)[(*count)++];
        added->device = devices[d];
        snprintf(added->id, sizeof added->id, "opencl:%d:%u", platform, d);
    }
    if (status == CLATTN_OK && *count == 0)
        status = clattn__fail(context, CLATTN_ERROR_DEVICE, "OpenCL platform %d has no device that can be used", platform);
    free(devices);
    return status;
}

static clattn_status create_context(clattn_context *context, const clattn__opencl_api *api, const cl_member *members,
                                    size_t count, cl_context *cl) {
    cl_int code = CL_OUT_OF_HOST_MEMORY;
    cl_device_id *devices = malloc(count * sizeof *devices);
    for (size_t n = 0; n < count && devices; n++) devices[n] = members[n].device;
    *cl = devices ? api->CreateContext(NULL, (cl_uint)count, devices, NULL, NULL, &code) : NULL;
    free(devices);
    return *cl ? CLATTN_OK : clattn__opencl_fail(context, "clCreateContext", code);
}

clattn_status clattn__opencl_open(clattn_context *context, int platform, int device, const char *family) {
    clattn__opencl_api api;
    cl_member *members = NULL;
    size_t count = 0;
    cl_context cl = NULL;
    clattn_status status = load(context, &api);
    if (status != CLATTN_OK) return status;
    clattn__opencl_discovery_begin();
    status = find_members(context, &api, platform, device, &members, &count);
    if (status == CLATTN_OK) status = create_context(context, &api, members, count, &cl);
    clattn__opencl_discovery_end();
    if (status == CLATTN_OK) status = open_members(context, cl, members, count, family);
    if (cl) api.ReleaseContext(cl);
    clattn__opencl_unload(&api);
    free(members);
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
    bool found = false;
    for (size_t n = 0; code == CL_SUCCESS && n < size / sizeof *devices; n++)
        found |= is_or_descends_from(api, device, devices[n]);
    free(devices);
    if (code != CL_SUCCESS) return clattn__opencl_fail(context, "clGetContextInfo", code);
    if (!found) return clattn__fail(context, CLATTN_ERROR_DEVICE, "the device is not one of the cl_context's");
    return CLATTN_OK;
}

static clattn_status open_callers(clattn_context *context, cl_context cl, const cl_device_id *devices, cl_uint count) {
    clattn__opencl_api api;
    clattn_status status = load(context, &api);
    if (status != CLATTN_OK) return status;
    cl_member *members = calloc(count, sizeof *members);
    if (!members) status = clattn__fail(context, CLATTN_ERROR_MEMORY, "no memory for a list of devices");
    for (cl_uint n = 0; n < count && status == CLATTN_OK; n++) {
        members[n] = (cl_member){devices[n], "opencl:caller"};
        status = check_member(context, &api, cl, devices[n]);
    }
    clattn__opencl_unload(&api);
    if (status == CLATTN_OK) status = open_members(context, cl, members, count, NULL);
    free(members);
    return status;
}

static clattn_status check_callers(clattn_context *context, cl_context cl, const cl_device_id *devices, cl_uint count) {
    if (!cl) return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "the cl_context is NULL");
    if (!devices || !count) return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "there is no device");
    for (cl_uint n = 0; n < count; n++) {
        if (!devices[n]) return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "the cl_device_id is NULL");
        for (cl_uint before = 0; before < n; before++)
            if (devices[before] == devices[n])
                return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "devices[%u] is devices[%u] again", n, before);
    }
    return CLATTN_OK;
}

clattn_status clattn_cl_context_create(const clattn_context_options *given, cl_context cl, cl_device_id device,
                                       clattn_context **out) {
    return clattn_cl_context_create_devices(given, cl, &device, 1, out);
}

clattn_status clattn_cl_context_create_devices(const clattn_context_options *given, cl_context cl, const cl_device_id *devices,
                                               cl_uint count, clattn_context **out) {
    if (!out) return CLATTN_ERROR_ARGUMENT;
    *out = NULL;
    clattn_context_options options;
    clattn_status status = clattn__context_options(given, &options);
    if (status != CLATTN_OK) return status;
    if (options.error && options.error_size) options.error[0] = 0;
    clattn_context *context = clattn__context_new(&options);
    if (!context) return clattn__context_give_up(NULL, &options, CLATTN_ERROR_MEMORY, "no memory for a context");
    status = check_callers(context, cl, devices, count);
    if (status == CLATTN_OK && options.device)
        status = clattn__fail(context, CLATTN_ERROR_ARGUMENT, "options.device is \"%s\"; here the cl_device_id says it",
                              options.device);
    if (status == CLATTN_OK && options.work_groups < 0)
        status = clattn__fail(context, CLATTN_ERROR_ARGUMENT, "work_groups is %d; it is not negative", options.work_groups);
    if (status == CLATTN_OK) status = open_callers(context, cl, devices, count);
    if (status != CLATTN_OK) return clattn__context_give_up(context, &options, status, NULL);
    clattn__text_add(&context->why, "%s: the caller's cl_context and device%s\n", context->device.info.id,
                     count > 1 ? "s" : "");
    clattn__context_explain(context);
    *out = context;
    return CLATTN_OK;
}
