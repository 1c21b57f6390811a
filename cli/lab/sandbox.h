/* What a worker may do to the machine: nothing but compute, read system folders, and write in a folder of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_LAB_SANDBOX_H
#define CLATTN_CLI_LAB_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* Lock the calling process in for good: no new privileges, limits on CPU time, files and cores, and Landlock where the kernel
 * has it. `scratch` is the one folder that stays writable. True: all of it holds ("full"); false: `text` says what is missing.
 */
bool lab_sandbox_enter(const char *scratch, char *text, size_t size);

#endif
