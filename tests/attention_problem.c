/* SPDX-License-Identifier: Apache-2.0 */
#include "attention_problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "naive.h"

static int64_t rows_of(const attention_case *c) { return c->batch * c->heads_q * c->len_q; }

static double scale_of(const attention_case *c) { return c->has_scale ? c->scale : naive_scale(c->head_dim); }

static int64_t offset_of(const attention_case *c) {
    return naive_offset(c->align, c->len_q, c->len_kv, c->position);
}

static clattn_attention_options options_of(const attention_case *c) {
    return (clattn_attention_options){
        .has_scale = c->has_scale,
        .scale = c->scale,
        .causal = c->causal,
        .align = c->align,
        .past_len = c->align == CLATTN_ALIGN_PAST ? c->position : 0,
        .offset = c->align == CLATTN_ALIGN_OFFSET ? c->position : 0,
    };
}

static clattn__oracle_attention_args oracle_args(const attention_problem *p, float *q, float *k, float *v, double *out) {
    const attention_case *c = &p->c;
    return (clattn__oracle_attention_args){
        .q = view_of_floats(q, c->batch, c->heads_q, c->len_q, c->head_dim),
        .k = view_of_floats(k, c->batch, c->heads_kv, c->len_kv, c->head_dim),
        .v = view_of_floats(v, c->batch, c->heads_kv, c->len_kv, c->value_dim),
        .out = clattn__view_of_doubles(out, c->batch, c->heads_q, c->len_q, c->value_dim),
        .options = &p->options,
    };
}

static void solve_oracle(attention_problem *p) {
    const attention_case *c = &p->c;
    clattn__oracle_attention_args args = oracle_args(p, p->q, p->k, p->v, p->out);
    args.lse = clattn__view_of_doubles(p->lse, c->batch, c->heads_q, c->len_q, 1);
    args.scores = clattn__view_of_doubles(p->scores, c->batch, c->heads_q, c->len_q, c->len_kv);
    args.weights = clattn__view_of_doubles(p->weights, c->batch, c->heads_q, c->len_q, c->len_kv);
    if (clattn__oracle_attention(&args) != CLATTN_OK) ck_abort_msg("the oracle is out of memory");
}

/* What an error of one part in each score, weight and value moves, to first order: a score's error moves its weight towards or
 * away from all others. The errors of a score are of its terms, not of their sum, and partly cancel: a quarter of them. */
static void solve_row_magnitudes(attention_problem *p, int64_t row) {
    const attention_case *c = &p->c;
    const int64_t head = row / c->len_q, b = head / c->heads_q, h = head % c->heads_q;
    const float *v = p->v + (b * c->heads_kv + h / (c->heads_q / c->heads_kv)) * c->len_kv * c->value_dim;
    const double *weights = p->weights + row * c->len_kv, *scores = p->scores + row * c->len_kv;
    double *out = p->out_magnitude + row * c->value_dim, largest = 0, moves = 0;
    memset(out, 0, (size_t)c->value_dim * sizeof *out);
    for (int64_t j = 0; j < c->len_kv; j++) {
        if (!(weights[j] > 0)) continue;
        const double score = fmax(fabs(scores[j]), p->scores_magnitude[row * c->len_kv + j] / 4);
        largest = fmax(largest, score);
        moves += weights[j] * score;
        for (int64_t d = 0; d < c->value_dim; d++) {
            const double value = v[j * c->value_dim + d];
            out[d] += weights[j] * (fabs(value) + score * fabs(value - p->out[row * c->value_dim + d]));
        }
    }
    p->lse_magnitude[row] = 1 + moves;
    for (int64_t j = 0; j < c->len_kv; j++) {
        p->weights_magnitude[row * c->len_kv + j] = weights[j] * (1 + (1 - weights[j]) * largest);
    }
}

