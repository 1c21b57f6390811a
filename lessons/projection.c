/* Why project at all: a pronoun looks for its noun, and two small matrices change whom it finds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compute.h"
#include "courses.h"
#include "sentence.h"

enum { CANDIDATES = 3 };

static const lesson_word it_word[] = {{"it", "它", NULL}};
static const lesson_word candidate_words[CANDIDATES] = {{"ball", "球", NULL}, {"chased", "追", NULL}, {"the", "那", NULL}};

typedef struct cast {
    lesson_words it, candidates;
    mat it_vector, vectors;
} cast;
static const double it_vector[] = {0.1, 1.0};
static const double candidate_vectors[] = {1.0, 0.15, 0.9, 0.9, 0.4, 0.6};
static const double glasses_q[] = {10, 0, 0, 1}, glasses_k[] = {1, 0, 0, -1};

/* The candidates from the highest score to the lowest: "ball > chased > the". */
static const char *ranking(lesson *lesson, const cast *cast, mat scores) {
    int order[CANDIDATES] = {0, 1, 2};
    for (int i = 1; i < CANDIDATES; i++)
        for (int j = i; j > 0 && scores.at[order[j]] > scores.at[order[j - 1]]; j--) {
            int swapped = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swapped;
        }
    return arena_format(&lesson->arena, "“%s” > “%s” > “%s”", cast->candidates.at[order[0]], cast->candidates.at[order[1]],
                        cast->candidates.at[order[2]]);
}

static mat score(lesson *lesson, mat q, mat k) {
    lesson_attention attention = {.q = q, .k = k, .has_scale = true, .scale = 1};
    lesson_attend(lesson, &attention);
    return attention.scores;
}

static void put_scores(lesson *lesson, const char *path, mat scores) {
    for (int i = 0; i < CANDIDATES; i++)
        figures_number(&lesson->figures, arena_format(&lesson->arena, "%s/%s", path, candidate_words[i].word), scores.at[i]);
}

static void show_scores(lesson *lesson, const cast *cast, const char *id, const char *title, const char *left,
                        const char *right, mat scores) {
    doc *doc = &lesson->doc;
    doc_matrix *shown = lesson_show(lesson, id, title, "S", DOC_ROLE_SCORES, scores, cast->it.labels, cast->candidates.at);
    lesson_derive(shown, DOC_RULE_PRODUCT_ROWS, left, right, 1);
    lesson_scale(shown, -1, 1);
    doc_summary(doc, "名次：%s。", "The order: %s.", ranking(lesson, cast, scores));
}

/* Before the first step: who wins can be predicted. */
static void show_vectors(lesson *lesson, const cast *cast) {
    doc *doc = &lesson->doc;
    lesson_show(lesson, "it", doc_text(doc, "“it”的词向量", "The vector of “it”"), "x", DOC_ROLE_X, cast->it_vector,
                cast->it.labels, NULL);
    lesson_show(lesson, "candidates", doc_text(doc, "候选词的词向量", "The vectors of the candidates"), "x", DOC_ROLE_X,
                cast->vectors, cast->candidates.labels, NULL);
}

static void show_raw(lesson *lesson, const cast *cast) {
    doc *doc = &lesson->doc;
    doc_step(
        doc, "不戴眼镜：词向量自己既是查询又是键，打分就是两个词向量的点积。",
        "Without glasses: a word's vector is its own query and its own key, and a score is the dot product of two of them.");
    const mat raw = score(lesson, cast->it_vector, cast->vectors);
    show_scores(lesson, cast, "raw", doc_text(doc, "裸打分", "Raw scores"), "it", "candidates", raw);
    put_scores(lesson, "projection_flips_ranking/raw", raw);
    doc_say(doc, "第一名是%s：一个动词。词向量表是固定的，这里没有任何东西可以学。",
            "The winner is %s, a verb. The table of vectors is fixed: nothing here can learn.",
            lesson_quote(lesson, cast->candidates.at[sentence_favourite(raw, 0)]));
}

