/* Ratios between candidates that were sampled in turns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_RATIOS_H
#define CLATTN_BENCH_RATIOS_H

#include "../host/internal.h"
#include "record.h"

/* A line a ratio: clattn against each peer; causal against full; all units against one. Nothing where there are no pairs. */
void bench_ratios(clattn__text *, const bench_records *);

#endif
