/* What a query may not see: the triangle, padding, and two ways to hide.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "courses.h"
#include "sentence.h"

static void name_axes(const doc *doc, doc_matrix *matrix) {
    matrix->row_axis = doc_text(doc, "谁在看", "who looks");
    matrix->col_axis = doc_text(doc, "看谁", "at whom");
}

static void show_causal(lesson *lesson, const sentence *s) {
    doc *doc = &lesson->doc;
    const char *const *words = s->words.at, *const *labels = s->words.labels;
    lesson_attention open = {.q = s->q, .k = s->k, .v = s->v},
                     causal = {.q = s->q, .k = s->k, .v = s->v, .causal = true, .form = CLATTN_SCORES_BIAS};
    lesson_attend(lesson, &open);
    lesson_attend(lesson, &causal);
    doc_step(doc, "softmax 之前：后面的词的打分换成 −∞（图中的点）。",
             "Before softmax: scores of later words become −∞ (the dots).");
    doc_matrix *before = lesson_show(lesson, "open", doc_text(doc, "没有掩码的打分", "Scores without a mask"), "S",
                                     DOC_ROLE_SCORES, open.scores, labels, words);
    name_axes(doc, before);
    doc_matrix *scores = lesson_show(lesson, "scores", doc_text(doc, "因果掩码后的打分", "Scores under the causal mask"), "S",
                                     DOC_ROLE_SCORES, causal.scores, labels, words);
    lesson_share_scale(lesson, "open", "scores", NULL);
    lesson_mask_causal(lesson, scores);
    name_axes(doc, scores);
    doc_step(doc, "softmax 之后：看不见的词权重是 0，看得见的分掉全部。",
             "After softmax: what is hidden weighs 0, and what is seen shares all.");
    doc_matrix *weights = lesson_show(lesson, "weights", doc_text(doc, "因果权重", "Causal weights"), "A", DOC_ROLE_WEIGHTS,
                                      causal.weights, labels, words);
    lesson_derive(weights, DOC_RULE_SOFTMAX, "scores", NULL, 1);
    lesson_scale(weights, 0, 1);
    name_axes(doc, weights);
    doc_grow(doc, weights, DOC_BY_ROW, NULL);
    doc_summary(
        doc, "第一行只有自己：1.00。越往下越分散，每一行仍然加起来是 1。",
        "The first row has itself alone: 1.00. Further down there are more to share with, and each row still adds up to 1.");
    figures_mat(&lesson->figures, "word_vectors/causal_weights", causal.weights);
}

/* Attention when `hidden` keys of every query are hidden by adding `value`. */
static lesson_attention hide(lesson *lesson, const sentence *s, int64_t hidden, float value) {
    lesson_attention a = {.q = s->q, .k = s->k, .v = s->v, .bias = mat_new(&lesson->arena, s->x.rows, s->x.rows)};
    for (int64_t i = 0; i < s->x.rows; i++)
        for (int64_t j = s->x.rows - hidden; j < s->x.rows; j++) a.bias.at[i * s->x.rows + j] = value;
    lesson_attend(lesson, &a);
    return a;
}

/* Softmax of a row by its formula, in f32: exp(s - max) over its sum. The library's own knows rows of which nothing is left. */
static void write_by_formula(const float *scores, float *weights, int64_t n) {
    float max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) max = fmaxf(max, scores[j]);
    for (int64_t j = 0; j < n; j++) sum += weights[j] = expf(scores[j] - max);
    for (int64_t j = 0; j < n; j++) weights[j] /= sum;
}

