/* Multiply-adds of bf16 in registers, by the instructions of host/native/tiles.h: one object for each feature that was compiled.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_TILES_H
#define CLATTN_BENCH_TILES_H

#include <stdint.h>

typedef struct bench_tiles {
    int feature; /* its number in host/native/features.def */
    /* `rounds` rounds of products that do not wait for one another; the sum of them goes to *sink. */
    void (*multiply)(int64_t rounds, float *sink);
    int64_t flops_per_round;
} bench_tiles;

/* NULL where no such code was compiled. */
const bench_tiles *bench_tiles_of(int feature);

#endif
