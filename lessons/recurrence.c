/* The recurrence: one step of it by hand, and how it forgets the first word.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "courses.h"
#include "pairs.h"

/* ---- rnn-step ------------------------------------------------------------------------------------------------------ */

static void explain_symbols(lesson *lesson) {
    doc *doc = &lesson->doc;
    const char *const head[] = {doc_text(doc, "符号", "symbol"), doc_text(doc, "它是什么", "what it is"),
                                doc_text(doc, "这里", "here")};
    const char *const cells[] = {
        "h(t-1)",
        doc_text(doc, "读这个词之前的记忆", "the memory before this word"),
        "[0.8; 0]",
        "x(t)",
        doc_text(doc, "这个词的向量", "the vector of this word"),
        "[1; 0]",
        "W_in",
        doc_text(doc, "词怎样写进记忆", "how a word is written into memory"),
        "[1 0; 0 1]",
        "W_h",
        doc_text(doc, "旧记忆怎样带过来", "how the old memory is carried over"),
        "[0.5 0; 0 0.5]",
        "tanh",
        doc_text(doc, "压到 -1 与 1 之间", "squeezes into -1 to 1"),
        "",
        "h(t)",
        doc_text(doc, "读过之后的记忆", "the memory after it"),
        "?",
    };
    doc_add_table(doc, "symbols", doc_text(doc, "逐个符号", "Symbol by symbol"), 6, 3, head, cells);
    doc_summary(doc, "等号两边的 h 不是同一个：右边是旧的，左边是新的。h 和 x 是列向量；分号表示换一行。",
                "The h on the two sides are not the same: old on the right, new on the left. h and x are columns; a ; begins "
                "a new row.");
}

