/* What attention costs in memory and in parameters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "courses.h"
#include "measure.h"

/* ---- memory -------------------------------------------------------------------------------------------------------- */

enum { HEAD_DIM = 64, FLOAT = 4 };

typedef struct memory_run {
    size_t count;
    double lengths[CLI_MAX_INTEGERS], inputs[CLI_MAX_INTEGERS], weights[CLI_MAX_INTEGERS], staged[CLI_MAX_INTEGERS],
        fused[CLI_MAX_INTEGERS]; /* KiB */
} memory_run;

static void measure_lengths(lesson *lesson, int64_t dim, memory_run *run) {
    static const int64_t otherwise[] = {128, 256, 512, 1024, 2048, 4096};
    int64_t lengths[CLI_MAX_INTEGERS];
    run->count = lesson_lengths(lesson, otherwise, sizeof otherwise / sizeof *otherwise, lengths);
    for (size_t i = 0; i < run->count; i++) {
        const double n = (double)lengths[i];
        const size_t staged = measure_workspace(lesson, (attention_size){1, lengths[i], dim, CLATTN_ALGORITHM_STAGED}),
                     fused = measure_workspace(lesson, (attention_size){1, lengths[i], dim, CLATTN_ALGORITHM_FUSED});
        run->lengths[i] = n;
        run->inputs[i] = 3 * n * (double)dim * FLOAT / 1024;
        run->weights[i] = n * n * FLOAT / 1024;
        run->staged[i] = (double)staged / 1024;
        run->fused[i] = (double)fused / 1024;
        figures_at(&lesson->figures, "memory/weights_bytes", lengths[i], n * n * FLOAT);
        figures_at(&lesson->figures, "memory/staged_workspace_bytes", lengths[i], (double)staged);
        figures_at(&lesson->figures, "memory/fused_workspace_bytes", lengths[i], (double)fused);
    }
}

/* Whether the staged algorithm's workspace is the matrix of weights and nothing else: then one line shows both. */
static bool holds_weights_alone(const memory_run *run) {
    for (size_t i = 0; i < run->count; i++)
        if (run->staged[i] != run->weights[i]) return false;
    return true;
}

static const char *size_text(lesson *lesson, double kib) {
    return kib >= 1024 && fmod(kib, 1024) == 0
               ? arena_format(&lesson->arena, "%s MiB", lesson_count(lesson, (int64_t)(kib / 1024)))
               : arena_format(&lesson->arena, "%s KiB", lesson_count(lesson, (int64_t)rint(kib)));
}

static void plot_memory(lesson *lesson, int64_t dim, const memory_run *run) {
    doc *doc = &lesson->doc;
    const size_t last = run->count - 1;
    const bool same = holds_weights_alone(run);
    doc_step(doc, "一个头，宽 %lld，单精度，长度一路翻倍。", "One head, %lld wide, single precision, the length doubling.",
             (long long)dim);
    doc_plot *plot = doc_add_plot(doc, "bytes", doc_text(doc, "内存与句长", "Memory against length"));
    plot->x = (doc_axis){.label = doc_text(doc, "句长（词）", "length (words)"), .logarithmic = true};
    plot->y = (doc_axis){.label = "KiB", .logarithmic = true};
    plot->decimals = 0;
    doc_add_series(doc, plot, doc_text(doc, "Q + K + V（算出来的）", "Q + K + V (computed)"), DOC_ROLE_X, run->count,
                   run->lengths, run->inputs);
    doc_add_series(doc, plot,
                   same ? doc_text(doc, "权重矩阵（算出来的）= 分步法要的工作区（计划所说）",
                                   "the weights (computed) = workspace of staged (as its plan says)")
                        : doc_text(doc, "权重矩阵（算出来的）", "the weights (computed)"),
                   DOC_ROLE_WEIGHTS, run->count, run->lengths, run->weights);
    if (!same)
        doc_add_series(doc, plot, doc_text(doc, "分步法要的工作区（计划所说）", "workspace of staged (as its plan says)"),
                       DOC_ROLE_SCORES, run->count, run->lengths, run->staged);
    doc_add_series(doc, plot, doc_text(doc, "融合法要的工作区（计划所说）", "workspace of fused (as its plan says)"),
                   DOC_ROLE_OUT, run->count, run->lengths, run->fused);
    doc_summary(doc, "句长 %s：权重 %s，Q、K、V 一共 %s；分步法另要工作区 %s，融合法 %s。",
                "At length %s: weights %s, Q, K and V %s together; of workspace, staged wants %s, fused %s.",
                lesson_count(lesson, (int64_t)run->lengths[last]), size_text(lesson, run->weights[last]),
                size_text(lesson, run->inputs[last]), size_text(lesson, run->staged[last]),
                size_text(lesson, run->fused[last]));
}

