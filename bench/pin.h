/* Threads pinned to cores: a thread a core, and the caller's affinity respected.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * OpenMP reads OMP_PLACES and OMP_PROC_BIND when its library is loaded, before main, so the program starts itself once more
 * with them set; so do the variables of PoCL, which are read with the first device. What the user has set stays.
 */
#ifndef CLATTN_BENCH_PIN_H
#define CLATTN_BENCH_PIN_H

/* Returns when the environment is right (or nothing can be done about it); otherwise the program starts anew, and `prepare`, if
 * there is one, sets more of its environment before. */
void bench_pin(int argc, char **argv, void (*prepare)(void));

/* In words, for the report. */
const char *bench_pin_explain(void);

/* Between these two calls the calling thread may run on every processor that the program was started on: threads that a
 * library makes inherit that, and not the one core that OpenMP has given us. */
typedef struct bench_affinity {
    unsigned char mask[128];
} bench_affinity;
void bench_pin_widen(bench_affinity *saved);
void bench_pin_restore(const bench_affinity *saved);

#endif
