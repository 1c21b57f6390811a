/* The recurrences: on every device, by every kernel row, against the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "naive.h"
#include "support.h"

enum { BIAS = 1, H_0 = 2, C_0 = 4, H_N = 8, C_N = 16, STATES = H_0 | C_0 | H_N | C_N };

typedef struct recurrence_case {
    const char *name;
    clattn_cell cell;
    int64_t batch, steps, d_in, hidden;
    int parts; /* c_0 and c_n only of an lstm */
    float forget_bias;
} recurrence_case;

#define BOTH(name, ...) {name ", rnn", CLATTN_CELL_RNN, __VA_ARGS__}, {name ", lstm", CLATTN_CELL_LSTM, __VA_ARGS__}

static const recurrence_case fixed_cases[] = {
    /*                     batch, steps, d_in, hidden */
    BOTH("ones",               1,  1,   1,   1, 0),
    BOTH("ones, states",       1,  1,   1,   1, BIAS | STATES),
    BOTH("primes",             3, 11,  13,  17, BIAS | STATES),
    BOTH("plain",              2, 20,  16,  32, 0),
    BOTH("bias",               2, 20,  16,  32, BIAS),
    BOTH("first state",        2,  7,  16,  32, H_0),
    BOTH("first states",       2,  7,  16,  32, H_0 | C_0),
    BOTH("last states",        2,  7,  16,  32, H_N | C_N),
    BOTH("one step",           4,  1,  24,  48, BIAS | STATES),
    BOTH("long",               1, 90,   5,   9, BIAS | STATES),
    BOTH("wide",               1,  5,  40, 200, BIAS | STATES),
    BOTH("many members",      19,  4,  10,  24, BIAS | STATES),
    BOTH("no batch",           0,  5,   8,   8, BIAS | STATES),
    BOTH("no steps",           2,  0,   8,   8, BIAS | STATES),
    BOTH("no input",           2,  5,   0,   8, BIAS | STATES),
    BOTH("no width",           2,  5,   8,   0, BIAS | STATES),
    {"forget bias",  CLATTN_CELL_LSTM, 2, 9, 16, 20, BIAS | STATES, 1},
    {"forgets all",  CLATTN_CELL_LSTM, 2, 9, 16, 20, BIAS | STATES, -50},
};

static recurrence_case cases[256];
static char case_names[256][48];
static size_t case_count;

enum {
    STEPS = ROLE_BIT(RNN_STEP) | ROLE_BIT(LSTM_STEP),
    LOOPS = ROLE_BIT(RNN_LOOP) | ROLE_BIT(LSTM_LOOP),
};

static void add_tiles(const char *macro, bool of_batch) {
    int64_t tiles[32];
    size_t count = row_macro_values(macro, STEPS | LOOPS, tiles, COUNT(tiles));
    for (size_t n = 0; n < count; n++) {
        for (int64_t size = tiles[n] - 1; size <= tiles[n] + 1; size++) {
            for (clattn_cell cell = CLATTN_CELL_RNN; cell <= CLATTN_CELL_LSTM && case_count < COUNT(cases); cell++) {
                snprintf(case_names[case_count], sizeof case_names[0], "%s %lld", macro, (long long)size);
                cases[case_count] = (recurrence_case){
                    case_names[case_count], cell, of_batch ? size : 2, 3, 4, of_batch ? 10 : size, BIAS | STATES, 0};
                case_count++;
            }
        }
    }
}

static void make_cases(void) {
    for (size_t n = 0; n < COUNT(fixed_cases); n++) cases[case_count++] = fixed_cases[n];
    add_tiles("LANES", false);
    add_tiles("TILE_H", false);
    add_tiles("TILE_B", true);
}

/* ---- the problem -------------------------------------------------------------------------------------------------- */

typedef struct recurrence_problem {
    recurrence_case c;
    float *x, *w_in, *w_h, *bias, *h_0, *c_0;
    double *out, *h_n, *c_n;
    float *naive_out, *naive_h_n, *naive_c_n;
    double *ones, *cells; /* magnitudes: of h at most 1, of c at least 1 */
} recurrence_problem;

static bool is_lstm(const recurrence_case *c) { return c->cell == CLATTN_CELL_LSTM; }

