/* Inputs: random normal numbers from a recorded seed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_RANDOM_H
#define CLATTN_BENCH_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct bench_random {
    uint64_t state;
} bench_random;

/* A whole number in [0, bound); bound > 0. */
uint64_t bench_random_below(bench_random *, uint64_t bound);
/* Fill with normal numbers of standard deviation `sigma`. */
void bench_random_normal(bench_random *, float *values, size_t count, float sigma);

#endif
