/* The attention layer: on every device, with every kernel row that has a part in it, against the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "naive.h"
#include "support.h"

enum { BIAS = 1, X_KV = 2, W_O = 4, RESIDUAL = 8, WEIGHTS = 16, CAUSAL = 32 };

typedef struct mha_case {
    const char *name;
    int64_t batch, len_q, len_kv, d_in, d_kv; /* len_kv and d_kv with X_KV */
    int64_t heads_q, heads_kv, head_dim, value_dim, d_out;
    int parts;
    clattn_align align;
    int64_t position;
    int has_scale;
    float scale;
    clattn_dtype dtype; /* 0: f32 */
} mha_case;

static clattn_dtype type_of(const mha_case *c) { return c->dtype ? c->dtype : CLATTN_F32; }

static const mha_case cases[] = {
    /*                   batch, len_q, len_kv, d_in, d_kv, heads_q, heads_kv, head_dim, value_dim, d_out */
    {"ones",              1,  1,  1,   1,  1,  1, 1,  1,  1,   1, W_O},
    {"bare heads",        2, 13, 13,  24, 24,  3, 3,  8,  8,  24, 0},
    {"plain",             2, 17, 17,  32, 32,  4, 4,  8,  8,  32, W_O},
    {"all of it",         2, 37, 37,  48, 48,  6, 2,  8, 12,  48, BIAS | W_O | RESIDUAL | CAUSAL | WEIGHTS},
    {"cross",             2, 11, 29,  20, 36,  4, 2, 16,  8,  50, BIAS | W_O | X_KV},
    {"cross, residual",   1, 11, 29,  20, 36,  4, 4, 16,  8,  20, BIAS | W_O | X_KV | RESIDUAL | WEIGHTS},
    {"cross, causal",     1, 11, 29,  20, 36,  4, 1, 16,  8,  20, W_O | X_KV | CAUSAL, CLATTN_ALIGN_BOTTOM_RIGHT},
    {"past",              1,  5, 29,  20, 20,  4, 1, 16,  8,  20, W_O | X_KV | CAUSAL, CLATTN_ALIGN_PAST, 24},
    {"masked rows",       1, 19, 19,  20, 20,  4, 1, 16,  8,  20, BIAS | W_O | CAUSAL, CLATTN_ALIGN_OFFSET, -5},
    {"scaled",            1, 19, 19,  20, 20,  2, 2, 16, 16,  20, BIAS | W_O, 0, 0, 1, 0.1f},
    {"several tiles",     1, 130, 130, 128, 128, 2, 2, 64, 64, 128, BIAS | W_O | RESIDUAL | CAUSAL},
    {"one word",          3,  1,  1,  64, 64,  4, 4, 16, 16,  64, BIAS | W_O | RESIDUAL},
    {"no batch",          0,  5,  5,   8,  8,  2, 2,  4,  4,   8, BIAS | W_O},
    {"no words",          2,  0,  0,   8,  8,  2, 2,  4,  4,   8, BIAS | W_O},
    {"no keys",           2,  5,  0,   8,  8,  2, 2,  4,  4,   8, BIAS | W_O | X_KV},
    {"no input",          2,  5,  5,   0,  0,  2, 2,  4,  4,   8, BIAS | W_O},
    {"no heads' width",   2,  5,  5,   8,  8,  2, 2,  0,  4,   8, BIAS | W_O},
    {"no values",         2,  5,  5,   8,  8,  2, 2,  4,  0,   8, BIAS | W_O},
};

typedef struct mha_problem {
    mha_case c;
    float *x, *x_kv, *w_q, *w_k, *w_v, *w_o, *b_q, *b_k, *b_v, *b_o;
    double *out, *magnitude, *weights;
    float *naive_out, *naive_weights;
} mha_problem;

/* ---- the oracle --------------------------------------------------------------------------------------------------- */

static int64_t merged_columns(const mha_case *c) { return c->heads_q * c->value_dim; }
static int64_t out_columns(const mha_case *c) { return c->parts & W_O ? c->d_out : merged_columns(c); }

