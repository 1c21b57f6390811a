/* What a set of samples says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_STATS_H
#define CLATTN_BENCH_STATS_H

#include <stddef.h>

typedef struct bench_stats {
    size_t samples;
    double median, min, p90;
    double first_quartile, third_quartile;
    double iqr;   /* third quartile minus first, in the unit of the samples */
    double noise; /* iqr / median */
} bench_stats;

/* Above this noise a figure is called noisy. */
#define BENCH_NOISY_ABOVE 0.05

/* Statistics of `count` values, which are sorted in place; all NaN when there are none. Quantiles are interpolated between
 * neighbours (Hyndman and Fan 1996, type 7). */
bench_stats bench_stats_of(double *values, size_t count);

/* Quantile q in [0, 1] of sorted values. */
double bench_quantile(const double *sorted, size_t count, double q);

#endif
