/* SPDX-License-Identifier: Apache-2.0 */
#include "sentence.h"

#include <math.h>

static const lesson_word own_words[] = {
    {"中国", NULL, "China"}, {"的", NULL, "’s"}, {"熊猫", NULL, "panda"}, {"很", NULL, "very"}, {"可爱", NULL, "cute"}};
static const double own_vectors[] = {3, 6, 10, 1, 1, 1, 2, 5, 9, 1, 2, 1, 0, 8, 3};

enum { OWN_WORDS = sizeof own_words / sizeof *own_words };

sentence sentence_make(lesson *lesson) {
    arena *arena = &lesson->arena;
    sentence s = {.words = lesson_take_words(lesson, own_words, OWN_WORDS)};
    s.seed = (uint32_t)lesson_integer(lesson->parameters.seed, SENTENCE_SEED);
    numpy_seed(&s.random, s.seed);
    s.w_q = mat_randn(arena, &s.random, SENTENCE_DIM, SENTENCE_DIM_K, 0.1);
    s.w_k = mat_randn(arena, &s.random, SENTENCE_DIM, SENTENCE_DIM_K, 0.1);
    s.w_v = mat_randn(arena, &s.random, SENTENCE_DIM, SENTENCE_DIM, 0.1);
    if (s.words.own) {
        s.x = mat_new(arena, s.words.count, SENTENCE_DIM);
        for (int64_t i = 0; i < s.words.count * SENTENCE_DIM; i++) s.x.at[i] = (float)rint(10 * numpy_rand(&s.random));
    } else
        s.x = mat_of(arena, OWN_WORDS, SENTENCE_DIM, own_vectors);
    lesson_project(lesson, s.x, s.w_q, s.w_k, s.w_v, &s.q, &s.k, &s.v);
    return s;
}

int64_t sentence_favourite(mat weights, int64_t row) {
    int64_t best = 0;
    for (int64_t j = 1; j < weights.cols; j++)
        if (mat_at(weights, row, j) > mat_at(weights, row, best)) best = j;
    return best;
}

const char *sentence_favourites(lesson *lesson, lesson_words words, mat weights, int64_t row) {
    const float most = mat_at(weights, row, sentence_favourite(weights, row));
    const char *names = NULL;
    for (int64_t j = 0; j < weights.cols; j++) {
        if (!doc_alike(mat_at(weights, row, j), most)) continue;
        const char *name = lesson_quote(lesson, words.at[j]);
        names = names == NULL ? name : doc_text(&lesson->doc, "%s和%s", "%s and %s", names, name);
    }
    return names;
}

/* The largest of a row that is not as large as its largest; -1: there is none. */
static int64_t second(mat weights, int64_t row) {
    const float most = mat_at(weights, row, sentence_favourite(weights, row));
    int64_t best = -1;
    for (int64_t j = 0; j < weights.cols; j++)
        if (!doc_alike(mat_at(weights, row, j), most) && (best < 0 || mat_at(weights, row, j) > mat_at(weights, row, best)))
            best = j;
    return best;
}

const char *sentence_tell_favourites(lesson *lesson, lesson_words words, mat weights, int64_t row) {
    enum { DECIMALS = 2 };
    doc *doc = &lesson->doc;
    const char *names = sentence_favourites(lesson, words, weights, row);
    const double most = mat_at(weights, row, sentence_favourite(weights, row));
    const int64_t next = second(weights, row);
    if (next < 0) return doc_text(doc, "%s（%.*f）", "%s (%.*f)", names, DECIMALS, most);
    const double follower = mat_at(weights, row, next);
    const int decimals = doc_decimals_apart(most, follower, DECIMALS);
    if (decimals == DECIMALS) return doc_text(doc, "%s（%.*f）", "%s (%.*f)", names, DECIMALS, most);
    return doc_text(doc, "%s（%.*f，%s只差一点：%.*f）", "%s (%.*f; %s comes close with %.*f)", names, decimals, most,
                    lesson_quote(lesson, words.at[next]), decimals, follower);
}

void sentence_introduce(lesson *lesson, const sentence *s) {
    lesson_introduce_words(lesson, s->words, "中国的熊猫很可爱", "China’s pandas are very cute");
    lesson_say_words(lesson, s->words, s->seed);
}
