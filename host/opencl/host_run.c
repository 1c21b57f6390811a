/* A run on host memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensors whose byte ranges overlap (q, k and v inside one packed array) are one region, and a region is one buffer: nothing is
 * copied twice, and no two memory objects of a run share host memory. On a CPU device the buffer is the host memory itself; elsewhere
 * inputs are copied to a buffer that the plan keeps and outputs back, element by element where they have gaps: what lies in the
 * gaps belongs to the caller.
 */
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

typedef struct host_region {
    uintptr_t begin, end;
    bool read, written;
    cl_mem mem;
} host_region;

typedef struct host_run {
    clattn_plan *plan;
    void *const *tensors;
    cl_command_queue queue;
    host_region regions[CLATTN_TENSOR_COUNT];
    int count;
    clattn_cl_arg bound[CLATTN_TENSOR_COUNT];
} host_run;

/* ---- regions ------------------------------------------------------------------------------------------------------- */

static int compare_begin(const void *a, const void *b) {
    const uintptr_t x = ((const host_region *)a)->begin, y = ((const host_region *)b)->begin;
    return (x > y) - (x < y);
}

static void find_regions(host_run *run) {
    const clattn_plan *plan = run->plan;
    host_region all[CLATTN_TENSOR_COUNT];
    int count = 0;
    /* Rows of no member of a ragged batch stay as they are. */
    const bool partial = plan->tensors[CLATTN_TENSOR_Q_OFFSETS].dtype != CLATTN_ABSENT;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        if (plan->tensors[id].dtype == CLATTN_ABSENT) continue;
        const uintptr_t begin = (uintptr_t)run->tensors[id];
        const size_t span = clattn__tensor_span(&plan->tensors[id]);
        const bool read = partial || plan->access[id] != CLATTN__WRITE, written = plan->access[id] != CLATTN__READ;
        if (span > 0) all[count++] = (host_region){.begin = begin, .end = begin + span, .read = read, .written = written};
    }
    qsort(all, (size_t)count, sizeof *all, compare_begin);
    for (int n = 0; n < count; n++) {
        host_region *last = run->count > 0 ? &run->regions[run->count - 1] : NULL;
        if (last && all[n].begin < last->end) {
            if (last->end < all[n].end) last->end = all[n].end;
            last->read |= all[n].read;
            last->written |= all[n].written;
        } else {
            run->regions[run->count++] = all[n];
        }
    }
}

static void bind_tensors(host_run *run) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        const uintptr_t at = (uintptr_t)run->tensors[id];
        if (run->plan->tensors[id].dtype == CLATTN_ABSENT || clattn__tensor_span(&run->plan->tensors[id]) == 0) continue;
        const host_region *region = run->regions;
        while (at < region->begin || at >= region->end) region++;
        run->bound[id] = (clattn_cl_arg){(clattn_tensor_id)id, region->mem, at - region->begin};
    }
}

/* ---- in place ------------------------------------------------------------------------------------------------------ */

static clattn_status wrap_regions(host_run *run) {
    clattn__opencl *cl = clattn__opencl_of(run->plan->context);
    for (int n = 0; n < run->count; n++) {
        host_region *region = &run->regions[n];
        const cl_mem_flags access = region->written ? CL_MEM_READ_WRITE : CL_MEM_READ_ONLY;
        cl_int code;
        region->mem = cl->api.CreateBuffer(cl->cl, access | CL_MEM_USE_HOST_PTR, region->end - region->begin,
                                           (void *)region->begin, &code);
        if (!region->mem)
            return clattn__opencl_fail_buffer(run->plan->context, "host memory", region->end - region->begin, code);
    }
    return CLATTN_OK;
}

/* Mapping is what makes the device's writes the host's to see, even where both are the same memory. */
static clattn_status show_regions(host_run *run) {
    clattn__opencl *cl = clattn__opencl_of(run->plan->context);
    for (int n = 0; n < run->count; n++) {
        const host_region *region = &run->regions[n];
        if (!region->written) continue;
        cl_int code;
        void *mapped = cl->api.EnqueueMapBuffer(run->queue, region->mem, CL_TRUE, CL_MAP_READ, 0, region->end - region->begin,
                                                0, NULL, NULL, &code);
        if (code != CL_SUCCESS) return clattn__opencl_fail(run->plan->context, "clEnqueueMapBuffer", code);
        code = cl->api.EnqueueUnmapMemObject(run->queue, region->mem, mapped, 0, NULL, NULL);
        if (code != CL_SUCCESS) return clattn__opencl_fail(run->plan->context, "clEnqueueUnmapMemObject", code);
    }
    return CLATTN_OK;
}

static void unwrap_regions(host_run *run) {
    clattn__opencl *cl = clattn__opencl_of(run->plan->context);
    for (int n = 0; n < run->count; n++)
        if (run->regions[n].mem) cl->api.ReleaseMemObject(run->regions[n].mem);
}

/* ---- by copies ----------------------------------------------------------------------------------------------------- */

