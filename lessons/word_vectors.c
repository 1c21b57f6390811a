/* From words to words that have looked around: every matrix on the way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "courses.h"
#include "sentence.h"

static const char *const axes[] = {"x", "y", "z"};

static doc_point *make_points(lesson *lesson, const sentence *s, mat to) {
    doc_point *points = ARENA_NEW(&lesson->arena, doc_point, s->words.count);
    for (int64_t i = 0; i < s->words.count; i++) {
        points[i].label = s->words.labels[i];
        for (int d = 0; d < SENTENCE_DIM; d++) {
            points[i].from[d] = mat_at(s->x, i, d);
            points[i].to[d] = mat_at(to, i, d);
        }
    }
    return points;
}

static void show_space(lesson *lesson, const char *id, const char *title, const sentence *s, mat to, bool arrows) {
    doc_space *space = doc_add_space(&lesson->doc, id, title);
    space->count = (size_t)s->words.count;
    space->points = make_points(lesson, s, to);
    space->arrows = arrows;
    for (int d = 0; d < SENTENCE_DIM; d++) space->axes[d] = axes[d];
}

static double distance(mat a, int64_t i, mat b, int64_t j) {
    double sum = 0;
    for (int64_t d = 0; d < a.cols; d++) sum += pow(mat_at(a, i, d) - mat_at(b, j, d), 2);
    return sqrt(sum);
}

static void show_words(lesson *lesson, const sentence *s) {
    doc *doc = &lesson->doc;
    doc_step(doc, "每个词是空间里的一个点：三个数，三根轴。", "Each word is a point in space: three numbers, three axes.");
    doc_matrix *x =
        lesson_show(lesson, "x", doc_text(doc, "词向量 X", "Word vectors X"), "X", DOC_ROLE_X, s->x, s->words.labels, axes);
    x->decimals = 0;
    show_space(lesson, "words", doc_text(doc, "空间里的词", "The words in space"), s, s->x, false);
    if (s->words.own || s->words.count < 3)
        doc_summary(doc, "%lld 个点。", "%lld points.", (long long)s->words.count);
    else
        doc_summary(doc,
                    "这些数是手选的，所以：实词（名词、动词、形容词）里，%s和%s离得最近：%.2f；虚词%s和%s都在原点附近。",
                    "The numbers were picked by hand, so that of the content words (nouns, verbs, adjectives) %s and %s are the "
                    "nearest, %.2f apart, and the function words %s and %s lie near the origin.",
                    lesson_quote(lesson, s->words.at[0]), lesson_quote(lesson, s->words.at[2]), distance(s->x, 0, s->x, 2),
                    lesson_quote(lesson, s->words.at[1]), lesson_quote(lesson, s->words.at[3]));
}

static void show_weight(lesson *lesson, const char *id, const char *symbol, doc_role role, mat w) {
    lesson_show(lesson, id, doc_text(&lesson->doc, "权重 %s", "Weights %s", symbol), symbol, role, w, axes, NULL);
}

static void show_product(lesson *lesson, const sentence *s, const char *id, const char *weight, const char *symbol,
                         doc_role role, const char *title, mat product) {
    lesson_derive(lesson_show(lesson, id, title, symbol, role, product, s->words.labels, NULL), DOC_RULE_PRODUCT, "x", weight,
                  1);
}

static void show_qkv(lesson *lesson, const sentence *s) {
    doc *doc = &lesson->doc;
    doc_step(doc, "一个词向量，三种身份：Q 去问，K 应答，V 带着要交出去的内容。",
             "One vector, three parts to play: Q asks, K answers, V carries what is handed over.");
    doc_say(doc, "三个权重矩阵由种子 %u 随机抽出。", "The three matrices of weights are drawn with seed %u.", s->seed);
    show_weight(lesson, "w_q", "W_q", DOC_ROLE_Q, s->w_q);
    show_weight(lesson, "w_k", "W_k", DOC_ROLE_K, s->w_k);
    show_weight(lesson, "w_v", "W_v", DOC_ROLE_V, s->w_v);
    doc_say(doc, "每个词的那一行 X，分别乘上它们。", "The row of X of each word, multiplied by each of them.");
    show_product(lesson, s, "q", "w_q", "Q", DOC_ROLE_Q, doc_text(doc, "查询 Q = X·W_q", "Queries Q = X·W_q"), s->q);
    show_product(lesson, s, "k", "w_k", "K", DOC_ROLE_K, doc_text(doc, "键 K = X·W_k", "Keys K = X·W_k"), s->k);
    show_product(lesson, s, "v", "w_v", "V", DOC_ROLE_V, doc_text(doc, "值 V = X·W_v", "Values V = X·W_v"), s->v);
}

static void name_axes(const doc *doc, doc_matrix *matrix) {
    matrix->row_axis = doc_text(doc, "谁在看", "who looks");
    matrix->col_axis = doc_text(doc, "看谁", "at whom");
}

static void show_attention(lesson *lesson, const sentence *s, const lesson_attention *attention) {
    doc *doc = &lesson->doc;
    doc_step(doc, "打分：每个查询与每个键的点积，除以 √d_k = √%d。",
             "Scores: each query times each key, divided by √d_k = √%d.", SENTENCE_DIM_K);
    doc_matrix *scores = lesson_show(lesson, "scores", doc_text(doc, "打分 S = Q·Kᵀ / √d_k", "Scores S = Q·Kᵀ / √d_k"), "S",
                                     DOC_ROLE_SCORES, attention->scores, s->words.labels, s->words.at);
    lesson_derive(scores, DOC_RULE_PRODUCT_ROWS, "q", "k", 1 / sqrt(SENTENCE_DIM_K));
    name_axes(doc, scores);
    doc_step(doc, "softmax：每一行变成比例，加起来是 1。", "Softmax: each row becomes shares that add up to 1.");
    doc_matrix *weights =
        lesson_show(lesson, "weights", doc_text(doc, "权重 A = softmax(S)，热图", "Weights A = softmax(S), the heat map"), "A",
                    DOC_ROLE_WEIGHTS, attention->weights, s->words.labels, s->words.at);
    lesson_derive(weights, DOC_RULE_SOFTMAX, "scores", NULL, 1);
    lesson_scale(weights, 0, 1);
    name_axes(doc, weights);
    doc_summary(doc, "%s最看重%s；平分是 1/%lld = %.2f。", "%s looks most at %s; an equal share is 1/%lld = %.2f.",
                lesson_quote(lesson, s->words.at[0]), sentence_tell_favourites(lesson, s->words, attention->weights, 0),
                (long long)s->words.count, 1.0 / (double)s->words.count);
    doc_step(doc, "按权重把所有的 V 混合起来，得到 Z；再加上原来的 X（残差，这一步加法由本课自己算），词就搬家了。",
             "Mix all V by those weights: Z. Then add the X it started from (the residual, a sum that the lesson computes itself): "
             "the words have moved.");
    lesson_derive(lesson_show(lesson, "z", doc_text(doc, "输出 Z = A·V", "Output Z = A·V"), "Z", DOC_ROLE_OUT, attention->out,
                              s->words.at, axes),
                  DOC_RULE_PRODUCT, "weights", "v", 1);
}

/* Within this part of it, a number is near another. One measure for every sentence that says so. */
static const double NEAR = 0.25;

