/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"
#include "pin.h"
#include "threads.h"

static bool ask_context(bench_device *device, bench_error *error) {
    device->info.struct_size = sizeof device->info;
    if (clattn_context_device(device->context, &device->info) == CLATTN_OK) return true;
    return bench_fail(error, "the context does not say what its device is");
}

static bool open_context(bench_device *device, const char *name, int threads, bench_error *error) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    char text[512] = "";
    options.device = name;
    options.threads = threads;
    options.error = text;
    options.error_size = sizeof text;
    if (clattn_context_create(&options, &device->context) != CLATTN_OK) return bench_fail(error, "%s", text);
    return ask_context(device, error);
}

/* The context was opened with all threads, to know how many there are; now with so many as are wanted. */
static bool take_threads(bench_device *device, int units, bench_error *error) {
    const bool native = device->info.kind == CLATTN_DEVICE_NATIVE && bench_has_threads();
    device->all_units = native && device->info.compute_units > 0 ? (int)device->info.compute_units : 1;
    device->units = units > 0 && native ? units : device->all_units;
    if (device->units == device->all_units) return true;
    char id[sizeof device->info.id];
    snprintf(id, sizeof id, "%s", device->info.id);
    clattn_context_destroy(device->context);
    device->context = NULL;
    return open_context(device, id, device->units, error);
}

static bool take_units(bench_device *device, int units, bench_error *error) {
    if (strncmp(device->info.id, "opencl:", 7) == 0) return bench_opencl_open(device, units, error);
    return take_threads(device, units, error);
}

/* "opencl:0:0:gpu": the name asked for says more than the device's own. */
static void keep_suffix(clattn_device_info *info, const char *name) {
    size_t length = strlen(info->id);
    if (name && strncmp(name, info->id, length) == 0 && name[length] == ':') snprintf(info->id, sizeof info->id, "%s", name);
}

bool bench_device_open(bench_device *device, const char *name, int units, bench_error *error) {
    bench_affinity saved;
    *device = (bench_device){.unit_name = "thread"};
    bench_pin_widen(&saved); /* OpenCL's threads inherit what this one may use */
    bool right = open_context(device, name, 0, error);
    if (right) keep_suffix(&device->info, name);
    device->isa = bench_isa_of_device(device->info.id);
    right = right && take_units(device, units, error);
    bench_pin_restore(&saved);
    if (!right) bench_device_close(device);
    return right;
}

bool bench_device_borrow(bench_device *device, clattn_context *context, bench_error *error) {
    *device = (bench_device){.context = context, .is_borrowed = true, .unit_name = "thread"};
    const bool asked = ask_context(device, error);
    device->isa = bench_isa_of_device(device->info.id);
    if (asked && take_units(device, 0, error)) return true;
    bench_device_close(device);
    return false;
}

void bench_device_close(bench_device *device) {
    if (!device->is_borrowed) clattn_context_destroy(device->context);
    if (device->cl) bench_opencl_close(device);
    free(device->flush);
    *device = (bench_device){0};
}

/* ---- emptying the caches ------------------------------------------------------------------------------------------- */

/* Each thread walks all of it: that empties every core's own cache, too. */
static void walk(void *arg, int thread, int threads) {
    const bench_device *device = arg;
    float sink;
    (void)thread, (void)threads;
    device->isa->read(device->flush, (int64_t)(device->flush_bytes / sizeof(float)), 1, &sink);
    volatile float kept = sink;
    (void)kept;
}

bool bench_device_flush(bench_device *device, bench_error *error) {
    if (device->cl) return bench_opencl_flush(device, error);
    if (!device->flush) {
        device->flush_bytes = (bench_last_cache_bytes() * 3 / 2 + 1023) / 1024 * 1024;
        device->flush = aligned_alloc(1024, device->flush_bytes);
        if (!device->flush) return bench_fail(error, "out of memory: %zu bytes to empty the caches", device->flush_bytes);
        memset(device->flush, 0, device->flush_bytes);
    }
    bench_on_threads(device->units, walk, device);
    return true;
}
