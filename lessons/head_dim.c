/* Many narrow heads or few wide ones: what the device makes of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "bench/stats.h"
#include "courses.h"
#include "measure.h"

enum { WIDTH = 512, LENGTH = 256, SPLITS = 6, SHORTEST = 16 };

static const int64_t head_dims[SPLITS] = {8, 16, 32, 64, 128, 256};

typedef struct head_run {
    int64_t length;
    double probe_ms; /* of one run of all splits at twice that length, where it was too long; 0: it was not */
    const char *names[SPLITS];
    double index[SPLITS], rate[SPLITS], rate_low[SPLITS], rate_high[SPLITS]; /* low and high: quartiles */
    double milliseconds[SPLITS], ms_low[SPLITS], ms_high[SPLITS], noise;     /* noise: of the worst */
    bench_point points[SPLITS];
} head_run;

static void list_shapes(int64_t length, bench_shape shapes[SPLITS]) {
    for (int i = 0; i < SPLITS; i++) shapes[i] = measure_attention(WIDTH / head_dims[i], length, head_dims[i]);
}

/* All splits in turns, at the length or at a shorter one where that would take too long. */
static void measure_splits(lesson *lesson, int64_t length, head_run *run) {
    bench_shape shapes[SPLITS];
    list_shapes(length, shapes);
    for (double probe; length > SHORTEST && !measure_is_worth(probe = measure_probe(lesson, shapes, SPLITS));) {
        run->probe_ms = probe;
        list_shapes(length /= 2, shapes);
    }
    measure_spread spreads[SPLITS];
    measure_in_turns(lesson, shapes, SPLITS, run->points, spreads);
    run->length = length;
    for (int i = 0; i < SPLITS; i++) {
        const bench_point *point = &run->points[i];
        run->names[i] = arena_format(&lesson->arena, "%lld × %lld", (long long)(WIDTH / head_dims[i]), (long long)head_dims[i]);
        run->index[i] = i;
        run->milliseconds[i] = point->ms;
        run->ms_low[i] = spreads[i].low;
        run->ms_high[i] = spreads[i].high;
        run->rate[i] = point->flops / point->ms * 1e-6;
        run->rate_low[i] = point->flops / spreads[i].high * 1e-6;
        run->rate_high[i] = point->flops / spreads[i].low * 1e-6;
        run->noise = fmax(run->noise, point->noise);
        figures_at(&lesson->figures, "head_dim/gflops", head_dims[i], run->rate[i]);
        figures_at(&lesson->figures, "head_dim/ms", head_dims[i], point->ms);
        figures_at(&lesson->figures, "head_dim/noise", head_dims[i], point->noise);
    }
}

static void plot_bars(lesson *lesson, const char *id, const char *title, const char *axis, doc_role role, const head_run *run,
                      const double *values, const double *low, const double *high, int decimals) {
    doc *doc = &lesson->doc;
    doc_plot *plot = doc_add_plot(doc, id, title);
    plot->mark = DOC_BARS;
    plot->categories = arena_grow(&lesson->arena, run->names, sizeof run->names, sizeof run->names);
    plot->x = (doc_axis){.label = doc_text(doc, "头数 × 头宽", "heads × width of a head")};
    plot->y = (doc_axis){.label = axis};
    plot->decimals = decimals;
    doc_add_series(doc, plot, axis, role, SPLITS, run->index, values);
    doc_add_spread(doc, plot, low, high);
}

/* What the figures bear: who is fastest, or nothing. */
static const char *who_is_fastest(const doc *doc, const head_run *run, size_t best, size_t worst, bool clear) {
    if (measure_too_noisy(run->noise))
        return doc_text(doc, "这一次噪声太大，分不出：机器上还有别的工作。",
                        "This time it is too noisy to call: the machine had other work.");
    if (!clear)
        return doc_text(doc, "这一次没有分出来：差别小于噪声。",
                        "This time it is not decided: the differences are within the noise.");
    return doc_text(doc, "在这台设备上最快的是 %s，%.1f GFLOP/s；最慢的是 %s，%.1f GFLOP/s。",
                    "On this device %s is fastest, at %.1f GFLOP/s, and %s slowest, at %.1f.", run->names[best],
                    run->rate[best], run->names[worst], run->rate[worst]);
}

/* The faster of the two ends of what was measured, or why there is none. */
static const char *sum_up_rates(const doc *doc, const head_run *run, size_t best, size_t worst, bool clear) {
    if (measure_too_noisy(run->noise)) return doc_text(doc, "噪声太大，分不出谁快。", "Too noisy to call.");
    if (!clear) return doc_text(doc, "差别小于噪声，说明不了什么。", "The differences are within the noise, and say nothing.");
    return doc_text(doc, "%s 的速度是 %s 的 %.1f 倍。", "%1$s is %3$.1f times as fast as %2$s.", run->names[best],
                    run->names[worst], run->rate[best] / run->rate[worst]);
}

