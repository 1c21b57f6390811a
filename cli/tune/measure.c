/* The rows that could serve a kind of problem: planned, verified, timed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/remarks.h"
#include "tune.h"

/* A plan may need, beside the row, those that its self-check and its other steps need. */
enum { BUILDS_OF_A_PLAN = 6 };

/* After so many seconds quick makes no more plans, and ends with what it has. */
static const double QUICK_SECONDS = 40;

/* ---- the session ----------------------------------------------------------------------------------------------------- */

bool tune_session_open(tune_session *session, const char *device, bool quick, bench_error *error) {
    *session = (tune_session){.quick = quick, .seed = 1, .start_ms = bench_now_ms()};
    if (quick) {
        session->most_builds = TUNE_QUICK_BUILDS;
        session->most_seconds = QUICK_SECONDS;
    }
    session->progress = isatty(STDERR_FILENO) != 0;
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "reference";
    if (clattn_context_create(&options, &session->reference) != CLATTN_OK) return bench_fail(error, "no reference device");
    if (!bench_device_open(&session->device, device, 0, error)) return false;
    session->scale = session->device.info.kind == CLATTN_DEVICE_OPENCL_GPU ? TUNE_SCALE_GPU : TUNE_SCALE_CPU;
    return true;
}

void tune_session_close(tune_session *session) {
    bench_device_close(&session->device);
    clattn_context_destroy(session->reference);
    clattn__text_free(&session->remarks);
    session->reference = NULL;
}

void tune_progress(const tune_session *session, const char *format, ...) {
    va_list list;
    va_start(list, format);
    bench_progress(session->progress, format, list);
    va_end(list);
}

void tune_remark(tune_session *session, const char *format, ...) {
    va_list list;
    va_start(list, format);
    bench_remark(&session->remarks, format, list);
    va_end(list);
}

/* Whether another plan is within the limits; else a remark. None is made any more once the user has asked to end. */
static bool may_build(tune_session *session, const char *what) {
    if (bench_ended_by()) return false;
    const unsigned long builds = session->device.context->builds;
    if (session->most_seconds > 0 && bench_now_ms() - session->start_ms > 1e3 * session->most_seconds) {
        tune_remark(session, "left out, %s: %.0f s are over", what, session->most_seconds);
        return false;
    }
    if (!session->most_builds || builds + BUILDS_OF_A_PLAN <= session->most_builds) return true;
    tune_remark(session, "left out, %s: %lu programs are built, and quick builds at most %lu", what, builds,
                session->most_builds);
    return false;
}

/* ---- which rows ------------------------------------------------------------------------------------------------------ */

/* What a plan of the problem asks of the role. */
typedef struct question {
    const clattn__row *row; /* the library's own choice */
    clattn__params params;
} question;

static bool ask(tune_session *session, const tune_shape *shape, const bench_problem *problem, question *q, bench_error *error) {
    clattn_context *context = session->device.context;
    clattn_plan *plan = NULL;
    char text[512];
    if (!clattn__tuning_try(context, NULL)) return bench_fail(error, "out of memory");
    if (bench_plan_create(context, shape->shape.op, &problem->desc, shape->variant, &plan) != CLATTN_OK) {
        clattn_context_error(context, text, sizeof text);
        return bench_fail(error, "%s", text);
    }
    q->row = NULL;
    for (size_t n = 0; n < plan->step_count; n++) {
        if (plan->steps[n].row->role != shape->role) continue;
        q->row = plan->steps[n].row;
        q->params = plan->steps[n].params;
    }
    clattn_plan_destroy(plan);
    return q->row || bench_fail(error, "no step of a plan %ss", clattn__roles[shape->role].entry);
}

bool tune_is_promising(const clattn__row *row, const clattn__row *own, const clattn__device *device) {
    return clattn__row_is_meant(row, device) || !clattn__row_is_meant(own, device);
}

/* The library's own choice, then all others that may serve. */
static size_t list_rows(const tune_session *session, const question *q, const clattn__row *rows[TUNE_MOST_ROWS]) {
    const clattn__device *device = &session->device.context->device;
    size_t count = 0;
    rows[count++] = q->row;
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count && count < TUNE_MOST_ROWS; row++) {
        if (row->role != q->row->role || row == q->row) continue;
        if (session->quick && !tune_is_promising(row, q->row, device)) continue;
        if (!clattn__row_refusal(session->device.context, row, &q->params)) rows[count++] = row;
    }
    return count;
}

/* ---- candidates ------------------------------------------------------------------------------------------------------ */

static bool runs_row(const bench_candidate *candidate, const clattn__row *row) {
    const size_t length = strlen(row->name);
    for (const char *at = candidate->row; (at = strstr(at, row->name)); at += length)
        if ((at == candidate->row || at[-1] == '+') && (at[length] == 0 || at[length] == '+')) return true;
    return false;
}

