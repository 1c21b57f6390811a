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
    show(lesson, "global", "exp(s − 102) / Σ exp(s − 102)", global, labels);
    doc_summary(doc, "大的一行好了；小的一行 exp(−120) 下溢成 0，0 / 0 又是 NaN。",
                "The large row is cured; in the small one exp(−120) underflows to 0, and 0 / 0 is NaN again.");
    doc_step(doc, "每一行减自己的最大值：程序库的做法。", "Subtract each row's own maximum: what the library does.");
    show(lesson, "safe", "exp(s − max) / Σ exp(s − max)", safe, labels);
    doc_summary(doc, "两行得到同样的权重：加减一个常数不改变 softmax，只有差别算数。",
                "Both rows get the same weights: a constant changes nothing in softmax, only differences count.");
    figures_mat(&lesson->figures, "softmax/naive", naive);
    figures_mat(&lesson->figures, "softmax/one_maximum_for_all", global);
    figures_mat(&lesson->figures, "softmax/safe", safe);
}

/* ---- online -------------------------------------------------------------------------------------------------------- */

/* What is kept between tiles. */
typedef struct running {
    double max, sum, out; /* out: the sum of values that have their part of `sum` */
} running;

enum { COLUMNS = 5 };

static double kept_part(const running *state, int tile) {
    return tile > 0 ? exp(state[tile - 1].max - state[tile].max) : 0;
}

/* What happens at a tile: in numbers, before its row. */
static const char *tell_tile(const doc *doc, const running *state, int tile, const float *s, const float *v) {
    if (tile == 0)
        return doc_text(doc, "打分 %g、%g，值 %g、%g。还没有旧账：m = %g。",
                        "Scores %g and %g, values %g and %g. There is nothing old: m = %g.", s[0], s[1], v[0], v[1],
                        state[0].max);
    const double factor = kept_part(state, tile);
    if (factor == 1)
        return doc_text(
            doc, "打分 %g、%g，值 %g、%g。最大值还是 %g，旧账不变，加上新的。",
            "Scores %g and %g, values %g and %g. The maximum stays %g, the old sums stay, and the new ones are added.", s[0],
            s[1], v[0], v[1], state[tile].max);
    return doc_text(
        doc, "打分 %1$g、%2$g，值 %3$g、%4$g。最大值从 %6$g 变成 %5$g，旧账乘 exp(%6$g − %5$g) = %7$.4f，加上新的。",
        "Scores %1$g and %2$g, values %3$g and %4$g. The maximum goes from %6$g to %5$g, the old sums are multiplied by "
        "exp(%6$g − %5$g) = %7$.4f, and the new ones are added.",
        s[0], s[1], v[0], v[1], state[tile].max, state[tile - 1].max, factor);
}

static void show_tiles(lesson *lesson, const running *state, mat scores, mat v, double whole) {
    doc *doc = &lesson->doc;
    const char *const columns[COLUMNS] = {"m", doc_text(doc, "旧账乘", "old sums ×"), "l", "o", "o / l"};
    const char **rows = ARENA_NEW(&lesson->arena, const char *, TILES), *captions[TILES];
    mat accounts = mat_new(&lesson->arena, TILES, COLUMNS);
    for (int t = 0; t < TILES; t++) {
        const double row[COLUMNS] = {state[t].max, kept_part(state, t), state[t].sum, state[t].out,
                                     state[t].out / state[t].sum};
        for (int c = 0; c < COLUMNS; c++) accounts.at[t * COLUMNS + c] = (float)row[c];
        rows[t] = doc_text(doc, "第 %d 块", "tile %d", t + 1);
        captions[t] = tell_tile(doc, state, t, scores.at + t * TILE, v.at + t * TILE);
    }
    doc_matrix *shown = lesson_show(
        lesson, "tiles",
        doc_text(doc, "一块一块来，只记三个数：m、l、o", "Tile by tile, with three numbers in mind: m, l and o"), "m, l, o",
        DOC_ROLE_PLAIN, accounts, rows, arena_grow(&lesson->arena, columns, sizeof columns, sizeof columns));
    shown->decimals = 4;
    shown->is_ledger = true;
    doc_grow(doc, shown, DOC_BY_ROW, captions);
    doc_summary(doc, "最后一块之后 o / l = %.4f；程序库一次看完全部键得到 %.4f。从没有存过整行权重。",
                "After the last tile o / l is %.4f; the library, over all keys at once, says %.4f. No row of weights was ever "
                "stored.",
                state[TILES - 1].out / state[TILES - 1].sum, whole);
}

