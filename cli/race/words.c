/* What the race says, in both languages; every figure comes from the results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stats.h"
#include "lessons/display.h"
#include "lessons/lesson.h"
#include "race.h"

race_language race_find_language(cli_integer asked) {
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    if (asked.given) return (race_language)asked.value;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL && *value != 0) return strncmp(value, "zh", 2) == 0 ? RACE_ZH : RACE_EN;
    }
    return RACE_EN;
}

void race_where(const race_results *results, race_language language, clattn__text *text) {
    char device[LESSON_DEVICE_TEXT];
    lesson_device_text(language == RACE_ZH ? DOC_ZH : DOC_EN, &results->device->info, device, sizeof device);
    clattn__text_add(text, "%s; %s; clattn %s", device, results->os, clattn_version());
}

void race_print_wrapped(const char *text, int indent) {
    display_wrap(stdout, text, RACE_COLUMNS, 0, indent);
}

/* ---- tables -------------------------------------------------------------------------------------------------------- */

/* Of the noisier side: what lies between the first quartile of its runs and the third. */
static double noise_of(const race_pair *pair) {
    return bench_noise(&pair->attention.point, &pair->recurrence.point);
}

static const char *winner_text(const race_pair *pair, race_language language) {
    static const char *const too_noisy[] = {"噪声太大，分不出", "too noisy to call"};
    static const char *const texts[][2] = {[BENCH_WINNER_UNCLEAR] = {"太接近，分不出", "too close to call"},
                                           [BENCH_WINNER_ATTENTION] = {"注意力快", "attention"},
                                           [BENCH_WINNER_RECURRENCE] = {"循环快", "recurrence"}};
    return race_too_noisy(pair) ? too_noisy[language] : texts[race_winner(pair)][language];
}

const char *race_percent(double noise, race_language language, char text[static RACE_PERCENT]) {
    if (noise > 1)
        snprintf(text, RACE_PERCENT, "%s", language == RACE_ZH ? "超过 100" : "over 100");
    else
        snprintf(text, RACE_PERCENT, "%.0f", 100 * noise);
    return text;
}

void race_outcome(const race_pair *pair, race_language language, clattn__text *text) {
    static const char *const noisy[] = {"（噪声 %s %%）", " (noise %s %%)"};
    const double ratio = pair->recurrence.point.ms / pair->attention.point.ms;
    clattn__text_add(text, "%s", winner_text(pair, language));
    if (race_winner(pair) != BENCH_WINNER_UNCLEAR) clattn__text_add(text, " %.1fx", ratio > 1 ? ratio : 1 / ratio);
    if (noise_of(pair) > BENCH_NOISY_ABOVE)
        clattn__text_add(text, noisy[language], race_percent(noise_of(pair), language, (char[RACE_PERCENT]){0}));
}

static void print_pair(const char *label, const race_pair *pair, race_language language) {
    clattn__text outcome = {0};
    race_outcome(pair, language, &outcome);
    printf("%s %11.3g %11.3g   %s\n", label, pair->attention.point.ms, pair->recurrence.point.ms,
           outcome.data != NULL ? outcome.data : "");
    clattn__text_free(&outcome);
}

void race_print_units(const race_results *results, race_language language) {
    static const char *const heads[] = {
        "\n同样的 %" PRId64 " 个词，用更多计算单元（不带投影，毫秒）\n   单元      注意力        循环   谁快\n",
        "\nThe same %" PRId64 " words on more units (core against core, ms)\n  units   attention  recurrence   faster\n"};
    if (results->unit_count == 0) return;
    printf(heads[language], results->units[0].length);
    for (size_t i = 0; i < results->unit_count; i++) {
        char label[16];
        snprintf(label, sizeof label, "%7d", results->units[i].units);
        print_pair(label, &results->units[i], language);
    }
}

void race_why(const race_pair *pair, race_language language, clattn__text *text) {
    static const char *const works[] = {"%" PRId64 " 个词：注意力的算术是循环的 %.3g 倍",
                                        "at %" PRId64 " words attention does %.3gx the recurrence's arithmetic"};
    static const char *const rates[] = {"，速率是它的 %.3g 倍，所以时间是它的 %.3g 倍", " at %.3gx its rate: %.3gx the time"};
    static const char *const noisy[] = {"；时间噪声太大，没法比", "; its times are too noisy to compare"};
    const bench_point *a = &pair->attention.point, *r = &pair->recurrence.point;
    const double work = a->flops / r->flops, time = a->ms / r->ms;
    clattn__text_add(text, works[language], pair->length, work);
    if (race_too_noisy(pair))
        clattn__text_add(text, "%s", noisy[language]);
    else
        clattn__text_add(text, rates[language], work / time, time);
}

