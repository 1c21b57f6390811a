/* Merging partial attention: the operator on random parts, and attention in parts against attention in one go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_problem.h"

/* ---- the operator ------------------------------------------------------------------------------------------------- */

typedef struct merge_case {
    const char *name;
    int64_t parts, batch, heads, len, dim;
    clattn_dtype from, to;
    bool sinks, by_member, lse;
} merge_case;

/* clang-format off */
static const merge_case cases[] = {
    {"one part",                  1, 2, 3, 17,  8, CLATTN_F32, CLATTN_F32, .lse = true},
    {"two parts",                 2, 2, 3, 17,  8, CLATTN_F32, CLATTN_F32, .lse = true},
    {"three parts, sinks",        3, 2, 3, 17,  7, CLATTN_F32, CLATTN_F32, .sinks = true, .lse = true},
    {"seven parts, sinks",        7, 2, 3, 17, 33, CLATTN_F32, CLATTN_F32, .sinks = true, .by_member = true, .lse = true},
    {"many parts",               65, 1, 2,  5, 64, CLATTN_F32, CLATTN_F32, .lse = true},
    {"no lse",                    3, 2, 3, 17,  8, CLATTN_F32, CLATTN_F32},
    {"no parts",                  0, 2, 3, 17,  8, CLATTN_F32, CLATTN_F32, .lse = true},
    {"no parts, sinks",           0, 2, 3, 17,  8, CLATTN_F32, CLATTN_F32, .sinks = true, .lse = true},
    {"no batch",                  0, 0, 3, 17,  8, CLATTN_F32, CLATTN_F32, .lse = true},
    {"no rows",                   2, 2, 3,  0,  8, CLATTN_F32, CLATTN_F32, .lse = true},
    {"no columns",                2, 2, 3,  4,  0, CLATTN_F32, CLATTN_F32, .lse = true},
    {"one of all",                2, 1, 1,  1,  1, CLATTN_F32, CLATTN_F32, .lse = true},
    {"wide",                      2, 1, 2,  3, 577, CLATTN_F32, CLATTN_F32, .lse = true},
    {"f16",                       3, 2, 3, 17, 24, CLATTN_F16, CLATTN_F16, .lse = true},
    {"bf16",                      3, 2, 3, 17, 24, CLATTN_BF16, CLATTN_BF16, .sinks = true, .lse = true},
    {"f32 to f16",                3, 2, 3, 17, 24, CLATTN_F32, CLATTN_F16, .lse = true},
    {"f32 to bf16",               3, 2, 3, 17, 24, CLATTN_F32, CLATTN_BF16, .lse = true},
    {"bf16 to f32",               3, 2, 3, 17, 24, CLATTN_BF16, CLATTN_F32, .lse = true},
};
/* clang-format on */

typedef struct merge_problem {
    merge_case c;
    clattn_merge_desc desc;
    double *out_parts, *lse_parts, *sinks;
    expected_values out, lse;
} merge_problem;

static int64_t count_of(const clattn_tensor *t) { return t->dtype == CLATTN_ABSENT ? 0 : clattn__tensor_elements(t); }

static clattn_merge_desc describe(const merge_case *c) {
    clattn_merge_desc d = CLATTN_MERGE_DESC_INIT;
    d.out_parts = clattn_tensor_bhld(c->from, c->parts * c->batch, c->heads, c->len, c->dim);
    d.lse_parts = clattn_tensor_bhld(CLATTN_F32, c->parts * c->batch, c->heads, c->len, 1);
    d.out = clattn_tensor_bhld(c->to, c->batch, c->heads, c->len, c->dim);
    if (c->lse) d.lse = clattn_tensor_bhld(CLATTN_F32, c->batch, c->heads, c->len, 1);
    if (c->sinks) d.sinks = clattn_tensor_bhld(CLATTN_F32, c->by_member ? c->batch : 1, c->heads, 1, 1);
    return d;
}

static double *draw(const clattn_tensor *t, double amplitude, rng *r) {
    double *values = test_alloc((size_t)count_of(t), sizeof *values);
    for (int64_t n = 0; n < count_of(t); n++) values[n] = clattn__round(t->dtype, amplitude * rng_fine(r));
    return values;
}

