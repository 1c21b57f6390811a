/* What a step has to wait for: the recurrence in a queue, attention at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <string.h>

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
                "图里数的是结果，一步得出所有能得出的结果：循环网络的 %lld 个结果要 %lld 步，有多少个核心都一样；注意力的 "
                "%lld 个结果，核心够多就只要 1 步。",
                "The picture counts results; a step gives all that can be had. The recurrence's %lld results take %lld steps, "
                "however many cores there are; attention's %lld take 1, given enough cores.",
                (long long)words.count, (long long)words.count, (long long)words.count);
    if (words.count > WORDS_SHOWN) doc_say(doc, "图里只画了前 %d 个词。", "The picture shows the first %d words.", WORDS_SHOWN);
}

typedef struct race {
    bench_contrast sides;
    double low[LANES][BENCH_MAX_LENGTHS], high[LANES][BENCH_MAX_LENGTHS]; /* quartiles of the times */
    int64_t stages[BENCH_MAX_LENGTHS];                                    /* of attention, step by step */
    double fastest[LANES][BENCH_MAX_LENGTHS];                             /* the fastest runs */
    int64_t left_out;          /* the first length that would take too long; 0: none */
    double left_out_ms[LANES]; /* what a run of it would take */
} race;

/* Whether a run of the next length is short enough, to go by the fastest run of the last: others may have waited for other
 * programs. The recurrence grows with the length, attention with its square. */
static bool is_worth(race *race, size_t i, const int64_t *lengths) {
    const double growth = (double)lengths[i] / (double)lengths[i - 1];
    const double ms[LANES] = {race->fastest[0][i - 1] * growth, race->fastest[1][i - 1] * growth * growth};
    if (measure_is_worth(ms[0]) && measure_is_worth(ms[1])) return true;
    race->left_out = lengths[i];
    memcpy(race->left_out_ms, ms, sizeof ms);
    return false;
}

/* Both sides in turns, at one length after another. */
static void run_race(lesson *lesson, const int64_t *lengths, size_t count, int64_t width, race *race) {
    const int64_t head_dim = width % HEAD_DIM == 0 ? HEAD_DIM : width;
    bench_contrast *sides = &race->sides;
    measure_require(lesson, head_dim);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !is_worth(race, i, lengths)) return;
        const bench_shape shapes[LANES] = {measure_recurrence(lengths[i], width),
                                           measure_attention(width / head_dim, lengths[i], head_dim)};
        bench_point points[LANES];
        measure_spread spreads[LANES];
        measure_in_turns(lesson, shapes, LANES, points, spreads);
        for (int lane = 0; lane < LANES; lane++) {
            race->low[lane][i] = spreads[lane].low;
            race->high[lane][i] = spreads[lane].high;
            race->fastest[lane][i] = spreads[lane].fastest;
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
        figures_at(&lesson->figures, "serial_steps/noise", lengths[i], bench_noise(&points[0], &points[1]));
        figures_at(&lesson->figures, "serial_steps/arithmetic", lengths[i], points[1].flops / points[0].flops);
    }
}

/* The steps of a recurrence before its first word; below 0 where a device counts a whole operator as one step. */
static int64_t extra_steps(const race *race) {
    return race->sides.recurrence_at[0].chain - race->sides.lengths[0];
}

static bool is_too_noisy(const bench_contrast *sides, size_t i) {
    return bench_too_noisy(&sides->attention_at[i], &sides->recurrence_at[i]);
}

/* How a length ends: who is faster, or why that cannot be told. */
typedef enum outcome { ATTENTION, RECURRENCE, TOO_CLOSE, TOO_NOISY, OUTCOMES } outcome;

static outcome outcome_of(const bench_contrast *sides, size_t i) {
    if (is_too_noisy(sides, i)) return TOO_NOISY;
    switch (bench_faster(&sides->attention_at[i], &sides->recurrence_at[i])) {
    case BENCH_WINNER_ATTENTION:
        return ATTENTION;
    case BENCH_WINNER_RECURRENCE:
        return RECURRENCE;
    default:
        return TOO_CLOSE;
    }
}

static const char *winner_text(const doc *doc, const bench_contrast *sides, size_t i) {
    static const char *const texts[OUTCOMES][2] = {
        [ATTENTION] = {"注意力", "attention"},
        [RECURRENCE] = {"循环", "recurrence"},
        [TOO_CLOSE] = {"分不出", "unclear"},
        [TOO_NOISY] = {"噪声太大", "too noisy"},
    };
    return texts[outcome_of(sides, i)][doc->language];
}