static void show_projected(lesson *lesson, const cast *cast) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    const mat w_q = mat_of(arena, 2, 2, glasses_q), w_k = mat_of(arena, 2, 2, glasses_k);
    doc_step(doc, "给“it”戴上 W_q：第 0 维放大 10 倍。给候选词戴上 W_k：第 1 维变号。",
             "W_q on “it”: dimension 0 counts ten times as much. W_k on the candidates: dimension 1 changes its sign.");
    lesson_show(lesson, "w_q", doc_text(doc, "提问的眼镜 W_q", "The glasses for asking, W_q"), "W_q", DOC_ROLE_Q, w_q, NULL,
                NULL);
    lesson_show(lesson, "w_k", doc_text(doc, "应答的眼镜 W_k", "The glasses for answering, W_k"), "W_k", DOC_ROLE_K, w_k, NULL,
                NULL);
    doc_say(doc, "透过眼镜看到的，就是查询 q 和键 k。", "What is seen through them are the query q and the keys k.");
    const mat q = lesson_product(lesson, cast->it_vector, w_q), k = lesson_product(lesson, cast->vectors, w_k);
    doc_matrix *query = lesson_show(lesson, "q", doc_text(doc, "“it”的查询 q = x·W_q", "The query of “it”, q = x·W_q"), "q",
                                    DOC_ROLE_Q, q, cast->it.labels, NULL);
    lesson_derive(query, DOC_RULE_PRODUCT, "it", "w_q", 1);
    lesson_derive(lesson_show(lesson, "k", doc_text(doc, "候选词的键 k = x·W_k", "The keys of the candidates, k = x·W_k"), "k",
                              DOC_ROLE_K, k, cast->candidates.labels, NULL),
                  DOC_RULE_PRODUCT, "candidates", "w_k", 1);
    lesson_scale(query, -1, 1);
    lesson_share_scale(lesson, "it", "candidates", "q", "k", NULL);
    doc_step(doc, "同样的点积，换成 q 和 k。", "The same dot product, now of q and k.");
    const mat scores = score(lesson, q, k);
    show_scores(lesson, cast, "projected", doc_text(doc, "戴上眼镜后的打分", "Scores with glasses"), "q", "k", scores);
    put_scores(lesson, "projection_flips_ranking/projected", scores);
    figures_array(&lesson->figures, "projection_flips_ranking/q_it", 2, mat_doubles(arena, q));
    doc_say(
        doc,
        "第一名变成了%s。词向量没有动，变的是每个数算得多重、算正还是算负；而这是可以学的：W_q 和 W_k 里的 8 个数就是旋钮。",
        "Now the winner is %s. The vectors are what they were; what changed is how much each of their numbers counts, and "
        "with which sign. And that can be learnt: the 8 numbers in W_q and W_k are the knobs.",
        lesson_quote(lesson, cast->candidates.at[sentence_favourite(scores, 0)]));
}

void lesson_projection(lesson *lesson) {
    doc *doc = &lesson->doc;
    const cast cast = {
        .it = lesson_take_words(lesson, it_word, 1),
        .candidates = lesson_take_words(lesson, candidate_words, CANDIDATES),
        .it_vector = mat_of(&lesson->arena, 1, 2, it_vector),
        .vectors = mat_of(&lesson->arena, CANDIDATES, 2, candidate_vectors),
    };
    doc_say(doc,
            "“The dog chased the ball but could not catch it”：狗追着球跑，可是抓不住它。%s要找自己指的是谁：%s、%s，还是%s？"
            "每个词有两个数，是手工挑的。",
            "The dog chased the ball but could not catch it. The word %s looks for what it stands for: %s, %s or %s? Each "
            "word has two numbers, picked by hand.",
            lesson_name_word(lesson, cast.it, 0), lesson_name_word(lesson, cast.candidates, 0),
            lesson_name_word(lesson, cast.candidates, 1), lesson_name_word(lesson, cast.candidates, 2));
    doc_formula(doc, "S(i, j) = q(i)·k(j)        q = x·W_q        k = x·W_k");
    doc_say(
        doc, "S(i, j) 是词 i 给词 j 打的分，点积越大，越合拍。这一课只比名次；缩放和 softmax 在%s里。",
        "S(i, j) is the score that word i gives word j: the larger the dot product, the better they match. This lesson only "
        "ranks; scaling and softmax come in %s.",
        lesson_refer(lesson, "word-vectors"));
    doc_say(
        doc,
        "这里词向量横着写，一个词一行（一整句就是几行叠成的 X），乘在 W 的左边：x·W。循环网络的几课里它是竖着的一列，"
        "乘在 W 的右边：W·x。做的是同一件事，只是转了个方向；矩阵怎样相乘，见%s。",
        "The vector of a word is a row here (a whole sentence, X, is such rows one below another), and W stands on its right: "
        "x·W. In the lessons on recurrence it was a column with W on its left: W·x. That does the same, turned round; for "
        "how matrices are multiplied see %s.",
        lesson_refer(lesson, "matmul"));
    doc_ask(
        doc,
        doc_text(doc, "不投影，谁的词向量和“it”的点积最大？",
                 "Without projection: whose vector has the largest dot product with that of “it”?"),
        doc_text(doc, "不投影时动词“chased”得第一：“it”里几乎只有第二个数，而“chased”的第二个数最大；换上两副眼镜，“ball”反超。",
                 "The verb “chased”: in “it” nearly only the second number counts, and that of “chased” is the largest; with two pairs of "
                 "glasses “ball” overtakes it."));
    show_vectors(lesson, &cast);
    show_raw(lesson, &cast);
    show_projected(lesson, &cast);
    doc_correct(
        doc, doc_text(doc, "投影给词加了信息。", "Projection adds information to a word."),
        doc_text(doc, "没有。x·W 里的每个数都是 x 的数的加权和；变的是哪些数算数。这副眼镜是手工挑的，真实模型的由训练得到。",
                 "It does not. Each number of x·W is a weighted sum of those of x; what changes is which of them count. "
                 "These glasses were picked by hand, those of a real model come from training."));
}
