/* Projections: shapes and layouts on every device, by every kernel row, against the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "naive.h"
#include "support.h"

enum { Q = 1, K = 2, V = 4, QKV = 7, BIAS = 8, X_KV = 16 };

typedef struct project_case {
    const char *name;
    int64_t batch, len_q, len_kv, d_in, d_kv; /* len_kv and d_kv with X_KV */
    int64_t heads_q, heads_kv, head_dim, value_dim;
    int parts;
    clattn_dtype dtype; /* 0: f32 */
} project_case;

static clattn_dtype type_of(const project_case *c) { return c->dtype ? c->dtype : CLATTN_F32; }

static float *draw(rng *r, const project_case *c, int64_t count) { return round_to(type_of(c), rng_floats(r, count, 1), count); }

static const project_case fixed_cases[] = {
    /*                     batch, len_q, len_kv, d_in, d_kv, heads_q, heads_kv, head_dim, value_dim */
    {"ones",                1,   1,  0,   1,  0,  1,  1,   1,   1, QKV},
    {"ones, bias",          1,   1,  0,   1,  0,  1,  1,   1,   1, QKV | BIAS},
    {"primes",              2,  13,  0,  17,  0,  3,  3,   7,   5, QKV | BIAS},
    {"groups",              2,  29,  0,  48,  0,  6,  2,  16,  24, QKV | BIAS},
    {"cross",               2,  11, 37,  24, 40,  4,  2,  16,  16, QKV | BIAS | X_KV},
    {"queries alone",       1,  19,  0,  33,  0,  2,  2,  31,  31, Q},
    {"keys alone",          1,  19,  0,  33,  0,  2,  2,  31,  31, K | BIAS},
    {"values of another",   1,  19, 23,  33, 35,  2,  2,  31,  31, V | X_KV},
    {"keys and values",     3,   1,  0, 128,  0,  8,  8,  16,  16, K | V},
    {"one long row",        1,   1,  0, 700,  0,  1,  1, 300, 300, QKV},
    {"deep",                1,   5,  0, 1500, 0,  1,  1,   9,   9, QKV | BIAS},
    {"several tiles",       1, 150,  0, 130,  0,  2,  2, 100, 100, QKV | BIAS},
    {"no batch",            0,   5,  0,   8,  0,  2,  2,   4,   4, QKV | BIAS},
    {"no words",            2,   0,  0,   8,  0,  2,  2,   4,   4, QKV | BIAS},
    {"no depth",            2,   5,  0,   0,  0,  2,  2,   4,   4, QKV | BIAS},
    {"no depth, no bias",   2,   5,  0,   0,  0,  2,  2,   4,   4, QKV},
    {"no columns",          2,   5,  0,   8,  0,  2,  2,   0,   4, QKV | BIAS},
    {"no heads",            2,   5,  0,   8,  0,  0,  2,   4,   4, QKV | BIAS},
};

static project_case cases[256];
static char case_names[256][48];
static size_t case_count;

static void add_tiles(const char *macro) {
    int64_t tiles[32];
    size_t count = row_macro_values(macro, ROLE_BIT(PROJECT), tiles, COUNT(tiles));
    for (size_t n = 0; n < count; n++) {
        for (int64_t size = tiles[n] - 1; size <= tiles[n] + 1 && case_count < COUNT(cases); size++) {
            char *name = case_names[case_count];
            snprintf(name, sizeof case_names[0], "%s %lld", macro, (long long)size);
            project_case c = {name, 1, 9, 0, 10, 0, 1, 1, 11, 12, Q | V | BIAS};
            if (macro[5] == 'M') c.len_q = size;
            if (macro[5] == 'K') c.d_in = size;
            if (macro[5] == 'N') c.head_dim = size;
            cases[case_count++] = c;
        }
    }
}

static void make_cases(void) {
    for (size_t n = 0; n < COUNT(fixed_cases); n++) cases[case_count++] = fixed_cases[n];
    add_tiles("TILE_M");
    add_tiles("TILE_N");
    add_tiles("TILE_K");
}

/* ---- one product -------------------------------------------------------------------------------------------------- */

