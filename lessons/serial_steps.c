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

/* What a lane reads, the words, which are there from the start; and its results, one a word. */
typedef struct lane_nodes {
    size_t inputs, results; /* of the first word */
} lane_nodes;

static lane_nodes add_lane(doc_graph *graph, doc_node *nodes, lesson_words words, size_t count, int lane, bool at_once) {
    const lane_nodes first = {graph->node_count, graph->node_count + count};
    for (size_t i = 0; i < count; i++) {
        nodes[first.inputs + i] = (doc_node){words.labels[i], lane, (int)i, 0};
        nodes[first.results + i] = (doc_node){words.labels[i], lane, (int)i, at_once ? 1 : (int)i + 1};
    }
    graph->node_count += 2 * count;
    return first;
}

/* Lane 0: h waits for its word and for the h before. Lane 1: every output waits for all words, and for no other output. */
static void draw_waiting(lesson *lesson, doc_graph *graph, lesson_words words, size_t n) {
    doc_node *nodes = ARENA_NEW(&lesson->arena, doc_node, 2 * LANES * n);
    doc_edge *edges = ARENA_NEW(&lesson->arena, doc_edge, 2 * n + n * n);
    const lane_nodes recurrence = add_lane(graph, nodes, words, n, 0, false),
                     attention = add_lane(graph, nodes, words, n, 1, true);
    for (size_t i = 0; i < n; i++) {
        edges[graph->edge_count++] = (doc_edge){recurrence.inputs + i, recurrence.results + i};
        if (i > 0) edges[graph->edge_count++] = (doc_edge){recurrence.results + i - 1, recurrence.results + i};
        for (size_t j = 0; j < n; j++) edges[graph->edge_count++] = (doc_edge){attention.inputs + j, attention.results + i};
    }
    graph->nodes = nodes;
    graph->edges = edges;
}

static void show_graph(lesson *lesson, lesson_words words) {
    doc *doc = &lesson->doc;
    const size_t n = (size_t)(words.count < WORDS_SHOWN ? words.count : WORDS_SHOWN);
    doc_graph *graph = doc_add_graph(doc, "waiting", doc_text(doc, "谁在等谁", "Who waits for whom"));
    const char **lanes = ARENA_NEW(&lesson->arena, const char *, LANES);
    lanes[0] = doc_text(doc, "循环网络：h 等它的词，也等前一个 h", "Recurrence: each h waits for the last");
    lanes[1] = doc_text(doc, "注意力：每个结果要所有的词，不等别的结果", "Attention: all words, all at once");
    graph->lanes = lanes;
    graph->lane_count = LANES;
    draw_waiting(lesson, graph, words, n);
    doc_summary(doc,
                "图里数的是结果，一步得出所有能得出的结果：循环网络的 %lld 个结果要 %lld 步，注意力的 %lld 个结果只要 1 步，"
                "无论多少个核心。",
                "The picture counts results; a step gives all that can be had. The recurrence's %lld results take %lld steps, "
                "attention's %lld take 1, however many cores there are.",
                (long long)words.count, (long long)words.count, (long long)words.count);
    if (words.count > WORDS_SHOWN) doc_say(doc, "图里只画了前 %d 个词。", "The picture shows the first %d words.", WORDS_SHOWN);
}

typedef struct race {
    bench_contrast sides;
    double low[LANES][BENCH_MAX_LENGTHS], high[LANES][BENCH_MAX_LENGTHS]; /* quartiles of the times */
    int64_t stages[BENCH_MAX_LENGTHS];                                    /* of attention, step by step */
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
        measure_spread spreads[LANES];
        measure_in_turns(lesson, shapes, LANES, points, spreads);
        for (int lane = 0; lane < LANES; lane++) {
            race->low[lane][i] = spreads[lane].low;
            race->high[lane][i] = spreads[lane].high;
        }
        race->stages[i] =
            measure_stages(lesson, (attention_size){width / head_dim, lengths[i], head_dim, CLATTN_ALGORITHM_STAGED});
        sides->lengths[i] = lengths[i];
        sides->recurrence_at[i] = points[0];
        sides->attention_at[i] = points[1];
        sides->count++;
        figures_at(&lesson->figures, "serial_steps/recurrence_steps", lengths[i], (double)points[0].chain);
        figures_at(&lesson->figures, "serial_steps/attention_steps", lengths[i], (double)race->stages[i]);
        figures_at(&lesson->figures, "serial_steps/recurrence_ms", lengths[i], points[0].ms);
        figures_at(&lesson->figures, "serial_steps/attention_ms", lengths[i], points[1].ms);
        figures_at(&lesson->figures, "serial_steps/noise", lengths[i], fmax(points[0].noise, points[1].noise));
    }
}

