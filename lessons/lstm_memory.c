/* The LSTM remembers: a conveyor belt beside the memory, and three gates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <string.h>

#include "courses.h"
#include "pairs.h"

enum { GATES = 4, GATES_SHOWN = 3, FORGET = 2 /* in the library's order */, GATE_STEPS = 8, BELT_STEPS = 24, MODELS = 3 };

/* The experiment's row blocks are forget, input, output, new; the library's input, output, forget, new. */
static mat library_order(lesson *lesson, mat w) {
    static const int from[GATES] = {1, 2, 0, 3};
    const int64_t block = w.rows / GATES * w.cols;
    mat ordered = mat_new(&lesson->arena, w.rows, w.cols);
    for (int g = 0; g < GATES; g++) memcpy(ordered.at + g * block, w.at + from[g] * block, (size_t)block * sizeof *w.at);
    return ordered;
}

typedef struct model {
    lesson_recurrence recurrence;
    const char *name, *key;
    doc_role role;
    double cosines[CLI_MAX_INTEGERS];
} model;

static void make_models(lesson *lesson, const pairs_setting *setting, numpy_random *random, double open_bias,
                        model models[MODELS]) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const int64_t dim = setting->dim;
    const double biases[MODELS] = {0, 1, open_bias};
    const mat w_in = mat_randn(arena, random, dim, dim, pairs_factor(0.6, dim)),
              w_h = mat_randn(arena, random, dim, dim, pairs_factor(0.6, dim));
    const mat w_z = library_order(lesson, mat_randn(arena, random, GATES * dim, 2 * dim, pairs_factor(0.3, dim)));
    models[0] =
        (model){.recurrence = {.cell = CLATTN_CELL_RNN, .w_in = w_in, .w_h = w_h}, .key = "rnn", .role = DOC_ROLE_RECURRENCE};
    models[0].name = doc_text(doc, "循环网络", "recurrence");
    for (int m = 1; m < MODELS; m++) {
        models[m] = (model){.recurrence = {.cell = CLATTN_CELL_LSTM, .forget_bias = biases[m]},
                            .role = m == 1 ? DOC_ROLE_PLAIN : DOC_ROLE_LSTM};
        models[m].recurrence.w_in = mat_block(arena, w_z, 0, GATES * dim, 0, dim);
        models[m].recurrence.w_h = mat_block(arena, w_z, 0, GATES * dim, dim, dim);
        models[m].name = doc_text(doc, "LSTM（遗忘门偏置 %g）", "LSTM with forget bias %g", biases[m]);
        models[m].key = arena_format(arena, "lstm_forget_bias_%g", biases[m]);
    }
}

static void show_cosines(lesson *lesson, const pairs_setting *setting, const model models[MODELS]) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const size_t count = setting->length_count;
    mat cosines = mat_new(arena, MODELS, (int64_t)count);
    const char **names = ARENA_NEW(arena, const char *, MODELS), **lengths = ARENA_NEW(arena, const char *, count);
    double x[CLI_MAX_INTEGERS];
    doc_plot *plot = doc_add_plot(doc, "cosines",
                                  doc_text(doc, "读完以后有多像：越低，两份记忆差得越多",
                                           "How alike at the end: the lower, the more the two memories differ"));
    plot->x = (doc_axis){.label = doc_text(doc, "句长（词）", "length (words)"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "最终 h 的余弦", "cosine of the final h"), .low = 0, .high = 1};
    for (size_t i = 0; i < count; i++) {
        x[i] = (double)setting->lengths[i];
        lengths[i] = arena_format(arena, "n=%lld", (long long)setting->lengths[i]);
    }
    for (int m = 0; m < MODELS; m++) {
        names[m] = models[m].name;
        for (size_t i = 0; i < count; i++) cosines.at[(size_t)m * count + i] = (float)models[m].cosines[i];
        doc_add_series(doc, plot, models[m].name, models[m].role, count, x, models[m].cosines);
    }
    doc_summary(doc,
                "句长 %1$lld 时的余弦：循环网络是 %2$.3f，%4$s是 %3$.3f。低于 1 只说明两份记忆不同：第一个词留下了什么，"
                "还是它引起的差别后来长大了，余弦分不出，见下一步。",
                "At length %1$lld the cosine is %2$.3f for the recurrence and %3$.3f for the %4$s. Below 1 says that the two "
                "memories differ, and not why: because something of the first word is left, or because what it caused has "
                "grown. The next step tells.",
                (long long)setting->lengths[count - 1], models[0].cosines[count - 1], models[2].cosines[count - 1],
                models[2].name);
    doc_matrix *table = lesson_show(lesson, "cells",
                                    doc_text(doc, "每一格是 %lld 对句子的平均余弦",
                                             "Each cell is the mean cosine of %lld pairs", (long long)setting->pairs),
                                    "cos", DOC_ROLE_PLAIN, cosines, names, lengths);
    table->decimals = 3;
    lesson_scale(table, 0, 1);
}

