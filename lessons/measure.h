/* Plans that are run more than once, to be measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The wall clock of clattn_plan_run, so that on a device of its own the copies there and back are counted: what a caller waits
 * for. The benchmark measures more carefully.
 */
#ifndef CLATTN_LESSONS_MEASURE_H
#define CLATTN_LESSONS_MEASURE_H

#include "lesson.h"

typedef struct measured {
    double milliseconds; /* of the fastest run: others waited for other programs */
    int runs;
    int64_t dependent_steps, launches;
    double flops;
    size_t workspace_bytes;
} measured;

typedef struct attention_size {
    int64_t heads, len, head_dim;
    clattn_algorithm algorithm;
} attention_size;

/* Attention on random words. */
measured measure_attention(lesson *, attention_size);
/* Whether the device has kernels for it. */
bool measure_supports(lesson *, attention_size);
/* The same plan, made but not run: its steps, FLOPs and workspace. */
measured measure_attention_plan(lesson *, attention_size);
/* The bytes of its workspace that a run of the plan writes, in lines of 64: the workspace is filled with a pattern, and what
 * has changed is counted. -1 where a device computes in other memory. */
int64_t measure_written(lesson *, attention_size);
/* A recurrence as wide, on random words: the loop alone, with inputs of width 0. */
measured measure_recurrence(lesson *, clattn_cell cell, int64_t len, int64_t width);

/* Whether to measure what has `growth` times the work of a run that took so long. */
bool measure_worth(double milliseconds, double growth);

#endif