/* The farthest that a weight of a row is from an equal share, as a part of the share. */
static double unevenness(mat weights, int64_t row) {
    double most = 0;
    for (int64_t j = 0; j < weights.cols; j++) {
        const double off = fabs(mat_at(weights, row, j) * (double)weights.cols - 1);
        if (off > most) most = off;
    }
    return most;
}

static double smallest_of(mat m, int64_t row) {
    double least = INFINITY;
    for (int64_t j = 0; j < m.cols; j++) {
        const double value = mat_at(m, row, j);
        if (value < least) least = value; /* by fmin gcc 12 breaks off on aarch64 */
    }
    return least;
}

/* How far apart the scores of a row are; and of the row where they are farthest. */
static double score_range(mat scores, int64_t row) {
    return mat_at(scores, row, sentence_favourite(scores, row)) - smallest_of(scores, row);
}

static double widest_range(mat scores) {
    double widest = 0;
    for (int64_t i = 0; i < scores.rows; i++) {
        const double range = score_range(scores, i);
        if (range > widest) widest = range;
    }
    return widest;
}

/* How far the words' outputs are from one another, and from what equal weights would give all of them. */
typedef struct directions {
    int64_t words;
    mat mean;                 /* of V */
    double least, most;       /* weights */
    double unevenness;        /* of the row where it is greatest */
    double range;             /* of the scores of a row */
    double angle;             /* in degrees: the widest between two arrows */
    double shortest, longest; /* arrows */
    double apart;             /* the farthest that an output is from the mean, as a part of the mean's length */
} directions;

