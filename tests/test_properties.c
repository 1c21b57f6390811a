/* Random attention: shapes, types and sets of options as nobody would choose them, in memory full of NaN, on every device,
 * against the oracle and against itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A failure prints the command of the program that shows it. CLATTN_TEST_SEED repeats a run, CLATTN_PROPERTY_SECONDS makes it
 * longer. OpenCL kernels are compiled for the plan's types and sizes, about a second each: those of a run are few, their shapes
 * many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attention_problem.h"

/* ---- what is drawn ------------------------------------------------------------------------------------------------ */

/* What OpenCL is compiled for in this run. */
typedef struct variants {
    clattn_dtype dtypes[2];
    int64_t dims; /* the largest */
} variants;

static bool chance(rng *r, int per_cent) { return rng_below(r, 100) < per_cent; }

static int64_t draw_len(rng *r, int64_t most) {
    if (chance(r, 10)) return 0;
    if (chance(r, 10)) return 1;
    return 1 + rng_below(r, chance(r, 70) ? (most < 40 ? most : 40) : most);
}

static int64_t draw_dim(rng *r, int64_t most) {
    if (chance(r, 3)) return 0;
    if (chance(r, 40)) return 8 * (1 + rng_below(r, most / 8));
    return 1 + rng_below(r, chance(r, 50) ? (most < 20 ? most : 20) : most);
}

static matrix_case draw_matrix(rng *r, bool is_bias) {
    return (matrix_case){.given = true,
                         .broadcast = chance(r, 50) ? (int)rng_below(r, 16) : 0,
                         .missing = chance(r, 30) ? rng_below(r, 20) : 0,
                         .per_cent = chance(r, 50) ? (int)rng_below(r, 100) : 0,
                         .whole_rows = chance(r, 30),
                         .least = is_bias && chance(r, 30),
                         .narrow = is_bias && chance(r, 50)};
}

static void draw_shape(attention_case *c, rng *r, int64_t dims) {
    static const int64_t ratios[] = {1, 1, 2, 3, 4, 8};
    c->batch = chance(r, 10) ? 0 : 1 + rng_below(r, 4);
    c->heads_kv = chance(r, 5) ? 0 : 1 + rng_below(r, 3);
    c->heads_q = c->heads_kv * ratios[rng_below(r, COUNT(ratios))];
    c->len_q = draw_len(r, 150);
    c->len_kv = draw_len(r, 300);
    if (chance(r, 20)) c->len_q = 1 + rng_below(r, 16), c->len_kv = 100 + rng_below(r, 1200); /* to be split */
    c->head_dim = draw_dim(r, dims);
    c->value_dim = chance(r, 60) ? c->head_dim : draw_dim(r, dims);
}

static double work_of(const attention_case *c) {
    return (double)c->batch * (double)c->heads_q * (double)c->len_q * (double)(c->len_kv + c->past) *
           (double)(c->head_dim + c->value_dim + 20);
}

/* Many small problems find more than a few large ones. */
static void cut_down(attention_case *c, rng *r) {
    const double most = chance(r, 85) ? 3e5 : 1e7;
    while (work_of(c) > most) {
        int64_t *const sizes[] = {&c->batch, &c->len_q, &c->len_q, &c->len_kv, &c->past};
        int64_t *size = sizes[rng_below(r, COUNT(sizes))];
        if (*size > 1) *size = 1 + rng_below(r, *size - 1);
        if (c->heads_q > c->heads_kv && chance(r, 20)) c->heads_q -= c->heads_kv;
    }
}

static void draw_kind(attention_case *c, rng *r) {
    const int64_t kind = rng_below(r, 10);
    c->wide = chance(r, 50);
    if (kind == 0) c->ragged = true;
    if (kind == 1 || kind == 2) c->lengths = true;
    if (kind == 3 || kind == 4) c->cache = chance(r, 70) ? CACHE_PAST : CACHE_PAST_ONLY;
    if (kind == 5 || kind == 6) c->cache = CACHE_IN_PLACE;
    if (c->cache) c->past = draw_len(r, 200);
    if (!c->ragged && c->head_dim >= 2 && chance(r, c->cache ? 50 : 10)) {
        c->rotary = chance(r, 50) ? CLATTN_ROTARY_HALF : CLATTN_ROTARY_INTERLEAVED;
        c->pairs = 1 + rng_below(r, c->head_dim / 2);
    }
    if (c->batch == 0 && c->ragged) c->batch = 1;
}

