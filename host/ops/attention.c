/* attention: softmax(scale * Q K^T) V, fused or in four stages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "../reference/reference.h"
#include "ops.h"

/* ---- validation --------------------------------------------------------------------------------------------------- */

static clattn_status check_flag(clattn_plan *plan, const char *name, int value) {
    if (value == 0 || value == 1) return CLATTN_OK;
    return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s is %d; it is 0 or 1", name, value);
}

/* An option that would have no effect is refused, so that none is ignored silently. */
static clattn_status check_alignment(clattn_plan *plan, const clattn_attention_options *options) {
    clattn_context *context = plan->context;
    if ((unsigned)options->align > CLATTN_ALIGN_OFFSET)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "align is %d; it is 0 to %d", (int)options->align,
                            CLATTN_ALIGN_OFFSET);
    if (options->align != CLATTN_ALIGN_TOP_LEFT && !options->causal)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "align is %d and causal is 0; an alignment needs a causal mask",
                            (int)options->align);
    if (options->past_len != 0 && options->align != CLATTN_ALIGN_PAST)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "past_len is %lld and align is %d; only CLATTN_ALIGN_PAST (%d) uses it",
                            (long long)options->past_len, (int)options->align, CLATTN_ALIGN_PAST);
    if (options->offset != 0 && options->align != CLATTN_ALIGN_OFFSET)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "offset is %lld and align is %d; only CLATTN_ALIGN_OFFSET (%d) uses it",
                            (long long)options->offset, (int)options->align, CLATTN_ALIGN_OFFSET);
    const int64_t limit = (int64_t)1 << 61;
    if (options->past_len < 0 || options->past_len > limit)
        return clattn__fail(context, CLATTN_ERROR_OVERFLOW, "past_len is %lld; it is 0 to %lld", (long long)options->past_len,
                            (long long)limit);
    if (options->offset < -limit || options->offset > limit)
        return clattn__fail(context, CLATTN_ERROR_OVERFLOW, "offset is %lld; it is within %lld", (long long)options->offset,
                            (long long)limit);
    return CLATTN_OK;
}

static clattn_status check_options(clattn_plan *plan, const clattn_attention_options *options) {
    clattn_status status = check_flag(plan, "causal", options->causal);
    if (status == CLATTN_OK) status = check_flag(plan, "has_scale", options->has_scale);
    if (status == CLATTN_OK) status = check_alignment(plan, options);
    if (status != CLATTN_OK) return status;
    if (!options->has_scale && options->scale != 0)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "scale is %g and has_scale is 0; set has_scale to use it",
                            options->scale);
    if (options->has_scale && !isfinite((float)options->scale))
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "scale is %g; it must be finite in fp32", options->scale);
    return CLATTN_OK;
}

static clattn_status check_sizes(clattn_plan *plan, const clattn__attention_sizes *s) {
    if (s->heads_kv == 0 ? s->heads_q != 0 : s->heads_q % s->heads_kv != 0)
        return clattn__fail(plan->context, CLATTN_ERROR_HEADS, "q has %lld heads and k has %lld; the first must be a multiple",
                            (long long)s->heads_q, (long long)s->heads_kv);
    if (s->head_dim > INT32_MAX || s->value_dim > INT32_MAX)
        return clattn__fail(plan->context, CLATTN_ERROR_OVERFLOW, "head_dim is %lld and value_dim is %lld; both are at most %d",
                            (long long)s->head_dim, (long long)s->value_dim, INT32_MAX);
    return CLATTN_OK;
}

static int64_t resolve_offset(const clattn_attention_options *options, const clattn__attention_sizes *s) {
    switch (options->align) {
    case CLATTN_ALIGN_BOTTOM_RIGHT: return s->len_kv - s->len_q;
    case CLATTN_ALIGN_PAST: return options->past_len;
    case CLATTN_ALIGN_OFFSET: return options->offset;
    case CLATTN_ALIGN_TOP_LEFT: break;
    }
    return 0;
}