static void run_tiles(mat scores, mat v, running state[TILES]) {
    running now = {-INFINITY, 0, 0};
    for (int t = 0; t < TILES; t++) {
        const float *s = scores.at + t * TILE, *content = v.at + t * TILE;
        double max = now.max;
        for (int j = 0; j < TILE; j++) max = fmax(max, s[j]);
        const double factor = exp(now.max - max);
        now = (running){max, now.sum * factor, now.out * factor};
        for (int j = 0; j < TILE; j++) {
            const double part = exp(s[j] - max);
            now.sum += part;
            now.out += part * content[j];
        }
        state[t] = now;
    }
}

static void show_keys(lesson *lesson, mat scores, mat v) {
    doc *doc = &lesson->doc;
    const char **keys = ARENA_NEW(&lesson->arena, const char *, KEYS);
    for (int j = 0; j < KEYS; j++) keys[j] = doc_text(doc, "%d·%d", "%d·%d", j / TILE + 1, j % TILE + 1);
    doc_matrix *s =
        lesson_show(lesson, "keys", doc_text(doc, "一个查询对 %d 个键的打分", "One query's scores of %d keys", KEYS), "s",
                    DOC_ROLE_SCORES, scores, NULL, keys);
    s->decimals = 1;
    s->col_axis = doc_text(doc, "块·键", "tile·key");
    doc_matrix *values =
        lesson_show(lesson, "contents", doc_text(doc, "这些键的值，各一个数", "The keys' values, a number each"), "v",
                    DOC_ROLE_V, mat_transposed(&lesson->arena, v), NULL, keys);
    values->decimals = 0;
    values->col_axis = s->col_axis;
}

static void show_online(lesson *lesson) {
    static const double values[KEYS] = {1, 0.5, 3, 2, -1, 5, 4, 0}, contents[KEYS] = {1, 2, 3, 4, 5, 6, 7, 8};
    doc *doc = &lesson->doc;
    const mat scores = mat_of(&lesson->arena, 1, KEYS, values), v = mat_of(&lesson->arena, KEYS, 1, contents);
    const double whole = attend_to_scores(lesson, scores, v).out.at[0];
    running state[TILES];
    run_tiles(scores, v, state);
    doc_step(doc, "在线 softmax：键一块一块到来，每块 %d 个，看过就丢。",
             "Online softmax: keys arrive in tiles of %d, and are gone afterwards.", TILE);
    show_keys(lesson, scores, v);
    doc_say(
        doc,
        "只记三个数：m，到现在为止最大的打分；l，exp(s − m) 的和；o，这些 exp(s − m) 乘上各自的值 v 的和。m′ "
        "是看过这一块之后的 m：如果"
        "变大了，旧的两笔账都乘上 exp(m − m′)。答案随时都是 o / l。",
        "Three numbers are kept: m, the largest score so far; l, the sum of exp(s − m); o, the sum of those, each times its "
        "value v. m′ is what m becomes with a tile: where it is larger, both old sums are multiplied by exp(m − m′). The "
        "answer is o / l at any time.");
    doc_formula(doc, "m′ = max(m, s)        l ← l·exp(m − m′) + Σ exp(s − m′)");
    doc_formula(doc, "o ← o·exp(m − m′) + Σ exp(s − m′)·v        m ← m′");
    show_tiles(lesson, state, scores, v, whole);
    figures_number(&lesson->figures, "softmax/online", state[TILES - 1].out / state[TILES - 1].sum);
    figures_number(&lesson->figures, "softmax/whole", whole);
}

void lesson_softmax(lesson *lesson) {
    doc *doc = &lesson->doc;
    doc_say(doc, "softmax 把一行打分变成比例。公式很短，照着写却会算出 NaN。",
            "Softmax turns a row of scores into shares. The formula is short, and written down as it is it ends in NaN.");
    doc_formula(doc, "a_j = exp(s_j) / Σ_k exp(s_k)");
    doc_ask(doc,
            doc_text(doc, "打分 100、101、102 和 −20、−19、−18，softmax 一样吗？",
                     "Scores 100, 101, 102 and −20, −19, −18: is the softmax the same?"),
            doc_text(doc, "一样：差别相同。照公式直接算，前一行却是 NaN。",
                     "It is: the differences are. Straight from the formula, though, the first row is NaN."));
    show_forms(lesson);
    show_online(lesson);
    doc_correct(doc, doc_text(doc, "减最大值是近似。", "Subtracting the maximum is an approximation."),
                doc_text(doc, "分子分母同乘 exp(−max)，一点没变。变的是中间的数装不装得下。",
                         "It multiplies numerator and denominator by exp(−max) and changes nothing, except whether the "
                         "numbers in between fit."));
}
