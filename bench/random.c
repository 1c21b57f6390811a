/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include <math.h>

/* SplitMix64 (Steele, Lea and Flood 2014): every seed is a good one. */
static uint64_t next(bench_random *random) {
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t bench_random_below(bench_random *random, uint64_t bound) {
    return next(random) % bound;
}

/* Uniform in (-1, 1), never 0. */
static float uniform(uint64_t bits) {
    return ((float)(uint32_t)(bits >> 40) + 0.5f) * 0x1p-23f - 1.0f;
}

/* Marsaglia's polar method: two numbers at a time. */
void bench_random_normal(bench_random *random, float *values, size_t count, float sigma) {
    for (size_t i = 0; i < count;) {
        float x = uniform(next(random)), y = uniform(next(random));
        float square = x * x + y * y;
        if (square >= 1.0f || square == 0.0f) continue;
        float factor = sigma * sqrtf(-2.0f * logf(square) / square);
        values[i++] = x * factor;
        if (i < count) values[i++] = y * factor;
    }
}