static void print_why(const race_pair *pair, race_language language) {
    clattn__text why = {0};
    race_why(pair, language, &why);
    printf("  ");
    display_wrap(stdout, why.data != NULL ? why.data : "", RACE_COLUMNS, 2, 2);
    clattn__text_free(&why);
}

void race_print_lengths(const race_results *results, race_language language) {
    static const char *const titles[][2] = {
        {"不带投影：不带投影的注意力，对不带 W_in·x 的循环",
         "core against core: attention without projections, the recurrent loop without W_in·x"},
        {"带投影：两边都是整层", "layer against layer: projections on both sides"}};
    static const char *const titles_of_tables[] = {"更长的句子，%s（毫秒）", "Longer sentences, %s (ms)"};
    static const char *const heads[] = {"   词数      注意力        循环   谁快\n",
                                        "  words   attention  recurrence   faster\n"};
    for (int which = 0; which < RACE_CONTRASTS; which++) {
        clattn__text title = {0};
        clattn__text_add(&title, titles_of_tables[language], titles[which][language]);
        printf("\n");
        race_print_wrapped(title.data != NULL ? title.data : "", 2);
        clattn__text_free(&title);
        printf("%s", heads[language]);
        for (size_t i = 0; i < results->length_count; i++) {
            char label[16];
            snprintf(label, sizeof label, "%7" PRId64, results->lengths[which][i].length);
            print_pair(label, &results->lengths[which][i], language);
        }
        print_why(&results->lengths[which][0], language);
        if (results->length_count > 1) print_why(&results->lengths[which][results->length_count - 1], language);
    }
}

/* ---- three sentences ----------------------------------------------------------------------------------------------- */

void race_chain_parts(const race_pair *pair, race_language language, char text[static RACE_PARTS]) {
    static const char *const formats[] = {"（每个词一步，外加 %lld 步准备：排好各词的输入和 W_h）",
                                          " (one a word, and %lld to prepare: inputs and W_h are laid out)"};
    const int64_t extra = pair->recurrence.point.chain - pair->length;
    *text = 0; /* a device that counts an operator as one step does not tell */
    if (extra > 0) snprintf(text, RACE_PARTS, formats[language], (long long)extra);
}

void race_stage_parts(const race_pair *pair, race_language language, char text[static RACE_PARTS]) {
    enum { STAGES = 3 };
    static const char *const formats[] = {
        "（打分、softmax、混合；计时的融合法把它们放进一次启动，一块一块地做）",
        " (scores, softmax, mixing; fused, which was timed, goes through them tile by tile in one "
        "launch)"};
    const bool is_told = pair->recurrence.point.chain > pair->length && pair->attention.point.chain == STAGES;
    snprintf(text, RACE_PARTS, "%s", is_told ? formats[language] : "");
}

/* What the steps took; nothing is made of times that are too noisy. */
static void add_chain_times(const race_pair *pair, race_language language, clattn__text *text) {
    static const char *const formats[] = {
        "%d 个计算单元上，%lld 个词循环用 %.3g 毫秒，每步 %s 微秒，注意力用 %.3g 毫秒。",
        " On %d unit%s %lld words took the recurrence %.3g ms, %s us a step, and attention %.3g ms."};
    static const char *const noisy[] = {"机器上还有别的工作（噪声 %s %%）：时间说明不了什么。",
                                        " The machine had other work (noise %s %%): the times are too noisy to call."};
    const bench_point *a = &pair->attention.point, *r = &pair->recurrence.point;
    char step_us[24];
    const double us = 1e3 * r->ms / (double)(r->chain > 0 ? r->chain : 1);
    snprintf(step_us, sizeof step_us, us >= 100 ? "%.0f" : "%.3g", us); /* never an exponent */
    if (race_too_noisy(pair))
        clattn__text_add(text, noisy[language], race_percent(noise_of(pair), language, (char[RACE_PERCENT]){0}));
    else if (language == RACE_ZH)
        clattn__text_add(text, formats[language], pair->units, (long long)pair->length, r->ms, step_us, a->ms);
    else
        clattn__text_add(text, formats[language], pair->units, pair->units == 1 ? "" : "s", (long long)pair->length, r->ms,
                         step_us, a->ms);
}

