/* Two runs beside one another.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_COMPARE_H
#define CLATTN_BENCH_COMPARE_H

#include "record.h"

typedef enum bench_change { BENCH_SAME, BENCH_FASTER, BENCH_SLOWER, BENCH_CHANGE_UNCLEAR } bench_change;

/* Below this two runs of one build cannot be told apart. */
#define BENCH_COMPARE_RESOLUTION 0.05

/* How b changed against a. `drift` is by how much the machine itself changed between the runs, as a part: it is doubt, like
 * the noise of both. A change is claimed only when it exceeds the doubt, and the minimum moved the same way. */
bench_change bench_change_of(const bench_record *a, const bench_record *b, double drift);
const char *bench_change_name(bench_change);

/* By how much the measured limits differ between two runs, as a part; the median over them. */
double bench_drift(const bench_records *a, const bench_records *b);

/* `clattn bench compare A.json B.json`: a table on stdout; argv[0] is "compare". Returns the exit code. */
int bench_compare_main(int argc, char **argv);

#endif
