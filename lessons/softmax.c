/* Softmax: overflow, the safe form, one maximum too few, and how the fused kernel goes tile by tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "compute.h"
#include "courses.h"

enum { ROWS = 2, COLS = 3, KEYS = 8, TILE = 2, TILES = KEYS / TILE };

/* Wrong on purpose, as one would write it first: exp(x - shift) over its sum, in f32 like the library, which has no such form.
 */
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
    doc_step(
        doc, "照公式直接算，单精度。程序库没有这种写法，这张图和下一张由本课自己算。",
        "Straight from the formula, in single precision. The library has no such form: this map and the next are computed by "
        "the lesson itself.");
    lesson_show(lesson, "scores", doc_text(doc, "打分 S", "Scores S"), "S", DOC_ROLE_SCORES, scores, labels, NULL)->decimals =
        0;
    show(lesson, "naive", "exp(s) / Σ exp(s)", naive, labels);
    doc_summary(doc, "exp(100) 超过单精度的最大数 3.4e38，变成 inf；inf / inf 是 NaN，整行报废。",
                "exp(100) is beyond single precision's 3.4e38 and becomes inf; inf / inf is NaN, and the row is lost.");
    doc_step(doc, "整个矩阵只减一个最大值 102：常见的疏忽。",
             "Subtract one maximum, 102, from the whole matrix: a common slip.");
    show(lesson, "global", "exp(s − 102) / Σ exp(s − 102)", global, labels);
    doc_summary(doc, "大的一行好了；小的一行 exp(−120) 下溢成 0，0 / 0 又是 NaN。",
                "The large row is cured; in the small one exp(−120) underflows to 0, and 0 / 0 is NaN again.");
    doc_step(doc, "每一行减自己的最大值：程序库的做法，这张图由它算。",
             "Subtract each row's own maximum: what the library does, and this map is its.");
    show(lesson, "safe", "exp(s − max) / Σ exp(s − max)", safe, labels);
    doc_summary(doc, "两行得到同样的权重：加减一个常数不改变 softmax，只有差别算数。",
                "Both rows get the same weights: a constant changes nothing in softmax, only differences count.");
    figures_mat(&lesson->figures, "softmax/naive", naive);
    figures_mat(&lesson->figures, "softmax/one_maximum_for_all", global);
    figures_mat(&lesson->figures, "softmax/safe", safe);
}

/* ---- online -------------------------------------------------------------------------------------------------------- */

enum { COLUMNS = 6, STATES = TILES + 1 };

/* What is known after some of the tiles: z and lse from the library; m, the largest score so far, is looked up. */
typedef struct running {
    double max, z, lse;
} running;

/* lse = m + log ℓ, and z = acc / ℓ. */
static double sum_of(const running *state) {
    return exp(state->lse - state->max);
}

static double kept_part(const running *state, int tile) {
    return exp(state[tile - 1].max - state[tile].max);
}

/* Attention over one tile of keys after another, each merged by the library with what there was. */
static void run_tiles(lesson *lesson, mat scores, mat v, running state[STATES]) {
    arena *arena = &lesson->arena;
    lesson_partial known = {mat_new(arena, 1, 1), mat_new(arena, 1, 1)};
    known.lse.at[0] = -INFINITY; /* nothing yet */
    state[0] = (running){-INFINITY, 0, -INFINITY};
    for (int t = 0; t < TILES; t++) {
        const mat tile = mat_block(arena, scores, 0, 1, t * TILE, TILE);
        const lesson_attention a = attend_to_scores(lesson, tile, mat_block(arena, v, t * TILE, TILE, 0, 1));
        known = lesson_merge(lesson, known, (lesson_partial){a.out, a.lse});
        state[t + 1] = (running){state[t].max, known.out.at[0], known.lse.at[0]};
        for (int j = 0; j < TILE; j++) state[t + 1].max = fmax(state[t + 1].max, tile.at[j]);
    }
}

/* What happens at a tile: in numbers, before its row. */
static const char *tell_tile(const doc *doc, const running *state, int tile, const float *s, const float *v) {
    const double max = state[tile].max, factor = kept_part(state, tile);
    if (tile == 1)
        return doc_text(
            doc, "打分 %1$g、%2$g，值 %3$g、%4$g。m 从 −∞ 变成 %5$g，旧账乘 exp(−∞ − %5$g) = 0：开头不用另写规则。",
            "Scores %1$g and %2$g, values %3$g and %4$g. m goes from −∞ to %5$g, and the old sums are multiplied by "
            "exp(−∞ − %5$g) = 0: the beginning needs no rule of its own.",
            s[0], s[1], v[0], v[1], max);
    if (factor == 1)
        return doc_text(
            doc, "打分 %g、%g，值 %g、%g。最大值还是 %g，旧账不变，加上新的。",
            "Scores %g and %g, values %g and %g. The maximum stays %g, the old sums stay, and the new ones are added.", s[0],
            s[1], v[0], v[1], max);
    return doc_text(
        doc, "打分 %1$g、%2$g，值 %3$g、%4$g。最大值从 %6$g 变成 %5$g，旧账乘 exp(%6$g − %5$g) = %7$.4f，加上新的。",
        "Scores %1$g and %2$g, values %3$g and %4$g. The maximum goes from %6$g to %5$g, the old sums are multiplied by "
        "exp(%6$g − %5$g) = %7$.4f, and the new ones are added.",
        s[0], s[1], v[0], v[1], max, state[tile - 1].max, factor);
}

