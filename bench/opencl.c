/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl.h"

#if !CLATTN_HAVE_OPENCL

static const char missing[] = "this build has no OpenCL";

bool bench_opencl_open(bench_device *device, int units, bench_error *error) {
    (void)device, (void)units;
    return bench_fail(error, "%s", missing);
}
void bench_opencl_close(bench_device *device) {
    (void)device;
}
bool bench_opencl_flush(bench_device *device, bench_error *error) {
    (void)device;
    return bench_fail(error, "%s", missing);
}
bool bench_opencl_limit(bench_candidate *candidate, bench_limit_kind kind, bench_error *error) {
    (void)candidate, (void)kind;
    return bench_fail(error, "%s", missing);
}

#else

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../host/opencl/opencl.h"
#include "files.h"
#include "opencl_state.h"
#include "threads.h"

bool bench_opencl_fail(bench_error *error, const char *call, cl_int code) {
    return bench_fail(error, "%s: %s (%d)", call, clattn__opencl_code(code), code);
}

/* ---- device, context, queue ---------------------------------------------------------------------------------------- */

/* Cut the device down to `units` compute units; false where it cannot be cut. */
static bool partition(bench_opencl *cl, int units) {
    const cl_device_partition_property counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, units, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END,
                                                   0};
    const cl_device_partition_property equal[] = {CL_DEVICE_PARTITION_EQUALLY, units, 0};
    cl_device_id parts[64];
    cl_uint count = 0;
    if (cl->api.CreateSubDevices(cl->root, counts, 1, parts, &count) != CL_SUCCESS &&
        cl->api.CreateSubDevices(cl->root, equal, 64, parts, &count) != CL_SUCCESS)
        return false;
    if (count == 0) return false;
    cl->device = parts[0];
    for (cl_uint i = 1; i < count && i < 64; i++) cl->api.ReleaseDevice(parts[i]);
    return true;
}

/* A clattn context on the sub-device, with the kernel families that the one on the whole device had. */
static bool replace_context(bench_device *device, bench_error *error) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    const clattn__device whole = device->context->device;
    char text[512] = "";
    options.error = text;
    options.error_size = sizeof text;
    clattn_context_destroy(device->context);
    device->context = NULL;
    if (clattn_cl_context_create(&options, device->cl->context, device->cl->device, &device->context) != CLATTN_OK)
        return bench_fail(error, "%s", text);
    device->context->device.has_cpu_family = whole.has_cpu_family;
    device->context->device.has_gpu_family = whole.has_gpu_family;
    return true;
}

static bool take_units(bench_device *device, int units, bench_error *error) {
    bench_opencl *cl = device->cl;
    const clattn__opencl *whole = clattn__opencl_of(device->context);
    cl_int code = CL_SUCCESS;
    cl->root = cl->device = whole->device;
    device->all_units = (int)device->info.compute_units;
    device->unit_name = "compute unit";
    device->units = units > 0 && units < device->all_units ? units : device->all_units;
    if (device->units == device->all_units) {
        cl->context = whole->cl;
        code = cl->api.RetainContext(cl->context);
    } else if (partition(cl, device->units)) {
        cl->context = cl->api.CreateContext(NULL, 1, &cl->device, NULL, NULL, &code);
        if (cl->context && !replace_context(device, error)) return false;
    } else {
        device->unit_name = "work-group";
        cl->work_groups = device->context->work_groups = device->units;
        cl->context = whole->cl;
        code = cl->api.RetainContext(cl->context);
    }
    if (code != CL_SUCCESS) return bench_opencl_fail(error, "the context of a part of the device", code);
    cl->queue = cl->api.CreateCommandQueue(cl->context, cl->device, CL_QUEUE_PROFILING_ENABLE, &code);
    return cl->queue || bench_opencl_fail(error, "clCreateCommandQueue", code);
}

bool bench_opencl_open(bench_device *device, int units, bench_error *error) {
    char why[256];
    bench_opencl *cl = calloc(1, sizeof *cl);
    if (!cl) return bench_fail(error, "out of memory");
    if (!clattn__opencl_load(&cl->api, why, sizeof why)) {
        free(cl);
        return bench_fail(error, "%s", why);
    }
    device->cl = cl;
    cl->is_gpu = device->info.kind == CLATTN_DEVICE_OPENCL_GPU;
    return take_units(device, units, error);
}

