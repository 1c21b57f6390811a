/* What random weights do when they are drawn too large or too small, layer by layer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "bench/stats.h"
#include "compute.h"
#include "courses.h"
#include "spread.h"

enum {
    SEED = 42,
    WORDS = 32,
    DIM = 64,
    SCALES = 7,
    USUAL = 3,  /* of them 1 / sqrt(dim) */
    DOUBLE = 5, /* and twice that */
    DEPTH = 6,
    DRAWS = 20, /* at this width; fewer where a draw has more numbers */
};

/* Below this part of the usual a gradient is shown as none. */
static const double NOTHING = 1e-3;

typedef struct layer_spread {
    double scores, entropy, undecided; /* standard deviation of scores; entropy of the weights, and 1 - Σ a² */
    double x, k;                       /* sizes of what the layer reads and of its keys: roots of mean squares */
    double through, reaching;          /* the same of the gradient behind softmax, and of what reaches W_q */
} layer_spread;

typedef layer_spread draw[SCALES][DEPTH];

/* Medians of all draws, number by number. The gradient that reaches W_q is given in units of what reaches layer 1 of the same
 * draw at the usual scale. */
typedef struct init_run {
    int draws;
    double sigmas[SCALES], depths[DEPTH];
    layer_spread at[SCALES][DEPTH];
    double low[SCALES][DEPTH], high[SCALES][DEPTH]; /* quartiles of what reaches W_q */
} init_run;

/* ---- measuring ----------------------------------------------------------------------------------------------------- */

static double size_of(mat m) {
    double squares = 0;
    for (int64_t i = 0; i < m.rows * m.cols; i++) squares += (double)m.at[i] * m.at[i];
    return sqrt(squares / (double)(m.rows * m.cols));
}

/* A random gradient of the weights, of size 1, goes back through softmax: dS = A ⊙ (dA - Σ A ⊙ dA) row by row. */
static mat behind_softmax(lesson *lesson, mat weights) {
    const int64_t n = weights.cols;
    numpy_random random;
    numpy_seed(&random, SEED);
    mat d_scores = mat_randn(&lesson->arena, &random, weights.rows, n, 1);
    for (int64_t i = 0; i < weights.rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += mat_at(weights, i, j) * mat_at(d_scores, i, j);
        for (int64_t j = 0; j < n; j++)
            d_scores.at[i * n + j] = (float)(mat_at(weights, i, j) * (mat_at(d_scores, i, j) - sum));
    }
    return d_scores;
}

/* And through scores to W_q: dW_q = Xᵀ·dS·K/√d_k. */
static double reaching_gradient(lesson *lesson, mat x, mat d_scores, mat k) {
    const mat d_q = lesson_product(lesson, d_scores, k);
    return size_of(lesson_product(lesson, mat_transposed(&lesson->arena, x), d_q)) / sqrt((double)k.cols);
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
    const mat d_scores = behind_softmax(lesson, a.weights);
    const layer_spread spread = {
        .scores = sqrt(spread_variance(a.scores)),
        .entropy = spread_entropy(a.weights),
        .undecided = spread_gradient(a.weights),
        .x = size_of(*x),
        .k = size_of(a.k),
        .through = size_of(d_scores),
        .reaching = reaching_gradient(lesson, *x, d_scores, a.k),
    };
    *x = mat_sum(arena, *x, a.out);
    return spread;
}

/* All layers at all scales, with the random numbers of one seed. */
static void measure_draw(lesson *lesson, uint32_t seed, int64_t dim, const init_run *run, draw at) {
    for (int s = 0; s < SCALES; s++) {
        const arena_mark mark = arena_here(&lesson->arena);
        numpy_random random;
        numpy_seed(&random, seed);
        mat x = mat_randn(&lesson->arena, &random, WORDS, dim, 1);
        for (int l = 0; l < DEPTH; l++) at[s][l] = pass_layer(lesson, &random, &x, run->sigmas[s]);
        arena_rewind(&lesson->arena, mark);
    }
    const double usual = at[USUAL][0].reaching;
    for (int s = 0; s < SCALES; s++)
        for (int l = 0; l < DEPTH; l++) at[s][l].reaching /= usual;
}

