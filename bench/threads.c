/* SPDX-License-Identifier: Apache-2.0 */
#include "threads.h"

#include <unistd.h>

#if defined(_OPENMP)
#include <omp.h>

int bench_has_threads(void) {
    return 1;
}

int bench_all_threads(void) {
    return omp_get_max_threads();
}

void bench_on_threads(int threads, void (*body)(void *, int, int), void *arg) {
#pragma omp parallel num_threads(threads)
    body(arg, omp_get_thread_num(), omp_get_num_threads());
}

#else

int bench_has_threads(void) {
    return 0;
}

int bench_all_threads(void) {
    return 1;
}

void bench_on_threads(int threads, void (*body)(void *, int, int), void *arg) {
    for (int thread = 0; thread < threads; thread++) body(arg, thread, threads);
}

#endif

static size_t cache_or(long reported, size_t guess) {
    return reported > 0 ? (size_t)reported : guess;
}

size_t bench_last_cache_bytes(void) {
#if defined(_SC_LEVEL3_CACHE_SIZE)
    return cache_or(sysconf(_SC_LEVEL3_CACHE_SIZE), (size_t)32 << 20);
#else
    return cache_or(0, (size_t)32 << 20);
#endif
}

size_t bench_first_cache_bytes(void) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    return cache_or(sysconf(_SC_LEVEL1_DCACHE_SIZE), (size_t)32 << 10);
#else
    return cache_or(0, (size_t)32 << 10);
#endif
}

size_t bench_core_cache_bytes(void) {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    return cache_or(sysconf(_SC_LEVEL2_CACHE_SIZE), (size_t)512 << 10);
#else
    return cache_or(0, (size_t)512 << 10);
#endif
}