static double degrees(double cosine) {
    return acos(fmin(1, fmax(-1, cosine))) * 180 / acos(-1);
}

static directions compare_directions(lesson *lesson, const sentence *s, const lesson_attention *attention) {
    arena *arena = &lesson->arena;
    const mat origin = mat_new(arena, 1, SENTENCE_DIM), out = attention->out, weights = attention->weights;
    lesson_attention equal = {.q = mat_new(arena, 1, SENTENCE_DIM_K), .k = s->k, .v = s->v};
    lesson_attend(lesson, &equal); /* a query of zeros gives all keys the same score */
    directions d = {
        .words = out.rows, .mean = equal.out, .least = 1, .range = widest_range(attention->scores), .shortest = INFINITY};
    for (int64_t i = 0; i < out.rows; i++) {
        const double length = distance(out, i, origin, 0);
        d.shortest = fmin(d.shortest, length);
        d.longest = fmax(d.longest, length);
        d.unevenness = fmax(d.unevenness, unevenness(weights, i));
        d.apart = fmax(d.apart, distance(out, i, d.mean, 0) / distance(d.mean, 0, origin, 0));
        for (int64_t j = 0; j < out.rows; j++) {
            d.least = fmin(d.least, mat_at(weights, i, j));
            d.most = fmax(d.most, mat_at(weights, i, j));
            if (j != i) d.angle = fmax(d.angle, degrees(mat_cosine(out.at + i * out.cols, out.at + j * out.cols, out.cols)));
        }
    }
    return d;
}

/* Whether all weights are near the equal share. */
static bool are_even(const directions *d) {
    return d->unevenness <= NEAR;
}

static bool are_parallel(const directions *d) {
    enum { NARROW = 5 }; /* degrees that the eye takes for parallel */
    return d->angle < NARROW;
}

static const char *tell_arrows(const doc *doc, const directions *d) {
    if (!are_parallel(d))
        return doc_text(doc, "箭头不平行：两支之间最多 %.0f 度。", "The arrows are not parallel: up to %.0f degrees apart. ",
                        d->angle);
    if (d->longest > 1.1 * d->shortest)
        return doc_text(
            doc, "箭头几乎平行，这没有画错：任意两支的夹角不超过 %.2f 度；长度不一样，从 %.2f 到 %.2f。",
            "The arrows are nearly parallel, and that is no mistake: no two are more than %.2f degrees apart. Their "
            "lengths differ, from %.2f to %.2f. ",
            d->angle, d->shortest, d->longest);
    return doc_text(
        doc, "箭头几乎平行，长度也几乎一样，这没有画错：任意两支的夹角不超过 %.2f 度，长度从 %.2f 到 %.2f。",
        "The arrows are nearly parallel and nearly of one length, and that is no mistake: no two are more than %.2f "
        "degrees apart, and their lengths go from %.2f to %.2f. ",
        d->angle, d->shortest, d->longest);
}

/* By whether weights are near the equal share, and outputs near the mean of V. */
static const char *tell_mixing(const doc *doc, const directions *d) {
    static const struct {
        const char *zh, *en;
    } ways[2][2] = {
        {{"权重从 %.2f 到 %.2f，并不都接近平分的 %.2f；各词的 Z 偏离 V 的平均，最多到它长度的 %.1f%%。",
          "Weights go from %.2f to %.2f, not all of them near the equal share %.2f, and the Z of a word is off the "
          "mean of V by up to %.1f%% of its length. "},
         {"权重从 %.2f 到 %.2f，并不都接近平分的 %.2f；可各词的 Z 离 V 的平均仍不远，最多偏离它长度的 %.1f%%。",
          "Weights go from %.2f to %.2f, not all of them near the equal share %.2f, and still the Z of a word is "
          "off the mean of V by no more than %.1f%% of its length. "}},
        {{"权重从 %.2f 到 %.2f，都接近平分的 %.2f；可各词的 Z 偏离 V 的平均，最多到它长度的 %.1f%%：各词的 V "
          "互相抵消，平均很短。",
          "Weights go from %.2f to %.2f, all near the equal share %.2f, and yet the Z of a word is off the mean of "
          "V by up to %.1f%% of its length: the V partly cancel out, which makes the mean short. "},
         {"权重从 %.2f 到 %.2f，都接近平分的 %.2f，所以每个词拿到的 Z 差不多都是 V 的平均，最多偏离它长度的 %.1f%%。",
          "Weights go from %.2f to %.2f, all near the equal share %.2f, so what every word gets is nearly the mean "
          "of V, off by at most %.1f%% of its length. "}}};
    const bool even = are_even(d), near = d->apart <= NEAR;
    return doc_text(doc, ways[even][near].zh, ways[even][near].en, d->least, d->most, 1.0 / (double)d->words, 100 * d->apart);
}

