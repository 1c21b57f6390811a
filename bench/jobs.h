/* What `clattn bench` can be asked to measure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_JOBS_H
#define CLATTN_BENCH_JOBS_H

#include "session.h"

/* Each adds records, verdict and remarks to the session; false when it could not go on. */
bool bench_job_main(bench_session *, bench_error *);
bool bench_job_attention(bench_session *, bench_error *);
bool bench_job_growth(bench_session *, bench_error *); /* attention --growth */
bool bench_job_project(bench_session *, bench_error *);
bool bench_job_recurrence(bench_session *, bench_error *);
bool bench_job_limits(bench_session *, bench_error *);

#endif
