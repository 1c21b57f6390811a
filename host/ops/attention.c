/* attention: its descriptor. (attention_options.c: the options; cache.c: the keys and values; attention_steps.c: the rest.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../reference/reference.h"
#include "attention.h"

static bool has(const clattn_tensor *tensor) { return tensor->dtype != CLATTN_ABSENT; }

/* ---- which kind of attention this is -------------------------------------------------------------------------------- */

/* Both or neither. */
static clattn_status check_pair(clattn_plan *plan, clattn_tensor_id a, const clattn_tensor *a_tensor, clattn_tensor_id b,
                                const clattn_tensor *b_tensor) {
    if (has(a_tensor) == has(b_tensor)) return CLATTN_OK;
    return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s is given and %s is not; they go together",
                        clattn_tensor_name(has(a_tensor) ? a : b), clattn_tensor_name(has(a_tensor) ? b : a));
}

static clattn_status check_pairs(clattn_plan *plan, const clattn_attention_desc *d) {
    clattn_status status = check_pair(plan, CLATTN_TENSOR_PAST_K, &d->past_k, CLATTN_TENSOR_PAST_V, &d->past_v);
    if (status == CLATTN_OK)
        status = check_pair(plan, CLATTN_TENSOR_PRESENT_K, &d->present_k, CLATTN_TENSOR_PRESENT_V, &d->present_v);
    if (status == CLATTN_OK)
        status = check_pair(plan, CLATTN_TENSOR_ROTARY_COS, &d->rotary_cos, CLATTN_TENSOR_ROTARY_SIN, &d->rotary_sin);
    if (status == CLATTN_OK)
        status = check_pair(plan, CLATTN_TENSOR_Q_OFFSETS, &d->q_offsets, CLATTN_TENSOR_KV_OFFSETS, &d->kv_offsets);
    return status;
}

/* What cannot go together. */
static clattn_status check_kind(clattn_plan *plan, const clattn_attention_desc *d) {
    clattn_context *context = plan->context;
    if (d->reserved)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "reserved is %#x; it must be 0", (unsigned)d->reserved);
    if ((unsigned)d->rotary > CLATTN_ROTARY_INTERLEAVED)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "rotary is %d; it is 0 to %d", (int)d->rotary, CLATTN_ROTARY_INTERLEAVED);
    if ((d->rotary != CLATTN_ROTARY_NONE) != has(&d->rotary_cos))
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "rotary is %s and rotary_cos is %s",
                            d->rotary == CLATTN_ROTARY_NONE ? "none" : "given", has(&d->rotary_cos) ? "given" : "absent");
    if (has(&d->past_lengths) && has(&d->past_k))
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT,
                            "past_lengths and past_k are given; keys are appended in place or after a past, not both");
    if (has(&d->past_lengths) && !has(&d->present_k))
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "past_lengths is given and present_k, the cache, is not");
    if (has(&d->present_k) && !has(&d->past_lengths) && !has(&d->past_k))
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "present_k is given, and neither past_k nor past_lengths");
    if (!has(&d->q_offsets)) return CLATTN_OK;
    const struct {
        const char *name;
        bool given;
    } refused[] = {{"a cache", has(&d->present_k) || has(&d->past_k)},
                   {"rotary", d->rotary != CLATTN_ROTARY_NONE},
                   {"scores", has(&d->scores)},
                   {"weights", has(&d->weights)}};
    for (size_t n = 0; n < sizeof refused / sizeof *refused; n++)
        if (refused[n].given)
            return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "q_offsets is given and so is %s; a ragged batch has none",
                                refused[n].name);
    return CLATTN_OK;
}

static clattn__cache cache_of(const clattn_attention_desc *d) {
    if (has(&d->past_lengths)) return CLATTN__CACHE_IN_PLACE;
    return has(&d->past_k) ? CLATTN__CACHE_PAST : CLATTN__CACHE_NONE;
}