void lesson_rnn_step(lesson *lesson) {
    static const double old[] = {0.8, 0}, word[] = {1, 0}, identity[] = {1, 0, 0, 1}, half[] = {0.5, 0, 0, 0.5};
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const mat h_0 = mat_of(arena, 2, 1, old), x = mat_of(arena, 2, 1, word); /* columns, which W multiplies from the left */
    const mat w_in = mat_of(arena, 2, 2, identity), w_h = mat_of(arena, 2, 2, half);
    const lesson_recurrence step = {.cell = CLATTN_CELL_RNN,
                                    .x = mat_transposed(arena, x),
                                    .w_in = w_in,
                                    .w_h = w_h,
                                    .h_0 = mat_transposed(arena, h_0),
                                    .batch = 1};
    const mat h = mat_transposed(arena, lesson_recur(lesson, &step));
    doc_say(doc, "循环网络一次读一个词，只有一份记忆 h。每读一个词，h 就整个重写一遍。",
            "A recurrent network reads one word at a time and has a single memory, h. Every word rewrites all of it.");
    doc_formula(doc, "h(t) = tanh(W_h·h(t-1) + W_in·x(t))");
    explain_symbols(lesson);
    doc_say(doc, "W_h·h：W_h 的每一行配 h 这一列，对应相乘，再加起来。怎样一格一格地算，见%s。",
            "W_h·h: each row of W_h with the column h, multiplied in pairs and added up. For that cell by cell see %s.",
            lesson_refer(lesson, "matmul"));
    doc_ask(doc,
            doc_text(doc, "旧记忆 0.8，减半；新词写进 1。新的 h 比 1 大还是小？",
                     "The old memory is 0.8 and is halved; the word adds 1. Is the new h above 1 or below?"),
            doc_text(doc, "小：tanh(1.4) ≈ %.3f。tanh 永远不超过 1。",
                     "Below: tanh(1.4) is about %.3f, and no tanh ever passes 1.", h.at[0]));

    doc_step(doc, "旧记忆过 W_h：减半。", "The old memory through W_h: halved.");
    lesson_show(lesson, "w_h", doc_text(doc, "带旧记忆的矩阵", "What carries it over"), "W_h", DOC_ROLE_PLAIN, w_h, NULL, NULL);
    lesson_show(lesson, "h0", doc_text(doc, "旧记忆 h(t-1)", "Old memory h(t-1)"), "h", DOC_ROLE_RECURRENCE, h_0, NULL, NULL);
    const mat carried = lesson_product(lesson, w_h, h_0);
    lesson_derive(lesson_show(lesson, "carried", doc_text(doc, "带过来的", "Carried over"), "W_h·h", DOC_ROLE_RECURRENCE,
                              carried, NULL, NULL),
                  DOC_RULE_PRODUCT, "w_h", "h0", 1);
    doc_step(doc, "新词过 W_in：原样。", "The word through W_in: as it is.");
    lesson_show(lesson, "w_in", doc_text(doc, "写新词的矩阵", "What writes it"), "W_in", DOC_ROLE_PLAIN, w_in, NULL, NULL);
    lesson_show(lesson, "x", doc_text(doc, "词 x(t)", "Word x(t)"), "x", DOC_ROLE_X, x, NULL, NULL);
    const mat written = lesson_product(lesson, w_in, x);
    lesson_derive(
        lesson_show(lesson, "written", doc_text(doc, "写进来的", "Written"), "W_in·x", DOC_ROLE_X, written, NULL, NULL),
        DOC_RULE_PRODUCT, "w_in", "x", 1);
    doc_step(doc, "相加，再压扁。", "Add, then squeeze.");
    const double side_by_side[] = {w_h.at[0], w_h.at[1], w_in.at[0], w_in.at[1], w_h.at[2], w_h.at[3], w_in.at[2], w_in.at[3]},
                 stacked[] = {old[0], old[1], word[0], word[1]};
    const mat both =
        lesson_product(lesson, mat_of(arena, 2, 4, side_by_side), mat_of(arena, 4, 1, stacked)); /* [W_h W_in]·[h; x] */
    lesson_derive(
        lesson_show(lesson, "sum", doc_text(doc, "相加", "The sum"), "W_h·h + W_in·x", DOC_ROLE_PLAIN, both, NULL, NULL),
        DOC_RULE_SUM, "carried", "written", 1);
    doc_matrix *shown =
        lesson_show(lesson, "h", doc_text(doc, "新记忆 h(t)", "New memory h(t)"), "h", DOC_ROLE_RECURRENCE, h, NULL, NULL);
    lesson_derive(shown, DOC_RULE_TANH, "sum", NULL, 1);
    shown->decimals = 3;
    doc_summary(doc, "旧记忆 %g 还剩多少？只看这个 %.3f，谁也说不出：旧记忆和新词加在一个数里，别的两个数也能加出同样的和。",
                "How much is left of the old %g? From the %.3f alone nobody can tell: old memory and word are added up in one "
                "number, and other pairs have the same sum.",
                old[0], h.at[0]);
    /* What is halved or squeezed has to look so. */
    lesson_share_scale(lesson, "w_h", "h0", "carried", "w_in", "x", "written", "sum", "h", NULL);
    figures_array(&lesson->figures, "rnn_by_hand/h", 2, mat_doubles(arena, h));
    doc_correct(
        doc, doc_text(doc, "W_h 的 h 是时刻。", "The h of W_h is a time."),
        doc_text(doc, "它说的是这个矩阵服务谁：h 是 hidden（隐藏状态），in 是 input（输入）。同一个 W_h 每一步都用。",
                 "It says whom the matrix serves: h for “hidden”, in for “input”. The same W_h is used at every step."));
}

/* ---- rnn-bottleneck ------------------------------------------------------------------------------------------------ */

enum { TRACE_STEPS = 12 };

static void plot_cosines(lesson *lesson, const pairs_setting *setting, const double *cosines) {
    doc *doc = &lesson->doc;
    double x[CLI_MAX_INTEGERS];
    for (size_t i = 0; i < setting->length_count; i++) x[i] = (double)setting->lengths[i];
    doc_plot *plot = doc_add_plot(
        doc, "cosines",
        doc_text(doc, "两句只差第一个词：读完以后有多像", "Two sentences that differ in the first word: how alike at the end"));
    plot->x = (doc_axis){.label = doc_text(doc, "句长（词）", "length (words)"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "最终 h 的余弦", "cosine of the final h"), .low = 0, .high = 1};
    doc_add_series(
        doc, plot,
        doc_text(doc, "循环网络，%lld 对句子的平均", "the recurrence, mean of %lld pairs", (long long)setting->pairs),
        DOC_ROLE_RECURRENCE, setting->length_count, x, cosines);
    const size_t last = setting->length_count - 1;
    doc_summary(doc, "句长 %lld 时 %.3f，句长 %lld 时 %.3f：1 就是一模一样。",
                "At length %lld it is %.3f, at length %lld it is %.3f: 1 is the same.", (long long)setting->lengths[0],
                cosines[0], (long long)setting->lengths[last], cosines[last]);
}

