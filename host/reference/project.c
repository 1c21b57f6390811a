/* Projections in double precision.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   y[b,h,l,d] = sum over k of x[b,l,k] * w[k,n] + bias[n] + residual[b,l,n]       n = h * dim + d
 */
#include "reference.h"

clattn_status clattn__oracle_project(const clattn__oracle_project_args *args) {
    const clattn__view *y = &args->y;
    for (i64 b = 0; b < y->size[0]; b++) {
        for (i64 h = 0; h < y->size[1]; h++) {
            for (i64 l = 0; l < y->size[2]; l++) {
                for (i64 d = 0; d < y->size[3]; d++) {
                    i64 n = h * y->size[3] + d;
                    double sum = 0;
                    for (i64 k = 0; k < args->x.size[3]; k++) {
                        sum += clattn__get(&args->x, b, 0, l, k) * clattn__get(&args->w, 0, 0, k, n);
                    }
                    if (args->bias.present) sum += clattn__get(&args->bias, 0, 0, 0, n);
                    if (args->residual.present) sum += clattn__get(&args->residual, b, 0, l, n);
                    clattn__set(y, b, h, l, d, sum);
                }
            }
        }
    }
    return CLATTN_OK;
}

clattn_status clattn__reference_project_qkv(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    static const struct {
        clattn_tensor_id w, bias, y;
        bool of_keys;
    } products[] = {
        {CLATTN_TENSOR_W_Q, CLATTN_TENSOR_B_Q, CLATTN_TENSOR_Q, false},
        {CLATTN_TENSOR_W_K, CLATTN_TENSOR_B_K, CLATTN_TENSOR_K, true},
        {CLATTN_TENSOR_W_V, CLATTN_TENSOR_B_V, CLATTN_TENSOR_V, true},
    };
    clattn__view x = clattn__view_of(plan, tensors, CLATTN_TENSOR_X);
    clattn__view x_kv = clattn__view_of(plan, tensors, CLATTN_TENSOR_X_KV);
    for (size_t n = 0; n < sizeof products / sizeof products[0]; n++) {
        clattn__oracle_project_args args = {
            .x = products[n].of_keys && x_kv.present ? x_kv : x,
            .w = clattn__view_of(plan, tensors, products[n].w),
            .bias = clattn__view_of(plan, tensors, products[n].bias),
            .y = clattn__view_of(plan, tensors, products[n].y),
        };
        if (!args.y.present) continue;
        clattn_status status = clattn__oracle_project(&args);
        if (status != CLATTN_OK) return status;
    }
    return CLATTN_OK;
}
