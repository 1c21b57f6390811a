/* The numbers of lessons by name, as --json gives them and as the tests compare them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A name is a path, "lstm_memory/rnn/32". A value is a number, a text, or an array of either.
 */
#ifndef CLATTN_LESSONS_FIGURES_H
#define CLATTN_LESSONS_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "mat.h"

typedef struct figure {
    struct figure *next;
    const char *path;
    int rank;        /* 0: one value; 1: an array; 2: an array of rows */
    int64_t size[2]; /* of each dimension, from the outermost */
    double *numbers; /* NULL: texts */
    const char **texts;
} figure;

typedef struct figures {
    arena *arena;
    figure *first, *last;
} figures;

void figures_number(figures *, const char *path, double value);
void figures_text(figures *, const char *path, const char *text);
void figures_array(figures *, const char *path, int64_t count, const double *values);
void figures_texts(figures *, const char *path, int64_t count, const char *const *texts);
void figures_mat(figures *, const char *path, mat);
/* Of a path with a number at its end: figures_at(f, "rnn_bottleneck/mean_cosine_by_length", 32, cosine). */
void figures_at(figures *, const char *path, int64_t key, double value);
const figure *figures_find(const figures *, const char *path);

#endif
