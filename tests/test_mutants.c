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
static double attend_row(const attention_problem *p, mutation m, const double *q, const double *k, const double *v,
                         int64_t live, double *out) {
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
            for (int64_t d = 0; d < c->value_dim; d++)
                out[d] = (float)(out[d] + (double)(weight * (float)v[j * c->value_dim + d]));
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
        lse[row] =
            attend_row(p, m, p->data[CLATTN_TENSOR_Q] + row * c->head_dim, k, v, count_live(c, m, i), out + row * c->value_dim);
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

/* ---- options ---------------------------------------------------------------------------------------------------------
 * A mistake in an option is attention with another one: computed without a mistake, it must fail. */

#define BASE "options", 2, 8, 2, 20, 60, 16, 16
#define WINDOWED BASE, .has_window = 1, .left = 9, .right = 4, .align = CLATTN_ALIGN_BOTTOM_RIGHT
#define MASKED BASE, .mask = {.given = true, .per_cent = 30, .missing = 3}
#define BIASED BASE, .bias = {.given = true, .per_cent = 20, .missing = 3}

static void window_left_wider(attention_problem *p) { p->desc.options.window_left++; }
static void window_left_narrower(attention_problem *p) { p->desc.options.window_left--; }
static void window_right_wider(attention_problem *p) { p->desc.options.window_right++; }
static void window_right_narrower(attention_problem *p) { p->desc.options.window_right--; }
static void no_window(attention_problem *p) { p->desc.options.has_window = 0; }
static void no_causal(attention_problem *p) { p->desc.options.causal = 0; }
static void at_the_top_left(attention_problem *p) { p->desc.options.align = CLATTN_ALIGN_TOP_LEFT; }
static void one_further(attention_problem *p) {
    p->desc.options.align = CLATTN_ALIGN_OFFSET;
    p->desc.options.offset = p->c.len_kv - p->c.len_q + 1;
}
static void no_softcap(attention_problem *p) { p->desc.options.softcap = 0; }
static void other_softcap(attention_problem *p) { p->desc.options.softcap *= 1.01; }
static void no_alibi(attention_problem *p) { p->desc.options.alibi = 0; }
static void drop(attention_problem *p, clattn_tensor_id id) {
    *attention_tensor(&p->desc, id) = (clattn_tensor){0};
    free(p->data[id]);
    p->data[id] = NULL;
}
static void no_mask(attention_problem *p) { drop(p, CLATTN_TENSOR_MASK); }
static void no_bias(attention_problem *p) { drop(p, CLATTN_TENSOR_BIAS); }
static void no_sinks(attention_problem *p) { drop(p, CLATTN_TENSOR_SINKS); }
static void no_slopes(attention_problem *p) { drop(p, CLATTN_TENSOR_ALIBI_SLOPES); }
static void no_lengths(attention_problem *p) { drop(p, CLATTN_TENSOR_KV_LENGTHS); }

/* The same numbers, the end of each row filled up. */
static void fill_up(attention_problem *p, clattn_tensor_id id, double value) {
    clattn_tensor *t = attention_tensor(&p->desc, id);
    const int64_t columns = t->size[3], rows = attention_count(p, id) / columns;
    double *full = test_alloc((size_t)(rows * p->keys), sizeof *full);
    for (int64_t n = 0; n < rows * p->keys; n++)
        full[n] = n % p->keys < columns ? p->data[id][n / p->keys * columns + n % p->keys] : value;
    free(p->data[id]);
    p->data[id] = full;
    *t = clattn_tensor_bhld(t->dtype, t->size[0], t->size[1], t->size[2], p->keys);
}
static void mask_past_its_end(attention_problem *p) { fill_up(p, CLATTN_TENSOR_MASK, 1); }
static void bias_past_its_end(attention_problem *p) { fill_up(p, CLATTN_TENSOR_BIAS, 0); }

static void change(attention_problem *p, clattn_tensor_id id, double factor, double term) {
    for (int64_t n = 0; n < attention_count(p, id); n++) p->data[id][n] = p->data[id][n] * factor + term;
}
static void slopes_negated(attention_problem *p) { change(p, CLATTN_TENSOR_ALIBI_SLOPES, -1, 0); }
static void sinks_scaled(attention_problem *p) { change(p, CLATTN_TENSOR_SINKS, 0.25, 0); }
static void sinks_twice(attention_problem *p) { change(p, CLATTN_TENSOR_SINKS, 1, log(2)); }
static void a_key_more(attention_problem *p) { change(p, CLATTN_TENSOR_KV_LENGTHS, 1, 1); }
static void a_key_less(attention_problem *p) { change(p, CLATTN_TENSOR_KV_LENGTHS, 1, -1); }
static void bias_doubled(attention_problem *p) { change(p, CLATTN_TENSOR_BIAS, 2, 0); }
static void least_is_masked(attention_problem *p) {
    for (int64_t n = 0; n < attention_count(p, CLATTN_TENSOR_BIAS); n++) {
        if (p->data[CLATTN_TENSOR_BIAS][n] < -1e30) p->data[CLATTN_TENSOR_BIAS][n] = -INFINITY;
    }
}
static void mask_of_the_next_head(attention_problem *p) {
    const int64_t each = p->c.len_q * attention_tensor(&p->desc, CLATTN_TENSOR_MASK)->size[3];
    double *mask = p->data[CLATTN_TENSOR_MASK];
    memmove(mask, mask + each, (size_t)(attention_count(p, CLATTN_TENSOR_MASK) - each) * sizeof *mask);
}
static void other_pairs(attention_problem *p) {
    p->desc.rotary = p->desc.rotary == CLATTN_ROTARY_HALF ? CLATTN_ROTARY_INTERLEAVED : CLATTN_ROTARY_HALF;
}
static void turned_back(attention_problem *p) { change(p, CLATTN_TENSOR_ROTARY_SIN, -1, 0); }
static void no_rotary(attention_problem *p) { p->desc.rotary = CLATTN_ROTARY_NONE; }
static void past_forgotten(attention_problem *p) { change(p, CLATTN_TENSOR_PAST_LENGTHS, 0, 0); }
static void raw_scores(attention_problem *p) { p->desc.options.scores_form = CLATTN_SCORES_RAW; }
static void capped_scores(attention_problem *p) { p->desc.options.scores_form = CLATTN_SCORES_SOFTCAP; }
static void members_swapped(attention_problem *p) {
    double *offsets = p->data[CLATTN_TENSOR_Q_OFFSETS];
    offsets[1] = offsets[2] - offsets[1]; /* a third and two thirds */
}

/* clang-format off */
static const struct {
    const char *name;
    attention_case c;
    void (*edit)(attention_problem *);
} option_mutants[] = {
    {"nothing", {WINDOWED}, NULL},
    {"a key more to the left", {WINDOWED}, window_left_wider},
    {"a key less to the left", {WINDOWED}, window_left_narrower},
    {"a key more to the right", {WINDOWED}, window_right_wider},
    {"a key less to the right", {WINDOWED}, window_right_narrower},
    {"no window", {WINDOWED}, no_window},
    {"a window at the top left", {WINDOWED}, at_the_top_left},
    {"no causality", {BASE, .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT}, no_causal},
    {"causality at the top left", {BASE, .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT}, at_the_top_left},
    {"causality one key further", {BASE, .causal = 1, .align = CLATTN_ALIGN_BOTTOM_RIGHT}, one_further},
    {"no softcap", {BASE, .softcap = 3}, no_softcap},
    {"a softcap of 1 % more", {BASE, .softcap = 3}, other_softcap},
    {"no ALiBi", {BASE, .alibi = ALIBI_STANDARD}, no_alibi},
    {"ALiBi at the top left", {BASE, .alibi = ALIBI_STANDARD, .align = CLATTN_ALIGN_BOTTOM_RIGHT}, at_the_top_left},
    {"no slopes", {BASE, .alibi = ALIBI_GIVEN}, no_slopes},
    {"slopes of the other sign", {BASE, .alibi = ALIBI_GIVEN}, slopes_negated},
    {"no mask", {MASKED}, no_mask},
    {"a mask past its end", {MASKED}, mask_past_its_end},
    {"the mask of another head", {MASKED}, mask_of_the_next_head},
    {"no bias", {BIASED}, no_bias},
    {"a bias past its end", {BIASED}, bias_past_its_end},
    {"a bias twice", {BIASED}, bias_doubled},
    {"the least number taken for -infinity", {BASE, .bias = {.given = true, .per_cent = 20, .whole_rows = true, .least = true}}, least_is_masked},
    {"no sinks", {BASE, .sinks = true}, no_sinks},
    {"sinks scaled", {BASE, .sinks = true}, sinks_scaled},
    {"sinks twice", {BASE, .sinks = true}, sinks_twice},
    {"no lengths", {BASE, .lengths = true}, no_lengths},
    {"lengths of a key more", {BASE, .lengths = true}, a_key_more},
    {"lengths of a key less", {BASE, .lengths = true}, a_key_less},
    {"padding that is looked at", {BASE, .lengths = true, .poison = true}, no_lengths},
    {"the other pairs", {BASE, .rotary = CLATTN_ROTARY_HALF, .pairs = 8}, other_pairs},
    {"the other half", {BASE, .rotary = CLATTN_ROTARY_INTERLEAVED, .pairs = 5}, other_pairs},
    {"rotated back, keys and queries", {BASE, .rotary = CLATTN_ROTARY_HALF, .pairs = 8}, turned_back},
    {"not rotated", {BASE, .rotary = CLATTN_ROTARY_HALF, .pairs = 1}, no_rotary},
    {"past forgotten", {BASE, .cache = CACHE_IN_PLACE, .past = 30}, past_forgotten},
    {"raw scores for capped ones", {BASE, .softcap = 3, .form = CLATTN_SCORES_SOFTCAP}, raw_scores},
    {"capped scores for masked ones", {BASE, .causal = 1, .softcap = 3, .form = CLATTN_SCORES_BIAS}, capped_scores},
    {"members of other lengths", {BASE, .ragged = true}, members_swapped},
    {"f16: no softcap", {BASE, .dtype = CLATTN_F16, .softcap = 3}, no_softcap},
    {"bf16: a bias twice", {BIASED, .dtype = CLATTN_BF16}, bias_doubled},
    {"f64: a softcap of 1 % more", {BASE, .dtype = CLATTN_F64, .softcap = 3}, other_softcap},
};
/* clang-format on */

static void draw_lengths_that_matter(attention_problem *p) {
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_KV_LENGTHS, CLATTN_TENSOR_PAST_LENGTHS};
    for (size_t n = 0; n < COUNT(ids); n++) {
        for (int64_t b = 0; b < attention_count(p, ids[n]); b++) p->data[ids[n]][b] = (double)(20 + b);
    }
    double *q = p->data[CLATTN_TENSOR_Q_OFFSETS], *kv = p->data[CLATTN_TENSOR_KV_OFFSETS];
    if (q) q[1] = floor(q[2] / 3), kv[1] = floor(kv[2] / 3);
}

