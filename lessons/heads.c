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
    lesson_layer layer; /* with w_o */
    mat x, q, k, v;
    lesson_attention loop[HEADS];
    mat merged;        /* of the loop */
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

/* Head after head, each on its columns, into its columns of what is merged. */
static void run_loop(lesson *lesson, heads *h) {
    arena *arena = &lesson->arena;
    h->merged = mat_new(arena, h->x.rows, WIDTH);
    for (int i = 0; i < HEADS; i++) {
        lesson_attention *a = &h->loop[i];
        a->q = mat_block(arena, h->q, 0, h->x.rows, i * HEAD_DIM, HEAD_DIM);
        a->k = mat_block(arena, h->k, 0, h->x.rows, i * HEAD_DIM, HEAD_DIM);
        a->v = mat_block(arena, h->v, 0, h->x.rows, i * HEAD_DIM, HEAD_DIM);
        lesson_attend(lesson, a);
        for (int64_t r = 0; r < h->x.rows; r++)
            for (int64_t d = 0; d < HEAD_DIM; d++) h->merged.at[r * WIDTH + i * HEAD_DIM + d] = mat_at(a->out, r, d);
    }
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
    h->layer.w_o = mat_randn(arena, random, WIDTH, WIDTH, 0.2);
    lesson_mha(lesson, &h->layer);
    lesson_project(lesson, h->x, h->layer.w_q, h->layer.w_k, h->layer.w_v, &h->q, &h->k, &h->v);
    run_loop(lesson, h);
    const mat out = lesson_product(lesson, h->merged, h->layer.w_o);
    for (int64_t i = 0; i < out.rows * out.cols; i++) {
        const double difference = fabs(out.at[i] - h->layer.out.at[i]);
        if (difference > h->difference) h->difference = difference; /* by fmax gcc 12 breaks off on aarch64 */
    }
}

/* ---- what is shown ------------------------------------------------------------------------------------------------- */

static const char *numbered(lesson *lesson, const char *format, int head) {
    return arena_format(&lesson->arena, format, head);
}

static void show_projection(lesson *lesson, const heads *h) {
    const struct {
        const char *id, *zh, *en, *symbol, *weight;
        doc_role role;
        mat w, product;
    } parts[] = {{"q", "查询 Q = X·W_q", "Queries Q = X·W_q", "Q", "W_q", DOC_ROLE_Q, h->layer.w_q, h->q},
                 {"k", "键 K = X·W_k", "Keys K = X·W_k", "K", "W_k", DOC_ROLE_K, h->layer.w_k, h->k},
                 {"v", "值 V = X·W_v", "Values V = X·W_v", "V", "W_v", DOC_ROLE_V, h->layer.w_v, h->v}};
    enum { PARTS = sizeof parts / sizeof *parts };
    doc *doc = &lesson->doc;
    doc_step(doc, "投影一次，得到完整的 Q、K、V。", "Project once, for all of Q, K and V.");
    lesson_show(lesson, "x", doc_text(doc, "词向量 X，%d 列", "Word vectors X, %d columns", WIDTH), "X", DOC_ROLE_X, h->x,
                h->sentence.words.labels, NULL)
        ->decimals = 0;
    doc_say(doc, "三个 %d × %d 的权重由种子 %u 随机抽出，没有训练过。",
            "Three weights, %d × %d, drawn with seed %u and never trained.", WIDTH, WIDTH, h->sentence.seed);
    for (int i = 0; i < PARTS; i++)
        lesson_show(lesson, numbered(lesson, "w-%d", i), doc_text(doc, "权重 %s", "Weights %s", parts[i].weight),
                    parts[i].weight, parts[i].role, parts[i].w, NULL, NULL);
    doc_say(doc, "下面每个矩阵的第 0、1 列归头 0，第 2、3 列归头 1。",
            "Of each matrix below, columns 0 and 1 are head 0's, columns 2 and 3 head 1's.");
    for (int i = 0; i < PARTS; i++)
        lesson_derive(lesson_show(lesson, parts[i].id, doc->language == DOC_ZH ? parts[i].zh : parts[i].en, parts[i].symbol,
                                  parts[i].role, parts[i].product, h->sentence.words.at, NULL),
                      DOC_RULE_PRODUCT, "x", numbered(lesson, "w-%d", i), 1);
}

/* The columns that a head has of the whole, under their own numbers. */
static const char **number_columns(lesson *lesson, int head) {
    const char **columns = ARENA_NEW(&lesson->arena, const char *, HEAD_DIM);
    for (int d = 0; d < HEAD_DIM; d++) columns[d] = numbered(lesson, "%d", head * HEAD_DIM + d);
    return columns;
}

static void show_part(lesson *lesson, const heads *h, const char *id, const char *symbol, doc_role role, mat part, int head) {
    doc *doc = &lesson->doc;
    const char **columns = number_columns(lesson, head);
    symbol = numbered(lesson, symbol, head);
    lesson_show(lesson, numbered(lesson, id, head),
                doc_text(doc, "%s：第 %s、%s 列", "%s: columns %s and %s", symbol, columns[0], columns[HEAD_DIM - 1]), symbol,
                role, part, h->sentence.words.at, columns);
}

