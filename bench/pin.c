/* SPDX-License-Identifier: Apache-2.0 */
#include "pin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)

#include <sched.h>
#include <unistd.h>

/* Set by us for the second start: the processors that the first one was allowed, as hexadecimal bytes. */
#define MARK "CLATTN_BENCH_PROCESSORS"

static void mask_to_text(const bench_affinity *affinity, char *text) {
    for (size_t i = 0; i < sizeof affinity->mask; i++) sprintf(text + 2 * i, "%02x", affinity->mask[i]);
}

static int text_to_mask(const char *text, bench_affinity *affinity) {
    if (!text || strlen(text) != 2 * sizeof affinity->mask) return 0;
    for (size_t i = 0; i < sizeof affinity->mask; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) return 0;
        affinity->mask[i] = (unsigned char)byte;
    }
    return 1;
}

static int get_mask(bench_affinity *affinity) {
    _Static_assert(sizeof affinity->mask == sizeof(cpu_set_t), "an affinity holds a cpu_set_t");
    return sched_getaffinity(0, sizeof affinity->mask, (cpu_set_t *)affinity->mask) == 0;
}

void bench_pin(int argc, char **argv, void (*prepare)(void)) {
    bench_affinity allowed;
    char text[2 * sizeof allowed.mask + 1];
    if (getenv(MARK) || !get_mask(&allowed)) return;
    char **again = calloc((size_t)argc + 2, sizeof *again);
    if (!again) return;
    if (prepare) prepare();
    again[0] = (char *)"clattn";
    memcpy(again + 1, argv, (size_t)argc * sizeof *argv);
    mask_to_text(&allowed, text);
    setenv(MARK, text, 1);
    if (!getenv("OMP_PLACES")) setenv("OMP_PLACES", "cores", 1);
    if (!getenv("OMP_PROC_BIND")) setenv("OMP_PROC_BIND", "close", 1);
    /* PoCL pins its n-th thread to the n-th processor, whatever the caller's affinity: only when all are allowed. */
    if (CPU_COUNT((cpu_set_t *)allowed.mask) >= sysconf(_SC_NPROCESSORS_ONLN)) {
        setenv("POCL_AFFINITY", "1", 0);
    } else {
        char count[16];
        snprintf(count, sizeof count, "%d", CPU_COUNT((cpu_set_t *)allowed.mask));
        setenv("POCL_MAX_PTHREAD_COUNT", count, 0);
    }
    execv("/proc/self/exe", again);
    free(again); /* only when it could not start: then unpinned, and bench_pin_explain says so */
    unsetenv(MARK);
}

const char *bench_pin_explain(void) {
    static const char *const names[] = {"not pinned", "a thread a core"};
    const char *bind = getenv("OMP_PROC_BIND");
    return names[getenv(MARK) && bind && strcmp(bind, "false") != 0];
}

void bench_pin_widen(bench_affinity *saved) {
    bench_affinity wide;
    memset(saved, 0, sizeof *saved);
    if (get_mask(saved) && text_to_mask(getenv(MARK), &wide)) sched_setaffinity(0, sizeof wide.mask, (cpu_set_t *)wide.mask);
}

void bench_pin_restore(const bench_affinity *saved) {
    if (CPU_COUNT((const cpu_set_t *)saved->mask) > 0) sched_setaffinity(0, sizeof saved->mask, (const cpu_set_t *)saved->mask);
}

#else

void bench_pin(int argc, char **argv, void (*prepare)(void)) {
    (void)argc, (void)argv, (void)prepare;
}
const char *bench_pin_explain(void) {
    return "not pinned";
}
void bench_pin_widen(bench_affinity *saved) {
    memset(saved, 0, sizeof *saved);
}
void bench_pin_restore(const bench_affinity *saved) {
    (void)saved;
}

#endif
