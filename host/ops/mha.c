/* mha: the whole attention layer, made of project_qkv's and attention's steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../reference/reference.h"
#include "ops.h"

/* Of the attention within, whose q, k and v are of this type; heads and columns are checked. */
static clattn__attention_sizes attention_sizes(const clattn_mha_desc *d, clattn_dtype type) {
    return (clattn__attention_sizes){
        .dtype = type,
        .stored = d->x.dtype,
        .batch = d->x.size[0],
        .members = d->x.size[0],
        .heads_q = d->heads_q,
        .heads_kv = d->heads_kv,
        .len_q = d->x.size[2],
        .len_kv = d->x_kv.dtype == CLATTN_ABSENT ? d->x.size[2] : d->x_kv.size[2],
        .fresh = d->x_kv.dtype == CLATTN_ABSENT ? d->x.size[2] : d->x_kv.size[2],
        .head_dim = d->w_q.size[3] / d->heads_q,
        .value_dim = d->w_v.size[3] / d->heads_kv,
    };
}

static clattn_status check_columns(clattn_plan *plan, clattn_tensor_id id, const clattn_tensor *w, const char *heads_name,
                                   int64_t heads) {
    clattn_status status = clattn__check_sizes(plan, clattn_tensor_name(id), w);
    if (status == CLATTN_OK && w->size[3] % heads)
        status = clattn__fail(plan->context, CLATTN_ERROR_SHAPE, "%s has %lld columns, no multiple of %s = %lld",
                              clattn_tensor_name(id), (long long)w->size[3], heads_name, (long long)heads);
    return status;
}

static clattn_status mha_check_heads(clattn_plan *plan, clattn_mha_desc *d) {
    if (d->heads_kv == 0) d->heads_kv = d->heads_q;
    if (d->heads_q < 1 || d->heads_kv < 1)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "heads_q is %lld and heads_kv is %lld; both are at least 1",
                            (long long)d->heads_q, (long long)d->heads_kv);
    if (d->residual != 0 && d->residual != 1)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "residual is %d; it is 0 or 1", d->residual);
    if (d->residual && d->w_o.dtype == CLATTN_ABSENT)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "residual is 1 and w_o is absent; the residual is added by the "
                                                                  "output projection");
    if (d->b_o.dtype != CLATTN_ABSENT && d->w_o.dtype == CLATTN_ABSENT)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "b_o is given and w_o is absent");
    clattn_status status = check_columns(plan, CLATTN_TENSOR_W_Q, &d->w_q, "heads_q", d->heads_q);
    if (status == CLATTN_OK) status = check_columns(plan, CLATTN_TENSOR_W_K, &d->w_k, "heads_kv", d->heads_kv);
    if (status == CLATTN_OK) status = check_columns(plan, CLATTN_TENSOR_W_V, &d->w_v, "heads_kv", d->heads_kv);
    if (status == CLATTN_OK && d->w_o.dtype != CLATTN_ABSENT) status = clattn__check_sizes(plan, "w_o", &d->w_o);
    if (status != CLATTN_OK) return status;
    const int64_t head_dim = d->w_q.size[3] / d->heads_q, value_dim = d->w_v.size[3] / d->heads_kv;
    if ((head_dim > 0 && d->heads_kv > INT64_MAX / head_dim) || (value_dim > 0 && d->heads_q > INT64_MAX / value_dim))
        return clattn__fail(plan->context, CLATTN_ERROR_OVERFLOW,
                            "heads_q = %lld of value_dim %lld, or heads_kv = %lld of head_dim %lld, are more columns than an index "
                            "holds",
                            (long long)d->heads_q, (long long)value_dim, (long long)d->heads_kv, (long long)head_dim);
    return CLATTN_OK;
}

