/* Why scores are divided by √d, and what weights do to the spread of scores when they are drawn too large.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "compute.h"
#include "courses.h"
#include "spread.h"

/* ---- scaling ------------------------------------------------------------------------------------------------------- */

enum { WORDS = 64, SEED = 42, WAYS = 3, WIDEST = 512 };

typedef struct scaling_run {
    size_t count;
    double dims[CLI_MAX_INTEGERS], variance[CLI_MAX_INTEGERS], entropy[WAYS][CLI_MAX_INTEGERS], largest[WAYS][CLI_MAX_INTEGERS];
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
        }
        figures_at(&lesson->figures, "scaling/variance", d, run->variance[i]);
        figures_at(&lesson->figures, "scaling/entropy_none", d, run->entropy[0][i]);
        figures_at(&lesson->figures, "scaling/entropy_sqrt", d, run->entropy[1][i]);
        figures_at(&lesson->figures, "scaling/entropy_d", d, run->entropy[2][i]);
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
        doc, "接近 1 就是饱和：权重为 A 时 softmax 的导数是 A·(1 − A)，接近 0，梯度过不去。",
        "Near 1 is saturation: at a weight A the derivative of softmax is A·(1 − A), which is near 0, and no gradient passes.");
    doc_correct(doc, doc_text(doc, "除以 d_k 更保险。", "Dividing by d_k is safer still."),
                doc_text(doc, "那打分全挤在 0 附近，权重全一样，注意力什么也没选。",
                         "Then all scores crowd around 0, all weights are alike, and attention selects nothing."));
}

/* ---- initialisation ------------------------------------------------------------------------------------------------ */

enum {
    INIT_WORDS = 32,
    INIT_DIM = 64,
    INIT_SCALES = 7,
    INIT_USUAL = 3 /* of them 1 / sqrt(dim) */,
    INIT_DEPTH = 6,
    INIT_SHOWN = 3
};

typedef struct layer_spread {
    double scores, entropy, gradient; /* standard deviation of scores, and of the weights */
    double reaching;                  /* size of the gradient that reaches W_q */
} layer_spread;

/* A random gradient of the weights goes back through softmax and scores to W_q: dS = A ∘ (dA - Σ A ∘ dA) row by row, dQ =
 * dS·K/√d, dW_q = Xᵀ·dQ. The root of the mean square of dW_q. */
static double reaching_gradient(lesson *lesson, mat x, const lesson_attention *a) {
    arena *arena = &lesson->arena;
    const int64_t n = x.rows;
    numpy_random random;
    numpy_seed(&random, SEED);
    mat d_scores = mat_randn(arena, &random, n, n, 1);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += mat_at(a->weights, i, j) * mat_at(d_scores, i, j);
        for (int64_t j = 0; j < n; j++)
            d_scores.at[i * n + j] = (float)(mat_at(a->weights, i, j) * (mat_at(d_scores, i, j) - sum));
    }
    const mat d_q = lesson_product(lesson, d_scores, a->k), d_w = lesson_product(lesson, mat_transposed(arena, x), d_q);
    double squares = 0;
    for (int64_t i = 0; i < d_w.rows * d_w.cols; i++) squares += (double)d_w.at[i] * d_w.at[i];
    return sqrt(squares / (double)(d_w.rows * d_w.cols) / (double)a->k.cols);
}

/* One layer with weights of that standard deviation on x, which it replaces by x + its output. */
static layer_spread pass_layer(lesson *lesson, numpy_random *random, mat *x, double sigma) {
    arena *arena = &lesson->arena;
    const int64_t dim = x->cols;
    lesson_attention a = {0};
    const mat w_q = mat_randn(arena, random, dim, dim, sigma), w_k = mat_randn(arena, random, dim, dim, sigma),
              w_v = mat_randn(arena, random, dim, dim, sigma);
    lesson_project(lesson, *x, w_q, w_k, w_v, &a.q, &a.k, &a.v);
    lesson_attend(lesson, &a);
    const layer_spread spread = {sqrt(spread_variance(a.scores)), spread_entropy(a.weights), spread_gradient(a.weights),
                                 reaching_gradient(lesson, *x, &a)};
    *x = mat_sum(arena, *x, a.out);
    return spread;
}

typedef struct init_run {
    double sigmas[INIT_SCALES], depths[INIT_DEPTH];
    layer_spread at[INIT_SCALES][INIT_DEPTH];
} init_run;

static void measure_depths(lesson *lesson, uint32_t seed, int64_t dim, init_run *run) {
    static const double parts[INIT_SCALES] = {0.1, 0.25, 0.5, 1, 1.5, 2, 4}; /* of 1 / sqrt(dim) */
    for (int s = 0; s < INIT_SCALES; s++) {
        numpy_random random;
        numpy_seed(&random, seed);
        mat x = mat_randn(&lesson->arena, &random, INIT_WORDS, dim, 1);
        run->sigmas[s] = parts[s] / sqrt((double)dim);
        for (int l = 0; l < INIT_DEPTH; l++) {
            run->depths[l] = l + 1;
            run->at[s][l] = pass_layer(lesson, &random, &x, run->sigmas[s]);
        }
    }
}

