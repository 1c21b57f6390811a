/* The race's counters and sentences, from figures that the test makes: any outcome can come out, in both languages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/race/race.h"

static race_pair pair_of(int64_t length, int units, double attention_ms, double recurrence_ms) {
    return (race_pair){.length = length,
                       .units = units,
                       .attention = {{attention_ms, 0.01, 1e6, 50, 3}, NAN},
                       .recurrence = {{recurrence_ms, 0.01, 1e6, 20, length + 2}, NAN}};
}

START_TEST(words_come_one_by_one_or_at_once) {
    const race_pair pair = pair_of(100, 2, 1.0, 10.0);
    race_state state = race_state_at(&pair, true, 0);
    ck_assert(state.words == 0 && state.steps == 0 && !state.is_done);
    state = race_state_at(&pair, true, 5);
    ck_assert(state.words == 50 && state.steps == 51 && !state.is_done);
    state = race_state_at(&pair, true, 10);
    ck_assert(state.words == 100 && state.steps == 102 && state.is_done);
    state = race_state_at(&pair, false, 0.99);
    ck_assert(state.words == 0 && !state.is_done);
    state = race_state_at(&pair, false, 1);
    ck_assert(state.words == 100 && state.steps == 3 && state.is_done);
    state = race_state_at(&pair, false, 77);
    ck_assert(state.words == 100 && state.is_done);
}
END_TEST

/* Attention is quadratic, the recurrence linear, in units of a microsecond; both divided by what the units bring. */
static race_results results_of(double attention_us, double attention_gain, double recurrence_gain, size_t lengths) {
    race_results results = {.width = 512, .unit_count = 2, .length_count = lengths};
    results.units[0] = pair_of(128, 1, attention_gain, recurrence_gain);
    results.units[1] = pair_of(128, 4, 1, 1);
    for (size_t i = 0; i < lengths; i++) {
        const double n = 16 << i;
        results.lengths[RACE_CORE][i] = pair_of((int64_t)n, 4, attention_us * n * n * 1e-3, n * 1e-2);
        results.lengths[RACE_LAYER][i] = pair_of((int64_t)n, 4, 1, 2);
    }
    return results;
}

static void expect_sentence(const race_results *results, race_language language, int which, const char *words) {
    clattn__text sentences[RACE_SENTENCES] = {{0}};
    race_sentences(results, language, sentences);
    ck_assert_msg(strstr(sentences[which].data, words) != NULL, "\"%s\" is not in \"%s\"", words, sentences[which].data);
    for (int i = 0; i < RACE_SENTENCES; i++) clattn__text_free(&sentences[i]);
}

/* No time and no ratio of times in the sentences about units. */
static void hide_ratios(const race_results *results) {
    clattn__text sentences[RACE_SENTENCES] = {{0}};
    race_sentences(results, RACE_EN, sentences);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(strstr(sentences[i].data, " ms") == NULL && strstr(sentences[i].data, "x as fast") == NULL, "%s",
                      sentences[i].data);
    for (int i = 0; i < RACE_SENTENCES; i++) clattn__text_free(&sentences[i]);
}

/* Who wins and why: of noisy times nothing but the arithmetic. */
static void hide_outcomes(const race_pair *pair, bool is_noisy) {
    clattn__text outcome = {0}, why = {0};
    race_outcome(pair, RACE_EN, &outcome);
    race_why(pair, RACE_EN, &why);
    ck_assert_msg((strcmp(outcome.data, "too noisy to call (noise 90 %)") == 0) == is_noisy, "%s", outcome.data);
    ck_assert_msg((strstr(why.data, "its rate") == NULL) == is_noisy, "%s", why.data);
    ck_assert_ptr_nonnull(strstr(why.data, "the recurrence's arithmetic"));
    clattn__text_free(&outcome);
    clattn__text_free(&why);
}