/* The steps of a recurrence before its first word; below 0 where a device counts a whole operator as one step. */
static int64_t extra_steps(const race *race) {
    return race->sides.recurrence_at[0].chain - race->sides.lengths[0];
}

/* Who is faster at a length. */
static const char *winner_text(const doc *doc, const bench_contrast *sides, size_t i) {
    switch (bench_faster(&sides->attention_at[i], &sides->recurrence_at[i])) {
    case BENCH_WINNER_ATTENTION:
        return doc_text(doc, "注意力", "attention");
    case BENCH_WINNER_RECURRENCE:
        return doc_text(doc, "循环", "recurrence");
    default:
        return doc_text(doc, "分不出", "unclear");
    }
}

/* What was counted, and how: the same on both sides. The usual counts can be named. */
enum { PREPARED = 2, STAGES = 3 };

static void explain_counts(lesson *lesson, const race *race) {
    doc *doc = &lesson->doc;
    const int64_t extra = extra_steps(race);
    if (extra < 0) {
        doc_summary(doc, "这台设备把整个算子当作一步，它的计划数不出里面的等待。",
                    "This device counts a whole operator as one step: its plan does not tell of the waiting inside.");
        return;
    }
    const char *prepared = extra == PREPARED ? doc_text(doc, "（一次算好所有词的 W_in·x，再把 W_h 排成好读的样子）",
                                                        " (W_in·x of all words at once, and W_h laid out to be read fast)")
                                             : "",
               *stages =
                   race->stages[0] == STAGES ? doc_text(doc, "（打分、softmax、混合）", " (scores, softmax, mixing)") : "";
    doc_summary(
        doc,
        "两边数法一样：在程序库的计划里，要一个接一个执行的阶段最长有多少个。循环网络：%1$lld 个准备阶段%2$s，然后每个词一个。"
        "注意力：%3$lld 个%4$s，句长再长也一样；计时用的融合法把它们放进一次启动，一块一块地做。",
        "Both sides are counted alike: the longest chain of stages of the library's plan, each of which waits for the last. "
        "The recurrence: %1$lld to prepare%2$s, then one a word. Attention: %3$lld%4$s at any length; fused, which was "
        "timed, goes through them tile by tile in one launch.",
        (long long)extra, prepared, (long long)race->stages[0], stages);
}