static void plot_depths(lesson *lesson, const init_run *run) {
    static const int shown[INIT_SHOWN] = {1, 3, 5};
    static const doc_role roles[INIT_SHOWN] = {DOC_ROLE_SCORES, DOC_ROLE_WEIGHTS, DOC_ROLE_OUT};
    doc *doc = &lesson->doc;
    doc_step(doc, "一层一层往上：每层的输出加回输入，再进下一层。",
             "Layer by layer: what a layer gives is added to what it got, and goes on to the next.");
    doc_plot *plot = doc_add_plot(doc, "depth", doc_text(doc, "逐层的熵", "Entropy, layer by layer"));
    plot->x = (doc_axis){.label = doc_text(doc, "层", "layer")};
    plot->y =
        (doc_axis){.label = doc_text(doc, "权重的熵，平分为 1", "entropy of the weights, 1 when equal"), .low = 0, .high = 1};
    for (int i = 0; i < INIT_SHOWN; i++) {
        double entropy[INIT_DEPTH];
        for (int l = 0; l < INIT_DEPTH; l++) entropy[l] = run->at[shown[i]][l].entropy;
        doc_add_series(doc, plot, doc_text(doc, "W 的标准差 %.3f", "W of standard deviation %.3f", run->sigmas[shown[i]]),
                       roles[i], INIT_DEPTH, run->depths, entropy);
        figures_array(&lesson->figures,
                      arena_format(&lesson->arena, "initialisation/entropy_by_depth/%.4f", run->sigmas[shown[i]]), INIT_DEPTH,
                      entropy);
    }
    doc_summary(
        doc, "标准差 %.3f：第 1 层熵 %.2f，第 %d 层 %.2f。越深越极端，因为 x 一层层变大；真实模型每层做归一化，就是为了这个。",
        "With %1$.3f: entropy %2$.2f in layer 1, %4$.2f in layer %3$d. The deeper, the more extreme, for x grows with "
        "every layer; that is why real models normalise in each.",
        run->sigmas[5], run->at[5][0].entropy, INIT_DEPTH, run->at[5][INIT_DEPTH - 1].entropy);
}

static void plot_first(lesson *lesson, const init_run *run) {
    doc *doc = &lesson->doc;
    double entropy[INIT_SCALES], gradient[INIT_SCALES], scores[INIT_SCALES];
    for (int s = 0; s < INIT_SCALES; s++) {
        entropy[s] = run->at[s][0].entropy;
        gradient[s] = run->at[s][0].gradient;
        scores[s] = run->at[s][0].scores;
    }
    doc_step(doc, "第一层：W 越大，打分散得越开。", "The first layer: the larger W, the wider its scores are spread.");
    doc_plot *plot = doc_add_plot(doc, "scores", doc_text(doc, "打分的标准差", "Standard deviation of the scores"));
    plot->x = (doc_axis){.label = doc_text(doc, "W 的标准差", "standard deviation of W"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "打分的标准差", "standard deviation of scores"), .logarithmic = true};
    doc_add_series(doc, plot, doc_text(doc, "打分", "scores"), DOC_ROLE_SCORES, INIT_SCALES, run->sigmas, scores);
    doc_summary(doc, "W 变成 2 倍，打分就变成 4 倍：q 和 k 各翻一番。",
                "Twice the W, four times the scores: q and k double, each.");
    plot = doc_add_plot(doc, "saturation", doc_text(doc, "分散与饱和", "Spread and saturation"));
    plot->x = (doc_axis){.label = doc_text(doc, "W 的标准差", "standard deviation of W"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "比例", "part"), .low = 0, .high = 1};
    doc_add_series(doc, plot, doc_text(doc, "权重的熵，平分为 1", "entropy of the weights, 1 when equal"), DOC_ROLE_WEIGHTS,
                   INIT_SCALES, run->sigmas, entropy);
    doc_add_series(doc, plot,
                   doc_text(doc, "softmax 放过的梯度 Σ A·(1 − A)", "gradient that softmax lets through, Σ A·(1 − A)"),
                   DOC_ROLE_OUT, INIT_SCALES, run->sigmas, gradient);
    doc_summary(
        doc, "标准差 %.3f 时放过 %.2f，%.3f 时只放过 %.2f：打分太散，softmax 饱和，梯度死在这里。",
        "With %.3f it lets %.2f through, with %.3f only %.2f: scores too far apart saturate softmax, and gradients die there.",
        run->sigmas[0], gradient[0], run->sigmas[INIT_SCALES - 1], gradient[INIT_SCALES - 1]);
    figures_array(&lesson->figures, "initialisation/sigma", INIT_SCALES, run->sigmas);
    figures_array(&lesson->figures, "initialisation/scores", INIT_SCALES, scores);
    figures_array(&lesson->figures, "initialisation/entropy", INIT_SCALES, entropy);
    figures_array(&lesson->figures, "initialisation/gradient", INIT_SCALES, gradient);
}

