/* What a step has to wait for: the recurrence in a queue, attention at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "bench/stats.h"
#include "courses.h"
#include "measure.h"

enum { WORDS = 6, WORDS_SHOWN = 12, WIDTH = 256, HEAD_DIM = 64, LANES = 2 };

static const lesson_word own_words[WORDS] = {{"The", "那", NULL}, {"dog", "狗", NULL}, {"chased", "追", NULL},
                                             {"the", "那", NULL}, {"red", "红", NULL}, {"ball", "球", NULL}};

/* Lane 0: h waits for h. Lane 1: every output waits for all words and for no other output. */
static void show_graph(lesson *lesson, lesson_words words, int64_t extra) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const size_t n = (size_t)(words.count < WORDS_SHOWN ? words.count : WORDS_SHOWN);
    doc_graph *graph = doc_add_graph(doc, "waiting", doc_text(doc, "谁在等谁", "Who waits for whom"));
    doc_node *nodes = ARENA_NEW(arena, doc_node, 2 * n);
    doc_edge *edges = ARENA_NEW(arena, doc_edge, n);
    const char **lanes = ARENA_NEW(arena, const char *, LANES);
    for (size_t i = 0; i < n; i++) {
        nodes[i] = (doc_node){words.labels[i], 0, (int)i, (int)i + 1};
        nodes[n + i] = (doc_node){words.labels[i], 1, (int)i, 1};
        if (i > 0) edges[i - 1] = (doc_edge){i - 1, i};
    }
    lanes[0] = doc_text(doc, "循环网络：每个词等前一个词", "The recurrence: each word waits for the one before");
    lanes[1] = doc_text(doc, "注意力：所有词同时", "Attention: all words at the same time");
    *graph = (doc_graph){2 * n, n - 1, nodes, edges, lanes, LANES};
    if (extra > 0)
        doc_summary(
            doc,
            "循环网络要 %1$lld 步，注意力要 1 步，无论多少个核心。真算起来，循环在第一个词之前还有 %2$lld 步准备，图里没画："
            "一共 %1$lld + %2$lld = %3$lld 步。",
            "The recurrence takes %1$lld steps, attention 1, however many cores there are. When it is really computed, "
            "%2$lld steps of preparation come before the first word, which the picture leaves out: "
            "%1$lld + %2$lld = %3$lld in all.",
            (long long)words.count, (long long)extra, (long long)(words.count + extra));
    else
        doc_summary(doc, "循环网络要 %lld 步，注意力要 1 步，无论多少个核心。",
                    "The recurrence takes %lld steps, attention 1, however many cores there are.", (long long)words.count);
    if (words.count > WORDS_SHOWN) doc_say(doc, "图里只画了前 %d 个词。", "The picture shows the first %d words.", WORDS_SHOWN);
}

typedef struct race {
    bench_contrast sides;
    int64_t left_out; /* the first length that would take too long; 0: none */
} race;

/* Both sides in turns, at one length after another. */
static void run_race(lesson *lesson, const int64_t *lengths, size_t count, int64_t width, race *race) {
    const int64_t head_dim = width % HEAD_DIM == 0 ? HEAD_DIM : width;
    bench_contrast *sides = &race->sides;
    measure_require(lesson, head_dim);
    for (size_t i = 0; i < count; i++) {
        const double growth = i > 0 ? (double)lengths[i] / (double)lengths[i - 1] : 1;
        if (i > 0 && !(measure_is_worth(sides->attention_at[i - 1].ms * growth * growth) &&
                       measure_is_worth(sides->recurrence_at[i - 1].ms * growth))) {
            race->left_out = lengths[i];
            return;
        }
        const bench_shape shapes[LANES] = {measure_recurrence(lengths[i], width),
                                           measure_attention(width / head_dim, lengths[i], head_dim)};
        bench_point points[LANES];
        measure_in_turns(lesson, shapes, LANES, points);
        sides->lengths[i] = lengths[i];
        sides->recurrence_at[i] = points[0];
        sides->attention_at[i] = points[1];
        sides->count++;
        figures_at(&lesson->figures, "serial_steps/recurrence_steps", lengths[i], (double)points[0].chain);
        figures_at(&lesson->figures, "serial_steps/attention_steps", lengths[i], (double)points[1].chain);
        figures_at(&lesson->figures, "serial_steps/recurrence_ms", lengths[i], points[0].ms);
        figures_at(&lesson->figures, "serial_steps/attention_ms", lengths[i], points[1].ms);
        figures_at(&lesson->figures, "serial_steps/noise", lengths[i], fmax(points[0].noise, points[1].noise));
    }
}

