/* Samples of several candidates, taken in turns, so that what disturbs the machine disturbs all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_SAMPLER_H
#define CLATTN_BENCH_SAMPLER_H

#include "candidate.h"
#include "stats.h"

enum { BENCH_MIN_SAMPLES = 10, BENCH_MAX_SAMPLES = 2000 };

typedef struct bench_sampling {
    double warm_up_s; /* at most so long until two consecutive medians agree within 2 % */
    double seconds;   /* at most so long once each has BENCH_MIN_SAMPLES, until all have IQR / median <= 1 % */
    bool cold;        /* empty the caches before every run */
} bench_sampling;

typedef struct bench_lane {
    bench_candidate *candidate;
    double *wall, *event; /* owned by the sampler while it runs */
    size_t count;
    bench_stats stats;        /* of the clock that `source` names */
    double wall_ms, event_ms; /* medians; NaN: none */
    const char *source;       /* "wall clock", "device events" */
    const char *remark;       /* why the wall clock although there are events; NULL: nothing to say */
} bench_lane;

/* From now on this signal ends no process, but the sampling, as a failure: what was measured before can be told. A second one
 * ends the process. A signal that is ignored stays so. Forgets signals that came before. */
void bench_end_on(int signal);
/* The signal that asked to end; 0: none. */
int bench_ended_by(void);

bool bench_sample(bench_lane *lanes, size_t count, const bench_sampling *, bench_error *);

/* Whether the two halves of consecutive runs agree: their medians are within 2 %. */
bool bench_warm(const double *before, const double *after, size_t count);

#endif