static void solve(recurrence_problem *p) {
    const recurrence_case *c = &p->c;
    const int64_t rows = (is_lstm(c) ? 4 : 1) * c->hidden;
    const clattn__oracle_recurrence_args oracle = {
        .cell = c->cell,
        .x = view_of_floats(p->x, c->batch, 1, c->steps, c->d_in),
        .w_in = view_of_floats(p->w_in, 1, 1, rows, c->d_in),
        .w_h = view_of_floats(p->w_h, 1, 1, rows, c->hidden),
        .bias = view_of_floats(p->bias, 1, 1, 1, rows),
        .h_0 = view_of_floats(p->h_0, c->batch, 1, 1, c->hidden),
        .c_0 = view_of_floats(p->c_0, c->batch, 1, 1, c->hidden),
        .out = clattn__view_of_doubles(p->out, c->batch, 1, c->steps, c->hidden),
        .h_n = clattn__view_of_doubles(p->h_n, c->batch, 1, 1, c->hidden),
        .c_n = clattn__view_of_doubles(p->c_n, c->batch, 1, 1, c->hidden),
        .forget_bias = c->forget_bias,
    };
    if (clattn__oracle_recurrence(&oracle) != CLATTN_OK) ck_abort_msg("the oracle failed");
    const naive_recurrence_args naive = {
        .is_lstm = is_lstm(c),
        .batch = c->batch,
        .steps = c->steps,
        .d_in = c->d_in,
        .hidden = c->hidden,
        .forget_bias = c->forget_bias,
        .x = p->x,
        .w_in = p->w_in,
        .w_h = p->w_h,
        .bias = p->bias,
        .h_0 = p->h_0,
        .c_0 = p->c_0,
        .out = p->naive_out,
        .h_n = p->naive_h_n,
        .c_n = p->naive_c_n,
    };
    naive_recurrence(&naive);
    for (int64_t n = 0; n < c->batch * c->steps * c->hidden; n++) p->ones[n] = 1;
    for (int64_t n = 0; n < c->batch * c->hidden; n++) p->cells[n] = fmax(1, fabs(p->c_n[n]));
}

static recurrence_problem problem_make(const recurrence_case *c, rng *r) {
    recurrence_problem p = {.c = *c};
    const int64_t rows = (is_lstm(c) ? 4 : 1) * c->hidden, states = c->batch * c->hidden, count = states * c->steps;
    p.x = rng_floats(r, c->batch * c->steps * c->d_in, 1);
    p.w_in = rng_floats(r, rows * c->d_in, c->d_in ? 1 / sqrtf((float)c->d_in) : 1);
    p.w_h = rng_floats(r, rows * c->hidden, c->hidden ? 1 / sqrtf((float)c->hidden) : 1);
    if (c->parts & BIAS) p.bias = rng_floats(r, rows, 0.5f);
    if (c->parts & H_0) p.h_0 = rng_floats(r, states, 0.5f);
    if (c->parts & C_0 && is_lstm(c)) p.c_0 = rng_floats(r, states, 1);
    p.out = test_alloc((size_t)count, sizeof *p.out);
    p.h_n = test_alloc((size_t)states, sizeof *p.h_n);
    p.c_n = test_alloc((size_t)states, sizeof *p.c_n);
    p.naive_out = test_alloc((size_t)count, sizeof *p.naive_out);
    p.naive_h_n = test_alloc((size_t)states, sizeof *p.naive_h_n);
    p.naive_c_n = test_alloc((size_t)states, sizeof *p.naive_c_n);
    p.ones = test_alloc((size_t)(count + states), sizeof *p.ones);
    for (int64_t n = 0; n < count + states; n++) p.ones[n] = 1;
    p.cells = test_alloc((size_t)states, sizeof *p.cells);
    solve(&p);
    return p;
}

static void problem_free(recurrence_problem *p) {
    void *arrays[] = {p->x,   p->w_in, p->w_h,       p->bias,      p->h_0,       p->c_0,  p->out,
                      p->h_n, p->c_n,  p->naive_out, p->naive_h_n, p->naive_c_n, p->ones, p->cells};
    for (size_t n = 0; n < COUNT(arrays); n++) free(arrays[n]);
}

/* ---- running it --------------------------------------------------------------------------------------------------- */

typedef struct recurrence_results {
    float *out, *h_n, *c_n;
} recurrence_results;

static clattn_recurrence_desc make_desc(const recurrence_problem *p, layout l) {
    const recurrence_case *c = &p->c;
    const int64_t rows = (is_lstm(c) ? 4 : 1) * c->hidden;
    clattn_recurrence_desc desc = CLATTN_RECURRENCE_DESC_INIT;
    desc.cell = c->cell;
    desc.x = layout_view(l, c->batch, 1, c->steps, c->d_in);
    desc.w_in = layout_view(l, 1, 1, rows, c->d_in);
    desc.w_h = layout_view(l, 1, 1, rows, c->hidden);
    if (p->bias) desc.bias = layout_view(l, 1, 1, 1, rows);
    const clattn_tensor state = layout_view(l, c->batch, 1, 1, c->hidden);
    if (p->h_0) desc.h_0 = state;
    if (p->c_0) desc.c_0 = state;
    desc.out = layout_view(l, c->batch, 1, c->steps, c->hidden);
    if (c->parts & H_N) desc.h_n = state;
    if (c->parts & C_N && is_lstm(c)) desc.c_n = state;
    desc.forget_bias = c->forget_bias;
    return desc;
}

