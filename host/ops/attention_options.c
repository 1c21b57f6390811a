/* clattn_attention_options: validation, and what they mean in numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An option that would have no effect is refused, so that none is ignored silently.
 */
#include <math.h>

#include "ops.h"

/* As far as a position or a bound may lie: sums of four do not overflow. */
#define FAR ((int64_t)1 << 61)

static clattn_status check_flag(clattn_plan *plan, const char *name, int value) {
    if (value == 0 || value == 1) return CLATTN_OK;
    return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s is %d; it is 0 or 1", name, value);
}

static bool has(const clattn_tensor *tensor) { return tensor->dtype != CLATTN_ABSENT; }

static bool has_alibi(const clattn_attention_options *options) { return options->alibi || has(&options->alibi_slopes); }

/* x as the kernels have it: they take scale and softcap in the type of their arithmetic. */
static double in_arithmetic(const clattn__attention_sizes *s, double x) { return s->dtype == CLATTN_F64 ? x : (float)x; }

static clattn_status check_scale(clattn_plan *plan, const clattn__attention_sizes *s, const clattn_attention_options *options) {
    clattn_context *context = plan->context;
    const double scale = in_arithmetic(s, options->scale), softcap = in_arithmetic(s, options->softcap);
    const char *type = s->dtype == CLATTN_F64 ? "fp64" : "fp32";
    if (!options->has_scale && options->scale != 0)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "scale is %g and has_scale is 0; set has_scale to use it",
                            options->scale);
    if (options->has_scale && !isfinite(scale))
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "scale is %g; it must be finite in %s", options->scale, type);
    if (options->softcap != 0 && !(options->softcap > 0 && isnormal(softcap)))
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "softcap is %g; it is positive and normal in %s, or 0 for none",
                            options->softcap, type);
    return CLATTN_OK;
}

static clattn_status check_window(clattn_plan *plan, const clattn_attention_options *options) {
    const long long left = options->window_left, right = options->window_right;
    if (!options->has_window && (left || right))
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT,
                            "window_left is %lld and window_right %lld, and has_window is 0; set has_window to use them", left, right);
    if (left < -1 || right < -1 || left > FAR || right > FAR)
        return clattn__fail(plan->context, left < -1 || right < -1 ? CLATTN_ERROR_ARGUMENT : CLATTN_ERROR_OVERFLOW,
                            "window_left is %lld and window_right %lld; each is -1 (unbounded) to %lld", left, right, (long long)FAR);
    if (options->has_window && left == -1 && right == -1)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "the window is unbounded on both sides; leave has_window 0 then");
    return CLATTN_OK;
}

static const char *const align_names[] = {"CLATTN_ALIGN_TOP_LEFT", "CLATTN_ALIGN_BOTTOM_RIGHT", "CLATTN_ALIGN_PAST",
                                          "CLATTN_ALIGN_OFFSET"};

static clattn_status check_alignment(clattn_plan *plan, const clattn__attention_sizes *s, const clattn_attention_options *options) {
    clattn_context *context = plan->context;
    const int align = (int)options->align;
    const long long past = options->past_len, offset = options->offset;
    if ((unsigned)options->align > CLATTN_ALIGN_OFFSET)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "align is %d; it is 0 to %d", align, CLATTN_ALIGN_OFFSET);
    const bool has_use = options->causal || options->has_window || has_alibi(options) || (align == CLATTN_ALIGN_PAST && s->rotary);
    if (align != CLATTN_ALIGN_TOP_LEFT && !has_use)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT,
                            "align is %s, and nothing depends on it: an alignment needs causal, a window or ALiBi%s", align_names[align],
                            align == CLATTN_ALIGN_PAST ? ", or rotary" : "");
    if (past != 0 && align != CLATTN_ALIGN_PAST)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "past_len is %lld and align is %s; only CLATTN_ALIGN_PAST uses it", past,
                            align_names[align]);
    if (past != 0 && s->cache != CLATTN__CACHE_NONE)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "past_len is %lld and there is a cache, which says how long it is", past);
    if (offset != 0 && align != CLATTN_ALIGN_OFFSET)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "offset is %lld and align is %s; only CLATTN_ALIGN_OFFSET uses it", offset,
                            align_names[align]);
    if (past < 0 || past > FAR)
        return clattn__fail(context, CLATTN_ERROR_OVERFLOW, "past_len is %lld; it is 0 to %lld", past, (long long)FAR);
    if (offset < -FAR || offset > FAR)
        return clattn__fail(context, CLATTN_ERROR_OVERFLOW, "offset is %lld; it is within %lld", offset, (long long)FAR);
    return CLATTN_OK;
}

const char *clattn__algorithm_name(clattn_algorithm algorithm) {
    static const char *const names[] = {"auto", "staged", "fused", "split"};
    return names[algorithm];
}

