/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "race.h"

enum { BAR = 16, FRAMES_A_SECOND = 20 };

race_state race_state_at(const race_pair *pair, bool is_recurrence, double ms) {
    const bench_point *point = is_recurrence ? &pair->recurrence.point : &pair->attention.point;
    const double part = fmin(1, fmax(0, ms / point->ms));
    race_state state = {.is_done = part >= 1, .steps = (int64_t)(part * (double)point->chain)};
    state.words = is_recurrence ? (int64_t)(part * (double)pair->length) : state.is_done ? pair->length : 0;
    return state;
}

/* One lane: how far it is, its counters, and once it is done, when that was. */
static void print_lane(const race_pair *pair, bool is_recurrence, double ms, race_language language) {
    static const char *const names[][2] = {{"注意力", "attention "}, {"循环  ", "recurrence"}};
    static const char *const counters[] = {"] %lld/%lld 个词，%lld/%lld 步", "] %lld/%lld words, %lld/%lld steps"};
    static const char *const busy[] = {"，设备忙 %.0f %%", ", busy %.0f %%"};
    const race_runner *runner = is_recurrence ? &pair->recurrence : &pair->attention;
    const race_state state = race_state_at(pair, is_recurrence, ms);
    const int filled = (int)(BAR * state.words / pair->length);
    printf("%s [", names[is_recurrence][language]);
    for (int i = 0; i < BAR; i++) putchar(i < filled ? '#' : ' ');
    printf(counters[language], (long long)state.words, (long long)pair->length, (long long)state.steps,
           (long long)runner->point.chain);
    if (state.is_done) printf("  %.3g ms", runner->point.ms);
    if (state.is_done && isfinite(runner->busy)) printf(busy[language], 100 * fmin(1, runner->busy));
}

static void print_lanes(const race_pair *pair, double ms, race_language language, const char *end_of_line) {
    for (int is_recurrence = 1; is_recurrence >= 0; is_recurrence--) {
        print_lane(pair, is_recurrence, ms, language);
        printf("%s\n", end_of_line);
    }
}

static void wait_for_frame(void) {
    const struct timespec frame = {0, 1000000000 / FRAMES_A_SECOND};
    nanosleep(&frame, NULL);
}

void race_replay(const race_pair *pair, race_language language, double seconds, bool is_moving) {
    static const char *const what[] = {"%lld 个词，%d 个计算单元", "%lld words, %d unit%s"};
    static const char *const slower[] = {"；放慢 %.3g 倍重放实测的时间", "; what was measured, replayed %.3g times slower"};
    static const char *const faster[] = {"；加快 %.3g 倍重放实测的时间", "; what was measured, replayed %.3g times faster"};
    const double slower_ms = fmax(pair->attention.point.ms, pair->recurrence.point.ms), factor = seconds * 1e3 / slower_ms;
    const int frames = is_moving ? (int)(seconds * FRAMES_A_SECOND) : 0;
    printf(what[language], (long long)pair->length, pair->units, pair->units == 1 ? "" : "s");
    if (is_moving) printf(factor >= 1 ? slower[language] : faster[language], factor >= 1 ? factor : 1 / factor);
    printf("\n");
    for (int frame = 0; frame < frames; frame++) {
        print_lanes(pair, slower_ms * frame / frames, language, "\033[K");
        printf("\033[2A");
        fflush(stdout);
        wait_for_frame();
    }
    print_lanes(pair, slower_ms, language, is_moving ? "\033[K" : "");
    if (race_too_noisy(pair)) {
        clattn__text outcome = {0};
        race_outcome(pair, language, &outcome);
        printf("%s\n", outcome.data != NULL ? outcome.data : "");
        clattn__text_free(&outcome);
    }
}