clattn__attention_sizes clattn__attention_sizes_of(const clattn_attention_desc *d) {
    clattn__attention_sizes s = {
        .dtype = d->q.dtype,
        .stored = d->q.dtype,
        .batch = d->q.size[0],
        .heads_q = d->q.size[1],
        .heads_kv = d->k.size[1],
        .len_q = d->q.size[2],
        .len_kv = d->k.size[2],
        .head_dim = d->q.size[3],
        .value_dim = d->v.size[3],
        .members = d->q.size[0],
        .ragged = has(&d->q_offsets),
        .rotary = d->rotary != CLATTN_ROTARY_NONE,
        .cache = cache_of(d),
        .fresh = d->k.size[2],
    };
    if (s.cache == CLATTN__CACHE_PAST) s.past = d->past_k.size[2];
    if (s.cache == CLATTN__CACHE_IN_PLACE) s.len_kv = d->present_k.size[2];
    s.len_kv += s.past;
    if (s.ragged) s.members = d->q_offsets.size[3] - 1;
    return s;
}

/* ---- validation ------------------------------------------------------------------------------------------------------- */

#define FLOATS (CLATTN__ONLY_F32 | CLATTN__TYPE(CLATTN_F16) | CLATTN__TYPE(CLATTN_BF16) | CLATTN__TYPE(CLATTN_F64))

static clattn_status declare_main(clattn_plan *plan, const clattn_attention_desc *d, const clattn__attention_sizes *s) {
    const clattn__types type = CLATTN__TYPE(s->dtype), matrix = type | CLATTN__ONLY_F32;
    const clattn__shape shapes[] = {
        {CLATTN_TENSOR_Q, &d->q, {s->batch, s->heads_q, s->len_q, s->head_dim}, FLOATS, false, CLATTN__READ, "q"},
        {CLATTN_TENSOR_K, &d->k, {s->batch, s->heads_kv, s->fresh, s->head_dim}, type, false, CLATTN__READ, "q's batch and dim"},
        {CLATTN_TENSOR_V, &d->v, {s->batch, s->heads_kv, s->fresh, s->value_dim}, type, false, CLATTN__READ,
         "q's batch, k's heads and len"},
        {CLATTN_TENSOR_OUT, &d->out, {s->batch, s->heads_q, s->len_q, s->value_dim}, type, false, CLATTN__WRITE,
         "q's batch, heads and len, v's dim"},
        {CLATTN_TENSOR_LSE, &d->lse, {s->batch, s->heads_q, s->len_q, 1}, CLATTN__ONLY_F32, true, CLATTN__WRITE,
         "q's batch, heads and len, 1"},
        {CLATTN_TENSOR_SCORES, &d->scores, {s->batch, s->heads_q, s->len_q, s->len_kv}, matrix, true, CLATTN__WRITE,
         "q's batch, heads and len, all keys"},
        {CLATTN_TENSOR_WEIGHTS, &d->weights, {s->batch, s->heads_q, s->len_q, s->len_kv}, matrix, true, CLATTN__WRITE,
         "q's batch, heads and len, all keys"},
    };
    return clattn__declare(plan, shapes, sizeof shapes / sizeof *shapes);
}

static clattn_status declare_cache(clattn_plan *plan, const clattn_attention_desc *d, const clattn__attention_sizes *s) {
    const clattn__types type = CLATTN__TYPE(s->dtype);
    const clattn__access present = s->cache == CLATTN__CACHE_IN_PLACE ? CLATTN__UPDATE : CLATTN__WRITE;
    const int64_t pairs = d->rotary_cos.size[3], positions = d->rotary_cos.size[2];
    const int64_t tables = d->rotary_cos.size[0] == 1 ? 1 : s->batch;
    const clattn__shape shapes[] = {
        {CLATTN_TENSOR_PAST_K, &d->past_k, {s->batch, s->heads_kv, s->past, s->head_dim}, type, true, CLATTN__READ, "as k"},
        {CLATTN_TENSOR_PAST_V, &d->past_v, {s->batch, s->heads_kv, s->past, s->value_dim}, type, true, CLATTN__READ,
         "as v, past_k's len"},
        {CLATTN_TENSOR_PAST_LENGTHS, &d->past_lengths, {s->batch, 1, 1, 1}, CLATTN__INTEGERS, true, CLATTN__READ,
         "one for each batch member"},
        {CLATTN_TENSOR_PRESENT_K, &d->present_k, {s->batch, s->heads_kv, s->len_kv, s->head_dim}, type, true, present,
         "as k, the past and the new keys"},
        {CLATTN_TENSOR_PRESENT_V, &d->present_v, {s->batch, s->heads_kv, s->len_kv, s->value_dim}, type, true, present,
         "as v, present_k's len"},
        {CLATTN_TENSOR_ROTARY_COS, &d->rotary_cos, {tables, 1, positions, pairs}, CLATTN__ONLY_F32, true, CLATTN__READ,
         "q's batch or 1, 1, positions, half of rotary_dim"},
        {CLATTN_TENSOR_ROTARY_SIN, &d->rotary_sin, {tables, 1, positions, pairs}, CLATTN__ONLY_F32, true, CLATTN__READ,
         "rotary_cos's"},
        {CLATTN_TENSOR_Q_OFFSETS, &d->q_offsets, {1, 1, 1, s->members + 1}, CLATTN__INTEGERS, true, CLATTN__READ,
         "members + 1"},
        {CLATTN_TENSOR_KV_OFFSETS, &d->kv_offsets, {1, 1, 1, s->members + 1}, CLATTN__INTEGERS, true, CLATTN__READ,
         "q_offsets' members + 1"},
    };
    return clattn__declare(plan, shapes, sizeof shapes / sizeof *shapes);
}

