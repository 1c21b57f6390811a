/* Records as a JSON array. With cJSON; without it both functions say so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_JSON_H
#define CLATTN_BENCH_JSON_H

#include "cli/output.h"
#include "error.h"
#include "record.h"

/* On failure the set is discarded and its error says why. */
bool bench_json_write(output_set *, const char *path, const bench_records *);
/* Add the records of a file; refuses what is no array of records of this schema. */
bool bench_json_read(const char *path, bench_records *, bench_error *);

#endif