/* Some parts have no keys, and NaN where their result would be; of some rows none has. One row has a NaN. */
static void spoil(merge_problem *p, rng *r) {
    const int64_t rows = count_of(&p->desc.lse_parts), dim = p->c.dim, each = p->c.parts ? rows / p->c.parts : 0;
    for (int64_t row = 0; row < rows; row++) {
        if (rng_below(r, 4) && row % each % 5) continue;
        p->lse_parts[row] = -INFINITY;
        for (int64_t d = 0; d < dim; d++) p->out_parts[row * dim + d] = d % 2 ? NAN : INFINITY;
    }
    if (rows > 9) p->lse_parts[7] = NAN;
    if (rows > 9 && dim > 1) p->lse_parts[6] = 0, p->out_parts[6 * dim + 1] = NAN;
}

/* The sum that anyone would write, in fp32. */
static void solve_naive(merge_problem *p) {
    const merge_case *c = &p->c;
    const int64_t rows = c->batch * c->heads * c->len;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t h = row / c->len % c->heads, b = row / c->len / c->heads;
        const float sink = c->sinks ? (float)p->sinks[(c->by_member ? b : 0) * c->heads + h] : -INFINITY;
        float most = sink, sum = 0;
        for (int64_t part = 0; part < c->parts; part++) most = fmaxf(most, (float)p->lse_parts[part * rows + row]);
        if (most == -INFINITY) most = 0;
        for (int64_t part = 0; part < c->parts; part++) sum += expf((float)p->lse_parts[part * rows + row] - most);
        if (c->sinks) sum += expf(sink - most);
        p->lse.naive[row] = most + logf(sum);
        p->lse.magnitude[row] = 1 + fabs(p->lse.naive[row]);
        for (int64_t d = 0; d < c->dim; d++) {
            float total = 0;
            double magnitude = 0;
            for (int64_t part = 0; part < c->parts; part++) {
                const float weight = expf((float)p->lse_parts[part * rows + row] - most) / sum;
                const double value = p->out_parts[(part * rows + row) * c->dim + d];
                if (p->lse_parts[part * rows + row] == -INFINITY) continue;
                total += weight * (float)value;
                magnitude += fabs(weight * value) * (1 + fabs(p->lse_parts[part * rows + row]));
            }
            p->out.naive[row * c->dim + d] = clattn__round(c->to, total);
            p->out.magnitude[row * c->dim + d] = magnitude;
        }
    }
}

static expected_values room(int64_t rows, int64_t columns, double least) {
    double *of[3];
    for (int n = 0; n < 3; n++) of[n] = test_alloc((size_t)(rows * columns), sizeof **of);
    return (expected_values){of[0], of[1], of[2], rows, columns, 1.2e-7, least};
}

static clattn__view view_of(const clattn_tensor *t, double *data) {
    clattn__view view = clattn__view_of_doubles(data, t->size[0], t->size[1], t->size[2], t->size[3]);
    view.present = data != NULL;
    return view;
}

static merge_problem merge_make(const merge_case *c, rng *r) {
    merge_problem p = {.c = *c, .desc = describe(c)};
    const int64_t rows = c->batch * c->heads * c->len;
    p.out_parts = draw(&p.desc.out_parts, 1, r);
    p.lse_parts = draw(&p.desc.lse_parts, 3, r);
    if (c->sinks) p.sinks = draw(&p.desc.sinks, 3, r);
    spoil(&p, r);
    p.out = room(rows, c->dim, c->to == CLATTN_F16 ? 0x1p-24 : 1e-36);
    p.lse = room(rows, 1, 1e-36);
    const clattn__oracle_merge_args args = {
        .parts = c->parts,
        .out_parts = view_of(&p.desc.out_parts, p.out_parts),
        .lse_parts = view_of(&p.desc.lse_parts, p.lse_parts),
        .sinks = view_of(&p.desc.sinks, p.sinks),
        .out = view_of(&p.desc.out, p.out.oracle),
        .lse = clattn__view_of_doubles(p.lse.oracle, c->batch, c->heads, c->len, 1),
    };
    if (clattn__oracle_merge(&args) != CLATTN_OK) ck_abort_msg("the oracle is out of memory");
    solve_naive(&p);
    return p;
}

static void merge_free(merge_problem *p) {
    double *arrays[] = {p->out_parts, p->lse_parts, p->sinks, p->out.oracle, p->out.naive, p->out.magnitude,
                        p->lse.oracle, p->lse.naive, p->lse.magnitude};
    for (size_t n = 0; n < COUNT(arrays); n++) free(arrays[n]);
}

