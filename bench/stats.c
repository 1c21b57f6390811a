/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const double *sorted, size_t count, double q) {
    if (count == 0) return NAN;
    double position = q * (double)(count - 1);
    size_t below = (size_t)position;
    if (below + 1 >= count) return sorted[count - 1];
    double part = position - (double)below;
    return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

bench_stats bench_stats_of(double *values, size_t count) {
    if (count == 0) return (bench_stats){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    qsort(values, count, sizeof *values, compare_doubles);
    bench_stats stats = {
        .samples = count,
        .median = bench_quantile(values, count, 0.5),
        .min = values[0],
        .p90 = bench_quantile(values, count, 0.9),
        .first_quartile = bench_quantile(values, count, 0.25),
        .third_quartile = bench_quantile(values, count, 0.75),
    };
    stats.iqr = stats.third_quartile - stats.first_quartile;
    stats.noise = stats.median > 0 ? stats.iqr / stats.median : 0;
    return stats;
}