/* How much attention computes of what the recurrence does. */
static double arithmetic_of(const bench_contrast *sides, size_t i) {
    return sides->attention_at[i].flops / sides->recurrence_at[i].flops;
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
    const char *prepared = extra == PREPARED ? doc_text(doc, "（排好所有词的输入，再把 W_h 排成好读的样子）",
                                                        " (the inputs of all words laid out, then W_h, to be read fast)")
                                             : "",
               *stages =
                   race->stages[0] == STAGES ? doc_text(doc, "（打分、softmax、混合）", " (scores, softmax, mixing)") : "";
    doc_summary(
        doc,
        "两边数法一样：在程序库的计划里，要一个接一个执行的阶段最长有多少个。循环网络：%1$lld 个准备阶段%2$s，然后每个词一个。"
        "注意力：%3$lld 个%4$s，句长再长也一样；计时用的融合法把它们放进一次启动，一块一块地做。两边的投影都不算在内：循环没有 "
        "W_in·x。",
        "Both sides are counted alike: the longest chain of stages of the library's plan, each of which waits for the last. "
        "The recurrence: %1$lld to prepare%2$s, then one a word. Attention: %3$lld%4$s at any length; fused, which was "
        "timed, goes through them tile by tile in one launch. Projections are left out on both sides: the recurrence has no "
        "W_in·x.",
        (long long)extra, prepared, (long long)race->stages[0], stages);
}

/* Stages and operations, which are counted. */
static void show_counts(lesson *lesson, const race *race) {
    enum { COLUMNS = 4 };
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const bench_contrast *sides = &race->sides;
    const int64_t extra = extra_steps(race);
    const char *const head[COLUMNS] = {doc_text(doc, "句长", "length"), doc_text(doc, "循环：阶段", "recurrence stages"),
                                       doc_text(doc, "注意力：阶段", "attention stages"),
                                       doc_text(doc, "算术：注意力是循环的", "arithmetic, attention / recurrence")};
    const char **cells = ARENA_NEW(arena, const char *, sides->count *COLUMNS);
    for (size_t i = 0; i < sides->count; i++) {
        const char **row = cells + COLUMNS * i;
        row[0] = lesson_count(lesson, sides->lengths[i]);
        row[1] = extra > 0 ? arena_format(arena, "%lld + %lld", (long long)extra, (long long)sides->lengths[i])
                           : lesson_count(lesson, sides->recurrence_at[i].chain);
        row[2] = lesson_count(lesson, race->stages[i]);
        row[3] = doc_text(doc, "%.3g 倍", "%.3gx", arithmetic_of(sides, i));
    }
    doc_add_table(doc, "counts", doc_text(doc, "数出来的：阶段和运算", "Counted: stages and operations"), sides->count, COLUMNS,
                  head, cells);
    explain_counts(lesson, race);
}

/* Times, which are measured. */
static void show_times(lesson *lesson, const race *race) {
    enum { COLUMNS = 5 };
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const bench_contrast *sides = &race->sides;
    const char *const head[COLUMNS] = {doc_text(doc, "句长", "length"), doc_text(doc, "循环 ms", "recurrence ms"),
                                       doc_text(doc, "注意力 ms", "attention ms"), doc_text(doc, "噪声", "noise"),
                                       doc_text(doc, "谁快", "faster")};
    const char **cells = ARENA_NEW(arena, const char *, sides->count *COLUMNS);
    for (size_t i = 0; i < sides->count; i++) {
        const bench_point *r = &sides->recurrence_at[i], *a = &sides->attention_at[i];
        const char **row = cells + COLUMNS * i;
        row[0] = lesson_count(lesson, sides->lengths[i]);
        row[1] = arena_format(arena, "%.3f", r->ms);
        row[2] = arena_format(arena, "%.3f", a->ms);
        row[3] = measure_percent(doc, bench_noise(r, a));
        row[4] = winner_text(doc, sides, i);
    }
    doc_add_table(doc, "times", doc_text(doc, "量出来的：时间", "Measured: times"), sides->count, COLUMNS, head, cells);
    doc_summary(
        doc,
        "两边轮流跑，时间是多次的中位数。噪声是中间一半的运行散开多少，占中位数的百分比，取两边中大的；超过 %.0f %% "
        "就算有噪声，超过 %.0f %%、两边的时间又可能重叠，就不比快慢；差别小于噪声，就分不出。",
        "Both sides run in turns; times are medians. Noise is how far the middle half of the runs spreads, as a part of "
        "the median, on the worse side; above %.0f %% a time is called noisy, above %.0f %%, and where the two may overlap, too noisy to tell who is faster, "
        "which is unclear, too, where the difference is within the noise.",
        100 * BENCH_NOISY_ABOVE, 100 * BENCH_TOO_NOISY);
}

/* The longest length whose times are not too noisy; false: there is none. */
static bool find_quiet(const bench_contrast *sides, size_t *quiet) {
    for (size_t i = sides->count; i-- > 0;)
        if (!is_too_noisy(sides, i)) return *quiet = i, true;
    return false;
}

