/* The loops of one level. The build sets ISA_LEVEL and VECTOR_WIDTH, and the compiler's flags for that level.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <string.h>

#include "isa.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define QUOTE_(a) #a
#define QUOTE(a) QUOTE_(a)

typedef float vec __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef int32_t ivec __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef float unaligned_vec __attribute__((vector_size(4 * VECTOR_WIDTH), aligned(4), may_alias));

static inline vec splat(float x) {
    return x - (vec){0};
}
static inline vec load(const float *from) {
    return *(const unaligned_vec *)from;
}
static inline void store(float *to, vec x) {
    *(unaligned_vec *)to = x;
}

static inline float sum(vec x) {
    float total = 0;
    for (int lane = 0; lane < VECTOR_WIDTH; lane++) total += x[lane];
    return total;
}

/* Latency times units of every core in use is at most 16; with the two constants, 12 fill the 16 registers of x86. */
#if defined(__x86_64__) && VECTOR_WIDTH < 16
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
enum { CHAIN_COUNT = 12 };
#else
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
enum { CHAIN_COUNT = 16 };
#endif

static void multiply_add(int64_t rounds, float *sink) {
    /* Each chain converges to 1: neither denormal nor infinite however long it runs. */
    const vec factor = splat(0.75f), term = splat(0.25f);
#define X(n) vec chain##n = splat(n + 1);
    CHAINS(X)
#undef X
    for (int64_t round = 0; round < rounds; round++) {
#define X(n) chain##n = chain##n * factor + term;
        CHAINS(X)
#undef X
    }
    vec total = splat(0);
#define X(n) total += chain##n;
    CHAINS(X)
#undef X
    *sink = sum(total);
}

static void read_floats(const float *values, int64_t count, int64_t repeat, float *sink) {
    vec totals[8] = {{0}};
    for (int64_t walk = 0; walk < repeat; walk++)
        for (int64_t i = 0; i + 8 * VECTOR_WIDTH <= count; i += 8 * VECTOR_WIDTH)
            for (int n = 0; n < 8; n++) totals[n] += load(values + i + n * VECTOR_WIDTH);
    vec total = splat(0);
    for (int n = 0; n < 8; n++) total += totals[n];
    *sink = sum(total);
}

/* 2^x for x in [-127, 0], relative error 3e-7: degree 6 over [-0.5, 0.5], exponent by adding to the bits. */
static inline vec exp2_nonpositive(vec x) {
    const vec magic = splat(0x1.8p23f);
    vec whole = x + magic;
    ivec shift;
    memcpy(&shift, &whole, sizeof shift);
    vec f = x - (whole - magic);
    vec y = splat(1.5403530394e-4f);
    y = y * f + splat(1.3333558146e-3f);
    y = y * f + splat(9.6181291076e-3f);
    y = y * f + splat(5.5504108665e-2f);
    y = y * f + splat(2.4022650696e-1f);
    y = y * f + splat(6.9314718056e-1f);
    y = y * f + splat(1.0f);
    ivec bits;
    memcpy(&bits, &y, sizeof bits);
    bits += shift << 23;
    memcpy(&y, &bits, sizeof y);
    return y;
}

static inline vec largest(vec a, vec b) {
    ivec greater = a > b, x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = (x & greater) | (y & ~greater);
    memcpy(&a, &x, sizeof a);
    return a;
}

static float row_maximum(const float *row, int64_t live) {
    float result = -INFINITY;
    int64_t j = 0;
    if (live >= VECTOR_WIDTH) {
        vec high = load(row);
        for (j = VECTOR_WIDTH; j + VECTOR_WIDTH <= live; j += VECTOR_WIDTH) high = largest(load(row + j), high);
        for (int lane = 0; lane < VECTOR_WIDTH; lane++) result = fmaxf(result, high[lane]);
    }
    for (; j < live; j++) result = fmaxf(result, row[j]);
    return result;
}

static void softmax(float *row, int64_t live, int64_t len, float scale) {
    const float factor = scale * 1.44269504f; /* log2(e): exp becomes exp2 */
    const float shift = row_maximum(row, live) * factor;
    vec total = splat(0);
    int64_t j = 0;
    for (; j + VECTOR_WIDTH <= live; j += VECTOR_WIDTH) {
        vec weight = exp2_nonpositive(largest(load(row + j) * splat(factor) - splat(shift), splat(-126)));
        store(row + j, weight);
        total += weight;
    }
    float row_sum = sum(total);
    for (; j < live; j++) row_sum += row[j] = exp2f(row[j] * factor - shift);
    const float inverse = live > 0 ? 1 / row_sum : 0;
    for (j = 0; j + VECTOR_WIDTH <= live; j += VECTOR_WIDTH) store(row + j, load(row + j) * splat(inverse));
    for (; j < live; j++) row[j] *= inverse;
    if (live < len) memset(row + live, 0, (size_t)(len - live) * sizeof *row);
}

const bench_isa PASTE(bench_isa_, ISA_LEVEL) = {
    .name = QUOTE(ISA_LEVEL),
    .width = VECTOR_WIDTH,
    .multiply_add = multiply_add,
    .flops_per_round = 2 * CHAIN_COUNT * VECTOR_WIDTH,
    .read = read_floats,
    .softmax = softmax,
};
