/* Nothing is timed before it is verified: outputs against the reference operators.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The reference is double precision and plain loops, so large shapes are verified in part. Attention and layers: the first and
 * the last row, both sides of the first and last tile edges, and 64 random rows, each in every head. Recurrences: the first
 * steps.
 */
#ifndef CLATTN_BENCH_VERIFY_H
#define CLATTN_BENCH_VERIFY_H

#include "problem.h"

/* Compare the problem's output with the reference; the oracle's rows are computed at the first call and kept in the problem.
 * tile: queries a tile of the candidate, 0 if unknown. On success `how` says what was compared. */
bool bench_verify(bench_problem *, clattn_context *reference, int64_t tile, char *how, size_t how_size, bench_error *);
void bench_oracle_free(struct bench_oracle *);

/* Whether `found` is near `expected`, both of `count` floats: no NaN, and no error above `tolerance` times the largest
 * |expected|. */
bool bench_row_agrees(clattn_dtype dtype, const void *found, const void *expected, int64_t count, double tolerance);

#endif