/* The largest number of past keys that is known now. */
static int64_t known_past(const clattn_attention_desc *d, const clattn__attention_sizes *s) {
    if (s->cache == CLATTN__CACHE_PAST) return s->past;
    return d->options.align == CLATTN_ALIGN_PAST ? d->options.past_len : 0;
}

static clattn_status check_rotary(clattn_plan *plan, const clattn_attention_desc *d, const clattn__attention_sizes *s) {
    if (d->rotary == CLATTN_ROTARY_NONE) return CLATTN_OK;
    const long long positions = d->rotary_cos.size[2], pairs = d->rotary_cos.size[3];
    if (pairs == 0 || pairs > s->head_dim / 2)
        return clattn__fail(plan->context, CLATTN_ERROR_SHAPE, "rotary_cos: dim is %lld; it is 1 to half of head_dim, %lld", pairs,
                            (long long)s->head_dim / 2);
    const int64_t rows = s->len_q > s->fresh ? s->len_q : s->fresh, past = known_past(d, s);
    if (positions < rows || positions - rows < past)
        return clattn__fail(plan->context, CLATTN_ERROR_SHAPE, "rotary_cos: len is %lld; there are %lld positions, %lld of them past",
                            positions, (long long)(past + rows), (long long)past);
    return CLATTN_OK;
}

static clattn_status check_capacity(clattn_plan *plan, const clattn__attention_sizes *s) {
    if (s->cache != CLATTN__CACHE_IN_PLACE || s->fresh <= s->len_kv) return CLATTN_OK;
    return clattn__fail(plan->context, CLATTN_ERROR_SHAPE, "k: len is %lld, and present_k, the cache, has room for %lld keys",
                        (long long)s->fresh, (long long)s->len_kv);
}

static clattn_status check_ragged(clattn_plan *plan, const clattn__attention_sizes *s) {
    if (!s->ragged) return CLATTN_OK;
    if (s->members < 0)
        return clattn__fail(plan->context, CLATTN_ERROR_SHAPE, "q_offsets: dim is 0; it is the members + 1");
    if (s->batch != 1)
        return clattn__fail(plan->context, CLATTN_ERROR_SHAPE, "q: batch is %lld and must be 1: q_offsets say where members begin",
                            (long long)s->batch);
    return CLATTN_OK;
}

static clattn_status attention_validate(clattn_plan *plan) {
    clattn_attention_desc *d = &plan->desc.attention;
    const clattn_tensor *sized[] = {&d->q, &d->k, &d->v, &d->past_k, &d->present_k, &d->rotary_cos, &d->q_offsets};
    const clattn_tensor_id ids[] = {CLATTN_TENSOR_Q,         CLATTN_TENSOR_K,          CLATTN_TENSOR_V,        CLATTN_TENSOR_PAST_K,
                                    CLATTN_TENSOR_PRESENT_K, CLATTN_TENSOR_ROTARY_COS, CLATTN_TENSOR_Q_OFFSETS};
    clattn_status status = CLATTN_OK;
    for (size_t n = 0; n < sizeof sized / sizeof *sized && status == CLATTN_OK; n++)
        if (n < 3 || has(sized[n])) status = clattn__check_sizes(plan, clattn_tensor_name(ids[n]), sized[n]);
    if (status == CLATTN_OK) status = check_pairs(plan, d);
    if (status == CLATTN_OK) status = check_kind(plan, d);
    if (status != CLATTN_OK) return status;
    const clattn__attention_sizes sizes = clattn__attention_sizes_of(d);
    status = check_ragged(plan, &sizes);
    if (status == CLATTN_OK) status = declare_main(plan, d, &sizes);
    if (status == CLATTN_OK) status = declare_cache(plan, d, &sizes);
    if (status == CLATTN_OK) status = check_capacity(plan, &sizes);
    if (status == CLATTN_OK) status = check_rotary(plan, d, &sizes);
    return status == CLATTN_OK ? clattn__attention_resolve(plan, &sizes, &d->options) : status;
}

