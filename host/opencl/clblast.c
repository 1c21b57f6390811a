/* CLBlast, found at run time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "clblast.h"

#include <stdio.h>
#include <string.h>

#include "../library.h"

#if defined(CLATTN_HAVE_CLBLAST)

bool clattn__clblast_open(clattn__clblast *clblast, char *why, size_t why_size) {
    static const char *const names[] = {"libclblast.so.1", "libclblast.so", "libclblast.dylib", NULL};
    memset(clblast, 0, sizeof *clblast);
    void *library = clattn__library_open(names, why, why_size);
    if (!library) return false;
    if (!clattn__library_find(library, "CLBlastSgemm", &clblast->Sgemm, why, why_size) ||
        !clattn__library_find(library, "CLBlastClearCache", &clblast->ClearCache, why, why_size)) {
        clattn__library_close(library);
        return false;
    }
    clblast->library = library;
    return true;
}

void clattn__clblast_close(clattn__clblast *clblast) {
    if (!clblast->library) return;
    clblast->ClearCache();
    clattn__library_close(clblast->library);
    clblast->library = NULL;
}

int clattn__clblast_sgemm(const clattn__clblast *clblast, cl_command_queue queue, const clattn__gemm *gemm, clattn__matrix a,
                          clattn__matrix b, clattn__matrix c, cl_event *event) {
    return clblast->Sgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                          gemm->b_transposed ? CLBlastTransposeYes : CLBlastTransposeNo, gemm->m, gemm->n, gemm->k, 1.0f, a.mem,
                          a.offset, gemm->lda, b.mem, b.offset, gemm->ldb, 0.0f, c.mem, c.offset, gemm->ldc, &queue, event);
}

#else

bool clattn__clblast_open(clattn__clblast *clblast, char *why, size_t why_size) {
    clblast->library = NULL;
    snprintf(why, why_size, "this build has no CLBlast");
    return false;
}

void clattn__clblast_close(clattn__clblast *clblast) {
    (void)clblast;
}

int clattn__clblast_sgemm(const clattn__clblast *clblast, cl_command_queue queue, const clattn__gemm *gemm, clattn__matrix a,
                          clattn__matrix b, clattn__matrix c, cl_event *event) {
    (void)clblast, (void)queue, (void)gemm, (void)a, (void)b, (void)c, (void)event;
    return CL_INVALID_OPERATION;
}

#endif
