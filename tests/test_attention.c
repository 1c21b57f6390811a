/* Attention: one table of shapes, on every device, by every kernel row, against the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_problem.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

#define TOP_LEFT .causal = 1, .align = CLATTN_ALIGN_TOP_LEFT
#define BOTTOM_RIGHT .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT
#define PAST(n) .causal = 1, .align = CLATTN_ALIGN_PAST, .position = (n)
#define OFFSET(n) .causal = 1, .align = CLATTN_ALIGN_OFFSET, .position = (n)
#define FAR ((int64_t)1 << 61) /* as far as a position may lie */
#define SCALE(s) .has_scale = 1, .scale = (s)

static const attention_case fixed_cases[] = {
    /*                        batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim */
    {"ones",                      1, 1, 1,   1,   1,   1,   1},
    {"primes",                    2, 3, 3,  13,  17,   7,   5},
    {"two heads a group",         2, 6, 3,  19,  31,  16,  16},
    {"all heads one group",       1, 5, 1,  23,  29,  32,  32},
    {"more queries than keys",    1, 2, 2,  83,   3,   8,   8},
    {"more keys than queries",    1, 2, 2,   3, 301,  24,  24},
    {"one query",                 2, 4, 2,   1, 203,  64,  64},
    {"one key",                   2, 4, 2,  53,   1,  64,  64},
    {"value wider",               1, 2, 2,  11,  23,   8,  72},
    {"value narrower",            1, 2, 2,  11,  23,  72,   8},
    {"value of one",              1, 2, 1,  37,  41,  64,   1},
    {"head of one",               1, 2, 1,  37,  41,   1,  64},
    {"several tiles",             1, 2, 2, 131, 197,  64,  64},
    {"wide heads",                1, 1, 1,  65,  67, 128, 128},
    /* zero lengths */
    {"no batch",                  0, 2, 2,   5,   7,   8,   8},
    {"no heads",                  2, 0, 2,   5,   7,   8,   8},
    {"no heads at all",           2, 0, 0,   5,   7,   8,   8},
    {"no queries",                2, 2, 2,   0,   7,   8,   8},
    {"no keys",                   2, 2, 2,   5,   0,   8,   8},
    {"no keys, causal",           2, 2, 2,   5,   0,   8,   8, BOTTOM_RIGHT},
    {"no head_dim",               2, 2, 2,   5,   7,   0,   8},
    {"no head_dim, scaled",       2, 2, 2,   5,   7,   0,   8, SCALE(2)},
    {"no value_dim",              2, 2, 2,   5,   7,   8,   0},
    /* causal */
    {"square, top-left",          1, 2, 2,  71,  71,  16,  16, TOP_LEFT},
    {"square, bottom-right",      1, 2, 2,  71,  71,  16,  16, BOTTOM_RIGHT},
    {"long keys, top-left",       1, 2, 1,  53, 130,  16,  16, TOP_LEFT},
    {"long keys, bottom-right",   1, 2, 1,  53, 130,  16,  16, BOTTOM_RIGHT},
    {"long queries, top-left",    1, 2, 1, 130,  53,  16,  16, TOP_LEFT},
    {"long queries, bottom-right", 1, 2, 1, 130, 53,  16,  16, BOTTOM_RIGHT},
    {"one query, top-left",       1, 2, 2,   1, 100,  16,  16, TOP_LEFT},
    {"one query, bottom-right",   1, 2, 2,   1, 100,  16,  16, BOTTOM_RIGHT},
    {"past of nothing",           1, 2, 2,   9,   9,  16,  16, PAST(0)},
    {"past",                      1, 2, 2,   9,  40,  16,  16, PAST(31)},
    {"past beyond the keys",      1, 2, 2,   9,  40,  16,  16, PAST(1000000)},
    {"past without end",          1, 2, 2,   9,  40,  16,  16, PAST(FAR)},
    {"offset 0",                  1, 2, 2,  33,  33,  16,  16, OFFSET(0)},
    {"offset 1",                  1, 2, 2,  33,  33,  16,  16, OFFSET(1)},
    {"offset -1",                 1, 2, 2,  33,  33,  16,  16, OFFSET(-1)},
    {"offset -20",                1, 2, 2,  70,  70,  16,  16, OFFSET(-20)},
    {"offset before all rows",    1, 2, 2,  33,  33,  16,  16, OFFSET(-33)},
    {"offset of one live pair",   1, 2, 2,  33,  33,  16,  16, OFFSET(-32)},
    {"offset far below",          1, 2, 2,  33,  33,  16,  16, OFFSET(-1000000)},
    {"offset far above",          1, 2, 2,  33,  33,  16,  16, OFFSET(1000000)},
    {"least offset",              1, 2, 2,  33,  33,  16,  16, OFFSET(-FAR)},
    {"greatest offset",           1, 2, 2,  33,  33,  16,  16, OFFSET(FAR)},
    {"causal, several tiles",     1, 2, 2, 150, 150,  64,  64, TOP_LEFT},
    {"causal, groups and values", 2, 4, 2,  45,  77,  40,  24, BOTTOM_RIGHT},
    /* scale */
    {"scale 0.3",                 1, 2, 2,  21,  34,  16,  16, SCALE(0.3f)},
    {"scale 0",                   1, 2, 2,  21,  34,  16,  16, SCALE(0)},
    {"scale -1",                  1, 2, 2,  21,  34,  16,  16, SCALE(-1)},
    {"logits of 1e4",             1, 2, 2,  90, 150,  64,  64, .amplitude = 1e4f},
    {"logits of 1e4, causal",     1, 2, 2,  90, 150,  64,  64, TOP_LEFT, .amplitude = 1e4f},
    {"logits of 1e-4",            1, 2, 2,  40,  50,  64,  64, .amplitude = 1e-4f},
};

