/* clattn's plans on host memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "../host/split.h"
#include "candidate.h"
#include "clock.h"
#include "opencl.h"
#include "verify.h"

void bench_candidate_release(bench_candidate *candidate) {
    if (candidate->class) candidate->class->release(candidate);
    *candidate = (bench_candidate){0};
}

bool bench_candidate_verify(bench_candidate *candidate, clattn_context *reference, bench_error *error) {
    bench_time time;
    bench_problem_poison(candidate->problem);
    if (!candidate->class->run(candidate, &time, error)) return false;
    if (candidate->class->fetch && !candidate->class->fetch(candidate, error)) return false;
    return bench_verify(candidate->problem, reference, candidate->tile, candidate->verified, sizeof candidate->verified, error);
}

static bool run(bench_candidate *candidate, bench_time *time, bench_error *error) {
    const bench_problem *problem = candidate->problem;
    double start = bench_now_ms();
    clattn_status status = clattn_plan_run(candidate->state, problem->args, problem->arg_count);
    time->wall_ms = bench_now_ms() - start;
    if (status == CLATTN_OK) return true;
    char text[512];
    clattn_context_error(candidate->device->context, text, sizeof text);
    return bench_fail(error, "%s", text);
}

static void release(bench_candidate *candidate) {
    clattn_plan_destroy(candidate->state);
}

static const bench_candidate_class host_plan = {.run = run, .release = release};

/* The instructions that do the most of its work. */
static bench_limit_kind peak_of(const clattn_plan *plan) {
    for (size_t i = 0; i < plan->step_count; i++) {
        const clattn__row *row = plan->steps[i].row;
        if (clattn__row_macro(row, "MMA", 0)) return BENCH_LIMIT_FRAGMENTS;
        const int tiles = clattn__row_macro(row, "TILES", 0);
        for (bench_limit_kind kind = BENCH_LIMIT_AVX512_BF16; tiles && kind < BENCH_LIMIT_PEAKS; kind++)
            if (bench_limit_feature(kind) == tiles) return kind;
    }
    return BENCH_LIMIT_MULTIPLY_ADD;
}

/* Queries a tile of the row that attends. */
static int64_t tile_of(const clattn_plan *plan) {
    for (size_t i = 0; i < plan->step_count; i++) {
        int tile = clattn__row_macro(plan->steps[i].row, "TILE_Q", 0);
        if (tile > 0) return tile;
    }
    return 0;
}

static void describe(bench_candidate *candidate, const clattn_plan *plan) {
    clattn_plan_info info = {.struct_size = sizeof info};
    if (clattn_plan_get_info(plan, &info) != CLATTN_OK) return;
    bool layer = candidate->problem->shape.op != BENCH_OP_ATTENTION && candidate->problem->shape.d_in > 0;
    int length = snprintf(candidate->path, sizeof candidate->path, "clattn %s%s", info.algorithm,
                          layer && candidate->problem->shape.op != BENCH_OP_PROJECT ? " + projections" : "");
    if (plan->split && (size_t)length < sizeof candidate->path)
        snprintf(candidate->path + length, sizeof candidate->path - (size_t)length, " on %zu devices",
                 candidate->device->context->peer_count + 1);
    snprintf(candidate->algorithm, sizeof candidate->algorithm, "%s", info.algorithm);
    snprintf(candidate->row, sizeof candidate->row, "%s", info.row);
    candidate->flops = info.flops;
    candidate->bytes = info.bytes;
    candidate->launches = info.launches;
    candidate->dependent_steps = info.dependent_steps;
    candidate->workspace_bytes = (int64_t)info.workspace_bytes;
    const clattn_plan *attends = plan->split ? plan->split->pieces[0].plan : plan;
    candidate->tile = tile_of(attends);
    candidate->peak = peak_of(attends);
}

bool bench_candidate_plan(bench_candidate *candidate, bench_device *device, bench_problem *problem, bench_variant variant,
                          bench_error *error) {
    *candidate = (bench_candidate){.device = device, .problem = problem};
    clattn_plan *plan = NULL;
    if (bench_plan_create(device->context, problem->shape.op, &problem->desc, variant, &plan) != CLATTN_OK) {
        char text[512];
        clattn_context_error(device->context, text, sizeof text);
        return bench_fail(error, "%s", text);
    }
    describe(candidate, plan);
    if (device->cl) return bench_opencl_plan(candidate, plan, error);
    candidate->state = plan;
    candidate->class = &host_plan;
    return true;
}