static clattn_status upload_regions(host_run *run) {
    clattn__opencl *cl = clattn__opencl_of(run->plan->context);
    for (int n = 0; n < run->count; n++) {
        host_region *region = &run->regions[n];
        const size_t size = region->end - region->begin;
        region->mem = clattn__opencl_kept_buffer(run->plan, n, size);
        if (!region->mem) return CLATTN_ERROR_MEMORY;
        if (!region->read) continue;
        cl_int code =
            cl->api.EnqueueWriteBuffer(run->queue, region->mem, CL_FALSE, 0, size, (const void *)region->begin, 0, NULL, NULL);
        if (code != CL_SUCCESS) return clattn__opencl_fail(run->plan->context, "clEnqueueWriteBuffer", code);
    }
    return CLATTN_OK;
}

static clattn_status grow_staging(clattn_plan *plan, size_t size) {
    clattn__opencl_plan *state = plan->state;
    if (state->staging_size >= size) return CLATTN_OK;
    free(state->staging);
    state->staging = malloc(size);
    state->staging_size = state->staging ? size : 0;
    if (!state->staging) return clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for %zu bytes of an output", size);
    return CLATTN_OK;
}

/* Copy the elements of a view, and nothing between them, from memory that is laid out alike. */
static void copy_elements(const clattn_tensor *view, char *to, const char *from) {
    const i64 unit = (i64)clattn__dtype_size(view->dtype);
    const strides s = clattn__strides(view);
    for (i64 b = 0; b < view->size[0]; b++)
        for (i64 h = 0; h < view->size[1]; h++)
            for (i64 l = 0; l < view->size[2]; l++) {
                const i64 row = b * s.b + h * s.h + l * s.l;
                if (s.d == 1) {
                    memcpy(to + row * unit, from + row * unit, (size_t)(view->size[3] * unit));
                    continue;
                }
                for (i64 d = 0; d < view->size[3]; d++)
                    memcpy(to + (row + d * s.d) * unit, from + (row + d * s.d) * unit, (size_t)unit);
            }
}

static clattn_status download(host_run *run, clattn_tensor_id id) {
    clattn_plan *plan = run->plan;
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    const clattn_tensor *view = &plan->tensors[id];
    const size_t span = clattn__tensor_span(view);
    const bool packed = span == (size_t)clattn__tensor_elements(view) * clattn__dtype_size(view->dtype);
    if (!packed) {
        clattn_status status = grow_staging(plan, span);
        if (status != CLATTN_OK) return status;
    }
    void *to = packed ? run->tensors[id] : ((clattn__opencl_plan *)plan->state)->staging;
    const clattn_cl_arg *from = &run->bound[id];
    cl_int code = cl->api.EnqueueReadBuffer(run->queue, from->mem, CL_TRUE, from->offset, span, to, 0, NULL, NULL);
    if (code != CL_SUCCESS) return clattn__opencl_fail(plan->context, "clEnqueueReadBuffer", code);
    if (!packed) copy_elements(view, run->tensors[id], to);
    return CLATTN_OK;
}

static clattn_status download_outputs(host_run *run) {
    clattn_status status = CLATTN_OK;
    for (int id = 0; id < CLATTN_TENSOR_COUNT && status == CLATTN_OK; id++)
        if (run->plan->access[id] != CLATTN__READ && run->bound[id].mem) status = download(run, (clattn_tensor_id)id);
    return status;
}

/* ---- the run ------------------------------------------------------------------------------------------------------- */

/* The context's own queue, made when host memory is first run on, be it a self-check's. */
static clattn_status own_queue(clattn_context *context, cl_command_queue *queue) {
    clattn__opencl *cl = clattn__opencl_of(context);
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&cl->queue_lock);
    if (!cl->queue) cl->queue = cl->api.CreateCommandQueue(cl->cl, cl->device, 0, &code);
    *queue = cl->queue;
    pthread_mutex_unlock(&cl->queue_lock);
    return *queue ? CLATTN_OK : clattn__opencl_fail(context, "clCreateCommandQueue", code);
}

clattn_status clattn__opencl_run(clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    host_run run = {.plan = plan, .tensors = tensors};
    if (!clattn__opencl_plan_state(plan)) return CLATTN_ERROR_MEMORY;
    clattn_status status = own_queue(plan->context, &run.queue);
    if (status != CLATTN_OK) return status;

    find_regions(&run);
    status = cl->in_place ? wrap_regions(&run) : upload_regions(&run);
    cl_event after = NULL, last = NULL;
    if (status == CLATTN_OK) status = clattn__opencl_own_workspace(plan, &run.bound[CLATTN_TENSOR_WORKSPACE], &after);
    if (status == CLATTN_OK) {
        bind_tensors(&run);
        status = clattn__opencl_launch(plan, run.queue, run.bound, after ? 1 : 0, after ? &after : NULL, &last);
        if (last) cl->api.ReleaseEvent(last);
    }
    if (status == CLATTN_OK) status = cl->in_place ? show_regions(&run) : download_outputs(&run);
    /* Also after a failure: what is in flight still uses the caller's memory. */
    cl_int code = cl->api.Finish(run.queue);
    if (status == CLATTN_OK && code != CL_SUCCESS) status = clattn__opencl_fail(plan->context, "clFinish", code);
    if (cl->in_place) unwrap_regions(&run);
    return status;
}
