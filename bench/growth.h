/* How something grows with the length: y = c n^p.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_GROWTH_H
#define CLATTN_BENCH_GROWTH_H

#include <stddef.h>

typedef struct bench_growth {
    double factor, exponent; /* c and p */
    double error;            /* half of p's 95 % interval; NaN below three points */
} bench_growth;

/* By least squares of the logarithms, each point as good as any other: for times whose noise is a part of them. The interval is
 * Student's, of what the points leave over, so that a curve that is no power shows in it, too. All NaN below two points. */
bench_growth bench_growth_fit(const double *n, const double *y, size_t count);

#endif