enum { WRITTEN_LENGTH = 1024 };

/* What a run of each really writes. */
static void show_written(lesson *lesson, int64_t dim) {
    doc *doc = &lesson->doc;
    const int64_t staged = measure_written(lesson, (attention_size){1, WRITTEN_LENGTH, dim, CLATTN_ALGORITHM_STAGED});
    const int64_t fused = measure_written(lesson, (attention_size){1, WRITTEN_LENGTH, dim, CLATTN_ALGORITHM_FUSED});
    if (staged < 0) {
        doc_say(doc, "这台设备不在计划的工作区里算，写了多少量不到。",
                "This device does not compute in the workspace of a plan, so what it writes cannot be counted.");
        return;
    }
    const bool wants_none = measure_workspace(lesson, (attention_size){1, WRITTEN_LENGTH, dim, CLATTN_ALGORITHM_FUSED}) == 0;
    if (wants_none)
        doc_say(doc, "融合法一点工作区也不要：它手上的一小块放在寄存器和高速缓存里，用完就丢。",
                "Fused wants no workspace at all: the tile in its hands lies in registers and cache, and is dropped when it is "
                "used.");
    doc_say(doc, "量一量：先把工作区填满记号，跑一次，再数改动过的字节。句长 %s：分步法写了 %s%s。",
            "Measured: fill the workspace with a pattern, run once, count the bytes that changed. At length %s staged wrote "
            "%s%s.",
            lesson_count(lesson, WRITTEN_LENGTH), size_text(lesson, (double)staged / 1024),
            wants_none ? doc_text(doc, "；融合法没有工作区，也就写不了", "; fused has none to write into")
                       : doc_text(doc, "，融合法写了 %s", ", fused %s", size_text(lesson, (double)fused / 1024)));
    figures_at(&lesson->figures, "memory/staged_written_bytes", WRITTEN_LENGTH, (double)staged);
    figures_at(&lesson->figures, "memory/fused_written_bytes", WRITTEN_LENGTH, (double)fused);
}

enum { SHARE_ROWS = 5, SHARE_MODEL = 512 };

