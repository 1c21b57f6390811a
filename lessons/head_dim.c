/* Many narrow heads or few wide ones: what the device makes of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "courses.h"
#include "measure.h"

enum { WIDTH = 512, LENGTH = 256, SPLITS = 6 };

typedef struct head_run {
    size_t count;
    const char *names[SPLITS];
    double index[SPLITS], rate[SPLITS], milliseconds[SPLITS];
    int64_t head_dim[SPLITS];
} head_run;

static void measure_splits(lesson *lesson, int64_t length, head_run *run) {
    static const int64_t head_dims[SPLITS] = {8, 16, 32, 64, 128, 256};
    for (int i = 0; i < SPLITS; i++) {
        if (i > 0 && !measure_worth(run->milliseconds[i - 1], 1)) break;
        const int64_t head_dim = head_dims[i], heads = WIDTH / head_dim;
        const measured m = measure_attention(lesson, (attention_size){heads, length, head_dim, CLATTN_ALGORITHM_FUSED});
        run->names[i] = arena_format(&lesson->arena, "%lld × %lld", (long long)heads, (long long)head_dim);
        run->index[i] = i;
        run->head_dim[i] = head_dim;
        run->milliseconds[i] = m.milliseconds;
        run->rate[i] = m.flops / m.milliseconds * 1e-6;
        run->count++;
        figures_at(&lesson->figures, "head_dim/gflops", head_dim, run->rate[i]);
        figures_at(&lesson->figures, "head_dim/ms", head_dim, m.milliseconds);
    }
}

static void plot_bars(lesson *lesson, const char *id, const char *title, const char *axis, doc_role role, const head_run *run,
                      const double *values, int decimals) {
    doc *doc = &lesson->doc;
    doc_plot *plot = doc_add_plot(doc, id, title);
    plot->mark = DOC_BARS;
    plot->categories = arena_grow(&lesson->arena, run->names, sizeof run->names, sizeof run->names);
    plot->x = (doc_axis){.label = doc_text(doc, "头数 × 头宽", "heads × width of a head")};
    plot->y = (doc_axis){.label = axis};
    plot->decimals = decimals;
    doc_add_series(doc, plot, axis, role, run->count, run->index, values);
}

void lesson_head_dim(lesson *lesson) {
    doc *doc = &lesson->doc;
    int64_t lengths[CLI_MAX_INTEGERS];
    const size_t count = lesson_lengths(lesson, (const int64_t[]){LENGTH}, 1, lengths);
    const int64_t length = lengths[count - 1];
    head_run run = {.count = 0};
    measure_splits(lesson, length, &run);
    size_t best = 0, worst = 0;
    for (size_t i = 1; i < run.count; i++) {
        if (run.rate[i] > run.rate[best]) best = i;
        if (run.rate[i] < run.rate[worst]) worst = i;
    }
    doc_say(doc, "总宽 %d 不变，切成多少个头？乘加次数一样多，快慢却不一样：每个头都要做自己的 softmax，窄头还喂不饱向量单元。",
            "A width of %d, cut into how many heads? The multiply-adds are the same, the speed is not: every head has a "
            "softmax of its own, and narrow heads do not fill the vector units.",
            WIDTH);
    doc_formula(doc, "2·n²·(d + d)·heads FLOP        exp: n²·heads");
    doc_ask(doc,
            doc_text(doc, "多而窄，还是少而宽，哪样算得快？", "Many narrow heads or few wide ones: which computes faster?"),
            doc_text(doc, "在这台设备上最快的是 %s，%.1f GFLOP/s；最慢的是 %s，%.1f GFLOP/s。",
                     "On this device %s is fastest, at %.1f GFLOP/s, and %s slowest, at %.1f.", run.names[best], run.rate[best],
                     run.names[worst], run.rate[worst]));
    doc_step(doc, "句长 %lld，融合法，实际耗时，取最快的一次。",
             "Length %lld, fused, by the wall clock, the fastest of several runs.", (long long)length);
    plot_bars(lesson, "rate", doc_text(doc, "每秒做多少运算", "Operations a second"), "GFLOP/s", DOC_ROLE_WEIGHTS, &run,
              run.rate, 1);
    doc_summary(doc, "%s 的速度是 %s 的 %.1f 倍。", "%1$s is %3$.1f times as fast as %2$s.", run.names[best], run.names[worst],
                run.rate[best] / run.rate[worst]);
    plot_bars(lesson, "time", doc_text(doc, "用多少时间", "Time"), "ms", DOC_ROLE_SCORES, &run, run.milliseconds, 3);
    doc_summary(doc, "同样的乘加，时间从 %.3f 到 %.3f ms。", "The same multiply-adds in %.3f to %.3f ms.",
                run.milliseconds[best], run.milliseconds[worst]);
    doc_correct(doc, doc_text(doc, "头越多，模型一定越好。", "The more heads, the better the model."),
                doc_text(doc, "头多则每个头窄，能分辨的少；而且如上所见，设备也未必喜欢。64 或 128 是常见的折中。",
                         "More heads are narrower ones, which tell less apart; and as seen here, devices need not like "
                         "them. 64 or 128 is the usual compromise."));
}