/* The steps of a recurrence before its first word; below 0 where a device counts a whole operator as one step. */
static int64_t extra_steps(const race *race) {
    return race->sides.recurrence_at[0].chain - race->sides.lengths[0];
}

static const char *steps_text(const doc *doc, int64_t steps) {
    return doc_text(doc, "%lld", steps == 1 ? "%lld step" : "%lld steps", (long long)steps);
}

static void show_counts(lesson *lesson, const race *race) {
    enum { COLUMNS = 6 };
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const bench_contrast *sides = &race->sides;
    const int64_t extra = extra_steps(race);
    const char *const head[COLUMNS] = {doc_text(doc, "句长", "length"),
                                       doc_text(doc, "循环：步", "recurrence"),
                                       doc_text(doc, "注意力：步", "attention"),
                                       doc_text(doc, "循环 ms", "recurrence ms"),
                                       doc_text(doc, "注意力 ms", "attention ms"),
                                       doc_text(doc, "噪声", "noise")};
    const char **cells = ARENA_NEW(arena, const char *, sides->count *COLUMNS);
    for (size_t i = 0; i < sides->count; i++) {
        const bench_point *r = &sides->recurrence_at[i], *a = &sides->attention_at[i];
        const char **row = cells + COLUMNS * i;
        row[0] = arena_format(arena, "%lld", (long long)sides->lengths[i]);
        row[1] = extra > 0 ? doc_text(doc, "%lld + %lld", "%lld + %lld steps", (long long)sides->lengths[i], (long long)extra)
                           : steps_text(doc, r->chain);
        row[2] = steps_text(doc, a->chain);
        row[3] = arena_format(arena, "%.3f", r->ms);
        row[4] = arena_format(arena, "%.3f", a->ms);
        row[5] = measure_noise(doc, fmax(r->noise, a->noise));
    }
    doc_add_table(doc, "counts", doc_text(doc, "数出来的步，量出来的时间", "Steps as counted, times as measured"), sides->count,
                  COLUMNS, head, cells);
    if (extra >= 0)
        doc_summary(doc,
                    "步数是最长的一串，每一步都要等上一步。循环网络每个词一步，前面还有 %lld 步准备：一次算好所有词的 "
                    "W_in·x，再把 W_h 排成好读的样子；注意力的步数不随句长变。",
                    "Steps are the longest chain, each of which waits for the last. The recurrence takes one a word and %lld "
                    "before the first: W_in·x of all words at once, and W_h laid out to be read fast. Attention's do not "
                    "depend on the length.",
                    (long long)extra);
    else
        doc_summary(doc, "这台设备把整个算子当作一步，它的计划数不出里面的等待。",
                    "This device counts a whole operator as one step: its plan does not tell of the waiting inside.");
    doc_say(doc,
            "两边轮流跑，时间是多次的中位数。噪声是中间一半的运行散开多少，占中位数的百分比，取两边中大的；超过 %.0f %% "
            "就算有噪声。",
            "Both sides run in turns; times are medians. Noise is how far the middle half of the runs spreads, as a part of "
            "the median, on the worse side; above %.0f %% a time is called noisy.",
            100 * BENCH_NOISY_ABOVE);
}

static void plot_race(lesson *lesson, const race *race, int64_t width) {
    doc *doc = &lesson->doc;
    const bench_contrast *sides = &race->sides;
    const size_t last = sides->count - 1;
    double lengths[BENCH_MAX_LENGTHS], recurrence[BENCH_MAX_LENGTHS], attention[BENCH_MAX_LENGTHS];
    for (size_t i = 0; i < sides->count; i++) {
        lengths[i] = (double)sides->lengths[i];
        recurrence[i] = sides->recurrence_at[i].ms;
        attention[i] = sides->attention_at[i].ms;
    }
    doc_plot *plot = doc_add_plot(
        doc, "race", doc_text(doc, "同一台设备，同样宽 %lld", "The same device, the same width of %lld", (long long)width));
    plot->x = (doc_axis){.label = doc_text(doc, "句长（词）", "length (words)"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "时间（ms）", "time (ms)"), .logarithmic = true};
    doc_add_series(doc, plot, doc_text(doc, "循环网络", "recurrence"), DOC_ROLE_RECURRENCE, sides->count, lengths, recurrence);
    doc_add_series(doc, plot, doc_text(doc, "注意力", "attention"), DOC_ROLE_WEIGHTS, sides->count, lengths, attention);
    doc_summary(doc, "句长 %g 时循环用 %.3f ms，注意力用 %.3f ms（噪声 %s）。",
                "At length %g the recurrence takes %.3f ms, attention %.3f ms (noise: %s).", lengths[last], recurrence[last],
                attention[last], measure_noise(doc, fmax(sides->recurrence_at[last].noise, sides->attention_at[last].noise)));
    if (race->left_out > 0)
        doc_say(doc, "句长 %lld 及以上没有量：在这台设备上太慢。",
                "Length %lld and longer were left out: too slow on this device.", (long long)race->left_out);
}