static void name_axes(const doc *doc, doc_matrix *matrix) {
    matrix->row_axis = doc_text(doc, "谁在看", "who looks");
    matrix->col_axis = doc_text(doc, "看谁", "at whom");
}

static void show_scores(lesson *lesson, const heads *h, const char *id, int head) {
    doc *doc = &lesson->doc;
    doc_matrix *scores =
        lesson_show(lesson, id, doc_text(doc, "头 %d 的打分", "The scores of head %d", head), numbered(lesson, "S_%d", head),
                    DOC_ROLE_SCORES, h->loop[head].scores, h->sentence.words.labels, h->sentence.words.at);
    lesson_derive(scores, DOC_RULE_PRODUCT_ROWS, numbered(lesson, "q-%d", head), numbered(lesson, "k-%d", head),
                  1 / sqrt(HEAD_DIM));
    name_axes(doc, scores);
}

/* A page has no room for the scores of so many words. */
static bool has_scores(const heads *h) {
    enum { MOST_WORDS = 32 };
    return h->x.rows <= MOST_WORDS;
}

static void show_head(lesson *lesson, const heads *h, int head) {
    doc *doc = &lesson->doc;
    const char *const *words = h->sentence.words.at, *const *labels = h->sentence.words.labels;
    const char *const scores = numbered(lesson, "scores-%d", head), *const weights = numbered(lesson, "weights-%d", head);
    doc_step(doc, "头 %d 拿到自己的列；自己打分，自己 softmax，自己混合。",
             "Head %d gets its columns: scores, softmax and mixing of its own.", head);
    show_part(lesson, h, "q-%d", "Q_%d", DOC_ROLE_Q, h->loop[head].q, head);
    show_part(lesson, h, "k-%d", "K_%d", DOC_ROLE_K, h->loop[head].k, head);
    show_part(lesson, h, "v-%d", "V_%d", DOC_ROLE_V, h->loop[head].v, head);
    if (has_scores(h))
        show_scores(lesson, h, scores, head);
    else
        doc_say(doc, "句子长，打分图略去。", "With so many words the map of scores is left out.");
    doc_matrix *map =
        lesson_show(lesson, weights, doc_text(doc, "头 %d 的热图", "The map of head %d", head), numbered(lesson, "A_%d", head),
                    DOC_ROLE_WEIGHTS, mat_block(&lesson->arena, h->layer.weights, head * h->x.rows, h->x.rows, 0, h->x.rows),
                    labels, words);
    if (has_scores(h)) lesson_derive(map, DOC_RULE_SOFTMAX, scores, NULL, 1);
    lesson_scale(map, 0, 1);
    name_axes(doc, map);
    lesson_derive(lesson_show(lesson, numbered(lesson, "z-%d", head),
                              doc_text(doc, "头 %d 的输出", "The output of head %d", head), numbered(lesson, "Z_%d", head),
                              DOC_ROLE_OUT, h->loop[head].out, words, number_columns(lesson, head)),
                  DOC_RULE_PRODUCT, weights, numbered(lesson, "v-%d", head), 1);
}

/* Of the first word that the heads see differently, if there is one. */
static void compare_heads(lesson *lesson, const heads *h) {
    doc *doc = &lesson->doc;
    const mat first = h->loop[0].weights, second = h->loop[1].weights;
    int64_t word = 0;
    while (word < h->x.rows && sentence_favourite(first, word) == sentence_favourite(second, word)) word++;
    const bool differ = word < h->x.rows;
    if (!differ) word = 0;
    doc_say(doc, "%s：%s在头 0 里最看重%s，在头 1 里最看重%s。", "%s: %s looks most at %s in head 0, at %s in head 1.",
            differ ? doc_text(doc, "两个头看法不同", "The heads see it differently")
                   : doc_text(doc, "这句话里两个头偏爱相同的词", "In this sentence both heads like the same words best"),
            lesson_quote(lesson, h->sentence.words.at[word]), sentence_tell_favourites(lesson, h->sentence.words, first, word),
            sentence_tell_favourites(lesson, h->sentence.words, second, word));
}

