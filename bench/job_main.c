/* The main job: attention beside the recurrence that it replaced.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "clock.h"
#include "group.h"
#include "jobs.h"

/* What stands beside what at every length. */
typedef struct entrant {
    const char *contrast;
    bench_op op;
    bool layer; /* with projections */
} entrant;

static const entrant entrants[] = {
    {"core", BENCH_OP_ATTENTION, false}, {"core", BENCH_OP_RNN, false}, {"layer", BENCH_OP_MHA, true},
    {"layer", BENCH_OP_RNN, true},       {"lstm", BENCH_OP_LSTM, true},
};

enum { ENTRANTS = sizeof entrants / sizeof *entrants };

/* The ways an entrant is computed: attention's algorithms; loops of OpenCL by one launch a step and by one kernel. */
static size_t list_variants(const bench_session *session, const entrant *entrant, bench_variant variants[2]) {
    const clattn_algorithm only = (clattn_algorithm)bench_args_or(session->args.algorithm, CLATTN_ALGORITHM_AUTO);
    if (entrant->op == BENCH_OP_ATTENTION && only == CLATTN_ALGORITHM_AUTO) {
        variants[0] = (bench_variant){.algorithm = CLATTN_ALGORITHM_FUSED};
        variants[1] = (bench_variant){.algorithm = CLATTN_ALGORITHM_STAGED};
        return 2;
    }
    variants[0] = (bench_variant){.algorithm = only};
    if (!bench_op_recurs(entrant->op) || entrant->layer || !session->devices[0].cl) return 1;
    variants[0].recurrence = CLATTN_RECURRENCE_PERSISTENT;
    variants[1] = (bench_variant){.recurrence = CLATTN_RECURRENCE_STEPS};
    return 2;
}

static bool add_entrant(bench_group *group, const entrant *entrant, int64_t length, bench_problem *problem,
                        bench_error *error) {
    bench_session *session = group->session;
    bench_shape shape = bench_session_shape(session, entrant->op, length);
    if (!entrant->layer) shape.d_in = 0;
    if (!bench_problem_create(problem, &shape, session->seed, error)) return false;
    bench_variant variants[2];
    size_t count = list_variants(session, entrant, variants);
    for (size_t i = 0; i < count; i++)
        bench_group_add_plan(group, entrant->contrast, &session->devices[0], problem, variants[i]);
    return true;
}

static bool measure_copies(bench_session *session, bench_problem *problem, bench_error *error) {
    bench_group group = {.session = session};
    size_t first;
    bench_group_add_copies(&group, &session->devices[0], problem);
    bool right = bench_group_measure(&group, false, &first, error);
    bench_group_free(&group);
    return right;
}

static bool measure_length(bench_session *session, int64_t length, bench_error *error) {
    bench_problem problems[ENTRANTS] = {{{0}}};
    bench_group group = {.session = session};
    bool right = true;
    size_t first;
    for (int i = 0; right && i < ENTRANTS; i++) right = add_entrant(&group, &entrants[i], length, &problems[i], error);
    bench_session_progress(session, "length %" PRId64 ": sampling %zu candidates in turns", length, group.count);
    right = right && bench_group_measure(&group, length <= 256 && !session->args.quick, &first, error);
    bench_group_free(&group);
    right = right && measure_copies(session, &problems[0], error);
    for (int i = 0; i < ENTRANTS; i++) bench_problem_free(&problems[i]);
    return right;
}

/* ---- the sweep ----------------------------------------------------------------------------------------------------- */

static bool sweep(bench_session *session, double reserve_s, bench_error *error) {
    static const int64_t full[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}, quick[] = {16, 64, 256, 1024, 2048};
    int64_t lengths[BENCH_MAX_LENGTHS];
    size_t count = session->args.quick ? bench_session_lengths(session, quick, 5, lengths)
                                       : bench_session_lengths(session, full, 10, lengths);
    double expected_s = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !bench_session_has_time(session, lengths[i], expected_s, reserve_s)) break;
        const double start = bench_now_ms();
        const size_t first = session->records.count;
        if (!measure_length(session, lengths[i], error)) return false;
        const double growth = i + 1 < count ? (double)lengths[i + 1] / (double)lengths[i] : 1;
        expected_s = bench_session_expect(session, first, (bench_now_ms() - start) * 1e-3, growth);
    }
    return true;
}

/* ---- from records to the verdict ----------------------------------------------------------------------------------- */

static bench_point point_of(const bench_record *record) {
    return (bench_point){
        .ms = bench_real(record, BENCH_MS_MEDIAN),
        .noise = bench_real(record, BENCH_NOISE),
        .flops = bench_real(record, BENCH_FLOPS),
        .percent = bench_real(record, BENCH_PERCENT_OF_PEAK),
        .chain = bench_count(record, BENCH_DEPENDENT_STEPS),
    };
}

