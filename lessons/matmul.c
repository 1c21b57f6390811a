/* A matrix product, cell by cell; and three of them at once: Q, K and V.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compute.h"
#include "courses.h"

/* ---- matmul -------------------------------------------------------------------------------------------------------- */

enum { SIDE = 2, SHAPES = 4 };

static void show_product(lesson *lesson, mat a, mat b, mat ab) {
    doc *doc = &lesson->doc;
    const char *captions[SIDE * SIDE];
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            captions[i * SIDE + j] =
                doc_text(doc, "(%d, %d)：%g×%g + %g×%g = %g", "(%d, %d): %g×%g + %g×%g = %g", i, j, mat_at(a, i, 0),
                         mat_at(b, 0, j), mat_at(a, i, 1), mat_at(b, 1, j), mat_at(ab, i, j));
    doc_matrix *shown = lesson_show(lesson, "ab", "L·R", "L·R", DOC_ROLE_OUT, ab, NULL, NULL);
    lesson_derive(shown, DOC_RULE_PRODUCT, "a", "b", 1);
    shown->decimals = 0;
    doc_grow(doc, shown, DOC_BY_CELL, captions);
    doc_summary(doc, "四个格子，每格一行配一列：%g、%g、%g、%g。", "Four cells, a row and a column for each: %g, %g, %g, %g.",
                mat_at(ab, 0, 0), mat_at(ab, 0, 1), mat_at(ab, 1, 0), mat_at(ab, 1, 1));
}

static void show_shapes(lesson *lesson) {
    static const int64_t shapes[SHAPES][4] = {{2, 2, 2, 2}, {5, 8, 8, 4}, {1, 2, 2, 3}, {2, 3, 2, 2}};
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const char *const head[] = {"L", "R", "L·R"};
    const char *cells[SHAPES * 3];
    const int64_t *refused = NULL;
    for (int s = 0; s < SHAPES; s++) {
        const int64_t *n = shapes[s];
        const bool fits = lesson_fits(lesson, (mat){n[0], n[1], NULL}, (mat){n[2], n[3], NULL});
        cells[3 * s] = arena_format(arena, "(%lld, %lld)", (long long)n[0], (long long)n[1]);
        cells[3 * s + 1] = arena_format(arena, "(%lld, %lld)", (long long)n[2], (long long)n[3]);
        cells[3 * s + 2] =
            fits ? arena_format(arena, "(%lld, %lld)", (long long)n[0], (long long)n[3]) : doc_text(doc, "不行", "no");
        if (!fits) refused = n;
    }
    doc_step(doc, "形状规则：中间两个数必须相等，结果取外面两个。",
             "The rule of shapes: the two in the middle must be equal; what is left are the outer two.");
    doc_formula(doc, "(2 × 3)·(3 × 4) → (2 × 4)");
    doc_add_table(doc, "shapes", doc_text(doc, "哪些能乘", "Which can be multiplied"), SHAPES, 3, head, cells);
    if (refused != NULL)
        doc_summary(
            doc, "最后一对不行：L 的一行有 %lld 个数，R 的一列只有 %lld 个，配不成对；程序库也拒绝算它。",
            "The last pair does not fit: a row of L has %lld numbers and a column of R %lld, which cannot be paired; the "
            "library refuses it, too.",
            (long long)refused[1], (long long)refused[2]);
}