static void show_counts(lesson *lesson, const race *race) {
    enum { COLUMNS = 7 };
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const bench_contrast *sides = &race->sides;
    const int64_t extra = extra_steps(race);
    const char *const head[COLUMNS] = {doc_text(doc, "句长", "length"),
                                       doc_text(doc, "循环：阶段", "recurrence stages"),
                                       doc_text(doc, "注意力：阶段", "attention stages"),
                                       doc_text(doc, "循环 ms", "recurrence ms"),
                                       doc_text(doc, "注意力 ms", "attention ms"),
                                       doc_text(doc, "噪声", "noise"),
                                       doc_text(doc, "谁快", "faster")};
    const char **cells = ARENA_NEW(arena, const char *, sides->count *COLUMNS);
    for (size_t i = 0; i < sides->count; i++) {
        const bench_point *r = &sides->recurrence_at[i], *a = &sides->attention_at[i];
        const char **row = cells + COLUMNS * i;
        row[0] = lesson_count(lesson, sides->lengths[i]);
        row[1] = extra > 0 ? arena_format(arena, "%lld + %lld", (long long)extra, (long long)sides->lengths[i])
                           : lesson_count(lesson, r->chain);
        row[2] = lesson_count(lesson, race->stages[i]);
        row[3] = arena_format(arena, "%.3f", r->ms);
        row[4] = arena_format(arena, "%.3f", a->ms);
        row[5] = measure_noise(doc, fmax(r->noise, a->noise));
        row[6] = winner_text(doc, sides, i);
    }
    doc_add_table(doc, "counts", doc_text(doc, "数出来的阶段，量出来的时间", "Stages as counted, times as measured"),
                  sides->count, COLUMNS, head, cells);
    explain_counts(lesson, race);
    doc_say(doc,
            "两边轮流跑，时间是多次的中位数。噪声是中间一半的运行散开多少，占中位数的百分比，取两边中大的；超过 %.0f %% "
            "就算有噪声。差别小于两边的噪声时，“谁快”写分不出。",
            "Both sides run in turns; times are medians. Noise is how far the middle half of the runs spreads, as a part of "
            "the median, on the worse side; above %.0f %% a time is called noisy. Where the difference is within the noise of "
            "both, who is faster is unclear.",
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
    doc_add_spread(doc, plot, race->low[0], race->high[0]);
    doc_add_series(doc, plot, doc_text(doc, "注意力", "attention"), DOC_ROLE_WEIGHTS, sides->count, lengths, attention);
    doc_add_spread(doc, plot, race->low[1], race->high[1]);
    doc_summary(doc, "句长 %g 时循环用 %.3f ms，注意力用 %.3f ms（噪声 %s）。",
                "At length %g the recurrence takes %.3f ms, attention %.3f ms (noise: %s).", lengths[last], recurrence[last],
                attention[last], measure_noise(doc, fmax(sides->recurrence_at[last].noise, sides->attention_at[last].noise)));
    if (race->left_out > 0)
        doc_say(doc, "句长 %lld 及以上没有量：在这台设备上太慢。",
                "Length %lld and longer were left out: too slow on this device.", (long long)race->left_out);
}

/* The longest length with that outcome; 0: none. */
static int64_t last_win(const bench_contrast *sides, bench_winner winner) {
    for (size_t i = sides->count; i-- > 0;)
        if (bench_faster(&sides->attention_at[i], &sides->recurrence_at[i]) == winner) return sides->lengths[i];
    return 0;
}

/* "16, 64": the lengths with that outcome. */
static const char *lengths_of(const doc *doc, const bench_contrast *sides, bench_winner winner) {
    const char *list = "";
    for (size_t i = 0; i < sides->count; i++)
        if (bench_faster(&sides->attention_at[i], &sides->recurrence_at[i]) == winner)
            list = doc_text(doc, *list != '\0' ? "%s、%lld" : "%s%lld", *list != '\0' ? "%s, %lld" : "%s%lld", list,
                            (long long)sides->lengths[i]);
    return *list != '\0' ? list : doc_text(doc, "没有", "none");
}

/* Why, as far as it can be told from where each side wins. */
static const char *why_it_wins(const doc *doc, const bench_contrast *sides) {
    const int64_t recurrence = last_win(sides, BENCH_WINNER_RECURRENCE), attention = last_win(sides, BENCH_WINNER_ATTENTION);
    if (recurrence > attention)
        return doc_text(doc, "不一定。注意力要等的少，活却多：活随句长的平方涨，核心不够多，就得轮流干。",
                        "Not always. Attention has little to wait for but much work, which grows with the square of the "
                        "length, and a device with few cores does it in turns.");
    if (recurrence > 0)
        return doc_text(doc, "不一定。等待之外，每一步里做多少、怎么做也要算。",
                        "Not always. Besides the waiting it matters what is done in each step, and how.");
    if (attention == 0)
        return doc_text(doc, "这一次没有分出来：机器上还有别的工作。",
                        "This time it is not decided: the machine had other work.");
    if (last_win(sides, BENCH_WINNER_UNCLEAR) > 0)
        return doc_text(doc, "分得出的地方都是注意力快。", "Wherever it can be told, attention is faster.");
    return doc_text(doc, "在量过的每个长度上都是注意力快。", "At every length that was measured, attention is faster.");
}

static const char *who_wins(const doc *doc, const bench_contrast *sides) {
    return doc_text(doc, "%s这台机器上，注意力快的句长：%s；循环快的：%s；差别小于噪声的：%s。",
                    "%s On this machine, lengths at which attention is faster: %s; the recurrence: %s; within the noise: %s.",
                    why_it_wins(doc, sides), lengths_of(doc, sides, BENCH_WINNER_ATTENTION),
                    lengths_of(doc, sides, BENCH_WINNER_RECURRENCE), lengths_of(doc, sides, BENCH_WINNER_UNCLEAR));
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
    doc_say(doc,
            "循环网络的第 t 步要用第 t-1 步的 h，所以没有两步能同时做。注意力的每个结果 z(i) 只要所有的词，词一开始就都在。",
            "Step t of a recurrence needs the h of step t-1, so no two steps can be done at once. A result z(i) of "
            "attention needs all words, and those are there from the start.");
    lesson_introduce_words(lesson, words, "狗追着那个红球", "The dog chased the red ball");
    doc_formula(doc, "h(t) ← h(t-1), x(t)        z(i) ← x(1) … x(n)");
    doc_ask(doc, doc_text(doc, "步少的一定快吗？", "Is the one with fewer steps always the faster one?"),
            who_wins(doc, &race.sides));
    doc_step(doc, "依赖图：时间向右走，同一列的同时做。",
             "What depends on what: time goes to the right, and what stands in one column is done at once.");
    show_graph(lesson, words);
    doc_step(doc, "数一数，再量一量。", "Count, then measure.");
    show_counts(lesson, &race);
    plot_race(lesson, &race, width);
    doc_correct(doc, doc_text(doc, "注意力做的运算少，所以快。", "Attention is fast because it computes less."),
                doc_text(doc, "长句子它算得更多：n² 对 n。它快在这些运算互不等待，可以摊给所有核心。",
                         "For long sentences it computes more: n² against n. It is fast where those operations, none "
                         "waiting for another, can be dealt out to all cores."));
}
