/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

/* A run shorter than this is preceded by one that is not timed, which brings its data back after the others' turns. */
static const double SHORT_RUN_MS = 5;

bool bench_warm(const double *before, const double *after, size_t count) {
    double first[8], second[8];
    memcpy(first, before, count * sizeof *first);
    memcpy(second, after, count * sizeof *second);
    double a = bench_stats_of(first, count).median, b = bench_stats_of(second, count).median;
    return fabs(a - b) <= 0.02 * fmin(a, b);
}

static volatile sig_atomic_t ended_by;

static void note_end(int which) {
    ended_by = which;
}

void bench_end_on(int which) {
    struct sigaction before, action = {.sa_handler = note_end, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    ended_by = 0;
    sigemptyset(&action.sa_mask);
    if (sigaction(which, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(which, &action, NULL);
}

int bench_ended_by(void) {
    return ended_by;
}

static bool run_once(bench_candidate *candidate, bench_time *time, bench_error *error) {
    if (ended_by) return bench_fail(error, "asked to end");
    *time = (bench_time){NAN, NAN};
    return candidate->class->run(candidate, time, error);
}

/* Run until two consecutive medians agree. Long runs warm themselves: then a median of one will do. */
static bool warm_up(bench_candidate *candidate, double limit_s, bool *is_short, bench_error *error) {
    double start = bench_now_ms(), times[2][3] = {{0}};
    size_t batch = 3;
    for (int round = 0;; round++) {
        memcpy(times[0], times[1], sizeof times[0]);
        for (size_t i = 0; i < batch; i++) {
            bench_time time;
            if (!run_once(candidate, &time, error)) return false;
            times[1][i] = time.wall_ms;
            if (round == 0 && time.wall_ms > 50) batch = 1;
        }
        *is_short = times[1][0] < SHORT_RUN_MS;
        if (round > 0 && bench_warm(times[0], times[1], batch)) return true;
        if (bench_now_ms() - start > limit_s * 1e3) return true;
    }
}

static bool take_sample(bench_lane *lane, bool cold, bool is_short, bench_error *error) {
    bench_time time;
    if (cold && !bench_device_flush(lane->candidate->device, error)) return false;
    if (!cold && is_short && !run_once(lane->candidate, &time, error)) return false;
    if (!run_once(lane->candidate, &time, error)) return false;
    lane->wall[lane->count] = time.wall_ms;
    lane->event[lane->count] = time.event_ms;
    lane->count++;
    return true;
}

static double noise_of(const bench_lane *lane, double *scratch) {
    memcpy(scratch, lane->wall, lane->count * sizeof *scratch);
    return bench_stats_of(scratch, lane->count).noise;
}

/* Whether every lane has enough samples and is quiet. Sorting them all is worth it only now and then. */
static bool settled(const bench_lane *lanes, size_t count, double *scratch) {
    size_t samples = lanes[0].count;
    if (samples < BENCH_MIN_SAMPLES || (samples > 64 && samples % 16 != 0)) return false;
    for (size_t i = 0; i < count; i++)
        if (noise_of(&lanes[i], scratch) > 0.01) return false;
    return true;
}

static bool take_turns(bench_lane *lanes, size_t count, const bench_sampling *sampling, const bool *is_short, double *scratch,
                       bench_error *error) {
    double start = bench_now_ms();
    while (lanes[0].count < BENCH_MAX_SAMPLES) {
        for (size_t i = 0; i < count; i++)
            if (!take_sample(&lanes[i], sampling->cold, is_short[i], error)) return false;
        if (settled(lanes, count, scratch)) return true;
        if (lanes[0].count >= BENCH_MIN_SAMPLES && bench_now_ms() - start > sampling->seconds * 1e3) return true;
    }
    return true;
}

/* Which clock is believed: the device's, unless the wall clock disagrees by more than 10 %. */
static void summarize(bench_lane *lane) {
    bench_stats wall = bench_stats_of(lane->wall, lane->count);
    lane->wall_ms = wall.median;
    lane->event_ms = NAN;
    lane->stats = wall;
    lane->source = "wall clock";
    lane->remark = NULL;
    for (size_t i = 0; i < lane->count; i++)
        if (!(lane->event[i] > 0)) return;
    bench_stats event = bench_stats_of(lane->event, lane->count);
    lane->event_ms = event.median;
    if (fabs(wall.median - event.median) > 0.1 * event.median) {
        lane->remark = "events and wall clock are more than 10 % apart: wall clock";
        return;
    }
    lane->stats = event;
    lane->source = "device events";
}

bool bench_sample(bench_lane *lanes, size_t count, const bench_sampling *sampling, bench_error *error) {
    bool is_short[64] = {false};
    double *memory = malloc((2 * count + 1) * BENCH_MAX_SAMPLES * sizeof *memory);
    if (!memory || count > 64) {
        free(memory);
        return bench_fail(error, memory ? "more than 64 candidates at once" : "out of memory");
    }
    bool right = count > 0;
    for (size_t i = 0; i < count; i++) {
        lanes[i].wall = memory + (2 * i + 1) * BENCH_MAX_SAMPLES;
        lanes[i].event = memory + (2 * i + 2) * BENCH_MAX_SAMPLES;
        lanes[i].count = 0;
        right = right && warm_up(lanes[i].candidate, sampling->warm_up_s, &is_short[i], error);
    }
    right = right && take_turns(lanes, count, sampling, is_short, memory, error);
    for (size_t i = 0; i < count; i++) {
        if (right) summarize(&lanes[i]);
        lanes[i].wall = lanes[i].event = NULL;
    }
    free(memory);
    return right;
}
