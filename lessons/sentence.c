/* SPDX-License-Identifier: Apache-2.0 */
#include "sentence.h"

#include <math.h>

static const char *const own_words[] = {"中国", "的", "熊猫", "很", "可爱"};
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
