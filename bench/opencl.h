/* Our own OpenCL context and profiling queue on the device under test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_OPENCL_H
#define CLATTN_BENCH_OPENCL_H

#include "candidate.h"
#include "device.h"

typedef struct bench_opencl bench_opencl;

/* From device->context, which is on the whole device: our queue on it, or on `units` of its compute units (0: all) with a
 * clattn context of their own, or, where a device cannot be cut, with at most so many work-groups in flight. Fills device->cl,
 * units, all_units and unit_name. */
bool bench_opencl_open(bench_device *device, int units, bench_error *);
void bench_opencl_close(bench_device *device);
bool bench_opencl_flush(bench_device *device, bench_error *);

/* Take the plan over and upload the problem's inputs. On failure the plan is destroyed. */
bool bench_opencl_plan(bench_candidate *, clattn_plan *, bench_error *);
bool bench_opencl_limit(bench_candidate *, bench_limit_kind, bench_error *);

#endif
