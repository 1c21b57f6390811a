/* What a step has to wait for: the recurrence in a queue, attention at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "courses.h"
#include "measure.h"

enum { WORDS = 6, WORDS_SHOWN = 12, WIDTH = 256, HEAD_DIM = 64, LANES = 2 };

static const char *const own_words[WORDS] = {"The", "dog", "chased", "the", "red", "ball"};

/* Lane 0: h waits for h. Lane 1: every output waits for all words and for no other output. */
static void show_graph(lesson *lesson, lesson_words words) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const size_t n = (size_t)(words.count < WORDS_SHOWN ? words.count : WORDS_SHOWN);
    doc_graph *graph = doc_add_graph(doc, "waiting", doc_text(doc, "谁在等谁", "Who waits for whom"));
    doc_node *nodes = ARENA_NEW(arena, doc_node, 2 * n);
    doc_edge *edges = ARENA_NEW(arena, doc_edge, n);
    const char **lanes = ARENA_NEW(arena, const char *, LANES);
    for (size_t i = 0; i < n; i++) {
        nodes[i] = (doc_node){words.at[i], 0, (int)i, (int)i + 1};
        nodes[n + i] = (doc_node){words.at[i], 1, (int)i, 1};
        if (i > 0) edges[i - 1] = (doc_edge){i - 1, i};
    }
    lanes[0] = doc_text(doc, "循环网络：每个词等前一个词", "The recurrence: each word waits for the one before");
    lanes[1] = doc_text(doc, "注意力：所有词同时", "Attention: all words at the same time");
    *graph = (doc_graph){2 * n, n - 1, nodes, edges, lanes, LANES};
    doc_summary(doc, "循环网络要 %lld 步，注意力要 1 步，无论多少个核心。",
                "The recurrence takes %lld steps, attention 1, however many cores there are.", (long long)words.count);
    if (words.count > WORDS_SHOWN) doc_say(doc, "图里只画了前 %d 个词。", "The picture shows the first %d words.", WORDS_SHOWN);
}

typedef struct race {
    size_t count;
    double lengths[CLI_MAX_INTEGERS], recurrence[CLI_MAX_INTEGERS], attention[CLI_MAX_INTEGERS]; /* ms */
    int64_t recurrence_steps[CLI_MAX_INTEGERS], attention_steps[CLI_MAX_INTEGERS];
    int64_t left_out; /* the first length that would take too long; 0: none */
} race;

static void run_race(lesson *lesson, const int64_t *lengths, size_t count, int64_t width, race *race) {
    const int64_t head_dim = width % HEAD_DIM == 0 ? HEAD_DIM : width;
    for (size_t i = 0; i < count; i++) {
        const double growth = i > 0 ? (double)lengths[i] / (double)lengths[i - 1] : 1;
        if (i > 0 &&
            !(measure_worth(race->attention[i - 1], growth * growth) && measure_worth(race->recurrence[i - 1], growth))) {
            race->left_out = lengths[i];
            return;
        }
        const measured a =
            measure_attention(lesson, (attention_size){width / head_dim, lengths[i], head_dim, CLATTN_ALGORITHM_FUSED});
        const measured r = measure_recurrence(lesson, CLATTN_CELL_RNN, lengths[i], width);
        race->lengths[i] = (double)lengths[i];
        race->attention[i] = a.milliseconds;
        race->recurrence[i] = r.milliseconds;
        race->attention_steps[i] = a.dependent_steps;
        race->recurrence_steps[i] = r.dependent_steps;
        race->count++;
        figures_at(&lesson->figures, "serial_steps/recurrence_steps", lengths[i], (double)r.dependent_steps);
        figures_at(&lesson->figures, "serial_steps/attention_steps", lengths[i], (double)a.dependent_steps);
        figures_at(&lesson->figures, "serial_steps/recurrence_ms", lengths[i], r.milliseconds);
        figures_at(&lesson->figures, "serial_steps/attention_ms", lengths[i], a.milliseconds);
    }
}