/* How far each gate stands open at each word, GATES blocks of columns in the library's order: steps by GATES * dim. z = W_in·x
 * + W_h·h + b is one product, of [x, h, 1]. */
static mat open_gates(lesson *lesson, const model *model, mat x) {
    arena *arena = &lesson->arena;
    lesson_recurrence r = model->recurrence;
    r.batch = 1;
    r.x = x;
    const int64_t dim = x.cols, steps = x.rows, inputs = 2 * dim + 1, rows = r.w_in.rows;
    const mat h = lesson_recur(lesson, &r), read = mat_new(arena, steps, inputs), w = mat_new(arena, rows, inputs);
    for (int64_t t = 0; t < steps; t++) {
        float *row = read.at + t * inputs;
        memcpy(row, x.at + t * dim, (size_t)dim * sizeof *row);
        if (t > 0) memcpy(row + dim, h.at + (t - 1) * dim, (size_t)dim * sizeof *row);
        row[2 * dim] = 1;
    }
    for (int64_t n = 0; n < rows; n++) {
        float *row = w.at + n * inputs;
        memcpy(row, r.w_in.at + n * dim, (size_t)dim * sizeof *row);
        memcpy(row + dim, r.w_h.at + n * dim, (size_t)dim * sizeof *row);
        if (n / dim == FORGET) row[2 * dim] = (float)r.forget_bias;
    }
    return lesson_sigmoid(lesson, lesson_product(lesson, read, mat_transposed(arena, w)));
}

/* How far A and B are apart after each word, as a part of how far they were after the first: in h of the recurrence, in the
 * cell of the LSTMs. */
static void measure_belt(lesson *lesson, const model *model, mat x, double parts[BELT_STEPS]) {
    lesson_recurrence r = model->recurrence;
    const int64_t dim = x.cols;
    r.batch = 2;
    for (int t = 0; t < BELT_STEPS; t++) {
        mat head = mat_new(&lesson->arena, 2 * (t + 1), dim);
        for (int s = 0; s < 2; s++)
            memcpy(head.at + s * (t + 1) * dim, x.at + s * BELT_STEPS * dim, (size_t)((t + 1) * dim) * sizeof *x.at);
        r.x = head;
        mat memory = r.cell == CLATTN_CELL_LSTM ? lesson_last_cell(lesson, &r) : lesson_recur(lesson, &r);
        const float *a = memory.at + (r.cell == CLATTN_CELL_LSTM ? 0 : t) * dim;
        const float *b = memory.at + (r.cell == CLATTN_CELL_LSTM ? 1 : 2 * t + 1) * dim;
        parts[t] = pairs_distance(a, b, dim);
        if (t > 0) parts[t] /= parts[0];
    }
    parts[0] = 1;
}

static const char *what_became(const doc *doc, double part) {
    if (part < 0.0005) return doc_text(doc, "几乎消失，不到 0.001", "is all but gone, below 0.001");
    if (part > 1)
        return doc_text(doc, "长大到第 1 个词之后的 %.1f 倍", "has grown to %.1f times what it was after word 1", part);
    return doc_text(doc, "还剩 %.3f", "is down to %.3f", part);
}

/* How much of the difference after word 1 its forget gates would keep to the end if nothing came on. */
static double kept_part(lesson *lesson, const model *model, mat x) {
    const int64_t dim = x.cols;
    lesson_recurrence r = model->recurrence;
    r.batch = 2;
    r.x = mat_new(&lesson->arena, 2, dim);
    memcpy(r.x.at, x.at, (size_t)dim * sizeof *x.at);
    memcpy(r.x.at + dim, x.at + BELT_STEPS * dim, (size_t)dim * sizeof *x.at);
    const mat c = lesson_last_cell(lesson, &r),
              open = open_gates(lesson, model, mat_block(&lesson->arena, x, 0, BELT_STEPS, 0, dim));
    double first = 0, kept = 0;
    for (int64_t d = 0; d < dim; d++) {
        double part = mat_at(c, 0, d) - mat_at(c, 1, d);
        first += part * part;
        for (int t = 1; t < BELT_STEPS; t++) part *= mat_at(open, t, FORGET * dim + d);
        kept += part * part;
    }
    return sqrt(kept / first);
}