/* A plan that runs the row, verified; false, with a remark, where there is none. */
static bool make_candidate(tune_session *session, const tune_shape *shape, bench_problem *problem, const clattn__row *row,
                           bench_candidate *candidate) {
    bench_error error;
    if (!may_build(session, row->name)) return false;
    if (!clattn__tuning_try(session->device.context, row)) return false;
    if (!bench_candidate_plan(candidate, &session->device, problem, shape->variant, &error)) {
        tune_remark(session, "left out, %s: %s", row->name, error.text);
        return false;
    }
    bool right = runs_row(candidate, row);
    if (!right) {
        tune_remark(session, "left out, %s: it failed here, and %s serves", row->name, candidate->row);
    } else if (!bench_candidate_verify(candidate, session->reference, &error)) {
        tune_remark(session, "NOT TIMED, %s: %s", row->name, error.text);
        session->wrong = true;
        right = false;
    }
    if (!right) bench_candidate_release(candidate);
    return right;
}

static size_t make_candidates(tune_session *session, const tune_shape *shape, bench_problem *problem, tune_result *result,
                              bench_candidate *candidates) {
    size_t made = 0;
    for (size_t n = 0; n < result->count; n++) {
        tune_progress(session, "%s: verifying %s", result->key, result->rows[n]->name);
        if (make_candidate(session, shape, problem, result->rows[n], &candidates[made])) {
            result->rows[made++] = result->rows[n];
        } else if (n == 0) {
            return 0; /* nothing to compare with */
        }
    }
    return made;
}

/* ---- measuring ------------------------------------------------------------------------------------------------------- */

static void describe(const tune_shape *shape, char *text, size_t size) {
    const bench_shape *s = &shape->shape;
    if (s->op == BENCH_OP_ATTENTION)
        snprintf(text, size, "%" PRId64 " heads of %" PRId64 ", %" PRId64 " queries, %" PRId64 " keys%s%s", s->heads_q,
                 s->head_dim, s->len_q, s->len_kv, s->has_window ? ", a window" : "", s->softcap != 0 ? ", softcap" : "");
    else if (s->op == BENCH_OP_PROJECT)
        snprintf(text, size, "%" PRId64 " rows, %" PRId64 " by %" PRId64, s->len_q, s->d_in, s->hidden);
    else
        snprintf(text, size, "%" PRId64 " steps, hidden %" PRId64, s->len_q, s->hidden);
}

static bool choose(tune_session *session, tune_result *result, bench_candidate *candidates, bench_error *error) {
    const bench_sampling sampling = {.warm_up_s = session->quick ? 0.1 : 0.3, .seconds = session->quick ? 0.3 : 1.5};
    tune_progress(session, "%s: measuring %zu rows", result->key, result->count);
    return tune_choose(candidates, result->count, &sampling, &result->choice, error);
}

static bool measure_problem(tune_session *session, const tune_shape *shape, bench_problem *problem, bench_error *error) {
    bench_candidate candidates[TUNE_MOST_ROWS];
    tune_result *result = &session->results[session->count];
    question q;
    bench_error refusal;
    *result = (tune_result){0};
    describe(shape, result->shape, sizeof result->shape);
    char kind[160];
    snprintf(kind, sizeof kind, "%s of %s", clattn__roles[shape->role].entry, result->shape);
    if (!may_build(session, kind)) return true;
    if (!ask(session, shape, problem, &q, &refusal)) {
        tune_remark(session, "left out, %s: %s", kind, refusal.text);
        return true;
    }
    if (!clattn__tuning_key(shape->role, &q.params, result->key)) return bench_fail(error, "%s is not tuned", q.row->name);
    result->count = list_rows(session, &q, result->rows);
    if (result->count == 1) {
        session->count++;
        return tune_choose(NULL, 1, NULL, &result->choice, error);
    }
    result->count = make_candidates(session, shape, problem, result, candidates);
    if (result->count == 0) return true;
    snprintf(result->verified, sizeof result->verified, "%s", candidates[0].verified);
    /* It fails where the user has asked to end: of the rows that there are then no choice is made. */
    const bool chosen = choose(session, result, candidates, error);
    for (size_t n = 0; n < result->count; n++) bench_candidate_release(&candidates[n]);
    session->count += chosen;
    return chosen;
}

bool tune_measure(tune_session *session, const tune_shape *shape, bench_error *error) {
    bench_problem problem;
    if (session->count == TUNE_MOST_SHAPES) return bench_fail(error, "more than %d kinds of problems", TUNE_MOST_SHAPES);
    if (!bench_problem_create(&problem, &shape->shape, session->seed, error)) return false;
    const bool right = measure_problem(session, shape, &problem, error);
    bench_problem_free(&problem);
    return right;
}