/* Shares of Q and K (n, d_k) each, weights (n, n) and V (n, d_in), as one of the documents counts them: 25, 45 and 30 %. */
static void show_shares(lesson *lesson) {
    static const int64_t lengths[SHARE_ROWS] = {64, 256, 768, 1024, 4096};
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    /* Q + K : V = 25 : 30 says what d_k is, and weights : V = 45 : 30 what n is. */
    const double model = SHARE_MODEL, match_k = model * 25 / 30 / 2, match_n = model * 45 / 30;
    const char *const head[] = {doc_text(doc, "句长", "length"), "Q + K", doc_text(doc, "权重", "weights"), "V"};
    const char *cells[SHARE_ROWS * 4];
    for (int i = 0; i < SHARE_ROWS; i++) {
        const double n = (double)lengths[i], whole = 2 * n * match_k + n * n + n * model;
        cells[4 * i] = lesson_count(lesson, lengths[i]);
        cells[4 * i + 1] = arena_format(arena, "%.0f %%", 200 * n * match_k / whole);
        cells[4 * i + 2] = arena_format(arena, "%.0f %%", 100 * n * n / whole);
        cells[4 * i + 3] = arena_format(arena, "%.0f %%", 100 * n * model / whole);
        figures_at(&lesson->figures, "memory/weights_share_percent", lengths[i], 100 * n * n / whole);
    }
    doc_step(doc, "假如有人说：内存里 Q/K 占 25 %%，权重 45 %%，V 30 %%。什么时候成立？",
             "Suppose one says: of the memory, Q and K take 25 %%, weights 45 %%, V 30 %%. When does that hold?");
    doc_say(
        doc,
        "这里 V 和词向量一样宽：Q 和 K 各是 (n, d_k)，权重 (n, n)，V 是 (n, d_in)，所以 V 比 Q 宽。份额由形状算出，不用量。",
        "Here V is as wide as the word vectors: Q and K are (n, d_k) each, the weights (n, n), V is (n, d_in), and so wider "
        "than Q. The shares follow from these shapes; nothing is measured.");
    doc_add_table(doc, "shares",
                  doc_text(doc, "份额，d_in = %d，d_k = %.0f", "Shares, d_in = %d, d_k = %.0f", SHARE_MODEL, match_k),
                  SHARE_ROWS, 4, head, cells);
    doc_summary(doc,
                "只在一个长度成立：n = 1.5·d_in = %1$.0f，而且 d_k 要恰好是 d_in 的 5/12。句长 %2$s 时权重只占 "
                "%3$s，%4$s 时占 %5$s。",
                "At one length alone: n = 1.5·d_in = %1$.0f, and with d_k just 5/12 of d_in. At length %2$s weights are "
                "%3$s, at %4$s "
                "%5$s.",
                match_n, cells[0], cells[2], cells[4 * (SHARE_ROWS - 1)], cells[4 * (SHARE_ROWS - 1) + 2]);
    figures_number(&lesson->figures, "memory/shares_hold_at_length", match_n);
}

void lesson_memory(lesson *lesson) {
    doc *doc = &lesson->doc;
    const int64_t dim = lesson_integer(lesson->parameters.dim, HEAD_DIM);
    memory_run run;
    measure_require(lesson, dim);
    measure_lengths(lesson, dim, &run);
    doc_say(doc, "Q、K、V 随句长成比例地长，权重矩阵随平方长：句长加倍，它变成 4 倍。存下它的算法，长句子里先被它吃光内存。",
            "Q, K and V grow in step with the length, the matrix of weights with its square: twice the length, four times the "
            "matrix. Where it is stored, it is what eats the memory of long sentences.");
    doc_formula(doc, "Q, K, V: 3·n·d_k·4 B        A: n·n·4 B");
    doc_say(doc, "n 是句长，d_k 是头的宽度，A 是权重；单精度一个数 4 字节（B）。",
            "n is the length, d_k the width of the head, A the weights; a number of single precision takes 4 bytes (B).");
    doc_ask(doc,
            doc_text(doc, "宽 d_k = %lld，多长时权重和 Q、K、V 加起来一样大？",
                     "At a width d_k = %lld, at which length are the weights as large as Q, K and V together?", (long long)dim),
            doc_text(doc, "n² = 3·n·d_k，所以 n = 3·d_k = %lld。", "n² = 3·n·d_k, so n = 3·d_k = %lld.", (long long)(3 * dim)));
    plot_memory(lesson, dim, &run);
    show_written(lesson, dim);
    doc_say(
        doc, "分步法把整张矩阵放在内存里，才看得见每一步。融合法一块一块地算，从不存下它：见%s。",
        "Staged keeps the whole matrix, so that each step can be seen. Fused goes tile by tile and never stores it: see %s.",
        lesson_refer(lesson, "softmax"));
    show_shares(lesson);
    doc_correct(
        doc, doc_text(doc, "1,024 个词时，权重矩阵一定是瓶颈。", "At 1,024 words the weights are sure to be the bottleneck."),
        doc_text(
            doc, "一个头 1024 × 1024 × 4 B = 4 MiB，不算什么；乘上头数、批量和层数才吓人，而融合法句长 %s 也只要 %s 工作区。",
            "For one head 1024 × 1024 × 4 B is 4 MiB, which is little. Times heads, batch and layers it is much; yet at length "
            "%s fused wants %s of workspace.",
            lesson_count(lesson, (int64_t)run.lengths[run.count - 1]), size_text(lesson, run.fused[run.count - 1])));
}