static void draw_positions(attention_case *c, rng *r) {
    const int64_t about = c->len_kv + c->past + 3;
    c->causal = chance(r, 40);
    c->has_window = chance(r, 25);
    if (c->has_window) {
        c->left = chance(r, 20) ? -1 : rng_below(r, about);
        c->right = chance(r, 20) && c->left != -1 ? -1 : rng_below(r, about);
    }
    if (chance(r, 25)) c->alibi = chance(r, 50) ? ALIBI_STANDARD : ALIBI_GIVEN;
    if (!c->causal && !c->has_window && !c->alibi) return;
    c->align = (clattn_align)rng_below(r, 4);
    if (c->align == CLATTN_ALIGN_PAST && !c->cache) c->position = rng_below(r, about);
    if (c->align == CLATTN_ALIGN_OFFSET) c->position = rng_below(r, 2 * about) - about;
}

static attention_case draw_case(rng *r, clattn_dtype dtype, int64_t dims) {
    attention_case c = {.name = "random", .dtype = dtype, .poison = chance(r, 60)};
    draw_shape(&c, r, dims);
    draw_kind(&c, r);
    cut_down(&c, r);
    draw_positions(&c, r);
    if (!c.ragged && chance(r, 25)) c.mask = draw_matrix(r, false);
    if (!c.ragged && chance(r, 25)) c.bias = draw_matrix(r, true);
    if (chance(r, 20)) c.softcap = chance(r, 50) ? 2 : 30;
    c.sinks = chance(r, 20);
    c.by_member = chance(r, 30);
    if (chance(r, 15)) c.has_scale = 1, c.scale = chance(r, 20) ? 0 : rng_fine(r);
    if (chance(r, 10)) c.amplitude = chance(r, 50) ? 300 : 1e-3;
    c.form = (clattn_scores_form)rng_below(r, 3);
    c.narrow = chance(r, 30);
    c.live_nan = chance(r, 10);
    return c;
}

/* ---- what must hold ----------------------------------------------------------------------------------------------- */

/* One way to compute a problem. */
typedef struct way {
    size_t device;
    layout layout;
    clattn_algorithm algorithm;
    int want;
} way;

static way draw_way(rng *r, const attention_problem *p, size_t device) {
    way w = {device, (layout)rng_below(r, LAYOUT_COUNT), CLATTN_ALGORITHM_AUTO, 0};
    if (chance(r, 70)) w.algorithm = (clattn_algorithm)rng_below(r, CLATTN_ALGORITHM_SPLIT + 1);
    const clattn_attention_desc desc = attention_desc(p, LAYOUT_BHLD, 0);
    if (clattn_supports_attention(test_context(device), &desc, OPTIONS(.algorithm = w.algorithm)) == CLATTN_ERROR_UNSUPPORTED)
        w.algorithm = CLATTN_ALGORITHM_AUTO;
    if (w.algorithm == CLATTN_ALGORITHM_SPLIT && p->c.bias.least) w.algorithm = CLATTN_ALGORITHM_AUTO; /* see clattn_algorithm */
    const bool matrices = w.algorithm == CLATTN_ALGORITHM_AUTO && chance(r, 40);
    w.want = attention_outputs(p, matrices ? CLATTN_ALGORITHM_STAGED : w.algorithm);
    if (chance(r, 50)) w.want &= (int)rng_below(r, 8);
    return w;
}

static void fail_with(const attention_problem *p, const way *w, const char *row, const char *text) {
    attention_reproduce(p, test_device_name(w->device), w->algorithm, w->want);
    ck_abort_msg("%s, %s, layout %s: %s (seed %llu)", test_device_name(w->device), row, layout_name(w->layout), text,
                 (unsigned long long)test_seed());
}

static attention_results run_way(const attention_problem *p, const way *w) {
    attention_results r;
    const verdict v = attention_try(test_context(w->device), p, w->layout, w->algorithm, w->want, &r);
    if (!v.ok) fail_with(p, w, r.row, v.text);
    return r;
}

/* The first element that is not bitwise the same in both: false where there is none. */
static bool differ(const attention_results *a, const attention_results *b, const attention_problem *p, char *text,
                   size_t size) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        if (!a->data[id] || !b->data[id]) continue;
        for (int64_t n = 0; n < attention_count(p, (clattn_tensor_id)id); n++) {
            if (same_bits(a->data[id][n], b->data[id][n])) continue;
            snprintf(text, size, "%s[%lld] is %.9g and %.9g", clattn_tensor_name((clattn_tensor_id)id), (long long)n,
                     a->data[id][n], b->data[id][n]);
            return true;
        }
    }
    return false;
}