/* Where the difference of the last model comes from: what was kept of the first word's, and what came on since. */
static void explain_belt(lesson *lesson, const model *model, double kept, double part) {
    doc *doc = &lesson->doc;
    figures_number(&lesson->figures, "lstm_memory/kept", kept);
    doc_say(doc, "从哪儿来？%s的遗忘门一路相乘，第 1 个词之后的差别到最后还留下 %.2f 倍：这是传送带记住的。",
            "Where does it come from? Multiplied up along the way, the forget gates of the %s keep %.2f of the difference "
            "after word 1 to the end: that is what the belt remembers.",
            model->name, kept);
    if (part > kept * 1.05)
        doc_say(
            doc,
            "量到的却是 %.2f 倍，多出来的是后来添的：门和新内容都读 h，h 已经不同，每一步又放上一点新的差别。"
            "这是放大，不是记住：从添上的差别里不一定读得出第一个词。",
            "Yet %.2f is measured. The rest came on later: gates and new content read h, which differs already, so that each "
            "step adds some difference. That is amplification, not memory: the first word need not be readable from what was "
            "added.",
            part);
    else
        doc_say(doc, "量到的是 %.2f 倍：后来没有添上多少。", "Measured is %.2f: little has been added since.", part);
}

/* One pair along the belt. */
typedef struct belt {
    double parts[MODELS][BELT_STEPS]; /* how far A and B are apart, 1 after word 1 */
    double kept;                      /* by the forget gates of the last model alone, to the end */
} belt;

static belt measure_belts(lesson *lesson, const pairs_setting *setting, numpy_random *random, const model models[MODELS]) {
    const mat x = pairs_draw(lesson, random, 1, BELT_STEPS, setting->dim);
    belt belt;
    for (int m = 0; m < MODELS; m++) measure_belt(lesson, &models[m], x, belt.parts[m]);
    belt.kept = kept_part(lesson, &models[MODELS - 1], x);
    return belt;
}

static void show_belt(lesson *lesson, const model models[MODELS], const belt *belt) {
    doc *doc = &lesson->doc;
    double steps[BELT_STEPS];
    doc_step(doc, "沿着传送带走，再抽一对句子：第一个词造成的差别，后来怎样了？低于 1 是在消失，高于 1 是在长大。",
             "Along the belt, with one more pair: what becomes of the difference that the first word made? Below 1 it fades, "
             "above 1 it grows.");
    doc_plot *plot = doc_add_plot(doc, "belt",
                                  doc_text(doc, "两份记忆相距多远，以第 1 个词之后为 1",
                                           "How far apart the two memories are, in units of what it was after word 1"));
    plot->x = (doc_axis){.label = doc_text(doc, "读过的词", "words read")};
    plot->y = (doc_axis){.label = doc_text(doc, "|A − B|，第 1 个词之后为 1", "|A − B|, 1 after word 1")};
    for (int t = 0; t < BELT_STEPS; t++) steps[t] = t + 1;
    for (int m = 0; m < MODELS; m++) {
        doc_add_series(doc, plot,
                       m == 0 ? doc_text(doc, "循环网络的 h", "h of the recurrence")
                              : doc_text(doc, "%s的传送带 c", "the belt c of the %s", models[m].name),
                       models[m].role, BELT_STEPS, steps, belt->parts[m]);
        figures_array(&lesson->figures, arena_format(&lesson->arena, "lstm_memory/belt/%s", models[m].key), BELT_STEPS,
                      belt->parts[m]);
    }
    doc_summary(doc, "%d 个词之后：循环网络的差别%s；%s的%s。",
                "After %d words: in the recurrence the difference %s; in the %s it %s.", BELT_STEPS,
                what_became(doc, belt->parts[0][BELT_STEPS - 1]), models[2].name,
                what_became(doc, belt->parts[2][BELT_STEPS - 1]));
    explain_belt(lesson, &models[2], belt->kept, belt->parts[2][BELT_STEPS - 1]);
}