/* Whether both members of a ragged batch have queries and keys, so that it shows which query is whose. */
static bool has_members(const attention_problem *p) {
    const double *q = p->data[CLATTN_TENSOR_Q_OFFSETS], *kv = p->data[CLATTN_TENSOR_KV_OFFSETS];
    return !q || (q[2] >= 3 && kv[2] >= 3);
}

static attention_problem copy_of(const attention_problem *p) {
    attention_problem copy = *p;
    memset(copy.expected, 0, sizeof copy.expected);
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        if (!p->data[id]) continue;
        const size_t bytes = (size_t)attention_count(p, (clattn_tensor_id)id) * sizeof(double);
        copy.data[id] = test_alloc(1, bytes);
        memcpy(copy.data[id], p->data[id], bytes);
    }
    return copy;
}

START_TEST(a_mistake_in_an_option_is_found) {
    rng r = rng_make(200 + (uint64_t)_i);
    attention_problem p = attention_problem_draw(&option_mutants[_i].c, &r);
    while (!has_members(&p)) {
        attention_problem_free(&p);
        p = attention_problem_draw(&option_mutants[_i].c, &r);
    }
    draw_lengths_that_matter(&p);
    attention_problem_solve(&p);
    attention_problem mutated = copy_of(&p);
    mutated.c.poison = false;
    if (option_mutants[_i].edit) option_mutants[_i].edit(&mutated);
    attention_problem_solve(&mutated);
    attention_results results = {.row = "mutant"};
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) results.data[id] = mutated.expected[id].naive;
    const verdict v = attention_judge(&results, &p);
    ck_assert_msg(v.ok == !option_mutants[_i].edit, "%s: %s %s", option_mutants[_i].name, v.ok ? "passes" : "fails", v.text);
    attention_problem_free(&mutated);
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
            if (judge_values(result, e).ok) ck_abort_msg("%g in the place of %g passes", result[n], e->naive[n]);
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
    tcase_add_loop_test(tests, a_mistake_in_an_option_is_found, 0, COUNT(option_mutants));
    tcase_add_test(tests, one_wrong_element_is_found);
    tcase_add_test(tests, a_stray_write_is_found);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
