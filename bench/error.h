/* Failure as a sentence that travels upwards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_ERROR_H
#define CLATTN_BENCH_ERROR_H

#include <stdbool.h>

typedef struct bench_error {
    char text[1024];
} bench_error;

/* Keep the sentence and return false: `return bench_fail(error, "...", ...)`. */
bool bench_fail(bench_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
