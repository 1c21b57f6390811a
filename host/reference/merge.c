/* Merging partial attention in double precision.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   lse = log(sum over parts of exp(lse_part) + exp(sink))        out = sum over parts of exp(lse_part - lse) * out_part
 */
#include <math.h>

#include "reference.h"

/* A row's lse, and in *shift what keeps exponents from overflowing. */
static double merged_lse(const clattn__oracle_merge_args *a, i64 b, i64 h, i64 l) {
    const i64 batch = a->out.size[0];
    double most = a->sinks.present ? clattn__get(&a->sinks, a->sinks.size[0] == 1 ? 0 : b, h, 0, 0) : -INFINITY;
    const double sink = most;
    for (i64 part = 0; part < a->parts; part++) most = fmax(most, clattn__get(&a->lse_parts, part * batch + b, h, l, 0));
    const double shift = most == -INFINITY ? 0 : most;
    double sum = exp(sink - shift);
    for (i64 part = 0; part < a->parts; part++) sum += exp(clattn__get(&a->lse_parts, part * batch + b, h, l, 0) - shift);
    return shift + log(sum);
}

clattn_status clattn__oracle_merge(const clattn__oracle_merge_args *a) {
    const i64 batch = a->out.size[0];
    for (i64 b = 0; b < batch; b++) {
        for (i64 h = 0; h < a->out.size[1]; h++) {
            for (i64 l = 0; l < a->out.size[2]; l++) {
                const double lse = merged_lse(a, b, h, l);
                for (i64 d = 0; d < a->out.size[3]; d++) {
                    double sum = 0;
                    for (i64 part = 0; part < a->parts; part++) {
                        const double lse_part = clattn__get(&a->lse_parts, part * batch + b, h, l, 0);
                        /* A part without keys says nothing, whatever its memory holds. */
                        if (lse_part != -INFINITY) sum += exp(lse_part - lse) * clattn__get(&a->out_parts, part * batch + b, h, l, d);
                    }
                    clattn__set(&a->out, b, h, l, d, sum);
                }
                if (a->lse.present) clattn__set(&a->lse, b, h, l, 0, lse);
            }
        }
    }
    return CLATTN_OK;
}

clattn_status clattn__reference_merge(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    const clattn_merge_desc *d = &plan->desc.merge;
    const clattn__oracle_merge_args args = {
        .parts = d->out.size[0] ? d->out_parts.size[0] / d->out.size[0] : 0,
        .out_parts = clattn__view_of(plan, tensors, CLATTN_TENSOR_OUT_PARTS),
        .lse_parts = clattn__view_of(plan, tensors, CLATTN_TENSOR_LSE_PARTS),
        .sinks = clattn__view_of(plan, tensors, CLATTN_TENSOR_SINKS),
        .out = clattn__view_of(plan, tensors, CLATTN_TENSOR_OUT),
        .lse = clattn__view_of(plan, tensors, CLATTN_TENSOR_LSE),
    };
    return clattn__oracle_merge(&args);
}