static void run_merge(clattn_context *context, const merge_problem *p, layout l, const char *where, double **out,
                      double **lse) {
    clattn_merge_desc desc = p->desc;
    clattn_tensor *const views[] = {&desc.out_parts, &desc.lse_parts, &desc.sinks, &desc.out, &desc.lse};
    for (size_t n = 0; n < COUNT(views); n++) {
        if (views[n]->dtype != CLATTN_ABSENT) *views[n] = layout_of(l, *views[n]);
    }
    bindings b = {0};
    bind_values(&b, CLATTN_TENSOR_OUT_PARTS, desc.out_parts, p->out_parts, false);
    bind_values(&b, CLATTN_TENSOR_LSE_PARTS, desc.lse_parts, p->lse_parts, false);
    bind_values(&b, CLATTN_TENSOR_SINKS, desc.sinks, p->sinks, false);
    bind_output(&b, CLATTN_TENSOR_OUT, desc.out);
    bind_output(&b, CLATTN_TENSOR_LSE, desc.lse);
    assert_ok(context, clattn_merge(context, &desc, NULL, b.args, b.count));
    assert_intact(&b, where);
    *out = bound_values(&b, CLATTN_TENSOR_OUT);
    *lse = bound_values(&b, CLATTN_TENSOR_LSE);
    bindings_free(&b);
}

static void check_merge(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    const merge_problem *p = data;
    double *first_out = NULL, *first_lse = NULL;
    (void)row;
    for (layout l = LAYOUT_BHLD; l < LAYOUT_COUNT; l++) {
        double *out, *lse;
        run_merge(context, p, l, where, &out, &lse);
        const verdict v = judge_values(out, &p->out), w = lse ? judge_values(lse, &p->lse) : v;
        if (!v.ok) ck_abort_msg("%s, %s, out: %s", where, p->c.name, v.text);
        if (!w.ok) ck_abort_msg("%s, %s, lse: %s", where, p->c.name, w.text);
        if (first_out) {
            assert_same_values(out, first_out, count_of(&p->desc.out), where, "out in another layout");
            assert_same_values(lse, first_lse, count_of(&p->desc.lse), where, "lse in another layout");
            free(out);
            free(lse);
        } else {
            first_out = out;
            first_lse = lse;
        }
    }
    free(first_out);
    free(first_lse);
}

START_TEST(random_parts_on_every_row) {
    rng r = rng_make((uint64_t)_i);
    merge_problem p = merge_make(&cases[_i], &r);
    for_every_row(ROLE_BIT(MERGE), &(clattn__params){0}, check_merge, &p);
    merge_free(&p);
}
END_TEST

/* ---- attention in parts ------------------------------------------------------------------------------------------- */

/* clang-format off */
#define CAUSAL .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT
static const attention_case whole_cases[] = {
    {"plain",     2, 4, 2, 23, 150, 24, 16},
    {"causal",    2, 4, 2, 23, 150, 24, 16, CAUSAL},
    {"masked",    2, 4, 2, 23, 150, 24, 16, .mask = {.given = true, .per_cent = 40, .whole_rows = true}, .poison = true},
    {"sinks",     2, 4, 2, 23, 150, 24, 16, CAUSAL, .sinks = true, .mask = {.given = true, .per_cent = 40, .whole_rows = true}},
    {"modified",  2, 4, 2, 23, 150, 24, 16, CAUSAL, .softcap = 4, .alibi = ALIBI_STANDARD, .sinks = true, .by_member = true,
     .bias = {.given = true, .per_cent = 10}},
    {"window",    2, 4, 2, 23, 150, 24, 16, CAUSAL, .has_window = 1, .left = 20, .right = -1},
};

/* Uneven, some empty. */
static const int64_t cuts[][9] = {{2, 0, 11, 150}, {3, 0, 100, 101, 150}, {7, 0, 0, 1, 40, 64, 64, 149, 150}};
/* clang-format on */

/* Columns first to end of (rows, columns) numbers, newly allocated. */
static double *columns_of(const double *data, int64_t count, int64_t columns, int64_t first, int64_t end) {
    const int64_t rows = count / columns, width = end - first;
    double *part = test_alloc((size_t)(rows * width), sizeof *part);
    for (int64_t row = 0; row < rows; row++) {
        memcpy(part + row * width, data + row * columns + first, (size_t)width * sizeof *part);
    }
    return part;
}