/* An algorithm asked for by name means the same on every device, also on the reference, which has one way. */
static clattn_status check_algorithm(clattn_plan *plan, const clattn__attention_sizes *s) {
    const clattn_algorithm asked = plan->options.algorithm;
    const bool matrix = has(&plan->tensors[CLATTN_TENSOR_SCORES]) || has(&plan->tensors[CLATTN_TENSOR_WEIGHTS]);
    const char *name = clattn__algorithm_name(asked), *why = NULL;
    if (asked == CLATTN_ALGORITHM_STAGED && plan->options.require_fused)
        why = "it holds a matrix of scores, which require_fused rules out";
    else if (asked == CLATTN_ALGORITHM_STAGED && s->ragged)
        why = "the batch is ragged, and its members' matrices of scores have no common shape";
    else if (asked > CLATTN_ALGORITHM_STAGED && matrix)
        why = "it never holds the matrix that scores or weights ask for; use auto or staged";
    else if (matrix && plan->options.require_fused)
        why = "scores or weights are outputs, which staged alone gives, and require_fused rules that out";
    else if (asked == CLATTN_ALGORITHM_SPLIT)
        why = clattn__cannot_split(s);
    return why ? clattn__fail(plan->context, CLATTN_ERROR_UNSUPPORTED, "algorithm is %s: %s", name, why) : CLATTN_OK;
}

static clattn_status check_options(clattn_plan *plan, const clattn__attention_sizes *s, const clattn_attention_options *options) {
    clattn_status status = check_flag(plan, "causal", options->causal);
    if (status == CLATTN_OK) status = check_flag(plan, "has_scale", options->has_scale);
    if (status == CLATTN_OK) status = check_flag(plan, "has_window", options->has_window);
    if (status == CLATTN_OK) status = check_flag(plan, "alibi", options->alibi);
    if (status == CLATTN_OK) status = check_scale(plan, s, options);
    if (status == CLATTN_OK) status = check_window(plan, options);
    if (status == CLATTN_OK) status = check_alignment(plan, s, options);
    if (status != CLATTN_OK) return status;
    if (options->alibi && has(&options->alibi_slopes))
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "alibi is 1, the standard slopes, and alibi_slopes is given");
    if ((unsigned)options->scores_form > CLATTN_SCORES_BIAS)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "scores_form is %d; it is 0 to %d", (int)options->scores_form,
                            CLATTN_SCORES_BIAS);
    if (options->scores_form && plan->tensors[CLATTN_TENSOR_SCORES].dtype == CLATTN_ABSENT)
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "scores_form is %d and scores is absent", (int)options->scores_form);
    if (has(&options->kv_lengths) && (s->cache != CLATTN__CACHE_NONE || s->ragged))
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "kv_lengths is given and so is %s, which says the lengths already",
                            s->ragged ? "kv_offsets" : "a cache");
    if (s->ragged && (has(&options->mask) || has(&options->bias)))
        return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s is given and the batch is ragged; its members have no common shape",
                            has(&options->mask) ? "mask" : "bias");
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

/* ---- tensors -------------------------------------------------------------------------------------------------------- */

/* The size that a tensor may have where it broadcasts to `size`. */
static int64_t broadcast(const clattn_tensor *tensor, int dim, int64_t size) { return tensor->size[dim] == 1 ? 1 : size; }

static clattn_status declare_option_tensors(clattn_plan *plan, const clattn__attention_sizes *s,
                                            const clattn_attention_options *options) {
    const clattn_tensor *mask = &options->mask, *bias = &options->bias, *slopes = &options->alibi_slopes, *sinks = &options->sinks;
    const int64_t mask_len = mask->size[3] < s->len_kv ? mask->size[3] : s->len_kv;
    const int64_t bias_len = bias->size[3] < s->len_kv ? bias->size[3] : s->len_kv;
    const char *broadcasts = "or 1: it broadcasts to batch, q's heads, q's len, and at most len_kv";
    const clattn__shape shapes[] = {
        {CLATTN_TENSOR_MASK, mask,
         {broadcast(mask, 0, s->batch), broadcast(mask, 1, s->heads_q), broadcast(mask, 2, s->len_q), mask_len},
         CLATTN__TYPE(CLATTN_BOOL), true, CLATTN__READ, broadcasts},
        {CLATTN_TENSOR_BIAS, bias,
         {broadcast(bias, 0, s->batch), broadcast(bias, 1, s->heads_q), broadcast(bias, 2, s->len_q), bias_len},
         CLATTN__ONLY_F32 | CLATTN__TYPE(s->stored), true, CLATTN__READ, broadcasts},
        {CLATTN_TENSOR_ALIBI_SLOPES, slopes, {broadcast(slopes, 0, s->members), s->heads_q, 1, 1}, CLATTN__ONLY_F32, true,
         CLATTN__READ, "batch or 1, q's heads, 1, 1"},
        {CLATTN_TENSOR_SINKS, sinks, {broadcast(sinks, 0, s->members), s->heads_q, 1, 1}, CLATTN__ONLY_F32, true, CLATTN__READ,
         "batch or 1, q's heads, 1, 1"},
        {CLATTN_TENSOR_KV_LENGTHS, &options->kv_lengths, {s->batch, 1, 1, 1}, CLATTN__INTEGERS, true, CLATTN__READ,
         "one for each batch member"},
    };
    return clattn__declare(plan, shapes, sizeof shapes / sizeof *shapes);
}

