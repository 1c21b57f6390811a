/* Why scores are divided by √d.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "compute.h"
#include "courses.h"
#include "spread.h"

enum { WORDS = 64, SEED = 42, WAYS = 3, WIDEST = 512 };

typedef struct scaling_run {
    size_t count;
    double dims[CLI_MAX_INTEGERS], variance[CLI_MAX_INTEGERS], entropy[WAYS][CLI_MAX_INTEGERS], largest[WAYS][CLI_MAX_INTEGERS],
        undecided[WAYS][CLI_MAX_INTEGERS]; /* mean of rows of Σ A·(1 − A) */
} scaling_run;

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* At the widths 2, 4, 8, ... and the widest. */
static void measure_dims(lesson *lesson, numpy_random *random, scaling_run *run) {
    const int64_t widest = lesson_integer(lesson->parameters.dim, WIDEST);
    int64_t d = widest > 1 ? 2 : 1;
    run->count = 0;
    for (size_t i = 0; d > 0; d = d < widest ? smaller(2 * d, widest) : 0, i++) {
        run->count++;
        const mat q = mat_randn(&lesson->arena, random, WORDS, d, 1), k = mat_randn(&lesson->arena, random, WORDS, d, 1);
        const double scales[WAYS] = {1, 1 / sqrt((double)d), 1 / (double)d};
        run->dims[i] = (double)d;
        for (int w = 0; w < WAYS; w++) {
            lesson_attention a = {.q = q, .k = k, .has_scale = true, .scale = scales[w]};
            lesson_attend(lesson, &a);
            if (w == 0) run->variance[i] = spread_variance(a.scores);
            run->entropy[w][i] = spread_entropy(a.weights);
            run->largest[w][i] = spread_largest(a.weights);
            run->undecided[w][i] = spread_gradient(a.weights);
        }
        figures_at(&lesson->figures, "scaling/variance", d, run->variance[i]);
        figures_at(&lesson->figures, "scaling/entropy_none", d, run->entropy[0][i]);
        figures_at(&lesson->figures, "scaling/entropy_sqrt", d, run->entropy[1][i]);
        figures_at(&lesson->figures, "scaling/entropy_d", d, run->entropy[2][i]);
        figures_at(&lesson->figures, "scaling/gradient_none", d, run->undecided[0][i]);
        figures_at(&lesson->figures, "scaling/gradient_sqrt", d, run->undecided[1][i]);
        figures_at(&lesson->figures, "scaling/gradient_d", d, run->undecided[2][i]);
    }
}

static void plot_ways(lesson *lesson, const char *id, const char *title, const char *axis, const scaling_run *run,
                      const double values[WAYS][CLI_MAX_INTEGERS]) {
    doc *doc = &lesson->doc;
    const char *const names[WAYS] = {doc_text(doc, "不缩放", "no scale"), doc_text(doc, "除以 √d_k", "divided by √d_k"),
                                     doc_text(doc, "除以 d_k", "divided by d_k")};
    const doc_role roles[WAYS] = {DOC_ROLE_RECURRENCE, DOC_ROLE_WEIGHTS, DOC_ROLE_LSTM};
    doc_plot *plot = doc_add_plot(doc, id, title);
    plot->x = (doc_axis){.label = doc_text(doc, "q 和 k 的宽度 d_k", "width of q and k, d_k"), .logarithmic = true};
    plot->y = (doc_axis){.label = axis, .low = 0, .high = 1};
    for (int w = 0; w < WAYS; w++) doc_add_series(doc, plot, names[w], roles[w], run->count, run->dims, values[w]);
}

/* Which way changes least from the narrowest width to the widest; nothing where there is but one. */
static const char *tell_steadiest(const doc *doc, const scaling_run *run) {
    static const struct {
        const char *zh, *en;
    } ways[WAYS] = {{"从 %g 到 %g，不缩放时变得最少。", " From %g to %g it changes least without a scale."},
                    {"从 %g 到 %g，除以 √d_k 时变得最少。", " From %g to %g it changes least when divided by √d_k."},
                    {"从 %g 到 %g，除以 d_k 时变得最少。", " From %g to %g it changes least when divided by d_k."}};
    const size_t last = run->count - 1;
    int steadiest = 0;
    double change[WAYS];
    for (int w = 0; w < WAYS; w++) {
        change[w] = fabs(run->entropy[w][last] - run->entropy[w][0]);
        if (change[w] < change[steadiest]) steadiest = w;
    }
    return last > 0 ? doc_text(doc, ways[steadiest].zh, ways[steadiest].en, run->dims[0], run->dims[last]) : "";
}

