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
        undecided[WAYS][CLI_MAX_INTEGERS]; /* Σ A·(1 − A) */
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
        doc, "softmax 之后，熵说明权重有多分散：−Σ A·log A 除以 log n，1 是平分，0 是全给一个词。",
        "After softmax, entropy says how widely weights are spread: −Σ A·log A over log n, 1 when equal, 0 when all is on one "
        "word.");
    plot_ways(lesson, "entropy", doc_text(doc, "权重的熵", "The entropy of the weights"),
              doc_text(doc, "熵，平分为 1", "entropy, 1 when equal"), &run, run.entropy);
    doc_summary(doc, "d_k = %g：不缩放 %.2f，除以 √d_k %.2f，除以 d_k %.2f。只有除以 √d_k 与宽度无关。",
                "At d_k = %g: without a scale %.2f, divided by √d_k %.2f, by d_k %.2f. Only √d_k does not depend on the width.",
                run.dims[last], run.entropy[0][last], run.entropy[1][last], run.entropy[2][last]);
    plot_ways(lesson, "largest", doc_text(doc, "最大的权重", "The largest weight"),
              doc_text(doc, "最大权重，各行平均", "largest weight, mean of rows"), &run, run.largest);
    doc_summary(
        doc, "d_k = %g：不缩放 %.3f，除以 √d_k %.3f，除以 d_k %.3f；平分是 %.3f。接近 1 就是饱和。",
        "At d_k = %g: without a scale %.3f, divided by √d_k %.3f, by d_k %.3f; an equal share is %.3f. Near 1 softmax is "
        "saturated.",
        run.dims[last], run.largest[0][last], run.largest[1][last], run.largest[2][last], 1.0 / WORDS);
    plot_ways(lesson, "gradient", doc_text(doc, "梯度过得去吗：Σ A·(1 − A)", "Does a gradient pass? Σ A·(1 − A)"),
              doc_text(doc, "一行的和，各行平均", "sum of a row, mean of rows"), &run, run.undecided);
    doc_summary(
        doc,
        "softmax 对自己那个打分的导数是 A·(1 − A)，一行加起来：d_k = %g 时不缩放 %.3f，除以 √d_k %.3f，除以 d_k "
        "%.3f。接近 0，梯度就过不去。",
        "The derivative of a weight by its own score is A·(1 − A); summed over a row, at d_k = %g, it is %.3f without a scale, "
        "%.3f divided by √d_k and %.3f divided by d_k. Where it is near 0, no gradient passes.",
        run.dims[last], run.undecided[0][last], run.undecided[1][last], run.undecided[2][last]);
    doc_correct(
        doc, doc_text(doc, "除以 d_k 更保险。", "Dividing by d_k is safer still."),
        doc_text(doc,
                 "q 和 k 随机时，打分的方差只有 1/d_k：d_k = %g 时熵是 %.3f，权重几乎一样，注意力什么也没选。训练能把 q 和 "
                 "k 变大来补，有的模型就除以 d_k；但一开始它选不出来。",
                 "With random q and k scores then have a variance of 1/d_k: at d_k = %g entropy is %.3f, weights are "
                 "nearly alike, and attention selects nothing. Training can make up for it with larger q and k, and "
                 "some models do divide by d_k; but at the start it cannot select.",
                 run.dims[last], run.entropy[2][last]));
}