static const int64_t dims[] = {2,  3,   4,   5,   8,   9,   15,  16,  17,  24,  31,  32,  33,  47,  48,  49,  63, 65,
                               72, 80,  95,  96,  97,  112, 127, 129, 160, 192, 255, 256, 257, 320, 511, 512, 575, 576};

static attention_case cases[512];
static char case_names[512][48];
static size_t case_count;

static void add_case(attention_case c) {
    if (case_count == COUNT(cases)) {
        fprintf(stderr, "more cases than there is room for\n");
        exit(EXIT_FAILURE);
    }
    cases[case_count++] = c;
}

static void add_named(const char *what, int64_t n, attention_case c) {
    char *name = case_names[case_count];
    snprintf(name, sizeof case_names[0], "%s %lld", what, (long long)n);
    c.name = name;
    add_case(c);
}

enum { FUSED = ROLE_BIT(ATTENTION) };
enum { STAGED = ROLE_BIT(SCORES) | ROLE_BIT(MASK) | ROLE_BIT(SOFTMAX) | ROLE_BIT(WEIGHTED_VALUES) };

/* Lengths just below, at and above the tile sizes of the table. */
static void add_tiles(const char *macro, bool of_keys) {
    int64_t tiles[64];
    size_t count = row_macro_values(macro, FUSED | STAGED, tiles, COUNT(tiles));
    for (size_t n = 0; n < count; n++) {
        for (int64_t len = tiles[n] - 1; len <= tiles[n] + 1; len++) {
            attention_case c = {NULL, 1, 2, 1, of_keys ? 21 : len, of_keys ? len : 21, 32, 32};
            add_named(of_keys ? "key tile" : "query tile", len, c);
            c.causal = 1;
            c.align = CLATTN_ALIGN_BOTTOM_RIGHT;
            add_named(of_keys ? "causal key tile" : "causal query tile", len, c);
        }
    }
}

static void make_cases(void) {
    for (size_t n = 0; n < COUNT(fixed_cases); n++) add_case(fixed_cases[n]);
    for (size_t n = 0; n < COUNT(dims); n++) {
        add_named("dim", dims[n], (attention_case){NULL, 1, 1, 1, 9, 19, dims[n], dims[n]});
    }
    add_tiles("TILE_Q", false);
    add_tiles("TILE_M", false);
    add_tiles("TILE_KV", true);
    add_tiles("TILE_N", true);
}