static clattn_attention_options options_of(const mha_case *c) {
    return (clattn_attention_options){
        .has_scale = c->has_scale,
        .scale = c->scale,
        .causal = (c->parts & CAUSAL) != 0,
        .align = c->align,
        .past_len = c->align == CLATTN_ALIGN_PAST ? c->position : 0,
        .offset = c->align == CLATTN_ALIGN_OFFSET ? c->position : 0,
    };
}

/* Of options with a resolved scale. */
static clattn_attention_options resolved_options(const mha_case *c) {
    clattn_attention_options options = options_of(c);
    if (!options.has_scale) options.scale = naive_scale(c->head_dim);
    options.has_scale = 1;
    return options;
}

static clattn__oracle_mha_args oracle_args(const mha_problem *p, const clattn_attention_options *options) {
    const mha_case *c = &p->c;
    return (clattn__oracle_mha_args){
        .x = view_of_floats(p->x, c->batch, 1, c->len_q, c->d_in),
        .x_kv = view_of_floats(p->x_kv, c->batch, 1, c->len_kv, c->d_kv),
        .w_q = view_of_floats(p->w_q, 1, 1, c->d_in, c->heads_q * c->head_dim),
        .w_k = view_of_floats(p->w_k, 1, 1, c->d_kv, c->heads_kv * c->head_dim),
        .w_v = view_of_floats(p->w_v, 1, 1, c->d_kv, c->heads_kv * c->value_dim),
        .w_o = view_of_floats(p->w_o, 1, 1, merged_columns(c), c->d_out),
        .b_q = view_of_floats(p->b_q, 1, 1, 1, c->heads_q * c->head_dim),
        .b_k = view_of_floats(p->b_k, 1, 1, 1, c->heads_kv * c->head_dim),
        .b_v = view_of_floats(p->b_v, 1, 1, 1, c->heads_kv * c->value_dim),
        .b_o = view_of_floats(p->b_o, 1, 1, 1, c->d_out),
        .out = clattn__view_of_doubles(p->out, c->batch, 1, c->len_q, out_columns(c)),
        .weights = clattn__view_of_doubles(p->weights, c->batch, c->heads_q, c->len_q, c->len_kv),
        .heads_q = c->heads_q,
        .heads_kv = c->heads_kv,
        .residual = (c->parts & RESIDUAL) != 0,
        .options = options,
    };
}

static void must(clattn_status status) {
    if (status != CLATTN_OK) ck_abort_msg("the oracle failed: %s", clattn_status_text(status));
}

/* The output projection of absolute values: |merged| |w_o| + |b_o| + |x|. */
static void solve_magnitude(mha_problem *p) {
    const mha_case *c = &p->c;
    const int64_t columns = merged_columns(c), count = c->batch * c->len_q * columns;
    double *merged = test_alloc((size_t)count, sizeof *merged);
    const clattn_attention_options options = resolved_options(c);
    clattn__oracle_mha_args heads = oracle_args(p, &options);
    heads.w_o.present = heads.b_o.present = heads.residual = false;
    heads.out = clattn__view_of_doubles(merged, c->batch, 1, c->len_q, columns);
    must(clattn__oracle_mha(&heads));
    for (int64_t n = 0; n < count; n++) merged[n] = fabs(merged[n]);
    if (!(c->parts & W_O)) {
        for (int64_t n = 0; n < count; n++) p->magnitude[n] = merged[n];
    } else {
        float *w = absolute(p->w_o, columns * c->d_out), *b = absolute(p->b_o, c->d_out);
        float *x = absolute(p->x, c->batch * c->len_q * c->d_in);
        const clattn__oracle_project_args output = {
            .x = heads.out,
            .w = view_of_floats(w, 1, 1, columns, c->d_out),
            .bias = view_of_floats(b, 1, 1, 1, c->d_out),
            .residual = view_of_floats(c->parts & RESIDUAL ? x : NULL, c->batch, 1, c->len_q, c->d_out),
            .y = clattn__view_of_doubles(p->magnitude, c->batch, 1, c->len_q, c->d_out),
        };
        must(clattn__oracle_project(&output));
        free(x);
        free(b);
        free(w);
    }
    free(merged);
}

