/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "race.h"

/* A side of a contrast, and the ways to compute it. */
typedef struct entrant {
    race_contrast contrast;
    bench_op op;
    bool is_recurrence;
} entrant;

static const entrant entrants[] = {
    {RACE_CORE, BENCH_OP_ATTENTION, false},
    {RACE_CORE, BENCH_OP_RNN, true},
    {RACE_LAYER, BENCH_OP_MHA, false},
    {RACE_LAYER, BENCH_OP_RNN, true},
};
enum { ENTRANTS = sizeof entrants / sizeof *entrants };

static const char *const contrast_names[] = {[RACE_CORE] = "core", [RACE_LAYER] = "layer"};

static bool make_problem(bench_session *session, const entrant *entrant, int64_t length, bench_problem *problem,
                         bench_error *error) {
    bench_shape shape = bench_session_shape(session, entrant->op, length);
    if (entrant->contrast == RACE_CORE) shape.d_in = 0; /* the loop alone */
    return bench_problem_create(problem, &shape, session->seed, error);
}

/* A loop on OpenCL has two forms, of which the faster counts. */
static void add_entrant(bench_group *group, const entrant *entrant, bench_device *device, bench_problem *problem) {
    const bool both = device->cl != NULL && entrant->op == BENCH_OP_RNN && entrant->contrast == RACE_CORE;
    const bench_variant first = {.recurrence = both ? CLATTN_RECURRENCE_PERSISTENT : CLATTN_RECURRENCE_AUTO};
    bench_group_add_plan(group, contrast_names[entrant->contrast], device, problem, first);
    if (both)
        bench_group_add_plan(group, contrast_names[entrant->contrast], device, problem,
                             (bench_variant){.recurrence = CLATTN_RECURRENCE_STEPS});
}

/* ---- stages --------------------------------------------------------------------------------------------------------- */

/* Fused attention is one launch, in which its stages still wait for one another, tile by tile: a plan that goes step by step
 * has them in its chain, as the recurrence's has its own. */
static bool count_stages(bench_session *session, race_results *results, const entrant *entrant, bench_error *error) {
    enum { SHORT = 2 }; /* they are as many at any length */
    bench_problem problem = {{0}};
    bench_candidate candidate = {0};
    const bench_variant by_steps = {.algorithm = CLATTN_ALGORITHM_STAGED};
    const bool right = make_problem(session, entrant, SHORT, &problem, error) &&
                       bench_candidate_plan(&candidate, results->device, &problem, by_steps, error);
    results->stages[entrant->contrast] = candidate.dependent_steps;
    bench_candidate_release(&candidate);
    bench_problem_free(&problem);
    return right;
}

static bool count_all_stages(bench_session *session, race_results *results, bench_error *error) {
    for (int i = 0; i < ENTRANTS; i++)
        if (!entrants[i].is_recurrence && !count_stages(session, results, &entrants[i], error)) return false;
    return true;
}

/* ---- from records -------------------------------------------------------------------------------------------------- */

static bool is_of(const bench_record *record, const entrant *entrant, int units) {
    return strcmp(bench_text(record, BENCH_CONTRAST), contrast_names[entrant->contrast]) == 0 &&
           strcmp(bench_text(record, BENCH_OP), bench_op_name(entrant->op)) == 0 && bench_count(record, BENCH_THREADS) == units;
}

/* The fastest of the entrant's records from `first` on. */
static bool find_runner(const bench_session *session, const race_results *results, size_t first, const entrant *entrant,
                        int units, race_runner *runner) {
    const bench_record *best = NULL;
    for (size_t i = first; i < session->records.count; i++) {
        const bench_record *record = &session->records.items[i];
        if (!is_of(record, entrant, units)) continue;
        if (best == NULL || bench_real(record, BENCH_MS_MEDIAN) < bench_real(best, BENCH_MS_MEDIAN)) best = record;
    }
    if (best == NULL) return false;
    runner->point = (bench_point){.ms = bench_real(best, BENCH_MS_MEDIAN),
                                  .noise = bench_real(best, BENCH_NOISE),
                                  .flops = bench_real(best, BENCH_FLOPS),
                                  .percent = bench_real(best, BENCH_PERCENT_OF_PEAK),
                                  .chain = entrant->is_recurrence ? bench_count(best, BENCH_DEPENDENT_STEPS)
                                                                  : results->stages[entrant->contrast]};
    runner->low = bench_real(best, BENCH_MS_Q1);
    runner->high = bench_real(best, BENCH_MS_Q3);
    runner->busy = bench_real(best, BENCH_MS_EVENT) / bench_real(best, BENCH_MS_WALL);
    return true;
}

static double noise_of(const race_pair *pair) {
    return bench_noise(&pair->attention.point, &pair->recurrence.point);
}

/* ---- lengths ------------------------------------------------------------------------------------------------------- */