/* ---- what a run in host memory can check ------------------------------------------------------------------------------ */

static clattn_status check_offsets(const clattn_plan *plan, clattn_tensor_id id, void *const tensors[CLATTN_TENSOR_COUNT],
                                   int64_t total) {
    const clattn_tensor *offsets = &plan->tensors[id];
    double before = 0;
    for (int64_t n = 0; n < offsets->size[3]; n++) {
        const double offset = clattn__load(offsets->dtype, tensors[id], offsets->size[3] == 1 ? 0 : n * offsets->stride[3]);
        if (!(offset >= before) || (n == 0 && offset != 0) || offset > (double)total)
            return clattn__fail(plan->context, CLATTN_ERROR_ARGUMENT, "%s[%lld] is %.0f; they ascend from 0 to at most %lld",
                                clattn_tensor_name(id), (long long)n, offset, (long long)total);
        before = offset;
    }
    return CLATTN_OK;
}

static clattn_status attention_check(const clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    const clattn_attention_desc *d = &plan->desc.attention;
    const clattn__attention_sizes s = clattn__attention_sizes_of(d);
    clattn_status status = clattn__check_lengths(plan, CLATTN_TENSOR_KV_LENGTHS, tensors, s.len_kv, "the keys that k has");
    if (status == CLATTN_OK && s.cache == CLATTN__CACHE_IN_PLACE) {
        int64_t room = s.len_kv - s.fresh;
        const char *what = "the cache's capacity less the new keys";
        const int64_t rows = s.len_q > s.fresh ? s.len_q : s.fresh;
        if (d->rotary != CLATTN_ROTARY_NONE && d->rotary_cos.size[2] - rows < room) {
            room = d->rotary_cos.size[2] - rows;
            what = "the positions that rotary_cos has before the new ones";
        }
        status = clattn__check_lengths(plan, CLATTN_TENSOR_PAST_LENGTHS, tensors, room, what);
    }
    if (status == CLATTN_OK && s.ragged) status = check_offsets(plan, CLATTN_TENSOR_Q_OFFSETS, tensors, s.len_q);
    if (status == CLATTN_OK && s.ragged) status = check_offsets(plan, CLATTN_TENSOR_KV_OFFSETS, tensors, s.len_kv);
    return status;
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

static clattn_status attention_build(clattn_plan *plan) {
    const clattn_attention_desc *d = &plan->desc.attention;
    const clattn__attention_sizes s = clattn__attention_sizes_of(d);
    clattn__attention_operands o = {
        .out = clattn__plan_operand(plan, CLATTN_TENSOR_OUT),
        .lse = clattn__plan_operand(plan, CLATTN_TENSOR_LSE),
        .scores = clattn__plan_operand(plan, CLATTN_TENSOR_SCORES),
        .weights = clattn__plan_operand(plan, CLATTN_TENSOR_WEIGHTS),
        .q_offsets = clattn__plan_operand(plan, CLATTN_TENSOR_Q_OFFSETS),
        .kv_offsets = clattn__plan_operand(plan, CLATTN_TENSOR_KV_OFFSETS),
    };
    clattn__attention_option_operands(plan, &o);
    clattn_status status = clattn__cache_emit(plan, d, &s, &o);
    return status == CLATTN_OK ? clattn__attention_emit(plan, &d->options, &s, &o) : status;
}

/* Slopes that depend on a head's number do not let heads be told apart. */
static clattn__grid attention_grid(const clattn_plan *plan) {
    const clattn_attention_desc *d = &plan->desc.attention;
    return (clattn__grid){d->q.size[0], d->options.alibi ? 1 : d->k.size[1]};
}

const clattn__operator clattn__operator_attention = {
    .name = "attention",
    .desc_size = sizeof(clattn_attention_desc),
    .has_algorithm = true,
    .validate = attention_validate,
    .check = attention_check,
    .reference = clattn__reference_attention,
    .build = attention_build,
    .grid = attention_grid,
};