/* Again, in another layout, with other outputs: bitwise the same. */
static void check_again(const attention_problem *p, const way *w, const attention_results *first, rng *r) {
    way again = *w;
    again.layout = (layout)rng_below(r, LAYOUT_COUNT);
    if (w->algorithm != CLATTN_ALGORITHM_AUTO) again.want = attention_outputs(p, w->algorithm) & (int)rng_below(r, 8);
    attention_results second = run_way(p, &again);
    char what[96], text[320];
    if (differ(first, &second, p, what, sizeof what)) {
        snprintf(text, sizeof text, "%s in layout %s (%s) and in this one", what, layout_name(w->layout), first->row);
        fail_with(p, &again, second.row, text);
    }
    attention_results_free(&second);
}

/* A member alone: bitwise as in the batch. */
static void check_member(const attention_problem *p, const way *w, const attention_results *whole, rng *r) {
    if (p->c.ragged || p->c.batch < 2) return;
    const int64_t b = rng_below(r, p->c.batch);
    attention_problem member = attention_problem_member(p, b);
    attention_results alone = run_way(&member, w), of_whole = *whole;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        if (whole->data[id]) of_whole.data[id] += b * attention_count(&member, (clattn_tensor_id)id);
    }
    char what[96], text[320];
    if (differ(&alone, &of_whole, &member, what, sizeof what)) {
        snprintf(text, sizeof text, "%s, in member %lld alone and in the batch (%s)", what, (long long)b, whole->row);
        fail_with(p, w, alone.row, text);
    }
    attention_results_free(&alone);
}

static void check_way(const attention_problem *p, const way *w, rng *r) {
    attention_results results = run_way(p, w);
    const verdict v = attention_judge(&results, p);
    if (!v.ok) fail_with(p, w, results.row, v.text);
    if (chance(r, 20)) check_again(p, w, &results, r);
    if (chance(r, 20)) check_member(p, w, &results, r);
    attention_results_free(&results);
}

/* ---- runs --------------------------------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(void) {
    const char *given = getenv("CLATTN_PROPERTY_SECONDS");
    return given ? strtod(given, NULL) : 30;
}

static bool is_opencl(size_t device) { return test_context(device)->device.info.kind >= CLATTN_DEVICE_OPENCL_CPU; }

/* One problem on every device; those that compile take part where it is of the run's variants. */
static size_t check_everywhere(const attention_case *c, bool with_opencl, rng *r) {
    size_t ways = 0;
    attention_problem p = attention_problem_make(c, r);
    for (size_t d = 0; d < test_device_count(); d++) {
        if (!test_context(d) || (is_opencl(d) && !with_opencl)) continue;
        const way w = draw_way(r, &p, d);
        check_way(&p, &w, r);
        ways++;
    }
    attention_problem_free(&p);
    return ways;
}

START_TEST(random_attention) {
    static const clattn_dtype types[] = {CLATTN_F32, CLATTN_F16, CLATTN_BF16, CLATTN_F64};
    rng r = rng_make(1);
    const variants v = {{CLATTN_F32, chance(&r, 50) ? CLATTN_F16 : CLATTN_BF16}, chance(&r, 70) ? 64 : 128};
    const bool fragments = chance(&r, 30);
    const double end = now() + seconds();
    size_t problems = 0, ways = 0;
    emulate_layout(fragments ? MMA_NVIDIA : 0);
    for (; now() < end; problems++) {
        r = rng_make(2 + problems);
        const bool everywhere = chance(&r, 70);
        const clattn_dtype dtype = everywhere ? v.dtypes[rng_below(&r, 2)] : types[rng_below(&r, 4)];
        const attention_case c = draw_case(&r, dtype, everywhere ? v.dims : chance(&r, 90) ? 160 : 576);
        ways += check_everywhere(&c, everywhere, &r);
    }
    printf("%zu problems, computed in %zu ways; OpenCL with %s and %s, heads of up to %lld%s\n", problems, ways,
           clattn_dtype_name(v.dtypes[0]), clattn_dtype_name(v.dtypes[1]), (long long)v.dims, fragments ? ", NVIDIA's fragments" : "");
    emulate_layout(0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("properties");
    TCase *tests = tcase_create("properties");
    tcase_add_test(tests, random_attention);
    suite_add_tcase(suite, tests);
    return run_device_suite(suite);
}
