/* The benchmark's own loops, compiled once for each instruction-set level of host/native/isa.def.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_ISA_H
#define CLATTN_BENCH_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_isa {
    const char *name;
    int width; /* floats a vector */
    /* Multiply-add in independent chains, `rounds` links each; the sum goes to *sink. */
    void (*multiply_add)(int64_t rounds, float *sink);
    int64_t flops_per_round;
    /* Read `count` floats (a multiple of 16 vectors) `repeat` times; the sum goes to *sink. */
    void (*read)(const float *values, int64_t count, int64_t repeat, float *sink);
    /* weights = softmax(scale * scores) over the first `live` of `len` columns, in place; the rest becomes 0. */
    void (*softmax)(float *row, int64_t live, int64_t len, float scale);
} bench_isa;

/* The n-th level that was compiled and that this processor has, best first; NULL beyond the last. */
const bench_isa *bench_isa_level(size_t n);
/* The level of that name; NULL where there is none of them. */
const bench_isa *bench_isa_named(const char *name);
/* The level that a device of this name computes at: that of native:LEVEL, else the best. */
const bench_isa *bench_isa_of_device(const char *id);

#endif
