/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* What a ratio of their times has to differ from 1 by, to be one; no difference is enough where a median is not known. */
static double doubt_of(const bench_point *a, const bench_point *b) {
    if (!(a->noise <= BENCH_HOPELESS && b->noise <= BENCH_HOPELESS)) return INFINITY;
    return fmax(BENCH_RESOLUTION, a->noise + b->noise);
}

double bench_noise(const bench_point *a, const bench_point *b) {
    return fmax(a->noise, b->noise);
}

bool bench_too_noisy(const bench_point *a, const bench_point *b) {
    const bench_point *fast = a->ms < b->ms ? a : b, *slow = fast == a ? b : a;
    if (bench_noise(a, b) <= BENCH_TOO_NOISY) return false;
    return !(fast->ms * (1 + fast->noise) < slow->ms * (1 - slow->noise));
}

bench_winner bench_faster(const bench_point *attention, const bench_point *recurrence) {
    double fast = fmin(attention->ms, recurrence->ms), slow = fmax(attention->ms, recurrence->ms);
    if (!(fast > 0) || !(slow / fast - 1 > doubt_of(attention, recurrence))) return BENCH_WINNER_UNCLEAR;
    return attention->ms < recurrence->ms ? BENCH_WINNER_ATTENTION : BENCH_WINNER_RECURRENCE;
}

double bench_crossing(const bench_contrast *contrast, double attention_factor, double recurrence_factor) {
    double before = 0, from = 0;
    for (size_t i = 0; i < contrast->count; i++) {
        bench_point attention = contrast->attention_at[i], recurrence = contrast->recurrence_at[i];
        attention.ms *= attention_factor;
        recurrence.ms *= recurrence_factor;
        if (bench_faster(&attention, &recurrence) == BENCH_WINNER_UNCLEAR) continue;
        double lead = log(recurrence.ms / attention.ms), to = log((double)contrast->lengths[i]);
        if (before * lead < 0) return exp(from + (to - from) * before / (before - lead));
        before = lead;
        from = to;
    }
    return 0;
}

/* A length as exact as it is known: two digits. */
static i64 rounded(double length) {
    double unit = pow(10, fmax(0, floor(log10(length)) - 1));
    return (i64)(round(length / unit) * unit);
}

double bench_parallel_part(double speedup, int units) {
    if (units <= 1 || !(speedup > 1)) return 0;
    return fmin(1, (1 - 1 / speedup) / (1 - 1.0 / units));
}

/* Three digits, never with an exponent for what is large. */
typedef struct digits {
    char text[24];
} digits;

static digits show(double value) {
    digits d;
    snprintf(d.text, sizeof d.text, fabs(value) >= 100 ? "%.0f" : "%.3g", value);
    return d;
}

/* ---- one contrast -------------------------------------------------------------------------------------------------- */

static double lead_of(const bench_contrast *contrast, size_t i, bench_winner winner) {
    double ratio = contrast->recurrence_at[i].ms / contrast->attention_at[i].ms;
    return winner == BENCH_WINNER_ATTENTION ? ratio : 1 / ratio;
}

/* "16-256, 1024": the lengths that a side wins, neighbours joined. */
static size_t add_lengths(clattn__text *text, const bench_contrast *contrast, const bench_winner *winners,
                          bench_winner winner) {
    size_t found = 0;
    for (size_t i = 0; i < contrast->count;) {
        size_t end = i;
        while (end < contrast->count && winners[end] == winner) end++;
        if (end == i) {
            i++;
            continue;
        }
        clattn__text_add(text, "%s%" PRId64, found ? ", " : "", contrast->lengths[i]);
        if (end - i > 1) clattn__text_add(text, "-%" PRId64, contrast->lengths[end - 1]);
        found += end - i;
        i = end;
    }
    return found;
}

static void add_wins(clattn__text *text, const bench_contrast *contrast, const bench_winner *winners, bench_winner winner) {
    size_t wins = 0, least = 0, most = 0;
    for (size_t i = 0; i < contrast->count; i++) {
        if (winners[i] != winner) continue;
        if (!wins || lead_of(contrast, i, winner) < lead_of(contrast, least, winner)) least = i;
        if (!wins || lead_of(contrast, i, winner) > lead_of(contrast, most, winner)) most = i;
        wins++;
    }
    const char *name = winner == BENCH_WINNER_ATTENTION ? contrast->attention : contrast->recurrence;
    if (!wins) {
        clattn__text_add(text, " %s wins at no length measured.", name);
        return;
    }
    clattn__text_add(text, " %s wins at %s ", name, wins > 1 ? "lengths" : "length");
    add_lengths(text, contrast, winners, winner);
    if (wins == 1)
        clattn__text_add(text, ", %.1fx faster.", lead_of(contrast, most, winner));
    else
        clattn__text_add(text, ", %.1fx to %.1fx faster (most at %" PRId64 ").", lead_of(contrast, least, winner),
                         lead_of(contrast, most, winner), contrast->lengths[most]);
}

static void add_unclear(clattn__text *text, const bench_contrast *contrast, const bench_winner *winners) {
    clattn__text lengths = {0};
    if (add_lengths(&lengths, contrast, winners, BENCH_WINNER_UNCLEAR) && lengths.data)
        clattn__text_add(text, " At %s it is unclear: the difference is within the noise.", lengths.data);
    clattn__text_free(&lengths);
}

