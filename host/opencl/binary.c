/* Compiled programs in the cache: what a driver made of a source is given back to it in the next process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Drivers trust what they are given, and crash on what is no program: only bytes whose checksum holds (host/cache.h), and whose
 * key names this very device, driver, source and set of options, reach one. A driver may refuse them still; then the source is
 * built.
 */
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

/* For the caller to free; NULL without memory. */
static char *key_of(const clattn__opencl *cl, const char *path, const char *options) {
    clattn__text key = {0};
    clattn__text_add(&key, "%s | %s | %s", cl->identity, path, options);
    if (key.failed) clattn__text_free(&key);
    return key.data;
}

/* ---- from the cache ------------------------------------------------------------------------------------------------ */

/* CL_SUCCESS with a program that has kernels, or the driver's objection. */
static cl_int load_binary(clattn__opencl *cl, const char *binary, size_t length, const char *options, cl_program *program) {
    const unsigned char *bytes = (const unsigned char *)binary;
    cl_int code, refusal = CL_SUCCESS;
    cl_program made = cl->api.CreateProgramWithBinary(cl->cl, 1, &cl->device, &length, &bytes, &refusal, &code);
    if (!made) return code;
    size_t kernels = 0;
    code = refusal;
    if (code == CL_SUCCESS) code = cl->api.BuildProgram(made, 1, &cl->device, options, NULL, NULL);
    if (code == CL_SUCCESS) code = cl->api.GetProgramInfo(made, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels, NULL);
    if (code == CL_SUCCESS && kernels == 0) code = CL_INVALID_BINARY;
    if (code == CL_SUCCESS)
        *program = made;
    else
        cl->api.ReleaseProgram(made);
    return code;
}

cl_program clattn__opencl_program_load(clattn_context *context, const char *path, const char *options) {
    clattn__opencl *cl = clattn__opencl_of(context);
    if (!context->cache.kernels) return NULL;
    char *key = key_of(cl, path, options);
    size_t length = 0;
    char *binary = key ? clattn__cache_read(&context->cache, CLATTN__CACHE_KERNEL, key, &length) : NULL;
    cl_program program = NULL;
    const cl_int code = binary ? load_binary(cl, binary, length, options, &program) : CL_SUCCESS;
    if (program)
        clattn__log(context, CLATTN_LOG_INFO, "loaded %s with %s from the cache", path, options);
    else if (binary)
        clattn__log(context, CLATTN_LOG_INFO, "the driver refuses %s from the cache: %s (%d)", path, clattn__opencl_code(code),
                    code);
    free(binary);
    free(key);
    return program;
}

/* ---- into the cache ------------------------------------------------------------------------------------------------ */

/* The devices of a program, of which ours is one. */
typedef struct program_devices {
    cl_uint count, ours;
    size_t *sizes;                    /* of their binaries: 0 where the program is not built for a device */
    unsigned char *block, **binaries; /* one behind another; drivers write NULL where there is none */
} program_devices;

static cl_int get_info(const clattn__opencl_api *api, cl_program program, cl_program_info what, size_t size, void *value) {
    return api->GetProgramInfo(program, what, size, value, NULL);
}

/* CL_INVALID_DEVICE where the driver lists another in its place, as PoCL does the parent of a sub-device. */
static cl_int find_ours(clattn__opencl *cl, cl_program program, program_devices *found) {
    cl_int code = get_info(&cl->api, program, CL_PROGRAM_NUM_DEVICES, sizeof found->count, &found->count);
    if (code != CL_SUCCESS) return code;
    cl_device_id *devices = calloc(found->count + (size_t)1, sizeof(cl_device_id));
    if (!devices) return CL_OUT_OF_HOST_MEMORY;
    code = get_info(&cl->api, program, CL_PROGRAM_DEVICES, found->count * sizeof(cl_device_id), devices);
    while (code == CL_SUCCESS && found->ours < found->count && devices[found->ours] != cl->device) found->ours++;
    free(devices);
    return code == CL_SUCCESS && found->ours == found->count ? CL_INVALID_DEVICE : code;
}

/* Binaries of all devices are asked for together: a driver need not leave one out. */
static cl_int get_binaries(const clattn__opencl_api *api, cl_program program, program_devices *d) {
    size_t total = 0;
    d->sizes = calloc(d->count, sizeof *d->sizes);
    d->binaries = calloc(d->count, sizeof *d->binaries);
    if (!d->sizes || !d->binaries) return CL_OUT_OF_HOST_MEMORY;
    const cl_int code = get_info(api, program, CL_PROGRAM_BINARY_SIZES, d->count * sizeof *d->sizes, d->sizes);
    if (code != CL_SUCCESS) return code;
    for (cl_uint n = 0; n < d->count; n++) total += d->sizes[n];
    d->block = malloc(total ? total : 1);
    if (!d->block) return CL_OUT_OF_HOST_MEMORY;
    unsigned char *at = d->block;
    for (cl_uint n = 0; n < d->count; at += d->sizes[n++]) d->binaries[n] = at;
    return get_info(api, program, CL_PROGRAM_BINARIES, d->count * sizeof *d->binaries, d->binaries);
}

static void program_devices_free(program_devices *d) {
    free(d->block);
    free(d->binaries);
    free(d->sizes);
}

static const char *store(clattn_context *context, const char *key, const program_devices *d) {
    if (!key) return "no memory";
    const unsigned char *binary = d->binaries[d->ours];
    const size_t size = d->sizes[d->ours];
    if (!binary || size == 0) return "the driver gives no binary";
    const int failure = clattn__cache_write(&context->cache, CLATTN__CACHE_KERNEL, key, binary, size);
    return failure ? strerror(failure) : NULL;
}

void clattn__opencl_program_store(clattn_context *context, cl_program program, const char *path, const char *options) {
    clattn__opencl *cl = clattn__opencl_of(context);
    /* Binaries may cost a compilation; what is in the way, the context explains. */
    if (!context->cache.kernels || clattn__cache_obstacle(&context->cache)) return;
    program_devices devices = {0};
    char *key = key_of(cl, path, options);
    cl_int code = find_ours(cl, program, &devices);
    if (code == CL_SUCCESS) code = get_binaries(&cl->api, program, &devices);
    const char *why_not = code == CL_SUCCESS ? store(context, key, &devices) : clattn__opencl_code(code);
    if (why_not) clattn__log(context, CLATTN_LOG_INFO, "%s with %s is not kept: %s", path, options, why_not);
    program_devices_free(&devices);
    free(key);
}