/* ---- the naive computation ---------------------------------------------------------------------------------------- */

/* (batch, heads, len, dim) to (batch, len, heads * dim) */
static void merge_heads(const float *heads, int64_t batch, int64_t count, int64_t len, int64_t dim, float *merged) {
    const clattn_tensor view = clattn_tensor_blhd(CLATTN_F32, batch, count, len, dim);
    view_scatter(&view, merged, heads);
}

/* heads = softmax(q k^T) v; the weights go to the problem. */
static void attend_naively(mha_problem *p, const float *q, const float *k, const float *v, float *heads) {
    const mha_case *c = &p->c;
    const clattn_attention_options options = resolved_options(c);
    const int64_t rows = c->batch * c->heads_q * c->len_q;
    const struct {
        clattn_tensor_id id;
        const float *from;
        int64_t size[4];
    } tensors[] = {
        {CLATTN_TENSOR_Q, q, {c->batch, c->heads_q, c->len_q, c->head_dim}},
        {CLATTN_TENSOR_K, k, {c->batch, c->heads_kv, c->len_kv, c->head_dim}},
        {CLATTN_TENSOR_V, v, {c->batch, c->heads_kv, c->len_kv, c->value_dim}},
        {CLATTN_TENSOR_OUT, NULL, {c->batch, c->heads_q, c->len_q, c->value_dim}},
        {CLATTN_TENSOR_LSE, NULL, {c->batch, c->heads_q, c->len_q, 1}},
        {CLATTN_TENSOR_SCORES, NULL, {c->batch, c->heads_q, c->len_q, c->len_kv}},
        {CLATTN_TENSOR_WEIGHTS, NULL, {c->batch, c->heads_q, c->len_q, c->len_kv}},
    };
    naive_attention_args a = {.options = &options};
    for (size_t n = 0; n < COUNT(tensors); n++) {
        const int64_t *size = tensors[n].size, count = size[0] * size[1] * size[2] * size[3];
        double *data = tensors[n].from ? widened(tensors[n].from, count) : test_alloc((size_t)count, sizeof *data);
        a.tensors[tensors[n].id] = (naive_tensor){data, CLATTN_F32, {size[0], size[1], size[2], size[3]}};
        a.magnitude[tensors[n].id] = test_alloc((size_t)count, sizeof(double));
    }
    naive_attention(&a);
    const double *out = a.tensors[CLATTN_TENSOR_OUT].data, *weights = a.tensors[CLATTN_TENSOR_WEIGHTS].data;
    for (int64_t n = 0; n < rows * c->value_dim; n++) heads[n] = (float)out[n];
    for (int64_t n = 0; n < rows * c->len_kv; n++) p->naive_weights[n] = (float)weights[n];
    for (size_t n = 0; n < COUNT(tensors); n++) {
        free(a.tensors[tensors[n].id].data);
        free(a.magnitude[tensors[n].id]);
    }
}

static void solve_naive(mha_problem *p) {
    const mha_case *c = &p->c;
    const int64_t rows = c->batch * c->heads_q * c->len_q, keys = c->batch * c->heads_kv * c->len_kv;
    const float *x_kv = p->x_kv ? p->x_kv : p->x;
    float *q = test_alloc((size_t)(rows * c->head_dim), sizeof *q), *k = test_alloc((size_t)(keys * c->head_dim), sizeof *k);
    float *v = test_alloc((size_t)(keys * c->value_dim), sizeof *v);
    float *heads = test_alloc((size_t)(rows * c->value_dim), sizeof *heads);
    float *merged = test_alloc((size_t)(rows * c->value_dim), sizeof *merged);
    naive_project(c->batch, c->heads_q, c->len_q, c->d_in, c->head_dim, p->x, p->w_q, p->b_q, NULL, q);
    naive_project(c->batch, c->heads_kv, c->len_kv, c->d_kv, c->head_dim, x_kv, p->w_k, p->b_k, NULL, k);
    naive_project(c->batch, c->heads_kv, c->len_kv, c->d_kv, c->value_dim, x_kv, p->w_v, p->b_v, NULL, v);
    const clattn_dtype type = type_of(c);
    round_to(type, q, rows * c->head_dim);
    round_to(type, k, keys * c->head_dim);
    round_to(type, v, keys * c->value_dim);
    attend_naively(p, q, k, v, heads);
    round_to(type, heads, rows * c->value_dim);
    merge_heads(heads, c->batch, c->heads_q, c->len_q, c->value_dim, c->parts & W_O ? merged : p->naive_out);
    if (c->parts & W_O) {
        naive_project(c->batch, 1, c->len_q, merged_columns(c), c->d_out, merged, p->w_o, p->b_o,
                      c->parts & RESIDUAL ? p->x : NULL, p->naive_out);
    }
    round_to(type, p->naive_out, c->batch * c->len_q * out_columns(c));
    round_to(type, p->naive_weights, rows * c->len_kv);
    void *arrays[] = {q, k, v, heads, merged};
    for (size_t n = 0; n < COUNT(arrays); n++) free(arrays[n]);
}