static void add_chain(const race_results *results, race_language language, clattn__text *text) {
    static const char *const formats[] = {
        "循环要走 %lld 步%s，一步等一步；注意力只有 %lld 步%s，句子再长也一样。",
        "The recurrence takes %lld steps%s, each of which waits for the last; attention takes %lld%s, at any length."};
    const race_pair *pair = race_headline(results);
    char parts[RACE_PARTS], stages[RACE_PARTS];
    race_chain_parts(pair, language, parts);
    race_stage_parts(pair, language, stages);
    clattn__text_add(text, formats[language], (long long)pair->recurrence.point.chain, parts,
                     (long long)pair->attention.point.chain, stages);
    add_chain_times(pair, language, text);
}

/* How much faster on all units than on one. */
static double gain_of(const race_results *results, bool is_recurrence) {
    const race_pair *one = &results->units[0], *all = &results->units[results->unit_count - 1];
    return is_recurrence ? one->recurrence.point.ms / all->recurrence.point.ms
                         : one->attention.point.ms / all->attention.point.ms;
}

/* A gain with two decimals, or where they would be 0, two digits. */
static const char *gain_text(double gain, char text[static 16]) {
    snprintf(text, 16, gain < 0.01 ? "%.2g" : "%.2f", gain);
    return text;
}

/* Which of the reasons below the gains bear. */
enum { SHARED, ALIKE, RECURRENCE_GAINED, CHAIN_LOST };
static int reason_of(double attention, double recurrence) {
    if (attention > 1.15 * recurrence) return recurrence < 0.87 ? CHAIN_LOST : SHARED;
    return recurrence > 1.15 * attention ? RECURRENCE_GAINED : ALIKE;
}

static void add_units(const race_results *results, race_language language, clattn__text *text) {
    static const char *const noisy_single[] = {"这台设备只有一个计算单元；更多单元能带来什么，这里没有量到。",
                                               "This device has one unit; what more units would give was not measured."};
    static const char *const single[] = {
        "这台设备只有一个计算单元，%lld 个词上注意力用 %.3g 毫秒，循环用 %.3g 毫秒；更多单元能带来什么，这里没有量到。",
        "This device has one unit, on which %lld words took attention %.3g ms and the recurrence %.3g ms; what more units "
        "would give "
        "was not measured."};
    static const char *const formats[] = {"计算单元从 1 个增加到 %d 个，注意力变为 %s 倍快，循环变为 %s 倍快：%s",
                                          "On %d units instead of one, attention ran %sx as fast and the recurrence %sx: %s"};
    static const char *const why[][2] = {
        [SHARED] = {"词与词之间互不等待的工作可以分给更多单元，一条链不能。",
                    "work that does not wait can be shared out, a chain cannot."},
        [ALIKE] =
            {"这里两者差不多，因为循环的每一步之内也有可以分开的工作；链本身仍然一样长。",
             "here that is much the same, for there is work to share inside each step, too; the chain is as long as before."},
        [RECURRENCE_GAINED] = {"这里循环得益更多；它的链仍然一样长。",
                               "here the recurrence gained more; its chain is as long as before."},
        [CHAIN_LOST] = {
            "词与词之间互不等待的工作可以分给更多单元；一条链里，每一步都分给几个单元做，等齐的时间比省下的还多。",
            "work that does not wait can be shared out; in a chain, sharing out each step costs more waiting than it saves."}};
    static const char *const noisy[] = {
        "计算单元从 1 个增加到 %d 个带来什么，这次看不出：机器上还有别的工作（噪声 %s %%）。",
        "What %d units give instead of one cannot be told this time: the machine had other work, "
        "and the times are too noisy (noise %s %%)."};
    const double attention = gain_of(results, false), recurrence = gain_of(results, true);
    const double noise = noise_of(&results->units[0]) + noise_of(&results->units[results->unit_count - 1]); /* of a ratio */
    if (results->unit_count < 2) {
        const race_pair *pair = &results->units[0];
        if (race_too_noisy(pair))
            clattn__text_add(text, "%s", noisy_single[language]);
        else
            clattn__text_add(text, single[language], (long long)pair->length, pair->attention.point.ms,
                             pair->recurrence.point.ms);
        return;
    }
    if (!(noise <= BENCH_TOO_NOISY)) {
        clattn__text_add(text, noisy[language], results->units[results->unit_count - 1].units,
                         race_percent(noise, language, (char[RACE_PERCENT]){0}));
        return;
    }
    const int reason = reason_of(attention, recurrence);
    char gains[2][16];
    clattn__text_add(text, formats[language], results->units[results->unit_count - 1].units, gain_text(attention, gains[0]),
                     gain_text(recurrence, gains[1]), why[reason][language]);
}

