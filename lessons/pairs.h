/* Pairs of sentences that differ in their first word alone: the experiment of two lessons.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_PAIRS_H
#define CLATTN_LESSONS_PAIRS_H

#include "compute.h"

enum { PAIRS_SEED = 3, PAIRS_COUNT = 30, PAIRS_DIM = 8 };

typedef struct pairs_setting {
    uint32_t seed;
    int64_t pairs, dim;
    size_t length_count;
    int64_t lengths[CLI_MAX_INTEGERS];
} pairs_setting;

/* From the parameters. */
pairs_setting pairs_take_setting(const lesson *);
void pairs_put_setting(lesson *, const char *key, const pairs_setting *);
/* 2 * pairs sentences, one behind another: A and B of a pair side by side. Random vectors, in the order in which NumPy's loop
 * would draw them. */
mat pairs_draw(lesson *, numpy_random *, int64_t pairs, int64_t length, int64_t dim);
/* The mean over pairs of the cosine of both final states. */
double pairs_mean_cosine(mat states, int64_t pairs);
/* The recurrence over freshly drawn pairs of each length. `recurrence` has the weights. */
void pairs_measure(lesson *, const pairs_setting *, numpy_random *, lesson_recurrence recurrence, double *cosines);
/* The standard deviation of weights: `factor` at the width of the lessons, and so much less at a larger one that the recurrence
 * is as strong there. */
double pairs_factor(double factor, int64_t dim);
/* |a - b| of two rows. */
double pairs_distance(const float *a, const float *b, int64_t count);

#endif
