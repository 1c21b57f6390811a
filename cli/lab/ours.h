/* The library's own kernel of a step, to be timed beside a student's; and what the device can do at most.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_LAB_OURS_H
#define CLATTN_CLI_LAB_OURS_H

#include "protocol.h"

typedef struct lab_ours lab_ours;

/* NULL, with words in the reply, on failure. */
lab_ours *lab_ours_open(const lab_request *, lab_reply *);
void lab_ours_close(lab_ours *);
/* values: GFLOP/s of multiply-adds, GB/s read from memory and from cache. */
bool lab_ours_limits(lab_ours *, lab_reply *);
bool lab_ours_prepare(lab_ours *, const lab_request *, lab_reply *);
bool lab_ours_launch(lab_ours *, lab_reply *);

#endif