/* |q| on |k|: the sums that cancelled in a score. */
static void solve_score_magnitudes(attention_problem *p) {
    const attention_case *c = &p->c;
    float *q = absolute(p->q, rows_of(c) * c->head_dim);
    float *k = absolute(p->k, c->batch * c->heads_kv * c->len_kv * c->head_dim);
    double *unused = test_alloc((size_t)(rows_of(c) * c->value_dim), sizeof *unused);
    clattn__oracle_attention_args args = oracle_args(p, q, k, p->v, unused);
    clattn_attention_options options = p->options;
    options.scale = fabs(options.scale);
    args.options = &options;
    args.scores = clattn__view_of_doubles(p->scores_magnitude, c->batch, c->heads_q, c->len_q, c->len_kv);
    if (clattn__oracle_attention(&args) != CLATTN_OK) ck_abort_msg("the oracle is out of memory");
    free(unused);
    free(k);
    free(q);
}

void attention_problem_solve(attention_problem *p) {
    const attention_case *c = &p->c;
    solve_oracle(p);
    solve_score_magnitudes(p);
    for (int64_t row = 0; row < rows_of(c); row++) solve_row_magnitudes(p, row);
    naive_attention_args naive = {c->batch,     c->heads_q, c->heads_kv, c->len_q,     c->len_kv,       c->head_dim,
                                  c->value_dim, (float)scale_of(c), c->causal,  offset_of(c), p->q,            p->k,
                                  p->v,         p->naive_out, p->naive_lse, p->naive_scores, p->naive_weights};
    naive_attention(&naive);
}

attention_problem attention_problem_make(const attention_case *c, rng *r) {
    attention_problem p = {.c = *c, .options = options_of(c)};
    p.options.has_scale = 1;
    p.options.scale = scale_of(c);
    const int64_t rows = rows_of(c), kv = c->batch * c->heads_kv * c->len_kv;
    p.q = rng_floats(r, rows * c->head_dim, c->amplitude != 0 ? c->amplitude : 1);
    p.k = rng_floats(r, kv * c->head_dim, 1);
    p.v = rng_floats(r, kv * c->value_dim, 1);
    p.out = test_alloc((size_t)(rows * c->value_dim), sizeof(double));
    p.lse = test_alloc((size_t)rows, sizeof(double));
    p.scores = test_alloc((size_t)(rows * c->len_kv), sizeof(double));
    p.weights = test_alloc((size_t)(rows * c->len_kv), sizeof(double));
    p.naive_out = test_alloc((size_t)(rows * c->value_dim), sizeof(float));
    p.naive_lse = test_alloc((size_t)rows, sizeof(float));
    p.naive_scores = test_alloc((size_t)(rows * c->len_kv), sizeof(float));
    p.naive_weights = test_alloc((size_t)(rows * c->len_kv), sizeof(float));
    p.out_magnitude = test_alloc((size_t)(rows * c->value_dim), sizeof(double));
    p.lse_magnitude = test_alloc((size_t)rows, sizeof(double));
    p.scores_magnitude = test_alloc((size_t)(rows * c->len_kv), sizeof(double));
    p.weights_magnitude = test_alloc((size_t)(rows * c->len_kv), sizeof(double));
    attention_problem_solve(&p);
    return p;
}

void attention_problem_free(attention_problem *p) {
    void *arrays[] = {p->q,
                      p->k,
                      p->v,
                      p->out,
                      p->lse,
                      p->scores,
                      p->weights,
                      p->naive_out,
                      p->naive_lse,
                      p->naive_scores,
                      p->naive_weights,
                      p->out_magnitude,
                      p->lse_magnitude,
                      p->scores_magnitude,
                      p->weights_magnitude};
    for (size_t n = 0; n < COUNT(arrays); n++) free(arrays[n]);
    *p = (attention_problem){0};
}

expected attention_expect_out(const attention_problem *p) {
    return (expected){p->out, p->naive_out, p->out_magnitude, rows_of(&p->c), p->c.value_dim};
}

expected attention_expect_lse(const attention_problem *p) {
    return (expected){p->lse, p->naive_lse, p->lse_magnitude, rows_of(&p->c), 1};
}

expected attention_expect_scores(const attention_problem *p) {
    return (expected){p->scores, p->naive_scores, p->scores_magnitude, rows_of(&p->c), p->c.len_kv};
}

expected attention_expect_weights(const attention_problem *p) {
    return (expected){p->weights, p->naive_weights, p->weights_magnitude, rows_of(&p->c), p->c.len_kv};
}

