/* clattn for callers who own a cl_context, a cl_command_queue and cl_mem objects.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here blocks, copies, or makes a queue (but for plans with split_devices, see clattn.h): kernels are built when a plan is
 * made, and a run only enqueues them on the caller's queue behind the caller's events. The library finds OpenCL at run time (the same libOpenCL that the caller is
 * linked to); it does not link it.
 */
#ifndef CLATTN_CLATTN_OPENCL_H
#define CLATTN_CLATTN_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#if defined(__APPLE__)
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

#include "clattn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A clattn context on one device of the caller's cl_context, which is retained. options->device must be NULL.
 * Making a plan there may run small kernels, on a queue of the library's own, to see that they compute right.
 * Errors: ARGUMENT, DEVICE (no OpenCL in this build or on this machine, device not in that context), OPENCL, MEMORY. */
CLATTN_API clattn_status clattn_cl_context_create(const clattn_context_options *options, cl_context cl, cl_device_id device,
                                                  clattn_context **context);

/* The same on `count` devices of it, the first of which is the one meant wherever this header says "the device". Plans with
 * split_devices run on all: those of the others on queues that such a plan makes, behind what the caller's queue is given.
 * (Which devices, the caller says: drivers list the parents of sub-devices instead.) Errors also: ARGUMENT (no device, or one
 * twice). */
CLATTN_API clattn_status clattn_cl_context_create_devices(const clattn_context_options *options, cl_context cl,
                                                          const cl_device_id *devices, cl_uint count,
                                                          clattn_context **context);

/* A tensor and where it lies: `offset` bytes into `mem`, a multiple of the element size. */
typedef struct clattn_cl_arg {
    clattn_tensor_id id;
    cl_mem mem;
    size_t offset;
} clattn_cl_arg;

/* Enqueue one run of the plan. args names every tensor of the plan once; CLATTN_TENSOR_WORKSPACE is optional. Strides are the
 * descriptor's. The queue may be in-order or out-of-order. *event (may be NULL) completes with the last kernel and is the
 * caller's to release. Runs of one plan that share the plan's own workspace are ordered after one another; give a workspace
 * each to let them overlap.
 * An empty tensor's mem may be NULL. wait_list is NULL exactly when wait_count is 0. The queue is not flushed, or only where
 * the plan's own workspace needs it, or other devices do. On failure *event is not written; kernels before the one that failed may be enqueued.
 * Errors: ARGUMENT (tensors as for clattn_plan_run; a buffer too small for its view, of another context, or that kernels may not
 * read or write; a queue of another context or device), ALIAS (an output shares an element with another tensor of the same
 * memory object), WORKSPACE, OPENCL, UNSUPPORTED (not an OpenCL plan). */
CLATTN_API clattn_status clattn_cl_plan_enqueue(clattn_plan *plan, cl_command_queue queue, const clattn_cl_arg *args,
                                                size_t count, cl_uint wait_count, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif
#endif
