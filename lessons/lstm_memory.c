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
                                  doc_text(doc, "读完以后有多像：越低，第一个词留得越多",
                                           "How alike at the end: the lower, the more is left of the first word"));
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
    doc_summary(doc, "句长 %1$lld 时的余弦：循环网络是 %2$.3f，%4$s是 %3$.3f。",
                "At length %1$lld the cosine is %2$.3f for the recurrence and %3$.3f for the %4$s.",
                (long long)setting->lengths[count - 1], models[0].cosines[count - 1], models[2].cosines[count - 1],
                models[2].name);
    doc_matrix *table = lesson_show(lesson, "cells",
                                    doc_text(doc, "每一格是 %lld 对句子的平均余弦",
                                             "Each cell is the mean cosine of %lld pairs", (long long)setting->pairs),
                                    "cos", DOC_ROLE_PLAIN, cosines, names, lengths);
    table->decimals = 3;
    lesson_scale(table, 0, 1);
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

static void show_belt(lesson *lesson, const pairs_setting *setting, numpy_random *random, const model models[MODELS]) {
    doc *doc = &lesson->doc;
    const mat x = pairs_draw(lesson, random, 1, BELT_STEPS, setting->dim);
    double steps[BELT_STEPS], parts[MODELS][BELT_STEPS];
    doc_step(doc, "沿着传送带走：第一个词造成的差别，后来怎样了？低于 1 是在消失，高于 1 是在长大。",
             "Along the belt: what becomes of the difference that the first word made? Below 1 it fades, above 1 it grows.");
    doc_plot *plot = doc_add_plot(doc, "belt",
                                  doc_text(doc, "两份记忆相距多远，以第 1 个词之后为 1",
                                           "How far apart the two memories are, in units of what it was after word 1"));
    plot->x = (doc_axis){.label = doc_text(doc, "读过的词", "words read")};
    plot->y = (doc_axis){.label = doc_text(doc, "|A − B|，第 1 个词之后为 1", "|A − B|, 1 after word 1")};
    for (int t = 0; t < BELT_STEPS; t++) steps[t] = t + 1;
    for (int m = 0; m < MODELS; m++) {
        measure_belt(lesson, &models[m], x, parts[m]);
        doc_add_series(doc, plot,
                       m == 0 ? doc_text(doc, "循环网络的 h", "h of the recurrence")
                              : doc_text(doc, "%s的传送带 c", "the belt c of the %s", models[m].name),
                       models[m].role, BELT_STEPS, steps, parts[m]);
        figures_array(&lesson->figures, arena_format(&lesson->arena, "lstm_memory/belt/%s", models[m].key), BELT_STEPS,
                      parts[m]);
    }
    doc_summary(doc, "%d 个词之后：循环网络的差别%s；%s的%s。",
                "After %d words: in the recurrence the difference %s; in the %s it %s.", BELT_STEPS,
                what_became(doc, parts[0][BELT_STEPS - 1]), models[2].name, what_became(doc, parts[2][BELT_STEPS - 1]));
    if (parts[2][BELT_STEPS - 1] > 1)
        doc_say(doc, "为什么会长大？传送带上的旧货几乎不动，而门和新内容都读 h，h 已经不同，每一步又放上一点新的差别。",
                "Why does it grow? What lies on the belt hardly changes, while gates and new content read h, which differs "
                "already, so that each step adds a little difference.");
}