/* The gradient at W_q of a layer, where the usual scale, 1/√d, has 1; what is below a thousandth is nothing. */
static double reaching(const init_run *run, int scale, int layer) {
    const double part = run->at[scale][layer].reaching / run->at[INIT_USUAL][layer].reaching;
    return part < 1e-3 ? 0 : part;
}

/* What both ends do to learning, in the first layer and in the last. */
static void plot_reaching(lesson *lesson, const init_run *run) {
    enum { LAYERS = 2 };
    static const int layers[LAYERS] = {0, INIT_DEPTH - 1};
    static const doc_role roles[LAYERS] = {DOC_ROLE_WEIGHTS, DOC_ROLE_OUT};
    doc *doc = &lesson->doc;
    doc_step(doc, "太小会怎样？让一个随机的梯度从权重往回走，量一量有多少到达 W_q。",
             "And too small? Let a random gradient go back from the weights, and measure how much of it reaches W_q.");
    doc_plot *plot = doc_add_plot(doc, "reaching", doc_text(doc, "到达 W_q 的梯度", "The gradient that reaches W_q"));
    plot->x = (doc_axis){.label = doc_text(doc, "W 的标准差", "standard deviation of W"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "大小，1/√d_in 时为 1", "size, 1 at 1/√d_in"), .logarithmic = true};
    for (int l = 0; l < LAYERS; l++) {
        double sizes[INIT_SCALES];
        for (int s = 0; s < INIT_SCALES; s++) sizes[s] = reaching(run, s, layers[l]);
        doc_add_series(doc, plot, doc_text(doc, "第 %d 层的 W_q", "W_q of layer %d", layers[l] + 1), roles[l], INIT_SCALES,
                       run->sigmas, sizes);
        figures_array(&lesson->figures, arena_format(&lesson->arena, "initialisation/reaching/%d", layers[l] + 1), INIT_SCALES,
                      sizes);
    }
    const double large = reaching(run, INIT_SCALES - 1, INIT_DEPTH - 1);
    doc_summary(doc,
                "太小（%1$.3f）：第 1 层只有 %2$.3f，因为梯度要乘上 K，而 K = X·W_k 和 W "
                "一样小；权重几乎平分，学得很慢。太大（%3$.3f）："
                "第 %4$d 层是 %5$.3f，%6$s。",
                "Too small (%1$.3f): %2$.3f in layer 1, for the gradient is multiplied by K, and K = X·W_k is as small as W; "
                "weights are nearly equal, and learning is slow. Too large (%3$.3f): %5$.3f in layer %4$d, %6$s.",
                run->sigmas[0], reaching(run, 0, 0), run->sigmas[INIT_SCALES - 1], INIT_DEPTH, large,
                large < 0.5 ? doc_text(doc, "softmax 饱和，梯度死了", "where softmax is saturated and the gradient dies")
                            : doc_text(doc, "在这几层里还没有死", "which has not died in so few layers"));
}

void lesson_initialisation(lesson *lesson) {
    doc *doc = &lesson->doc;
    const uint32_t seed = (uint32_t)lesson_integer(lesson->parameters.seed, SEED);
    const int64_t dim = lesson_integer(lesson->parameters.dim, INIT_DIM);
    init_run run;
    measure_depths(lesson, seed, dim, &run);
    doc_say(doc, "训练从随机的 W 出发。随机多大才好？%d 个随机词，宽 %lld，看打分、熵和梯度。",
            "Training starts from random W. How large should they be? %d random words, %lld wide; watch scores, entropy "
            "and gradients.",
            INIT_WORDS, (long long)dim);
    doc_formula(doc, "W ~ N(0, σ²)        S = (X·W_q)·(X·W_k)ᵀ / √d_k");
    doc_ask(
        doc, doc_text(doc, "W 太大和太小，哪个更糟？", "Which is worse, W too large or too small?"),
        doc_text(
            doc,
            "两头都不好。太小：权重平分，到达 W_q 的梯度只有常用大小时的 %.3f，学得慢。太大：softmax 饱和，一层比一层厉害，"
            "梯度过不去，学不动。常用的是 1/√d_in = %.3f。",
            "Both are bad. Too small: weights are equal, and %.3f of the usual gradient reaches W_q, so learning is slow. Too "
            "large: softmax saturates, more with every layer, and no gradient passes. Usual is 1/√d_in = %.3f.",
            reaching(&run, 0, 0), 1 / sqrt((double)dim)));
    plot_first(lesson, &run);
    plot_reaching(lesson, &run);
    plot_depths(lesson, &run);
    doc_correct(doc, doc_text(doc, "全部初始化为 0 最稳。", "All zeros would be the safest start."),
                doc_text(doc, "W_q 和 W_k 都是 0 时，各自的梯度都乘着另一个 0：永远停在原地。",
                         "With W_q and W_k both 0, the gradient of each is multiplied by the other's 0: they never move."));
}
