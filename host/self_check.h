/* The self-check: before a kernel row may serve, it computes one small case, which the reference judges.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A compiler or a driver that makes a wrong kernel is found on the machine where it does, before the kernel's first result, and
 * the row is dropped like one that does not build: the plan is made again without it and says so. What was found right is known
 * for the context's life, natively for the process's, and on OpenCL devices for as long as neither device, driver nor kernels
 * change: in a file of the cache (cache.h). Only what is right is kept there: what is wrong is found anew in each context, so that it tells how, and a
 * machine that was put in order is not held to the past. The native backend's kernels are part of the library and keep no file:
 * their check costs less than reading it. The reference checks nothing. $CLATTN_SELF_CHECK=0 turns it off.
 */
#ifndef CLATTN_SELF_CHECK_H
#define CLATTN_SELF_CHECK_H

#include "internal.h"

/* Let a context check its rows, unless the environment turns that off; `key` names all that a verdict depends on, but for the
 * row: device, driver, kernels, in a line. NULL: they are compiled into the library. Errors: MEMORY. */
clattn_status clattn__self_checks_open(clattn_context *, const char *key);
void clattn__self_checks_close(clattn_context *);
/* Check the row of a prepared step in the step's variant, unless it has been. Errors: BUILD (it computes wrong or not at all),
 * MEMORY, INTERNAL. */
clattn_status clattn__self_check(clattn_context *, const clattn__step *);
/* Bring what was found since the last call to disk. */
void clattn__self_checks_save(clattn_context *);

#endif