static void show_gates(lesson *lesson, const pairs_setting *setting, const model *model, numpy_random *random) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const int64_t dim = setting->dim;
    const mat x = mat_randn(arena, random, GATE_STEPS, dim, 1);
    mat all = open_gates(lesson, model, x), mean = mat_new(arena, dim, 1);
    for (int64_t d = 0; d < dim; d++) mean.at[d] = 1 / (float)dim;
    all = (mat){GATE_STEPS * GATES, dim, all.at}; /* a row for each word and gate */
    const mat open = lesson_product(lesson, all, mean);
    const char *const names[GATES_SHOWN] = {doc_text(doc, "输入门 i", "input i"), doc_text(doc, "输出门 o", "output o"),
                                            doc_text(doc, "遗忘门 f", "forget f")};
    const char **words = ARENA_NEW(arena, const char *, GATE_STEPS);
    for (int t = 0; t < GATE_STEPS; t++) words[t] = doc_text(doc, "词 %d", "word %d", t + 1);
    const mat shown = mat_block(arena, mat_transposed(arena, (mat){GATE_STEPS, GATES, open.at}), 0, GATES_SHOWN, 0, GATE_STEPS);
    doc_step(doc, "三道门，在又一句话里，一个词一个词地开合：1 是全开，0 是关上。",
             "The three gates in one more sentence, word by word: 1 is open, 0 is shut.");
    doc_matrix *map =
        lesson_show(lesson, "gates",
                    doc_text(doc, "%s：门开几成（%lld 个数的平均）", "%s: how far its gates are open, mean of %lld numbers",
                             model->name, (long long)dim),
                    "i(t), o(t), f(t)", DOC_ROLE_LSTM, shown, arena_grow(arena, names, sizeof names, sizeof names), words);
    lesson_scale(map, 0, 1);
    map->decimals = 3;
    float least = 1, most = 0;
    for (int t = 0; t < GATE_STEPS; t++) {
        least = fminf(least, mat_at(shown, FORGET, t));
        most = fmaxf(most, mat_at(shown, FORGET, t));
    }
    doc_summary(doc, "遗忘门一直在 %.3f 与 %.3f 之间：传送带上的东西每步留下这么多。",
                "The forget gate stays between %.3f and %.3f: so much of what is on the belt stays at every step.", least,
                most);
    figures_mat(&lesson->figures, "lstm_memory/gates", shown);
}

/* What is left of the first word, by what its forget gates keep. */
static const char *what_is_left(const doc *doc, double cosine, const belt *belt) {
    if (cosine >= 0.95)
        return doc_text(doc, "几乎不在了：余弦 %.3f，1 就是一模一样。遗忘门偏置再大些，门才开得住。",
                        "Hardly: the cosine is %.3f, and 1 is the same. It takes a larger forget bias to hold the gate open.",
                        cosine);
    const char *differ = doc_text(doc, "两份记忆还不同：余弦 %.3f，1 才是一模一样。",
                                  "The two memories still differ: the cosine "
                                  "is %.3f, and only 1 would be the same.",
                                  cosine);
    const char *kept =
        belt->kept >= 0.5
            ? doc_text(doc, "第一个词有痕迹：光靠遗忘门，它造成的差别过 %d 个词还留下 %.2f 倍；再多的是后来放大的。",
                       "A trace of the first word is there: the forget gates alone keep %2$.2f of the difference it made over "
                       "%1$d words; what is more was amplified later.",
                       BELT_STEPS, belt->kept)
            : doc_text(
                  doc, "但光靠遗忘门，第一个词造成的差别过 %d 个词只留下 %.2f 倍，其余是后来放大的：这不算记住。",
                  "But the forget gates alone keep only %2$.2f of the difference that the first word made over %1$d words; "
                  "the rest was amplified later, which is no memory.",
                  BELT_STEPS, belt->kept);
    return doc_text(doc, "%s%s权重是随机的，没有训练过。它仍是一个词等一个词，整句话仍要挤过一个定长的向量。",
                    "%s %s Weights are random and were never trained. It still waits word by word, and a sentence still has to "
                    "pass through one vector of fixed size.",
                    differ, kept);
}