/* A member of every draw at a scale and layer. */
static bench_stats stats_of(const draw *draws, int count, int s, int l, size_t member) {
    double values[DRAWS];
    for (int d = 0; d < count; d++) values[d] = *(const double *)((const char *)&draws[d][s][l] + member);
    return bench_stats_of(values, (size_t)count);
}

static void sum_up(const draw *draws, init_run *run) {
    static const size_t members[] = {offsetof(layer_spread, scores),    offsetof(layer_spread, entropy),
                                     offsetof(layer_spread, undecided), offsetof(layer_spread, x),
                                     offsetof(layer_spread, k),         offsetof(layer_spread, through),
                                     offsetof(layer_spread, reaching)};
    for (int s = 0; s < SCALES; s++)
        for (int l = 0; l < DEPTH; l++) {
            for (size_t m = 0; m < sizeof members / sizeof *members; m++)
                *(double *)((char *)&run->at[s][l] + members[m]) = stats_of(draws, run->draws, s, l, members[m]).median;
            const bench_stats reaching = stats_of(draws, run->draws, s, l, offsetof(layer_spread, reaching));
            run->low[s][l] = reaching.first_quartile;
            run->high[s][l] = reaching.third_quartile;
        }
}

static int draws_at(int64_t dim) {
    const int64_t draws = (int64_t)DRAWS * DIM * DIM / (dim * dim);
    return (int)(draws < 1 ? 1 : draws > DRAWS ? DRAWS : draws);
}

static void measure_depths(lesson *lesson, uint32_t seed, int64_t dim, init_run *run) {
    static const double parts[SCALES] = {0.1, 0.25, 0.5, 1, 1.5, 2, 4}; /* of 1 / sqrt(dim) */
    draw *draws = ARENA_NEW(&lesson->arena, draw, DRAWS);
    double first[SCALES];
    run->draws = draws_at(dim);
    for (int s = 0; s < SCALES; s++) run->sigmas[s] = parts[s] / sqrt((double)dim);
    for (int l = 0; l < DEPTH; l++) run->depths[l] = l + 1;
    for (int d = 0; d < run->draws; d++) measure_draw(lesson, seed + (uint32_t)d * 7919, dim, run, draws[d]); /* neighbouring seeds share none */
    sum_up(draws, run);
    for (int s = 0; s < SCALES; s++) first[s] = draws[0][s][0].reaching;
    figures_number(&lesson->figures, "initialisation/draws", run->draws);
    figures_array(&lesson->figures, "initialisation/reaching_of_first_draw/1", SCALES, first);
}

static double shown_part(double part) {
    return part < NOTHING ? 0 : part;
}

/* The gradient at W_q of a layer, of which layer 1 at the usual scale has 1. */
static double reaching(const init_run *run, int scale, int layer) {
    return shown_part(run->at[scale][layer].reaching);
}

/* ---- showing ------------------------------------------------------------------------------------------------------- */

static doc_axis sigma_axis(const doc *doc) {
    return (doc_axis){.label = doc_text(doc, "W 的标准差 σ", "standard deviation of W, σ"), .logarithmic = true};
}