static void show_merging(lesson *lesson, const heads *h) {
    doc *doc = &lesson->doc;
    const char *const *labels = h->sentence.words.labels;
    doc_step(doc, "并排放回去：又是 %d 列。再乘输出投影 W_o，让两个头的结果掺到一起。",
             "Side by side again: %d columns. Then the output projection W_o mixes what the heads have found.", WIDTH);
    lesson_show(lesson, "merged", doc_text(doc, "合并 Z = [Z_0 Z_1]", "Merged, Z = [Z_0 Z_1]"), "Z", DOC_ROLE_OUT, h->merged,
                labels, NULL);
    lesson_show(lesson, "w-o", doc_text(doc, "输出投影 W_o（种子 %u）", "Output projection W_o (seed %u)", h->sentence.seed),
                "W_o", DOC_ROLE_OUT, h->layer.w_o, NULL, NULL);
    lesson_derive(lesson_show(lesson, "out", doc_text(doc, "这一层的输出 Z·W_o", "The output of the layer, Z·W_o"), "Z·W_o",
                              DOC_ROLE_OUT, h->layer.out, labels, NULL),
                  DOC_RULE_PRODUCT, "merged", "w-o", 1);
    if (h->difference == 0)
        doc_summary(doc, "程序库一次算完这一层，与一个头一个头地算，结果一位不差。",
                    "The library does the layer in one go; head after head, the results are the same to the last bit.");
    else
        doc_summary(doc, "程序库一次算完这一层，与一个头一个头地算，最多相差 %s：只是舍入。",
                    "The library does the layer in one go; head after head, results differ by %s at most, which is rounding.",
                    lesson_tiny(lesson, h->difference));
}

/* Q, K and V, what the heads have of them, and Z, which mixes V, are compared number by number. */
static void share_scales(lesson *lesson) {
    lesson_share_scale(lesson, "w-0", "w-1", "w-2", NULL);
    lesson_share_scale(lesson, "q", "k", "v", "q-0", "k-0", "v-0", "z-0", "q-1", "k-1", "v-1", "z-1", "merged", NULL);
    lesson_share_scale(lesson, "scores-0", "scores-1", NULL);
}

static void show_shapes(lesson *lesson, int64_t n) {
    enum { ROWS = 7 };
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
        doc_text(doc, "乘 W_o (%d, %d)", "times W_o (%d, %d)", WIDTH, WIDTH),
        arena_format(arena, "(%lld, %d)", (long long)n, WIDTH),
    };
    doc_add_table(doc, "shapes", doc_text(doc, "形状链条", "The chain of shapes"), ROWS, 2, head, cells);
}

void lesson_heads(lesson *lesson) {
    doc *doc = &lesson->doc;
    heads h = {.difference = 0};
    compute(lesson, &h);
    doc_say(doc, "一张热图只能说一种关系。把 Q、K、V 的列分给几个头，每个头就有自己的热图。",
            "One map can tell of one relation. Deal the columns of Q, K and V out to several heads, and each has a map of "
            "its own.");
    sentence_introduce(lesson, &h.sentence);
    doc_formula(doc, "S_0 = Q_0·K_0ᵀ / √d_k        A_0 = softmax(S_0)        Z_0 = A_0·V_0");
    doc_formula(doc, "Z = [Z_0 Z_1 …]        Z·W_o");
    doc_say(
        doc, "下标是头的编号，H = %d 个头，从 0 数起；d_k = %d / %d = %d 是一个头的列数。",
        "The index is the number of a head, of which there are H = %d, counted from 0; d_k = %d / %d = %d is how many columns "
        "a head has.",
        HEADS, WIDTH, HEADS, HEAD_DIM);
    doc_say(doc,
            "常见的笔误：3 列分给 2 个头，程序里 3 // 2 = 1（整除），两个头只用掉 2 列，第 3 列丢了，拼不回原来的宽度。"
            "所以这一课给每个词添了第 4 个数。",
            "A common slip: 3 columns for 2 heads, in a program 3 // 2 = 1 (whole numbers), so two heads use up 2 columns, "
            "the third is lost, and the parts do not make the whole. So this lesson gives each word a fourth number.");
    doc_ask(doc, doc_text(doc, "两个头比一个头多花一倍的计算吗？", "Do two heads cost twice the arithmetic of one?"),
            doc_text(doc, "不。每个头只有一半宽，Q·Kᵀ 和 A·V 的乘加总数不变；多出来的只是一张权重图。",
                     "No. Each is half as wide, so the multiply-adds of Q·Kᵀ and A·V stay the same; what is added is one "
                     "more map of weights."));
    show_projection(lesson, &h);
    for (int i = 0; i < HEADS; i++) show_head(lesson, &h, i);
    compare_heads(lesson, &h);
    show_merging(lesson, &h);
    share_scales(lesson);
    show_shapes(lesson, h.x.rows);
    figures_mat(&lesson->figures, "heads/weights", h.layer.weights);
    figures_mat(&lesson->figures, "heads/merged", h.merged);
    figures_mat(&lesson->figures, "heads/out", h.layer.out);
    figures_number(&lesson->figures, "heads/difference_from_loop", h.difference);
    doc_correct(doc, doc_text(doc, "每个头都学会一种语法关系。", "Each head learns one grammatical relation."),
                doc_text(doc, "没有人给头分工。训练后有的头看得出规律，有的看不出，有的删掉也没事。",
                         "Nobody assigns them. After training some heads show a pattern, some do not, and some can be "
                         "removed without harm."));
}
