/* The limits of host memory devices: multiply-adds in registers, reading from cache and from memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "candidate.h"
#include "clock.h"
#include "opencl.h"
#include "../host/native/native.h"
#include "threads.h"
#include "tiles.h"

/* One run takes about so long: many times a launch, far below a scheduler's slice. */
static const double RUN_MS = 2;

typedef struct limit {
    const bench_isa *isa;
    const bench_tiles *tiles; /* NULL: the limit is not of bf16 products */
    bench_limit_kind kind;
    int threads;
    int64_t repeat; /* rounds of multiply-adds, or walks over the buffer */
    float *buffer;
    int64_t floats_each; /* of the buffer, for one thread */
} limit;

static void work(void *arg, int thread, int threads) {
    const limit *state = arg;
    float sink;
    (void)threads;
    if (state->tiles) {
        state->tiles->multiply(state->repeat, &sink);
    } else if (state->kind == BENCH_LIMIT_MULTIPLY_ADD) {
        state->isa->multiply_add(state->repeat, &sink);
    } else {
        const float *from = state->buffer + thread * state->floats_each;
        state->isa->read(from, state->floats_each, state->repeat, &sink);
    }
    volatile float kept = sink;
    (void)kept;
}

static bool run(bench_candidate *candidate, bench_time *time, bench_error *error) {
    limit *state = candidate->state;
    (void)error;
    double start = bench_now_ms();
    bench_on_threads(state->threads, work, state);
    time->wall_ms = bench_now_ms() - start;
    return true;
}

static void release(bench_candidate *candidate) {
    limit *state = candidate->state;
    free(state->buffer);
    free(state);
}

static const bench_candidate_class host_limit = {.run = run, .release = release};

/* Bytes for each thread: three quarters of a core's first cache, half of its second; of the last one many times the second, so
 * that little is left there from walk to walk; of memory many times the last. */
static size_t bytes_to_read(bench_limit_kind kind, size_t threads) {
    const size_t last = bench_last_cache_bytes() / threads, far = 8 * bench_core_cache_bytes();
    switch (kind) {
    case BENCH_LIMIT_READ_L1:
        return bench_first_cache_bytes() / 4 * 3;
    case BENCH_LIMIT_READ_CACHE:
        return bench_core_cache_bytes() / 2;
    case BENCH_LIMIT_READ_L3:
        return far < last / 2 ? far : last / 2;
    default:
        return 4 * last;
    }
}

static bool allocate(limit *state, bench_error *error) {
    if (state->kind < BENCH_LIMIT_PEAKS) return true;
    const size_t bytes = bytes_to_read(state->kind, (size_t)state->threads);
    if (state->kind == BENCH_LIMIT_READ_L3 && bytes <= bench_core_cache_bytes())
        return bench_fail(error, "no cache is much larger than a core's own");
    state->floats_each = (int64_t)(bytes / sizeof(float) / 256 * 256);
    size_t total = (size_t)state->floats_each * sizeof(float) * (size_t)state->threads;
    state->buffer = aligned_alloc(1024, total);
    if (!state->buffer) return bench_fail(error, "out of memory: %zu bytes to measure bandwidth", total);
    memset(state->buffer, 0, total);
    return true;
}

/* Repeat until one thread's share is long enough to time. The shortest of some: others may want this core, too. */
static void calibrate(limit *state) {
    if (state->kind == BENCH_LIMIT_READ_MEMORY) return;
    for (;; state->repeat *= 2) {
        double shortest = RUN_MS;
        for (int n = 0; n < 5; n++) {
            double start = bench_now_ms();
            work(state, 0, state->threads);
            double ms = bench_now_ms() - start;
            if (ms < shortest) shortest = ms;
        }
        if (shortest >= RUN_MS) return;
    }
}

int bench_limit_feature(bench_limit_kind kind) {
    return kind == BENCH_LIMIT_AVX512_BF16 ? CLATTN__FEATURE_avx512_bf16 : kind == BENCH_LIMIT_AMX_BF16 ? CLATTN__FEATURE_amx_bf16 : 0;
}

/* The loop of a feature; NULL, with the reason, where it cannot run. */
static const bench_tiles *find_tiles(const bench_device *device, int feature, bench_error *error) {
    const bench_tiles *tiles = bench_tiles_of(feature);
    const bool here = tiles && device->context->device.features >> feature & 1;
    const char *why = here ? clattn__feature_permit(feature) : clattn__features_missing[feature];
    if (why) bench_fail(error, "%s", why);
    return why ? NULL : tiles;
}

bool bench_candidate_limit(bench_candidate *candidate, bench_device *device, bench_limit_kind kind, const bench_isa *isa,
                           bench_error *error) {
    static const char *const names[] = {
        [BENCH_LIMIT_MULTIPLY_ADD] = "multiply-add", [BENCH_LIMIT_FRAGMENTS] = "multiply-add f16 fragments",
        [BENCH_LIMIT_AVX512_BF16] = "multiply-add bf16 avx512_bf16", [BENCH_LIMIT_AMX_BF16] = "multiply-add bf16 amx",
        [BENCH_LIMIT_READ_LOCAL] = "read local",     [BENCH_LIMIT_READ_L1] = "read L1",
        [BENCH_LIMIT_READ_CACHE] = "read cache",     [BENCH_LIMIT_READ_L3] = "read L3",
        [BENCH_LIMIT_READ_MEMORY] = "read memory",
    };
    *candidate = (bench_candidate){.device = device, .contrast = "limits", .workspace_bytes = -1, .peak = kind};
    snprintf(candidate->path, sizeof candidate->path, "%s", names[kind]);
    if (device->cl) return bench_opencl_limit(candidate, kind, error);
    if (kind == BENCH_LIMIT_FRAGMENTS || kind == BENCH_LIMIT_READ_LOCAL) return bench_fail(error, "host memory has none");
    const int feature = bench_limit_feature(kind);
    const bench_tiles *tiles = feature ? find_tiles(device, feature, error) : NULL;
    if (feature && !tiles) return false;
    limit *state = calloc(1, sizeof *state);
    if (!state) return bench_fail(error, "out of memory");
    *state = (limit){.isa = isa, .tiles = tiles, .kind = kind, .threads = device->units, .repeat = 1};
    candidate->state = state;
    candidate->class = &host_limit;
    if (!tiles)
        snprintf(candidate->path, sizeof candidate->path, "%s %s", kind == BENCH_LIMIT_READ_CACHE ? "read L2" : names[kind],
                 isa->name);
    if (!allocate(state, error)) {
        bench_candidate_release(candidate);
        return false;
    }
    calibrate(state);
    double total = (double)state->repeat * device->units;
    if (kind < BENCH_LIMIT_PEAKS)
        candidate->flops = total * (double)(tiles ? tiles->flops_per_round : isa->flops_per_round);
    else
        candidate->bytes = total * (double)state->floats_each * sizeof(float);
    return true;
}