/* A row for the start, of which two columns are not there yet, and one for each tile. */
static mat make_accounts(lesson *lesson, const running *state) {
    mat accounts = mat_new(&lesson->arena, STATES, COLUMNS);
    for (int t = 0; t < STATES; t++) {
        const double sum = t > 0 ? sum_of(&state[t]) : 0;
        const double row[COLUMNS] = {state[t].max, t > 0 ? kept_part(state, t) : 0, sum, sum * state[t].z, state[t].z,
                                     state[t].lse};
        for (int c = 0; c < COLUMNS; c++) accounts.at[t * COLUMNS + c] = (float)row[c];
    }
    return accounts;
}

static void show_tiles(lesson *lesson, const running *state, mat scores, mat v, double whole) {
    enum { FACTOR = 1, ANSWER = 4 };
    doc *doc = &lesson->doc;
    const char *const columns[COLUMNS] = {"m", doc_text(doc, "旧账乘", "old sums ×"), "ℓ", "acc", "z", "lse"};
    const char **rows = ARENA_NEW(&lesson->arena, const char *, STATES), *captions[STATES];
    bool *absent = ARENA_NEW(&lesson->arena, bool, STATES *COLUMNS);
    rows[0] = doc_text(doc, "开始", "start");
    captions[0] = doc_text(doc, "开始：还没看过任何键，m = −∞，ℓ = 0，acc = 0。",
                           "At the start no key has been seen: m = −∞, ℓ = 0, acc = 0.");
    absent[FACTOR] = absent[ANSWER] = true;
    for (int t = 1; t < STATES; t++) {
        rows[t] = doc_text(doc, "第 %d 块", "tile %d", t);
        captions[t] = tell_tile(doc, state, t, scores.at + (t - 1) * TILE, v.at + (t - 1) * TILE);
    }
    doc_matrix *shown = lesson_show(
        lesson, "tiles",
        doc_text(doc, "一块一块来，只记三个数：m、ℓ、acc", "Tile by tile, with three numbers in mind: m, ℓ and acc"),
        "m, ℓ, acc", DOC_ROLE_PLAIN, make_accounts(lesson, state), rows,
        arena_grow(&lesson->arena, columns, sizeof columns, sizeof columns));
    shown->decimals = 4;
    shown->is_ledger = true;
    shown->masked = absent;
    doc_grow(doc, shown, DOC_BY_ROW, captions);
    doc_summary(doc, "最后一块之后 z = acc / ℓ = %.4f；程序库一次看完全部键得到 %.4f。从没有存过整行权重。",
                "After the last tile z = acc / ℓ is %.4f; the library, over all keys at once, says %.4f. No row of weights was "
                "ever stored.",
                state[TILES].z, whole);
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
    running state[STATES];
    run_tiles(lesson, scores, v, state);
    doc_step(doc, "在线 softmax：键一块一块到来，每块 %d 个，看过就丢。",
             "Online softmax: keys arrive in tiles of %d, and are gone afterwards.", TILE);
    show_keys(lesson, scores, v);
    doc_say(
        doc,
        "只记三个数：m，到现在为止最大的打分；ℓ，exp(s − m) 的和；acc，这些 exp(s − m) 乘上各自的值 v 的和。开始时 m = −∞，ℓ = "
        "acc = 0。m′ 是看过这一块之后的 m：如果变大了，旧的两笔账都乘上 exp(m − m′)。答案随时都是 z = acc / ℓ。",
        "Three numbers are kept: m, the largest score so far; ℓ, the sum of exp(s − m); acc, the sum of those, each times "
        "its value v. At the start m = −∞ and ℓ = acc = 0. m′ is what m becomes with a tile: where it is larger, both old "
        "sums are multiplied by exp(m − m′). The answer is z = acc / ℓ at any time.");
    doc_formula(doc, "m′ = max(m, s)        ℓ ← ℓ·exp(m − m′) + Σ exp(s − m′)");
    doc_formula(doc, "acc ← acc·exp(m − m′) + Σ exp(s − m′)·v        m ← m′");
    doc_say(doc,
            "下表里的 z 和 lse = m + log ℓ 出自程序库：每块各做一次注意力，再用它的合并算子并进旧结果；m 是查出来的最大值，ℓ = "
            "exp(lse − m)，acc = ℓ·z。",
            "In the table z and lse = m + log ℓ are the library’s: attention over each tile, merged into what there was by its "
            "merge operator. m is looked up, ℓ = exp(lse − m), and acc = ℓ·z.");
    show_tiles(lesson, state, scores, v, whole);
    double sums[STATES], outs[STATES];
    for (int t = 0; t < STATES; t++) {
        sums[t] = t > 0 ? sum_of(&state[t]) : 0;
        outs[t] = sums[t] * state[t].z;
    }
    figures_array(&lesson->figures, "softmax/tile_sums", STATES, sums);
    figures_array(&lesson->figures, "softmax/tile_accumulators", STATES, outs);
    figures_mat(&lesson->figures, "softmax/tile_scores", scores);
    figures_mat(&lesson->figures, "softmax/tile_values", v);
    figures_number(&lesson->figures, "softmax/online", state[TILES].z);
    figures_number(&lesson->figures, "softmax/whole", whole);
}

void lesson_softmax(lesson *lesson) {
    doc *doc = &lesson->doc;
    doc_say(doc, "softmax 把一行打分变成比例。公式很短，照着写却会算出 NaN。",
            "Softmax turns a row of scores into shares. The formula is short, and written down as it is it ends in NaN.");
    doc_formula(doc, "A(i, j) = exp(S(i, j)) / Σ_u exp(S(i, u))");
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
