/* Candidates that are measured together: verified one by one, then sampled in turns, with their devices' peaks among them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_GROUP_H
#define CLATTN_BENCH_GROUP_H

#include "session.h"

enum { BENCH_GROUP_MAX = 40, BENCH_MAX_PEAKS = 2 * BENCH_MAX_UNITS };

typedef struct bench_group {
    bench_session *session;
    bench_candidate candidates[BENCH_GROUP_MAX];
    size_t count;
    bench_candidate peaks[BENCH_MAX_PEAKS]; /* multiply-adds, one for each device in the group and kind of them */
    size_t peak_count;
} bench_group;

/* Add a candidate that `made` says was made: it is verified against the reference, and left out, with a remark, when it was
 * not made or does not agree. Returns it, or NULL. */
bench_candidate *bench_group_add(bench_group *, const char *contrast, bool made, bench_candidate *, bench_error *);
/* The same for a plan of clattn. */
bench_candidate *bench_group_add_plan(bench_group *, const char *contrast, bench_device *, bench_problem *, bench_variant);

/* Add a limit of a device. */
bench_candidate *bench_group_add_limit(bench_group *, bench_device *, bench_limit_kind, const bench_isa *);
/* Add the reading of a problem's K and V, or W_h, on host memory. */
void bench_group_add_read(bench_group *, bench_device *, bench_problem *);
/* Add the copies of a problem's tensors to the OpenCL device and back; nothing on host memory. */
void bench_group_add_copies(bench_group *, bench_device *, bench_problem *);

/* Measure all, warm (and cold, if asked), into the session's records. A figure above 110 % of its peak has everything measured
 * once more; if it stays there it is flagged and the session has failed. *first receives the index of the first candidate's
 * warm record; the others' follow in order. */
bool bench_group_measure(bench_group *, bool cold, size_t *first, bench_error *);
void bench_group_free(bench_group *);

#endif