static i64 range_bound(const attention_params *p, i64 i, bool end) {
    const member m = {p->len_q, p->len_kv, 0, 0, p->keys.offset};
    const key_range live = live_range(p, &m, i);
    return end ? live.end : live.first;
}

/* The sum over all queries of one bound of their ranges. It keeps its first value for some queries, rises by 1 a query, stays. */
static double sum_of_bounds(const attention_params *p, bool end) {
    const i64 low = range_bound(p, 0, end), rise = range_bound(p, p->len_q - 1, end) - low;
    i64 kept = 1, past = p->len_q; /* that many queries keep the first value: within */
    while (kept < past) {
        const i64 middle = kept + (past - kept) / 2;
        if (range_bound(p, middle, end) == low)
            kept = middle + 1;
        else
            past = middle;
    }
    const double steps = (double)rise, rest = (double)(p->len_q - kept - rise);
    return (double)p->len_q * (double)low + steps * (steps + 1) / 2 + steps * rest;
}

/* Pairs of a query and a key that it may look at, over all heads and batch members; of resolved options. */
static double visible_pairs(const clattn_attention_options *options, const clattn__attention_sizes *s) {
    const attention_params p = {
        .len_q = s->len_q,
        .len_kv = s->len_kv,
        .keys = {.offset = options->offset, .left = -1, .right = options->causal ? 0 : -1},
    };
    if (p.len_q == 0) return 0;
    return (double)s->batch * (double)s->heads_q * (sum_of_bounds(&p, true) - sum_of_bounds(&p, false));
}

clattn_status clattn__attention_resolve(clattn_plan *plan, const clattn__attention_sizes *s, clattn_attention_options *options) {
    clattn_status status = check_options(plan, options);
    if (status == CLATTN_OK) status = check_sizes(plan, s);
    if (status != CLATTN_OK) return status;
    if (!options->has_scale) options->scale = s->head_dim ? 1 / sqrt((double)s->head_dim) : 1;
    options->has_scale = 1;
    options->offset = resolve_offset(options, s);
    options->align = CLATTN_ALIGN_OFFSET;
    options->past_len = 0;
    plan->flops += 2 * ((double)s->head_dim + (double)s->value_dim) * visible_pairs(options, s);
    return CLATTN_OK;
}

static clattn_status attention_validate(clattn_plan *plan) {
    clattn_attention_desc *d = &plan->desc.attention;
    clattn_status status = clattn__check_sizes(plan, "q", &d->q);
    if (status == CLATTN_OK) status = clattn__check_sizes(plan, "k", &d->k);
    if (status == CLATTN_OK) status = clattn__check_sizes(plan, "v", &d->v);
    if (status != CLATTN_OK) return status;
    const int64_t batch = d->q.size[0], heads = d->q.size[1], len_q = d->q.size[2], len_kv = d->k.size[2];
    const clattn__shape shapes[] = {
        {CLATTN_TENSOR_Q, &d->q, {batch, heads, len_q, d->q.size[3]}, CLATTN_F32, false, CLATTN__READ, "q"},
        {CLATTN_TENSOR_K, &d->k, {batch, d->k.size[1], len_kv, d->q.size[3]}, CLATTN_F32, false, CLATTN__READ,
         "q's batch and dim"},
        {CLATTN_TENSOR_V, &d->v, {batch, d->k.size[1], len_kv, d->v.size[3]}, CLATTN_F32, false, CLATTN__READ,
         "q's batch, k's heads and len"},
        {CLATTN_TENSOR_OUT, &d->out, {batch, heads, len_q, d->v.size[3]}, CLATTN_F32, false, CLATTN__WRITE,
         "q's batch, heads and len, v's dim"},
        {CLATTN_TENSOR_LSE, &d->lse, {batch, heads, len_q, 1}, CLATTN_F32, true, CLATTN__WRITE, "q's batch, heads and len, 1"},
        {CLATTN_TENSOR_SCORES, &d->scores, {batch, heads, len_q, len_kv}, CLATTN_F32, true, CLATTN__WRITE,
         "q's batch, heads and len, k's len"},
        {CLATTN_TENSOR_WEIGHTS, &d->weights, {batch, heads, len_q, len_kv}, CLATTN_F32, true, CLATTN__WRITE,
         "q's batch, heads and len, k's len"},
    };
    const clattn__attention_sizes sizes = {batch, heads, d->k.size[1], len_q, len_kv, d->q.size[3], d->v.size[3]};
    status = clattn__declare(plan, shapes, sizeof shapes / sizeof *shapes);
    return status == CLATTN_OK ? clattn__attention_resolve(plan, &sizes, &d->options) : status;
}