static void plot_first(lesson *lesson, const init_run *run) {
    doc *doc = &lesson->doc;
    double entropy[SCALES], undecided[SCALES], scores[SCALES];
    for (int s = 0; s < SCALES; s++) {
        entropy[s] = run->at[s][0].entropy;
        undecided[s] = run->at[s][0].undecided;
        scores[s] = run->at[s][0].scores;
    }
    doc_step(doc, "第一层：W 越大，打分散得越开。", "The first layer: the larger W, the wider its scores are spread.");
    doc_plot *plot = doc_add_plot(doc, "scores", doc_text(doc, "打分的标准差", "Standard deviation of the scores"));
    plot->x = sigma_axis(doc);
    plot->y = (doc_axis){.label = doc_text(doc, "打分的标准差", "standard deviation of scores"), .logarithmic = true};
    doc_add_series(doc, plot, doc_text(doc, "打分", "scores"), DOC_ROLE_SCORES, SCALES, run->sigmas, scores);
    doc_summary(doc, "σ 从 %.4g 变成 2 倍，打分从 %.2f 变成 %.2f，%.1f 倍：q 和 k 各翻一番。",
                "Twice the σ of %.4g, and scores go from %.2f to %.2f, %.1f times as wide: q and k double, each.",
                run->sigmas[USUAL], scores[USUAL], scores[DOUBLE], scores[DOUBLE] / scores[USUAL]);
    plot = doc_add_plot(doc, "saturation", doc_text(doc, "分散与饱和", "Spread and saturation"));
    plot->x = sigma_axis(doc);
    plot->y = (doc_axis){.label = doc_text(doc, "比例", "part"), .low = 0, .high = 1};
    doc_add_series(doc, plot, doc_text(doc, "权重的熵，平分为 1", "entropy of the weights, 1 when equal"), DOC_ROLE_WEIGHTS,
                   SCALES, run->sigmas, entropy);
    doc_add_series(doc, plot, doc_text(doc, "离饱和多远：Σ A·(1 − A)", "how far from saturated: Σ A·(1 − A)"), DOC_ROLE_OUT,
                   SCALES, run->sigmas, undecided);
    doc_summary(
        doc, "σ = %.4g 时 Σ A·(1 − A) 是 %.2f，σ = %.4g 时只有 %.2f：打分散得太开，权重几乎全给一个词，softmax 就饱和了。",
        "With σ = %.4g Σ A·(1 − A) is %.2f, with %.4g only %.2f: where scores lie far apart, one word gets nearly all of the "
        "weight, and softmax is saturated.",
        run->sigmas[0], undecided[0], run->sigmas[SCALES - 1], undecided[SCALES - 1]);
    figures_array(&lesson->figures, "initialisation/sigma", SCALES, run->sigmas);
    figures_array(&lesson->figures, "initialisation/scores", SCALES, scores);
    figures_array(&lesson->figures, "initialisation/entropy", SCALES, entropy);
    figures_array(&lesson->figures, "initialisation/gradient", SCALES, undecided);
}

/* What reaches W_q in the first layer, from the least W to the greatest. */
static const char *first_layer_text(const doc *doc, const init_run *run) {
    const int last = SCALES - 1;
    const layer_spread *large = &run->at[last][0], *usual = &run->at[USUAL][0];
    const double part = reaching(run, last, 0);
    const char *small = doc_text(
        doc, "第 1 层：σ = %1$.4g 时只到 %2$.3f，因为要乘的 K = X·W_k 和 W 一样小，W_q 学得慢；σ = %3$.4g 时到 %4$.2f：",
        "Layer 1: with σ = %1$.4g only %2$.3f arrives, for K = X·W_k is as small as W, and W_q learns "
        "slowly; with %3$.4g it is %4$.2f: ",
        run->sigmas[0], reaching(run, 0, 0), run->sigmas[last], part);
    const double k = large->k / usual->k, through = large->through / usual->through;
    const char *why = part >= 1
                          ? doc_text(doc, "穿过 softmax 的 dS 是 %.2f 倍，K 大到 %.1f 倍，抵得过。",
                                     "dS is %.2f times as large, but K is %.1f times, which makes up for it.", through, k)
                          : doc_text(doc, "穿过 softmax 的 dS 是 %.2g 倍，K 大到 %.1f 倍也抵不过。",
                                     "dS is %.2g times as large, and K, %.1f times, does not make up for it.", through, k);
    return doc_text(doc, "%s%s", "%s%s", small, why);
}