/* ---- every row ---------------------------------------------------------------------------------------------------- */

static void check_outputs(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    attention_results r = attention_run(context, p, LAYOUT_BHLD, algorithm, attention_outputs(p, algorithm));
    attention_assert_close(&r, p, where);
    attention_results_free(&r);
}

/* From a shape that is drawn on: programs are built for the first shapes alone, see support.c. */
START_TEST(every_shape_on_every_row) {
    const uint64_t n = (test_seed() % case_count + (uint64_t)_i) % case_count;
    rng r = rng_make(n);
    attention_problem p = attention_problem_make(&cases[n], &r);
    attention_on_every_row(&p, check_outputs);
    attention_problem_free(&p);
}
END_TEST

/* ---- optional outputs --------------------------------------------------------------------------------------------- */

static const attention_case mixed_cases[] = {
    {"full, groups", 2, 4, 2, 29, 70, 40, 24},
    {"causal, groups", 2, 4, 2, 50, 37, 24, 40, BOTTOM_RIGHT},
};

/* Whatever else is asked for, the output is bitwise the same from the same algorithm. */
static void check_subsets(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    attention_results plain = attention_run(context, p, LAYOUT_BHLD, algorithm, 0);
    for (int want = 0; want <= attention_outputs(p, algorithm); want++) {
        attention_results r = attention_run(context, p, LAYOUT_BHLD, algorithm, want);
        attention_assert_close(&r, p, where);
        assert_same_values(r.data[CLATTN_TENSOR_OUT], plain.data[CLATTN_TENSOR_OUT], attention_count(p, CLATTN_TENSOR_OUT),
                           where, "out, when other outputs are asked for,");
        attention_results_free(&r);
    }
    attention_results_free(&plain);
}

START_TEST(optional_outputs) {
    rng r = rng_make(1000 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&mixed_cases[_i], &r);
    attention_on_every_row(&p, check_subsets);
    attention_problem_free(&p);
}
END_TEST

/* ---- layouts ------------------------------------------------------------------------------------------------------ */

static void check_layouts(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    const int want = attention_outputs(p, algorithm);
    attention_results packed = attention_run(context, p, LAYOUT_BHLD, algorithm, want);
    attention_assert_close(&packed, p, where);
    for (layout l = LAYOUT_BHLD + 1; l < LAYOUT_COUNT; l++) {
        attention_results r = attention_run(context, p, l, algorithm, want);
        char what[192];
        snprintf(what, sizeof what, "%s, %s, %s against bhld", where, p->c.name, layout_name(l));
        attention_assert_same(&r, &packed, p, what);
        attention_results_free(&r);
    }
    attention_results_free(&packed);
}

START_TEST(any_layout_is_bitwise_the_packed_one) {
    rng r = rng_make(2000 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&mixed_cases[_i], &r);
    attention_on_every_row(&p, check_layouts);
    attention_problem_free(&p);
}
END_TEST

/* Run with given views and memory for q, k, v; packed out. The caller frees. */
static float *run_views(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm,
                        const clattn_tensor views[3], float *const data[3]) {
    clattn_attention_desc desc = attention_desc(p, LAYOUT_BHLD, 0);
    desc.q = views[0];
    desc.k = views[1];
    desc.v = views[2];
    guarded out = guarded_output(desc.out);
    const clattn_arg args[] = {
        {CLATTN_TENSOR_OUT, out.data, 0},
        {CLATTN_TENSOR_V, data[2], 0},
        {CLATTN_TENSOR_K, data[1], 0},
        {CLATTN_TENSOR_Q, data[0], 0},
    };
    assert_ok(context, clattn_attention(context, &desc, OPTIONS(.algorithm = algorithm), args, COUNT(args)));
    ck_assert(guarded_intact(&out));
    float *result = guarded_result(&out);
    guarded_free(&out);
    return result;
}

static const clattn_tensor_id qkv[] = {CLATTN_TENSOR_Q, CLATTN_TENSOR_K, CLATTN_TENSOR_V};