/* The fastest warm record of an operator in a contrast at a length on so many units (0: any); NULL: none. */
static const bench_record *fastest(const bench_records *records, const char *contrast, const char *op, int64_t length,
                                   int units) {
    const bench_record *best = NULL;
    for (size_t i = 0; i < records->count; i++) {
        const bench_record *r = &records->items[i];
        if (strcmp(bench_text(r, BENCH_CONTRAST), contrast) != 0 || strcmp(bench_text(r, BENCH_OP), op) != 0 ||
            strcmp(bench_text(r, BENCH_CACHE_STATE), "warm") != 0 || bench_count(r, BENCH_LEN_Q) != length ||
            (units > 0 && bench_count(r, BENCH_THREADS) != units) || bench_flag(r, BENCH_ABOVE_PEAK))
            continue;
        if (!best || bench_real(r, BENCH_MS_MEDIAN) < bench_real(best, BENCH_MS_MEDIAN)) best = r;
    }
    return best;
}

typedef struct sides {
    const char *contrast, *op;
} sides;

static void collect(bench_contrast *contrast, const bench_records *records, sides attention, sides recurrence) {
    int64_t last = 0;
    contrast->count = 0;
    for (size_t i = 0; i < records->count && contrast->count < BENCH_MAX_LENGTHS; i++) {
        int64_t length = bench_count(&records->items[i], BENCH_LEN_Q);
        if (length <= last) continue;
        const bench_record *a = fastest(records, attention.contrast, attention.op, length, 0);
        const bench_record *r = fastest(records, recurrence.contrast, recurrence.op, length, 0);
        if (!a || !r) continue;
        contrast->lengths[contrast->count] = last = length;
        contrast->attention_at[contrast->count] = point_of(a);
        contrast->recurrence_at[contrast->count] = point_of(r);
        contrast->count++;
    }
}

/* ---- scaling ------------------------------------------------------------------------------------------------------- */

static bool add_scaled(bench_group *group, int units, bench_problem *problem, bench_error *error) {
    bench_device *device = bench_session_device(group->session, units, error);
    if (!device) return false;
    bench_group_add_plan(group, "scaling", device, problem, (bench_variant){0});
    return true;
}

static bool measure_scaling(bench_session *session, int64_t length, bench_scaling *scaling, bench_error *error) {
    static const bench_op ops[2] = {BENCH_OP_ATTENTION, BENCH_OP_RNN};
    bench_problem problems[2] = {{{0}}};
    bench_group group = {.session = session};
    int units[BENCH_MAX_UNITS];
    size_t unit_count = bench_session_units(session, units, error), first;
    bool right = unit_count > 0;
    for (int i = 0; right && i < 2; i++) {
        bench_shape shape = bench_session_shape(session, ops[i], length);
        if (ops[i] == BENCH_OP_RNN) shape.d_in = 0;
        right = bench_problem_create(&problems[i], &shape, session->seed, error);
        for (size_t u = 0; right && u < unit_count; u++) right = add_scaled(&group, units[u], &problems[i], error);
    }
    bench_session_progress(session, "scaling at length %" PRId64 ": sampling", length);
    right = right && bench_group_measure(&group, false, &first, error);
    *scaling = (bench_scaling){.length = length};
    for (size_t u = 0; right && u < unit_count; u++) {
        const bench_record *a = fastest(&session->records, "scaling", "attention", length, units[u]);
        const bench_record *r = fastest(&session->records, "scaling", "rnn", length, units[u]);
        if (!a || !r) continue;
        scaling->units[scaling->count] = units[u];
        scaling->attention_at[scaling->count] = point_of(a);
        scaling->recurrence_at[scaling->count++] = point_of(r);
    }
    bench_group_free(&group);
    for (int i = 0; i < 2; i++) bench_problem_free(&problems[i]);
    return right;
}

static bool scale(bench_session *session, const bench_contrast *core, bench_error *error) {
    const int64_t lengths[2] = {256, session->args.quick ? 1024 : 2048};
    for (int i = 0; i < 2; i++) {
        bench_scaling scaling;
        if (i > 0 && bench_session_seconds_left(session) < (session->args.quick ? 2 : 10)) {
            bench_session_remark(session, "left out, scaling at length %" PRId64 ": no time left", lengths[i]);
            break;
        }
        if (!measure_scaling(session, lengths[i], &scaling, error)) return false;
        bench_verdict_scaling(&session->verdict, &scaling, core, session->devices[0].unit_name);
    }
    return true;
}

bool bench_job_main(bench_session *session, bench_error *error) {
    if (!bench_job_limits(session, error) || !sweep(session, session->args.quick ? 4 : 15, error)) return false;
    bench_contrast core = {.title = "Core against core", .attention = "Attention", .recurrence = "The recurrent loop"};
    bench_contrast layer = {
        .title = "Layer against layer", .attention = "Attention's layer", .recurrence = "The recurrent layer"};
    bench_contrast lstm = {.title = "Beside the LSTM", .attention = "Attention's layer", .recurrence = "The LSTM layer"};
    collect(&core, &session->records, (sides){"core", "attention"}, (sides){"core", "rnn"});
    collect(&layer, &session->records, (sides){"layer", "mha"}, (sides){"layer", "rnn"});
    collect(&lstm, &session->records, (sides){"layer", "mha"}, (sides){"lstm", "lstm"});
    bench_verdict_contrast(&session->verdict, &core);
    bench_verdict_contrast(&session->verdict, &layer);
    bench_verdict_contrast(&session->verdict, &lstm);
    return scale(session, &core, error) && (!session->args.peers || bench_job_attention(session, error));
}
