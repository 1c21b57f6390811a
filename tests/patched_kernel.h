/* A kernel row with a fault that a test wrote into it, to see that the fault is noticed. OpenCL devices alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_TESTS_PATCHED_KERNEL_H
#define CLATTN_TESTS_PATCHED_KERNEL_H

#include "support.h"

/* Let plans made in this context from now on run the row with `from`, which must be somewhere in its source, replaced by `to`.
 * One row of one context at a time: a later call takes its place. */
void patch_kernel(clattn_context *context, const clattn__row *row, const char *from, const char *to);

#endif
