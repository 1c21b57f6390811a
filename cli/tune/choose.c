/* Gain or keep.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <string.h>

#include "bench/verdict.h"
#include "tune.h"

/* What takes so many times the fastest run of the best is not measured further. */
static const double FAR_BEHIND = 1.5;
enum { FIRST_RUNS = 3 };

/* The fastest of a few runs, the first of which warms. */
static bool glance(bench_candidate *candidate, double *ms, bench_error *error) {
    *ms = INFINITY;
    for (int n = 0; n <= FIRST_RUNS; n++) {
        bench_time time = {NAN, NAN};
        if (bench_ended_by()) return bench_fail(error, "asked to end");
        if (!candidate->class->run(candidate, &time, error)) return false;
        if (n > 0) *ms = fmin(*ms, time.wall_ms);
    }
    return true;
}

/* Which are worth measuring; candidate 0 always is. */
static bool glance_at_all(bench_candidate *candidates, size_t count, tune_choice *choice, bench_error *error) {
    double best = INFINITY;
    for (size_t n = 0; n < count; n++) {
        if (!glance(&candidates[n], &choice->ms[n], error)) return false;
        best = fmin(best, choice->ms[n]);
    }
    for (size_t n = 1; n < count; n++) choice->behind[n] = choice->ms[n] > FAR_BEHIND * best;
    return true;
}

static bench_point point_of(const bench_lane *lane) {
    return (bench_point){.ms = lane->stats.median, .noise = lane->stats.noise};
}

/* `bench_faster` has two sides, which are any two here. */
static bool is_faster(const bench_lane *one, const bench_lane *than) {
    const bench_point a = point_of(one), b = point_of(than);
    return bench_faster(&a, &b) == BENCH_WINNER_ATTENTION;
}

/* The best of those that are not behind. */
static bool first_round(bench_candidate *candidates, size_t count, const bench_sampling *sampling, tune_choice *choice,
                        bool *wins, bench_error *error) {
    bench_lane lanes[TUNE_MOST_ROWS];
    size_t of[TUNE_MOST_ROWS], taken = 0, best = 0;
    for (size_t n = 0; n < count; n++) {
        if (choice->behind[n]) continue;
        of[taken] = n;
        lanes[taken++] = (bench_lane){.candidate = &candidates[n]};
    }
    if (!bench_sample(lanes, taken, sampling, error)) return false;
    for (size_t n = 0; n < taken; n++) {
        choice->ms[of[n]] = lanes[n].stats.median;
        if (lanes[n].stats.median < lanes[best].stats.median) best = n;
    }
    choice->chosen = of[best];
    *wins = best > 0 && is_faster(&lanes[best], &lanes[0]);
    choice->ratio = lanes[0].stats.median / lanes[best].stats.median;
    choice->noise = lanes[0].stats.noise + lanes[best].stats.noise;
    return true;
}

/* The two alone, anew. */
static bool second_round(bench_candidate *candidates, const bench_sampling *sampling, tune_choice *choice, bool *wins,
                         bench_error *error) {
    bench_lane lanes[] = {{.candidate = &candidates[0]}, {.candidate = &candidates[choice->chosen]}};
    if (!bench_sample(lanes, 2, sampling, error)) return false;
    *wins = is_faster(&lanes[1], &lanes[0]);
    choice->ratio = lanes[0].stats.median / lanes[1].stats.median;
    choice->noise = lanes[0].stats.noise + lanes[1].stats.noise;
    return true;
}

bool tune_choose(bench_candidate *candidates, size_t count, const bench_sampling *sampling, tune_choice *choice,
                 bench_error *error) {
    bool wins = false;
    *choice = (tune_choice){.ratio = 1, .reason = "the only row"};
    if (count == 1) return true;
    if (!glance_at_all(candidates, count, choice, error) || !first_round(candidates, count, sampling, choice, &wins, error))
        return false;
    if (wins) {
        if (!second_round(candidates, sampling, choice, &wins, error)) return false;
        choice->reason = wins ? "faster, twice" : "not faster again";
    } else {
        choice->reason = choice->chosen ? "not faster beyond noise" : "the fastest";
    }
    if (wins) return true;
    choice->chosen = 0;
    choice->ratio = 1;
    return true;
}