void lesson_lstm_memory(lesson *lesson) {
    doc *doc = &lesson->doc;
    const double open_bias = lesson->parameters.forget_bias.given ? lesson->parameters.forget_bias.value : 6;
    const pairs_setting setting = pairs_take_setting(lesson);
    model models[MODELS];
    numpy_random random;
    numpy_seed(&random, setting.seed);
    make_models(lesson, &setting, &random, open_bias, models);
    for (int m = 0; m < MODELS; m++) {
        pairs_measure(lesson, &setting, &random, models[m].recurrence, models[m].cosines);
        for (size_t i = 0; i < setting.length_count; i++)
            figures_at(&lesson->figures, arena_format(&lesson->arena, "lstm_memory/%s", models[m].key), setting.lengths[i],
                       models[m].cosines[i]);
    }
    const belt belt = measure_belts(lesson, &setting, &random, models);
    doc_say(doc,
            "LSTM 在记忆 h 旁边装了一条传送带 c。东西放上去就一直往前走，不用每步重写。三道门管它：遗忘门决定旧货留几成，"
            "输入门决定新词放几成，输出门决定交给 h 几成。",
            "The LSTM has a conveyor belt, c, beside its memory h. What lies on it travels on and is not rewritten at "
            "every step. Three gates tend it: forget says how much of the old stays, input how much of the new word goes "
            "on, output how much is shown to h.");
    doc_formula(doc, "c(t) = f(t) ⊙ c(t-1) + i(t) ⊙ tanh(…)        h(t) = o(t) ⊙ tanh(c(t))");
    doc_say(doc, "⊙ 是逐个数相乘；… 是 W_in·x(t) + W_h·h(t-1)，每道门和新内容各有自己的 W；sigmoid 把任何数压到 0 与 1 之间。",
            "⊙ multiplies number by number; … is W_in·x(t) + W_h·h(t-1), with W of its own for each gate and for what is new; "
            "sigmoid "
            "squeezes any number into 0 to 1.");
    doc_say(doc, "遗忘门 f(t) = sigmoid(… + b)。偏置 b = %g 时，光凭偏置就留下 %.4f。",
            "The forget gate is f(t) = sigmoid(… + b). With b = %g the bias alone keeps %.4f.", open_bias,
            lesson_sigmoid(lesson, mat_of(&lesson->arena, 1, 1, &open_bias)).at[0]);
    const double last = models[MODELS - 1].cosines[setting.length_count - 1];
    doc_ask(doc,
            doc_text(doc, "遗忘门偏置 %g，%lld 个词之后第一个词还在吗？",
                     "With a forget bias of %g, is the first word still there after %lld words?", open_bias,
                     (long long)setting.lengths[setting.length_count - 1]),
            what_is_left(doc, last, &belt));
    doc_step(doc, "三种随机的网络，没有训练过；句子只差第一个词。",
             "Three random networks, never trained; sentences that differ in the first word.");
    doc_say(doc,
            "做法和%s一样，但权重和句子是另抽的：一个随机数发生器依次抽完三种网络。所以循环网络这一行和那一课的数略有不同。",
            "It is done as in %s, but weights and sentences are drawn anew, by one generator for all three networks. So the "
            "recurrence's row differs a little from the numbers there.",
            lesson_refer(lesson, "rnn-bottleneck"));
    pairs_put_setting(lesson, "lstm_memory", &setting);
    figures_text(
        &lesson->figures, "lstm_memory/order",
        arena_format(&lesson->arena, "rnn, lstm forget bias 1, lstm forget bias %g, one generator throughout", open_bias));
    show_cosines(lesson, &setting, models);
    show_belt(lesson, models, &belt);
    show_gates(lesson, &setting, &models[MODELS - 1], &random);
    doc_say(
        doc,
        "h、c 和门都由程序库的算子算；门是 sigmoid(z) = 1 / (1 + exp(−z))，z = 0 时正好开一半。余弦和距离库里没有，"
        "由这一课用 h 和 c 算，双精度。",
        "h, c and the gates are computed by the library's operators; a gate is sigmoid(z) = 1 / (1 + exp(−z)), which is half "
        "open at z = 0. Cosines and distances, for which it has none, are this lesson's, of h and c, in double "
        "precision.");
    doc_correct(
        doc,
        doc_text(doc, "Transformer 取代 LSTM，是因为 LSTM 记不住。",
                 "The Transformer replaced the LSTM because the LSTM forgets."),
        doc_text(doc,
                 "门开着，传送带上的东西就留得住；训练过的 LSTM 记性如何，这里没有量。它躲不开的是排队：第 t 步要等第 t-1 "
                 "步，加多少核心都没用。",
                 "With its gate open, what lies on the belt stays there; how well a trained LSTM remembers was not "
                 "measured here. What it cannot do is stop queueing: step t waits for step t-1, however many cores "
                 "there are."));
}
