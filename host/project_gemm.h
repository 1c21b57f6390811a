/* When a projection is one plain matrix product, as BLAS libraries compute it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_PROJECT_GEMM_H
#define CLATTN_PROJECT_GEMM_H

#include "../kernels/params.h"

#include <stdbool.h>
#include <stddef.h>

/* C (m x n) = A (m x k) * B (k x n), row-major, leading dimensions in elements; B may be stored as its transpose. */
typedef struct clattn__gemm {
    size_t m, n, k;
    size_t lda, ldb, ldc;
    bool b_transposed;
} clattn__gemm;

/* The distance between rows of a (batch, ., len, .) view when all batch * len of them are equally far apart, else -1. */
static inline i64 clattn__row_stride(i64 batch, i64 len, i64 stride_b, i64 stride_l) {
    if (batch == 1) return stride_l;
    if (len == 1) return stride_b;
    return stride_b == len * stride_l ? stride_l : -1;
}

/* False when the projection adds something or its views are no matrices. */
static inline bool clattn__project_gemm(const project_params *p, clattn__gemm *gemm) {
    const bool heads_packed = p->columns == p->dim || p->y.h == p->dim;
    const bool x_unit = p->depth == 1 || p->x.d == 1, y_unit = p->dim == 1 || p->y.d == 1;
    const bool w_rows = p->columns == 1 || p->w.d == 1, w_columns = p->depth == 1 || p->w.l == 1;
    const i64 rows = p->batch * p->len;
    if (p->has_bias || p->has_residual || rows == 0 || p->depth == 0 || p->columns == 0) return false;
    if (!x_unit || !y_unit || !heads_packed || !(w_rows || w_columns)) return false;
    i64 lda = clattn__row_stride(p->batch, p->len, p->x.b, p->x.l);
    i64 ldb = w_rows ? p->w.l : p->w.d;
    i64 ldc = clattn__row_stride(p->batch, p->len, p->y.b, p->y.l);
    const i64 b_rows = w_rows ? p->depth : p->columns, b_columns = w_rows ? p->columns : p->depth;
    /* The stride of a single row says nothing. */
    if (rows == 1) lda = p->depth, ldc = p->columns;
    if (b_rows == 1) ldb = b_columns;
    if (lda < p->depth || ldb < b_columns || ldc < p->columns) return false;
    *gemm = (clattn__gemm){
        .m = (size_t)rows,
        .n = (size_t)p->columns,
        .k = (size_t)p->depth,
        .lda = (size_t)lda,
        .ldb = (size_t)ldb,
        .ldc = (size_t)ldc,
        .b_transposed = !w_rows,
    };
    return true;
}

#endif
