/* A run of a plan over several devices: see ../split.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     the caller's queue   steps before ─┬─ pieces of device 0 ──────────┬─ steps that copy together ─▶ the run's event
 *     a queue a piece                    └─ pieces of device 1, 2, ... ──┘
 *
 * Pieces of other devices have queues of their own plan: in one that plans share, a run that waits for an event of the caller's
 * would hold back others. What a queue waits for in another must have been submitted there, hence the flushes.
 */
#include "../split.h"

#include <stdlib.h>

#include "opencl.h"

typedef struct split_run {
    clattn_plan *plan;
    cl_command_queue queue;
    const clattn_cl_arg *bound;
    cl_event start;
    cl_event *ends; /* one a piece that was launched */
    cl_uint count;
} split_run;

static clattn_status flush(clattn_plan *plan, cl_command_queue queue) {
    cl_int code = clattn__opencl_of(plan->context)->api.Flush(queue);
    return code == CL_SUCCESS ? CLATTN_OK : clattn__opencl_fail(plan->context, "clFlush", code);
}

/* An error of a piece's context becomes one of the plan's. */
static clattn_status pass_on(split_run *run, const clattn__piece *piece, clattn_status status) {
    clattn_context *context = piece->plan->context;
    if (status == CLATTN_OK || piece->device == 0) return status;
    return clattn__fail(run->plan->context, status, "device %zu of the context: %s", piece->device,
                        clattn__last_error(context));
}

/* Where the piece's tensors are: parts of the caller's, and memory of its own. */
static clattn_status bind_piece(const split_run *run, const clattn__piece *piece, clattn_cl_arg bound[CLATTN_TENSOR_COUNT]) {
    clattn_plan *plan = piece->plan;
    cl_event none;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        const size_t span = clattn__tensor_span(&plan->tensors[id]);
        if (plan->tensors[id].dtype == CLATTN_ABSENT || span == 0) continue;
        bound[id] = run->bound[id];
        bound[id].offset += piece->offset[id];
        if (plan->access[id] == CLATTN__READ) continue;
        bound[id] = (clattn_cl_arg){(clattn_tensor_id)id, clattn__opencl_kept_buffer(plan, id, span), 0};
        if (!bound[id].mem) return CLATTN_ERROR_MEMORY;
    }
    return clattn__opencl_own_workspace(plan, &bound[CLATTN_TENSOR_WORKSPACE], &none);
}

/* The queue of a piece on another device, made at its first run. */
static clattn_status piece_queue(clattn_plan *plan, cl_command_queue *queue) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    clattn__opencl_plan *state = plan->state;
    cl_int code = CL_SUCCESS;
    if (!state->queue) state->queue = cl->api.CreateCommandQueue(cl->cl, cl->device, 0, &code);
    *queue = state->queue;
    return state->queue ? CLATTN_OK : clattn__opencl_fail(plan->context, "clCreateCommandQueue", code);
}

static clattn_status launch_piece(split_run *run, clattn__piece *piece) {
    clattn_cl_arg bound[CLATTN_TENSOR_COUNT] = {0};
    cl_command_queue queue = run->queue;
    cl_event end = NULL;
    clattn_status status = bind_piece(run, piece, bound);
    if (status == CLATTN_OK && piece->device) status = piece_queue(piece->plan, &queue);
    if (status == CLATTN_OK) status = clattn__opencl_launch(piece->plan, queue, bound, 1, &run->start, &end);
    if (end) run->ends[run->count++] = end;
    if (status == CLATTN_OK && piece->device) status = flush(piece->plan, queue);
    return pass_on(run, piece, status);
}

/* Those of other devices first: they need not wait until this one's are enqueued. */
static clattn_status launch_pieces(split_run *run) {
    const clattn__split *split = run->plan->split;
    clattn_status status = CLATTN_OK;
    for (size_t n = split->count; n-- > 0 && status == CLATTN_OK;) status = launch_piece(run, &split->pieces[n]);
    return status;
}

/* Memory for all pieces: steps before them write it. */
static clattn_status allocate_pieces(split_run *run) {
    const clattn__split *split = run->plan->split;
    clattn_status status = CLATTN_OK;
    for (size_t n = 0; n < split->count && status == CLATTN_OK; n++) {
        clattn_cl_arg bound[CLATTN_TENSOR_COUNT] = {0};
        status = pass_on(run, &split->pieces[n], bind_piece(run, &split->pieces[n], bound));
    }
    return status;
}

/* Behind all pieces that were launched, even where another could not be: they work on the caller's memory. */
static clattn_status join(split_run *run, cl_event *joined) {
    clattn__opencl *cl = clattn__opencl_of(run->plan->context);
    cl_int code = cl->api.EnqueueMarkerWithWaitList(run->queue, run->count, run->count ? run->ends : NULL, joined);
    return code == CL_SUCCESS ? CLATTN_OK : clattn__opencl_fail(run->plan->context, "clEnqueueMarkerWithWaitList", code);
}

static clattn_status run_pieces(split_run *run, cl_event *joined) {
    clattn_status status = flush(run->plan, run->queue);
    if (status == CLATTN_OK) status = launch_pieces(run);
    const clattn_status end = join(run, joined);
    return status == CLATTN_OK ? end : status;
}

clattn_status clattn__opencl_launch_split(clattn_plan *plan, cl_command_queue queue,
                                          const clattn_cl_arg bound[CLATTN_TENSOR_COUNT], cl_uint wait_count,
                                          const cl_event *wait_list, cl_event *last) {
    clattn__opencl *cl = clattn__opencl_of(plan->context);
    const clattn__split *split = plan->split;
    split_run run = {.plan = plan, .queue = queue, .bound = bound, .ends = calloc(split->count, sizeof(cl_event))};
    *last = NULL;
    if (!run.ends) return clattn__fail(plan->context, CLATTN_ERROR_MEMORY, "no memory for %zu events", split->count);
    clattn_status status = allocate_pieces(&run);
    if (status == CLATTN_OK)
        status = clattn__opencl_launch_steps(plan, queue, bound, 0, split->before, wait_count, wait_list, &run.start);
    *last = run.start;
    cl_event joined = NULL;
    if (status == CLATTN_OK) status = run_pieces(&run, &joined);
    if (joined) {
        cl->api.ReleaseEvent(run.start);
        *last = joined;
    }
    cl_event end = NULL;
    if (status == CLATTN_OK)
        status = clattn__opencl_launch_steps(plan, queue, bound, split->before, plan->step_count, 1, &joined, &end);
    if (end) {
        cl->api.ReleaseEvent(joined);
        *last = end;
    }
    for (cl_uint n = 0; n < run.count; n++) cl->api.ReleaseEvent(run.ends[n]);
    free(run.ends);
    return status;
}
