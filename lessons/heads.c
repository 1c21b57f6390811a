/* Several heads: split the columns, let each attend by itself, put the results side by side.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "courses.h"
#include "sentence.h"

enum { HEADS = 2, WIDTH = 4, HEAD_DIM = WIDTH / HEADS };

typedef struct heads {
    sentence sentence;
    lesson_layer layer;
    mat x, q, k, v;
    lesson_attention loop[HEADS];
    double difference; /* between the layer and the loop, at most */
} heads;

/* The sentence has three columns; each word gets a fourth number. */
static mat widen(lesson *lesson, const sentence *s, numpy_random *random) {
    mat x = mat_new(&lesson->arena, s->x.rows, WIDTH);
    for (int64_t i = 0; i < x.rows; i++) {
        for (int64_t d = 0; d < s->x.cols; d++) x.at[i * WIDTH + d] = mat_at(s->x, i, d);
        x.at[i * WIDTH + WIDTH - 1] = (float)rint(10 * numpy_rand(random));
    }
    return x;
}

static void compute(lesson *lesson, heads *h) {
    arena *arena = &lesson->arena;
    h->sentence = sentence_make(lesson);
    numpy_random *random = &h->sentence.random;
    h->x = widen(lesson, &h->sentence, random);
    h->layer = (lesson_layer){.x = h->x, .heads = HEADS};
    h->layer.w_q = mat_randn(arena, random, WIDTH, WIDTH, 0.2);
    h->layer.w_k = mat_randn(arena, random, WIDTH, WIDTH, 0.2);
    h->layer.w_v = mat_randn(arena, random, WIDTH, WIDTH, 0.2);
    lesson_mha(lesson, &h->layer);
    lesson_project(lesson, h->x, h->layer.w_q, h->layer.w_k, h->layer.w_v, &h->q, &h->k, &h->v);
    for (int i = 0; i < HEADS; i++) {
        lesson_attention *a = &h->loop[i];
        a->q = mat_block(arena, h->q, 0, h->x.rows, i * HEAD_DIM, HEAD_DIM);
        a->k = mat_block(arena, h->k, 0, h->x.rows, i * HEAD_DIM, HEAD_DIM);
        a->v = mat_block(arena, h->v, 0, h->x.rows, i * HEAD_DIM, HEAD_DIM);
        lesson_attend(lesson, a);
        for (int64_t r = 0; r < h->x.rows; r++)
            for (int64_t d = 0; d < HEAD_DIM; d++)
                h->difference = fmax(h->difference, fabs(mat_at(a->out, r, d) - mat_at(h->layer.out, r, i * HEAD_DIM + d)));
    }
}

static void show_split(lesson *lesson, const heads *h) {
    doc *doc = &lesson->doc;
    const char *const *words = h->sentence.words.at, *const *labels = h->sentence.words.labels;
    doc_step(doc, "投影一次，得到完整的 Q、K、V。", "Project once, for all of Q, K and V.");
    lesson_show(lesson, "x", doc_text(doc, "词向量 X，%d 列", "Word vectors X, %d columns", WIDTH), "X", DOC_ROLE_X, h->x,
                labels, NULL)
        ->decimals = 0;
    doc_say(doc, "每个矩阵的前两列归头 0，后两列归头 1。",
            "Of each matrix the first two columns are head 0's, the last two head 1's.");
    lesson_show(lesson, "q", doc_text(doc, "查询 Q", "Queries Q"), "Q", DOC_ROLE_Q, h->q, words, NULL);
    lesson_show(lesson, "k", doc_text(doc, "键 K", "Keys K"), "K", DOC_ROLE_K, h->k, words, NULL);
    lesson_show(lesson, "v", doc_text(doc, "值 V", "Values V"), "V", DOC_ROLE_V, h->v, words, NULL);
    for (int i = 0; i < HEADS; i++) {
        doc_step(doc, "头 %d：自己打分，自己 softmax，自己混合。", "Head %d: scores, softmax and mixing of its own.", i);
        doc_matrix *map =
            lesson_show(lesson, arena_format(&lesson->arena, "weights-%d", i),
                        doc_text(doc, "头 %d 的热图", "The map of head %d", i), "A", DOC_ROLE_WEIGHTS,
                        mat_block(&lesson->arena, h->layer.weights, i * h->x.rows, h->x.rows, 0, h->x.rows), labels, words);
        lesson_scale(map, 0, 1);
        map->row_axis = doc_text(doc, "谁在看", "who looks");
        map->col_axis = doc_text(doc, "看谁", "at whom");
    }
    const mat first = h->loop[0].weights, second = h->loop[1].weights;
    int64_t word = 0; /* the first that the heads see differently, if there is one */
    while (word + 1 < h->x.rows && sentence_favourite(first, word) == sentence_favourite(second, word)) word++;
    doc_summary(doc, "%s在头 0 里最看重%s，在头 1 里最看重%s。", "%s looks most at %s in head 0, at %s in head 1.",
                lesson_quote(lesson, words[word]), sentence_favourites(lesson, h->sentence.words, first, word),
                sentence_favourites(lesson, h->sentence.words, second, word));
    doc_step(doc, "并排放回去：4 列。", "Side by side again: 4 columns.");
    lesson_show(lesson, "out", doc_text(doc, "合并的输出", "Merged output"), "Z", DOC_ROLE_OUT, h->layer.out, labels, NULL);
    if (h->difference == 0)
        doc_summary(doc, "一次算完的层，与一个头一个头地算，结果一位不差。",
                    "The layer in one go, and head after head: the results are the same to the last bit.");
    else
        doc_summary(doc, "一次算完的层，与一个头一个头地算，最多相差 %s：只是舍入。",
                    "The layer in one go, and head after head: they differ by %s at most, which is rounding.",
                    lesson_tiny(lesson, h->difference));
}

