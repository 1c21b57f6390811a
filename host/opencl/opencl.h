/* What the files of the OpenCL backend share. device.c calls what internal.h declares.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   loader.c    libOpenCL, found at run time         program.c   rows to kernels, built once a context
 *   devices.c   platforms and devices in words       launch.c    a plan's steps on a queue
 *   context.c   contexts, ours and the caller's      host_run.c  a run on host memory
 *   clblast.c   CLBlast, found at run time           enqueue.c   a run on the caller's queue and buffers
 *   binary.c    compiled programs in the cache       split.c     a plan over several devices
 */
#ifndef CLATTN_OPENCL_OPENCL_H
#define CLATTN_OPENCL_OPENCL_H

#include "../internal.h"
#include "clattn/clattn_opencl.h"
#include "clblast.h"
#include "loader.h"

/* ---- state --------------------------------------------------------------------------------------------------------- */

/* context->state */
typedef struct clattn__opencl {
    clattn__opencl_api api;
    cl_device_id device;
    cl_context cl;
    char *identity; /* clattn__opencl_identity */
    bool in_place; /* kernels work on host memory itself */
    clattn__clblast clblast;
    pthread_mutex_t build_lock;              /* held while a program builds, which takes seconds */
    struct clattn__opencl_program *programs; /* a list */
    pthread_mutex_t queue_lock;
    cl_command_queue queue;                  /* in order, for host memory; made at the first such run */
} clattn__opencl;

/* plan->state, from the first run */
typedef struct clattn__opencl_plan {
    cl_mem workspace;   /* the plan's own, */
    cl_event last_user; /* and the last launch that used it */
    struct {
        cl_mem mem;
        size_t size;
    } buffers[CLATTN_TENSOR_COUNT]; /* what host memory is copied to and from; of a piece, what it writes, by tensor */
    void *staging;                  /* outputs on their way to scattered places */
    size_t staging_size;
    cl_command_queue queue; /* of a piece on another device: in order */
} clattn__opencl_plan;

extern const clattn__backend clattn__backend_opencl;

static inline clattn__opencl *clattn__opencl_of(const clattn_context *context) {
    return context->state;
}

/* `call` returned `code`: an error text that names both, and MEMORY or OPENCL. */
clattn_status clattn__opencl_fail(clattn_context *, const char *call, cl_int code);
/* clCreateBuffer did, of so many bytes. */
clattn_status clattn__opencl_fail_buffer(clattn_context *, const char *what, size_t bytes, cl_int code);

/* ---- devices.c ----------------------------------------------------------------------------------------------------- */

/* Lists that the caller frees; a code of CL_SUCCESS comes with count > 0. */
cl_int clattn__opencl_platforms(const clattn__opencl_api *, cl_platform_id **platforms, cl_uint *count);
cl_int clattn__opencl_devices(const clattn__opencl_api *, cl_platform_id, cl_device_id **devices, cl_uint *count);
/* Fill all of *out but info.id. */
void clattn__opencl_describe(const clattn__opencl_api *, cl_device_id, clattn__device *out);

/* All that a compiled kernel depends on beside its row: device, driver, platform, the texts of the kernels. A line for the
 * caller to free; NULL without memory. */
char *clattn__opencl_identity(const clattn__opencl_api *, cl_device_id, const clattn_device_info *);

/* ---- program.c ----------------------------------------------------------------------------------------------------- */

/* The kernel of a step, for the caller to release. Errors: BUILD (with the log; or the device's limits do not hold it),
 * OPENCL, MEMORY. */
clattn_status clattn__opencl_kernel(clattn_context *, const clattn__step *, cl_kernel *);
void clattn__opencl_programs_free(clattn__opencl *);
/* The backend's keep. */
void clattn__opencl_programs_keep(clattn_context *);

/* ---- binary.c ------------------------------------------------------------------------------------------------------ */

/* A built program from the context's cache; NULL where that has none, or none that this driver takes. */
cl_program clattn__opencl_program_load(clattn_context *, const char *path, const char *options);
/* Put a built program there. */
void clattn__opencl_program_store(clattn_context *, cl_program, const char *path, const char *options);

/* ---- launch.c ------------------------------------------------------------------------------------------------------ */

/* The plan's state, made if need be. NULL, with the error text set, when there is no memory. */
clattn__opencl_plan *clattn__opencl_plan_state(clattn_plan *);
/* Put the plan's own workspace in *bound, and in *after what a run in it has to wait for: the last run that did, NULL if none
 * is under way. state->last_user keeps it. */
clattn_status clattn__opencl_own_workspace(clattn_plan *, clattn_cl_arg *bound, cl_event *after);
/* Enqueue the steps, of a split plan also its pieces, behind the wait list. bound[id] says where tensor id lies. *last receives
 * the event of the last launch made, even on failure (NULL if there was none), and is the caller's to release. */
clattn_status clattn__opencl_launch(clattn_plan *, cl_command_queue, const clattn_cl_arg bound[CLATTN_TENSOR_COUNT],
                                    cl_uint wait_count, const cl_event *wait_list, cl_event *last);
/* The same of steps first to end - 1 alone, or of a marker where there are none. */
clattn_status clattn__opencl_launch_steps(clattn_plan *, cl_command_queue, const clattn_cl_arg bound[CLATTN_TENSOR_COUNT],
                                          size_t first, size_t end, cl_uint wait_count, const cl_event *wait_list, cl_event *last);
/* The n-th of the buffers that the plan keeps, grown to hold `size` bytes; NULL with the error text set. */
cl_mem clattn__opencl_kept_buffer(clattn_plan *, int n, size_t size);

/* ---- split.c ------------------------------------------------------------------------------------------------------- */

/* clattn__opencl_launch of a plan that has pieces. */
clattn_status clattn__opencl_launch_split(clattn_plan *, cl_command_queue, const clattn_cl_arg bound[CLATTN_TENSOR_COUNT],
                                          cl_uint wait_count, const cl_event *wait_list, cl_event *last);

/* ---- host_run.c ---------------------------------------------------------------------------------------------------- */

clattn_status clattn__opencl_run(clattn_plan *, void *const tensors[CLATTN_TENSOR_COUNT]);

#endif