/* Why weights are near the equal share, and what would change it. */
static const char *tell_why_even(lesson *lesson, double range) {
    return doc_text(
        &lesson->doc,
        "这一次抽到的分数最多相差 %.2f，softmax 后就差不多平分。换一个种子，或者 W 更大，也会有偏爱，只是没有道理：见%s和%s；"
        "训练才让偏爱有意义。",
        "In this draw scores are at most %.2f apart, of which softmax makes nearly equal shares. Another seed, or larger random "
        "W, may give favourites, but arbitrary ones: see %s and %s. It is training that makes them mean something.",
        range, lesson_refer(lesson, "heads"), lesson_refer(lesson, "initialisation"));
}

/* Why the arrows point where they do. */
static void explain_directions(lesson *lesson, const sentence *s, const lesson_attention *attention) {
    doc *doc = &lesson->doc;
    const directions d = compare_directions(lesson, s, attention);
    figures_number(&lesson->figures, "word_vectors/widest_angle", d.angle);
    figures_number(&lesson->figures, "word_vectors/farthest_from_mean", d.apart);
    figures_number(&lesson->figures, "word_vectors/unevenness", d.unevenness);
    figures_mat(&lesson->figures, "word_vectors/mean_of_V", d.mean);
    lesson_show(lesson, "mean", doc_text(doc, "权重全都相等时的 Z：V 的平均", "Z if all weights were equal: the mean of V"),
                "Z", DOC_ROLE_OUT, d.mean, NULL, axes);
    if (d.words == 1) {
        doc_summary(doc, "只有一个词，它的 Z 就是它自己的 V。", "There is one word, and its Z is its own V.");
        return;
    }
    doc_summary(doc, "%s%s%s%s", "%s%s%s%s", tell_arrows(doc, &d), tell_mixing(doc, &d),
                are_even(&d) ? tell_why_even(lesson, d.range)
                             : doc_text(doc, "这些权重是抽签抽出来的，不是学出来的；另一个种子抽出另一些。",
                                        "These weights were drawn, not learnt; another seed draws others."),
                are_parallel(&d) ? doc_text(doc, "大家几乎朝同一个方向走；词与词的不同，要靠残差里的 X 留住。",
                                            " All words move nearly the same way; what keeps them different is the X of the "
                                            "residual.")
                                 : "");
}

static void show_moved(lesson *lesson, const sentence *s, mat moved) {
    doc *doc = &lesson->doc;
    lesson_derive(lesson_show(lesson, "moved", doc_text(doc, "残差 Z + X", "Residual Z + X"), "Z+X", DOC_ROLE_OUT, moved,
                              s->words.at, axes),
                  DOC_RULE_SUM, "z", "x", 1);
    show_space(lesson, "arrows", doc_text(doc, "搬家：从 X 到 Z + X", "The move: from X to Z + X"), s, moved, true);
    doc_summary(doc, "箭头就是 Z：所有的词交给它的内容，它自己的也在内。%s挪了 %.2f。",
                "An arrow is Z: what all words have handed over, its own content included. %s moves by %.2f.",
                lesson_quote(lesson, s->words.at[0]), distance(s->x, 0, moved, 0));
}