static recurrence_results run(clattn_context *context, const recurrence_problem *p, layout l, clattn_recurrence_form form,
                              const char *where) {
    const clattn_recurrence_desc desc = make_desc(p, l);
    bindings b = {0};
    bind_input(&b, CLATTN_TENSOR_X, desc.x, p->x);
    bind_input(&b, CLATTN_TENSOR_W_IN, desc.w_in, p->w_in);
    bind_input(&b, CLATTN_TENSOR_W_H, desc.w_h, p->w_h);
    bind_input(&b, CLATTN_TENSOR_BIAS, desc.bias, p->bias);
    bind_input(&b, CLATTN_TENSOR_H_0, desc.h_0, p->h_0);
    bind_input(&b, CLATTN_TENSOR_C_0, desc.c_0, p->c_0);
    bind_output(&b, CLATTN_TENSOR_OUT, desc.out);
    bind_output(&b, CLATTN_TENSOR_H_N, desc.h_n);
    bind_output(&b, CLATTN_TENSOR_C_N, desc.c_n);
    assert_ok(context, clattn_recurrence(context, &desc, OPTIONS(.recurrence = form), b.args, b.count));
    assert_intact(&b, where);
    recurrence_results results = {bound_result(&b, CLATTN_TENSOR_OUT), bound_result(&b, CLATTN_TENSOR_H_N),
                                  bound_result(&b, CLATTN_TENSOR_C_N)};
    bindings_free(&b);
    return results;
}

static void results_free(recurrence_results *r) {
    free(r->out);
    free(r->h_n);
    free(r->c_n);
}

static void assert_results(const recurrence_problem *p, const recurrence_results *r, const char *where) {
    const recurrence_case *c = &p->c;
    const expected out = {p->out, p->naive_out, p->ones, c->batch * c->steps, c->hidden};
    const expected h_n = {p->h_n, p->naive_h_n, p->ones, c->batch, c->hidden};
    const expected c_n = {p->c_n, p->naive_c_n, p->cells, c->batch, c->hidden};
    assert_close(r->out, &out, "%s, %s, out", where, c->name);
    if (r->h_n) assert_close(r->h_n, &h_n, "%s, %s, h_n", where, c->name);
    if (r->c_n) assert_close(r->c_n, &c_n, "%s, %s, c_n", where, c->name);
}

/* ---- every row ---------------------------------------------------------------------------------------------------- */

typedef void (*check_function)(clattn_context *, const recurrence_problem *, clattn_recurrence_form form, const char *where);

typedef struct check {
    check_function function;
    const recurrence_problem *problem;
} check;

static void check_row(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    const check *c = data;
    c->function(context, c->problem, row ? (LOOPS & 1u << row->role ? 1 : 2) : 0, where);
}

/* A row that has a part in both ways, or in neither alone: try them all. */
static void check_shared_row(clattn_context *context, const clattn__row *row, const char *where, void *data) {
    const check *c = data;
    if (!row) return;
    for (clattn_recurrence_form form = CLATTN_RECURRENCE_AUTO; form <= CLATTN_RECURRENCE_STEPS; form++)
        c->function(context, c->problem, form, where);
}

static void check_every_row(const recurrence_problem *p, check_function function) {
    check c = {function, p};
    const bool lstm = is_lstm(&p->c);
    const uint32_t chain = lstm ? ROLE_BIT(LSTM_STEP) | ROLE_BIT(LSTM_LOOP) : ROLE_BIT(RNN_STEP) | ROLE_BIT(RNN_LOOP);
    const clattn__params params = {.recurrence = {.hidden = p->c.hidden, .batch = p->c.batch, .gates = lstm ? 4 : 1}};
    for_every_row(chain, &params, check_row, &c);
    for_every_row(ROLE_BIT(PACK_RECURRENT), &params, check_shared_row, &c);
}

static void check_outputs(clattn_context *context, const recurrence_problem *p, clattn_recurrence_form form,
                          const char *where) {
    recurrence_results results = run(context, p, LAYOUT_BHLD, form, where);
    assert_results(p, &results, where);
    results_free(&results);
}