static clattn_status mha_declare(clattn_plan *plan, const clattn_mha_desc *d) {
    const clattn_tensor *x_kv = d->x_kv.dtype == CLATTN_ABSENT ? &d->x : &d->x_kv;
    const int64_t batch = d->x.size[0], len_q = d->x.size[2], len_kv = x_kv->size[2], d_in = d->x.size[3], d_kv = x_kv->size[3];
    const int64_t columns_q = d->w_q.size[3], columns_k = columns_q / d->heads_q * d->heads_kv, columns_v = d->w_v.size[3];
    const int64_t merged = columns_v / d->heads_kv * d->heads_q;
    const int64_t d_out = d->residual ? d_in : d->w_o.dtype == CLATTN_ABSENT ? merged : d->w_o.size[3];
    const char *out_dim = d->residual ? "x's, for the residual" : "columns of w_o, or merged heads";
    const clattn__types type = CLATTN__TYPE(d->x.dtype);
    const clattn__shape shapes[] = {
        {CLATTN_TENSOR_X, &d->x, {batch, 1, len_q, d_in}, CLATTN__ONLY_F32 | CLATTN__FLOATS_16, false, CLATTN__READ, "one head"},
        {CLATTN_TENSOR_X_KV, &d->x_kv, {batch, 1, len_kv, d_kv}, type, true, CLATTN__READ, "x's batch, one head"},
        {CLATTN_TENSOR_W_Q, &d->w_q, {1, 1, d_in, columns_q}, type, false, CLATTN__READ, "x's dim rows"},
        {CLATTN_TENSOR_W_K, &d->w_k, {1, 1, d_kv, columns_k}, type, false, CLATTN__READ,
         "x_kv's dim rows, w_q's head_dim times heads_kv"},
        {CLATTN_TENSOR_W_V, &d->w_v, {1, 1, d_kv, columns_v}, type, false, CLATTN__READ, "x_kv's dim rows"},
        {CLATTN_TENSOR_W_O, &d->w_o, {1, 1, merged, d_out}, type, true, CLATTN__READ,
         "heads_q * value_dim rows, out's dim columns"},
        {CLATTN_TENSOR_B_Q, &d->b_q, {1, 1, 1, columns_q}, type, true, CLATTN__READ, "one for each column of w_q"},
        {CLATTN_TENSOR_B_K, &d->b_k, {1, 1, 1, columns_k}, type, true, CLATTN__READ, "one for each column of w_k"},
        {CLATTN_TENSOR_B_V, &d->b_v, {1, 1, 1, columns_v}, type, true, CLATTN__READ, "one for each column of w_v"},
        {CLATTN_TENSOR_B_O, &d->b_o, {1, 1, 1, d_out}, type, true, CLATTN__READ, "one for each column of w_o"},
        {CLATTN_TENSOR_OUT, &d->out, {batch, 1, len_q, d_out}, type, false, CLATTN__WRITE, out_dim},
        {CLATTN_TENSOR_WEIGHTS, &d->weights, {batch, d->heads_q, len_q, len_kv}, CLATTN__ONLY_F32 | type, true, CLATTN__WRITE,
         "heads_q maps of len_q by len_kv"},
    };
    const double products = (double)len_q * (double)d_in * (double)columns_q +
                            (double)len_kv * (double)d_kv * (double)(columns_k + columns_v) +
                            (d->w_o.dtype == CLATTN_ABSENT ? 0 : (double)len_q * (double)merged * (double)d_out);
    plan->flops = 2 * (double)batch * products;
    return clattn__declare(plan, shapes, sizeof shapes / sizeof *shapes);
}

static clattn_status mha_validate(clattn_plan *plan) {
    clattn_mha_desc *d = &plan->desc.mha;
    clattn_status status = clattn__check_sizes(plan, "x", &d->x);
    if (status == CLATTN_OK && d->x_kv.dtype != CLATTN_ABSENT) status = clattn__check_sizes(plan, "x_kv", &d->x_kv);
    if (status == CLATTN_OK) status = mha_check_heads(plan, d);
    if (status == CLATTN_OK) status = mha_declare(plan, d);
    if (status != CLATTN_OK) return status;
    const clattn__attention_sizes sizes = attention_sizes(d, CLATTN_F32);
    return clattn__attention_resolve(plan, &sizes, &d->options);
}

/* (batch, 1, len, heads * dim) seen as (batch, heads, len, dim), and back: no element moves. */
static clattn_tensor split_heads(clattn_tensor merged, int64_t heads) {
    merged.size[1] = heads;
    merged.size[3] /= heads;
    merged.stride[1] = merged.size[3] * merged.stride[3];
    return merged;
}

static clattn_tensor merge_heads(clattn_tensor split) { /* a packed BLHD view */
    return clattn_tensor_blhd(split.dtype, split.size[0], 1, split.size[2], split.size[1] * split.size[3]);
}

static clattn_status project_in(clattn_plan *plan, const clattn__operand *x, clattn_tensor_id w, clattn_tensor_id bias,
                                clattn_tensor y_view, clattn__operand *y) {
    clattn_status status = clattn__plan_scratch(plan, y_view, y);
    if (status != CLATTN_OK) return status;
    const clattn__project_operands o = {
        .x = *x,
        .w = clattn__plan_operand(plan, w),
        .bias = clattn__plan_operand(plan, bias),
        .y = *y,
    };
    return clattn__project_emit(plan, &o);
}