/* ---- parameters ---------------------------------------------------------------------------------------------------- */

enum { SIZES = 6, PARAMETERS_HEADS = 8 };

/* What else belongs to a layer. Feed-forward: two matrices, to 4·d_in numbers and back. */
static void show_layers(lesson *lesson, int64_t d_in) {
    enum { ROWS = 4, COLUMNS = 4, LSTM_SQUARES = 8 };
    static const int64_t squares[ROWS] = {LSTM_SQUARES, 3, 4, 12}; /* of d_in² */
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const char *const head[COLUMNS] = {doc_text(doc, "一层", "layer"), doc_text(doc, "公式", "formula"),
                                       doc_text(doc, "参数（个）", "parameters"),
                                       doc_text(doc, "LSTM 的几倍", "of the LSTM’s")};
    const char *const names[ROWS] = {"LSTM", doc_text(doc, "注意力：W_q、W_k、W_v", "attention: W_q, W_k, W_v"),
                                     doc_text(doc, "再加 W_o", "with W_o"),
                                     doc_text(doc, "Transformer 一层：再加前馈", "Transformer: with feed-forward")};
    const char *cells[ROWS * COLUMNS];
    for (int i = 0; i < ROWS; i++) {
        cells[COLUMNS * i] = names[i];
        cells[COLUMNS * i + 1] = arena_format(arena, "%lld·d_in²", (long long)squares[i]);
        cells[COLUMNS * i + 2] = lesson_count(lesson, squares[i] * d_in * d_in);
        cells[COLUMNS * i + 3] = arena_format(arena, "%.3g", (double)squares[i] / LSTM_SQUARES);
    }
    doc_add_table(doc, "layers", doc_text(doc, "一层有多少，d_in = %lld", "A layer, with d_in = %lld", (long long)d_in), ROWS,
                  COLUMNS, head, cells);
    doc_summary(
        doc,
        "都不含偏置。前馈是两个矩阵，常从 d_in 到 4·d_in 再回来：8·d_in²。一层只有注意力是 LSTM 的一半，"
        "整个 Transformer 层却比 LSTM 多一半。",
        "None counts biases. Feed-forward are two matrices, usually from d_in to 4·d_in and back: 8·d_in². Attention alone "
        "has half of the LSTM's, a whole layer of a Transformer half as many again.");
    figures_number(&lesson->figures, "parameters/transformer_layer", (double)(squares[ROWS - 1] * d_in * d_in));
}