/* q, k and v as slices of one (batch, len, 3 * heads * dim) product. */
static void check_packed_qkv(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm,
                             const char *where) {
    const attention_case *c = &p->c;
    const clattn_tensor whole = clattn_tensor_blhd(CLATTN_F32, c->batch, 3 * c->heads_q, c->len_q, c->head_dim);
    clattn_tensor slice = whole;
    slice.size[1] = c->heads_q;
    float *nothing = test_alloc((size_t)clattn__tensor_elements(&whole), sizeof(float)), *data[3];
    guarded memory = guarded_input(whole, nothing);
    for (int n = 0; n < 3; n++) {
        float *packed = narrowed(p->data[qkv[n]], attention_count(p, qkv[n]));
        data[n] = (float *)memory.data + n * c->heads_q * whole.stride[1];
        view_scatter(&slice, data[n], packed);
        free(packed);
    }
    float *result = run_views(context, p, algorithm, (clattn_tensor[]){slice, slice, slice}, data);
    attention_assert_out(result, p, where);
    free(result);
    free(nothing);
    guarded_free(&memory);
}

START_TEST(packed_qkv) {
    static const attention_case c = {"packed qkv", 2, 3, 3, 47, 47, 24, 24, TOP_LEFT};
    rng r = rng_make(2100);
    attention_problem p = attention_problem_make(&c, &r);
    attention_on_every_row(&p, check_packed_qkv);
    attention_problem_free(&p);
}
END_TEST

/* One key and value head in memory, which every batch and head sees through strides of 0. */
static void check_broadcast(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm,
                            const char *where) {
    const attention_case *c = &p->c;
    const clattn_tensor k = layout_broadcast(c->batch, c->heads_kv, c->len_kv, c->head_dim);
    const clattn_tensor v = layout_broadcast(c->batch, c->heads_kv, c->len_kv, c->value_dim);
    guarded queries = guarded_values(p->desc.q, p->data[CLATTN_TENSOR_Q], false);
    guarded keys = guarded_values(k, p->data[CLATTN_TENSOR_K], false),
            values = guarded_values(v, p->data[CLATTN_TENSOR_V], false);
    float *const data[3] = {queries.data, keys.data, values.data};
    float *result = run_views(context, p, algorithm, (clattn_tensor[]){p->desc.q, k, v}, data);
    attention_assert_out(result, p, where);
    free(result);
    guarded_free(&values);
    guarded_free(&keys);
    guarded_free(&queries);
}

static void repeat_first(double *data, int64_t count, int64_t period) {
    for (int64_t n = period; n < count; n++) data[n] = data[n - period];
}

START_TEST(broadcast_keys_and_values) {
    static const attention_case c = {"broadcast", 2, 4, 2, 31, 45, 24, 16};
    rng r = rng_make(2200);
    attention_problem p = attention_problem_make(&c, &r);
    repeat_first(p.data[CLATTN_TENSOR_K], c.batch * c.heads_kv * c.len_kv * c.head_dim, c.len_kv * c.head_dim);
    repeat_first(p.data[CLATTN_TENSOR_V], c.batch * c.heads_kv * c.len_kv * c.value_dim, c.len_kv * c.value_dim);
    attention_problem_solve(&p);
    attention_on_every_row(&p, check_broadcast);
    attention_problem_free(&p);
}
END_TEST

/* Strides of dimensions of size 1 mean nothing: every layout but the packed one has junk there. */
static void check_single_strides(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm,
                                 const char *where) {
    attention_results r = attention_run(context, p, LAYOUT_BLHD, algorithm, attention_outputs(p, algorithm));
    attention_assert_close(&r, p, where);
    attention_results_free(&r);
}

START_TEST(strides_of_single_dimensions_are_ignored) {
    static const attention_case single_cases[] = {
        {"one batch and head", 1, 1, 1, 20, 30, 16, 16},
        {"one of all", 1, 1, 1, 1, 1, 1, 1},
        {"one query and dim", 2, 2, 2, 1, 30, 1, 16},
    };
    rng r = rng_make(2300 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&single_cases[_i], &r);
    attention_on_every_row(&p, check_single_strides);
    attention_problem_free(&p);
}
END_TEST

