/* The report: one page with plots, text and data, that needs no network.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_REPORT_H
#define CLATTN_BENCH_REPORT_H

#include <stdio.h>

#include "session.h"

void bench_print_report(FILE *, const bench_session *);

#endif