clattn_attention_desc attention_desc(const attention_problem *p) {
    const attention_case *c = &p->c;
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = clattn_tensor_bhld(CLATTN_F32, c->batch, c->heads_q, c->len_q, c->head_dim);
    desc.k = clattn_tensor_bhld(CLATTN_F32, c->batch, c->heads_kv, c->len_kv, c->head_dim);
    desc.v = clattn_tensor_bhld(CLATTN_F32, c->batch, c->heads_kv, c->len_kv, c->value_dim);
    desc.out = clattn_tensor_bhld(CLATTN_F32, c->batch, c->heads_q, c->len_q, c->value_dim);
    desc.options = options_of(c);
    return desc;
}

static clattn_tensor as(layout l, clattn_tensor packed) {
    return layout_view(l, packed.size[0], packed.size[1], packed.size[2], packed.size[3]);
}

attention_results attention_run(clattn_context *context, const attention_problem *p, layout l, clattn_algorithm algorithm,
                                int want) {
    const attention_case *c = &p->c;
    clattn_attention_desc desc = attention_desc(p);
    desc.q = as(l, desc.q);
    desc.k = as(l, desc.k);
    desc.v = as(l, desc.v);
    desc.out = as(l, desc.out);
    if (want & WANT_LSE) desc.lse = layout_view(l, c->batch, c->heads_q, c->len_q, 1);
    if (want & WANT_SCORES) desc.scores = layout_view(l, c->batch, c->heads_q, c->len_q, c->len_kv);
    if (want & WANT_WEIGHTS) desc.weights = layout_view(l, c->batch, c->heads_q, c->len_q, c->len_kv);

    bindings b = {0};
    bind_input(&b, CLATTN_TENSOR_Q, desc.q, p->q);
    bind_input(&b, CLATTN_TENSOR_K, desc.k, p->k);
    bind_input(&b, CLATTN_TENSOR_V, desc.v, p->v);
    bind_output(&b, CLATTN_TENSOR_OUT, desc.out);
    bind_output(&b, CLATTN_TENSOR_LSE, desc.lse);
    bind_output(&b, CLATTN_TENSOR_SCORES, desc.scores);
    bind_output(&b, CLATTN_TENSOR_WEIGHTS, desc.weights);

    clattn_plan *plan;
    assert_ok(context, clattn_plan_create_attention(context, &desc, OPTIONS(.algorithm = algorithm), &plan));
    clattn_plan_info info = {.struct_size = sizeof info};
    assert_ok(context, clattn_plan_get_info(plan, &info));
    attention_results results = {0};
    snprintf(results.row, sizeof results.row, "%s", info.row);
    assert_ok(context, clattn_plan_run(plan, b.args, b.count));
    clattn_plan_destroy(plan);

    char where[256];
    snprintf(where, sizeof where, "%s, %s, %s", c->name, results.row, layout_name(l));
    assert_intact(&b, where);
    results.out = bound_result(&b, CLATTN_TENSOR_OUT);
    results.lse = bound_result(&b, CLATTN_TENSOR_LSE);
    results.scores = bound_result(&b, CLATTN_TENSOR_SCORES);
    results.weights = bound_result(&b, CLATTN_TENSOR_WEIGHTS);
    bindings_free(&b);
    return results;
}

void attention_results_free(attention_results *r) {
    free(r->out);
    free(r->lse);
    free(r->scores);
    free(r->weights);
    *r = (attention_results){0};
}

void attention_assert_close(const attention_results *r, const attention_problem *p, const char *where) {
    const struct {
        const char *name;
        const float *result;
        expected against;
    } outputs[] = {
        {"out", r->out, attention_expect_out(p)},
        {"lse", r->lse, attention_expect_lse(p)},
        {"scores", r->scores, attention_expect_scores(p)},
        {"weights", r->weights, attention_expect_weights(p)},
    };
    for (size_t n = 0; n < COUNT(outputs); n++) {
        if (!outputs[n].result) continue;
        assert_close(outputs[n].result, &outputs[n].against, "%s, %s (%s), %s", where, p->c.name, r->row, outputs[n].name);
    }
}
