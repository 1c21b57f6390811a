/* Records as a JSON array. With cJSON; without it both functions say so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_JSON_H
#define CLATTN_BENCH_JSON_H

#include <stdio.h>

#include "error.h"
#include "record.h"

/* Whether this build has JSON. */
bool bench_json_available(void);
bool bench_json_write(FILE *, const bench_records *, bench_error *);
/* Add the records of a file; refuses what is no array of records of this schema. */
bool bench_json_read(const char *path, bench_records *, bench_error *);

#endif
