/* The benchmark: attention against the recurrence, against peers, against the device's limits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_BENCH_H
#define CLATTN_BENCH_BENCH_H

/* The command `clattn bench`; argv[0] is "bench". Returns the exit code: 0, 1 when a figure cannot be trusted or a candidate
 * failed, 2 for a mistake in the command. */
int clattn_bench_main(int argc, char **argv);

#endif
