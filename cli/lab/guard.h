/* Shared buffers mapped far from one another, with nothing but protected pages between them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_LAB_GUARD_H
#define CLATTN_CLI_LAB_GUARD_H

#include "protocol.h"

/* Reserve the address space and say how a fault in it is told: one lab_reply of LAB_OP_CRASH on `fd`, then the signal kills. */
bool lab_guard_open(int memory, int replies);

/* Map a buffer of a slot at an address that nobody can foresee; returns the first datum, NULL on failure. */
void *lab_guard_map(uint32_t slot, uint32_t argument, const lab_buffer *buffer);
/* Its pages are protected again. */
void lab_guard_unmap(uint32_t slot, uint32_t argument);

/* Take over the signals of faults, which drivers set for themselves when they start. */
void lab_guard_watch(void);

#endif