static bool collect_length(bench_session *session, race_results *results, size_t first, int64_t length, bench_error *error) {
    const int units = results->device->units;
    for (int i = 0; i < ENTRANTS; i++) {
        race_pair *pair = &results->lengths[entrants[i].contrast][results->length_count];
        pair->length = length;
        pair->units = units;
        if (!find_runner(session, results, first, &entrants[i], units,
                         entrants[i].is_recurrence ? &pair->recurrence : &pair->attention))
            return bench_fail(error, "%s could not be measured at length %lld:\n%s", bench_op_name(entrants[i].op),
                              (long long)length, session->remarks.data != NULL ? session->remarks.data : "");
    }
    /* The same thing has the same name and the same times: at the first race's length the core has been timed before. */
    race_pair *core = &results->lengths[RACE_CORE][results->length_count];
    const race_pair *before = results->unit_count > 0 ? &results->units[results->unit_count - 1] : NULL;
    if (before != NULL && before->length == length && noise_of(before) <= noise_of(core)) *core = *before;
    results->length_count++;
    return true;
}

bool race_measure_length(bench_session *session, race_results *results, int64_t length, bench_error *error) {
    bench_problem problems[ENTRANTS] = {{{0}}};
    bench_group group = {.session = session};
    bool right = results->length_count < RACE_MAX_LENGTHS || bench_fail(error, "more than %d lengths", RACE_MAX_LENGTHS);
    size_t first = 0;
    for (int i = 0; i < ENTRANTS && right; i++) {
        right = make_problem(session, &entrants[i], length, &problems[i], error);
        if (right) add_entrant(&group, &entrants[i], results->device, &problems[i]);
    }
    bench_session_progress(session, "length %lld: sampling", (long long)length);
    right =
        right && bench_group_measure(&group, false, &first, error) && collect_length(session, results, first, length, error);
    bench_group_free(&group);
    for (int i = 0; i < ENTRANTS; i++) bench_problem_free(&problems[i]);
    bench_session_progress(session, "%s", "");
    return right;
}

/* ---- units --------------------------------------------------------------------------------------------------------- */

static bool collect_units(bench_session *session, race_results *results, size_t first, const int *units, size_t count,
                          int64_t length, bench_error *error) {
    for (size_t u = 0; u < count; u++) {
        race_pair *pair = &results->units[u];
        pair->length = length;
        pair->units = units[u];
        if (!find_runner(session, results, first, &entrants[0], units[u], &pair->attention) ||
            !find_runner(session, results, first, &entrants[1], units[u], &pair->recurrence))
            return bench_fail(error, "nothing could be measured on %d units", units[u]);
    }
    results->unit_count = count;
    return true;
}

bool race_measure_units(bench_session *session, race_results *results, int64_t length, bench_error *error) {
    bench_problem problems[2] = {{{0}}};
    bench_group group = {.session = session};
    int units[BENCH_MAX_UNITS];
    const size_t count = bench_session_units(session, units, error);
    bool right = count > 0 && count_all_stages(session, results, error);
    size_t first = 0;
    for (int i = 0; i < 2 && right; i++) {
        right = make_problem(session, &entrants[i], length, &problems[i], error);
        for (size_t u = 0; u < count && right; u++) {
            bench_device *device = bench_session_device(session, units[u], error);
            right = device != NULL;
            if (right) add_entrant(&group, &entrants[i], device, &problems[i]);
        }
    }
    bench_session_progress(session, "on 1 to %d units: sampling", right ? units[count - 1] : 0);
    right = right && bench_group_measure(&group, false, &first, error) &&
            collect_units(session, results, first, units, count, length, error);
    bench_group_free(&group);
    for (int i = 0; i < 2; i++) bench_problem_free(&problems[i]);
    bench_session_progress(session, "%s", "");
    return right;
}

/* ---- what they say ------------------------------------------------------------------------------------------------- */

bench_contrast race_contrast_of(const race_results *results, race_contrast which, race_language language) {
    static const char *const titles[][2] = {{"不带投影", "Core against core"}, {"带投影", "Layer against layer"}};
    bench_contrast contrast = {.title = titles[which][language], .attention = "Attention", .recurrence = "The recurrence"};
    for (size_t i = 0; i < results->length_count; i++) {
        const race_pair *pair = &results->lengths[which][i];
        if (race_too_noisy(pair)) continue;
        contrast.lengths[contrast.count] = pair->length;
        contrast.attention_at[contrast.count] = pair->attention.point;
        contrast.recurrence_at[contrast.count++] = pair->recurrence.point;
    }
    return contrast;
}

bool race_too_noisy(const race_pair *pair) {
    return !(noise_of(pair) <= BENCH_TOO_NOISY);
}

bench_winner race_winner(const race_pair *pair) {
    return race_too_noisy(pair) ? BENCH_WINNER_UNCLEAR : bench_faster(&pair->attention.point, &pair->recurrence.point);
}

const race_pair *race_headline(const race_results *results) {
    const race_pair *all = &results->units[results->unit_count - 1], *quietest = all;
    if (!race_too_noisy(all)) return all;
    for (const race_pair *pair = results->units; pair < all; pair++)
        if (noise_of(pair) < noise_of(quietest)) quietest = pair;
    return quietest;
}

bool race_has_turned(const race_results *results, race_contrast which) {
    const bench_contrast contrast = race_contrast_of(results, which, RACE_EN);
    return bench_crossing(&contrast, 1, 1) > 0;
}
