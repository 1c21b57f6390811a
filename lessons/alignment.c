/* The first face of attention: a translation that looks back at every word of its source.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "compute.h"
#include "courses.h"
#include "sentence.h"

enum { SOURCE = 4, TARGET = 4, SELF_DIM = 8, SELF_SEED = 7 };

static const lesson_word source_words[SOURCE] = {
    {"deep", "深", NULL}, {"learning", "学习", NULL}, {"is", "是", NULL}, {"fun", "有趣", NULL}};
static const lesson_word target_words[TARGET] = {
    {"l'apprentissage", "学习", "learning"}, {"profond", "深", "deep"}, {"est", "是", "is"}, {"amusant", "有趣", "fun"}};

/* How much each target word has to do with each source word: schematic, before the rows are made to add up to 1. */
static const double strength[TARGET * SOURCE] = {
    0.08, 0.82, 0.08, 0.08, 0.82, 0.08, 0.08, 0.08, 0.08, 0.08, 0.85, 0.08, 0.08, 0.08, 0.08, 0.85,
};

/* softmax(log w) is w over its sum: the operator with scores of 0 and the logarithm as the bias. */
static lesson_attention attend_to(lesson *lesson, const double *w) {
    arena *arena = &lesson->arena;
    lesson_attention attention = {
        .q = mat_new(arena, TARGET, 1), .k = mat_new(arena, SOURCE, 1), .bias = mat_new(arena, TARGET, SOURCE)};
    for (int i = 0; i < TARGET * SOURCE; i++) attention.bias.at[i] = (float)log(w[i]);
    attention.form = CLATTN_SCORES_BIAS;
    lesson_attend(lesson, &attention);
    return attention;
}

static void show_map(lesson *lesson, lesson_words source, lesson_words target, const lesson_attention *attention) {
    doc *doc = &lesson->doc;
    const char *captions[TARGET];
    for (int i = 0; i < TARGET; i++) {
        const int64_t best = sentence_favourite(attention->weights, i);
        captions[i] = doc_text(doc, "写出%s时，回头看%s：%.3f，其余各 %.3f。",
                               "Writing %s the decoder looks back at %s: %.3f, at each other word %.3f.",
                               lesson_quote(lesson, target.at[i]), lesson_quote(lesson, source.at[best]),
                               mat_at(attention->weights, i, best), mat_at(attention->weights, i, best == 3 ? 0 : 3));
    }
    doc_matrix *scores =
        lesson_show(lesson, "scores", doc_text(doc, "对齐分（偏置 log w）", "Alignment scores (the bias, log w)"), "e",
                    DOC_ROLE_SCORES, attention->scores, target.labels, source.at);
    scores->row_axis = doc_text(doc, "译文", "translation");
    scores->col_axis = doc_text(doc, "原文", "source");
    doc_matrix *map = lesson_show(lesson, "alignment", doc_text(doc, "对齐热图", "The alignment map"), "α", DOC_ROLE_WEIGHTS,
                                  attention->weights, target.labels, source.at);
    lesson_derive(map, DOC_RULE_SOFTMAX, "scores", NULL, 1);
    lesson_scale(map, 0, 1);
    map->decimals = 3;
    map->row_axis = scores->row_axis;
    map->col_axis = scores->col_axis;
    doc_grow(doc, map, DOC_BY_ROW, captions);
    doc_summary(doc, "前两行的亮格互换了位置：%s对%s，%s对%s。语序变了，注意力看得见。",
                "The bright cells of the first two rows change places: %s with %s, %s with %s. The order of the words "
                "differs, and attention sees it.",
                lesson_quote(lesson, target.at[0]), lesson_quote(lesson, source.at[sentence_favourite(attention->weights, 0)]),
                lesson_quote(lesson, target.at[1]), lesson_quote(lesson, source.at[sentence_favourite(attention->weights, 1)]));
}