static void show_shapes(lesson *lesson, int64_t n) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const char *const head[] = {doc_text(doc, "步骤", "step"), doc_text(doc, "形状", "shape")};
    const char *const cells[] = {
        "X",
        arena_format(arena, "(%lld, %d)", (long long)n, WIDTH),
        doc_text(doc, "Q、K、V", "Q, K, V"),
        arena_format(arena, "(%lld, %d)", (long long)n, WIDTH),
        doc_text(doc, "拆成头", "split"),
        arena_format(arena, "(%d, %lld, %d)", HEADS, (long long)n, HEAD_DIM),
        doc_text(doc, "每头的权重", "weights of the heads"),
        arena_format(arena, "(%d, %lld, %lld)", HEADS, (long long)n, (long long)n),
        doc_text(doc, "每头的输出", "outputs of the heads"),
        arena_format(arena, "(%d, %lld, %d)", HEADS, (long long)n, HEAD_DIM),
        doc_text(doc, "合并", "merged"),
        arena_format(arena, "(%lld, %d)", (long long)n, WIDTH),
    };
    doc_add_table(doc, "shapes", doc_text(doc, "形状链条", "The chain of shapes"), 6, 2, head, cells);
}

void lesson_heads(lesson *lesson) {
    doc *doc = &lesson->doc;
    heads h = {.difference = 0};
    compute(lesson, &h);
    doc_say(doc, "一张热图只能说一种关系。把 Q、K、V 的列分给几个头，每个头就有自己的热图。",
            "One map can tell of one relation. Deal the columns of Q, K and V out to several heads, and each has a map of "
            "its own.");
    sentence_introduce(lesson, &h.sentence);
    doc_formula(doc, "Z_h = softmax(Q_h·K_hᵀ / √d_h)·V_h        Z = [Z_0 Z_1 …]");
    doc_say(doc, "h 是头的编号，d_h 是一个头的列数。", "h is the number of a head, d_h how many columns it has.");
    doc_say(doc,
            "常见的笔误：3 列分给 2 个头，程序里 3 // 2 = 1（整除），两个头只用掉 2 列，第 3 列丢了，拼不回原来的宽度。"
            "所以这一课给每个词添了第 4 个数。",
            "A common slip: 3 columns for 2 heads, in a program 3 // 2 = 1 (whole numbers), so two heads use up 2 columns, "
            "the third is lost, and the parts do not make the whole. So this lesson gives each word a fourth number.");
    doc_ask(doc, doc_text(doc, "两个头比一个头多花一倍的计算吗？", "Do two heads cost twice the arithmetic of one?"),
            doc_text(doc, "不。每个头只有一半宽，Q·Kᵀ 和 A·V 的乘加总数不变；多出来的只是一张权重图。",
                     "No. Each is half as wide, so the multiply-adds of Q·Kᵀ and A·V stay the same; what is added is one "
                     "more map of weights."));
    show_split(lesson, &h);
    show_shapes(lesson, h.x.rows);
    figures_mat(&lesson->figures, "heads/weights", h.layer.weights);
    figures_mat(&lesson->figures, "heads/out", h.layer.out);
    figures_number(&lesson->figures, "heads/difference_from_loop", h.difference);
    doc_correct(doc, doc_text(doc, "每个头都学会一种语法关系。", "Each head learns one grammatical relation."),
                doc_text(doc, "没有人给头分工。训练后有的头看得出规律，有的看不出，有的删掉也没事。",
                         "Nobody assigns them. After training some heads show a pattern, some do not, and some can be "
                         "removed without harm."));
}
