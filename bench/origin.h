/* What was built.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_ORIGIN_H
#define CLATTN_BENCH_ORIGIN_H

/* The commit, followed by "+changes" where files differed from it; "" where it was not built from a git checkout. */
const char *bench_origin_commit(void);

#endif