/* Why, at one length: work and rate explain the time. */
static void add_why(clattn__text *text, const bench_contrast *contrast, size_t i) {
    const bench_point *a = &contrast->attention_at[i], *r = &contrast->recurrence_at[i];
    if (!(a->flops > 0 && r->flops > 0)) return;
    double work = a->flops / r->flops, rate = work * r->ms / a->ms;
    clattn__text_add(text, " At %" PRId64 ", attention does %sx the recurrence's FLOPs at %sx its rate", contrast->lengths[i],
                     show(work).text, show(rate).text);
    if (isfinite(a->percent) && isfinite(r->percent))
        clattn__text_add(text, " (%.0f %% of peak against %.0f %%)", a->percent, r->percent);
    clattn__text_add(text, ": %sx the time.", show(work / rate).text);
}

void bench_verdict_contrast(clattn__text *text, const bench_contrast *contrast) {
    if (contrast->count == 0) {
        clattn__text_add(text, "%s: nothing was measured on both sides.\n", contrast->title);
        return;
    }
    bench_winner winners[BENCH_MAX_LENGTHS];
    for (size_t i = 0; i < contrast->count; i++)
        winners[i] = bench_faster(&contrast->attention_at[i], &contrast->recurrence_at[i]);

    clattn__text_add(text, "%s:", contrast->title);
    add_wins(text, contrast, winners, BENCH_WINNER_ATTENTION);
    add_wins(text, contrast, winners, BENCH_WINNER_RECURRENCE);
    add_unclear(text, contrast, winners);
    double crossing = bench_crossing(contrast, 1, 1);
    if (crossing > 0) clattn__text_add(text, " The lines cross near length %" PRId64 ".", rounded(crossing));

    size_t last = contrast->count - 1;
    const bench_point *r = &contrast->recurrence_at[last];
    clattn__text_add(text,
                     "\nWhy: the recurrence is a chain of %" PRId64 " steps at length %" PRId64
                     ", %s us each, none of which can begin before the last has ended; attention is a chain of %" PRId64 ".",
                     r->chain, contrast->lengths[last], show(r->ms * 1e3 / (double)(r->chain > 0 ? r->chain : 1)).text,
                     contrast->attention_at[last].chain);
    add_why(text, contrast, 0);
    if (last > 0) add_why(text, contrast, last);
    clattn__text_add(text, "\n");
}

/* ---- scaling ------------------------------------------------------------------------------------------------------- */

static void add_gain(clattn__text *text, const char *name, const bench_point *one, const bench_point *many, bool full) {
    double speedup = one->ms / many->ms, doubt = doubt_of(one, many);
    if (speedup > 1 + doubt)
        clattn__text_add(text, "%s %.2fx%s", name, speedup, full ? " as fast as one" : "");
    else if (1 / speedup > 1 + doubt)
        clattn__text_add(text, "%s %.2fx slower", name, 1 / speedup);
    else
        clattn__text_add(text, "%s no faster (%.2fx, within the noise)", name, speedup);
}

/* Where the lines would cross on `units`, if both kept their parallel part. */
static void add_forecast(clattn__text *text, const bench_scaling *scaling, const bench_contrast *core, int units,
                         double attention_part, double recurrence_part) {
    int now = scaling->units[scaling->count - 1];
    double attention = (1 - attention_part + attention_part / units) / (1 - attention_part + attention_part / now);
    double recurrence = (1 - recurrence_part + recurrence_part / units) / (1 - recurrence_part + recurrence_part / now);
    double crossing = bench_crossing(core, attention, recurrence);
    if (crossing > 0) {
        clattn__text_add(text, "on %d the lines would cross near length %" PRId64, units, rounded(crossing));
        return;
    }
    double lead = core->recurrence_at[0].ms * recurrence / (core->attention_at[0].ms * attention);
    clattn__text_add(text, "on %d %s would win at every length measured", units, lead > 1 ? core->attention : core->recurrence);
}

void bench_verdict_scaling(clattn__text *text, const bench_scaling *scaling, const bench_contrast *core,
                           const char *unit_name) {
    if (scaling->count < 2) {
        clattn__text_add(text, "More %ss at length %" PRId64 ": only one was measured, so nothing is known.\n", unit_name,
                         scaling->length);
        return;
    }
    size_t last = scaling->count - 1;
    const bench_point *a = scaling->attention_at, *r = scaling->recurrence_at;
    clattn__text_add(text, "More %ss, at length %" PRId64 ": %d of them ran ", unit_name, scaling->length,
                     scaling->units[last]);
    add_gain(text, "attention", &a[0], &a[last], true);
    add_gain(text, " and the recurrence", &r[0], &r[last], false);
    if (fmax(a[0].noise + a[last].noise, r[0].noise + r[last].noise) > BENCH_TOO_NOISY) {
        clattn__text_add(text, ". That is too noisy for a forecast.\n");
        return;
    }
    double attention = bench_parallel_part(a[0].ms / a[last].ms, scaling->units[last]);
    double recurrence = bench_parallel_part(r[0].ms / r[last].ms, scaling->units[last]);
    clattn__text_add(text, ". By Amdahl's law that is %.0f %% parallel against %.0f %%", attention * 100, recurrence * 100);
    if (core->count > 0) {
        clattn__text_add(text, "; if both kept to it, ");
        add_forecast(text, scaling, core, 4 * scaling->units[last], attention, recurrence);
        clattn__text_add(text, ", ");
        add_forecast(text, scaling, core, 16 * scaling->units[last], attention, recurrence);
    }
    clattn__text_add(text, " (a forecast, not a measurement).\n");
}
