/* Libraries found at run time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LIBRARY_H
#define CLATTN_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Load the first of `names` (ended by NULL) that loads. On failure NULL, and a sentence in `why`. */
void *clattn__library_open(const char *const *names, char *why, size_t why_size);
/* NULL is accepted. */
void clattn__library_close(void *library);
/* Find `symbol` and store it in the function pointer at `function`. On failure false, and a sentence in `why`. */
bool clattn__library_find(void *library, const char *symbol, void *function, char *why, size_t why_size);

#endif
