/* The device under test: a context, and what of the device it may use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_DEVICE_H
#define CLATTN_BENCH_DEVICE_H

#include "clattn/clattn.h"
#include "error.h"
#include "isa.h"

typedef struct bench_device {
    clattn_context *context;
    bool is_borrowed; /* the context stays its owner's */
    clattn_device_info info;
    int units;               /* native threads, or compute units (work-groups in flight where a device cannot be partitioned) */
    int all_units;           /* what there is */
    const char *unit_name;   /* "thread", "compute unit", "work-group" */
    struct bench_opencl *cl; /* our own context, queue and device; NULL: host memory */
    const bench_isa *isa;    /* host memory: the level of the device, which the limits are measured at */
    double best_gflops[4];   /* of each kind of arithmetic that is a peak (bench_limit_kind): the best seen in this run */
    float *flush;            /* host memory: what bench_device_flush walks */
    size_t flush_bytes;
} bench_device;

/* Open the device named as in clattn_context_options.device, with `units` of its units (0: all). */
bool bench_device_open(bench_device *, const char *name, int units, bench_error *);
/* The device of a context that stays its owner's, with all of its units. The context outlives it. */
bool bench_device_borrow(bench_device *, clattn_context *, bench_error *);
/* A zeroed device is accepted. */
void bench_device_close(bench_device *);

/* Empty the caches: walk a buffer larger than the last of them. */
bool bench_device_flush(bench_device *, bench_error *);

#endif