/* Two digits: a crossing is not known better. */
static long long rounded(double length) {
    const double unit = pow(10, fmax(0, floor(log10(length)) - 1));
    return (long long)(round(length / unit) * unit);
}

/* The longest pair that one side clearly wins; NULL: none. */
static const race_pair *last_clear(const race_results *results, race_contrast which) {
    for (size_t i = results->length_count; i-- > 0;) {
        const race_pair *pair = &results->lengths[which][i];
        if (race_winner(pair) != BENCH_WINNER_UNCLEAR) return pair;
    }
    return NULL;
}

void race_turn(const race_results *results, race_contrast which, race_language language, clattn__text *text) {
    static const char *const crossed[] = {"在 %lld 个词附近反转", "turns near %lld words"};
    static const char *const not_crossed[] = {"直到 %lld 个词都没有反转（%s）", "does not turn up to %lld words (%s)"};
    static const char *const unclear[] = {"直到 %lld 个词都分不出来：差别小于噪声",
                                          "cannot be told from the noise up to %lld words"};
    const bench_contrast contrast = race_contrast_of(results, which, language);
    const double crossing = bench_crossing(&contrast, 1, 1);
    const long long longest = results->lengths[which][results->length_count - 1].length;
    const race_pair *clear = last_clear(results, which);
    if (crossing > 0)
        clattn__text_add(text, crossed[language], rounded(crossing));
    else if (clear != NULL)
        clattn__text_add(text, not_crossed[language], longest, winner_text(clear, language));
    else
        clattn__text_add(text, unclear[language], longest);
}

/* The longest pair whose times are not too noisy; NULL: none. */
static const race_pair *last_quiet(const race_results *results, race_contrast which) {
    for (size_t i = results->length_count; i-- > 0;)
        if (!race_too_noisy(&results->lengths[which][i])) return &results->lengths[which][i];
    return NULL;
}

/* The times that the outcome ends with. */
static void add_last_times(const race_results *results, race_contrast which, race_language language, clattn__text *text) {
    static const char *const formats[] = {"，%lld 个词时注意力用 %.3g 毫秒、循环用 %.3g 毫秒",
                                          ", and %lld words take attention %.3g ms and the recurrence %.3g ms"};
    const race_pair *pair = last_quiet(results, which);
    if (pair == NULL) return;
    clattn__text_add(text, formats[language], (long long)pair->length, pair->attention.point.ms, pair->recurrence.point.ms);
}

static void add_lengths(const race_results *results, race_language language, clattn__text *text) {
    static const char *const begin[] = {
        "注意力的工作随词数的平方增长，循环的工作随词数增长：不带投影时，输赢",
        "Attention's work grows with the square of the length, the recurrence's with the length: core against core "
        "the picture "};
    static const char *const middle[] = {"；带投影时，两边都多一份投影的工作，输赢",
                                         "; layer against layer, where both sides project as well, it "};
    static const char *const end[] = {"。", "."};
    clattn__text_add(text, "%s", begin[language]);
    race_turn(results, RACE_CORE, language, text);
    add_last_times(results, RACE_CORE, language, text);
    clattn__text_add(text, "%s", middle[language]);
    race_turn(results, RACE_LAYER, language, text);
    add_last_times(results, RACE_LAYER, language, text);
    clattn__text_add(text, "%s", end[language]);
}

void race_sentences(const race_results *results, race_language language, clattn__text sentences[RACE_SENTENCES]) {
    add_chain(results, language, &sentences[0]);
    add_units(results, language, &sentences[1]);
    add_lengths(results, language, &sentences[2]);
}