void bench_opencl_close(bench_device *device) {
    bench_opencl *cl = device->cl;
    if (cl->flush) cl->api.ReleaseMemObject(cl->flush);
    if (cl->sink) cl->api.ReleaseMemObject(cl->sink);
    for (int n = 0; n < 2; n++)
        if (cl->chains[n]) cl->api.ReleaseKernel(cl->chains[n]);
    if (cl->read_floats) cl->api.ReleaseKernel(cl->read_floats);
    if (cl->read_local) cl->api.ReleaseKernel(cl->read_local);
    if (cl->fragments) cl->api.ReleaseKernel(cl->fragments);
    if (cl->fragments_program) cl->api.ReleaseProgram(cl->fragments_program);
    if (cl->program) cl->api.ReleaseProgram(cl->program);
    if (cl->queue) cl->api.ReleaseCommandQueue(cl->queue);
    if (cl->context) cl->api.ReleaseContext(cl->context);
    if (cl->device != cl->root) cl->api.ReleaseDevice(cl->device);
    clattn__opencl_unload(&cl->api);
    free(cl);
    device->cl = NULL;
}

/* ---- limits.cl ----------------------------------------------------------------------------------------------------- */

static bool build_program(bench_opencl *cl, const char *options, cl_program *program, bench_error *error) {
    const char *source = bench_file_limits_cl;
    cl_int code;
    *program = cl->api.CreateProgramWithSource(cl->context, 1, &source, NULL, &code);
    if (!*program) return bench_opencl_fail(error, "clCreateProgramWithSource", code);
    code = cl->api.BuildProgram(*program, 1, &cl->device, options, NULL, NULL);
    return code == CL_SUCCESS || bench_opencl_fail(error, "clBuildProgram of limits.cl", code);
}

static bool make_kernel(bench_opencl *cl, cl_program program, const char *name, cl_kernel *kernel, bench_error *error) {
    cl_int code;
    *kernel = cl->api.CreateKernel(program, name, &code);
    return *kernel || bench_opencl_fail(error, name, code);
}

/* Apart from the others: a compiler that does not take its PTX must not cost them. */
static bool build_fragments(bench_device *device, bench_error *error) {
    bench_opencl *cl = device->cl;
    if (cl->fragments) return true;
    if (device->context->device.mma != MMA_NVIDIA) return bench_fail(error, "no tensor cores that this program knows");
    if (cl->fragments_program) return bench_fail(error, "limits.cl does not build with -DFRAGMENTS");
    return build_program(cl, "-DVECTOR_WIDTH=1 -DFRAGMENTS", &cl->fragments_program, error) &&
           make_kernel(cl, cl->fragments_program, "multiply_fragments", &cl->fragments, error);
}

static bool build_limits(bench_device *device, bench_error *error) {
    bench_opencl *cl = device->cl;
    if (cl->program) return true;
    char options[64];
    cl_int code;
    cl->width = cl->is_gpu || device->info.vector_width < 4 ? 1
                : device->info.vector_width >= 16           ? 16
                : device->info.vector_width >= 8            ? 8
                                                            : 4;
    snprintf(options, sizeof options, "-cl-mad-enable -DVECTOR_WIDTH=%d", cl->width);
    if (!build_program(cl, options, &cl->program, error) ||
        !make_kernel(cl, cl->program, "multiply_add_mad", &cl->chains[0], error) ||
        !make_kernel(cl, cl->program, "multiply_add_fma", &cl->chains[1], error) ||
        !make_kernel(cl, cl->program, "read_floats", &cl->read_floats, error) ||
        !make_kernel(cl, cl->program, "read_local", &cl->read_local, error))
        return false;
    /* Enough to fill a GPU; on a CPU some groups for each unit, so that one that is held up costs little. */
    cl->local = cl->is_gpu ? 256 : 1;
    cl->groups = (size_t)device->units * (cl->is_gpu && !cl->work_groups ? 16 : cl->is_gpu ? 1 : 4);
    cl->sink = cl->api.CreateBuffer(cl->context, CL_MEM_WRITE_ONLY, cl->groups * cl->local * sizeof(float), NULL, &code);
    return cl->sink || bench_opencl_fail(error, "clCreateBuffer", code);
}

typedef struct kernel_arg {
    size_t size;
    const void *value;
} kernel_arg;

