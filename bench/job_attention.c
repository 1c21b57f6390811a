/* `clattn bench attention`: full and causal, on one unit and on all, with peers if asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "clock.h"
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

/* PyTorch's implementations, those that take the shape. It has the whole GPU, so only a whole device has it as a rival. */
static void add_torch(bench_group *group, bench_device *device, bench_problem *problem, const bench_candidate *counted) {
    bench_session *session = group->session;
    bench_error error;
    if (!bench_torch_suits(&problem->shape) || device->units != device->all_units) return;
    if (!session->torch) session->torch = bench_torch_open(device);
    if (!session->torch || !bench_torch_load(session->torch, problem, &error)) {
        bench_session_remark(session, "left out, PyTorch: %s", session->torch ? error.text : "out of memory");
        return;
    }
    for (const char *const *backend = bench_torch_backends; *backend; backend++) {
        bench_candidate candidate;
        bool made = bench_candidate_torch(&candidate, device, problem, session->torch, *backend, &error);
        borrow_counts(bench_group_add(group, "peers", made, &candidate, &error), counted);
    }
}

/* Where the keys are split as well. */
enum { FEW_QUERIES = 16 };

/* BLAS libraries multiply fp32, and a window would have them multiply in vain. */
static bool has_peers(const bench_shape *shape) { return bench_shape_dtype(shape) == CLATTN_F32 && !shape->has_window; }

/* Where every key is read once for all queries, and reading is the most of it. */
static bool is_reading(const bench_device *device, const bench_shape *shape) {
    const bool all_keys = !shape->has_window && (!shape->causal || shape->align == CLATTN_ALIGN_BOTTOM_RIGHT || shape->align == CLATTN_ALIGN_PAST);
    return !device->cl && shape->len_q <= FEW_QUERIES && all_keys;
}

static void add_device(bench_group *group, bench_device *device, bench_problem *problem) {
    const bench_args *args = &group->session->args;
    clattn_algorithm only = (clattn_algorithm)bench_args_or(args->algorithm, CLATTN_ALGORITHM_AUTO);
    const bench_candidate *split = NULL, *fused = NULL, *staged = NULL;
    if (only == CLATTN_ALGORITHM_SPLIT || (only == CLATTN_ALGORITHM_AUTO && problem->shape.len_q <= FEW_QUERIES))
        split = bench_group_add_plan(group, "peers", device, problem, (bench_variant){.algorithm = CLATTN_ALGORITHM_SPLIT});
    if (only == CLATTN_ALGORITHM_AUTO || only == CLATTN_ALGORITHM_FUSED)
        fused = bench_group_add_plan(group, "peers", device, problem, (bench_variant){.algorithm = CLATTN_ALGORITHM_FUSED});
    if (fused && device->context->peer_count > 0)
        bench_group_add_plan(group, "peers", device, problem, (bench_variant){CLATTN_ALGORITHM_FUSED, .split_devices = true});
    if (only == CLATTN_ALGORITHM_AUTO || only == CLATTN_ALGORITHM_STAGED)
        staged = bench_group_add_plan(group, "peers", device, problem, (bench_variant){.algorithm = CLATTN_ALGORITHM_STAGED});
    if (is_reading(device, &problem->shape)) bench_group_add_read(group, device, problem);
    if (args->torch) add_torch(group, device, problem, fused ? fused : staged ? staged : split);
    if (args->peers && has_peers(&problem->shape)) add_peers(group, device, problem, fused ? fused : staged);
}

/* The shape asked for, and beside it what it is to be held against, so that their ratio is of one run: without its window, in f32;
 * a full one's causal sister. Returns how many. */
enum { MAX_SHAPES = 3 };
static size_t list_shapes(const bench_session *session, int64_t length, bench_shape shapes[MAX_SHAPES]) {
    size_t count = 1;
    const bench_shape asked = shapes[0] = bench_session_shape(session, BENCH_OP_ATTENTION, length);
    if (asked.has_window) {
        shapes[count] = asked;
        shapes[count].window_left = shapes[count].window_right = 0;
        shapes[count++].has_window = 0;
    }
    if (bench_shape_dtype(&asked) != CLATTN_F32 && !session->args.one_type) {
        shapes[count] = asked;
        shapes[count++].dtype = CLATTN_F32;
    }
    if (count == 1 && !asked.causal && length > FEW_QUERIES) {
        shapes[count] = asked;
        shapes[count].causal = 1;
        shapes[count++].align = CLATTN_ALIGN_BOTTOM_RIGHT;
    }
    return count;
}

/* *sampled_s receives the seconds of the sampling, which is what grows with the length: not those of the compilers, nor of
 * starting PyTorch. */
static bool measure_length(bench_session *session, int64_t length, double *sampled_s, bench_error *error) {
    bench_shape shapes[MAX_SHAPES];
    const size_t shape_count = list_shapes(session, length, shapes);
    size_t first;
    int units[BENCH_MAX_UNITS];
    size_t unit_count = bench_session_asked_units(session, units);
    bench_problem problems[MAX_SHAPES] = {{{0}}};
    bench_group group = {.session = session};
    bool right = true;
    for (size_t i = 0; right && i < shape_count; i++) {
        right = bench_problem_create(&problems[i], &shapes[i], session->seed, error);
        problems[i].hurried = session->args.quick;
        for (size_t u = 0; right && u < unit_count; u++) {
            bench_device *device = bench_session_device(session, units[u], error);
            right = device != NULL;
            if (right) add_device(&group, device, &problems[i]);
        }
    }
    bench_session_progress(session, "attention at length %lld: sampling", (long long)length);
    const double start = bench_now_ms();
    right = right && bench_group_measure(&group, length <= 1024 && !session->args.quick, &first, error);
    *sampled_s = (bench_now_ms() - start) * 1e-3;
    bench_group_free(&group);
    for (size_t i = 0; i < shape_count; i++) bench_problem_free(&problems[i]);
    return right;
}

bool bench_job_attention(bench_session *session, bench_error *error) {
    if (session->args.growth) return bench_job_growth(session, error);
    static const int64_t defaults[] = {512, 2048, 4096};
    int64_t lengths[BENCH_MAX_LENGTHS];
    size_t count = bench_session_lengths(session, defaults, session->args.quick ? 2 : 3, lengths);
    double expected_s = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !bench_session_has_time(session, lengths[i], expected_s, 0)) break;
        const size_t first = session->records.count;
        double sampled_s;
        if (!measure_length(session, lengths[i], &sampled_s, error)) return false;
        const double growth = i + 1 < count ? (double)lengths[i + 1] / (double)lengths[i] : 1;
        expected_s = bench_session_expect(session, first, sampled_s, growth);
    }
    return true;
}
