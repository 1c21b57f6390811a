/* From a measured candidate to its record.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_FILL_H
#define CLATTN_BENCH_FILL_H

#include "session.h"

/* GFLOP/s of the units used; NaN: not measured. */
typedef struct bench_peak {
    double best, median; /* of the samples of one measurement */
} bench_peak;

/* Fill a new record. */
void bench_fill_record(bench_record *, const bench_session *, const bench_lane *, bench_peak peak, bool cold);

#endif