/* B laid over A: the number of h in which they differ most after word 1. */
static void lay_over(lesson *lesson, mat a, mat b) {
    doc *doc = &lesson->doc;
    double steps[TRACE_STEPS], of_a[TRACE_STEPS], of_b[TRACE_STEPS];
    int64_t most = 0;
    for (int64_t d = 1; d < a.cols; d++)
        if (fabs(mat_at(a, 0, d) - mat_at(b, 0, d)) > fabs(mat_at(a, 0, most) - mat_at(b, 0, most))) most = d;
    for (int t = 0; t < TRACE_STEPS; t++) {
        steps[t] = t + 1;
        of_a[t] = mat_at(a, t, most);
        of_b[t] = mat_at(b, t, most);
    }
    doc_plot *plot = doc_add_plot(
        doc, "laid-over",
        doc_text(doc, "把 B 叠在 A 上：h 里标号 %lld 的数", "B laid over A: the number of h under %lld", (long long)most));
    plot->x = (doc_axis){.label = doc_text(doc, "读过的词", "words read")};
    plot->y = (doc_axis){.label = doc_text(doc, "h 里的这个数", "this number of h"), .low = -1, .high = 1};
    doc_add_series(doc, plot, doc_text(doc, "句子 A", "sentence A"), DOC_ROLE_RECURRENCE, TRACE_STEPS, steps, of_a);
    doc_add_series(doc, plot, doc_text(doc, "句子 B", "sentence B"), DOC_ROLE_OUT, TRACE_STEPS, steps, of_b);
    const double first = fabs(of_a[0] - of_b[0]), last = fabs(of_a[TRACE_STEPS - 1] - of_b[TRACE_STEPS - 1]);
    doc_summary(doc, "这个数在第 1 个词之后相差 %.3f，第 %d 个词之后相差 %.3f：%s。整个 h 相差多少，见下面。",
                "In this number, %.3f apart after word 1, after word %d %.3f: %s. How far apart all of h is follows below.", first,
                TRACE_STEPS, last,
                last < 0.05 ? doc_text(doc, "两条线合成了一条", "two lines have become one")
                            : doc_text(doc, "两条线还没有合成一条", "the two lines are not one yet"));
}

/* How the distance went, with its rises, if any. */
static void sum_up_trace(doc *doc, const double *distances) {
    int rises = 0;
    for (int t = 1; t < TRACE_STEPS; t++) rises += distances[t] > distances[t - 1];
    const double first = distances[0], last = distances[TRACE_STEPS - 1];
    const char *path = doc_text(doc, "读完第 1 个词相距 %1$.3f，读完第 %2$d 个词相距 %3$.3f，剩 %4$.1f %%。",
                                "%1$.3f apart after word 1, %3$.3f after word %2$d: %4$.1f %% is left.", first, TRACE_STEPS,
                                last, 100 * last / first);
    const char *end = last > distances[TRACE_STEPS - 2]
                          ? doc_text(doc, "；图到头时它还在变大", ", and where the picture ends it is growing")
                          : "";
    if (rises > 0)
        doc_summary(doc, "%s%d 步里有 %d 步变大：小的差别，W_h 能压小，也能拉大%s。",
                    "%1$s At %3$d of %2$d steps it grew: W_h can stretch a small difference as well as squeeze it%4$s.", path,
                    TRACE_STEPS - 1, rises, end);
    else
        doc_summary(doc, "%s", "%s", path);
}

