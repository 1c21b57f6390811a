/* What plans take: time, by the benchmark's sampler; memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_MEASURE_H
#define CLATTN_LESSONS_MEASURE_H

#include "bench/problem.h"
#include "bench/verdict.h"
#include "lesson.h"

/* ---- time ---------------------------------------------------------------------------------------------------------- */

enum { MEASURE_MAX = 8 };

/* Attention without projections, fused; the loop of a recurrence alone. */
bench_shape measure_attention(int64_t heads, int64_t len, int64_t head_dim);
bench_shape measure_recurrence(int64_t len, int64_t width);

/* Between which half of the runs lie, quartiles, and the fastest run; in ms. */
typedef struct measure_spread {
    double low, high, fastest;
} measure_spread;

/* Time them on the lesson's device, in turns: medians and noise, as the benchmark takes them, if for a shorter time. spreads
 * may be NULL. */
void measure_in_turns(lesson *, const bench_shape *shapes, size_t count, bench_point *points, measure_spread *spreads);
/* The milliseconds of one run of each together: of several short ones the fastest, since others may have waited for what else
 * the machine does. */
double measure_probe(lesson *, const bench_shape *shapes, size_t count);
/* Whether to measure what takes so long a run: MEASURE_WORTH_MS at most. */
enum { MEASURE_WORTH_MS = 60 };
bool measure_is_worth(double milliseconds);

/* Whether no ratio is to be made of a time with that noise. */
bool measure_too_noisy(double noise);
/* "4 %", or where that says nothing any more, "over 100 %". */
const char *measure_percent(const doc *, double noise);
/* "4 %", or where a time cannot be relied on "38 %, noisy": what its runs spread by. */
const char *measure_noise(const doc *, double noise);

/* ---- memory -------------------------------------------------------------------------------------------------------- */

typedef struct attention_size {
    int64_t heads, len, head_dim;
    clattn_algorithm algorithm;
} attention_size;

/* Leave the lesson where the device has no fused kernels for heads so wide. */
void measure_require(lesson *, int64_t head_dim);
/* The bytes of workspace that its plan asks for. */
size_t measure_workspace(lesson *, attention_size);
/* The launches of its plan that wait for one another. */
int64_t measure_stages(lesson *, attention_size);
/* The bytes of its workspace that a run of the plan writes, in lines of 64: the workspace is filled with a pattern, and what
 * has changed is counted. -1 where a device computes in other memory. */
int64_t measure_written(lesson *, attention_size);

#endif
