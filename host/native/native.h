/* The kernels of kernels/cpu as C functions: what the generated files define and the native backend calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_NATIVE_H
#define CLATTN_NATIVE_H

#include "../internal.h"

/* Run groups first, first + stride, ... of a kernel, as a work-group of that id among `stride` would. */
typedef void clattn__native_kernel(void *const *buffers, const void *params, i64 first, i64 stride);

enum { CLATTN__MAX_EXACT = 4 };

/* A kernel row compiled for an instruction-set level, in one combination of its exact variants (variants.def). */
typedef struct clattn__native_entry {
    const char *row, *isa;
    clattn__macro exact[CLATTN__MAX_EXACT]; /* ends at a NULL name */
    clattn__native_kernel *kernel;
} clattn__native_entry;

/* Every row of the CPU family, in every combination, at every level that this compiler serves; ends at a NULL row. */
extern const clattn__native_entry clattn__native_entries[];

/* What of features.def the processor and its system have: a bit for each number. */
unsigned clattn__features_here(void);
bool clattn__has_avx512_bf16(void);
bool clattn__has_amx_bf16(void);
/* Ask the system for what a feature needs before its first use in a process: AMX tiles enlarge what a signal handler's stack must
 * hold. NULL, or why it says no. */
const char *clattn__feature_permit(int number);

/* The processor in words, from the processor itself where it tells. */
void clattn__native_processor(char *name, size_t size);

#endif
