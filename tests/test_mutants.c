/* The checks have teeth: attention computed with one mistake in it fails the very check that attention without it passes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_problem.h"

typedef enum mutation {
    NONE,
    ALL_ZEROS,        /* nothing is computed */
    LAST_ROW_DROPPED, /* the last query keeps what lay in its place: zeros */
    TAIL_DROPPED,     /* keys past the last full tile are left out */
    MASK_ONE_MORE,    /* each query sees one key too many, */
    MASK_ONE_LESS,    /* or one too few */
    NO_RESCALE,       /* a new maximum does not scale the sum so far */
    NO_MAXIMUM,       /* exp of the scores as they are */
    NO_DIVISION,      /* the sum is not divided by */
    WRONG_GROUP,      /* query heads take key heads in turn instead of in groups */
    SCALE_TWICE,
    LSE_BASE_2, /* the log-sum-exp in units of log 2 */
    NAN_HIDDEN, /* NaN becomes 0 */
    MUTATION_COUNT
} mutation;

static const char *const mutation_names[] = {
    "none",       "all zeros",   "last row dropped", "tail dropped", "mask one more", "mask one less", "no rescale",
    "no maximum", "no division", "wrong group",      "scale twice",  "lse base 2",    "nan hidden"};

enum { TILE = 16 };

/* Online softmax over tiles of keys, as the fused kernels do it, in fp32. */
static double attend_row(const attention_problem *p, mutation m, const double *q, const double *k, const double *v, int64_t live,
                        double *out) {
    const attention_case *c = &p->c;
    const float base = 1 / sqrtf((float)c->head_dim), scale = m == SCALE_TWICE ? base * base : base;
    float row_max = m == NO_MAXIMUM ? 0 : -INFINITY, row_sum = 0;
    memset(out, 0, (size_t)c->value_dim * sizeof *out);
    if (m == TAIL_DROPPED) live = live / TILE * TILE;
    for (int64_t first = 0; first < live; first += TILE) {
        const int64_t end = first + TILE < live ? first + TILE : live;
        float score[TILE], tile_max = row_max;
        for (int64_t j = first; j < end; j++) {
            float dot = 0;
            for (int64_t d = 0; d < c->head_dim; d++) dot += (float)q[d] * (float)k[j * c->head_dim + d];
            score[j - first] = scale * dot;
            if (m != NO_MAXIMUM) tile_max = fmaxf(tile_max, score[j - first]);
        }
        const float rescale = m == NO_RESCALE || row_max == tile_max ? 1 : expf(row_max - tile_max);
        row_sum *= rescale;
        for (int64_t d = 0; d < c->value_dim; d++) out[d] = (float)(out[d] * rescale);
        row_max = tile_max;
        for (int64_t j = first; j < end; j++) {
            const float weight = expf(score[j - first] - row_max);
            row_sum += weight;
            for (int64_t d = 0; d < c->value_dim; d++) out[d] = (float)(out[d] + (double)(weight * (float)v[j * c->value_dim + d]));
        }
    }
    for (int64_t d = 0; d < c->value_dim && m != NO_DIVISION; d++) out[d] = row_sum == 0 ? 0 : (float)(out[d] / row_sum);
    const float lse = row_max + logf(row_sum);
    return m == LSE_BASE_2 ? lse * 1.44269504f : lse;
}

static int64_t count_live(const attention_case *c, mutation m, int64_t i) {
    int64_t live = c->causal ? i + 1 + (m == MASK_ONE_MORE) - (m == MASK_ONE_LESS) : c->len_kv;
    return live < c->len_kv ? live : c->len_kv;
}

static attention_results mutant(const attention_problem *p, mutation m) {
    const attention_case *c = &p->c;
    const int64_t rows = c->batch * c->heads_q * c->len_q;
    attention_results r = {.data = {[CLATTN_TENSOR_OUT] = test_alloc((size_t)(rows * c->value_dim), sizeof(double)),
                                    [CLATTN_TENSOR_LSE] = test_alloc((size_t)rows, sizeof(double))}};
    double *out = r.data[CLATTN_TENSOR_OUT], *lse = r.data[CLATTN_TENSOR_LSE];
    for (int64_t row = 0; row < rows && m != ALL_ZEROS; row++) {
        const int64_t i = row % c->len_q, h = row / c->len_q % c->heads_q, b = row / c->len_q / c->heads_q;
        const int64_t g = m == WRONG_GROUP ? h % c->heads_kv : h / (c->heads_q / c->heads_kv);
        const double *k = p->data[CLATTN_TENSOR_K] + (b * c->heads_kv + g) * c->len_kv * c->head_dim;
        const double *v = p->data[CLATTN_TENSOR_V] + (b * c->heads_kv + g) * c->len_kv * c->value_dim;
        if (m == LAST_ROW_DROPPED && i == c->len_q - 1) continue;
        lse[row] = attend_row(p, m, p->data[CLATTN_TENSOR_Q] + row * c->head_dim, k, v, count_live(c, m, i), out + row * c->value_dim);
        for (int64_t d = 0; d < c->value_dim && m == NAN_HIDDEN; d++) {
            if (isnan(out[row * c->value_dim + d])) out[row * c->value_dim + d] = 0;
        }
    }
    return r;
}