static void plot_race(lesson *lesson, const race *race, int64_t width) {
    doc *doc = &lesson->doc;
    const bench_contrast *sides = &race->sides;
    size_t quiet = 0;
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
    if (find_quiet(sides, &quiet))
        doc_summary(doc, "句长 %g 时循环用 %.3f ms，注意力用 %.3f ms（噪声 %s）。",
                    "At length %g the recurrence takes %.3f ms, attention %.3f ms (noise: %s).", lengths[quiet],
                    recurrence[quiet], attention[quiet],
                    measure_noise(doc, bench_noise(&sides->recurrence_at[quiet], &sides->attention_at[quiet])));
    else
        doc_summary(doc, "这一次噪声太大，分不出快慢：机器上还有别的工作。",
                    "This time all of it is too noisy to call: the machine had other work.");
    if (race->left_out > 0)
        doc_say(doc,
                "句长 %1$lld 及以上没有量：照上一个句长里最快的一次推算，跑一次循环要 %2$.0f 毫秒，注意力要 %3$.0f "
                "毫秒，有一边超过 %4$d 毫秒。",
                "Length %1$lld and longer were left out: to go by the fastest run of the length before, one would take the "
                "recurrence %2$.0f ms and attention %3$.0f ms, one of which is more than %4$d ms.",
                (long long)race->left_out, race->left_out_ms[0], race->left_out_ms[1], MEASURE_WORTH_MS);
}

/* The longest length with that outcome; 0: none. */
static int64_t last_with(const bench_contrast *sides, outcome outcome) {
    for (size_t i = sides->count; i-- > 0;)
        if (outcome_of(sides, i) == outcome) return sides->lengths[i];
    return 0;
}

/* "16, 64": the lengths with that outcome. */
static const char *lengths_of(const doc *doc, const bench_contrast *sides, outcome outcome) {
    const char *list = "";
    for (size_t i = 0; i < sides->count; i++)
        if (outcome_of(sides, i) == outcome)
            list = doc_text(doc, *list != '\0' ? "%s、%lld" : "%s%lld", *list != '\0' ? "%s, %lld" : "%s%lld", list,
                            (long long)sides->lengths[i]);
    return *list != '\0' ? list : doc_text(doc, "没有", "none");
}

/* Why, as far as it can be told from where each side wins. */
static const char *why_it_wins(const doc *doc, const bench_contrast *sides) {
    const int64_t recurrence = last_with(sides, RECURRENCE), attention = last_with(sides, ATTENTION);
    if (recurrence > attention)
        return doc_text(doc, "不一定。注意力要等的少，活却多：活随句长的平方涨，核心不够多，就得轮流干。",
                        "Not always. Attention has little to wait for but much work, which grows with the square of the "
                        "length, and a device with few cores does it in turns.");
    if (recurrence > 0)
        return doc_text(doc, "不一定。等待之外，每一步里做多少、怎么做也要算。",
                        "Not always. Besides the waiting it matters what is done in each step, and how.");
    if (attention == 0) return doc_text(doc, "这一次没有分出来。", "This time it is not decided.");
    if (last_with(sides, TOO_CLOSE) > 0 || last_with(sides, TOO_NOISY) > 0)
        return doc_text(doc, "分得出的地方都是注意力快。", "Wherever it can be told, attention is faster.");
    return doc_text(doc, "在量过的每个长度上都是注意力快。", "At every length that was measured, attention is faster.");
}

static const char *who_wins(const doc *doc, const bench_contrast *sides) {
    return doc_text(
        doc, "%s这台机器上，注意力快的句长：%s；循环快的：%s；差别小于噪声的：%s；噪声太大、分不出的：%s。",
        "%s On this machine, lengths at which attention is faster: %s; the recurrence: %s; within the noise: %s; too "
        "noisy to call: %s.",
        why_it_wins(doc, sides), lengths_of(doc, sides, ATTENTION), lengths_of(doc, sides, RECURRENCE),
        lengths_of(doc, sides, TOO_CLOSE), lengths_of(doc, sides, TOO_NOISY));
}

static void correct_arithmetic(lesson *lesson, const bench_contrast *sides) {
    const doc *doc = &lesson->doc;
    const size_t last = sides->count - 1;
    const char *longest = last > 0 ? doc_text(doc, "，%s 个词时 %.3g 倍", ", at %s %.3g times",
                                              lesson_count(lesson, sides->lengths[last]), arithmetic_of(sides, last))
                                   : "";
    doc_correct(
        &lesson->doc, doc_text(doc, "注意力做的运算少，所以快。", "Attention is fast because it computes less."),
        doc_text(
            doc,
            "看句长：%1$s 个词时它的算术是循环的 %2$.3g 倍%3$s，n² 对 n。不变的是：它的运算互不等待，可以摊给所有核心，"
            "也摊给每个核心的向量单元。",
            "That depends on the length: at %1$s words it does %2$.3g times the recurrence's arithmetic%3$s, n² against n. "
            "What holds at any length: its operations do not wait for one another, and can be dealt out to all cores and to "
            "the vector units of each.",
            lesson_count(lesson, sides->lengths[0]), arithmetic_of(sides, 0), longest));
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
    show_times(lesson, &race);
    plot_race(lesson, &race, width);
    correct_arithmetic(lesson, &race.sides);
}