void lesson_matmul(lesson *lesson) {
    static const double left[] = {1, 2, 3, 4}, right[] = {5, 6, 7, 8};
    doc *doc = &lesson->doc;
    const mat a = mat_of(&lesson->arena, SIDE, SIDE, left), b = mat_of(&lesson->arena, SIDE, SIDE, right);
    const mat ab = lesson_product(lesson, a, b);
    doc_say(
        doc,
        "投影、打分、混合，全是矩阵乘法。它只有一个动作：左边 L 的一行配右边 R 的一列，对应相乘，再加起来。行和列从 0 数起。",
        "Projecting, scoring and mixing are all matrix products. There is one move in it: a row of the left, L, with a "
        "column of the right, R: multiply in pairs, add up. Rows and columns are counted from 0.");
    doc_formula(doc, "(L·R)(i, j) = Σ_u L(i, u)·R(u, j)");
    doc_ask(doc, doc_text(doc, "左上角那一格是多少？", "What is the cell at the top left?"),
            doc_text(doc, "1×5 + 2×7 = %g。", "1×5 + 2×7 = %g.", mat_at(ab, 0, 0)));
    lesson_show(lesson, "a", doc_text(doc, "左边 L", "The left, L"), "L", DOC_ROLE_PLAIN, a, NULL, NULL)->decimals = 0;
    lesson_show(lesson, "b", doc_text(doc, "右边 R", "The right, R"), "R", DOC_ROLE_PLAIN, b, NULL, NULL)->decimals = 0;
    lesson_share_scale(lesson, "a", "b", NULL);
    show_product(lesson, a, b, ab);
    show_shapes(lesson);
    figures_mat(&lesson->figures, "matmul_by_hand/A", a);
    figures_mat(&lesson->figures, "matmul_by_hand/B", b);
    figures_mat(&lesson->figures, "matmul_by_hand/AB", ab);
    doc_correct(doc, doc_text(doc, "L·R 和 R·L 一样。", "L·R is the same as R·L."),
                doc_text(doc, "不一样：R·L 的左上角是 %g。而且形状一换，可能根本乘不了。",
                         "It is not: the top left of R·L is %g. And with other shapes there may be no product at all.",
                         mat_at(lesson_product(lesson, b, a), 0, 0)));
}

/* ---- qkv ----------------------------------------------------------------------------------------------------------- */

enum { WORDS = 5, DIM = 8, DIM_K = 4, SEED = 42, LEDGER = 7, MODELS = 4 };

static const char *shape(lesson *lesson, int64_t rows, int64_t cols) {
    return arena_format(&lesson->arena, "(%lld, %lld)", (long long)rows, (long long)cols);
}

static void show_ledger(lesson *lesson, int64_t words, int64_t dim_k) {
    doc *doc = &lesson->doc;
    const char *const head[] = {doc_text(doc, "矩阵", "matrix"), doc_text(doc, "形状", "shape"),
                                doc_text(doc, "谁说了算", "who decides")};
    const char *const table = doc_text(doc, "句子：n；词表：d_in", "the sentence: n; its words: d_in"),
                      *const free = doc_text(doc, "设计：d_k 自由选", "design: d_k is free"),
                      *const equal = doc_text(doc, "必须和 W_q 同宽：q·k 要配对", "as wide as W_q: q·k pairs them"),
                      *const value = doc_text(doc, "设计：d_v，常取 d_k", "design: d_v, often d_k"),
                      *const follows = doc_text(doc, "由乘法决定", "follows from the product");
    const char *const cells[LEDGER * 3] = {
        "X",   shape(lesson, words, DIM),   table,   "W_q", shape(lesson, DIM, dim_k),   free,
        "W_k", shape(lesson, DIM, dim_k),   equal,   "W_v", shape(lesson, DIM, dim_k),   value,
        "Q",   shape(lesson, words, dim_k), follows, "K",   shape(lesson, words, dim_k), follows,
        "V",   shape(lesson, words, dim_k), follows,
    };
    doc_add_table(doc, "ledger", doc_text(doc, "维度账本", "The ledger of dimensions"), LEDGER, 3, head, cells);
    doc_summary(doc, "词数 %lld 从头到尾不变，变的只是每个词用几个数说：%d 个变成 %lld 个。",
                "There are %lld words throughout; what changes is how many numbers tell of each: %d become %lld.",
                (long long)words, DIM, (long long)dim_k);
}

