/* SPDX-License-Identifier: Apache-2.0 */
#include "ours.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/opencl_state.h"
#include "host/opencl/opencl.h"

enum { WHOLE_PLAN = -1, LIMIT_RUNS = 5, NARROW = 8 /* a head that the step itself does not use */ };

struct lab_ours {
    bench_device device;
    bench_problem problem;
    bench_opencl_buffers buffers;
    cl_mem workspace;
    clattn_plan *plan, part; /* all of its steps, and the one that is timed */
    clattn_cl_arg bound[CLATTN_TENSOR_COUNT];
};

/* Which launch of which plan is the step. */
typedef struct own_step {
    const char *step;
    bench_op op;
    clattn_algorithm algorithm;
    int role;                                  /* of the launch; WHOLE_PLAN: all */
    const char *len_kv, *head_dim, *value_dim; /* letters of the shape; NULL: NARROW */
    int causal;
} own_step;

static const own_step own_steps[] = {
    {"softmax", BENCH_OP_ATTENTION, CLATTN_ALGORITHM_STAGED, CLATTN__ROLE_SOFTMAX, "N", NULL, NULL, 0},
    {"scores", BENCH_OP_ATTENTION, CLATTN_ALGORITHM_STAGED, CLATTN__ROLE_SCORES, "N", "K", NULL, 0},
    {"weighted-values", BENCH_OP_ATTENTION, CLATTN_ALGORITHM_STAGED, CLATTN__ROLE_WEIGHTED_VALUES, "K", NULL, "N", 0},
    {"mask", BENCH_OP_ATTENTION, CLATTN_ALGORITHM_STAGED, CLATTN__ROLE_MASK, "N", NULL, NULL, 1},
    {"project", BENCH_OP_PROJECT, CLATTN_ALGORITHM_AUTO, WHOLE_PLAN, "N", "K", NULL, 0},
    {"attention", BENCH_OP_ATTENTION, CLATTN_ALGORITHM_FUSED, WHOLE_PLAN, "K", "N", "N", 0},
};

static bool fail(lab_reply *reply, const char *text) {
    reply->failed = 1;
    snprintf(reply->text, sizeof reply->text, "%s", text);
    return false;
}

lab_ours *lab_ours_open(const lab_request *request, lab_reply *reply) {
    bench_error error = {""};
    lab_ours *ours = calloc(1, sizeof *ours);
    if (ours == NULL) {
        fail(reply, "out of memory");
        return NULL;
    }
    if (bench_device_open(&ours->device, request->device, 0, &error)) return ours;
    fail(reply, error.text);
    free(ours);
    return NULL;
}

static void forget_plan(lab_ours *ours) {
    bench_opencl *cl = ours->device.cl;
    if (ours->workspace != NULL) cl->api.ReleaseMemObject(ours->workspace);
    bench_opencl_buffers_free(cl, &ours->buffers);
    free(ours->part.steps);
    clattn_plan_destroy(ours->plan);
    bench_problem_free(&ours->problem);
}

void lab_ours_close(lab_ours *ours) {
    if (ours == NULL) return;
    forget_plan(ours);
    bench_device_close(&ours->device);
    free(ours);
}

/* ---- limits -------------------------------------------------------------------------------------------------------- */

/* The best of some runs, in billions a second. */
static bool measure(lab_ours *ours, bench_limit_kind kind, double *best, bench_error *error) {
    bench_candidate limit;
    if (!bench_candidate_limit(&limit, &ours->device, kind, ours->device.isa, error)) return false;
    const double work = kind == BENCH_LIMIT_MULTIPLY_ADD ? limit.flops : limit.bytes;
    bool right = true;
    for (int n = 0; n < LIMIT_RUNS && right; n++) {
        bench_time time;
        right = limit.class->run(&limit, &time, error);
        if (right) *best = fmax(*best, work / time.wall_ms * 1e-6);
    }
    bench_candidate_release(&limit);
    return right;
}

bool lab_ours_limits(lab_ours *ours, lab_reply *reply) {
    bench_error error = {""};
    return (measure(ours, BENCH_LIMIT_MULTIPLY_ADD, &reply->values[0], &error) &&
            measure(ours, BENCH_LIMIT_READ_MEMORY, &reply->values[1], &error) &&
            measure(ours, BENCH_LIMIT_READ_CACHE, &reply->values[2], &error)) ||
           fail(reply, error.text);
}

