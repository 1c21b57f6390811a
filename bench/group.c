/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "fill.h"

/* Score matrices larger than this are left out: the figure is not worth a machine that swaps. */
static double workspace_limit(void) {
    double physical = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    return fmin(physical / 8, 1.1e9);
}

static const char *remark_name(const bench_candidate *candidate, char *text, size_t size) {
    const bench_problem *problem = candidate->problem;
    snprintf(text, size, "%s at length %" PRId64, problem ? bench_op_name(problem->shape.op) : "limit",
             problem ? problem->shape.len_q : 0);
    return text;
}

bench_candidate *bench_group_add(bench_group *group, const char *contrast, bool made, bench_candidate *made_of,
                                 bench_error *error) {
    bench_session *session = group->session;
    char name[96];
    remark_name(made_of, name, sizeof name);
    if (!made) {
        bench_session_remark(session, "left out, %s: %s", name, error->text);
        return NULL;
    }
    if (group->count == BENCH_GROUP_MAX || (double)made_of->workspace_bytes > workspace_limit()) {
        bench_session_remark(session, "left out, %s %s: a workspace of %.1f GB", made_of->path, name,
                             (double)made_of->workspace_bytes * 1e-9);
        bench_candidate_release(made_of);
        return NULL;
    }
    bench_candidate *candidate = &group->candidates[group->count];
    *candidate = *made_of;
    candidate->contrast = contrast;
    bench_session_progress(session, "%s: verifying %s", name, candidate->path);
    if (!bench_candidate_verify(candidate, session->reference, error)) {
        bench_session_remark(session, "NOT TIMED, %s, %s: %s", candidate->path, name, error->text);
        session->failed = true;
        bench_candidate_release(candidate);
        return NULL;
    }
    if (candidate->note[0]) bench_session_remark(session, "%s", candidate->note);
    group->count++;
    return candidate;
}

bench_candidate *bench_group_add_plan(bench_group *group, const char *contrast, bench_device *device, bench_problem *problem,
                                      bench_variant variant) {
    bench_error error;
    bench_candidate candidate;
    bool made = bench_candidate_plan(&candidate, device, problem, variant, &error);
    candidate.problem = problem;
    return bench_group_add(group, contrast, made, &candidate, &error);
}

/* What computes nothing needs no verification. */
static bench_candidate *add_unverified(bench_group *group, bool made, const bench_candidate *candidate,
                                       const bench_error *error) {
    if (!made) bench_session_remark(group->session, "left out, %s: %s", candidate->path, error->text);
    if (!made || group->count == BENCH_GROUP_MAX) return NULL;
    group->candidates[group->count] = *candidate;
    return &group->candidates[group->count++];
}

bench_candidate *bench_group_add_limit(bench_group *group, bench_device *device, bench_limit_kind kind, const bench_isa *isa) {
    bench_error error;
    bench_candidate candidate;
    bool made = bench_candidate_limit(&candidate, device, kind, isa, &error);
    return add_unverified(group, made, &candidate, &error);
}

void bench_group_add_read(bench_group *group, bench_device *device, bench_problem *problem) {
    bench_error error;
    bench_candidate candidate;
    const bool made = bench_candidate_read(&candidate, device, problem, &error);
    add_unverified(group, made, &candidate, &error);
}

void bench_group_add_copies(bench_group *group, bench_device *device, bench_problem *problem) {
    bench_error error;
    bench_candidate candidate;
    for (int to_device = 1; device->cl && to_device >= 0; to_device--) {
        bool made = bench_candidate_copy(&candidate, device, problem, to_device, &error);
        add_unverified(group, made, &candidate, &error);
    }
}

/* ---- measuring ----------------------------------------------------------------------------------------------------- */

/* Where the peak stands that a candidate is held against; peak_count where there is none. */
static size_t find_peak(const bench_group *group, const bench_candidate *candidate) {
    size_t n = 0;
    while (n < group->peak_count && (group->peaks[n].device != candidate->device || group->peaks[n].peak != candidate->peak))
        n++;
    return n;
}

/* A peak that cannot be measured is none: it says why, and the figure stays. */
static bool add_peak(bench_group *group, bench_candidate *candidate, bench_error *error) {
    if (candidate->peak >= BENCH_LIMIT_PEAKS || find_peak(group, candidate) < group->peak_count) return true;
    if (group->peak_count == BENCH_MAX_PEAKS) return bench_fail(error, "too many devices in a group");
    bench_device *device = candidate->device;
    if (bench_candidate_limit(&group->peaks[group->peak_count], device, candidate->peak, device->isa, error)) {
        group->peak_count++;
        return true;
    }
    if (candidate->peak == BENCH_LIMIT_MULTIPLY_ADD) return false;
    bench_session_remark(group->session, "no peak for products of fragments: %s", error->text);
    candidate->peak = BENCH_LIMIT_NONE;
    return true;
}

