/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLATTN_BENCH_CLOCK_H
#define CLATTN_BENCH_CLOCK_H

#include <time.h>

/* Milliseconds of the monotonic clock. */
static inline double bench_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

#endif
