/* SPDX-License-Identifier: Apache-2.0 */
#include "spread.h"

#include <math.h>

double spread_variance(mat m) {
    const double count = (double)(m.rows * m.cols);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < m.rows * m.cols; i++) sum += m.at[i];
    for (int64_t i = 0; i < m.rows * m.cols; i++) squares += (m.at[i] - sum / count) * (m.at[i] - sum / count);
    return squares / count;
}

double spread_entropy(mat weights) {
    double sum = 0;
    for (int64_t i = 0; i < weights.rows * weights.cols; i++)
        if (weights.at[i] > 0) sum -= weights.at[i] * log(weights.at[i]);
    return weights.cols > 1 ? sum / (double)weights.rows / log((double)weights.cols) : 1;
}

double spread_largest(mat weights) {
    double sum = 0;
    for (int64_t i = 0; i < weights.rows; i++) {
        double largest = 0;
        for (int64_t j = 0; j < weights.cols; j++)
            if (mat_at(weights, i, j) > largest) largest = mat_at(weights, i, j); /* by fmax gcc 12 breaks off on aarch64 */
        sum += largest;
    }
    return sum / (double)weights.rows;
}

double spread_gradient(mat weights) {
    double sum = 0;
    for (int64_t i = 0; i < weights.rows * weights.cols; i++) sum += weights.at[i] * (1.0 - weights.at[i]);
    return sum / (double)weights.rows;
}