/* ---- the problem -------------------------------------------------------------------------------------------------- */

/* A weight that keeps the size of what it multiplies. */
static float *make_weight(rng *r, const mha_case *c, int64_t depth, int64_t columns) {
    return round_to(type_of(c), rng_floats(r, depth * columns, depth ? 1 / sqrtf((float)depth) : 1), depth * columns);
}

static float *draw(rng *r, const mha_case *c, int64_t count) { return round_to(type_of(c), rng_floats(r, count, 1), count); }

static mha_problem problem_make(const mha_case *c, rng *r) {
    mha_problem p = {.c = *c};
    const bool bias = c->parts & BIAS, w_o = c->parts & W_O;
    p.x = draw(r, c, c->batch * c->len_q * c->d_in);
    if (c->parts & X_KV) p.x_kv = draw(r, c, c->batch * c->len_kv * c->d_kv);
    p.w_q = make_weight(r, c, c->d_in, c->heads_q * c->head_dim);
    p.w_k = make_weight(r, c, c->d_kv, c->heads_kv * c->head_dim);
    p.w_v = make_weight(r, c, c->d_kv, c->heads_kv * c->value_dim);
    if (w_o) p.w_o = make_weight(r, c, merged_columns(c), c->d_out);
    if (bias) p.b_q = draw(r, c, c->heads_q * c->head_dim);
    if (bias) p.b_k = draw(r, c, c->heads_kv * c->head_dim);
    if (bias) p.b_v = draw(r, c, c->heads_kv * c->value_dim);
    if (bias && w_o) p.b_o = draw(r, c, c->d_out);
    const int64_t count = c->batch * c->len_q * out_columns(c), pairs = c->batch * c->heads_q * c->len_q * c->len_kv;
    p.out = test_alloc((size_t)count, sizeof *p.out);
    p.magnitude = test_alloc((size_t)count, sizeof *p.magnitude);
    p.weights = test_alloc((size_t)pairs, sizeof *p.weights);
    p.naive_out = test_alloc((size_t)count, sizeof *p.naive_out);
    p.naive_weights = test_alloc((size_t)pairs, sizeof *p.naive_weights);
    const clattn_attention_options options = resolved_options(c);
    const clattn__oracle_mha_args args = oracle_args(&p, &options);
    must(clattn__oracle_mha(&args));
    solve_magnitude(&p);
    solve_naive(&p);
    return p;
}

static void problem_free(mha_problem *p) {
    void *arrays[] = {p->x,   p->x_kv, p->w_q, p->w_k,       p->w_v,     p->w_o,       p->b_q,          p->b_k,
                      p->b_v, p->b_o,  p->out, p->magnitude, p->weights, p->naive_out, p->naive_weights};
    for (size_t n = 0; n < COUNT(arrays); n++) free(arrays[n]);
}

/* ---- running it --------------------------------------------------------------------------------------------------- */

typedef struct mha_results {
    float *out, *weights;
} mha_results;

static clattn_tensor optional_view(layout l, const float *data, int64_t rows, int64_t columns) {
    return data ? layout_view(l, 1, 1, rows, columns) : (clattn_tensor){0};
}