/* ---- special values ----------------------------------------------------------------------------------------------- */

static const attention_case special_case = {"special values", 2, 4, 2, 60, 90, 24, 24, TOP_LEFT};

/* Keys that no query may see are NaN and infinite: nothing changes. */
START_TEST(masked_nan_never_arrives) {
    rng r = rng_make(3000);
    attention_problem p = attention_problem_make(&special_case, &r);
    const attention_case *c = &p.c;
    const size_t count = (size_t)(c->batch * c->heads_q * c->len_q * c->value_dim);
    double *clean = test_alloc(count, sizeof *clean);
    memcpy(clean, p.expected[CLATTN_TENSOR_OUT].oracle, count * sizeof *clean);
    for (int64_t head = 0; head < c->batch * c->heads_kv; head++) {
        for (int64_t j = c->len_q; j < c->len_kv; j++) {
            float poison = j % 3 == 0 ? NAN : j % 3 == 1 ? INFINITY : -INFINITY;
            for (int64_t d = 0; d < c->head_dim; d++)
                p.data[CLATTN_TENSOR_K][(head * c->len_kv + j) * c->head_dim + d] = poison;
            for (int64_t d = 0; d < c->value_dim; d++)
                p.data[CLATTN_TENSOR_V][(head * c->len_kv + j) * c->value_dim + d] = poison;
        }
    }
    attention_problem_solve(&p);
    ck_assert_mem_eq(p.expected[CLATTN_TENSOR_OUT].oracle, clean, count * sizeof *clean);
    attention_on_every_row(&p, check_outputs);
    free(clean);
    attention_problem_free(&p);
}
END_TEST

/* One NaN or infinite element of q, k: the rows that see it are what the oracle says, all others are as before. */
START_TEST(live_special_scores_stay_in_their_rows) {
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    rng r = rng_make(3100 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&special_case, &r);
    const attention_case *c = &p.c;
    const float special = specials[_i % 3];
    if (_i / 3 == 0) {
        p.data[CLATTN_TENSOR_Q][(3 * c->len_q + 17) * c->head_dim + 5] = special; /* head 3, query 17 */
    } else {
        p.data[CLATTN_TENSOR_K][(1 * c->len_kv + 33) * c->head_dim + 5] = special; /* batch 0, head 1 of keys, key 33 */
    }
    attention_problem_solve(&p);
    attention_on_every_row(&p, check_outputs);
    attention_problem_free(&p);
}
END_TEST

/* Scores of -infinity: in some rows all of them, in others all but a few. */
START_TEST(scores_of_minus_infinity) {
    rng r = rng_make(3200);
    attention_problem p = attention_problem_make(&special_case, &r);
    const attention_case *c = &p.c;
    for (int64_t row = 0; row < c->batch * c->heads_q * c->len_q; row++)
        p.data[CLATTN_TENSOR_Q][row * c->head_dim] = fabs(p.data[CLATTN_TENSOR_Q][row * c->head_dim]);
    for (int64_t n = 0; n < c->batch * c->heads_kv * c->len_kv; n++) {
        if (n % c->len_kv < 40 || n % 3 == 0) p.data[CLATTN_TENSOR_K][n * c->head_dim] = -INFINITY;
    }
    attention_problem_solve(&p);
    const double *lse = p.expected[CLATTN_TENSOR_LSE].oracle;
    ck_assert(lse[0] == -INFINITY && isfinite(lse[50]));
    attention_on_every_row(&p, check_outputs);
    attention_problem_free(&p);
}
END_TEST

/* ---- promises ----------------------------------------------------------------------------------------------------- */

static void check_repeat(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    const int want = attention_outputs(p, algorithm);
    attention_results first = attention_run(context, p, LAYOUT_BHLD, algorithm, want);
    for (int n = 0; n < 3; n++) {
        attention_results again = attention_run(context, p, LAYOUT_BHLD, algorithm, want);
        attention_assert_same(&again, &first, p, where);
        attention_results_free(&again);
    }
    attention_results_free(&first);
}