static bool launch(bench_opencl *cl, cl_kernel kernel, const kernel_arg *args, cl_uint count, bench_time *time,
                   bench_error *error) {
    size_t global = cl->groups * cl->local;
    cl_event event = NULL;
    for (cl_uint i = 0; i < count; i++) {
        cl_int code = cl->api.SetKernelArg(kernel, i, args[i].size, args[i].value);
        if (code != CL_SUCCESS) return bench_opencl_fail(error, "clSetKernelArg", code);
    }
    double start = bench_now_ms();
    cl_int code = cl->api.EnqueueNDRangeKernel(cl->queue, kernel, 1, NULL, &global, &cl->local, 0, NULL, &event);
    if (code != CL_SUCCESS) return bench_opencl_fail(error, "clEnqueueNDRangeKernel", code);
    return bench_opencl_wait(cl, NULL, event, start, time, error);
}

static bool launch_read(bench_opencl *cl, cl_mem buffer, int64_t vectors_each, cl_long repeat, bench_time *time,
                        bench_error *error) {
    /* A CPU's work-items walk runs of memory of their own; a GPU's walk side by side. */
    cl_long count = vectors_each, items = (cl_long)(cl->groups * cl->local);
    cl_long item_stride = cl->is_gpu ? 1 : count, stride = cl->is_gpu ? items : 1;
    const kernel_arg args[] = {{sizeof buffer, &buffer}, {sizeof count, &count},   {sizeof item_stride, &item_stride},
                               {sizeof stride, &stride}, {sizeof repeat, &repeat}, {sizeof cl->sink, &cl->sink}};
    return launch(cl, cl->read_floats, args, 6, time, error);
}

/* A zeroed buffer of about `bytes`; *vectors_each receives how much of it each work-item reads. */
static cl_mem make_buffer(bench_opencl *cl, size_t bytes, int64_t *vectors_each, bench_error *error) {
    size_t items = cl->groups * cl->local, vector = (size_t)cl->width * sizeof(float);
    *vectors_each = (int64_t)(bytes / items / vector / 8 * 8);
    if (*vectors_each < 8) *vectors_each = 8;
    size_t size = (size_t)*vectors_each * items * vector;
    cl_int code;
    void *zeros = calloc(size, 1);
    cl_mem buffer =
        zeros ? cl->api.CreateBuffer(cl->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, size, zeros, &code) : NULL;
    if (!buffer) zeros ? bench_opencl_fail(error, "clCreateBuffer", code) : bench_fail(error, "out of memory");
    free(zeros);
    return buffer;
}

static size_t large_bytes(const bench_device *device, size_t cpu_factor) {
    size_t bytes = device->cl->is_gpu ? (size_t)256 << 20 : cpu_factor * bench_last_cache_bytes();
    return bytes > device->info.max_alloc_bytes / 2 && device->info.max_alloc_bytes ? (size_t)device->info.max_alloc_bytes / 2
                                                                                    : bytes;
}

bool bench_opencl_flush(bench_device *device, bench_error *error) {
    bench_opencl *cl = device->cl;
    bench_time time;
    if (!build_limits(device, error)) return false;
    if (!cl->flush) cl->flush = make_buffer(cl, large_bytes(device, 2), &cl->flush_vectors, error);
    return cl->flush && launch_read(cl, cl->flush, cl->flush_vectors, 1, &time, error);
}

/* One run of a limit takes at least so long. */
static const double RUN_MS = 2;

/* ---- limits as candidates ------------------------------------------------------------------------------------------ */

typedef struct limit {
    bench_limit_kind kind;
    int chain; /* which of the kernels of multiply-adds */
    cl_long repeat;
    cl_mem buffer;
    int64_t vectors_each;
} limit;

static bool reads_buffer(bench_limit_kind kind) {
    return kind == BENCH_LIMIT_READ_CACHE || kind == BENCH_LIMIT_READ_MEMORY;
}

static bool run_limit(bench_candidate *candidate, bench_time *time, bench_error *error) {
    limit *state = candidate->state;
    bench_opencl *cl = candidate->device->cl;
    if (reads_buffer(state->kind)) return launch_read(cl, state->buffer, state->vectors_each, state->repeat, time, error);
    const cl_kernel kernel = state->kind == BENCH_LIMIT_FRAGMENTS    ? cl->fragments
                             : state->kind == BENCH_LIMIT_READ_LOCAL ? cl->read_local
                                                                     : cl->chains[state->chain];
    const kernel_arg args[] = {{sizeof state->repeat, &state->repeat}, {sizeof cl->sink, &cl->sink}};
    return launch(cl, kernel, args, 2, time, error);
}