START_TEST(every_shape_on_every_row) {
    rng r = rng_make((uint64_t)_i);
    recurrence_problem p = problem_make(&cases[_i], &r);
    check_every_row(&p, check_outputs);
    problem_free(&p);
}
END_TEST

/* ---- promises ----------------------------------------------------------------------------------------------------- */

static const recurrence_case promise_cases[] = {BOTH("promises", 3, 13, 21, 37, BIAS | STATES)};

static void assert_same_results(const recurrence_results *a, const recurrence_results *b, const recurrence_case *c,
                                const char *where) {
    assert_same(a->out, b->out, c->batch * c->steps * c->hidden, where, "out");
    assert_same(a->h_n, b->h_n, c->batch * c->hidden, where, "h_n");
    assert_same(a->c_n, b->c_n, c->batch * c->hidden, where, "c_n");
}

static void check_layouts(clattn_context *context, const recurrence_problem *p, clattn_recurrence_form form,
                          const char *where) {
    recurrence_results packed = run(context, p, LAYOUT_BHLD, form, where);
    for (layout l = LAYOUT_BHLD; l < LAYOUT_COUNT; l++) { /* the first: once more the same */
        recurrence_results results = run(context, p, l, form, where);
        char what[192];
        snprintf(what, sizeof what, "%s, %s against bhld", where, layout_name(l));
        assert_same_results(&results, &packed, &p->c, what);
        results_free(&results);
    }
    results_free(&packed);
}

START_TEST(any_layout_is_bitwise_the_packed_one) {
    rng r = rng_make(1000 + (uint64_t)_i);
    recurrence_problem p = problem_make(&promise_cases[_i], &r);
    check_every_row(&p, check_layouts);
    problem_free(&p);
}
END_TEST

static void check_sample(clattn_context *context, const recurrence_problem *p, clattn_recurrence_form form,
                         const char *where) {
    const recurrence_case *c = &p->c;
    recurrence_results whole = run(context, p, LAYOUT_BHLD, form, where);
    for (int64_t b = 0; b < c->batch; b++) {
        recurrence_problem alone = *p;
        alone.c.batch = 1;
        alone.x = p->x + b * c->steps * c->d_in;
        alone.h_0 = p->h_0 + b * c->hidden;
        if (p->c_0) alone.c_0 = p->c_0 + b * c->hidden;
        recurrence_results one = run(context, &alone, LAYOUT_BHLD, form, where);
        const recurrence_results of_whole = {whole.out + b * c->steps * c->hidden, whole.h_n + b * c->hidden,
                                             whole.c_n ? whole.c_n + b * c->hidden : NULL};
        assert_same_results(&one, &of_whole, &alone.c, where);
        results_free(&one);
    }
    results_free(&whole);
}

START_TEST(a_sample_alone_equals_itself_in_a_batch) {
    rng r = rng_make(2000 + (uint64_t)_i);
    recurrence_problem p = problem_make(&promise_cases[_i], &r);
    check_every_row(&p, check_sample);
    problem_free(&p);
}
END_TEST

/* A sentence cut in two, the second half begun with the states of the first, is the same sentence. Not of the reference,
 * which carries its state in double and hands it over in fp32. */
static void check_cut(clattn_context *context, const recurrence_problem *p, clattn_recurrence_form form,
                      const char *where) {
    const recurrence_case *c = &p->c;
    const int64_t cut = c->steps / 2;
    if (context->backend->runs_operators) return;
    recurrence_results whole = run(context, p, LAYOUT_BHLD, form, where);
    recurrence_problem part = *p;
    part.c.steps = cut;
    recurrence_results first = run(context, &part, LAYOUT_BHLD, form, where);
    part.c.steps = c->steps - cut;
    part.x = p->x + cut * c->d_in;
    part.h_0 = first.h_n;
    if (p->c_0) part.c_0 = first.c_n;
    recurrence_results second = run(context, &part, LAYOUT_BHLD, form, where);
    assert_same(first.out, whole.out, cut * c->hidden, where, "the first half");
    assert_same(second.out, whole.out + cut * c->hidden, (c->steps - cut) * c->hidden, where, "the second half");
    assert_same(second.h_n, whole.h_n, c->hidden, where, "the last h of the second half");
    results_free(&second);
    results_free(&first);
    results_free(&whole);
}

START_TEST(a_sentence_may_be_cut) {
    static const recurrence_case cut_cases[] = {BOTH("cut", 1, 12, 14, 30, BIAS | STATES)};
    rng r = rng_make(3000 + (uint64_t)_i);
    recurrence_problem p = problem_make(&cut_cases[_i], &r);
    check_every_row(&p, check_cut);
    problem_free(&p);
}
END_TEST

