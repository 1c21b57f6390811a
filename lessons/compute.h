/* The library's operators on small matrices: plan, run, destroy.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All on the lesson's device. What the library refuses ends the lesson with the library's own words.
 */
#ifndef CLATTN_LESSONS_COMPUTE_H
#define CLATTN_LESSONS_COMPUTE_H

#include "lesson.h"

/* What the library says against it, its first line, ends the lesson. */
void lesson_require(lesson *, clattn_status status);

/* x · w, as the projection of queries computes it. */
mat lesson_product(lesson *, mat x, mat w);
/* Q, K and V of one x. */
void lesson_project(lesson *, mat x, mat w_q, mat w_k, mat w_v, mat *q, mat *k, mat *v);

/* One head of attention. Inputs first; what is asked for comes out. */
typedef struct lesson_attention {
    mat q, k, v; /* v without values: none, then there is no out */
    mat bias;    /* added to the scores; without values: none */
    bool causal;
    bool has_scale;
    double scale;
    clattn_scores_form form; /* of scores */
    mat scores, weights, out;
    mat lse; /* a number a query: log Σ exp(score) */
} lesson_attention;

void lesson_attend(lesson *, lesson_attention *);

/* What is known of attention after some of the keys; without any, nothing: out = 0, lse = -infinity. */
typedef struct lesson_partial {
    mat out, lse;
} lesson_partial;

lesson_partial lesson_merge(lesson *, lesson_partial, lesson_partial);

/* 1 / (1 + exp(-z)), cell by cell, which no operator computes alone: the weight of the first of two keys with scores z and 0.
 */
mat lesson_sigmoid(lesson *, mat z);

/* The layer of several heads: x projected, split, attended, merged, and projected by w_o where there is one. */
typedef struct lesson_layer {
    mat x, w_q, w_k, w_v, w_o;
    int64_t heads;
    mat out;
    mat weights; /* heads * rows of x by rows of x */
} lesson_layer;

void lesson_mha(lesson *, lesson_layer *);

/* `batch` sentences of the same length, one behind another in the rows of x. Rows of w_in and w_h in the library's order of
 * gates. Returns every h: batch * steps by hidden. */
typedef struct lesson_recurrence {
    clattn_cell cell;
    mat x, w_in, w_h;
    mat h_0; /* batch by hidden; without values: zeros */
    int64_t batch;
    double forget_bias;
} lesson_recurrence;

mat lesson_recur(lesson *, const lesson_recurrence *);
/* The cell of an LSTM after the last step: batch by hidden. */
mat lesson_last_cell(lesson *, const lesson_recurrence *);

/* Whether the library computes x · w, of which only the shapes are looked at. */
bool lesson_fits(lesson *, mat x, mat w);

#endif