/* ---- steps -------------------------------------------------------------------------------------------------------- */

static attention_params make_params(const clattn_attention_options *options, const clattn__attention_operands *o) {
    return (attention_params){
        .q = clattn__strides(&o->q.view),
        .k = clattn__strides(&o->k.view),
        .v = clattn__strides(&o->v.view),
        .out = clattn__strides(&o->out.view),
        .lse = clattn__strides(&o->lse.view),
        .batch = o->q.view.size[0],
        .heads_q = o->q.view.size[1],
        .heads_kv = o->k.view.size[1],
        .len_q = o->q.view.size[2],
        .len_kv = o->k.view.size[2],
        .keys = {.offset = options->offset, .left = -1, .right = options->causal ? 0 : -1},
        .dtype = DTYPE_F32,
        .head_dim = (i32)o->q.view.size[3],
        .value_dim = (i32)o->v.view.size[3],
        .scale = (float)options->scale,
        .has_lse = o->lse.view.dtype != CLATTN_ABSENT,
    };
}

static clattn_status emit_fused(clattn_plan *plan, const clattn__row *row, const clattn__params *params,
                                const clattn__attention_operands *o) {
    const clattn__place buffers[] = {o->q.place, o->k.place, o->v.place, o->out.place, o->lse.place};
    return clattn__plan_step_of(plan, row, buffers, params, 1);
}

static clattn_status stage(clattn_plan *plan, clattn__role role, clattn__params params, const clattn__operand *scores,
                           const clattn__operand *weights, const clattn__place *buffers) {
    params.attention.scores = clattn__strides(&scores->view);
    params.attention.weights = clattn__strides(&weights->view);
    return clattn__plan_step(plan, role, buffers, &params, 1);
}

/* scores -> [mask ->] softmax -> weighted values. The matrix lives in the outputs asked for, else in workspace. The mask and
 * the softmax may work in place; raw scores that the caller wants are left alone. */
static clattn_status emit_staged(clattn_plan *plan, const clattn__params *params, const clattn__attention_operands *o) {
    const attention_params *a = &params->attention;
    clattn__operand weights = o->weights, scores = o->scores;
    clattn_status status = CLATTN_OK;
    if (weights.place.where == CLATTN__NOWHERE)
        status = clattn__plan_scratch(plan, clattn_tensor_bhld(CLATTN_F32, a->batch, a->heads_q, a->len_q, a->len_kv), &weights);
    if (scores.place.where == CLATTN__NOWHERE) scores = weights;
    if (status == CLATTN_OK)
        status = stage(plan, CLATTN__ROLE_SCORES, *params, &scores, &scores,
                       (clattn__place[]){o->q.place, o->k.place, scores.place});
    if (status == CLATTN_OK && (a->keys.left >= 0 || a->keys.right >= 0)) {
        status = stage(plan, CLATTN__ROLE_MASK, *params, &scores, &weights, (clattn__place[]){scores.place, weights.place});
        scores = weights;
    }
    if (status == CLATTN_OK)
        status = stage(plan, CLATTN__ROLE_SOFTMAX, *params, &scores, &weights,
                       (clattn__place[]){scores.place, weights.place, o->lse.place});
    if (status == CLATTN_OK)
        status = stage(plan, CLATTN__ROLE_WEIGHTED_VALUES, *params, &scores, &weights,
                       (clattn__place[]){weights.place, o->v.place, o->out.place});
    return status;
}