typedef struct product {
    bool wanted;
    int64_t batch, heads, len, depth, dim;
    const float *x; /* of the problem */
    float *w, *bias;
    double *y, *magnitude;
    float *naive;
} product;

static void solve_oracle(const product *p, const float *x, const float *w, const float *bias, double *y) {
    const clattn__oracle_project_args args = {
        .x = view_of_floats(x, p->batch, 1, p->len, p->depth),
        .w = view_of_floats(w, 1, 1, p->depth, p->heads * p->dim),
        .bias = view_of_floats(bias, 1, 1, 1, p->heads * p->dim),
        .y = clattn__view_of_doubles(y, p->batch, p->heads, p->len, p->dim),
    };
    if (clattn__oracle_project(&args) != CLATTN_OK) ck_abort_msg("the oracle failed");
}

static product product_make(const project_case *c, int part, const float *x, rng *r) {
    const bool of_queries = part == Q, other = !of_queries && (c->parts & X_KV);
    product p = {.wanted = c->parts & part, .batch = c->batch, .x = x};
    p.heads = of_queries ? c->heads_q : c->heads_kv;
    p.len = other ? c->len_kv : c->len_q;
    p.depth = other ? c->d_kv : c->d_in;
    p.dim = part == V ? c->value_dim : c->head_dim;
    if (!p.wanted) return p;
    const int64_t columns = p.heads * p.dim, count = p.batch * p.len * columns;
    p.w = draw(r, c, p.depth * columns);
    p.bias = c->parts & BIAS ? draw(r, c, columns) : NULL;
    p.y = test_alloc((size_t)count, sizeof *p.y);
    p.magnitude = test_alloc((size_t)count, sizeof *p.magnitude);
    p.naive = test_alloc((size_t)count, sizeof *p.naive);
    solve_oracle(&p, x, p.w, p.bias, p.y);
    float *x_abs = absolute(x, p.batch * p.len * p.depth), *w_abs = absolute(p.w, p.depth * columns);
    float *bias_abs = absolute(p.bias, columns);
    solve_oracle(&p, x_abs, w_abs, bias_abs, p.magnitude);
    free(bias_abs);
    free(w_abs);
    free(x_abs);
    naive_project(p.batch, p.heads, p.len, p.depth, p.dim, x, p.w, p.bias, NULL, p.naive);
    round_to(type_of(c), p.naive, count);
    return p;
}

static void product_free(product *p) {
    free(p->w);
    free(p->bias);
    free(p->y);
    free(p->magnitude);
    free(p->naive);
}

/* ---- the problem -------------------------------------------------------------------------------------------------- */

typedef struct project_problem {
    project_case c;
    float *x, *x_kv;
    product products[3]; /* q, k, v */
} project_problem;

static project_problem problem_make(const project_case *c, rng *r) {
    project_problem p = {.c = *c};
    p.x = draw(r, c, c->batch * c->len_q * c->d_in);
    if (c->parts & X_KV) p.x_kv = draw(r, c, c->batch * c->len_kv * c->d_kv);
    const float *x_kv = p.x_kv ? p.x_kv : p.x;
    p.products[0] = product_make(c, Q, p.x, r);
    p.products[1] = product_make(c, K, x_kv, r);
    p.products[2] = product_make(c, V, x_kv, r);
    return p;
}

static void problem_free(project_problem *p) {
    for (int n = 0; n < 3; n++) product_free(&p->products[n]);
    free(p->x);
    free(p->x_kv);
}

typedef struct project_results {
    float *y[3];
} project_results;

static void results_free(project_results *r) {
    for (int n = 0; n < 3; n++) free(r->y[n]);
}

static const clattn_tensor_id w_ids[3] = {CLATTN_TENSOR_W_Q, CLATTN_TENSOR_W_K, CLATTN_TENSOR_W_V};
static const clattn_tensor_id b_ids[3] = {CLATTN_TENSOR_B_Q, CLATTN_TENSOR_B_K, CLATTN_TENSOR_B_V};
static const clattn_tensor_id y_ids[3] = {CLATTN_TENSOR_Q, CLATTN_TENSOR_K, CLATTN_TENSOR_V};

