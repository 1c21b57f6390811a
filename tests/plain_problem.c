/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_problem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- problems ------------------------------------------------------------------------------------------------------ */

static clattn_tensor f32(int64_t batch, int64_t heads, int64_t len, int64_t dim) {
    return clattn_tensor_bhld(CLATTN_F32, batch, heads, len, dim);
}

plain_problem plain_merge(const plain_sizes *s) {
    plain_problem p = {.op = &clattn__operator_merge, .merge = CLATTN_MERGE_DESC_INIT};
    p.merge.out_parts = f32(s->parts * s->batch, s->heads, s->len, s->dim);
    p.merge.lse_parts = f32(s->parts * s->batch, s->heads, s->len, 1);
    p.merge.sinks = f32(s->batch, s->heads, 1, 1);
    p.merge.out = f32(s->batch, s->heads, s->len, s->dim);
    p.merge.lse = f32(s->batch, s->heads, s->len, 1);
    return p;
}

plain_problem plain_project_qkv(const plain_sizes *s) {
    plain_problem p = {.op = &clattn__operator_project_qkv, .project_qkv = CLATTN_PROJECT_QKV_DESC_INIT};
    const int64_t columns_q = s->heads * s->dim, columns_kv = s->heads_kv * s->dim;
    p.project_qkv.x = f32(s->batch, 1, s->len, s->d_in);
    p.project_qkv.x_kv = f32(s->batch, 1, s->len_kv, s->d_in);
    p.project_qkv.w_q = f32(1, 1, s->d_in, columns_q);
    p.project_qkv.w_k = p.project_qkv.w_v = f32(1, 1, s->d_in, columns_kv);
    p.project_qkv.b_q = f32(1, 1, 1, columns_q);
    p.project_qkv.b_k = p.project_qkv.b_v = f32(1, 1, 1, columns_kv);
    p.project_qkv.q = f32(s->batch, s->heads, s->len, s->dim);
    p.project_qkv.k = p.project_qkv.v = f32(s->batch, s->heads_kv, s->len_kv, s->dim);
    return p;
}

plain_problem plain_mha(const plain_sizes *s) {
    plain_problem p = {.op = &clattn__operator_mha, .mha = CLATTN_MHA_DESC_INIT};
    const int64_t columns_q = s->heads * s->dim, columns_kv = s->heads_kv * s->dim;
    p.mha.x = f32(s->batch, 1, s->len, s->d_in);
    p.mha.x_kv = f32(s->batch, 1, s->len_kv, s->d_in);
    p.mha.w_q = f32(1, 1, s->d_in, columns_q);
    p.mha.w_k = p.mha.w_v = f32(1, 1, s->d_in, columns_kv);
    p.mha.w_o = f32(1, 1, columns_q, s->d_in);
    p.mha.b_q = f32(1, 1, 1, columns_q);
    p.mha.b_k = p.mha.b_v = f32(1, 1, 1, columns_kv);
    p.mha.b_o = f32(1, 1, 1, s->d_in);
    p.mha.out = f32(s->batch, 1, s->len, s->d_in);
    p.mha.heads_q = s->heads;
    p.mha.heads_kv = s->heads_kv;
    p.mha.residual = 1;
    return p;
}

plain_problem plain_recurrence(const plain_sizes *s) {
    plain_problem p = {.op = &clattn__operator_recurrence, .recurrence = CLATTN_RECURRENCE_DESC_INIT};
    const int64_t rows = (s->cell == CLATTN_CELL_LSTM ? 4 : 1) * s->dim;
    clattn_recurrence_desc *d = &p.recurrence;
    d->cell = s->cell;
    d->x = f32(s->batch, 1, s->len, s->d_in);
    d->w_in = f32(1, 1, rows, s->d_in);
    d->w_h = f32(1, 1, rows, s->dim);
    d->bias = f32(1, 1, 1, rows);
    d->h_0 = d->h_n = f32(s->batch, 1, 1, s->dim);
    if (s->cell == CLATTN_CELL_LSTM) d->c_0 = d->c_n = d->h_0;
    d->out = f32(s->batch, 1, s->len, s->dim);
    return p;
}

/* ---- runs ---------------------------------------------------------------------------------------------------------- */

