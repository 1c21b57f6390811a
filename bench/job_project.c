/* `clattn bench project`: projections, with --peers beside OpenBLAS's product.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "group.h"
#include "jobs.h"

static void add_sgemm(bench_group *group, bench_device *device, bench_problem *problem, const bench_candidate *counted) {
    bench_error error;
    bench_candidate candidate;
    bool made = bench_candidate_openblas(&candidate, device, problem, BENCH_OPENBLAS_WHOLE, &error);
    candidate.problem = problem;
    bench_candidate *added = bench_group_add(group, "project", made, &candidate, &error);
    if (added && counted) added->flops = counted->flops, added->bytes = counted->bytes;
}

static bool measure_length(bench_session *session, int64_t length, bench_error *error) {
    const bench_shape shape = bench_session_shape(session, BENCH_OP_PROJECT, length);
    bench_problem problem;
    bench_group group = {.session = session};
    size_t first;
    if (!bench_problem_create(&problem, &shape, session->seed, error)) return false;
    bool right = true;
    int units[BENCH_MAX_UNITS];
    const size_t unit_count = bench_session_asked_units(session, units);
    for (size_t u = 0; right && u < unit_count; u++) {
        bench_device *device = bench_session_device(session, units[u], error);
        right = device != NULL;
        if (!right) break;
        const bench_candidate *ours = bench_group_add_plan(&group, "project", device, &problem, (bench_variant){0});
        if (session->args.peers && !device->cl) add_sgemm(&group, device, &problem, ours);
    }
    bench_session_progress(session, "projection at length %lld: sampling", (long long)length);
    right = right && bench_group_measure(&group, false, &first, error);
    bench_group_free(&group);
    bench_problem_free(&problem);
    return right;
}

bool bench_job_project(bench_session *session, bench_error *error) {
    static const int64_t defaults[] = {128, 512, 2048};
    int64_t lengths[BENCH_MAX_LENGTHS];
    size_t count = bench_session_lengths(session, defaults, 3, lengths);
    for (size_t i = 0; i < count; i++)
        if (!measure_length(session, lengths[i], error)) return false;
    return true;
}