/* A NaN word makes its own sentence NaN from there on, and no other. */
START_TEST(nan_stays_in_its_sentence) {
    rng r = rng_make(4000 + (uint64_t)_i);
    recurrence_problem p = problem_make(&promise_cases[_i], &r);
    const recurrence_case *c = &p.c;
    p.x[(1 * c->steps + 5) * c->d_in + 2] = NAN;
    solve(&p);
    check_every_row(&p, check_outputs);
    problem_free(&p);
}
END_TEST

/* Saturated gates: sums of +-1e4 and infinite words. */
START_TEST(saturation) {
    rng r = rng_make(5000 + (uint64_t)_i);
    recurrence_problem p = problem_make(&promise_cases[_i], &r);
    const recurrence_case *c = &p.c;
    /* One input a step: sums of several large ones could cancel, and what is left is then rounding error for everybody. */
    for (int64_t n = 0; n < c->steps * c->d_in; n++) p.x[n] *= n % c->d_in == n / c->d_in % c->d_in ? 1e4f : 0.0f;
    for (int64_t k = 0; k < c->d_in; k++) p.x[1 * c->steps * c->d_in + k] = p.w_in[k] > 0 ? INFINITY : -INFINITY;
    solve(&p);
    check_every_row(&p, check_outputs);
    problem_free(&p);
}
END_TEST

/* By hand: h = tanh(0.5 + 0.25 * 1) of one unit; and an lstm whose sums are all zero halves its cell. */
START_TEST(known_values) {
    static const float x[] = {0.5f}, w_in[] = {1}, w_h[] = {0.25f}, h_0[] = {1}, zeros[4], c_0[] = {2};
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!context) continue;
        clattn_recurrence_desc desc = CLATTN_RECURRENCE_DESC_INIT;
        desc.x = desc.w_in = desc.w_h = desc.h_0 = desc.out = clattn_tensor_matrix(CLATTN_F32, 1, 1);
        float out = NAN, c_n = NAN;
        const clattn_arg rnn[] = {{CLATTN_TENSOR_X, (void *)x, 0},     {CLATTN_TENSOR_W_IN, (void *)w_in, 0},
                                  {CLATTN_TENSOR_W_H, (void *)w_h, 0}, {CLATTN_TENSOR_H_0, (void *)h_0, 0},
                                  {CLATTN_TENSOR_OUT, &out, 0}};
        assert_ok(context, clattn_recurrence(context, &desc, NULL, rnn, COUNT(rnn)));
        ck_assert_msg(fabs(out - tanh(0.75)) < 1e-6, "%s: %g", test_device_name(d), out);
        desc.cell = CLATTN_CELL_LSTM;
        desc.w_in = desc.w_h = clattn_tensor_matrix(CLATTN_F32, 4, 1);
        desc.h_0 = (clattn_tensor){0};
        desc.c_0 = desc.c_n = desc.out;
        const clattn_arg lstm[] = {{CLATTN_TENSOR_X, (void *)x, 0},       {CLATTN_TENSOR_W_IN, (void *)zeros, 0},
                                   {CLATTN_TENSOR_W_H, (void *)zeros, 0}, {CLATTN_TENSOR_C_0, (void *)c_0, 0},
                                   {CLATTN_TENSOR_OUT, &out, 0},          {CLATTN_TENSOR_C_N, &c_n, 0}};
        assert_ok(context, clattn_recurrence(context, &desc, NULL, lstm, COUNT(lstm)));
        ck_assert_msg(fabs(c_n - 1) < 1e-6 && fabs(out - 0.5 * tanh(1)) < 1e-6, "%s: %g %g", test_device_name(d), c_n, out);
    }
}
END_TEST

int main(void) {
    make_cases();
    Suite *suite = suite_create("recurrence");
    TCase *tests = tcase_create("recurrence");
    tcase_add_test(tests, known_values);
    tcase_add_loop_test(tests, every_shape_on_every_row, 0, (int)case_count);
    tcase_add_loop_test(tests, any_layout_is_bitwise_the_packed_one, 0, 2);
    tcase_add_loop_test(tests, a_sample_alone_equals_itself_in_a_batch, 0, 2);
    tcase_add_loop_test(tests, a_sentence_may_be_cut, 0, 2);
    tcase_add_loop_test(tests, nan_stays_in_its_sentence, 0, 2);
    tcase_add_loop_test(tests, saturation, 0, 2);
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