static clattn_project_qkv_desc make_desc(const project_problem *p, layout l) {
    const project_case *c = &p->c;
    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    desc.x = layout_view(l, c->batch, 1, c->len_q, c->d_in);
    if (p->x_kv) desc.x_kv = layout_view(l, c->batch, 1, c->len_kv, c->d_kv);
    clattn_tensor *const w[3] = {&desc.w_q, &desc.w_k, &desc.w_v};
    clattn_tensor *const b[3] = {&desc.b_q, &desc.b_k, &desc.b_v};
    clattn_tensor *const y[3] = {&desc.q, &desc.k, &desc.v};
    for (int n = 0; n < 3; n++) {
        const product *product = &p->products[n];
        if (!product->wanted) continue;
        *w[n] = layout_view(l, 1, 1, product->depth, product->heads * product->dim);
        if (product->bias) *b[n] = layout_view(l, 1, 1, 1, product->heads * product->dim);
        *y[n] = layout_view(l, product->batch, product->heads, product->len, product->dim);
    }
    clattn_tensor *const all[] = {&desc.x, &desc.x_kv, w[0], w[1], w[2], b[0], b[1], b[2], y[0], y[1], y[2]};
    for (size_t n = 0; n < COUNT(all); n++)
        if (all[n]->dtype != CLATTN_ABSENT) all[n]->dtype = type_of(c);
    return desc;
}

static project_results run(clattn_context *context, const project_problem *p, layout l, const char *where) {
    const clattn_project_qkv_desc desc = make_desc(p, l);
    const clattn_tensor w[3] = {desc.w_q, desc.w_k, desc.w_v}, bias[3] = {desc.b_q, desc.b_k, desc.b_v};
    const clattn_tensor y[3] = {desc.q, desc.k, desc.v};
    bindings b = {0};
    bind_input(&b, CLATTN_TENSOR_X, desc.x, p->x);
    bind_input(&b, CLATTN_TENSOR_X_KV, desc.x_kv, p->x_kv);
    for (int n = 0; n < 3; n++) {
        bind_input(&b, w_ids[n], w[n], p->products[n].w);
        bind_input(&b, b_ids[n], bias[n], p->products[n].bias);
        bind_output(&b, y_ids[n], y[n]);
    }
    assert_ok(context, clattn_project_qkv(context, &desc, NULL, b.args, b.count));
    assert_intact(&b, where);
    project_results results = {{bound_result(&b, CLATTN_TENSOR_Q), bound_result(&b, CLATTN_TENSOR_K),
                                bound_result(&b, CLATTN_TENSOR_V)}};
    bindings_free(&b);
    return results;
}

static void assert_results(const project_problem *p, const project_results *results, const char *where) {
    for (int n = 0; n < 3; n++) {
        const product *product = &p->products[n];
        if (!product->wanted) continue;
        const expected e = {product->y, product->naive, product->magnitude, product->batch * product->heads * product->len,
                            product->dim};
        assert_close(results->y[n], &e, "%s, %s, %s", where, p->c.name, clattn_tensor_name(y_ids[n]));
    }
}

/* ---- tests -------------------------------------------------------------------------------------------------------- */

static const clattn__params any_params = {.project.dtype = DTYPE_F32};

static void check_outputs(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    (void)row;
    project_results results = run(context, data, LAYOUT_BHLD, where);
    assert_results(data, &results, where);
    results_free(&results);
}

START_TEST(every_shape_on_every_row) {
    rng r = rng_make((uint64_t)_i);
    project_problem p = problem_make(&cases[_i], &r);
    for_every_row(ROLE_BIT(PROJECT), &any_params, check_outputs, &p);
    problem_free(&p);
}
END_TEST

