/* The first face of attention: a translation that looks back at every word of its source.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "compute.h"
#include "courses.h"
#include "sentence.h"

enum { SOURCE = 4, TARGET = 4, STATE = 3, SELF_DIM = 8, SELF_SEED = 7 };

static const lesson_word source_words[SOURCE] = {
    {"deep", "深", NULL}, {"learning", "学习", NULL}, {"is", "是", NULL}, {"fun", "有趣", NULL}};
static const lesson_word target_words[TARGET] = {
    {"l'apprentissage", "学习", "learning"}, {"profond", "深", "deep"}, {"est", "是", "is"}, {"amusant", "有趣", "fun"}};

/* How much each target word has to do with each source word: schematic, before the rows are made to add up to 1. */
static const double strength[TARGET * SOURCE] = {
    0.08, 0.82, 0.08, 0.08, 0.82, 0.08, 0.08, 0.08, 0.08, 0.08, 0.85, 0.08, 0.08, 0.08, 0.08, 0.85,
};

/* softmax(log w) is w over its sum: the operator with scores of 0 and the logarithm as the bias. */
static lesson_attention attend_to(lesson *lesson, const double *w, mat v) {
    arena *arena = &lesson->arena;
    lesson_attention attention = {
        .q = mat_new(arena, TARGET, 1), .k = mat_new(arena, SOURCE, 1), .v = v, .bias = mat_new(arena, TARGET, SOURCE)};
    for (int i = 0; i < TARGET * SOURCE; i++) attention.bias.at[i] = (float)log(w[i]);
    attention.form = CLATTN_SCORES_BIAS;
    lesson_attend(lesson, &attention);
    return attention;
}

/* What the encoder hands over: a recurrence with drawn weights, over words with drawn vectors. */
static mat encode(lesson *lesson) {
    arena *arena = &lesson->arena;
    numpy_random random;
    numpy_seed(&random, SELF_SEED);
    lesson_recurrence encoder = {.cell = CLATTN_CELL_RNN, .batch = 1};
    encoder.x = mat_randn(arena, &random, SOURCE, STATE, 1);
    encoder.w_in = mat_randn(arena, &random, STATE, STATE, 1);
    encoder.w_h = mat_randn(arena, &random, STATE, STATE, 0.5);
    return lesson_recur(lesson, &encoder);
}

static void name_axes(const doc *doc, doc_matrix *matrix) {
    matrix->row_axis = doc_text(doc, "译文", "translation");
    matrix->col_axis = doc_text(doc, "原文", "source");
}

/* How a row of the map comes from the strengths: its largest, over the sum. */
static const char *tell_row(lesson *lesson, lesson_words source, lesson_words target, mat weights, int row) {
    const int best = (int)sentence_favourite(weights, row), other = best == SOURCE - 1 ? 0 : SOURCE - 1;
    const double *w = strength + row * SOURCE, sum = w[0] + w[1] + w[2] + w[3];
    return doc_text(&lesson->doc, "写出%s时，回头看%s：%.2f / %.2f = %.3f；其余各 %.2f / %.2f = %.3f。",
                    "Writing %s the decoder looks back at %s: %.2f / %.2f = %.3f; at each other word %.2f / %.2f = %.3f.",
                    lesson_quote(lesson, target.at[row]), lesson_quote(lesson, source.at[best]), w[best], sum,
                    mat_at(weights, row, best), w[other], sum, mat_at(weights, row, other));
}