void clattn__attention_option_operands(const clattn_plan *plan, clattn__attention_operands *o) {
    o->mask = clattn__plan_operand(plan, CLATTN_TENSOR_MASK);
    o->bias = clattn__plan_operand(plan, CLATTN_TENSOR_BIAS);
    o->slopes = clattn__plan_operand(plan, CLATTN_TENSOR_ALIBI_SLOPES);
    o->sinks = clattn__plan_operand(plan, CLATTN_TENSOR_SINKS);
    o->kv_lengths = clattn__plan_operand(plan, CLATTN_TENSOR_KV_LENGTHS);
}

/* ---- numbers -------------------------------------------------------------------------------------------------------- */

key_mask clattn__key_mask(const clattn_attention_options *options, const clattn__attention_sizes *s) {
    key_mask keys = {.left = options->has_window ? options->window_left : -1,
                     .right = options->has_window ? options->window_right : -1};
    if (options->causal) keys.right = 0;
    switch (options->align) {
    case CLATTN_ALIGN_TOP_LEFT: break;
    case CLATTN_ALIGN_BOTTOM_RIGHT: keys.from_end = 1; break;
    case CLATTN_ALIGN_PAST:
        if (s->cache == CLATTN__CACHE_PAST) keys.offset = s->past;
        if (s->cache == CLATTN__CACHE_NONE) keys.offset = options->past_len;
        /* A member's past keys are its keys but the new ones. */
        if (s->cache == CLATTN__CACHE_IN_PLACE) keys = (key_mask){s->len_q - s->fresh, keys.left, keys.right, 1};
        break;
    case CLATTN_ALIGN_OFFSET: keys.offset = options->offset; break;
    }
    return keys;
}

static i64 range_bound(const attention_params *p, const member *m, i64 i, bool end) {
    const key_range live = live_range(p, m, i);
    return end ? live.end : live.first;
}

/* The sum over all queries of one bound of their ranges. It keeps its first value for some queries, rises by 1 a query, stays. */
static double sum_of_bounds(const attention_params *p, const member *m, bool end) {
    const i64 low = range_bound(p, m, 0, end), rise = range_bound(p, m, m->len_q - 1, end) - low;
    i64 kept = 1, past = m->len_q; /* that many queries keep the first value: within */
    while (kept < past) {
        const i64 middle = kept + (past - kept) / 2;
        if (range_bound(p, m, middle, end) == low)
            kept = middle + 1;
        else
            past = middle;
    }
    const double steps = (double)rise, rest = (double)(m->len_q - kept - rise);
    return (double)m->len_q * (double)low + steps * (steps + 1) / 2 + steps * rest;
}

/* Pairs of a query and a key that it may look at, over all heads and batch members. Lengths that only a run knows are taken to be
 * the largest, and elements of a mask to be true. */
static double visible_pairs(const clattn_attention_options *options, const clattn__attention_sizes *s) {
    const attention_params p = {.batch = 1, .len_q = s->len_q, .len_kv = s->len_kv, .keys = clattn__key_mask(options, s)};
    if (p.len_q == 0) return 0;
    const member m = member_of(&p, NULL, NULL, NULL, 0);
    return (double)s->batch * (double)s->heads_q * (sum_of_bounds(&p, &m, true) - sum_of_bounds(&p, &m, false));
}

clattn_status clattn__attention_resolve(clattn_plan *plan, const clattn__attention_sizes *s, clattn_attention_options *options) {
    clattn_status status = check_options(plan, s, options);
    if (status == CLATTN_OK) status = check_algorithm(plan, s);
    if (status == CLATTN_OK) status = check_sizes(plan, s);
    if (status == CLATTN_OK) status = declare_option_tensors(plan, s, options);
    if (status != CLATTN_OK) return status;
    if (!options->has_scale) options->scale = s->head_dim ? 1 / sqrt((double)s->head_dim) : 1;
    options->has_scale = 1;
    plan->flops += 2 * ((double)s->head_dim + (double)s->value_dim) * visible_pairs(options, s);
    return CLATTN_OK;
}

clattn_status clattn__check_lengths(const clattn_plan *plan, clattn_tensor_id id, void *const tensors[CLATTN_TENSOR_COUNT],
                                    int64_t most, const char *what) {
    const clattn_tensor *lengths = &plan->tensors[id];
    if (lengths->dtype == CLATTN_ABSENT) return CLATTN_OK;
    for (int64_t b = 0; b < lengths->size[0]; b++) {
        const double length = clattn__load(lengths->dtype, tensors[id], lengths->size[0] == 1 ? 0 : b * lengths->stride[0]);
        if (!(length >= 0 && length <= (double)most))
            return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s[%lld] is %.0f; it is 0 to %lld (%s)", clattn_tensor_name(id),
                                (long long)b, length, (long long)most, what);
    }
    return CLATTN_OK;
}