static clattn_mha_desc make_desc(const mha_problem *p, layout l, bool weights) {
    const mha_case *c = &p->c;
    clattn_mha_desc desc = CLATTN_MHA_DESC_INIT;
    desc.x = layout_view(l, c->batch, 1, c->len_q, c->d_in);
    if (p->x_kv) desc.x_kv = layout_view(l, c->batch, 1, c->len_kv, c->d_kv);
    desc.w_q = layout_view(l, 1, 1, c->d_in, c->heads_q * c->head_dim);
    desc.w_k = layout_view(l, 1, 1, c->d_kv, c->heads_kv * c->head_dim);
    desc.w_v = layout_view(l, 1, 1, c->d_kv, c->heads_kv * c->value_dim);
    desc.w_o = optional_view(l, p->w_o, merged_columns(c), c->d_out);
    desc.b_q = optional_view(l, p->b_q, 1, c->heads_q * c->head_dim);
    desc.b_k = optional_view(l, p->b_k, 1, c->heads_kv * c->head_dim);
    desc.b_v = optional_view(l, p->b_v, 1, c->heads_kv * c->value_dim);
    desc.b_o = optional_view(l, p->b_o, 1, c->d_out);
    desc.out = layout_view(l, c->batch, 1, c->len_q, out_columns(c));
    if (weights) desc.weights = layout_view(l, c->batch, c->heads_q, c->len_q, c->len_kv);
    clattn_tensor *const all[] = {&desc.x,   &desc.x_kv, &desc.w_q, &desc.w_k, &desc.w_v, &desc.w_o,
                                  &desc.b_q, &desc.b_k,  &desc.b_v, &desc.b_o, &desc.out, &desc.weights};
    for (size_t n = 0; n < COUNT(all); n++)
        if (all[n]->dtype != CLATTN_ABSENT) all[n]->dtype = type_of(c);
    desc.heads_q = c->heads_q;
    desc.heads_kv = c->heads_kv == c->heads_q ? 0 : c->heads_kv;
    desc.residual = (c->parts & RESIDUAL) != 0;
    desc.options = options_of(c);
    return desc;
}

static mha_results run(clattn_context *context, const mha_problem *p, layout l, clattn_algorithm algorithm, const char *where) {
    const bool weights = (p->c.parts & WEIGHTS) && algorithm != CLATTN_ALGORITHM_FUSED;
    const clattn_mha_desc desc = make_desc(p, l, weights);
    bindings b = {0};
    bind_output(&b, CLATTN_TENSOR_OUT, desc.out);
    bind_output(&b, CLATTN_TENSOR_WEIGHTS, desc.weights);
    bind_input(&b, CLATTN_TENSOR_X, desc.x, p->x);
    bind_input(&b, CLATTN_TENSOR_X_KV, desc.x_kv, p->x_kv);
    bind_input(&b, CLATTN_TENSOR_W_Q, desc.w_q, p->w_q);
    bind_input(&b, CLATTN_TENSOR_W_K, desc.w_k, p->w_k);
    bind_input(&b, CLATTN_TENSOR_W_V, desc.w_v, p->w_v);
    bind_input(&b, CLATTN_TENSOR_W_O, desc.w_o, p->w_o);
    bind_input(&b, CLATTN_TENSOR_B_Q, desc.b_q, p->b_q);
    bind_input(&b, CLATTN_TENSOR_B_K, desc.b_k, p->b_k);
    bind_input(&b, CLATTN_TENSOR_B_V, desc.b_v, p->b_v);
    bind_input(&b, CLATTN_TENSOR_B_O, desc.b_o, p->b_o);
    assert_ok(context, clattn_mha(context, &desc, OPTIONS(.algorithm = algorithm), b.args, b.count));
    assert_intact(&b, where);
    mha_results results = {bound_result(&b, CLATTN_TENSOR_OUT), bound_result(&b, CLATTN_TENSOR_WEIGHTS)};
    bindings_free(&b);
    return results;
}

static void results_free(mha_results *r) {
    free(r->out);
    free(r->weights);
}