clattn_status plain_plan(clattn_context *context, const plain_problem *p, const clattn_plan_options *options,
                         clattn_plan **plan) {
#define X(name)                                                                                                                \
    if (p->op == &clattn__operator_##name) return clattn_plan_create_##name(context, &p->name, options, plan);
    CLATTN__OPERATORS(X)
#undef X
    return CLATTN_ERROR_INTERNAL;
}

static verdict fail_plain(const clattn_plan_info *info, const char *what, clattn_context *context, clattn_status status) {
    verdict v = {.ok = false};
    snprintf(v.text, sizeof v.text, "%.60s (%.80s): %s: %.120s", what, info->row ? info->row : "no plan",
             clattn_status_name(status), error_text(context));
    return v;
}

/* What a device computes of `inputs`, which are drawn where there are none yet. */
static verdict run_one(clattn_context *context, const plain_problem *p, const clattn_plan_options *options, rng *r,
                       float *memory[CLATTN_TENSOR_COUNT], float *const inputs[CLATTN_TENSOR_COUNT]) {
    clattn_plan *plan = NULL;
    clattn_plan_info info = CLATTN_PLAN_INFO_INIT;
    clattn_arg args[CLATTN_TENSOR_COUNT];
    size_t count = 0;
    clattn_status status = plain_plan(context, p, options, &plan);
    if (status != CLATTN_OK) return fail_plain(&info, "plan", context, status);
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        const clattn_tensor *t = &plan->tensors[id];
        if (t->dtype == CLATTN_ABSENT || id == CLATTN_TENSOR_WORKSPACE) continue;
        const int64_t elements = clattn__tensor_elements(t);
        const bool is_input = plan->access[id] == CLATTN__READ;
        if (is_input && inputs)
            memory[id] = inputs[id];
        else
            memory[id] = is_input ? rng_floats(r, elements, 0.5f) : test_alloc((size_t)elements, sizeof(float));
        args[count++] = (clattn_arg){(clattn_tensor_id)id, memory[id], (size_t)elements * sizeof(float)};
    }
    verdict v = {.ok = true};
    status = clattn_plan_get_info(plan, &info);
    if (status == CLATTN_OK) status = clattn_plan_run(plan, args, count);
    if (status != CLATTN_OK) v = fail_plain(&info, "run", context, status);
    clattn_plan_destroy(plan);
    return v;
}

static verdict compare(const float *result, const float *reference, int64_t count, clattn_tensor_id id, double tolerance) {
    verdict v = {.ok = true, .tolerance = tolerance};
    for (int64_t n = 0; n < count && v.ok; n++) {
        const double error = fabs((double)result[n] - reference[n]) / (1 + fabs((double)reference[n]));
        if (error <= v.tolerance) continue;
        v.ok = false;
        snprintf(v.text, sizeof v.text, "%s: element %lld is %.9g instead of %.9g (seed %llu)", clattn_tensor_name(id),
                 (long long)n, result[n], reference[n], (unsigned long long)test_seed());
    }
    return v;
}

static verdict run_both(clattn_context *context, clattn_context *reference, const plain_problem *p,
                        const clattn_plan_options *options, rng *r, double tolerance) {
    float *right[CLATTN_TENSOR_COUNT] = {NULL}, *result[CLATTN_TENSOR_COUNT] = {NULL};
    clattn_plan *plan = NULL;
    verdict v = run_one(reference, p, options, r, right, NULL);
    if (v.ok) v = run_one(context, p, options, r, result, right);
    if (v.ok) assert_ok(reference, plain_plan(reference, p, options, &plan));
    for (int id = 0; id < CLATTN_TENSOR_COUNT && v.ok; id++) {
        if (right[id] && result[id] != right[id])
            v = compare(result[id], right[id], clattn__tensor_elements(&plan->tensors[id]), (clattn_tensor_id)id, tolerance);
    }
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        if (result[id] != right[id]) free(result[id]);
        free(right[id]);
    }
    clattn_plan_destroy(plan);
    return v;
}

/* Sums of some hundred products, none of them large. */
verdict plain_try(clattn_context *context, clattn_context *reference, const plain_problem *p,
                  const clattn_plan_options *options, rng *r) {
    return run_both(context, reference, p, options, r, 1024 * FLT_EPSILON);
}

verdict plain_same(clattn_context *context, clattn_context *other, const plain_problem *p, const clattn_plan_options *options,
                   rng *r) {
    return run_both(context, other, p, options, r, 0);
}
