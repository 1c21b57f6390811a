/* SPDX-License-Identifier: Apache-2.0 */
#include "mat.h"

#include <math.h>
#include <string.h>

mat mat_new(arena *arena, int64_t rows, int64_t cols) {
    return (mat){rows, cols, ARENA_NEW(arena, float, rows *cols)};
}

mat mat_of(arena *arena, int64_t rows, int64_t cols, const double *values) {
    mat m = mat_new(arena, rows, cols);
    for (int64_t i = 0; i < rows * cols; i++) m.at[i] = (float)values[i];
    return m;
}

mat mat_randn(arena *arena, numpy_random *random, int64_t rows, int64_t cols, double factor) {
    mat m = mat_new(arena, rows, cols);
    for (int64_t i = 0; i < rows * cols; i++) m.at[i] = (float)(numpy_randn(random) * factor);
    return m;
}

mat mat_rand_rounded(arena *arena, numpy_random *random, int64_t rows, int64_t cols) {
    mat m = mat_new(arena, rows, cols);
    for (int64_t i = 0; i < rows * cols; i++) m.at[i] = (float)numpy_round2(numpy_rand(random));
    return m;
}

mat mat_block(arena *arena, mat m, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    mat block = mat_new(arena, rows, cols);
    for (int64_t i = 0; i < rows; i++)
        memcpy(block.at + i * cols, m.at + (row + i) * m.cols + col, (size_t)cols * sizeof *m.at);
    return block;
}

mat mat_transposed(arena *arena, mat m) {
    mat t = mat_new(arena, m.cols, m.rows);
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < m.cols; j++) t.at[j * m.rows + i] = mat_at(m, i, j);
    return t;
}

mat mat_sum(arena *arena, mat a, mat b) {
    mat sum = mat_new(arena, a.rows, a.cols);
    for (int64_t i = 0; i < a.rows * a.cols; i++) sum.at[i] = a.at[i] + b.at[i];
    return sum;
}

double *mat_doubles(arena *arena, mat m) {
    double *values = ARENA_NEW(arena, double, m.rows *m.cols);
    for (int64_t i = 0; i < m.rows * m.cols; i++) values[i] = m.at[i];
    return values;
}

double mat_cosine(const float *a, const float *b, int64_t count) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < count; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return ab / (sqrt(aa) * sqrt(bb) + 1e-9);
}