/* One pair, word by word: where A stands, where B stands, and what is left of their difference. */
static void show_trace(lesson *lesson, const pairs_setting *setting, numpy_random *random, lesson_recurrence recurrence) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    recurrence.batch = 2;
    recurrence.x = pairs_draw(lesson, random, 1, TRACE_STEPS, setting->dim);
    const mat h = lesson_recur(lesson, &recurrence);
    const int64_t shown = setting->dim < PAIRS_DIM ? setting->dim : PAIRS_DIM;
    const mat a = mat_block(arena, h, 0, TRACE_STEPS, 0, shown), b = mat_block(arena, h, TRACE_STEPS, TRACE_STEPS, 0, shown);
    const char **labels = ARENA_NEW(arena, const char *, TRACE_STEPS);
    double steps[TRACE_STEPS], distances[TRACE_STEPS];
    for (int t = 0; t < TRACE_STEPS; t++) {
        labels[t] = doc_text(doc, "第 %d 词", "word %d", t + 1);
        steps[t] = t + 1;
        distances[t] = pairs_distance(h.at + t * h.cols, h.at + (TRACE_STEPS + t) * h.cols, h.cols);
    }
    doc_step(doc, "取一对句子，一个词一个词地读。从第 2 个词起，两句话的词完全相同。",
             "Take one pair, and read word by word. From word 2 on, both sentences have the same words.");
    doc_matrix *first = lesson_show(lesson, "h-a", doc_text(doc, "句子 A 的 h", "h of sentence A"), "h_A", DOC_ROLE_RECURRENCE,
                                    a, labels, NULL);
    doc_grow(doc, first, DOC_BY_ROW, NULL);
    doc_matrix *second = lesson_show(lesson, "h-b", doc_text(doc, "句子 B 的 h", "h of sentence B"), "h_B", DOC_ROLE_RECURRENCE,
                                     b, labels, NULL);
    doc_grow_together(doc, second, DOC_BY_ROW);
    lesson_scale(first, -1, 1);
    lesson_scale(second, -1, 1);
    lay_over(lesson, a, b);
    doc_plot *plot = doc_add_plot(doc, "trace", doc_text(doc, "第一个词的痕迹", "The trace of the first word"));
    plot->x = (doc_axis){.label = doc_text(doc, "读过的词", "words read")};
    plot->y = (doc_axis){.label = "|h_A - h_B|"};
    doc_add_series(doc, plot, doc_text(doc, "两份记忆的距离", "distance of the two memories"), DOC_ROLE_RECURRENCE, TRACE_STEPS,
                   steps, distances);
    sum_up_trace(doc, distances);
    figures_array(&lesson->figures, "rnn_bottleneck/trace", TRACE_STEPS, distances);
}

/* The first length whose cosine is printed as 1. */
static const char *when_alike(lesson *lesson, const pairs_setting *setting, const double *cosines) {
    for (size_t i = 0; i < setting->length_count; i++) {
        if (cosines[i] >= 0.9995)
            return doc_text(&lesson->doc,
                            "在这个随机的网络里，句长 %lld 时余弦已经是 1.000：两句话的摘要一样，句首是什么都无所谓了。",
                            "In this random network the cosine is 1.000 at %lld words: both sentences leave the same summary, "
                            "whatever they began with.",
                            (long long)setting->lengths[i]);
    }
    return doc_text(&lesson->doc, "在这些长度里还没有一个到 1.000：更长的句子才分不出来。",
                    "At none of these lengths is it 1.000 yet: it takes longer sentences.");
}

static void draw_weights(lesson *lesson, numpy_random *random, int64_t dim, lesson_recurrence *recurrence) {
    *recurrence = (lesson_recurrence){.cell = CLATTN_CELL_RNN};
    recurrence->w_in = mat_randn(&lesson->arena, random, dim, dim, pairs_factor(0.6, dim));
    recurrence->w_h = mat_randn(&lesson->arena, random, dim, dim, pairs_factor(0.6, dim));
}

/* ---- a wider h ----------------------------------------------------------------------------------------------------- */

enum { WIDE_DIM = 256, WIDE_PAIRS = 10, WIDE_LENGTHS = 2 };

/* The experiment with an h that wide, drawn alike. */
static void measure_width(lesson *lesson, uint32_t seed, int64_t dim, const int64_t *lengths, double cosines[WIDE_LENGTHS]) {
    pairs_setting setting = {.seed = seed, .pairs = WIDE_PAIRS, .dim = dim, .length_count = WIDE_LENGTHS};
    lesson_recurrence recurrence;
    numpy_random random;
    for (int i = 0; i < WIDE_LENGTHS; i++) setting.lengths[i] = lengths[i];
    numpy_seed(&random, seed);
    draw_weights(lesson, &random, dim, &recurrence);
    pairs_measure(lesson, &setting, &random, recurrence, cosines);
}