/* Whether the first word has a favourite; others may, where it has none. */
static const char *answer_favourite(lesson *lesson, const sentence *s, const lesson_attention *attention) {
    const doc *doc = &lesson->doc;
    const mat weights = attention->weights;
    const double share = 1.0 / (double)weights.cols, most = mat_at(weights, 0, sentence_favourite(weights, 0));
    int64_t uneven = 0;
    while (uneven < weights.rows && unevenness(weights, uneven) <= NEAR) uneven++;
    if (weights.cols == 1)
        return doc_text(doc, "没有别的词可看：它把 %.2f 全给自己。", "There is nobody else to look at: it gives itself %.2f.",
                        most);
    if (most > (1 + NEAR) * share)
        return doc_text(doc, "会：%s得到 %.2f，平分是 %.2f。可这是抽签抽出来的，不是学出来的；另一个种子抽出另一些权重。",
                        "Yes: %s gets %.2f, where an equal share is %.2f. But that was drawn, not learnt; another seed draws "
                        "other weights.",
                        sentence_favourites(lesson, s->words, weights, 0), most, share);
    if (uneven == 0)
        return doc_text(
            doc, "不会：最大的权重是 %.2f，平分是 %.2f。可它冷落了一个词，只给 %.2f；这也是抽签抽出来的，不是学出来的。",
            "No: its largest weight is %.2f, and an equal share %.2f. But it neglects a word, which gets %.2f; that, "
            "too, was drawn, not learnt.",
            most, share, smallest_of(weights, 0));
    const char *no = doc_text(doc, "不会：最大的权重是 %.2f，平分是 %.2f。",
                              "No: its largest weight is %.2f, and an equal share %.2f. ", most, share);
    if (uneven == weights.rows)
        return doc_text(doc, "%s%s", "%s%s", no, tell_why_even(lesson, widest_range(attention->scores)));
    return doc_text(
        doc, "%s它的打分最多相差 %.2f。%s就不同了，权重从 %.2f 到 %.2f：抽签抽出来的，不是学出来的。",
        "%sIts scores are at most %.2f apart. With %s it is otherwise, whose weights go from %.2f to %.2f: drawn, not "
        "learnt.",
        no, score_range(attention->scores, 0), lesson_quote(lesson, s->words.at[uneven]), smallest_of(weights, uneven),
        mat_at(weights, uneven, sentence_favourite(weights, uneven)));
}

static void ask_for_favourite(lesson *lesson, const sentence *s, const lesson_attention *attention) {
    doc *doc = &lesson->doc;
    doc_ask(doc,
            doc_text(doc, "三个权重矩阵都是很小的随机数。%s会特别看重哪个词吗？",
                     "All three weight matrices are small random numbers. Will %s have a favourite?",
                     lesson_name_word(lesson, s->words, 0)),
            answer_favourite(lesson, s, attention));
}

static void put_figures(lesson *lesson, const sentence *s, const lesson_attention *attention, mat moved) {
    figures *f = &lesson->figures;
    figures_number(f, "word_vectors/seed", s->seed);
    figures_texts(f, "word_vectors/words", s->words.count, s->words.at);
    figures_mat(f, "word_vectors/X", s->x);
    figures_mat(f, "word_vectors/Q", s->q);
    figures_mat(f, "word_vectors/K", s->k);
    figures_mat(f, "word_vectors/V", s->v);
    figures_mat(f, "word_vectors/scores", attention->scores);
    figures_mat(f, "word_vectors/weights", attention->weights);
    figures_mat(f, "word_vectors/Z", attention->out);
    figures_mat(f, "word_vectors/Z_plus_X", moved);
}

void lesson_word_vectors(lesson *lesson) {
    doc *doc = &lesson->doc;
    const sentence s = sentence_make(lesson);
    doc_say(doc, "一句话里的每个词先是空间里的一个点。看它怎样环顾全句，然后带着看到的内容挪到新的位置。",
            "Each word of a sentence is first a point in space. Watch it look at the whole sentence, and move to where "
            "what it saw takes it.");
    sentence_introduce(lesson, &s);
    doc_formula(doc, "S = Q·Kᵀ / √d_k        A = softmax(S)        Z = A·V        Z + X");
    doc_say(doc, "d_k 是 Q 和 K 的列数，这里是 %d。", "d_k is how many columns Q and K have, here %d.", SENTENCE_DIM_K);
    lesson_attention attention = {.q = s.q, .k = s.k, .v = s.v};
    lesson_attend(lesson, &attention);
    ask_for_favourite(lesson, &s, &attention);
    show_words(lesson, &s);
    show_qkv(lesson, &s);
    show_attention(lesson, &s, &attention);
    const mat moved = mat_sum(&lesson->arena, attention.out, s.x);
    show_moved(lesson, &s, moved);
    explain_directions(lesson, &s, &attention);
    lesson_share_scale(lesson, "w_q", "w_k", "w_v", NULL);
    lesson_share_scale(lesson, "q", "k", "v", "z", "mean", NULL);
    lesson_share_scale(lesson, "x", "moved", NULL);
    put_figures(lesson, &s, &attention, moved);
    doc_correct(
        doc, doc_text(doc, "权重的每一列加起来也是 1。", "The columns of the weights add up to 1, too."),
        doc_text(doc, "只有行是。一行是一个词怎样分配它的注意力；一列是大家给一个词的，可以多也可以少。",
                 "Only the rows do. A row is how one word shares out its attention; a column is what one word gets from "
                 "all, and that may be much or little."));
}
