/* Strided views for the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "reference.h"

clattn__view clattn__view_of(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT], clattn_tensor_id id) {
    const clattn_tensor *tensor = &plan->tensors[id];
    clattn__view view = {.data = tensors[id], .present = tensor->dtype != CLATTN_ABSENT, .dtype = tensor->dtype};
    memcpy(view.size, tensor->size, sizeof view.size);
    memcpy(view.stride, tensor->stride, sizeof view.stride);
    return view;
}

clattn__view clattn__view_of_doubles(double *data, i64 batch, i64 heads, i64 len, i64 dim) {
    return (clattn__view){
        .data = data,
        .present = true,
        .dtype = CLATTN_F64,
        .size = {batch, heads, len, dim},
        .stride = {heads * len * dim, len * dim, dim, 1},
    };
}

double *clattn__new_doubles(i64 a, i64 b, i64 c, i64 d) {
    size_t count;
    if (__builtin_mul_overflow((size_t)a, (size_t)b, &count) || __builtin_mul_overflow(count, (size_t)c, &count) ||
        __builtin_mul_overflow(count, (size_t)d, &count)) {
        return NULL;
    }
    return calloc(count ? count : 1, sizeof(double));
}

clattn__view clattn__view_split_heads(clattn__view view, i64 heads) {
    i64 dim = view.size[3] / heads;
    view.size[1] = heads;
    view.size[3] = dim;
    view.stride[1] = dim * view.stride[3];
    return view;
}