static const char *nearly_nothing(const doc *doc, double part) {
    return part > 0 ? doc_text(doc, "不到 %g", "less than %g", NOTHING)
                    : doc_text(doc, "在单精度里正好是 0", "nothing, in single precision,");
}

/* What becomes of it in the last layer as W grows beyond the usual: it may rise before it dies. */
static const char *last_layer_text(lesson *lesson, const init_run *run) {
    const doc *doc = &lesson->doc;
    const int deep = DEPTH - 1;
    int peak = USUAL, dead = SCALES;
    for (int s = USUAL; s < SCALES; s++)
        if (reaching(run, s, deep) > reaching(run, peak, deep)) peak = s;
    while (dead > peak + 1 && reaching(run, dead - 1, deep) == 0 && shown_part(run->high[dead - 1][deep]) == 0) dead--;
    const char *rise =
        peak == USUAL
            ? doc_text(doc, "第 %d 层在 σ = %.4g 最大，是 %.2f。", "In layer %d it is greatest with σ = %.4g, at %.2f. ", DEPTH,
                       run->sigmas[peak], reaching(run, peak, deep))
            : doc_text(doc,
                       "第 %1$d 层先涨：σ = %2$.4g 时到 %3$.1f（中间一半的抽取 %7$.1f 到 %8$.1f），因为一层层加下来，X "
                       "已经大到 %4$.1f，K 大到 %5$.1f，dS 还有 "
                       "%6$.3f。",
                       "In layer %1$d it rises first: with σ = %2$.4g to %3$.1f (the middle half of the draws: %7$.1f to "
                       "%8$.1f), for X has grown to %4$.1f and K to %5$.1f, layer "
                       "upon layer, and dS is still %6$.3f. ",
                       DEPTH, run->sigmas[peak], reaching(run, peak, deep), run->at[peak][deep].x, run->at[peak][deep].k,
                       run->at[peak][deep].through, run->low[peak][deep], run->high[peak][deep]);
    if (dead == SCALES)
        return doc_text(doc, "%s在量过的 σ 里，没有一个让中间一半的抽取都断掉。", "%sWith none of these σ has it died in all of the middle half.", rise);
    return doc_text(
        doc, "%1$s再大就断：σ = %2$.4g 时 dS 是 %3$s，X 和 K 再大也乘不回来，到达的%4$s，中间一半的抽取都是这样，图上是 0。",
        "%1$sBeyond that it dies: with σ = %2$.4g dS is %3$s, and however large X and K are, %4$s arrives, in all of the middle half "
        "of the draws, which the picture shows as 0.",
        rise, run->sigmas[dead], lesson_tiny(lesson, run->at[dead][deep].through),
        nearly_nothing(doc, run->at[dead][deep].reaching));
}

