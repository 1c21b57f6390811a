/* Records for people: on a terminal, as Markdown, as CSV.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_TABLE_H
#define CLATTN_BENCH_TABLE_H

#include <stdio.h>

#include "session.h"

/* Device, tables by contrast, ratios, verdict, remarks. */
void bench_print_table(FILE *, const bench_session *);
/* The same as a block to paste into an issue: no host name, user or path. */
void bench_print_markdown(FILE *, const bench_session *);
/* Every field of every record, RFC 4180. */
void bench_print_csv(FILE *, const bench_records *);

/* "Core against core" for "core". */
const char *bench_contrast_title(const char *contrast);
/* The formulas that the figures are counted by. */
extern const char bench_formulas[];

#endif
