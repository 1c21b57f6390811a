/* SPDX-License-Identifier: Apache-2.0 */
#include "origin.h"

#include "commit.h"

const char *bench_origin_commit(void) {
    return CLATTN_BENCH_COMMIT[0] && CLATTN_BENCH_DIRTY ? CLATTN_BENCH_COMMIT "+changes" : CLATTN_BENCH_COMMIT;
}