/* What both ends do to learning, in the first layer and in the last. */
static void plot_reaching(lesson *lesson, const init_run *run) {
    enum { LAYERS = 2 };
    static const int layers[LAYERS] = {0, DEPTH - 1};
    static const doc_role roles[LAYERS] = {DOC_ROLE_WEIGHTS, DOC_ROLE_OUT};
    doc *doc = &lesson->doc;
    doc_step(doc, "学得动吗？让一个随机的梯度从权重往回走，量一量有多少到达 W_q。",
             "Can it learn? Let a random gradient go back from the weights, and measure how much of it reaches W_q.");
    doc_formula(doc, "dW_q = Xᵀ·dS·K / √d_k        dS = A ⊙ (dA − Σ A ⊙ dA)");
    doc_say(
        doc,
        "A 是权重，dA 是给它们的梯度，大小为 1；dS 是穿过 softmax 之后剩下的：权重饱和时 A 不是 0 就是 1，dS 就没了。"
        "再乘上这一层读到的 X 和它的键 K：三样东西，缺一样就到不了。",
        "A are the weights and dA their gradient, of size 1; dS is what is left behind softmax, which is nothing where weights "
        "are "
        "0 or 1. It is multiplied by the X that the layer reads and by its keys K: where one of the three is nothing, nothing "
        "arrives.");
    if (run->draws == 1)
        doc_say(doc, "X 和 W 都是随机数，而一次抽取说明不了什么：这个宽度只抽了一次。W_k 的梯度也要穿过 dS；W_v 的不用，它走的是 A 本身。",
                "X and W are random, and a single draw proves nothing: of this width there is one alone. The gradient of W_k goes "
                "through dS as well; that of W_v does not, but through A itself.");
    else
        doc_say(doc,
            "X 和 W 都是随机数，一次抽取说明不了什么：这里抽了 %d 次，图、表和文字里都是中位数，图里的 I 是中间一半的抽取。"
            "W_k 的梯度也要穿过 dS；W_v 的不用，它走的是 A 本身。",
            "X and W are random, and a single draw proves nothing: there are %d draws, pictures, table and words give medians, "
            "and an I in the picture is the middle half of the draws. The gradient of W_k goes through dS as well; that of W_v "
            "does not, but through A itself.",
            run->draws);
    doc_plot *plot = doc_add_plot(doc, "reaching", doc_text(doc, "到达 W_q 的梯度", "The gradient that reaches W_q"));
    plot->x = sigma_axis(doc);
    plot->y = (doc_axis){.label = doc_text(doc, "大小，第 1 层、σ = 1/√d_in 时为 1", "size, 1 in layer 1 at σ = 1/√d_in"),
                         .logarithmic = true};
    for (int l = 0; l < LAYERS; l++) {
        double sizes[SCALES], low[SCALES], high[SCALES];
        for (int s = 0; s < SCALES; s++) {
            sizes[s] = reaching(run, s, layers[l]);
            low[s] = shown_part(run->low[s][layers[l]]);
            high[s] = shown_part(run->high[s][layers[l]]);
        }
        doc_add_series(doc, plot, doc_text(doc, "第 %d 层的 W_q", "W_q of layer %d", layers[l] + 1), roles[l], SCALES,
                       run->sigmas, sizes);
        doc_add_spread(doc, plot, low, high);
        figures_array(&lesson->figures, arena_format(&lesson->arena, "initialisation/reaching/%d", layers[l] + 1), SCALES,
                      sizes);
        figures_array(&lesson->figures, arena_format(&lesson->arena, "initialisation/reaching_q1/%d", layers[l] + 1), SCALES,
                      low);
        figures_array(&lesson->figures, arena_format(&lesson->arena, "initialisation/reaching_q3/%d", layers[l] + 1), SCALES,
                      high);
    }
    doc_summary(doc, "%s%s", "%s %s", first_layer_text(doc, run), last_layer_text(lesson, run));
}

static const char *size_text(const doc *doc, double size) {
    const int decimals = size < 100 ? 2 : 0;
    return doc_text(doc, "%.*f", "%.*f", decimals, size);
}

/* The three factors of the last layer, and what comes of them. */
static void show_factors(lesson *lesson, const init_run *run) {
    enum { COLUMNS = 5 };
    doc *doc = &lesson->doc;
    const char *const head[COLUMNS] = {"σ", doc_text(doc, "X 的大小", "size of X"), doc_text(doc, "K 的大小", "size of K"),
                                       doc_text(doc, "dS 的大小", "size of dS"), doc_text(doc, "到达 W_q", "reaches W_q")};
    const char *cells[SCALES * COLUMNS];
    for (int s = 0; s < SCALES; s++) {
        const layer_spread *at = &run->at[s][DEPTH - 1];
        cells[COLUMNS * s] = doc_text(doc, "%.4g", "%.4g", run->sigmas[s]);
        cells[COLUMNS * s + 1] = size_text(doc, at->x);
        cells[COLUMNS * s + 2] = size_text(doc, at->k);
        cells[COLUMNS * s + 3] =
            at->through < NOTHING ? lesson_tiny(lesson, at->through) : doc_text(doc, "%.3f", "%.3f", at->through);
        cells[COLUMNS * s + 4] = doc_text(doc, "%.3f", "%.3f", reaching(run, s, DEPTH - 1));
    }
    doc_add_table(doc, "factors", doc_text(doc, "第 %d 层：三样东西各有多大", "Layer %d: how large the three are", DEPTH),
                  SCALES, COLUMNS, head, cells);
    doc_summary(doc, "大小是均方根；不到 %g 的梯度写作 0.000。",
                "Sizes are roots of mean squares; a gradient below %g is written 0.000.", NOTHING);
}