START_TEST(runs_repeat_bitwise) {
    static const attention_case c = {"repeat", 3, 4, 2, 77, 131, 48, 32, BOTTOM_RIGHT};
    rng r = rng_make(4000);
    attention_problem p = attention_problem_make(&c, &r);
    attention_on_every_row(&p, check_repeat);
    attention_problem_free(&p);
}
END_TEST

/* Heads of a problem without options: those that share key head `kv` of the batch, whose rows a kernel may put into lanes together. */
static attention_problem group_alone(const attention_problem *p, int64_t kv) {
    attention_problem alone = *p;
    const attention_case *c = &p->c;
    const int64_t ratio = c->heads_q / c->heads_kv;
    clattn_attention_desc *d = &alone.desc;
    clattn_tensor *const of_queries[] = {&d->q, &d->out, &d->lse, &d->scores, &d->weights}, *const of_keys[] = {&d->k, &d->v};
    for (size_t n = 0; n < COUNT(of_queries); n++) of_queries[n]->size[0] = 1, of_queries[n]->size[1] = ratio;
    for (size_t n = 0; n < COUNT(of_keys); n++) of_keys[n]->size[0] = of_keys[n]->size[1] = 1;
    alone.data[CLATTN_TENSOR_Q] += kv * ratio * c->len_q * c->head_dim;
    alone.data[CLATTN_TENSOR_K] += kv * c->len_kv * c->head_dim;
    alone.data[CLATTN_TENSOR_V] += kv * c->len_kv * c->value_dim;
    return alone;
}

static void check_sample(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    const attention_case *c = &p->c;
    attention_results whole = attention_run(context, p, LAYOUT_BHLD, algorithm, WANT_LSE);
    const int64_t rows = c->heads_q / c->heads_kv * c->len_q, count = rows * c->value_dim;
    for (int64_t kv = 0; kv < c->batch * c->heads_kv; kv++) {
        const attention_problem alone = group_alone(p, kv);
        attention_results one = attention_run(context, &alone, LAYOUT_BHLD, algorithm, WANT_LSE);
        char what[160];
        snprintf(what, sizeof what, "%s, heads of key head %lld alone", where, (long long)kv);
        assert_same_values(one.data[CLATTN_TENSOR_OUT], whole.data[CLATTN_TENSOR_OUT] + kv * count, count, what, "out");
        assert_same_values(one.data[CLATTN_TENSOR_LSE], whole.data[CLATTN_TENSOR_LSE] + kv * rows, rows, what, "lse");
        attention_results_free(&one);
    }
    attention_results_free(&whole);
}

START_TEST(a_sample_alone_equals_itself_in_a_batch) {
    static const attention_case c = {"batch", 3, 4, 2, 53, 91, 40, 24};
    rng r = rng_make(4100);
    attention_problem p = attention_problem_make(&c, &r);
    attention_on_every_row(&p, check_sample);
    attention_problem_free(&p);
}
END_TEST

/* The same numbers but those of one row, newly allocated. */
static double *with_other_row(const double *data, int64_t count, int64_t row, int64_t dim) {
    double *other = test_alloc((size_t)count, sizeof *other);
    memcpy(other, data, (size_t)count * sizeof *other);
    for (int64_t d = 0; d < dim; d++) other[row * dim + d] += 1;
    return other;
}