static void show_map(lesson *lesson, lesson_words source, lesson_words target, const lesson_attention *attention) {
    doc *doc = &lesson->doc;
    const char *captions[TARGET];
    for (int i = 0; i < TARGET; i++) captions[i] = tell_row(lesson, source, target, attention->weights, i);
    doc_step(doc, "先有强度 w：译文的每个词和原文的每个词有多大关系。打分 S 是它的对数。",
             "First the strengths w: how much each word of the translation has to do with each of the source. A score S is "
             "the logarithm of one.");
    doc_matrix *w =
        lesson_show(lesson, "strengths", doc_text(doc, "强度 w（示意，手工填的）", "Strengths w (made up by hand)"), "w",
                    DOC_ROLE_PLAIN, mat_of(&lesson->arena, TARGET, SOURCE, strength), target.labels, source.at);
    name_axes(doc, w);
    doc_matrix *scores = lesson_show(lesson, "scores", doc_text(doc, "打分 S = log w", "Scores S = log w"), "S",
                                     DOC_ROLE_SCORES, attention->scores, target.labels, source.at);
    lesson_derive(scores, DOC_RULE_LOG, "strengths", NULL, 1);
    name_axes(doc, scores);
    doc_say(doc,
            "为什么绕道对数？softmax 先取 exp，而 exp(log w) = w：每一行的权重就是 w 除以这一行的和。真实模型不填 w，打分 S "
            "由一个小网络从两边的 h 算出来，权重照样由 softmax 给。",
            "Why by way of the logarithm? Softmax begins with exp, and exp(log w) = w: the weights of a row are its w over "
            "their sum. A real model is given no w: a small network computes the scores S from the h of both sides, and "
            "softmax makes the weights, as here.");
    doc_step(doc, "softmax：每一行变成比例，一行一行地写出来。", "Softmax: each row becomes shares, written row by row.");
    doc_matrix *map =
        lesson_show(lesson, "alignment", doc_text(doc, "对齐热图 A = softmax(S)", "The alignment map A = softmax(S)"), "A",
                    DOC_ROLE_WEIGHTS, attention->weights, target.labels, source.at);
    lesson_derive(map, DOC_RULE_SOFTMAX, "scores", NULL, 1);
    lesson_scale(map, 0, 1);
    map->decimals = 3;
    name_axes(doc, map);
    doc_grow(doc, map, DOC_BY_ROW, captions);
    doc_summary(doc, "前两行的亮格互换了位置：%s对%s，%s对%s。语序变了，注意力看得见。",
                "The bright cells of the first two rows change places: %s with %s, %s with %s. The order of the words "
                "differs, and attention sees it.",
                lesson_quote(lesson, target.at[0]), lesson_quote(lesson, source.at[sentence_favourite(attention->weights, 0)]),
                lesson_quote(lesson, target.at[1]), lesson_quote(lesson, source.at[sentence_favourite(attention->weights, 1)]));
}

/* What the weights are for. */
static void show_mixing(lesson *lesson, lesson_words source, lesson_words target, const lesson_attention *attention) {
    doc *doc = &lesson->doc;
    const int best = (int)sentence_favourite(attention->weights, 0);
    doc_step(doc, "混合：编码器给每个英语词留了一个 h，这就是值 V。按一行的权重把它们加起来，就是上下文向量 Z 的一行。",
             "Mixing: for each English word the encoder has kept an h. Those are the values V. Added up by the weights of a "
             "row, they are a row of Z, the context vector.");
    lesson_show(lesson, "values",
                doc_text(doc, "值 V：每个词的 h（编码器随机，种子 %d）",
                         "Values V: the h of each word (encoder drawn, seed %d)", SELF_SEED),
                "V", DOC_ROLE_V, attention->v, source.labels, NULL);
    doc_matrix *z = lesson_show(lesson, "context", doc_text(doc, "上下文向量 Z = A·V", "Context vectors Z = A·V"), "Z",
                                DOC_ROLE_OUT, attention->out, target.labels, NULL);
    lesson_derive(z, DOC_RULE_PRODUCT, "alignment", "values", 1);
    lesson_share_scale(lesson, "values", "context", NULL);
    doc_summary(doc, "%s的 Z 和%s的 h 最接近，因为 %.3f 的权重在它身上；其余三个词各掺进一点。解码器拿着 Z 写下一个词。",
                "The Z of %s is nearest to the h of %s, which has %.3f of the weight; of the other three a little is mixed in. "
                "With Z in hand the decoder writes the word.",
                lesson_quote(lesson, target.at[0]), lesson_quote(lesson, source.at[best]), mat_at(attention->weights, 0, best));
    figures_mat(&lesson->figures, "alignment/values", attention->v);
    figures_mat(&lesson->figures, "alignment/context", attention->out);
}

