/* What is said beside figures: remarks, kept; progress, shown and gone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_REMARKS_H
#define BENCH_REMARKS_H

#include "host/internal.h"

/* A remark: one line, kept once. */
void bench_remark(clattn__text *remarks, const char *format, va_list) __attribute__((format(printf, 2, 0)));
/* Where it is shown, the terminal's last line; "" clears it. */
void bench_progress(bool shown, const char *format, va_list) __attribute__((format(printf, 2, 0)));

#endif