/* Change key and value t + 1 on: rows up to t must not notice, row t + 1 must. */
static void check_future(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    const attention_case *c = &p->c;
    attention_results before = attention_run(context, p, LAYOUT_BHLD, algorithm, WANT_LSE);
    for (int64_t t = 0; t + 1 < c->len_q; t += 13) {
        attention_problem other = *p;
        double *k = with_other_row(p->data[CLATTN_TENSOR_K], c->len_kv * c->head_dim, t + 1, c->head_dim);
        double *v = with_other_row(p->data[CLATTN_TENSOR_V], c->len_kv * c->value_dim, t + 1, c->value_dim);
        other.data[CLATTN_TENSOR_K] = k;
        other.data[CLATTN_TENSOR_V] = v;
        attention_results after = attention_run(context, &other, LAYOUT_BHLD, algorithm, WANT_LSE);
        const double *out = after.data[CLATTN_TENSOR_OUT], *out_before = before.data[CLATTN_TENSOR_OUT];
        char what[160];
        snprintf(what, sizeof what, "%s, key %lld changed, rows before it", where, (long long)(t + 1));
        assert_same_values(out, out_before, (t + 1) * c->value_dim, what, "out");
        assert_same_values(after.data[CLATTN_TENSOR_LSE], before.data[CLATTN_TENSOR_LSE], t + 1, what, "lse");
        for (int64_t i = t + 1; i < c->len_q; i++) {
            if (memcmp(out + i * c->value_dim, out_before + i * c->value_dim, (size_t)c->value_dim * sizeof *out) != 0)
                continue;
            ck_abort_msg("%s, key %lld changed and row %lld did not", where, (long long)(t + 1), (long long)i);
        }
        attention_results_free(&after);
        free(v);
        free(k);
    }
    attention_results_free(&before);
}

START_TEST(no_row_sees_the_future) {
    static const attention_case c = {"future", 1, 1, 1, 90, 90, 32, 32, TOP_LEFT};
    rng r = rng_make(4200);
    attention_problem p = attention_problem_make(&c, &r);
    attention_on_every_row(&p, check_future);
    attention_problem_free(&p);
}
END_TEST

/* ---- the oracle --------------------------------------------------------------------------------------------------- */

/* Two keys with scores ln 3 and 0: weights 3/4 and 1/4, by hand. */
START_TEST(known_values) {
    static const float q[] = {1}, k[] = {1.0986122886681098f, 0}, v[] = {4, 8};
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!context) continue;
        float out[] = {NAN};
        assert_ok(context, clattn_attention_f32(context, 1, 1, 1, 1, 2, 1, 0, q, k, v, out));
        ck_assert_msg(fabsf(out[0] - 5) < 1e-5f, "%s: %g", test_device_name(d), out[0]);
        assert_ok(context, clattn_attention_f32(context, 1, 1, 1, 1, 2, 1, 1, q, k, v, out));
        ck_assert_msg(out[0] == 4, "%s, causal: %g", test_device_name(d), out[0]);
    }
}
END_TEST

/* Written apart, oracle and naive computation must agree to fp32's accuracy. */
START_TEST(oracle_and_naive_agree) {
    rng r = rng_make(5000 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&cases[_i], &r);
    const double limit = cases[_i].amplitude > 1 ? 2e-2 : 1e-4;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        if (!p.expected[id].oracle) continue;
        verdict v = judge_values(p.expected[id].naive, &p.expected[id]);
        ck_assert_msg(v.ok && v.error < limit, "%s, %s: %g %s", cases[_i].name, clattn_tensor_name((clattn_tensor_id)id),
                      v.error, v.text);
    }
    attention_problem_free(&p);
}
END_TEST

int main(void) {
    make_cases();
    Suite *suite = suite_create("attention");
    TCase *tests = tcase_create("attention");
    tcase_add_test(tests, known_values);
    tcase_add_loop_test(tests, oracle_and_naive_agree, 0, (int)case_count);
    tcase_add_loop_test(tests, every_shape_on_every_row, 0, (int)case_count);
    tcase_add_loop_test(tests, optional_outputs, 0, COUNT(mixed_cases));
    tcase_add_loop_test(tests, any_layout_is_bitwise_the_packed_one, 0, COUNT(mixed_cases));
    tcase_add_test(tests, packed_qkv);
    tcase_add_test(tests, broadcast_keys_and_values);
    tcase_add_loop_test(tests, strides_of_single_dimensions_are_ignored, 0, 3);
    tcase_add_test(tests, masked_nan_never_arrives);
    tcase_add_loop_test(tests, live_special_scores_stay_in_their_rows, 0, 6);
    tcase_add_test(tests, scores_of_minus_infinity);
    tcase_add_test(tests, runs_repeat_bitwise);
    tcase_add_test(tests, a_sample_alone_equals_itself_in_a_batch);
    tcase_add_test(tests, no_row_sees_the_future);
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