/* The same operator, queries and keys of one sentence. */
static void show_self(lesson *lesson, lesson_words source) {
    doc *doc = &lesson->doc;
    numpy_random random;
    numpy_seed(&random, SELF_SEED);
    const mat x = mat_randn(&lesson->arena, &random, SOURCE, SELF_DIM, 1);
    lesson_attention attention = {.q = x, .k = x, .v = x};
    lesson_attend(lesson, &attention);
    doc_step(doc, "上面看的是另一句话：交叉注意力。让一句话看自己，就是自注意力。",
             "That looked at another sentence: cross-attention. Let a sentence look at itself, and it is self-attention.");
    lesson_show(lesson, "words", doc_text(doc, "词向量 X（随机，种子 %d）", "Word vectors X (drawn, seed %d)", SELF_SEED), "X",
                DOC_ROLE_X, x, source.labels, NULL);
    doc_say(
        doc,
        "这里没有强度可抄：打分由向量自己算出，两个词向量的点积，除以 √%d。%d 是一个词有几个数；为什么要除，后面有一课专门讲。",
        "No strengths to copy here: the vectors make the scores, as the dot product of two words, divided by √%d, where %d is "
        "how many numbers a word has. Why it is divided is a lesson of its own, later.",
        SELF_DIM, SELF_DIM);
    doc_matrix *scores =
        lesson_show(lesson, "self-scores", doc_text(doc, "打分 S = X·Xᵀ / √%d", "Scores S = X·Xᵀ / √%d", SELF_DIM), "S",
                    DOC_ROLE_SCORES, attention.scores, source.labels, source.at);
    lesson_derive(scores, DOC_RULE_PRODUCT_ROWS, "words", "words", 1 / sqrt(SELF_DIM));
    doc_matrix *map = lesson_show(lesson, "self", doc_text(doc, "自注意力 A = softmax(S)", "Self-attention A = softmax(S)"),
                                  "A", DOC_ROLE_WEIGHTS, attention.weights, source.labels, source.at);
    lesson_derive(map, DOC_RULE_SOFTMAX, "self-scores", NULL, 1);
    lesson_scale(map, 0, 1);
    map->row_axis = scores->row_axis = doc_text(doc, "谁在看", "who looks");
    map->col_axis = scores->col_axis = doc_text(doc, "看谁", "at whom");
    double sums[SOURCE] = {0};
    for (int i = 0; i < SOURCE; i++)
        for (int j = 0; j < SOURCE; j++) sums[j] += mat_at(attention.weights, i, j);
    doc_summary(
        doc,
        "行和列是同一句话的词，自己也看自己。这里对角线最亮：每个向量和自己的点积都最大。这不是规律：换一个更长的向量，"
        "点积可以更大。每一行加起来是 1：一个词的注意力有多少分多少；列和是 %.2f、%.2f、%.2f、%.2f，没有谁规定它们是 1。",
        "Rows and columns are the same words, and each looks at itself, too. Here the diagonal is the brightest: each "
        "vector has its largest dot product with itself. That is no law: with a longer vector it may be larger still. "
        "Each row adds up to 1: a word shares out what attention it has. Columns add up to %.2f, %.2f, %.2f and %.2f: "
        "nobody promised 1.",
        sums[0], sums[1], sums[2], sums[3]);
    figures_mat(&lesson->figures, "alignment/self_attention", attention.weights);
}

void lesson_alignment(lesson *lesson) {
    doc *doc = &lesson->doc;
    const lesson_words source = lesson_take_words(lesson, source_words, SOURCE),
                       target = lesson_take_words(lesson, target_words, TARGET);
    doc_say(doc,
            "把“deep learning is fun”译成法语。编码器不再只交出最后一个 h，而是全部交出来；每写一个法语词，都回头看一遍，"
            "给每个英语词打分，softmax 成权重，再按权重混合。",
            "Translate “deep learning is fun” into French. The encoder hands over every h, not just the last; for each "
            "French word the decoder looks back, scores every English word, turns scores into weights by softmax, and "
            "mixes by those.");
    lesson_introduce_words(lesson, source, "深度学习很有趣", "deep learning is fun");
    lesson_introduce_words(lesson, target, "深度学习很有趣", "deep learning is fun");
    doc_formula(doc, "S(i, j) = log w(i, j)        A(i, j) = exp(S(i, j)) / Σ_u exp(S(i, u))");
    doc_formula(doc, "Z(i) = Σ_j A(i, j)·V(j)");
    doc_say(doc,
            "i 是正在写的词，j 是被看的词，Σ_u 把一整行加起来。2014 年的论文把 S 写作 e，把 A 写作 α，把 Z 写作 c。强度 w "
            "是示意的，计算是真的：程序库的注意力，点积为 0，偏置为 log w。",
            "i is the word being written, j the word looked at, Σ_u adds up a row. The paper of 2014 writes e for S, α for A "
            "and c for Z. The strengths w are made up; the computation is real: the library’s attention with dot products of "
            "0 and the bias log w.");
    doc_ask(doc,
            doc_text(doc, "法语里形容词在名词后面。热图的亮格会排成一条直线吗？",
                     "In French the adjective follows its noun. Will the bright cells lie on a straight line?"),
            doc_text(doc, "不会：“l'apprentissage”看“learning”，“profond”看“deep”，前两行交叉。",
                     "No: “l'apprentissage” looks at “learning” and “profond” at “deep”, so the first two rows cross."));
    const lesson_attention attention = attend_to(lesson, strength, encode(lesson));
    show_map(lesson, source, target, &attention);
    show_mixing(lesson, source, target, &attention);
    figures_texts(&lesson->figures, "alignment/rows", TARGET, target.at);
    figures_texts(&lesson->figures, "alignment/columns", SOURCE, source.at);
    figures_mat(&lesson->figures, "alignment/weights", attention.weights);
    show_self(lesson, source);
    doc_correct(
        doc, doc_text(doc, "热图解释了模型为什么这样译。", "The map explains why the model translated so."),
        doc_text(doc, "权重只说混合了多少，不说为什么，也不说混进来的内容起了什么作用。它是线索，不是解释。",
                 "Weights say how much was mixed in, not why, nor what it then did. They are a clue, not an explanation."));
}