static bool add_peaks(bench_group *group, bench_error *error) {
    for (size_t i = 0; i < group->count; i++)
        if (!add_peak(group, &group->candidates[i], error)) return false;
    return true;
}

static bench_peak peak_at(const bench_group *group, const bench_lane *peaks, size_t n) {
    const double gflop = group->peaks[n].flops * 1e-6;
    return (bench_peak){gflop / peaks[n].stats.min, gflop / peaks[n].stats.median};
}

/* GFLOP/s that the candidate's instructions reach on its device: the best of the same turns, for a peak is what can be reached
 * and not what others have left over; once that has proved too low, the best of the whole run. */
static bench_peak peak_of(const bench_group *group, const bench_lane *peaks, const bench_candidate *candidate, bool of_run) {
    const size_t n = find_peak(group, candidate);
    if (n == group->peak_count) return (bench_peak){NAN, NAN};
    bench_peak peak = peak_at(group, peaks, n);
    if (of_run) peak.best = candidate->device->best_gflops[candidate->peak];
    return peak;
}

static void remember_peaks(bench_group *group, const bench_lane *peaks) {
    for (size_t i = 0; i < group->peak_count; i++) {
        double *best = &group->peaks[i].device->best_gflops[group->peaks[i].peak];
        *best = fmax(*best, peak_at(group, peaks, i).best);
    }
}

static double gflops_of(const bench_lane *lane) {
    return lane->candidate->flops / lane->stats.median * 1e-6;
}

static bool any_above_peak(const bench_group *group, const bench_lane *lanes) {
    for (size_t i = 0; i < group->count; i++) {
        const bench_lane *lane = &lanes[group->peak_count + i];
        if (gflops_of(lane) > 1.1 * peak_of(group, lanes, lane->candidate, false).best) return true;
    }
    return false;
}

static bool write_records(bench_group *group, const bench_lane *lanes, bool again, bool cold, bench_error *error) {
    bench_session *session = group->session;
    for (size_t i = 0; i < group->count; i++) {
        const bench_lane *lane = &lanes[group->peak_count + i];
        bench_record *record = bench_records_add(&session->records);
        if (!record) return bench_fail(error, "out of memory");
        const bench_peak peak = peak_of(group, lanes, lane->candidate, again);
        bool above = gflops_of(lane) > 1.1 * peak.best;
        record->group = session->groups;
        bench_fill_record(record, session, lane, peak, cold);
        bench_set_flag(record, BENCH_ABOVE_PEAK, above);
        if (!above) continue;
        session->failed = true;
        bench_session_remark(session,
                             "NOT TO BE TRUSTED: %s at length %" PRId64 ": %.0f GFLOP/s, above 110 %% of a peak of %.0f that "
                             "was measured twice",
                             lane->candidate->path, bench_count(record, BENCH_LEN_Q), gflops_of(lane), peak.best);
    }
    return true;
}

static bool measure_once(bench_group *group, bench_lane *lanes, bool cold, bench_error *error) {
    const bool quick = group->session->args.quick;
    const bench_sampling sampling = {.warm_up_s = quick ? 0.1 : 0.3, .seconds = quick ? 0.2 : 1.0, .cold = cold};
    for (size_t i = 0; i < group->peak_count + group->count; i++) {
        bool peak = i < group->peak_count;
        lanes[i] = (bench_lane){.candidate = peak ? &group->peaks[i] : &group->candidates[i - group->peak_count]};
    }
    if (!bench_sample(lanes, group->peak_count + group->count, &sampling, error)) return false;
    remember_peaks(group, lanes);
    return true;
}

static bool measure(bench_group *group, bool cold, bench_error *error) {
    bench_lane lanes[BENCH_GROUP_MAX + BENCH_MAX_PEAKS];
    if (!measure_once(group, lanes, cold, error)) return false;
    const bool again = any_above_peak(group, lanes);
    if (again && !measure_once(group, lanes, cold, error)) return false;
    return write_records(group, lanes, again, cold, error);
}

bool bench_group_measure(bench_group *group, bool cold, size_t *first, bench_error *error) {
    *first = group->session->records.count;
    if (group->count == 0) return true;
    group->session->groups++;
    if (!add_peaks(group, error)) return false;
    return measure(group, false, error) && (!cold || measure(group, true, error));
}

void bench_group_free(bench_group *group) {
    for (size_t i = 0; i < group->count; i++) bench_candidate_release(&group->candidates[i]);
    for (size_t i = 0; i < group->peak_count; i++) bench_candidate_release(&group->peaks[i]);
    group->count = group->peak_count = 0;
}