void lesson_scaling(lesson *lesson) {
    doc *doc = &lesson->doc;
    const uint32_t seed = (uint32_t)lesson_integer(lesson->parameters.seed, SEED);
    scaling_run run;
    numpy_random random;
    numpy_seed(&random, seed);
    measure_dims(lesson, &random, &run);
    const size_t last = run.count - 1;
    doc_say(
        doc,
        "q·k 是 d_k 个乘积的和。各数独立、均值 0、方差 1 时，每个乘积方差也是 1，加起来方差就是 d_k：向量越宽，打分越极端。",
        "q·k is a sum of d_k products. Of independent numbers of mean 0 and variance 1 each product has variance 1, so the "
        "sum has variance d_k: the wider the vectors, the more extreme the scores.");
    doc_formula(doc, "Var(q·k) = d_k        Var(q·k / √d_k) = 1        Var(q·k / d_k) = 1/d_k");
    doc_ask(doc,
            doc_text(doc, "宽度 %g，不缩放，最大的权重会有多大？一共 %d 个词。",
                     "At width %g and without a scale, how large will the largest weight be? There are %d words.",
                     run.dims[last], WORDS),
            doc_text(doc, "平均 %.2f。除以 √d_k 是 %.2f，除以 d_k 是 %.3f；平分是 %.3f。",
                     "%.2f on average. Divided by √d_k it is %.2f, divided by d_k %.3f; an equal share is %.3f.",
                     run.largest[0][last], run.largest[1][last], run.largest[2][last], 1.0 / WORDS));
    doc_step(doc, "%d 个随机查询乘 %d 个随机键（种子 %u），量一量打分的方差。",
             "%d random queries times %d random keys (seed %u): the variance of the scores.", WORDS, WORDS, seed);
    doc_plot *plot =
        doc_add_plot(doc, "variance", doc_text(doc, "打分的方差随宽度增长", "The variance of scores grows with the width"));
    plot->x = (doc_axis){.label = doc_text(doc, "q 和 k 的宽度 d_k", "width of q and k, d_k"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "q·k 的方差", "variance of q·k"), .logarithmic = true};
    plot->decimals = 2;
    doc_add_series(doc, plot, doc_text(doc, "量出来的", "measured"), DOC_ROLE_SCORES, run.count, run.dims, run.variance);
    doc_add_series(doc, plot, doc_text(doc, "算出来的：d_k", "expected: d_k"), DOC_ROLE_PLAIN, run.count, run.dims, run.dims);
    doc_summary(doc, "d_k = %g 时量得 %.1f。", "At d_k = %g it measures %.1f.", run.dims[last], run.variance[last]);
    doc_step(
        doc, "softmax 之后，熵说明权重有多分散：−Σ A·log A 除以 log n，1 是平分，0 是全给一个词。"
        "分数和权重由程序库算，它们的方差、熵和 Σ A·(1 − A) 由本课自己算。",
        "After softmax, entropy says how widely weights are spread: −Σ A·log A over log n, 1 when equal, 0 when all is on one "
        "word. Scores and weights are the library’s; their variance, entropy and Σ A·(1 − A) are computed by the lesson itself.");
    plot_ways(lesson, "entropy", doc_text(doc, "权重的熵", "The entropy of the weights"),
              doc_text(doc, "熵，平分为 1", "entropy, 1 when equal"), &run, run.entropy);
    doc_summary(doc, "d_k = %g：不缩放 %.2f，除以 √d_k %.2f，除以 d_k %.2f。%s",
                "At d_k = %g: without a scale %.2f, divided by √d_k %.2f, by d_k %.2f.%s", run.dims[last], run.entropy[0][last],
                run.entropy[1][last], run.entropy[2][last], tell_steadiest(doc, &run));
    plot_ways(lesson, "largest", doc_text(doc, "最大的权重", "The largest weight"),
              doc_text(doc, "最大权重，各行平均", "largest weight, mean of rows"), &run, run.largest);
    doc_summary(doc, "d_k = %g：不缩放 %.2f，除以 √d_k %.2f，除以 d_k %.3f。接近 1，一个词就几乎拿走了全部。",
                "At d_k = %g: without a scale %.2f, divided by √d_k %.2f, by d_k %.3f. Near 1, one word takes nearly all.",
                run.dims[last], run.largest[0][last], run.largest[1][last], run.largest[2][last]);
    plot_ways(lesson, "gradient", doc_text(doc, "离饱和多远：Σ A·(1 − A)", "How far from saturated: Σ A·(1 − A)"),
              doc_text(doc, "Σ A·(1 − A)，各行平均", "Σ A·(1 − A), mean of rows"), &run, run.undecided);
    doc_summary(
        doc,
        "权重 A 对自己那个打分的导数是 A·(1 − A)；整行加起来接近 0，softmax 就饱和了，几乎没有梯度过得去。d_k = %g：不缩放 "
        "%.2f，"
        "除以 √d_k %.2f，除以 d_k %.2f；平分是 1 − 1/%d = %.2f。",
        "The derivative of a weight A by its own score is A·(1 − A). Where a row of them adds up to nearly 0, softmax is "
        "saturated, and hardly any gradient passes. At d_k = %g: without a scale %.2f, divided by √d_k %.2f, by d_k %.2f; "
        "equal "
        "weights have 1 − 1/%d = %.2f.",
        run.dims[last], run.undecided[0][last], run.undecided[1][last], run.undecided[2][last], WORDS, 1 - 1.0 / WORDS);
    doc_correct(
        doc, doc_text(doc, "除以 d_k 更保险。", "Dividing by d_k is safer still."),
        doc_text(doc,
                 "不会饱和，可随机的 q、k 越宽，打分就越挤在 0 附近：d_k = %g 时熵是 %.2f%s。训练能把 q、k "
                 "变大来补，有的模型就除以 d_k。",
                 "It does not saturate, but the wider random q and k are, the closer their scores crowd around 0: at d_k = "
                 "%g entropy is %.2f%s. Training can make up for it by larger q and k, and some models do divide by d_k.",
                 run.dims[last], run.entropy[2][last],
                 run.entropy[2][last] < 0.95 ? ""
                                             : doc_text(doc, "，开始时注意力几乎什么也没选",
                                                        ", so that to begin with attention selects next to nothing")));
}
