/* The verdict: sentences that rules compute from the figures. Any outcome can come out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_VERDICT_H
#define CLATTN_BENCH_VERDICT_H

#include "../host/internal.h"

enum { BENCH_MAX_LENGTHS = 32, BENCH_MAX_UNITS = 16 };

/* One side of a contrast at one length. */
typedef struct bench_point {
    double ms;
    double noise; /* iqr / median */
    double flops;
    double percent; /* of peak */
    i64 chain;      /* dependent steps */
} bench_point;

typedef struct bench_contrast {
    const char *title;      /* "Core against core" */
    const char *attention;  /* what stands on that side, with its article: "fused attention" */
    const char *recurrence; /* "the recurrent loop" */
    size_t count;           /* lengths, rising */
    i64 lengths[BENCH_MAX_LENGTHS];
    bench_point attention_at[BENCH_MAX_LENGTHS], recurrence_at[BENCH_MAX_LENGTHS];
} bench_contrast;

/* The same work on 1, 2, ... units at one length. */
typedef struct bench_scaling {
    i64 length;
    size_t count;
    int units[BENCH_MAX_UNITS]; /* rising from 1 */
    bench_point attention_at[BENCH_MAX_UNITS], recurrence_at[BENCH_MAX_UNITS];
} bench_scaling;

typedef enum bench_winner { BENCH_WINNER_UNCLEAR, BENCH_WINNER_ATTENTION, BENCH_WINNER_RECURRENCE } bench_winner;

/* The faster of two; unclear when the difference is within their noise together, or below BENCH_RESOLUTION, or when either is
 * noisier than BENCH_HOPELESS, for then its median is not known. */
#define BENCH_RESOLUTION 0.03
#define BENCH_HOPELESS 0.5
bench_winner bench_faster(const bench_point *attention, const bench_point *recurrence);

/* With more noise than this, no ratio is made of a time, and nothing foretold from a speed-up. */
#define BENCH_TOO_NOISY 0.2
/* Of the noisier of two. */
double bench_noise(const bench_point *, const bench_point *);
/* More noise than that, and times that may overlap: each lies within its noise around its median. */
bool bench_too_noisy(const bench_point *, const bench_point *);

/* The first length where the lines cross, both logarithmic between the lengths where one side clearly wins, when the
 * recurrence's times are multiplied by `recurrence_factor` and attention's by `attention_factor` (1 and 1: as measured); 0 when
 * they do not. */
double bench_crossing(const bench_contrast *, double attention_factor, double recurrence_factor);

/* Amdahl's parallel part in [0, 1] from the speed-up on `units`; 0 for one unit. */
double bench_parallel_part(double speedup, int units);

/* Where each side wins and by how much, where the lines cross, and why. */
void bench_verdict_contrast(clattn__text *, const bench_contrast *);
/* What more units gave, and what yet more would change in `core` (which was measured on all units). */
void bench_verdict_scaling(clattn__text *, const bench_scaling *, const bench_contrast *core, const char *unit_name);

#endif
