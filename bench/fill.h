/* From a measured candidate to its record.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_FILL_H
#define CLATTN_BENCH_FILL_H

#include "session.h"

/* Fill a new record. peak_gflops: of the units used; NaN: not measured. */
void bench_fill_record(bench_record *, const bench_session *, const bench_lane *, double peak_gflops, bool cold);

#endif