static const attention_case cases[] = {
    {"causal", 2, 4, 2, 57, 57, 32, 24, .causal = 1},
    {"full", 2, 4, 2, 33, 91, 32, 24},
    {"large logits", 3, 2, 1, 20, 63, 32, 24, .amplitude = 300},
    {"long", 1, 2, 1, 4, 3001, 16, 16},
};

static bool applies(const attention_problem *p, mutation m) {
    const bool large = p->c.amplitude != 0;
    if (m == MASK_ONE_MORE || m == MASK_ONE_LESS) return p->c.causal;
    if (m == WRONG_GROUP) return p->c.heads_kv > 1;
    return m != NO_MAXIMUM || large; /* exp of small scores is right without it */
}

START_TEST(a_mistake_is_found) {
    rng r = rng_make((uint64_t)_i);
    attention_problem p = attention_problem_make(&cases[_i], &r);
    if (_i == 1) {
        p.data[CLATTN_TENSOR_Q][7] = NAN;
        attention_problem_solve(&p);
    }
    for (mutation m = NONE; m < MUTATION_COUNT; m++) {
        if (!applies(&p, m) || (m == NAN_HIDDEN && _i != 1)) continue;
        attention_results results = mutant(&p, m);
        verdict v = attention_judge(&results, &p);
        ck_assert_msg(v.ok == (m == NONE), "%s, %s: %s %s", p.c.name, mutation_names[m], v.ok ? "passes" : "fails", v.text);
        attention_results_free(&results);
    }
    attention_problem_free(&p);
}
END_TEST

/* Small mistakes on top of the naive result: an element that is NaN, infinite, zero or off by a little. */
START_TEST(one_wrong_element_is_found) {
    rng r = rng_make(100);
    attention_problem p = attention_problem_make(&cases[3], &r);
    const expected_values *e = &p.expected[CLATTN_TENSOR_OUT];
    const int64_t count = e->rows * e->columns;
    double *result = test_alloc((size_t)count, sizeof *result);
    const double wrong[] = {NAN, INFINITY, -INFINITY};
    for (int64_t n = 0; n < count; n++) {
        for (size_t w = 0; w < COUNT(wrong) + 2; w++) {
            memcpy(result, e->naive, (size_t)count * sizeof *result);
            if (w < COUNT(wrong)) result[n] = wrong[w];
            if (w == COUNT(wrong)) result[n] += 1e-4;
            if (w == COUNT(wrong) + 1) result[n] -= 1e-4;
            ck_assert_msg(!judge_values(result, e).ok, "%g in the place of %g passes", result[n], e->naive[n]);
        }
    }
    free(result);
    attention_problem_free(&p);
}
END_TEST

/* The guard sees a write before, after and between a view's elements, and into an input. */
START_TEST(a_stray_write_is_found) {
    const clattn_tensor view = layout_view(LAYOUT_PADDED, 2, 2, 3, 5);
    const int64_t gap = 5, before = -1, after = (int64_t)(clattn__tensor_span(&view) / sizeof(float));
    const int64_t strays[] = {gap, before, after};
    float packed[60] = {0};
    guarded input = guarded_input(view, packed), output = guarded_output(view);
    /* Under the address sanitizer there are no margins: it watches itself. */
    const size_t count = output.elements > (size_t)after ? COUNT(strays) : 1;
    ck_assert(guarded_intact(&output) && guarded_intact(&input) && guarded_untouched(&output));
    float *const written = output.data, *const read = input.data;
    written[0] = 1;
    ck_assert(guarded_intact(&output) && !guarded_untouched(&output));
    for (size_t n = 0; n < count; n++) {
        const float kept[] = {written[strays[n]], read[strays[n]]};
        written[strays[n]] = read[strays[n]] = 1;
        ck_assert(!guarded_intact(&output) && !guarded_intact(&input));
        written[strays[n]] = kept[0];
        read[strays[n]] = kept[1];
        ck_assert(guarded_intact(&output) && guarded_intact(&input));
    }
    read[0] = 1;
    ck_assert(!guarded_intact(&input));
    guarded_free(&output);
    guarded_free(&input);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("mutants");
    TCase *tests = tcase_create("mutants");
    tcase_add_loop_test(tests, a_mistake_is_found, 0, COUNT(cases));
    tcase_add_test(tests, one_wrong_element_is_found);
    tcase_add_test(tests, a_stray_write_is_found);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