static void show_hiding(lesson *lesson, const sentence *s) {
    enum { ROWS = 5, BY_FORMULA = 3 };
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const int64_t n = s->x.rows, padding = n > 1 ? n / 3 + 1 < n ? n / 3 + 1 : n - 1 : 0;
    const struct {
        const char *label;
        int64_t hidden;
        float value;
    } ways[ROWS] = {{doc_text(doc, "藏末尾，−10⁹", "last ones, −10⁹"), padding, -1e9f},
                    {doc_text(doc, "藏末尾，−∞", "last ones, −∞"), padding, -INFINITY},
                    {doc_text(doc, "全藏，−10⁹", "all, −10⁹"), n, -1e9f},
                    {doc_text(doc, "全藏，−∞，按公式", "all, −∞, by formula"), n, -INFINITY},
                    {doc_text(doc, "全藏，−∞，程序库", "all, −∞, by library"), n, -INFINITY}};
    mat rows = mat_new(arena, ROWS, n);
    const char **labels = ARENA_NEW(arena, const char *, ROWS);
    for (int w = 0; w < ROWS; w++) {
        const lesson_attention a = hide(lesson, s, ways[w].hidden, ways[w].value);
        labels[w] = ways[w].label;
        for (int64_t j = 0; j < n; j++) rows.at[w * n + j] = a.weights.at[j];
        if (w == BY_FORMULA) write_by_formula(a.bias.at, rows.at + w * n, n); /* −∞ + a score is −∞ */
    }
    doc_step(doc, "藏一个词，加 −10⁹ 还是 −∞？先藏%s，再全藏起来。", "To hide a word, add −10⁹ or −∞? First hide %s, then all.",
             padding > 0 ? doc_text(doc, "末尾 %lld 个词（填充）", "the last %lld of the words (padding)", (long long)padding)
                         : doc_text(doc, "零个（只有一个词，没有末尾可藏）", "none (a single word has no end to hide)"));
    doc_matrix *map =
        lesson_show(lesson, "hiding", doc_text(doc, "%s的权重", "Weights of %s", lesson_quote(lesson, s->words.at[0])), "A",
                    DOC_ROLE_WEIGHTS, rows, labels, s->words.at);
    lesson_scale(map, 0, 1);
    map->row_axis = doc_text(doc, "怎样藏", "how");
    map->col_axis = doc_text(doc, "看谁", "at whom");
    doc_summary(doc,
                "还剩看得见的词时，两种一样。全藏时，−10⁹ 淹没了打分，softmax 平分出每个 %.2f：看不见的词全被看见了。−∞ "
                "按公式是 NaN：最大值也是 −∞，而 −∞ − (−∞) "
                "不是数（这一行由本课自己算，其余由程序库算）。程序库约定：谁也看不见的词，权重是 0，输出也是 0。",
                "While something is left to see, both do the same. With all hidden, −10⁹ drowns the scores and softmax "
                "shares out %.2f each: all that was hidden is seen. With −∞ the formula gives NaN: the maximum is −∞, too, "
                "and −∞ − (−∞) is no number (this row is computed by the lesson itself, the others by the library). The "
                "library has a convention: a word that sees nobody has weights of 0 and an "
                "output of 0.",
                mat_at(rows, 2, 0));
    figures_array(&lesson->figures, "mask/all_hidden_finite", n, mat_doubles(arena, mat_block(arena, rows, 2, 1, 0, n)));
    figures_array(&lesson->figures, "mask/all_hidden_by_formula", n,
                  mat_doubles(arena, mat_block(arena, rows, BY_FORMULA, 1, 0, n)));
    figures_array(&lesson->figures, "mask/all_hidden_infinite", n, mat_doubles(arena, mat_block(arena, rows, 4, 1, 0, n)));
}

void lesson_mask(lesson *lesson) {
    doc *doc = &lesson->doc;
    const sentence s = sentence_make(lesson);
    doc_say(doc, "写下一个词时，后面的词还不存在，训练时也不许偷看。掩码就是把不许看的打分变成 −∞，让 softmax 给它 0。",
            "When the next word is written, those after it do not exist yet, and training may not peek at them. A mask "
            "turns the scores that must not be seen into −∞, which softmax turns into 0.");
    sentence_introduce(lesson, &s);
    doc_say(doc, "Q、K、V 和%s里的一样，W 是种子 %u 的随机数。",
            "Q, K and V are those of %s; the W are random numbers of seed %u.", lesson_refer(lesson, "word-vectors"), s.seed);
    doc_formula(doc, "S(i, j) = −∞ , j > i        A = softmax(S)");
    doc_say(doc, "行 i 是正在看的词，列 j 是被看的词；j > i 就是排在它后面。",
            "Row i is the word that looks, column j the word looked at; j > i means that it comes later.");
    doc_ask(doc, doc_text(doc, "在因果掩码下，第一个词能看到谁？", "Under the causal mask, whom does the first word see?"),
            doc_text(doc, "只有自己，所以权重是 1。", "Itself alone, so the weight is 1."));
    show_causal(lesson, &s);
    show_hiding(lesson, &s);
    doc_correct(doc, doc_text(doc, "填充掩码和因果掩码是一回事。", "The padding mask and the causal mask are the same thing."),
                doc_text(doc, "填充掩码藏的是列：每个词都看不见用来补齐的假词。因果掩码藏的是三角：每个词看不见自己后面的。",
                         "Padding hides columns: nobody sees the filler, which is no word. The causal mask hides a triangle: "
                         "each word misses what comes after it."));
}