void lesson_parameters_count(lesson *lesson) {
    static const int64_t sizes[SIZES] = {64, 128, 256, 512, 768, 1024};
    doc *doc = &lesson->doc;
    const int64_t d_in = lesson_integer(lesson->parameters.dim, 512);
    if (d_in % PARAMETERS_HEADS != 0)
        lesson_fail(lesson, CLI_USAGE, "--dim has to be a multiple of the %d heads, which %lld is not", PARAMETERS_HEADS,
                    (long long)d_in);
    double x[SIZES], lstm[SIZES], attention[SIZES];
    for (int i = 0; i < SIZES; i++) {
        x[i] = (double)sizes[i];
        lstm[i] = 4 * (x[i] + x[i]) * x[i];
        attention[i] = 3 * x[i] * (x[i] / PARAMETERS_HEADS) * PARAMETERS_HEADS;
        figures_at(&lesson->figures, "parameters/lstm_by_width", sizes[i], lstm[i]);
        figures_at(&lesson->figures, "parameters/self_attention_by_width", sizes[i], attention[i]);
    }
    figures_text(&lesson->figures, "parameters/lstm", "4*(input_dim+hidden_dim)*hidden_dim");
    figures_text(&lesson->figures, "parameters/self_attention", "3*input_dim*head_dim*num_heads");
    doc_say(doc, "一层要学多少个数？LSTM 有四组权重（三道门加新内容），每组都读词和旧记忆；注意力只有三组，只读词。",
            "How many numbers does a layer learn? The LSTM has four sets of weights (three gates and what is new), each "
            "reading the word and the old memory; attention has three, reading the word alone.");
    doc_formula(doc, "LSTM: 4·(d_in + d_h)·d_h        W_q, W_k, W_v: 3·d_in·d_k·H");
    doc_say(doc,
            "d_in 是词的宽度，d_h 是 LSTM 记忆的宽度，d_k 是一个头的宽度，H 是头数。这一课的数都由公式算出，没有什么要量。",
            "d_in is the width of a word, d_h of the LSTM's memory, d_k of a head; H is the number of heads. All numbers here "
            "follow from the formulas; "
            "nothing is measured.");
    doc_ask(
        doc,
        doc_text(doc, "输入和输出都宽 d_in，LSTM 是注意力的几倍？",
                 "With input and output d_in wide, how many times as many parameters as attention has the LSTM?"),
        doc_text(doc,
                 "LSTM 4·(d_in + d_in)·d_in = 8·d_in²；注意力的 W_q、W_k、W_v 是 3·d_in²，加上 W_o 是 4·d_in²：%.2f "
                 "倍和 2 倍，无论 d_in 是多少。可 Transformer 的一层还有前馈网络，一共 12·d_in²，是 LSTM 的 1.5 倍。",
                 "The LSTM has 4·(d_in + d_in)·d_in = 8·d_in². W_q, W_k and W_v of attention have 3·d_in², with W_o "
                 "4·d_in²: %.2f times and 2 times, whatever d_in is. But a layer of a Transformer has a feed-forward network, "
                 "too, which makes 12·d_in², 1.5 times the LSTM.",
                 8.0 / 3));
    doc_step(doc, "d_in = d_h = H·d_k，H = %d 个头。", "d_in = d_h = H·d_k, with H = %d heads.", PARAMETERS_HEADS);
    doc_plot *plot = doc_add_plot(doc, "parameters", doc_text(doc, "参数量与宽度", "Parameters against width"));
    plot->x = (doc_axis){.label = doc_text(doc, "宽度 d_in", "width d_in")};
    plot->y = (doc_axis){.label = doc_text(doc, "参数（个）", "parameters")};
    plot->decimals = 0;
    doc_add_series(doc, plot, "LSTM", DOC_ROLE_LSTM, SIZES, x, lstm);
    doc_add_series(doc, plot, doc_text(doc, "注意力", "attention"), DOC_ROLE_WEIGHTS, SIZES, x, attention);
    doc_summary(doc, "d_in = %s：LSTM %s，注意力 %s，处处是 8/3 倍。",
                "At d_in = %s: LSTM %s, attention %s; everywhere 8/3 times as many.", lesson_count(lesson, sizes[SIZES - 1]),
                lesson_count(lesson, (int64_t)lstm[SIZES - 1]), lesson_count(lesson, (int64_t)attention[SIZES - 1]));
    show_layers(lesson, d_in);
    doc_correct(
        doc, doc_text(doc, "参数少，所以快。", "Fewer parameters, therefore faster."),
        doc_text(doc, "参数说的是要学多少、要存多少。快慢看运算和等待：见%s。",
                 "Parameters say what has to be learnt and kept. Speed is a matter of operations and of waiting: see %s.",
                 lesson_refer(lesson, "serial-steps")));
}