static void show_counts(lesson *lesson, const race *race) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const char *const head[] = {doc_text(doc, "句长", "length"), doc_text(doc, "循环：步", "recurrence: steps"),
                                doc_text(doc, "注意力：步", "attention: steps"), doc_text(doc, "循环 ms", "recurrence ms"),
                                doc_text(doc, "注意力 ms", "attention ms")};
    const char **cells = ARENA_NEW(arena, const char *, race->count * 5);
    for (size_t i = 0; i < race->count; i++) {
        cells[5 * i] = arena_format(arena, "%g", race->lengths[i]);
        cells[5 * i + 1] = arena_format(arena, "%lld", (long long)race->recurrence_steps[i]);
        cells[5 * i + 2] = arena_format(arena, "%lld", (long long)race->attention_steps[i]);
        cells[5 * i + 3] = arena_format(arena, "%.3f", race->recurrence[i]);
        cells[5 * i + 4] = arena_format(arena, "%.3f", race->attention[i]);
    }
    doc_add_table(doc, "counts", doc_text(doc, "数出来的步，量出来的时间", "Steps as counted, times as measured"), race->count,
                  5, head, cells);
    const int64_t extra = race->recurrence_steps[0] - (int64_t)race->lengths[0];
    if (extra >= 0)
        doc_summary(
            doc, "步数是计划里最长的一串，每一步都要等上一步。循环网络每个词一步，外加 %lld 步准备；注意力的步数不随句长变。",
            "Steps are the longest chain of the plan, each of which waits for the last. The recurrence takes one a word "
            "and %lld to prepare; attention's do not depend on the length.",
            (long long)extra);
    else
        doc_summary(doc, "这台设备把整个算子当作一步，它的计划数不出里面的等待。",
                    "This device counts a whole operator as one step: its plan does not tell of the waiting inside.");
}

static void plot_race(lesson *lesson, const race *race, int64_t width) {
    doc *doc = &lesson->doc;
    const size_t last = race->count - 1;
    doc_plot *plot = doc_add_plot(
        doc, "race", doc_text(doc, "同一台设备，同样宽 %lld", "The same device, the same width of %lld", (long long)width));
    plot->x = (doc_axis){.label = doc_text(doc, "句长（词）", "length (words)"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "时间（ms）", "time (ms)"), .logarithmic = true};
    doc_add_series(doc, plot, doc_text(doc, "循环网络", "recurrence"), DOC_ROLE_RECURRENCE, race->count, race->lengths,
                   race->recurrence);
    doc_add_series(doc, plot, doc_text(doc, "注意力", "attention"), DOC_ROLE_WEIGHTS, race->count, race->lengths,
                   race->attention);
    doc_summary(doc, "句长 %g 时循环用 %.3f ms，注意力用 %.3f ms。",
                "At length %g the recurrence takes %.3f ms, attention %.3f ms.", race->lengths[last], race->recurrence[last],
                race->attention[last]);
    if (race->left_out > 0)
        doc_say(doc, "句长 %lld 及以上没有量：在这台设备上太慢。",
                "Length %lld and longer were left out: too slow on this device.", (long long)race->left_out);
}

/* Where the recurrence is the faster one, if anywhere. */
static const char *who_wins(const doc *doc, const race *race) {
    size_t first = 0;
    while (first < race->count && race->attention[first] <= race->recurrence[first]) first++;
    if (first == race->count)
        return doc_text(doc, "在量过的每个长度上都是注意力快。", "At every length that was measured, attention is faster.");
    return doc_text(
        doc,
        "不一定：从句长 %g 起循环反而快。注意力的步少，活却多：活随句长的平方涨，这台设备的核心不够多，就得排队干。"
        "核心越多，这个交点越远。",
        "Not always: at length %g the recurrence is faster. Attention has few steps but much work, growing with the square "
        "of the length, and a device with few cores does that work in turns. The more cores, the later the lines cross.",
        race->lengths[first]);
}

void lesson_serial_steps(lesson *lesson) {
    static const int64_t otherwise[] = {16, 64, 256, 1024};
    doc *doc = &lesson->doc;
    int64_t lengths[CLI_MAX_INTEGERS];
    const size_t count = lesson_lengths(lesson, otherwise, sizeof otherwise / sizeof *otherwise, lengths);
    const int64_t width = lesson_integer(lesson->parameters.dim, WIDTH);
    const lesson_words words = lesson_take_words(lesson, own_words, WORDS);
    race race = {.count = 0};
    run_race(lesson, lengths, count, width, &race);
    doc_say(doc, "循环网络的第 t 步要用第 t-1 步的 h，所以没有两步能同时做。注意力的每个输出只要所有的词，词一开始就都在。",
            "Step t of a recurrence needs the h of step t-1, so no two steps can be done at once. An output of attention "
            "needs all words, and those are there from the start.");
    doc_formula(doc, "h(t) ← h(t-1), x(t)        z(i) ← x(1) … x(L)");
    doc_ask(doc, doc_text(doc, "步少的一定快吗？", "Is the one with fewer steps always the faster one?"), who_wins(doc, &race));
    doc_step(doc, "依赖图：横着是时间。", "What depends on what: time goes to the right.");
    show_graph(lesson, words);
    doc_step(doc, "数一数，再量一量。", "Count, then measure.");
    show_counts(lesson, &race);
    plot_race(lesson, &race, width);
    doc_correct(doc, doc_text(doc, "注意力做的运算少，所以快。", "Attention is fast because it computes less."),
                doc_text(doc, "长句子它算得更多：L² 对 L。它快在这些运算互不等待，可以摊给所有核心。",
                         "For long sentences it computes more: L² against L. It is fast where those operations, none "
                         "waiting for another, can be dealt out to all cores."));
}
