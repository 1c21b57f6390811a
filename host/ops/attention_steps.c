/* attention: the steps, fused, split or in four stages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "ops.h"

static bool is_here(const clattn__operand *operand) { return operand->place.where != CLATTN__NOWHERE; }

/* ---- parameters --------------------------------------------------------------------------------------------------------- */

static i64 double_bits(double x) {
    i64 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static i32 alibi_of(const clattn_attention_options *options, const clattn__attention_operands *o) {
    return options->alibi ? ALIBI_STANDARD : is_here(&o->slopes) ? ALIBI_GIVEN : ALIBI_NONE;
}

static attention_params make_params(const clattn_attention_options *options, const clattn__attention_sizes *s,
                                    const clattn__attention_operands *o) {
    attention_params p = {
        .q = clattn__strides(&o->q.view),
        .k = clattn__strides(&o->k.view),
        .v = clattn__strides(&o->v.view),
        .out = clattn__strides(&o->out.view),
        .lse = clattn__strides(&o->lse.view),
        .mask = clattn__strides(&o->mask.view),
        .bias = clattn__strides(&o->bias.view),
        .mask_len = o->mask.view.size[3],
        .bias_len = o->bias.view.size[3],
        .batch = s->members,
        .heads_q = s->heads_q,
        .heads_kv = s->heads_kv,
        .len_q = s->len_q,
        .len_kv = s->len_kv,
        .keys = clattn__key_mask(options, s),
        .kv_lengths = clattn__int_list(&o->kv_lengths, 0),
        .q_offsets = clattn__int_list(&o->q_offsets, 3),
        .kv_offsets = clattn__int_list(&o->kv_offsets, 3),
        .appended = o->appended,
        .slopes_b = clattn__strides(&o->slopes.view).b,
        .slopes_h = clattn__strides(&o->slopes.view).h,
        .sinks_b = clattn__strides(&o->sinks.view).b,
        .sinks_h = clattn__strides(&o->sinks.view).h,
        .scale_f64 = double_bits(options->scale),
        .softcap_f64 = double_bits(options->softcap),
        .head_dim = (i32)s->head_dim,
        .value_dim = (i32)s->value_dim,
        .scale = (float)options->scale,
        .softcap = (float)options->softcap,
        .has_lse = is_here(&o->lse),
        .has_mask = is_here(&o->mask),
        .has_bias = is_here(&o->bias),
        .has_sinks = is_here(&o->sinks),
        .alibi = alibi_of(options, o),
        .dtype = (i32)o->q.view.dtype,
        .bias_dtype = (i32)o->bias.view.dtype,
    };
    p.modified = p.softcap_f64 != 0 || p.has_mask || p.has_bias || p.alibi;
    return p;
}

/* ---- fused -------------------------------------------------------------------------------------------------------------- */

static clattn_status emit_fused(clattn_plan *plan, const clattn__row *row, const clattn__params *params,
                                const clattn__attention_operands *o) {
    const clattn__place buffers[] = {o->q.place,          o->k.place,         o->v.place,          o->out.place,
                                     o->lse.place,        o->kv_lengths.place, o->q_offsets.place, o->kv_offsets.place,
                                     o->mask.place,       o->bias.place,      o->slopes.place,     o->sinks.place};
    return clattn__plan_step_of(plan, row, buffers, params, 1);
}

/* ---- split over keys, and merged -------------------------------------------------------------------------------------------
 * How the keys are split depends on their number alone, so that the order of every sum does. */

enum { SPLIT_KEYS = 512, SPLIT_PARTS = 64 };

static i64 split_of(i64 len_kv) {
    const i64 each = (len_kv + SPLIT_PARTS - 1) / SPLIT_PARTS;
    return each <= SPLIT_KEYS ? SPLIT_KEYS : (each + SPLIT_KEYS - 1) / SPLIT_KEYS * SPLIT_KEYS;
}

enum { SPLIT_QUERIES = 16, SPLIT_LEAST_KEYS = 128 };

const char *clattn__cannot_split(const clattn__attention_sizes *s) {
    if (s->ragged) return "it serves no ragged batch";
    return s->dtype == CLATTN_F64 ? "it serves no f64" : NULL;
}

/* Why the keys are not split, or NULL where they are: one query, or a few, would leave most lanes of a fused kernel idle.
 * A bias may leave a row nothing but scores near the least float, whose log-sum-exp has no digits left for the number of its keys:
 * parts of different sizes would then count alike. */
static const char *should_not_split(const clattn__attention_sizes *s, const clattn__params *params) {
    if (params->attention.has_bias) return "a bias may be too low for the log-sum-exp of a part";
    if (s->len_q > SPLIT_QUERIES) return "it is for at most 16 queries";
    return s->len_kv < SPLIT_LEAST_KEYS ? "it is for at least 128 keys" : clattn__cannot_split(s);
}

static clattn_status emit_split(clattn_plan *plan, const clattn__row *row, clattn__params params, const clattn__attention_sizes *s,
                                const clattn__attention_operands *o) {
    const i64 parts = (s->len_kv + params.attention.split - 1) / params.attention.split;
    clattn__merge_operands merge = {.parts = parts, .sinks = o->sinks, .out = o->out, .lse = o->lse};
    clattn_status status = clattn__plan_scratch(
        plan, clattn_tensor_bhld(CLATTN_F32, parts * s->batch, s->heads_q, s->len_q, s->value_dim), &merge.out_parts);
    if (status == CLATTN_OK)
        status = clattn__plan_scratch(plan, clattn_tensor_bhld(CLATTN_F32, parts * s->batch, s->heads_q, s->len_q, 1),
                                      &merge.lse_parts);
    if (status != CLATTN_OK) return status;
    params.attention.out = clattn__strides(&merge.out_parts.view);
    params.attention.lse = clattn__strides(&merge.lse_parts.view);
    params.attention.has_lse = 1;
    params.attention.has_sinks = 0;
    const clattn__place buffers[] = {o->q.place,          o->k.place,    o->v.place,    merge.out_parts.place, merge.lse_parts.place,
                                     o->kv_lengths.place, o->mask.place, o->bias.place, o->slopes.place};
    status = clattn__plan_step_of(plan, row, buffers, &params, 1);
    return status == CLATTN_OK ? clattn__merge_emit(plan, &merge) : status;
}

/* ---- staged ----------------------------------------------------------------------------------------------------------------
 * scores -> [mask ->] softmax -> weighted values. The matrix is f32 or, for f64, f64; it lies in the outputs asked for where they
 * are of that type, else in workspace. What it is made of, and multiplied with, is taken as it is stored where kernels do, else
 * converted to that type. */

typedef struct stages {
    clattn_plan *plan;
    clattn__params params;
    clattn_dtype dtype; /* of the matrix */
    clattn__attention_operands o;
    clattn__operand matrix; /* the scores as far as they are made, */
    bool kept;              /* and whether they are what the caller wants: no longer to be overwritten */
    clattn__operand weights;
} stages;

static clattn_status stage(stages *g, clattn__role role, const clattn__operand *scores, const clattn__operand *weights,
                           const clattn__place *buffers, const attention_params *attention) {
    clattn__params params = {.attention = *attention};
    params.attention.scores = clattn__strides(&scores->view);
    params.attention.weights = clattn__strides(&weights->view);
    return clattn__plan_step(g->plan, role, buffers, &params, 1);
}

/* The matrix, masked and modified as these parameters say. */
static clattn_status stage_mask(stages *g, const attention_params *attention) {
    const clattn__operand from = g->matrix;
    if (g->kept) g->matrix = g->weights;
    return stage(g, CLATTN__ROLE_MASK, &from, &g->matrix,
                 (clattn__place[]){from.place, g->matrix.place, g->o.kv_lengths.place, g->o.mask.place, g->o.bias.place,
                                   g->o.slopes.place},
                 attention);
}

/* The caller wants the scores as they are now. */
static clattn_status keep(stages *g) {
    g->kept = clattn__same_place(&g->matrix, &g->o.scores);
    return clattn__hand_over_emit(g->plan, &g->matrix, &g->o.scores);
}

static bool hides_by_position(const attention_params *p) {
    return p->keys.left >= 0 || p->keys.right >= 0 || p->kv_lengths.present;
}

/* The scores in their last form, kept in the form that the caller wants on the way. */
static clattn_status stage_scores(stages *g, clattn_scores_form form) {
    attention_params p = g->params.attention, products = p;
    const bool wanted = is_here(&g->o.scores);
    products.dtype = (i32)g->o.q.view.dtype;
    clattn_status status = stage(g, CLATTN__ROLE_SCORES, &g->matrix, &g->matrix,
                                 (clattn__place[]){g->o.q.place, g->o.k.place, g->matrix.place}, &products);
    if (status == CLATTN_OK && wanted && form == CLATTN_SCORES_SOFTCAP && p.softcap_f64 != 0) {
        attention_params softcap = p;
        softcap.has_mask = softcap.has_bias = softcap.alibi = 0;
        softcap.keys = (key_mask){0, -1, -1, 0};
        softcap.kv_lengths.present = 0;
        status = stage_mask(g, &softcap);
        p.softcap = 0;
        p.softcap_f64 = 0;
    }
    if (status == CLATTN_OK && wanted && form != CLATTN_SCORES_BIAS) status = keep(g);
    if (status == CLATTN_OK && (p.softcap_f64 != 0 || p.has_mask || p.has_bias || p.alibi || hides_by_position(&p)))
        status = stage_mask(g, &p);
    if (status == CLATTN_OK && wanted && form == CLATTN_SCORES_BIAS) status = keep(g);
    return status;
}

static clattn_status stage_softmax(stages *g) {
    return stage(g, CLATTN__ROLE_SOFTMAX, &g->matrix, &g->weights,
                 (clattn__place[]){g->matrix.place, g->weights.place, g->o.lse.place, g->o.kv_lengths.place, g->o.sinks.place},
                 &g->params.attention);
}

static clattn_status stage_values(stages *g) {
    attention_params p = g->params.attention;
    p.dtype = (i32)g->o.v.view.dtype;
    return stage(g, CLATTN__ROLE_WEIGHTED_VALUES, &g->matrix, &g->weights,
                 (clattn__place[]){g->weights.place, g->o.v.place, g->o.out.place, g->o.kv_lengths.place, g->o.mask.place,
                                   g->o.bias.place},
                 &p);
}

/* The type in which a stage takes what is `stored`. */
static clattn_dtype type_of_stage(const stages *g, clattn__role role, clattn_dtype stored, const char *operands) {
    const clattn__params as_stored = {.attention.dtype = (i32)stored}, converted = {.attention.dtype = (i32)g->dtype};
    if (stored == g->dtype) return stored;
    const bool takes = clattn__takes(g->plan, role, &as_stored, &converted);
    clattn__text_add(&g->plan->why, takes ? "%s taken as stored, %s\n" : "%s converted from %s: no kernel of this device takes that\n",
                     operands, clattn_dtype_name(stored));
    return takes ? stored : g->dtype;
}

/* The operands as the stages take them. */
static clattn_status stage_operands(stages *g, const clattn__attention_operands *given) {
    const clattn_dtype scores = type_of_stage(g, CLATTN__ROLE_SCORES, given->q.view.dtype, "scores: q and k");
    const clattn_dtype values = type_of_stage(g, CLATTN__ROLE_WEIGHTED_VALUES, given->v.view.dtype, "weighted values: v");
    clattn_status status = clattn__convert_emit(g->plan, scores, &g->o.q);
    if (status == CLATTN_OK) status = clattn__convert_emit(g->plan, scores, &g->o.k);
    if (status == CLATTN_OK) status = clattn__convert_emit(g->plan, values, &g->o.v);
    if (status == CLATTN_OK && g->o.bias.view.dtype != CLATTN_F32) status = clattn__convert_emit(g->plan, g->dtype, &g->o.bias);
    return status == CLATTN_OK ? clattn__plan_working(g->plan, values, &given->out, &g->o.out) : status;
}

static clattn_status emit_staged(clattn_plan *plan, const clattn_attention_options *options, const clattn__attention_sizes *s,
                                 const clattn__attention_operands *given) {
    stages g = {.plan = plan, .o = *given, .weights = given->weights, .dtype = s->dtype == CLATTN_F64 ? CLATTN_F64 : CLATTN_F32};
    const clattn_tensor matrix = clattn_tensor_bhld(g.dtype, s->batch, s->heads_q, s->len_q, s->len_kv);
    clattn_status status = stage_operands(&g, given);
    if (status == CLATTN_OK && g.weights.view.dtype != g.dtype) status = clattn__plan_scratch(plan, matrix, &g.weights);
    if (status != CLATTN_OK) return status;
    g.matrix = is_here(&g.o.scores) && g.o.scores.view.dtype == g.dtype ? g.o.scores : g.weights;
    g.params.attention = make_params(options, s, &g.o);
    g.params.attention.dtype = (i32)g.dtype;

    status = stage_scores(&g, options->scores_form);
    if (status == CLATTN_OK) status = stage_softmax(&g);
    if (status == CLATTN_OK) status = stage_values(&g);
    if (status == CLATTN_OK) status = clattn__hand_over_emit(plan, &g.weights, &given->weights);
    return status == CLATTN_OK ? clattn__hand_over_emit(plan, &g.o.out, &given->out) : status;
}

/* ---- choice ------------------------------------------------------------------------------------------------------------- */

static bool wants_matrix(const clattn__attention_operands *o) { return is_here(&o->scores) || is_here(&o->weights); }

/* The row of a role, or NULL; then the plan says why there is none. */
static const clattn__row *try_row(clattn_plan *plan, clattn__role role, const clattn__params *params) {
    clattn__text obstacles = {0};
    const clattn__row *row = clattn__plan_find(plan, role, params, &obstacles);
    clattn__text_add(&plan->why, "%s", obstacles.data ? obstacles.data : "");
    clattn__text_free(&obstacles);
    return row;
}

/* What was asked for by name. */
static clattn_status choose_asked(clattn_plan *plan, const clattn__params *params, clattn__role *role, const clattn__row **row) {
    const clattn_algorithm asked = plan->options.algorithm;
    clattn__text_add(&plan->why, "%s: asked for\n", clattn__algorithm_name(asked));
    if (asked == CLATTN_ALGORITHM_STAGED) return CLATTN_OK;
    *role = asked == CLATTN_ALGORITHM_SPLIT ? CLATTN__ROLE_ATTENTION_SPLIT : CLATTN__ROLE_ATTENTION;
    return clattn__plan_choose(plan, *role, params, row);
}

static clattn_status choose(clattn_plan *plan, const clattn__params *params, const clattn__attention_sizes *s, bool matrix,
                            clattn__role *role, const clattn__row **row) {
    const long long len_q = s->len_q, len_kv = s->len_kv;
    *row = NULL;
    if (plan->options.algorithm != CLATTN_ALGORITHM_AUTO) return choose_asked(plan, params, role, row);
    if (matrix) {
        clattn__text_add(&plan->why, "staged: scores or weights are outputs, and fused never holds them\n");
        return CLATTN_OK;
    }
    if (!should_not_split(s, params)) {
        *role = CLATTN__ROLE_ATTENTION_SPLIT;
        *row = try_row(plan, *role, params);
        if (*row)
            clattn__text_add(&plan->why, "split: %lld quer%s over %lld keys, %lld keys a part\n", len_q,
                             len_q == 1 ? "y" : "ies", len_kv, (long long)params->attention.split);
        if (*row) return CLATTN_OK;
    }
    *role = CLATTN__ROLE_ATTENTION;
    *row = try_row(plan, *role, params);
    if (*row) {
        clattn__text_add(&plan->why, "fused: no %lld x %lld matrix is kept\n", len_q, len_kv);
        if (should_not_split(s, params)) clattn__text_add(&plan->why, "not split: %s\n", should_not_split(s, params));
        return CLATTN_OK;
    }
    if (plan->options.require_fused || s->ragged)
        return clattn__fail(plan->context, CLATTN_ERROR_UNSUPPORTED,
                            "no fused kernel serves this device, type and shape, and %s rules out staged:\n%.*s",
                            plan->options.require_fused ? "require_fused" : "a ragged batch",
                            plan->why.length ? (int)plan->why.length - 1 : 0, plan->why.data ? plan->why.data : "");
    clattn__text_add(&plan->why, "staged: no fused kernel serves this device, type and shape\n");
    return CLATTN_OK;
}

/* Where queries stand, if that matters. */
static void explain_positions(clattn_plan *plan, const attention_params *p) {
    if (p->keys.left < 0 && p->keys.right < 0 && p->alibi == ALIBI_NONE) return;
    clattn__text_add(&plan->why, "query i stands at key i %+lld%s\n", (long long)p->keys.offset,
                     p->keys.from_end ? " + the member's keys - its queries" : "");
}

clattn_status clattn__attention_emit(clattn_plan *plan, const clattn_attention_options *options, const clattn__attention_sizes *s,
                                     const clattn__attention_operands *o) {
    clattn__params params = {.attention = make_params(options, s, o)};
    clattn__role role = CLATTN__ROLE_ATTENTION;
    const clattn__row *row;
    params.attention.split = split_of(s->len_kv);
    clattn_status status = choose(plan, &params, s, wants_matrix(o), &role, &row);
    if (status != CLATTN_OK) return status;
    explain_positions(plan, &params.attention);
    plan->algorithm = !row ? "staged" : role == CLATTN__ROLE_ATTENTION ? "fused" : "split";
    if (!row) return emit_staged(plan, options, s, o);
    return role == CLATTN__ROLE_ATTENTION ? emit_fused(plan, row, &params, o) : emit_split(plan, row, params, s, o);
}