/* The keys first to end alone: positions stay what they are, sinks wait for the merge. */
static attention_problem part_of(const attention_problem *p, int64_t first, int64_t end) {
    static const clattn_tensor_id by_key[] = {CLATTN_TENSOR_K, CLATTN_TENSOR_V},
                                  by_pair[] = {CLATTN_TENSOR_MASK, CLATTN_TENSOR_BIAS};
    attention_problem part = *p;
    for (size_t n = 0; n < 2; n++) {
        clattn_tensor *t = attention_tensor(&part.desc, by_key[n]);
        const int64_t dim = t->size[3];
        part.data[by_key[n]] = columns_of(p->data[by_key[n]], count_of(t), p->keys * dim, first * dim, end * dim);
        t->size[2] = end - first;
        t->stride[1] = t->size[2] * dim;
        t->stride[0] = t->size[1] * t->stride[1];
        t = attention_tensor(&part.desc, by_pair[n]);
        if (t->dtype == CLATTN_ABSENT) continue;
        part.data[by_pair[n]] = columns_of(p->data[by_pair[n]], count_of(t), p->keys, first, end);
        *t = clattn_tensor_bhld(t->dtype, t->size[0], t->size[1], t->size[2], end - first);
    }
    clattn_attention_options *o = &part.desc.options;
    const bool placed = o->causal || o->has_window || o->alibi;
    o->align = placed ? CLATTN_ALIGN_OFFSET : CLATTN_ALIGN_TOP_LEFT;
    o->offset = placed ? naive_offset(p->c.align, p->c.len_q, p->keys, 0) - first : 0;
    o->sinks = (clattn_tensor){0};
    part.data[CLATTN_TENSOR_SINKS] = NULL;
    return part;
}

static void part_free(attention_problem *part) {
    free(part->data[CLATTN_TENSOR_K]);
    free(part->data[CLATTN_TENSOR_V]);
    free(part->data[CLATTN_TENSOR_MASK]);
    free(part->data[CLATTN_TENSOR_BIAS]);
}

static void check_cut(clattn_context *context, const attention_problem *p, const int64_t *cut, const char *where) {
    const int64_t rows = attention_count(p, CLATTN_TENSOR_LSE), dim = p->c.value_dim;
    merge_problem merge = {.c = {"parts of attention", cut[0], p->c.batch, p->c.heads_q, p->c.len_q, dim, CLATTN_F32,
                                 CLATTN_F32, p->c.sinks, p->c.by_member, true}};
    merge.desc = describe(&merge.c);
    merge.sinks = p->data[CLATTN_TENSOR_SINKS];
    merge.out_parts = test_alloc((size_t)(cut[0] * rows * dim), sizeof(double));
    merge.lse_parts = test_alloc((size_t)(cut[0] * rows), sizeof(double));
    for (int64_t n = 0; n < cut[0]; n++) {
        attention_problem part = part_of(p, cut[n + 1], cut[n + 2]);
        attention_results r = attention_run(context, &part, LAYOUT_BHLD, CLATTN_ALGORITHM_AUTO, WANT_LSE);
        memcpy(merge.out_parts + n * rows * dim, r.data[CLATTN_TENSOR_OUT], (size_t)(rows * dim) * sizeof(double));
        memcpy(merge.lse_parts + n * rows, r.data[CLATTN_TENSOR_LSE], (size_t)rows * sizeof(double));
        attention_results_free(&r);
        part_free(&part);
    }
    attention_results merged = {.row = "parts, merged"};
    run_merge(context, &merge, LAYOUT_BHLD, where, &merged.data[CLATTN_TENSOR_OUT], &merged.data[CLATTN_TENSOR_LSE]);
    attention_assert_close(&merged, p, where);
    attention_results_free(&merged);
    free(merge.out_parts);
    free(merge.lse_parts);
}

static void check_parts(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    (void)algorithm;
    for (size_t n = 0; n < COUNT(cuts); n++) check_cut(context, p, cuts[n], where);
}

START_TEST(parts_of_attention_are_the_whole) {
    rng r = rng_make(1000 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&whole_cases[_i], &r);
    attention_on_every_device(&p, check_parts);
    attention_problem_free(&p);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("merge");
    TCase *tests = tcase_create("merge");
    tcase_add_loop_test(tests, random_parts_on_every_row, 0, COUNT(cases));
    tcase_add_loop_test(tests, parts_of_attention_are_the_whole, 0, COUNT(whole_cases));
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