/* The last length that a side clearly wins; 0: none. */
static int64_t last_win(const bench_contrast *sides, bench_winner winner) {
    for (size_t i = sides->count; i-- > 0;)
        if (bench_faster(&sides->attention_at[i], &sides->recurrence_at[i]) == winner) return sides->lengths[i];
    return 0;
}

/* Where the recurrence is the faster one, if anywhere; and what is within the noise is said to be. */
static const char *who_wins(const doc *doc, const race *race) {
    const int64_t recurrence = last_win(&race->sides, BENCH_WINNER_RECURRENCE),
                  attention = last_win(&race->sides, BENCH_WINNER_ATTENTION),
                  unclear = last_win(&race->sides, BENCH_WINNER_UNCLEAR);
    if (recurrence > attention)
        return doc_text(
            doc,
            "不一定：句长 %lld 时循环反而快。注意力的步少，活却多：活随句长的平方涨，这台设备的核心不够多，就得排队干。"
            "核心越多，交点越远。",
            "Not always: at length %lld the recurrence is faster. Attention has few steps but much work, growing with the "
            "square of the length, and a device with few cores does that work in turns. The more cores, the later the lines "
            "cross.",
            (long long)recurrence);
    if (recurrence > 0)
        return doc_text(doc, "不一定：句长 %lld 时循环反而快。步数之外，每一步里做多少、怎么做也要算。",
                        "Not always: at length %lld the recurrence is faster. Besides the steps it matters what is done in "
                        "each, and how.",
                        (long long)recurrence);
    if (unclear > 0)
        return doc_text(doc, "这一次没有分出来：机器上还有别的工作，至少在句长 %lld 时差别小于噪声。",
                        "This time it is not decided: the machine had other work, and at length %lld, at least, the "
                        "difference is within the noise.",
                        (long long)unclear);
    return doc_text(doc, "在量过的每个长度上都是注意力快。", "At every length that was measured, attention is faster.");
}

void lesson_serial_steps(lesson *lesson) {
    static const int64_t otherwise[] = {16, 64, 256, 1024};
    doc *doc = &lesson->doc;
    int64_t lengths[CLI_MAX_INTEGERS];
    const size_t count = lesson_lengths(lesson, otherwise, sizeof otherwise / sizeof *otherwise, lengths);
    const int64_t width = lesson_integer(lesson->parameters.dim, WIDTH);
    const lesson_words words = lesson_take_words(lesson, own_words, WORDS);
    race race = {.left_out = 0};
    run_race(lesson, lengths, count, width, &race);
    doc_say(doc, "循环网络的第 t 步要用第 t-1 步的 h，所以没有两步能同时做。注意力的每个输出只要所有的词，词一开始就都在。",
            "Step t of a recurrence needs the h of step t-1, so no two steps can be done at once. An output of attention "
            "needs all words, and those are there from the start.");
    lesson_introduce_words(lesson, words, "狗追着那个红球", "The dog chased the red ball");
    doc_formula(doc, "h(t) ← h(t-1), x(t)        z(i) ← x(1) … x(n)");
    doc_ask(doc, doc_text(doc, "步少的一定快吗？", "Is the one with fewer steps always the faster one?"), who_wins(doc, &race));
    doc_step(doc, "依赖图：横着是时间。", "What depends on what: time goes to the right.");
    show_graph(lesson, words, extra_steps(&race));
    doc_step(doc, "数一数，再量一量。", "Count, then measure.");
    show_counts(lesson, &race);
    plot_race(lesson, &race, width);
    doc_correct(doc, doc_text(doc, "注意力做的运算少，所以快。", "Attention is fast because it computes less."),
                doc_text(doc, "长句子它算得更多：n² 对 n。它快在这些运算互不等待，可以摊给所有核心。",
                         "For long sentences it computes more: n² against n. It is fast where those operations, none "
                         "waiting for another, can be dealt out to all cores."));
}