/* Whether it solves anything is measured. */
static void correct_width(lesson *lesson, uint32_t seed) {
    static const int64_t lengths[WIDE_LENGTHS] = {8, 32};
    doc *doc = &lesson->doc;
    double narrow[WIDE_LENGTHS], wide[WIDE_LENGTHS];
    measure_width(lesson, seed, PAIRS_DIM, lengths, narrow);
    measure_width(lesson, seed, WIDE_DIM, lengths, wide);
    for (int i = 0; i < WIDE_LENGTHS; i++)
        figures_at(&lesson->figures, "rnn_bottleneck/cosine_of_256_by_length", lengths[i], wide[i]);
    const char *gain = !(wide[0] < narrow[0] - 0.0005) ? doc_text(doc, "宽的并没有留得更多", "The wide one does not keep more")
                       : wide[1] >= 0.9995             ? doc_text(doc, "宽的留得久些，久了也没了",
                                                                  "The wide one keeps more for a while, and nothing in the end")
                                                       : doc_text(doc, "宽的留得多些", "The wide one keeps more");
    doc_correct(
        doc, doc_text(doc, "把 h 加宽就好了。", "A wider h would solve it."),
        doc_text(doc,
                 "量一量（%1$d 对句子）：%2$lld 个词之后，%3$d 个数的 h 余弦 %4$.3f，%5$d 个数的 %6$.3f；%7$lld 个词之后 "
                 "%8$.3f 和 %9$.3f。%10$s：每个词都重写整个 h。要看 %5$d 个数的 h，运行%11$s。",
                 "Measured, with %1$d pairs: after %2$lld words the cosine of an h of %3$d numbers is %4$.3f, of one of %5$d "
                 "%6$.3f; after %7$lld words %8$.3f and %9$.3f. %10$s: every word rewrites all of h. To see an h of %5$d "
                 "numbers, run %11$s.",
                 WIDE_PAIRS, (long long)lengths[0], PAIRS_DIM, narrow[0], WIDE_DIM, wide[0], (long long)lengths[1], narrow[1],
                 wide[1], gain, lesson_quote(lesson, "clattn lesson rnn-bottleneck --dim 256")));
}

void lesson_rnn_bottleneck(lesson *lesson) {
    doc *doc = &lesson->doc;
    const pairs_setting setting = pairs_take_setting(lesson);
    double cosines[CLI_MAX_INTEGERS];
    numpy_random random;
    lesson_recurrence recurrence;
    numpy_seed(&random, setting.seed);
    draw_weights(lesson, &random, setting.dim, &recurrence);
    pairs_measure(lesson, &setting, &random, recurrence, cosines);

    doc_say(doc,
            "整句话只能留在最后一个 h 里：%lld 个数。句首的词还在里面吗？做个实验，用一个随机的、从没训练过的网络：造两句话，"
            "只有第一个词不同，读完后比较两个 h。",
            "A whole sentence has to fit into the last h: %lld numbers. Is the first word still in there? An experiment with a "
            "random network that was never trained: two sentences that differ in the first word alone, and their two final h "
            "compared.",
            (long long)setting.dim);
    doc_formula(doc, "cos(h_A, h_B) = h_A·h_B / (|h_A|·|h_B|)        h = tanh(W_h·h + W_in·x)");
    doc_say(doc, "余弦说两个向量的方向有多一致：1 是同一个方向，0 是互不相干，-1 是相反。",
            "The cosine says how far two vectors point the same way: 1 the same, 0 unrelated, -1 opposite.");
    doc_ask(doc, doc_text(doc, "句子多长时，两个 h 就分不出来了？", "At which length can the two h no longer be told apart?"),
            when_alike(lesson, &setting, cosines));
    doc_step(doc, "%lld 对随机句子，取平均。", "%lld pairs of random sentences, averaged.", (long long)setting.pairs);
    plot_cosines(lesson, &setting, cosines);
    pairs_put_setting(lesson, "rnn_bottleneck", &setting);
    for (size_t i = 0; i < setting.length_count; i++)
        figures_at(&lesson->figures, "rnn_bottleneck/mean_cosine_by_length", setting.lengths[i], cosines[i]);
    show_trace(lesson, &setting, &random, recurrence);
    doc_say(
        doc, "h 由程序库的算子算；余弦、距离和平均库里没有，由这一课用 h 算，双精度。",
        "h is computed by the library's operator; cosine, distance and mean, for which it has none, by this lesson from h, in "
        "double precision.");
    doc_say(doc,
            "W_h 和 W_in 是随机数（种子 %u）：别的种子忘得快些或慢些，训练过的网络能学会把要用的留得久些。"
            "每个词都重写整个 h，这一点都一样。",
            "W_h and W_in are random numbers (seed %u): others forget sooner or later, and a trained network may learn to keep "
            "what it needs for longer. That every word rewrites all of h is the same in all of them.",
            setting.seed);
    correct_width(lesson, setting.seed);
}