/* Reasons for what was measured, where something was. */
static void explain(doc *doc, const head_run *run, size_t best, size_t worst, bool clear) {
    if (!clear)
        doc_say(doc, "要分得出，就在安静的机器上再跑一次。", "To tell, run it again on a machine that has nothing else to do.");
    else if (best > worst)
        doc_say(
            doc,
            "为什么？每个头都要做自己的 softmax：%s 要算 %lld 倍于 %s 的 exp，这是数得出的；原因多半在此，"
            "也许还有窄头每次乘加太少，喂不饱向量单元：这些没有分开量。",
            "Why? Each head has a softmax of its own: %s takes %lld times as many exp as %s, which can be counted. That is "
            "probably the reason, perhaps with narrow heads having too few multiply-adds at a time to fill the vector units; "
            "these were not measured apart.",
            run->names[worst], (long long)(head_dims[best] / head_dims[worst]), run->names[best]);
    else
        doc_say(doc, "窄的反而快：多半是宽头的一块放不进这台设备最快的存储，softmax 省下的抵不过它。",
                "The narrow ones are faster: probably a tile of wide heads does not fit into this device's fastest memory, "
                "and what their softmax saves does not make up for it.");
}

void lesson_head_dim(lesson *lesson) {
    doc *doc = &lesson->doc;
    int64_t lengths[CLI_MAX_INTEGERS];
    const size_t count = lesson_lengths(lesson, (const int64_t[]){LENGTH}, 1, lengths);
    const int64_t length = lengths[count - 1];
    head_run run = {.noise = 0};
    measure_splits(lesson, length, &run);
    size_t best = 0, worst = 0;
    for (size_t i = 1; i < SPLITS; i++) {
        if (run.rate[i] > run.rate[best]) best = i;
        if (run.rate[i] < run.rate[worst]) worst = i;
    }
    const bool clear =
        !measure_too_noisy(run.noise) && bench_faster(&run.points[best], &run.points[worst]) != BENCH_WINNER_UNCLEAR;
    doc_say(
        doc,
        "总宽 %d 不变，切成多少个头？乘加次数一样多；不一样的是 softmax：每个头做自己的，头越多，exp 越多。快慢要量了才知道。",
        "A width of %d, cut into how many heads? The multiply-adds are the same; softmax is not: every head has its own, and "
        "more heads take more exp. Which is faster has to be measured.",
        WIDTH);
    doc_formula(doc, "2·n²·(d_k + d_v)·H FLOP        exp: n²·H");
    doc_say(doc, "n 是句长，H 是头数，d_k = d_v 是一个头的宽度，d_k·H = %d；FLOP 是一次乘或一次加。",
            "n is the length, H the number of heads, d_k = d_v the width of a head, d_k·H = %d; a FLOP is one multiplication "
            "or one addition.",
            WIDTH);
    doc_ask(doc,
            doc_text(doc, "多而窄，还是少而宽，哪样算得快？", "Many narrow heads or few wide ones: which computes faster?"),
            who_is_fastest(doc, &run, best, worst, clear));
    doc_step(doc, "句长 %lld，融合法：几种切法轮流跑，取中位数。噪声 %s。",
             "Length %lld, fused: the splits run in turns, and medians are shown. Noise: %s.", (long long)run.length,
             measure_noise(doc, run.noise));
    if (run.length < length)
        doc_say(
            doc,
            "句长 %lld 太久：试跑过好几次，最快的一次，几种切法在句长 %lld 一共用了 %.0f 毫秒，超过 %d 毫秒；所以量的是 %lld。",
            "Length %lld would take too long: at length %lld the fastest of several trial runs of all splits took %.0f ms, "
            "more than %d ms. So it is %lld.",
            (long long)length, (long long)(2 * run.length), run.probe_ms, MEASURE_WORTH_MS, (long long)run.length);
    plot_bars(lesson, "rate", doc_text(doc, "每秒做多少运算", "Operations a second"), "GFLOP/s", DOC_ROLE_WEIGHTS, &run,
              run.rate, run.rate_low, run.rate_high, 1);
    const char *const noise = doc_text(
        doc, "噪声是中间一半的运行散开多少，占中位数的百分比，取最大的；超过 %.0f %% 就算有噪声。",
        "Noise is how far the middle half of the runs spreads, as a part of the median, at its worst; above %.0f %% it is "
        "called noisy.",
        100 * BENCH_NOISY_ABOVE);
    doc_summary(doc, "%s%s", "%s %s", sum_up_rates(doc, &run, best, worst, clear), noise);
    plot_bars(lesson, "time", doc_text(doc, "用多少时间", "Time"), "ms", DOC_ROLE_SCORES, &run, run.milliseconds, run.ms_low,
              run.ms_high, 3);
    doc_summary(doc, "同样的乘加，时间的中位数从 %.3f 到 %.3f ms，噪声 %s。",
                "The same multiply-adds in %.3f to %.3f ms (medians; noise: %s).", run.milliseconds[best],
                run.milliseconds[worst], measure_noise(doc, run.noise));
    explain(doc, &run, best, worst, clear);
    doc_correct(
        doc, doc_text(doc, "头越多，模型一定越好。", "The more heads, the better the model."),
        doc_text(doc, "头多则每个头窄，能分辨的少；快慢也要看设备。64 或 128 是常见的折中。",
                 "More heads are narrower ones, which tell less apart, and how fast they are depends on the device. 64 or 128 "
                 "is the usual compromise."));
}