/* How far each gate stands open, word by word, on average over the hidden numbers. */
static void show_gates(lesson *lesson, const pairs_setting *setting, const model *model, numpy_random *random) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const int64_t dim = setting->dim;
    lesson_recurrence r = model->recurrence;
    r.batch = 1;
    r.x = mat_randn(arena, random, GATE_STEPS, dim, 1);
    const mat h = lesson_recur(lesson, &r), before = mat_new(arena, GATE_STEPS, dim);
    memcpy(before.at + dim, h.at, (size_t)((GATE_STEPS - 1) * dim) * sizeof *h.at);
    const mat z = mat_sum(arena, lesson_product(lesson, r.x, mat_transposed(arena, r.w_in)),
                          lesson_product(lesson, before, mat_transposed(arena, r.w_h)));
    const char *const names[GATES_SHOWN] = {doc_text(doc, "输入门 i", "input i"), doc_text(doc, "输出门 o", "output o"),
                                            doc_text(doc, "遗忘门 f", "forget f")};
    const char **words = ARENA_NEW(arena, const char *, GATE_STEPS);
    mat open = mat_new(arena, GATES_SHOWN, GATE_STEPS);
    for (int t = 0; t < GATE_STEPS; t++) {
        words[t] = doc_text(doc, "词 %d", "word %d", t + 1);
        for (int g = 0; g < GATES_SHOWN; g++) {
            double sum = 0;
            for (int64_t d = 0; d < dim; d++)
                sum += 1 / (1 + exp(-mat_at(z, t, g * dim + d) - (g == FORGET ? r.forget_bias : 0)));
            open.at[g * GATE_STEPS + t] = (float)(sum / (double)dim);
        }
    }
    doc_step(doc, "三道门，一个词一个词地开合：1 是全开，0 是关上。", "The three gates, word by word: 1 is open, 0 is shut.");
    doc_matrix *map =
        lesson_show(lesson, "gates", doc_text(doc, "%s：门开几成", "%s: how far its gates are open", model->name),
                    "i(t), o(t), f(t)", DOC_ROLE_LSTM, open, arena_grow(arena, names, sizeof names, sizeof names), words);
    lesson_scale(map, 0, 1);
    map->decimals = 3;
    doc_summary(doc, "遗忘门一直开到 %.3f 左右：传送带上的东西每步留下这么多。",
                "The forget gate stays at about %.3f: so much of what is on the belt stays at every step.",
                mat_at(open, FORGET, GATE_STEPS - 1));
    figures_mat(&lesson->figures, "lstm_memory/gates", open);
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
    doc_say(doc,
            "LSTM 在记忆 h 旁边装了一条传送带 c。东西放上去就一直往前走，不用每步重写。三道门管它：遗忘门决定旧货留几成，"
            "输入门决定新词放几成，输出门决定交给 h 几成。",
            "The LSTM has a conveyor belt, c, beside its memory h. What lies on it travels on and is not rewritten at "
            "every step. Three gates tend it: forget says how much of the old stays, input how much of the new word goes "
            "on, output how much is shown to h.");
    doc_formula(doc, "c(t) = f(t) ⊙ c(t-1) + i(t) ⊙ tanh(…)        h(t) = o(t) ⊙ tanh(c(t))");
    doc_say(doc, "遗忘门 f(t) = sigmoid(… + b)。偏置 b = %g 时，光凭偏置就留下 %.4f。",
            "The forget gate is f(t) = sigmoid(… + b). With b = %g the bias alone keeps %.4f.", open_bias,
            1 / (1 + exp(-open_bias)));
    const double last = models[MODELS - 1].cosines[setting.length_count - 1];
    doc_ask(doc,
            doc_text(doc, "遗忘门偏置 %g，%lld 个词之后第一个词还在吗？",
                     "With a forget bias of %g, is the first word still there after %lld words?", open_bias,
                     (long long)setting.lengths[setting.length_count - 1]),
            last < 0.95 ? doc_text(doc,
                                   "在：余弦 %.3f，1 才是冲光。所以 LSTM 不是输在记性上：它还是一个词等一个词，"
                                   "而且整句话仍要挤过一个定长的向量。",
                                   "It is: the cosine is %.3f, and only 1 would be the same. So memory is not where the LSTM "
                                   "loses: it still waits word by word, and a sentence still has to pass through one vector of "
                                   "fixed size.",
                                   last)
                        : doc_text(doc, "几乎不在了：余弦 %.3f。遗忘门偏置再大些，门才开得住。",
                                   "Hardly: the cosine is %.3f. It takes a larger forget bias to hold the gate open.", last));
    doc_step(doc, "三种网络，句子只差第一个词。", "Three networks, sentences that differ in the first word.");
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
    show_belt(lesson, &setting, &random, models);
    show_gates(lesson, &setting, &models[MODELS - 1], &random);
    doc_correct(doc,
                doc_text(doc, "Transformer 取代 LSTM，是因为 LSTM 记不住。",
                         "The Transformer replaced the LSTM because the LSTM forgets."),
                doc_text(doc, "门开着它就记得住。它输在必须排队：第 t 步要等第 t-1 步，加多少核心都没用。",
                         "With its gate open it remembers. What it cannot do is stop queueing: step t waits for step t-1, "
                         "however many cores there are."));
}
