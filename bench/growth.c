/* SPDX-License-Identifier: Apache-2.0 */
#include "growth.h"

#include <math.h>

/* The 97.5 % quantile of Student's t; beyond the table the normal distribution's is near enough. */
static double student(size_t freedom) {
    static const double quantiles[] = {NAN,   12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                       2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
    return freedom < sizeof quantiles / sizeof *quantiles ? quantiles[freedom] : 1.96;
}

bench_growth bench_growth_fit(const double *n, const double *y, size_t count) {
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0, rest = 0;
    if (count < 2) return (bench_growth){NAN, NAN, NAN};
    for (size_t i = 0; i < count; i++) mean_x += log(n[i]) / (double)count, mean_y += log(y[i]) / (double)count;
    for (size_t i = 0; i < count; i++) {
        const double x = log(n[i]) - mean_x;
        xx += x * x;
        xy += x * (log(y[i]) - mean_y);
    }
    const double slope = xy / xx;
    for (size_t i = 0; i < count; i++) {
        const double off = log(y[i]) - mean_y - slope * (log(n[i]) - mean_x);
        rest += off * off;
    }
    return (bench_growth){.factor = exp(mean_y - slope * mean_x),
                          .exponent = slope,
                          .error = count < 3 ? NAN : student(count - 2) * sqrt(rest / (double)(count - 2) / xx)};
}