/* ---- layer by layer ------------------------------------------------------------------------------------------------ */

enum { SHOWN = 4 };
static const int shown[SHOWN] = {1, USUAL, 4, DOUBLE};
static const doc_role shown_roles[SHOWN] = {DOC_ROLE_SCORES, DOC_ROLE_WEIGHTS, DOC_ROLE_OUT, DOC_ROLE_RECURRENCE};

static const char *sigma_name(const doc *doc, const init_run *run, int i) {
    return doc_text(doc, "σ = %.4g", "σ = %.4g", run->sigmas[shown[i]]);
}

/* The first layer which nothing reaches at that scale; 0: all are reached. */
static int dead_from(const init_run *run, int scale) {
    for (int l = 0; l < DEPTH; l++)
        if (reaching(run, scale, l) == 0) return l + 1;
    return 0;
}

static void plot_depths(lesson *lesson, const init_run *run) {
    doc *doc = &lesson->doc;
    doc_step(doc, "一层一层往上：每层的输出加回输入，再进下一层。",
             "Layer by layer: what a layer gives is added to what it got, and goes on to the next.");
    doc_plot *plot = doc_add_plot(doc, "depth", doc_text(doc, "逐层的熵", "Entropy, layer by layer"));
    plot->x = (doc_axis){.label = doc_text(doc, "层", "layer")};
    plot->y =
        (doc_axis){.label = doc_text(doc, "权重的熵，平分为 1", "entropy of the weights, 1 when equal"), .low = 0, .high = 1};
    for (int i = 0; i < SHOWN; i++) {
        double entropy[DEPTH];
        for (int l = 0; l < DEPTH; l++) entropy[l] = run->at[shown[i]][l].entropy;
        doc_add_series(doc, plot, sigma_name(doc, run, i), shown_roles[i], DEPTH, run->depths, entropy);
        figures_array(&lesson->figures,
                      arena_format(&lesson->arena, "initialisation/entropy_by_depth/%.4f", run->sigmas[shown[i]]), DEPTH,
                      entropy);
    }
    const layer_spread *low = &run->at[DOUBLE][0], *high = &run->at[DOUBLE][DEPTH - 1];
    doc_summary(doc,
                "σ = %1$.4g：X 从 %2$.1f 变到 %3$.1f，熵从第 1 层的 %4$.2f 变到第 %6$d 层的 "
                "%5$.2f。真实模型每层做归一化，就是不让 X 这样变。",
                "With σ = %1$.4g: X goes from %2$.1f to %3$.1f, and entropy from %4$.2f in layer 1 to %5$.2f in layer %6$d. "
                "Real models "
                "normalise in each layer, so that X does not change so.",
                run->sigmas[DOUBLE], low->x, high->x, low->entropy, high->entropy, DEPTH);
    plot = doc_add_plot(doc, "reaching-depth",
                        doc_text(doc, "到达每一层 W_q 的梯度", "The gradient that reaches W_q of each layer"));
    plot->x = (doc_axis){.label = doc_text(doc, "层", "layer")};
    plot->y = (doc_axis){.label = doc_text(doc, "大小，第 1 层、σ = 1/√d_in 时为 1", "size, 1 in layer 1 at σ = 1/√d_in"),
                         .logarithmic = true};
    for (int i = 0; i < SHOWN; i++) {
        double sizes[DEPTH];
        for (int l = 0; l < DEPTH; l++) sizes[l] = reaching(run, shown[i], l);
        doc_add_series(doc, plot, sigma_name(doc, run, i), shown_roles[i], DEPTH, run->depths, sizes);
    }
    const int dead = dead_from(run, shown[SHOWN - 1]);
    if (dead > 0)
        doc_summary(doc, "σ = %.4g：从第 %d 层起，到达的不到 %g。",
                    "With σ = %1$.4g less than %3$g arrives from layer %2$d on.", run->sigmas[shown[SHOWN - 1]], dead, NOTHING);
    else
        doc_summary(doc, "σ = %.4g：到第 %d 层还有 %.3f。", "With σ = %1$.4g there is %3$.3f left in layer %2$d.",
                    run->sigmas[shown[SHOWN - 1]], DEPTH, reaching(run, shown[SHOWN - 1], DEPTH - 1));
}