static void assert_results(const mha_problem *p, const mha_results *r, const char *where) {
    const mha_case *c = &p->c;
    const expected out = {p->out, p->naive_out, p->magnitude, c->batch * c->len_q, out_columns(c)};
    const expected weights = {p->weights, p->naive_weights, NULL, c->batch * c->heads_q * c->len_q, c->len_kv};
    assert_close(r->out, &out, "%s, %s, out", where, c->name);
    if (r->weights) assert_close(r->weights, &weights, "%s, %s, weights", where, c->name);
}

/* ---- tests -------------------------------------------------------------------------------------------------------- */

enum {
    FUSED = ROLE_BIT(ATTENTION),
    STAGED = ROLE_BIT(SCORES) | ROLE_BIT(MASK) | ROLE_BIT(SOFTMAX) | ROLE_BIT(WEIGHTED_VALUES),
    PROJECT = ROLE_BIT(PROJECT)
};

static clattn_algorithm algorithm_of(const clattn__row *row) {
    if (!row || PROJECT & 1u << row->role) return CLATTN_ALGORITHM_AUTO;
    return FUSED & 1u << row->role ? CLATTN_ALGORITHM_FUSED : CLATTN_ALGORITHM_STAGED;
}

static clattn__params params_of(const mha_case *c) {
    return (clattn__params){
        .attention = {.head_dim = (i32)c->head_dim, .value_dim = (i32)c->value_dim, .dtype = DTYPE_F32}};
}

static const clattn__params products_of_f32 = {.project.dtype = DTYPE_F32};

static void check_outputs(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    mha_results results = run(context, data, LAYOUT_BHLD, algorithm_of(row), where);
    assert_results(data, &results, where);
    results_free(&results);
}

START_TEST(every_shape_on_every_row) {
    rng r = rng_make((uint64_t)_i);
    mha_problem p = problem_make(&cases[_i], &r);
    const clattn__params params = params_of(&p.c);
    for_every_row(FUSED | STAGED, &params, check_outputs, &p);
    for_every_row(PROJECT, &products_of_f32, check_outputs, &p);
    problem_free(&p);
}
END_TEST

/* Where kernels of products take the type, queries, keys and values are of it, too; else they are f32. */
START_TEST(every_shape_in_16_bits) {
    rng r = rng_make(4000 + (uint64_t)_i);
    mha_case c = cases[_i];
    c.dtype = rng_below(&r, 2) ? CLATTN_F16 : CLATTN_BF16;
    mha_problem p = problem_make(&c, &r);
    const clattn__params products = {.project.dtype = (i32)c.dtype};
    for_every_row(PROJECT, &products, check_outputs, &p);
    for_every_row(PROJECT, &products_of_f32, check_outputs, &p);
    problem_free(&p);
}
END_TEST

static void check_layouts(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    const mha_problem *p = data;
    const mha_case *c = &p->c;
    mha_results packed = run(context, p, LAYOUT_BHLD, algorithm_of(row), where);
    for (layout l = LAYOUT_BHLD; l < LAYOUT_COUNT; l++) {
        mha_results results = run(context, p, l, algorithm_of(row), where);
        char what[192];
        snprintf(what, sizeof what, "%s, %s against bhld", where, layout_name(l));
        assert_same(results.out, packed.out, c->batch * c->len_q * out_columns(c), what, "out");
        assert_same(results.weights, packed.weights, c->batch * c->heads_q * c->len_q * c->len_kv, what, "weights");
        results_free(&results);
    }
    results_free(&packed);
}

START_TEST(any_layout_is_bitwise_the_packed_one) {
    rng r = rng_make(1000);
    mha_problem p = problem_make(&cases[3], &r);
    const clattn__params params = params_of(&p.c);
    for_every_row(FUSED | STAGED, &params, check_layouts, &p);
    problem_free(&p);
}
END_TEST

static void check_sample(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    const mha_problem *p = data;
    const mha_case *c = &p->c;
    mha_results whole = run(context, p, LAYOUT_BHLD, algorithm_of(row), where);
    const int64_t count = c->len_q * out_columns(c);
    for (int64_t b = 0; b < c->batch; b++) {
        mha_problem alone = *p;
        alone.c.batch = 1;
        alone.x = p->x + b * c->len_q * c->d_in;
        mha_results one = run(context, &alone, LAYOUT_BHLD, algorithm_of(row), where);
        assert_same(one.out, whole.out + b * count, count, where, "a sample alone");
        results_free(&one);
    }
    results_free(&whole);
}

