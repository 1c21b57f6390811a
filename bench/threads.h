/* Host threads and caches, as the benchmark's own loops need them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_THREADS_H
#define CLATTN_BENCH_THREADS_H

#include <stddef.h>

/* Whether this build has threads (OpenMP). */
int bench_has_threads(void);
/* How many of them there are. */
int bench_all_threads(void);
/* Call body(arg, thread, threads) on `threads` threads, those that the library's plans run on too, and wait. */
void bench_on_threads(int threads, void (*body)(void *arg, int thread, int threads), void *arg);

/* Bytes of the last-level cache, and of a core's first and second; a guess where the system does not say. */
size_t bench_last_cache_bytes(void);
size_t bench_first_cache_bytes(void);
size_t bench_core_cache_bytes(void);

#endif