static void release_limit(bench_candidate *candidate) {
    limit *state = candidate->state;
    if (state->buffer) candidate->device->cl->api.ReleaseMemObject(state->buffer);
    free(state);
}

static const bench_candidate_class opencl_limit = {.run = run_limit, .release = release_limit};

/* The shortest of some runs: others may want this device, too. */
static bool shortest_run(bench_candidate *candidate, double *ms, bench_error *error) {
    *ms = INFINITY;
    for (int n = 0; n < 5; n++) {
        bench_time time;
        if (!run_limit(candidate, &time, error)) return false;
        *ms = fmin(*ms, time.wall_ms);
    }
    return true;
}

/* Repeat until a run is long enough to time. Memory is walked once where that takes long already. */
static bool calibrate(bench_candidate *candidate, bench_error *error) {
    limit *state = candidate->state;
    double ms = 0;
    const bool once = state->kind == BENCH_LIMIT_READ_MEMORY && !candidate->device->cl->is_gpu;
    for (state->repeat = 1; !once; state->repeat *= 2) {
        if (!shortest_run(candidate, &ms, error)) return false;
        if (ms >= RUN_MS) break;
    }
    return true;
}

static bool choose_chain(bench_candidate *candidate, bench_error *error) {
    limit *state = candidate->state;
    double ms[2], rounds[2];
    if (state->kind != BENCH_LIMIT_MULTIPLY_ADD) return calibrate(candidate, error);
    for (state->chain = 0; state->chain < 2; state->chain++) {
        if (!calibrate(candidate, error) || !shortest_run(candidate, &ms[state->chain], error)) return false;
        rounds[state->chain] = (double)state->repeat;
    }
    state->chain = rounds[1] / ms[1] > rounds[0] / ms[0];
    state->repeat = (cl_long)rounds[state->chain];
    return true;
}

/* What so many rounds of a work-item are: see limits.cl. */
static void count_work(bench_candidate *candidate, double rounds) {
    const limit *state = candidate->state;
    const double floats = rounds * candidate->device->cl->width;
    switch (state->kind) {
    case BENCH_LIMIT_MULTIPLY_ADD:
        candidate->flops = floats * 2 * 12;
        break;
    case BENCH_LIMIT_FRAGMENTS:
        candidate->flops = rounds * 2 * 8 * (16 * 8 * 16 / 32);
        break;
    case BENCH_LIMIT_READ_LOCAL:
        candidate->bytes = floats * 8 * sizeof(float);
        break;
    default:
        candidate->bytes = floats * (double)state->vectors_each * sizeof(float);
        break;
    }
}

static bool prepare_limit(bench_candidate *candidate, bench_error *error) {
    bench_device *device = candidate->device;
    bench_opencl *cl = device->cl;
    limit *state = candidate->state;
    size_t items = cl->groups * cl->local;
    size_t cached = cl->is_gpu ? (size_t)4 << 20 : bench_core_cache_bytes() / 2 * (size_t)device->units;
    if (reads_buffer(state->kind)) {
        size_t bytes = state->kind == BENCH_LIMIT_READ_MEMORY ? large_bytes(device, 4) : cached;
        state->buffer = make_buffer(cl, bytes, &state->vectors_each, error);
        if (!state->buffer) return false;
    }
    if (!choose_chain(candidate, error)) return false;
    count_work(candidate, (double)state->repeat * (double)items);
    return true;
}

bool bench_opencl_limit(bench_candidate *candidate, bench_limit_kind kind, bench_error *error) {
    if (!build_limits(candidate->device, error)) return false;
    if (kind == BENCH_LIMIT_FRAGMENTS && !build_fragments(candidate->device, error)) return false;
    limit *state = calloc(1, sizeof *state);
    if (!state) return bench_fail(error, "out of memory");
    state->kind = kind;
    candidate->state = state;
    candidate->class = &opencl_limit;
    if (prepare_limit(candidate, error)) return true;
    bench_candidate_release(candidate);
    return false;
}

#endif
