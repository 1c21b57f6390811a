/* The OpenCL backend of a build that had no OpenCL headers: it says so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "../internal.h"

static const char reason[] = "this build has no OpenCL";

clattn_status clattn__opencl_list(clattn__device **devices, size_t *count) {
    clattn__device *entry = calloc(1, sizeof *entry);
    if (!entry) return CLATTN_ERROR_MEMORY;
    entry->info.struct_size = sizeof entry->info;
    entry->info.kind = CLATTN_DEVICE_OPENCL_OTHER;
    snprintf(entry->info.id, sizeof entry->info.id, "opencl");
    snprintf(entry->info.problem, sizeof entry->info.problem, "%s", reason);
    *devices = entry;
    *count = 1;
    return CLATTN_OK;
}

clattn_status clattn__opencl_open(clattn_context *context, int platform, int device, const char *family) {
    (void)platform, (void)device, (void)family;
    return clattn__fail(context, CLATTN_ERROR_DEVICE, "%s", reason);
}

/* The functions of clattn_opencl.h for callers who do have the headers: the same symbols, OpenCL's handles as plain pointers.
 */

CLATTN_API clattn_status clattn_cl_context_create(const clattn_context_options *given, void *cl, void *device,
                                                  clattn_context **context) {
    (void)cl, (void)device;
    clattn_context_options options;
    if (!context) return CLATTN_ERROR_ARGUMENT;
    *context = NULL;
    clattn_status status = clattn__context_options(given, &options);
    if (status != CLATTN_OK) return status;
    return clattn__context_give_up(NULL, &options, CLATTN_ERROR_DEVICE, reason);
}

CLATTN_API clattn_status clattn_cl_context_create_devices(const clattn_context_options *given, void *cl, void *const *devices,
                                                          uint32_t count, clattn_context **context) {
    (void)count;
    return clattn_cl_context_create(given, cl, (void *)devices, context);
}

CLATTN_API clattn_status clattn_cl_plan_enqueue(clattn_plan *plan, void *queue, const void *args, size_t count,
                                                uint32_t wait_count, void *const *wait_list, void **event) {
    (void)queue, (void)args, (void)count, (void)wait_count, (void)wait_list, (void)event;
    if (!plan) return CLATTN_ERROR_ARGUMENT;
    return clattn__fail(plan->context, CLATTN_ERROR_UNSUPPORTED, "%s", reason);
}