START_TEST(a_sample_alone_equals_itself_in_a_batch) {
    static const mha_case c = {"batch", 3, 29, 29, 36, 36, 4, 2, 12, 8, 36, BIAS | W_O | RESIDUAL};
    rng r = rng_make(2000);
    mha_problem p = problem_make(&c, &r);
    const clattn__params params = params_of(&p.c);
    for_every_row(FUSED | STAGED, &params, check_sample, &p);
    problem_free(&p);
}
END_TEST

/* What a plan of a staged layer in f16 is, which nothing is compiled for. */
static void describe_staged(clattn_context *context, clattn_tensor weights, char rows[512], char why[8192], size_t *workspace) {
    clattn_mha_desc desc = CLATTN_MHA_DESC_INIT;
    desc.x = desc.out = clattn_tensor_bhld(CLATTN_F16, 1, 1, 40, 64);
    desc.w_q = desc.w_k = desc.w_v = desc.w_o = clattn_tensor_bhld(CLATTN_F16, 1, 1, 64, 64);
    desc.weights = weights;
    desc.heads_q = 2;
    clattn_plan *plan;
    const clattn_plan_options *options = OPTIONS(.algorithm = CLATTN_ALGORITHM_STAGED);
    assert_ok(context, clattn__plan_create(context, &clattn__operator_mha, &desc, options, true, &plan));
    clattn_plan_info info = {.struct_size = sizeof info};
    assert_ok(context, clattn_plan_get_info(plan, &info));
    snprintf(rows, 512, "%s", info.row);
    clattn_plan_explain(plan, why, 8192);
    *workspace = info.workspace_bytes;
    clattn_plan_destroy(plan);
}

/* Where fragments take q, k and v as they are, nothing is copied, and the plan says so. */
START_TEST(a_staged_layer_on_fragments_converts_nothing) {
    const clattn_tensor weights = clattn_tensor_bhld(CLATTN_F32, 1, 2, 40, 40);
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        char rows[512], converted_rows[512], why[8192], converted_why[8192];
        size_t workspace, converted_workspace;
        if (!context || !context->device.has_gpu_family || context->device.has_cpu_family) continue;
        if (context->device.local_bytes < 48 * 1024) {
            printf("%s: local memory for no row of NVIDIA's fragments\n", context->device.info.id);
            continue;
        }
        describe_staged(context, weights, converted_rows, converted_why, &converted_workspace);
        emulate_layout(MMA_NVIDIA);
        describe_staged(context, weights, rows, why, &workspace);
        emulate_layout(0);
        ck_assert_msg(strstr(converted_rows, "copy") && strstr(converted_rows, "+scores_64x64"), "%s", converted_rows);
        ck_assert_msg(!strstr(rows, "copy") && strstr(rows, "+scores_mma") && strstr(rows, "+weighted_mma"), "%s", rows);
        ck_assert_msg(strstr(converted_why, "q and k converted from f16") && strstr(converted_why, "v converted from f16"), "%s",
                      converted_why);
        ck_assert_msg(strstr(why, "q and k taken as stored, f16") && strstr(why, "v taken as stored, f16"), "%s", why);
        ck_assert_uint_eq(converted_workspace - workspace, 4 * 2 * 40 * 32 * sizeof(float)); /* q, k, v and their heads */
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("mha");
    TCase *tests = tcase_create("mha");
    tcase_add_loop_test(tests, every_shape_on_every_row, 0, COUNT(cases));
    tcase_add_loop_test(tests, every_shape_in_16_bits, 0, COUNT(cases));
    tcase_add_test(tests, any_layout_is_bitwise_the_packed_one);
    tcase_add_test(tests, a_sample_alone_equals_itself_in_a_batch);
    tcase_add_test(tests, a_staged_layer_on_fragments_converts_nothing);
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