static bool wants_matrix(const clattn__attention_operands *o) {
    return o->scores.place.where != CLATTN__NOWHERE || o->weights.place.where != CLATTN__NOWHERE;
}

/* The row that serves as fused, or NULL for staged; and the reason in the plan's words. */
static clattn_status choose_fused(clattn_plan *plan, const clattn__params *params, bool matrix, const clattn__row **row) {
    const clattn_algorithm asked = plan->options.algorithm;
    *row = NULL;
    if (asked == CLATTN_ALGORITHM_FUSED && matrix)
        return clattn__fail(plan->context, CLATTN_ERROR_UNSUPPORTED,
                            "algorithm fused never holds the matrix that scores or weights ask for; use auto or staged");
    if (asked != CLATTN_ALGORITHM_AUTO) {
        clattn__text_add(&plan->why, "%s: asked for\n", asked == CLATTN_ALGORITHM_FUSED ? "fused" : "staged");
        return asked == CLATTN_ALGORITHM_FUSED ? clattn__plan_choose(plan, CLATTN__ROLE_ATTENTION, params, row) : CLATTN_OK;
    }
    if (matrix) {
        clattn__text_add(&plan->why, "staged: scores or weights are outputs, and fused never holds them\n");
        return CLATTN_OK;
    }
    clattn__text obstacles = {0};
    *row = clattn__choose_row(plan->context, CLATTN__ROLE_ATTENTION, params, &obstacles);
    if (*row)
        clattn__text_add(&plan->why, "fused: no %lld x %lld matrix is kept\n", (long long)params->attention.len_q,
                         (long long)params->attention.len_kv);
    else
        clattn__text_add(&plan->why, "staged: no fused kernel serves this device and shape:\n");
    clattn__text_add(&plan->why, "%s", obstacles.data ? obstacles.data : "");
    clattn__text_free(&obstacles);
    return CLATTN_OK;
}

clattn_status clattn__attention_emit(clattn_plan *plan, const clattn_attention_options *options,
                                     const clattn__attention_operands *o) {
    const clattn__params params = {.attention = make_params(options, o)};
    const clattn__row *fused;
    clattn_status status = choose_fused(plan, &params, wants_matrix(o), &fused);
    if (status != CLATTN_OK) return status;
    plan->algorithm = fused ? "fused" : "staged";
    return fused ? emit_fused(plan, fused, &params, o) : emit_staged(plan, &params, o);
}

static clattn_status attention_build(clattn_plan *plan) {
    const clattn__attention_operands operands = {
        .q = clattn__plan_operand(plan, CLATTN_TENSOR_Q),
        .k = clattn__plan_operand(plan, CLATTN_TENSOR_K),
        .v = clattn__plan_operand(plan, CLATTN_TENSOR_V),
        .out = clattn__plan_operand(plan, CLATTN_TENSOR_OUT),
        .lse = clattn__plan_operand(plan, CLATTN_TENSOR_LSE),
        .scores = clattn__plan_operand(plan, CLATTN_TENSOR_SCORES),
        .weights = clattn__plan_operand(plan, CLATTN_TENSOR_WEIGHTS),
    };
    return clattn__attention_emit(plan, &plan->desc.attention.options, &operands);
}

const clattn__operator clattn__operator_attention = {
    .name = "attention",
    .desc_size = sizeof(clattn_attention_desc),
    .has_algorithm = true,
    .validate = attention_validate,
    .reference = clattn__reference_attention,
    .build = attention_build,
};