/* ---- the lesson ---------------------------------------------------------------------------------------------------- */

static const char *which_is_worse(const doc *doc, const init_run *run, int64_t dim) {
    const double small = reaching(run, 0, 0), large = reaching(run, SCALES - 1, DEPTH - 1);
    const char *end =
        large < small
            ? doc_text(doc, "太大更糟：第 %d 层到达的只有 %.3f，它的 W_q 和 W_k 学不动",
                       "Too large is worse: %2$.3f arrives in layer %1$d, whose W_q and W_k cannot learn", DEPTH, large)
            : doc_text(doc, "太大还学得动：第 %d 层到达 %.3f", "Too large can still learn: %2$.3f arrives in layer %1$d", DEPTH,
                       large);
    return doc_text(
        doc, "两头都不好。太小：权重几乎平分，到达 W_q 的梯度是常用大小时的 %.3f，W_q 学得慢。%s。常用的是 1/√d_in = %.4g。",
        "Both are bad. Too small: weights are nearly equal, and %.3f of the usual gradient reaches W_q, which learns "
        "slowly. %s. Usual is 1/√d_in = %.4g.",
        small, end, 1 / sqrt((double)dim));
}

void lesson_initialisation(lesson *lesson) {
    doc *doc = &lesson->doc;
    const uint32_t seed = (uint32_t)lesson_integer(lesson->parameters.seed, SEED);
    const int64_t dim = lesson_integer(lesson->parameters.dim, DIM);
    init_run run;
    measure_depths(lesson, seed, dim, &run);
    doc_say(
        doc, "训练从随机的 W 出发。随机多大才好？%d 个随机词，宽 %lld，%d 层；看打分、熵和梯度。",
        "Training starts from random W. How large should they be? %d random words, %lld wide, %d layers; watch scores, entropy "
        "and gradients.",
        WORDS, (long long)dim, DEPTH);
    doc_formula(doc, "W ~ N(0, σ²)        S = (X·W_q)·(X·W_k)ᵀ / √d_k");
    doc_ask(doc, doc_text(doc, "W 太大和太小，哪个更糟？", "Which is worse, W too large or too small?"),
            which_is_worse(doc, &run, dim));
    plot_first(lesson, &run);
    plot_reaching(lesson, &run);
    show_factors(lesson, &run);
    plot_depths(lesson, &run);
    doc_say(
        doc,
        "Q、K、打分、权重、输出和所有矩阵乘法由程序库的算子算；熵、均方根和 softmax 的导数库里没有，由这一课用它们算，双精度。",
        "Q, K, scores, weights, outputs and all products are computed by the library's operators; entropy, roots of mean "
        "squares "
        "and the derivative of softmax, for which it has none, by this lesson from them, in double precision.");
    doc_correct(doc, doc_text(doc, "全部初始化为 0 最稳。", "All zeros would be the safest start."),
                doc_text(doc, "W_q 和 W_k 都是 0 时，各自的梯度都乘着另一个 0：永远停在原地。",
                         "With W_q and W_k both 0, the gradient of each is multiplied by the other's 0: they never move."));
}