static void show_parameters(lesson *lesson, int64_t dim_k) {
    static const struct {
        const char *name;
        int64_t d_in, d_k, heads;
    } models[MODELS - 1] = {{"GPT-2 small", 768, 64, 12}, {"BERT-large", 1024, 64, 16}, {"GPT-3", 12288, 128, 96}};
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const char *const head[] = {doc_text(doc, "模型", "model"), "d_in", "d_k", doc_text(doc, "头 H", "heads H"),
                                "3·d_in·d_k·H"};
    const char *cells[MODELS * 5];
    for (int m = 0; m < MODELS; m++) {
        const int64_t d_in = m == 0 ? DIM : models[m - 1].d_in, d_k = m == 0 ? dim_k : models[m - 1].d_k,
                      heads = m == 0 ? 1 : models[m - 1].heads;
        cells[5 * m] = m == 0 ? doc_text(doc, "这一课", "this lesson") : models[m - 1].name;
        cells[5 * m + 1] = lesson_count(lesson, d_in);
        cells[5 * m + 2] = arena_format(arena, "%lld", (long long)d_k);
        cells[5 * m + 3] = arena_format(arena, "%lld", (long long)heads);
        cells[5 * m + 4] = lesson_count(lesson, 3 * d_in * d_k * heads);
        if (m == 0) figures_number(&lesson->figures, "qkv_projection/parameters", (double)(3 * d_in * d_k * heads));
    }
    doc_add_table(doc, "parameters",
                  doc_text(doc, "一层里三个 W 有多少个可学的数", "How many numbers the three W of a layer can learn"), MODELS,
                  5, head, cells);
    doc_summary(doc, "不含偏置和输出投影 W_o。H·d_k 常等于 d_in，于是是 3·d_in²。",
                "Without biases and the output projection W_o. H·d_k is often d_in, which makes it 3·d_in².");
}

static mat show_number(lesson *lesson, const char *id, const char *title, const char *symbol, mat number, int64_t most) {
    doc_matrix *shown = lesson_show(lesson, id, title, symbol, DOC_ROLE_PLAIN, number, NULL, NULL);
    lesson_scale(shown, 1, (double)most); /* how far a slider goes */
    shown->decimals = 0;
    shown->is_ledger = true;
    return number;
}

/* The count for any sizes: numbers that a page lets one change, and their product. */
static void show_any_count(lesson *lesson, int64_t dim_k) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    doc_say(doc, "别的大小呢？在网页上，在下面展开“如果换个数？”，换掉 d_in、d_k 和头数。",
            "And with other sizes? On a page, open “What if?” below and change d_in, d_k and the number of heads.");
    const mat d_in = show_number(lesson, "d_in", doc_text(doc, "词向量的宽度", "Width of a word"), "d_in",
                                 mat_of(arena, 1, 1, (const double[]){DIM}), 12288),
              d_k = show_number(lesson, "d_k", doc_text(doc, "一个头的宽度", "Width of a head"), "d_k",
                                mat_of(arena, 1, 1, (const double[]){(double)dim_k}), 256),
              heads = show_number(lesson, "heads", doc_text(doc, "头数", "Heads"), "H",
                                  mat_of(arena, 1, 1, (const double[]){1}), 128);
    const mat one = lesson_product(lesson, d_in, d_k);
    show_number(lesson, "one-head", doc_text(doc, "一个头的一个 W", "One W of one head"), "d_in·d_k", one, 1);
    lesson_derive(doc->last->matrix, DOC_RULE_PRODUCT, "d_in", "d_k", 1);
    mat all = lesson_product(lesson, one, heads);
    all.at[0] *= 3;
    show_number(lesson, "count", doc_text(doc, "三个 W、所有的头", "Three W, all heads"), "3·d_in·d_k·H", all, 1);
    lesson_derive(doc->last->matrix, DOC_RULE_PRODUCT, "one-head", "heads", 3);
    doc_summary(doc, "3·%d·%lld·1 = %s。", "3·%d·%lld·1 = %s.", DIM, (long long)dim_k,
                lesson_count(lesson, (int64_t)all.at[0]));
}

