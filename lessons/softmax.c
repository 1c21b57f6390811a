/* Softmax: overflow, the safe form, one maximum too few, and how the fused kernel goes tile by tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "compute.h"
#include "courses.h"

enum { ROWS = 2, COLS = 3, KEYS = 8, TILE = 2, TILES = KEYS / TILE };

/* Wrong on purpose, as one would write it first: exp(x - shift) over its sum, in f32 like the library. */
static mat softmax_shifted(lesson *lesson, mat scores, const float *shifts) {
    mat weights = mat_new(&lesson->arena, scores.rows, scores.cols);
    for (int64_t i = 0; i < scores.rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < scores.cols; j++) sum += expf(mat_at(scores, i, j) - shifts[i]);
        for (int64_t j = 0; j < scores.cols; j++)
            weights.at[i * scores.cols + j] = expf(mat_at(scores, i, j) - shifts[i]) / sum;
    }
    return weights;
}

/* Right: the operator, with the scores as the bias of queries and keys of 0. */
static lesson_attention attend_to_scores(lesson *lesson, mat scores, mat v) {
    lesson_attention a = {
        .q = mat_new(&lesson->arena, scores.rows, 1), .k = mat_new(&lesson->arena, scores.cols, 1), .v = v, .bias = scores};
    lesson_attend(lesson, &a);
    return a;
}

static void show(lesson *lesson, const char *id, const char *title, mat weights, const char *const *rows) {
    doc_matrix *shown = lesson_show(lesson, id, title, "A", DOC_ROLE_WEIGHTS, weights, rows, NULL);
    lesson_derive(shown, DOC_RULE_SOFTMAX, "scores", NULL, 1);
    lesson_scale(shown, 0, 1);
    shown->decimals = 3;
}

static void show_forms(lesson *lesson) {
    static const double values[ROWS * COLS] = {100, 101, 102, -20, -19, -18};
    doc *doc = &lesson->doc;
    const mat scores = mat_of(&lesson->arena, ROWS, COLS, values);
    const char *const rows[] = {doc_text(doc, "大打分", "large"), doc_text(doc, "小打分", "small")};
    const char **labels = arena_grow(&lesson->arena, rows, sizeof rows, sizeof rows);
    const float none[ROWS] = {0, 0}, whole[ROWS] = {102, 102};
    const mat naive = softmax_shifted(lesson, scores, none), global = softmax_shifted(lesson, scores, whole);
    const mat safe = attend_to_scores(lesson, scores, (mat){0}).weights;
    doc_step(doc, "照公式直接算，单精度。", "Straight from the formula, in single precision.");
    lesson_show(lesson, "scores", doc_text(doc, "打分", "Scores"), "S", DOC_ROLE_SCORES, scores, labels, NULL)->decimals = 0;
    show(lesson, "naive", "exp(s) / Σ exp(s)", naive, labels);
    doc_summary(doc, "exp(100) 超过单精度的最大数 3.4e38，变成 inf；inf / inf 是 NaN，整行报废。",
                "exp(100) is beyond single precision's 3.4e38 and becomes inf; inf / inf is NaN, and the row is lost.");
    doc_step(doc, "整个矩阵只减一个最大值 102：常见的疏忽。",
             "Subtract one maximum, 102, from the whole matrix: a common slip.");
    show(lesson, "global", "exp(s - 102) / Σ exp(s - 102)", global, labels);
    doc_summary(doc, "大的一行好了；小的一行 exp(-120) 下溢成 0，0 / 0 又是 NaN。",
                "The large row is cured; in the small one exp(-120) underflows to 0, and 0 / 0 is NaN again.");
    doc_step(doc, "每一行减自己的最大值：程序库的做法。", "Subtract each row's own maximum: what the library does.");
    show(lesson, "safe", "exp(s - max) / Σ exp(s - max)", safe, labels);
    doc_summary(doc, "两行得到同样的权重：加减一个常数不改变 softmax，只有差别算数。",
                "Both rows get the same weights: a constant changes nothing in softmax, only differences count.");
    figures_mat(&lesson->figures, "softmax/naive", naive);
    figures_mat(&lesson->figures, "softmax/one_maximum_for_all", global);
    figures_mat(&lesson->figures, "softmax/safe", safe);
}

/* ---- online -------------------------------------------------------------------------------------------------------- */

typedef struct running {
    double max, sum, out; /* after each tile */
} running;

enum { COLUMNS = 4 };