START_TEST(the_sentences_follow_the_figures) {
    race_results turns = results_of(0.01, 3.8, 1.5, 8); /* equal at a thousand words */
    ck_assert(race_has_turned(&turns, RACE_CORE));
    ck_assert(!race_has_turned(&turns, RACE_LAYER));
    expect_sentence(&turns, RACE_EN, 0,
                    "The recurrence takes 130 steps (one a word, and 2 to prepare: inputs and W_h are laid out)");
    expect_sentence(&turns, RACE_EN, 1, "On 4 units instead of one, attention ran 3.80x as fast and the recurrence 1.50x");
    expect_sentence(&turns, RACE_EN, 1, "a chain cannot");
    expect_sentence(&turns, RACE_EN, 2, "turns near 1000 words");
    expect_sentence(&turns, RACE_EN, 2, "it does not turn up to 2048 words (attention)");
    expect_sentence(&turns, RACE_ZH, 2, "在 1000 个词附近反转");
    expect_sentence(
        &turns, RACE_EN, 0,
        "attention takes 3 (scores, softmax, mixing; fused, which was timed, goes through them tile by tile in one "
        "launch), at any length. On 4 units 128 words took the recurrence 1 ms, 7.69 us a step, and attention 1 ms.");
    expect_sentence(&turns, RACE_ZH, 0, "注意力只有 3 步");
    expect_sentence(&turns, RACE_EN, 2, "and 2048 words take attention 41.9 ms and the recurrence 20.5 ms; layer");
    expect_sentence(&turns, RACE_ZH, 2, "，2048 个词时注意力用 1 毫秒、循环用 2 毫秒。");
    const race_results level = results_of(0.01, 2, 1.9, 4);
    expect_sentence(&level, RACE_EN, 1, "much the same");
    expect_sentence(&level, RACE_EN, 2, "does not turn up to 128 words (attention)");
    const race_results reversed = results_of(10, 1.5, 3, 4);
    expect_sentence(&reversed, RACE_EN, 1, "the recurrence gained more");
    expect_sentence(&reversed, RACE_EN, 2, "does not turn up to 128 words (recurrence)");
    race_results noisy = results_of(0.01, 3.8, 1.5, 4);
    noisy.units[1].attention.point.noise = 0.5;
    ck_assert_ptr_eq(race_headline(&noisy), &noisy.units[0]); /* the quieter one is told of */
    expect_sentence(&noisy, RACE_EN, 0,
                    "On 1 unit 128 words took the recurrence 1.5 ms, 11.5 us a step, and attention 3.8 ms.");
    expect_sentence(&noisy, RACE_EN, 1, "What 4 units give instead of one cannot be told this time");
    expect_sentence(&noisy, RACE_ZH, 1, "这次看不出");
    noisy.units[0].attention.point.noise = 0.6;
    ck_assert_ptr_eq(race_headline(&noisy), &noisy.units[1]);
    expect_sentence(&noisy, RACE_EN, 0, "The machine had other work (noise 50 %): the times are too noisy to call.");
    hide_ratios(&noisy);
    race_pair far = pair_of(128, 4, 1, 10);
    ck_assert_int_eq(race_winner(&far), BENCH_WINNER_ATTENTION);
    far.recurrence.point.noise = 0.3; /* which leaves no doubt who is faster, and no ratio: nothing is said */
    ck_assert_int_eq(race_winner(&far), BENCH_WINNER_UNCLEAR);
    race_results loud = results_of(0.01, 3.8, 1.5, 8);
    for (size_t i = 0; i < loud.length_count; i++) loud.lengths[RACE_CORE][i].attention.point.noise = 0.9;
    expect_sentence(&loud, RACE_EN, 2, "core against core the picture cannot be told from the noise up to 2048 words");
    expect_sentence(&loud, RACE_EN, 2, "it does not turn up to 2048 words (attention)");
    expect_sentence(&loud, RACE_ZH, 2, "分不出来");
    for (int i = 0; i < RACE_CONTRASTS; i++) hide_outcomes(&loud.lengths[i][0], i == RACE_CORE);
    race_results slow = results_of(0.01, 3.8, 0.0034, 4);
    expect_sentence(&slow, RACE_EN, 1, "attention ran 3.80x as fast and the recurrence 0.0034x");
    expect_sentence(&slow, RACE_EN, 1, "costs more waiting than it saves");
    race_results single = results_of(0.01, 1, 1, 4);
    single.unit_count = 1;
    expect_sentence(&single, RACE_EN, 1,
                    "This device has one unit, on which 128 words took attention 1 ms and the recurrence 1 ms");
    expect_sentence(&single, RACE_ZH, 1, "只有一个计算单元");
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("race");
    Suite *suite = suite_create("race");
    tcase_add_test(cases, words_come_one_by_one_or_at_once);
    tcase_add_test(cases, the_sentences_follow_the_figures);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
