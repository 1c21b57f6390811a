/* The attention layer in double precision: project, split heads, attend, merge heads, project, add the residual.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing is rounded to fp32 between the input and the output.
 */
#include <stdlib.h>

#include "reference.h"

/* y = split(x W + bias): the heads of one projection in memory of its own. The caller frees y->data, also on failure. */
static clattn_status project_heads(const clattn__view *x, const clattn__view *w, const clattn__view *bias, i64 heads,
                                   clattn__view *y) {
    i64 batch = x->size[0], len = x->size[2], dim = w->size[3] / heads;
    double *data = clattn__new_doubles(batch, heads, len, dim);
    if (!data) return CLATTN_ERROR_MEMORY;
    *y = clattn__view_of_doubles(data, batch, heads, len, dim);
    clattn__oracle_project_args args = {.x = *x, .w = *w, .bias = *bias, .y = *y};
    return clattn__oracle_project(&args);
}

/* out = merged + bias + residual: what is left of the output projection without w_o. */
static void store_merged(const clattn__oracle_mha_args *args, const clattn__view *merged) {
    for (i64 b = 0; b < args->out.size[0]; b++) {
        for (i64 l = 0; l < args->out.size[2]; l++) {
            for (i64 n = 0; n < args->out.size[3]; n++) {
                double value = clattn__get(merged, b, 0, l, n);
                if (args->b_o.present) value += clattn__get(&args->b_o, 0, 0, 0, n);
                if (args->residual) value += clattn__get(&args->x, b, 0, l, n);
                clattn__set(&args->out, b, 0, l, n, value);
            }
        }
    }
}

clattn_status clattn__oracle_mha(const clattn__oracle_mha_args *args) {
    const clattn__view *x_kv = args->x_kv.present ? &args->x_kv : &args->x;
    i64 batch = args->x.size[0], len_q = args->x.size[2], columns = args->heads_q * (args->w_v.size[3] / args->heads_kv);
    clattn__view q = {0}, k = {0}, v = {0};
    double *merged_data = clattn__new_doubles(batch, 1, len_q, columns);
    clattn_status status = merged_data ? CLATTN_OK : CLATTN_ERROR_MEMORY;
    if (status == CLATTN_OK) status = project_heads(&args->x, &args->w_q, &args->b_q, args->heads_q, &q);
    if (status == CLATTN_OK) status = project_heads(x_kv, &args->w_k, &args->b_k, args->heads_kv, &k);
    if (status == CLATTN_OK) status = project_heads(x_kv, &args->w_v, &args->b_v, args->heads_kv, &v);
    if (status != CLATTN_OK) goto done;

    clattn__view merged = clattn__view_of_doubles(merged_data, batch, 1, len_q, columns);
    clattn__oracle_attention_args attention = {
        .q = q,
        .k = k,
        .v = v,
        .out = clattn__view_split_heads(merged, args->heads_q),
        .weights = args->weights,
        .mask = args->mask,
        .bias = args->bias,
        .alibi_slopes = args->alibi_slopes,
        .sinks = args->sinks,
        .kv_lengths = args->kv_lengths,
        .options = args->options,
    };
    status = clattn__oracle_attention(&attention);
    if (status != CLATTN_OK) goto done;

    if (args->w_o.present) {
        clattn__oracle_project_args output = {.x = merged, .w = args->w_o, .bias = args->b_o, .y = args->out};
        if (args->residual) output.residual = args->x;
        status = clattn__oracle_project(&output);
    } else {
        store_merged(args, &merged);
    }
done:
    free(v.data);
    free(k.data);
    free(q.data);
    free(merged_data);
    return status;
}

clattn_status clattn__reference_mha(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    const clattn_mha_desc *desc = &plan->desc.mha; /* resolved */
    clattn__oracle_mha_args args = {
        .x = clattn__view_of(plan, tensors, CLATTN_TENSOR_X),
        .x_kv = clattn__view_of(plan, tensors, CLATTN_TENSOR_X_KV),
        .w_q = clattn__view_of(plan, tensors, CLATTN_TENSOR_W_Q),
        .w_k = clattn__view_of(plan, tensors, CLATTN_TENSOR_W_K),
        .w_v = clattn__view_of(plan, tensors, CLATTN_TENSOR_W_V),
        .w_o = clattn__view_of(plan, tensors, CLATTN_TENSOR_W_O),
        .b_q = clattn__view_of(plan, tensors, CLATTN_TENSOR_B_Q),
        .b_k = clattn__view_of(plan, tensors, CLATTN_TENSOR_B_K),
        .b_v = clattn__view_of(plan, tensors, CLATTN_TENSOR_B_V),
        .b_o = clattn__view_of(plan, tensors, CLATTN_TENSOR_B_O),
        .out = clattn__view_of(plan, tensors, CLATTN_TENSOR_OUT),
        .weights = clattn__view_of(plan, tensors, CLATTN_TENSOR_WEIGHTS),
        .heads_q = desc->heads_q,
        .heads_kv = desc->heads_kv,
        .residual = desc->residual,
        .mask = clattn__view_of(plan, tensors, CLATTN_TENSOR_MASK),
        .bias = clattn__view_of(plan, tensors, CLATTN_TENSOR_BIAS),
        .alibi_slopes = clattn__view_of(plan, tensors, CLATTN_TENSOR_ALIBI_SLOPES),
        .sinks = clattn__view_of(plan, tensors, CLATTN_TENSOR_SINKS),
        .kv_lengths = clattn__view_of(plan, tensors, CLATTN_TENSOR_KV_LENGTHS),
        .options = &desc->options,
    };
    return clattn__oracle_mha(&args);
}
