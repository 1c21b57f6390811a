/* The sentence of five words in three dimensions that several lessons look at, and its queries, keys and values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_SENTENCE_H
#define CLATTN_LESSONS_SENTENCE_H

#include "compute.h"

enum { SENTENCE_DIM = 3, SENTENCE_DIM_K = 2, SENTENCE_SEED = 42 };

typedef struct sentence {
    lesson_words words;
    uint32_t seed;
    numpy_random random; /* after the weights, in the order q, k, v */
    mat x, w_q, w_k, w_v;
    mat q, k, v;
} sentence;

/* Of the lesson's words, or of those of --text; the seed is --seed's. */
sentence sentence_make(lesson *);
/* Its words and what they mean, or where the vectors of the student's words come from. */
void sentence_introduce(lesson *, const sentence *);
/* The word that a row of weights likes best, quoted; all of them where single precision does not tell them apart. */
const char *sentence_favourites(lesson *, lesson_words, mat weights, int64_t row);
/* Likewise with its weight, and the next one's where two decimals do not tell them apart. */
const char *sentence_tell_favourites(lesson *, lesson_words, mat weights, int64_t row);
/* The index of the largest value of a row. */
int64_t sentence_favourite(mat weights, int64_t row);

#endif
