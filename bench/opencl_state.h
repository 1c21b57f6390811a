/* What the files of the benchmark that speak OpenCL share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_OPENCL_STATE_H
#define CLATTN_BENCH_OPENCL_STATE_H

#include "clattn/clattn_opencl.h"

#include "../host/opencl/loader.h"
#include "clock.h"
#include "opencl.h"

struct bench_opencl {
    clattn__opencl_api api;
    cl_device_id root, device; /* equal when the whole device is used */
    cl_context context;
    cl_command_queue queue; /* in order, profiling */
    bool is_gpu;
    int work_groups; /* in flight at most; 0: no limit */
    /* limits.cl, built when first needed */
    cl_program program, fragments_program;
    cl_kernel chains[2], read_floats, read_local; /* chains: by mad and by fma */
    cl_kernel fragments;
    int width;
    size_t groups, local;
    cl_mem sink, flush;
    int64_t flush_vectors;
};

bool bench_opencl_fail(bench_error *error, const char *call, cl_int code);

/* Wait for `last`, take the time from `start` on and the time between the end of `first` (NULL: the start of `last`) and the
 * end of `last`; both events are released. */
bool bench_opencl_wait(bench_opencl *, cl_event first, cl_event last, double start, bench_time *, bench_error *);

/* A buffer for each tensor of a problem, none for an empty one. */
typedef struct bench_opencl_buffers {
    clattn_cl_arg args[BENCH_MAX_ARGS];
    size_t count;
} bench_opencl_buffers;

/* After a failure, too, buffers are to be freed. */
bool bench_opencl_buffers_create(bench_opencl *, const bench_problem *, bench_opencl_buffers *, bench_error *);
void bench_opencl_buffers_free(bench_opencl *, bench_opencl_buffers *);
/* The inputs, and with `output` the poison of the output, too. */
bool bench_opencl_upload(bench_opencl *, const bench_problem *, const bench_opencl_buffers *, bool output, bench_error *);
bool bench_opencl_download(bench_opencl *, const bench_problem *, const bench_opencl_buffers *, bench_error *);

#endif
