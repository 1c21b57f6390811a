/* CLBlast, found at run time: the projections of CLBLAST rows, and a peer for the benchmark.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * CLBlast keeps built programs, and with them the cl_context, in a cache of its own, for the whole process: closing clears it.
 */
#ifndef CLATTN_OPENCL_CLBLAST_H
#define CLATTN_OPENCL_CLBLAST_H

#include "../project_gemm.h"
#include "loader.h"

#if defined(CLATTN_HAVE_CLBLAST)
#include <clblast_c.h>
#endif

typedef struct clattn__clblast {
    void *library; /* NULL: not there */
#if defined(CLATTN_HAVE_CLBLAST)
    __typeof__(CLBlastSgemm) *Sgemm;
    __typeof__(CLBlastClearCache) *ClearCache;
#endif
} clattn__clblast;

/* An element of a buffer, as BLAS counts them. */
typedef struct clattn__matrix {
    cl_mem mem;
    size_t offset; /* elements */
} clattn__matrix;

/* On failure false, and a sentence in `why`. */
bool clattn__clblast_open(clattn__clblast *, char *why, size_t why_size);
/* Accepts one that is not open. */
void clattn__clblast_close(clattn__clblast *);
/* Enqueue C = A * B in fp32. The first call on a device builds CLBlast's kernels, which takes seconds. Returns CLBlast's code:
 * an OpenCL one, or one of its own below -1000; 0 is success. */
int clattn__clblast_sgemm(const clattn__clblast *, cl_command_queue, const clattn__gemm *, clattn__matrix a, clattn__matrix b,
                          clattn__matrix c, cl_event *event);

#endif