static void show_tiles(lesson *lesson, const running *state, mat scores, double whole) {
    doc *doc = &lesson->doc;
    const char *const columns[COLUMNS] = {doc_text(doc, "最大值 m", "maximum m"), doc_text(doc, "旧账乘", "old times"),
                                          doc_text(doc, "和 l", "sum l"), doc_text(doc, "输出", "output")};
    const char **rows = ARENA_NEW(&lesson->arena, const char *, TILES), *captions[TILES];
    mat accounts = mat_new(&lesson->arena, TILES, COLUMNS);
    for (int t = 0; t < TILES; t++) {
        const double kept = t > 0 ? exp(state[t - 1].max - state[t].max) : 0;
        const double row[COLUMNS] = {state[t].max, kept, state[t].sum, state[t].out};
        for (int c = 0; c < COLUMNS; c++) accounts.at[t * COLUMNS + c] = (float)row[c];
        rows[t] = doc_text(doc, "第 %d 块", "tile %d", t + 1);
        captions[t] = doc_text(doc, "来了 %g 和 %g：最大值是 %g，旧账乘 %.4f，再加上新的。",
                               "%g and %g arrive: the maximum is %g, the old sums times %.4f, then the new ones.",
                               scores.at[t * TILE], scores.at[t * TILE + 1], state[t].max, kept);
    }
    doc_matrix *shown = lesson_show(
        lesson, "tiles", doc_text(doc, "一块一块来，只记三个数", "Tile by tile, with three numbers in mind"), "m, l",
        DOC_ROLE_PLAIN, accounts, rows, arena_grow(&lesson->arena, columns, sizeof columns, sizeof columns));
    shown->decimals = 4;
    doc_grow(doc, shown, DOC_BY_ROW, captions);
    doc_summary(doc, "最后一块之后的输出是 %.4f；程序库一次看完全部键得到 %.4f。从没有存过整行权重。",
                "After the last tile the output is %.4f; the library, over all keys at once, says %.4f. No row of weights "
                "was ever stored.",
                state[TILES - 1].out, whole);
}

static void show_online(lesson *lesson) {
    static const double values[KEYS] = {1, 0.5, 3, 2, -1, 5, 4, 0}, contents[KEYS] = {1, 2, 3, 4, 5, 6, 7, 8};
    doc *doc = &lesson->doc;
    const mat scores = mat_of(&lesson->arena, 1, KEYS, values), v = mat_of(&lesson->arena, KEYS, 1, contents);
    running state[TILES], now = {-INFINITY, 0, 0};
    for (int t = 0; t < TILES; t++) {
        double max = now.max;
        for (int j = 0; j < TILE; j++) max = fmax(max, scores.at[t * TILE + j]);
        const double kept = now.sum * exp(now.max - max);
        double sum = kept, out = kept * now.out;
        for (int j = 0; j < TILE; j++) {
            const double part = exp(scores.at[t * TILE + j] - max);
            sum += part;
            out += part * v.at[t * TILE + j];
        }
        state[t] = now = (running){max, sum, out / sum};
    }
    const double whole = attend_to_scores(lesson, scores, v).out.at[0];
    doc_step(doc, "在线 softmax：键一块一块到来。遇到更大的最大值，就把旧账乘上 exp(旧 m - 新 m)。",
             "Online softmax: keys arrive in tiles. When a larger maximum turns up, the old sums are multiplied by "
             "exp(old m - new m).");
    doc_formula(doc, "l ← l·exp(m - m') + Σ exp(s - m')        m' = max(m, s)");
    show_tiles(lesson, state, scores, whole);
    figures_number(&lesson->figures, "softmax/online", state[TILES - 1].out);
    figures_number(&lesson->figures, "softmax/whole", whole);
}

void lesson_softmax(lesson *lesson) {
    doc *doc = &lesson->doc;
    doc_say(doc, "softmax 把一行打分变成比例。公式很短，照着写却会算出 NaN。",
            "Softmax turns a row of scores into shares. The formula is short, and written down as it is it ends in NaN.");
    doc_formula(doc, "softmax(s)_j = exp(s_j) / Σ_k exp(s_k)");
    doc_ask(doc,
            doc_text(doc, "打分 100、101、102 和 -20、-19、-18，softmax 一样吗？",
                     "Scores 100, 101, 102 and -20, -19, -18: is the softmax the same?"),
            doc_text(doc, "一样：差别相同。照公式直接算，前一行却是 NaN。",
                     "It is: the differences are. Straight from the formula, though, the first row is NaN."));
    show_forms(lesson);
    show_online(lesson);
    doc_correct(doc, doc_text(doc, "减最大值是近似。", "Subtracting the maximum is an approximation."),
                doc_text(doc, "分子分母同乘 exp(-max)，一点没变。变的是中间的数装不装得下。",
                         "It multiplies numerator and denominator by exp(-max) and changes nothing, except whether the "
                         "numbers in between fit."));
}