static clattn_status project_out(clattn_plan *plan, const clattn_mha_desc *d, const clattn__operand *x, const clattn__operand *heads) {
    clattn__project_operands o = {
        .x = {merge_heads(heads->view), heads->place},
        .w = clattn__plan_operand(plan, CLATTN_TENSOR_W_O),
        .bias = clattn__plan_operand(plan, CLATTN_TENSOR_B_O),
        .y = clattn__plan_operand(plan, CLATTN_TENSOR_OUT),
    };
    if (d->residual) o.residual = *x;
    return clattn__project_emit(plan, &o);
}

static clattn_status mha_check(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    const int64_t len_kv = attention_sizes(&plan->desc.mha, CLATTN_F32).len_kv;
    return clattn__check_lengths(plan, CLATTN_TENSOR_KV_LENGTHS, tensors, len_kv, "the rows of x_kv, or x");
}

static clattn_status mha_build(clattn_plan *plan) {
    const clattn_mha_desc *d = &plan->desc.mha;
    const clattn_dtype stored = d->x.dtype, type = clattn__project_type(plan, stored);
    const clattn__attention_sizes s = attention_sizes(d, type);
    /* Heads apart: rows of one head at distances of heads * head_dim would share a few sets of the cache. */
    const clattn_tensor q = clattn_tensor_bhld(type, s.batch, s.heads_q, s.len_q, s.head_dim);
    const clattn_tensor k = clattn_tensor_bhld(type, s.batch, s.heads_kv, s.len_kv, s.head_dim);
    const clattn_tensor v = clattn_tensor_bhld(type, s.batch, s.heads_kv, s.len_kv, s.value_dim);
    const clattn_tensor out = clattn_tensor_blhd(type, s.batch, s.heads_q, s.len_q, s.value_dim);
    const clattn__operand output = clattn__plan_operand(plan, CLATTN_TENSOR_OUT);
    clattn__operand x = clattn__plan_operand(plan, CLATTN_TENSOR_X), x_kv = clattn__plan_operand(plan, CLATTN_TENSOR_X_KV);
    clattn__operand merged = output;
    clattn__attention_operands o = {.weights = clattn__plan_operand(plan, CLATTN_TENSOR_WEIGHTS)};
    clattn_status status = clattn__convert_emit(plan, type, &x);
    if (status == CLATTN_OK) status = clattn__convert_emit(plan, type, &x_kv);
    const clattn__operand *kv = x_kv.place.where == CLATTN__NOWHERE ? &x : &x_kv;
    if (status == CLATTN_OK) status = project_in(plan, &x, CLATTN_TENSOR_W_Q, CLATTN_TENSOR_B_Q, q, &o.q);
    if (status == CLATTN_OK) status = project_in(plan, kv, CLATTN_TENSOR_W_K, CLATTN_TENSOR_B_K, k, &o.k);
    if (status == CLATTN_OK) status = project_in(plan, kv, CLATTN_TENSOR_W_V, CLATTN_TENSOR_B_V, v, &o.v);
    /* Three products that do not wait for one another count as one step of the chain; what converts their operands is before them. */
    plan->dependent_steps = plan->launches == 0 ? 0 : stored == type ? 1 : 2;
    if (status == CLATTN_OK && d->w_o.dtype == CLATTN_ABSENT) {
        status = clattn__plan_working(plan, type, &output, &o.out);
        merged = o.out;
        o.out.view = split_heads(o.out.view, d->heads_q);
    } else if (status == CLATTN_OK) {
        status = clattn__plan_scratch(plan, out, &o.out);
    }
    clattn__attention_option_operands(plan, &o);
    if (status == CLATTN_OK && o.bias.view.dtype != CLATTN_F32) status = clattn__convert_emit(plan, type, &o.bias);
    if (status == CLATTN_OK) status = clattn__attention_emit(plan, &d->options, &s, &o);
    if (status != CLATTN_OK) return status;
    return d->w_o.dtype == CLATTN_ABSENT ? clattn__hand_over_emit(plan, &merged, &output) : project_out(plan, d, &x, &o.out);
}

static clattn__grid mha_grid(const clattn_plan *plan) { return (clattn__grid){plan->desc.mha.x.size[0], 1}; }

const clattn__operator clattn__operator_mha = {
    .name = "mha",
    .desc_size = sizeof(clattn_mha_desc),
    .has_algorithm = true,
    .validate = mha_validate,
    .check = mha_check,
    .reference = clattn__reference_mha,
    .build = mha_build,
    .grid = mha_grid,
};
