/* Matrices as the library takes them: f32, packed rows; and random ones as NumPy draws them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_MAT_H
#define CLATTN_LESSONS_MAT_H

#include <stdint.h>

#include "arena.h"
#include "numpy_random.h"

typedef struct mat {
    int64_t rows, cols;
    float *at; /* rows x cols; NULL: no matrix */
} mat;

mat mat_new(arena *, int64_t rows, int64_t cols);
mat mat_of(arena *, int64_t rows, int64_t cols, const double *values);
/* randn(rows, cols) * factor: computed in double, then rounded to f32. */
mat mat_randn(arena *, numpy_random *, int64_t rows, int64_t cols, double factor);
/* rand(rows, cols).round(2) */
mat mat_rand_rounded(arena *, numpy_random *, int64_t rows, int64_t cols);
/* A copy of rows from `first` on, and of columns. */
mat mat_block(arena *, mat, int64_t row, int64_t rows, int64_t col, int64_t cols);
mat mat_transposed(arena *, mat);
mat mat_sum(arena *, mat a, mat b);
/* The same numbers as double. */
double *mat_doubles(arena *, mat);

static inline float mat_at(mat m, int64_t row, int64_t col) {
    return m.at[row * m.cols + col];
}

/* Cosine of two rows, as the lessons define it: 1e-9 is added to the product of the norms. */
double mat_cosine(const float *a, const float *b, int64_t count);

#endif