static void show_sums(lesson *lesson, lesson_words target, mat weights) {
    doc *doc = &lesson->doc;
    double rows[TARGET] = {0}, cols[SOURCE] = {0}, x[SOURCE] = {0, 1, 2, 3};
    for (int i = 0; i < TARGET; i++) {
        for (int j = 0; j < SOURCE; j++) {
            rows[i] += mat_at(weights, i, j);
            cols[j] += mat_at(weights, i, j);
        }
    }
    doc_step(doc, "每一行加起来是 1：一个词的注意力有多少分多少。",
             "Each row adds up to 1: a word shares out what attention it has.");
    doc_plot *plot = doc_add_plot(doc, "row-sums", doc_text(doc, "行和", "Sums of rows"));
    plot->mark = DOC_BARS;
    plot->categories = target.at;
    plot->x = (doc_axis){.label = doc_text(doc, "译文", "translation")};
    plot->y = (doc_axis){.label = doc_text(doc, "行和", "sum of the row"), .low = 0, .high = 1};
    doc_add_series(doc, plot, doc_text(doc, "行和", "sum of the row"), DOC_ROLE_WEIGHTS, TARGET, x, rows);
    doc_summary(doc, "四行都是 %.2f。列和是 %.3f、%.3f、%.3f、%.3f：没有谁规定它们是 1。",
                "All four are %.2f. Columns add up to %.3f, %.3f, %.3f and %.3f: nobody promised 1.", rows[0], cols[0], cols[1],
                cols[2], cols[3]);
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
    doc_matrix *map =
        lesson_show(lesson, "self",
                    doc_text(doc, "自注意力（词向量随机，种子 %d）", "Self-attention (vectors drawn with seed %d)", SELF_SEED),
                    "A", DOC_ROLE_WEIGHTS, attention.weights, source.labels, source.at);
    lesson_scale(map, 0, 1);
    map->row_axis = doc_text(doc, "谁在看", "who looks");
    map->col_axis = doc_text(doc, "看谁", "at whom");
    doc_summary(doc, "行和列是同一句话的词，自己也看自己：对角线最亮，因为一个向量和自己最像。",
                "Rows and columns are the same words, and each looks at itself, too: the diagonal is bright, since a "
                "vector is most like itself.");
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
    doc_formula(doc, "α(i, j) = exp(e(i, j)) / Σ_k exp(e(i, k))        e = log w");
    doc_say(doc, "强度 w 是示意的，真实模型里由训练得到；算法是真的：打分为 0、偏置为 log w 的注意力。",
            "The strengths w are schematic, where a real model has learnt them; the computation is real: attention with "
            "scores of 0 and the bias log w.");
    doc_ask(doc,
            doc_text(doc, "法语里形容词在名词后面。热图的亮格会排成一条直线吗？",
                     "In French the adjective follows its noun. Will the bright cells lie on a straight line?"),
            doc_text(doc, "不会：“l'apprentissage”看“learning”，“profond”看“deep”，前两行交叉。",
                     "No: “l'apprentissage” looks at “learning” and “profond” at “deep”, so the first two rows cross."));
    doc_step(doc, "打分。", "The scores.");
    const lesson_attention attention = attend_to(lesson, strength);
    show_map(lesson, source, target, &attention);
    show_sums(lesson, target, attention.weights);
    figures_texts(&lesson->figures, "alignment/rows", TARGET, target.at);
    figures_texts(&lesson->figures, "alignment/columns", SOURCE, source.at);
    figures_mat(&lesson->figures, "alignment/weights", attention.weights);
    show_self(lesson, source);
    doc_correct(
        doc, doc_text(doc, "热图解释了模型为什么这样译。", "The map explains why the model translated so."),
        doc_text(doc, "权重只说混合了多少，不说为什么，也不说混进来的内容起了什么作用。它是线索，不是解释。",
                 "Weights say how much was mixed in, not why, nor what it then did. They are a clue, not an explanation."));
}