/* By rows that take the type, those of each vendor's matrix units too, and by those for which it is converted. */
START_TEST(every_shape_in_16_bits) {
    rng r = rng_make(4000 + (uint64_t)_i);
    project_case c = cases[_i];
    c.dtype = rng_below(&r, 2) ? CLATTN_F16 : CLATTN_BF16;
    const clattn__params typed = {.project.dtype = (i32)c.dtype};
    project_problem p = problem_make(&c, &r);
    for_every_row(ROLE_BIT(PROJECT), &any_params, check_outputs, &p);
    for (int layout = MMA_NVIDIA; layout <= MMA_RDNA3; layout++) { /* Intel's has no row */
        emulate_layout(layout);
        for_every_row(ROLE_BIT(PROJECT), &typed, check_outputs, &p);
    }
    emulate_layout(0);
    problem_free(&p);
}
END_TEST

static const project_case layout_case = {"layouts", 2, 21, 34, 40, 24, 4, 2, 12, 20, QKV | BIAS | X_KV};

static void check_layouts(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    (void)row;
    const project_problem *p = data;
    project_results packed = run(context, p, LAYOUT_BHLD, where);
    for (layout l = LAYOUT_BHLD; l < LAYOUT_COUNT; l++) {
        project_results results = run(context, p, l, where);
        char what[192];
        snprintf(what, sizeof what, "%s, %s against bhld", where, layout_name(l));
        for (int n = 0; n < 3; n++) {
            const product *product = &p->products[n];
            assert_same(results.y[n], packed.y[n], product->batch * product->heads * product->len * product->dim, what,
                        clattn_tensor_name(y_ids[n]));
        }
        results_free(&results);
    }
    results_free(&packed);
}

START_TEST(any_layout_is_bitwise_the_packed_one) {
    rng r = rng_make(1000);
    project_problem p = problem_make(&layout_case, &r);
    for_every_row(ROLE_BIT(PROJECT), &any_params, check_layouts, &p);
    problem_free(&p);
}
END_TEST

static void check_sample(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    (void)row;
    const project_problem *p = data;
    const project_case *c = &p->c;
    project_results whole = run(context, p, LAYOUT_BHLD, where);
    for (int64_t b = 0; b < c->batch; b++) {
        project_problem alone = *p;
        alone.c.batch = 1;
        alone.x = p->x + b * c->len_q * c->d_in;
        for (int n = 0; n < 3; n++) alone.products[n].batch = 1;
        project_results one = run(context, &alone, LAYOUT_BHLD, where);
        for (int n = 0; n < 3; n++) {
            const int64_t count = p->products[n].heads * p->products[n].len * p->products[n].dim;
            assert_same(one.y[n], whole.y[n] + b * count, count, where, "a sample alone");
        }
        results_free(&one);
    }
    results_free(&whole);
}

START_TEST(a_sample_alone_equals_itself_in_a_batch) {
    static const project_case c = {"batch", 3, 37, 0, 70, 0, 4, 2, 12, 20, QKV | BIAS};
    rng r = rng_make(2000);
    project_problem p = problem_make(&c, &r);
    for_every_row(ROLE_BIT(PROJECT), &any_params, check_sample, &p);
    problem_free(&p);
}
END_TEST

/* A NaN in one word stays in that word's row. */
START_TEST(nan_stays_in_its_row) {
    static const project_case c = {"nan", 2, 23, 0, 34, 0, 2, 2, 12, 20, QKV};
    rng r = rng_make(3000);
    project_problem p = problem_make(&c, &r);
    p.x[(1 * c.len_q + 7) * c.d_in + 3] = NAN;
    for (int n = 0; n < 3; n++) {
        product *product = &p.products[n];
        solve_oracle(product, p.x, product->w, product->bias, product->y);
    }
    for_every_row(ROLE_BIT(PROJECT), &any_params, check_outputs, &p);
    problem_free(&p);
}
END_TEST

int main(void) {
    make_cases();
    Suite *suite = suite_create("project");
    TCase *tests = tcase_create("project");
    tcase_add_loop_test(tests, every_shape_on_every_row, 0, (int)case_count);
    tcase_add_loop_test(tests, every_shape_in_16_bits, 0, (int)case_count);
    tcase_add_test(tests, any_layout_is_bitwise_the_packed_one);
    tcase_add_test(tests, a_sample_alone_equals_itself_in_a_batch);
    tcase_add_test(tests, nan_stays_in_its_row);
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
