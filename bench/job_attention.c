/* `clattn bench attention`: full and causal, on one unit and on all, with peers if asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "group.h"
#include "jobs.h"

/* FLOPs are the problem's, whoever computes it. */
static void borrow_counts(bench_candidate *to, const bench_candidate *from) {
    if (!to || !from) return;
    to->flops = from->flops;
    to->bytes = from->bytes;
}

static void add_peers(bench_group *group, bench_device *device, bench_problem *problem, const bench_candidate *counted) {
    bench_error error;
    bench_candidate candidate;
    if (device->cl) {
        bool made = bench_candidate_clblast(&candidate, device, problem, &error);
        candidate.problem = problem;
        borrow_counts(bench_group_add(group, "peers", made, &candidate, &error), counted);
        return;
    }
    for (bench_openblas_kind kind = BENCH_OPENBLAS_WHOLE; kind <= BENCH_OPENBLAS_ROW_BLOCKED; kind++) {
        bool made = bench_candidate_openblas(&candidate, device, problem, kind, &error);
        candidate.problem = problem;
        borrow_counts(bench_group_add(group, "peers", made, &candidate, &error), counted);
    }
}

static void add_device(bench_group *group, bench_device *device, bench_problem *problem) {
    const bench_args *args = &group->session->args;
    clattn_algorithm only = (clattn_algorithm)bench_args_or(args->algorithm, CLATTN_ALGORITHM_AUTO);
    const bench_candidate *fused = NULL, *staged = NULL;
    if (only != CLATTN_ALGORITHM_STAGED)
        fused = bench_group_add_plan(group, "peers", device, problem, (bench_variant){.algorithm = CLATTN_ALGORITHM_FUSED});
    if (only != CLATTN_ALGORITHM_FUSED)
        staged = bench_group_add_plan(group, "peers", device, problem, (bench_variant){.algorithm = CLATTN_ALGORITHM_STAGED});
    if (args->peers) add_peers(group, device, problem, fused ? fused : staged);
}

/* The units asked for; one and all by default. */
static size_t list_units(const bench_session *session, int units[BENCH_MAX_UNITS]) {
    const cli_integers *asked = &session->args.threads;
    size_t count = 0;
    for (; count < asked->count && count < BENCH_MAX_UNITS; count++) units[count] = (int)asked->values[count];
    if (count > 0) return count;
    units[0] = 1;
    units[1] = session->devices[0].all_units;
    return units[1] > 1 ? 2 : 1;
}

/* One length: the shape asked for, and beside a full one its causal sister, so that their ratio is of one run. */
static bool measure_length(bench_session *session, int64_t length, bench_error *error) {
    bench_shape shapes[2] = {bench_session_shape(session, BENCH_OP_ATTENTION, length)};
    size_t shape_count = 1, first;
    if (!shapes[0].causal) {
        shapes[1] = shapes[0];
        shapes[1].causal = 1;
        shapes[1].align = CLATTN_ALIGN_BOTTOM_RIGHT;
        shape_count = 2;
    }
    int units[BENCH_MAX_UNITS];
    size_t unit_count = list_units(session, units);
    bench_problem problems[2] = {{{0}}};
    bench_group group = {.session = session};
    bool right = true;
    for (size_t i = 0; right && i < shape_count; i++) {
        right = bench_problem_create(&problems[i], &shapes[i], session->seed, error);
        for (size_t u = 0; right && u < unit_count; u++) {
            bench_device *device = bench_session_device(session, units[u], error);
            right = device != NULL;
            if (right) add_device(&group, device, &problems[i]);
        }
    }
    bench_session_progress(session, "attention at length %lld: sampling", (long long)length);
    right = right && bench_group_measure(&group, length <= 1024, &first, error);
    bench_group_free(&group);
    for (size_t i = 0; i < 2; i++) bench_problem_free(&problems[i]);
    return right;
}

bool bench_job_attention(bench_session *session, bench_error *error) {
    static const int64_t defaults[] = {512, 2048, 4096};
    int64_t lengths[BENCH_MAX_LENGTHS];
    size_t count = bench_session_lengths(session, defaults, session->args.quick ? 2 : 3, lengths);
    for (size_t i = 0; i < count; i++)
        if (!measure_length(session, lengths[i], error)) return false;
    return true;
}