/* ---- the step ------------------------------------------------------------------------------------------------------ */

static int64_t size_of(const lab_shape *shape, const char *letter) {
    return letter != NULL ? lab_letter(shape, letter[0]) : NARROW;
}

static bench_shape shape_of(const own_step *own, const lab_shape *shape) {
    return (bench_shape){.op = own->op,
                         .batch = 1,
                         .heads_q = 1,
                         .heads_kv = 1,
                         .len_q = shape->m,
                         .len_kv = size_of(shape, own->len_kv),
                         .head_dim = size_of(shape, own->head_dim),
                         .value_dim = size_of(shape, own->value_dim),
                         .d_in = shape->k,
                         .hidden = shape->n,
                         .causal = own->causal};
}

/* Of the plan, the launches that are the step; the plan stays the owner of all. */
static bool take_part(lab_ours *ours, int role) {
    ours->part = *ours->plan;
    ours->part.step_count = 0;
    ours->part.steps = calloc(ours->plan->step_count + 1, sizeof *ours->part.steps);
    for (size_t i = 0; i < ours->plan->step_count && ours->part.steps != NULL; i++)
        if (role == WHOLE_PLAN || (int)ours->plan->steps[i].row->role == role)
            ours->part.steps[ours->part.step_count++] = ours->plan->steps[i];
    return ours->part.steps != NULL && ours->part.step_count > 0;
}

static bool bind(lab_ours *ours, lab_reply *reply, bench_error *error) {
    bench_opencl *cl = ours->device.cl;
    cl_int code;
    if (!bench_opencl_buffers_create(cl, &ours->problem, &ours->buffers, error)) return fail(reply, error->text);
    if (!bench_opencl_upload(cl, &ours->problem, &ours->buffers, false, error)) return fail(reply, error->text);
    for (size_t i = 0; i < ours->buffers.count; i++) ours->bound[ours->buffers.args[i].id] = ours->buffers.args[i];
    if (ours->plan->workspace_bytes == 0) return true;
    ours->workspace = cl->api.CreateBuffer(cl->context, CL_MEM_READ_WRITE, ours->plan->workspace_bytes, NULL, &code);
    if (ours->workspace == NULL) return fail(reply, clattn__opencl_code(code));
    ours->bound[CLATTN_TENSOR_WORKSPACE] = (clattn_cl_arg){CLATTN_TENSOR_WORKSPACE, ours->workspace, 0};
    return true;
}

static bool launch(lab_ours *ours, clattn_plan *plan, lab_reply *reply) {
    bench_opencl *cl = ours->device.cl;
    cl_event last = NULL;
    const clattn_status status = clattn__opencl_launch(plan, cl->queue, ours->bound, 0, NULL, &last);
    const cl_int code = cl->api.Finish(cl->queue);
    if (last != NULL) cl->api.ReleaseEvent(last);
    if (status != CLATTN_OK) return fail(reply, clattn_status_text(status));
    return code == CL_SUCCESS || fail(reply, clattn__opencl_code(code));
}

bool lab_ours_prepare(lab_ours *ours, const lab_request *request, lab_reply *reply) {
    const own_step *own = own_steps;
    bench_error error = {""};
    while (strcmp(own->step, lab_steps[request->step].name) != 0) own++;
    const bench_shape shape = shape_of(own, &request->shape);
    const bench_variant variant = {.algorithm = own->algorithm};
    if (!bench_problem_create(&ours->problem, &shape, 1, &error)) return fail(reply, error.text);
    const clattn_status status = bench_plan_create(ours->device.context, own->op, &ours->problem.desc, variant, &ours->plan);
    if (status != CLATTN_OK) return fail(reply, clattn_status_text(status));
    if (!take_part(ours, own->role)) return fail(reply, "the library has no such step for this shape");
    return bind(ours, reply, &error) && launch(ours, ours->plan, reply) && launch(ours, &ours->part, reply);
}

bool lab_ours_launch(lab_ours *ours, lab_reply *reply) {
    return launch(ours, &ours->part, reply);
}