void lesson_qkv(lesson *lesson) {
    static const lesson_word own[WORDS] = {
        {"The", "这", NULL}, {"next", "下一", NULL}, {"day", "天", NULL}, {"is", "是", NULL}, {"bright", "明亮", NULL}};
    static const struct {
        const char *id, *weight, *w, *symbol;
        doc_role role;
    } parts[] = {
        {"q", "w_q", "W_q", "Q", DOC_ROLE_Q}, {"k", "w_k", "W_k", "K", DOC_ROLE_K}, {"v", "w_v", "W_v", "V", DOC_ROLE_V}};
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const lesson_words words = lesson_take_words(lesson, own, WORDS);
    const uint32_t seed = (uint32_t)lesson_integer(lesson->parameters.seed, SEED);
    const int64_t dim_k = lesson_integer(lesson->parameters.dim, DIM_K);
    mat w[3], out[3];
    numpy_random random;
    numpy_seed(&random, seed);
    const mat x = mat_rand_rounded(arena, &random, words.count, DIM);
    for (int i = 0; i < 3; i++) w[i] = mat_randn(arena, &random, DIM, dim_k, 0.5);
    lesson_project(lesson, x, w[0], w[1], w[2], &out[0], &out[1], &out[2]);

    doc_say(doc, "同一个 X，过三副眼镜：W_q 读出“我想找什么”，W_k 读出“我是什么”，W_v 读出“我给什么”。",
            "One X seen through three pairs of glasses: W_q reads what a word looks for, W_k what it is, W_v what it gives.");
    lesson_introduce_words(lesson, words, "第二天很明亮", "The next day is bright");
    if (words.own)
        lesson_say_words(lesson, words, seed);
    else
        doc_say(doc, "词向量和权重都是随机数（种子 %u），没有训练过：算法是真的，数里没有词义。",
                "Vectors and weights are random numbers (seed %u) and were never trained: the arithmetic is real, the numbers "
                "have no "
                "meaning.",
                seed);
    doc_formula(doc, "Q = X·W_q        K = X·W_k        V = X·W_v");
    doc_say(doc, "n 是词数，d_in 是一个词的宽度（几个数），d_k 是 q 和 k 的宽度，d_v 是 v 的宽度，H 是头数。",
            "n is the number of words, d_in the width of a word (how many numbers), d_k the width of q and k, d_v that of v, H "
            "the number of heads.");
    doc_ask(doc,
            doc_text(doc, "X 是 (%lld, %d)，W 是 (%d, %lld)。Q 是几行几列？",
                     "X is (%lld, %d) and W is (%d, %lld). What is the shape of Q?", (long long)words.count, DIM, DIM,
                     (long long)dim_k),
            doc_text(doc, "(%lld, %lld)：中间的 %d 消掉了。", "(%lld, %lld): the %d in the middle is gone.",
                     (long long)words.count, (long long)dim_k, DIM));
    lesson_show(lesson, "x", doc_text(doc, "词向量 X", "Word vectors X"), "X", DOC_ROLE_X, x, words.labels, NULL);
    for (int i = 0; i < 3; i++) {
        doc_step(doc, "X·%s：每一行换一种读法。", "X·%s: each row, read anew.", parts[i].w);
        lesson_show(lesson, parts[i].weight, doc_text(doc, "权重 %s（种子 %u）", "Weights %s (seed %u)", parts[i].w, seed),
                    parts[i].w, parts[i].role, w[i], NULL, NULL);
        lesson_derive(lesson_show(lesson, parts[i].id, arena_format(arena, "%s = X·%s", parts[i].symbol, parts[i].w),
                                  parts[i].symbol, parts[i].role, out[i], words.labels, NULL),
                      DOC_RULE_PRODUCT, "x", parts[i].weight, 1);
        figures_mat(&lesson->figures, arena_format(arena, "qkv_projection/%s", parts[i].symbol), out[i]);
    }
    lesson_share_scale(lesson, "w_q", "w_k", "w_v", NULL);
    lesson_share_scale(lesson, "q", "k", "v", NULL);
    doc_say(doc, "看%s这个词的三种读数：q、k、v 全不一样，虽然它们出自同一行 X。",
            "Look at the three readings of %s: q, k and v all differ, although they come from the same row of X.",
            lesson_quote(lesson, words.at[0]));
    doc_step(doc, "记账。", "The books.");
    show_ledger(lesson, words.count, dim_k);
    show_parameters(lesson, dim_k);
    show_any_count(lesson, dim_k);
    figures_number(&lesson->figures, "qkv_projection/seed", seed);
    figures_texts(&lesson->figures, "qkv_projection/words", words.count, words.at);
    figures_mat(&lesson->figures, "qkv_projection/X", x);
    doc_correct(
        doc, doc_text(doc, "有 W_q 就够了，W_k 多余。", "W_q is enough, W_k is superfluous."),
        doc_text(doc,
                 "共用一个矩阵，打分就对称了：甲给乙打多少分，乙就给甲打多少分（权重仍会不同，softmax "
                 "是逐行的）。可“它”要给“球”高分，“球”不必给“它”高分。",
                 "With one matrix for both, scores are symmetric: a gives b the score that b gives a (weights may still "
                 "differ, for softmax goes row by row). But “it” should score “ball” high, and “ball” need not score "
                 "“it” high."));
}
