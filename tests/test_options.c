/* Attention's options: the faults that attention libraries keep having, each as cases with a name, on every device, by every
 * algorithm and kernel row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_problem.h"

#define TOP_LEFT .align = CLATTN_ALIGN_TOP_LEFT
#define BOTTOM_RIGHT .align = CLATTN_ALIGN_BOTTOM_RIGHT
#define PAST(n) .align = CLATTN_ALIGN_PAST, .position = (n)
#define OFFSET(n) .align = CLATTN_ALIGN_OFFSET, .position = (n)
#define CAUSAL .causal = 1
#define WINDOW(l, r) .has_window = 1, .left = (l), .right = (r)
#define SCALE(s) .has_scale = 1, .scale = (s)
#define MASK(...) .mask = {.given = true, __VA_ARGS__}
#define BIAS(...) .bias = {.given = true, __VA_ARGS__}
#define STANDARD .alibi = ALIBI_STANDARD
#define GIVEN .alibi = ALIBI_GIVEN
#define F16 .dtype = CLATTN_F16
#define BF16 .dtype = CLATTN_BF16
#define F64 .dtype = CLATTN_F64

static double *data_of(attention_problem *p, clattn_tensor_id id) { return p->data[id]; }

/* ---- what is done to drawn inputs --------------------------------------------------------------------------------- */

/* Keys of the first tiles are masked for all queries, and live for the very first one alone. */
static void mask_first_tiles(attention_problem *p) {
    const int64_t keys = p->keys;
    for (int64_t n = 0; n < attention_count(p, CLATTN_TENSOR_MASK); n++) {
        data_of(p, CLATTN_TENSOR_MASK)[n] = n % keys >= keys - 30 || n / keys % p->c.len_q == 0;
    }
}

static void bias_first_tiles(attention_problem *p) {
    const int64_t keys = p->keys;
    for (int64_t n = 0; n < attention_count(p, CLATTN_TENSOR_BIAS); n++) {
        if (n % keys < keys - 30) data_of(p, CLATTN_TENSOR_BIAS)[n] = -INFINITY;
    }
}

static void mask_all(attention_problem *p) {
    memset(data_of(p, CLATTN_TENSOR_MASK), 0, (size_t)attention_count(p, CLATTN_TENSOR_MASK) * sizeof(double));
}

static void least_everywhere(attention_problem *p) {
    double *bias = data_of(p, CLATTN_TENSOR_BIAS);
    const double least = p->desc.options.bias.dtype == CLATTN_F16 ? -65504 : -FLT_MAX;
    for (int64_t n = 0; n < attention_count(p, CLATTN_TENSOR_BIAS); n++)
        bias[n] = clattn__round(p->desc.options.bias.dtype, least);
}

static void bias_very_negative(attention_problem *p) {
    double *bias = data_of(p, CLATTN_TENSOR_BIAS);
    for (int64_t n = 0; n < attention_count(p, CLATTN_TENSOR_BIAS); n++) bias[n] = (float)(bias[n] - 1e5);
}

static void one_nan_query(attention_problem *p) { data_of(p, CLATTN_TENSOR_Q)[p->c.head_dim * 5 + 1] = NAN; }
static void one_nan_key(attention_problem *p) { data_of(p, CLATTN_TENSOR_K)[p->c.head_dim * 5 + 1] = NAN; }
static void one_infinite_key(attention_problem *p) { data_of(p, CLATTN_TENSOR_K)[p->c.head_dim * 7 + 1] = INFINITY; }
static void one_nan_value(attention_problem *p) { data_of(p, CLATTN_TENSOR_V)[p->c.value_dim * 9 + 1] = NAN; }
static void one_nan_bias(attention_problem *p) { data_of(p, CLATTN_TENSOR_BIAS)[11] = NAN; }
static void one_infinite_value(attention_problem *p) { data_of(p, CLATTN_TENSOR_V)[p->c.value_dim * 9 + 1] = INFINITY; }
static void one_infinite_bias(attention_problem *p) { data_of(p, CLATTN_TENSOR_BIAS)[12] = INFINITY; }

static void same_keys(attention_problem *p) {
    double *k = data_of(p, CLATTN_TENSOR_K);
    for (int64_t n = p->c.head_dim; n < attention_count(p, CLATTN_TENSOR_K); n++) k[n] = k[n % p->c.head_dim];
}

static void set_sink(attention_problem *p, double value) { data_of(p, CLATTN_TENSOR_SINKS)[0] = value; }
static void no_sink(attention_problem *p) { set_sink(p, -INFINITY); }
static void nan_sink(attention_problem *p) { set_sink(p, NAN); }
static void infinite_sink(attention_problem *p) { set_sink(p, INFINITY); }
static void large_sinks(attention_problem *p) {
    double *sinks = data_of(p, CLATTN_TENSOR_SINKS);
    for (int64_t n = 0; n < attention_count(p, CLATTN_TENSOR_SINKS); n++) sinks[n] = n % 2 ? 1e4 : -1e4;
}

static void lengths_of_all_kinds(attention_problem *p) {
    double *lengths = data_of(p, CLATTN_TENSOR_KV_LENGTHS);
    for (int64_t b = 0; b < p->c.batch; b++) lengths[b] = (double)(b == 0 ? 0 : b == 1 ? p->keys : b == 2 ? 1 : p->keys - b);
}

static void nobody_has_keys(attention_problem *p) {
    memset(data_of(p, CLATTN_TENSOR_KV_LENGTHS), 0, (size_t)p->c.batch * sizeof(double));
}

/* ---- the table ---------------------------------------------------------------------------------------------------- */

typedef struct option_case {
    attention_case c;
    void (*edit)(attention_problem *);
} option_case;

/* clang-format off */
static const option_case cases[] = {
    /*                                     batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim */
    /* 1: rows without a live key, tiles without one, least masks */
    {{"1 rows masked as a whole",              2, 4, 2,  37, 130, 24, 24, MASK(.per_cent = 30, .whole_rows = true)}},
    {{"1 all is masked",                       1, 2, 2,  19,  70, 24, 24, MASK()}, mask_all},
    {{"1 all is masked, sinks",                1, 2, 2,  19,  70, 24, 24, MASK(), .sinks = true}, mask_all},
    {{"1 first tiles masked",                  1, 2, 1,  40, 430, 24, 24, MASK(), .poison = true}, mask_first_tiles},
    {{"1 first tiles masked, few queries",     1, 4, 1,   4, 1100, 24, 24, MASK(), .poison = true}, mask_first_tiles},
    {{"1 first tiles biased away",             1, 2, 1,  40, 430, 24, 24, BIAS(), .poison = true}, bias_first_tiles},
    {{"1 rows biased away",                    2, 4, 2,  37, 130, 24, 24, BIAS(.per_cent = 30, .whole_rows = true)}},
    {{"1 least bias here and there",           2, 4, 2,  37, 130, 24, 24, BIAS(.per_cent = 50, .whole_rows = true, .least = true)}},
    {{"1 least bias everywhere",               1, 2, 2,  37, 130, 24, 24, BIAS()}, least_everywhere},
    {{"1 least bias everywhere, few queries",  1, 4, 1,   4, 1100, 24, 24, BIAS(.lowest = true)}, least_everywhere},
    {{"1 scores very negative, few queries",   1, 4, 1,   4, 1100, 24, 24, BIAS()}, bias_very_negative},
    {{"1 least bias and ALiBi",                1, 2, 2,  37, 130, 24, 24, BIAS(), STANDARD}, least_everywhere},
    {{"1 least bias in f16",                   1, 2, 2,  37, 130, 24, 24, F16, BIAS(.narrow = true, .per_cent = 40, .least = true)}},
    {{"1 least bias in bf16",                  1, 2, 2,  37, 130, 24, 24, BF16, BIAS(.narrow = true, .per_cent = 40, .least = true)}},
    {{"1 all scores very negative",            1, 2, 2,  37, 130, 24, 24, BIAS()}, bias_very_negative},
    {{"1 a NaN query",                         1, 2, 1,  37, 130, 24, 24, MASK(.per_cent = 50), STANDARD, .softcap = 5}, one_nan_query},
    {{"1 a NaN key",                           1, 2, 1,  37, 130, 24, 24, MASK(.per_cent = 50), .softcap = 5}, one_nan_key},
    {{"1 a NaN key, few queries",              1, 4, 1,   5, 700, 24, 24, MASK(.per_cent = 50)}, one_nan_key},
    {{"1 an infinite key",                     1, 2, 1,  37, 130, 24, 24, MASK(.per_cent = 50)}, one_infinite_key},
    {{"1 an infinite key, capped",             1, 2, 1,  37, 130, 24, 24, MASK(.per_cent = 50), .softcap = 5}, one_infinite_key},
    {{"1 a NaN value",                         1, 2, 1,  37, 130, 24, 24, MASK(.per_cent = 50), BIAS(.per_cent = 20)}, one_nan_value},
    {{"1 a NaN value in a window",             1, 2, 1,  37, 130, 24, 24, WINDOW(3, 3)}, one_nan_value},
    {{"1 an infinite value in a window",       1, 2, 1,  37, 130, 24, 24, WINDOW(3, 3)}, one_infinite_value},
    {{"1 a NaN bias",                          1, 2, 1,  37, 130, 24, 24, BIAS()}, one_nan_bias},
    {{"1 an infinite bias",                    1, 2, 1,  37, 130, 24, 24, BIAS()}, one_infinite_bias},

    /* 2: alignment, windows (and all of them below) */
    {{"2 window alone",                        1, 2, 2, 150, 150, 24, 24, WINDOW(7, 9)}},
    {{"2 window of one",                       1, 2, 2, 150, 150, 24, 24, WINDOW(0, 0)}},
    {{"2 window, causal, bottom-right",        1, 2, 1,  53, 190, 24, 24, CAUSAL, BOTTOM_RIGHT, WINDOW(30, 5)}},
    {{"2 window, long queries, bottom-right",  1, 2, 1, 190,  53, 24, 24, BOTTOM_RIGHT, WINDOW(30, 5)}},
    {{"2 window to the right alone",           1, 2, 1, 100, 190, 24, 24, WINDOW(-1, 20)}},
    {{"2 window to the left alone",            1, 2, 1, 100, 190, 24, 24, WINDOW(20, -1)}},
    {{"2 window past the keys",                1, 2, 1, 100, 190, 24, 24, OFFSET(500), WINDOW(20, 20)}},
    {{"2 window before the keys",              1, 2, 1, 100, 190, 24, 24, OFFSET(-500), WINDOW(20, 20)}},
    {{"2 window without end",                  1, 2, 1, 100, 190, 24, 24, OFFSET(50), WINDOW((int64_t)1 << 61, 3)}},
    {{"2 window far away",                     1, 2, 1, 100, 190, 24, 24, OFFSET((int64_t)1 << 61), WINDOW((int64_t)1 << 61, 3)}},
    {{"2 window, few queries",                 2, 4, 1,   3, 900, 24, 24, BOTTOM_RIGHT, WINDOW(300, 0)}},
    {{"2 alignment of members",                4, 4, 2,  20,  90, 24, 24, CAUSAL, BOTTOM_RIGHT, .lengths = true, .poison = true}, lengths_of_all_kinds},
    {{"2 window of members",                   4, 4, 2,  20,  90, 24, 24, BOTTOM_RIGHT, WINDOW(10, 10), .lengths = true, .poison = true}, lengths_of_all_kinds},

    /* 3: tails, modified scores without a mask */
    {{"3 softcap alone",                       1, 2, 2,  37, 131, 23, 29, .softcap = 3}},
    {{"3 softcap, large scores",               1, 2, 2,  37, 131, 23, 29, .softcap = 30, .amplitude = 100}},
    {{"3 standard slopes alone",               1, 8, 2,  37, 131, 23, 29, STANDARD}},
    {{"3 standard slopes, 12 heads",           1, 12, 3, 21,  67, 23, 29, STANDARD, BOTTOM_RIGHT}},
    {{"3 given slopes, causal",                2, 6, 3,  37, 131, 23, 29, GIVEN, CAUSAL, PAST(90)}},
    {{"3 slopes by member",                    3, 6, 3,  37, 131, 23, 29, GIVEN, .by_member = true}},
    {{"3 ALiBi far away",                      1, 2, 2,  17,  67, 23, 29, STANDARD, OFFSET(1000000)}},
    {{"3 ALiBi, few queries",                  2, 8, 2,   5, 601, 23, 29, STANDARD, BOTTOM_RIGHT}},
    {{"3 softcap, few queries",                2, 8, 2,   5, 601, 23, 29, .softcap = 2}},
    {{"3 one of all, modified",                1, 1, 1,   1,   1,  1,  1, .softcap = 2, STANDARD, BIAS(), MASK()}},

    /* 4: zero */
    {{"4 no batch",                            0, 2, 2,   5,   7,  8,  8, MASK(), BIAS(), .sinks = true}},
    {{"4 no queries",                          2, 2, 2,   0,   7,  8,  8, MASK(), BIAS(), .sinks = true}},
    {{"4 no keys, sinks",                      2, 2, 2,   5,   0,  8,  8, .sinks = true}},
    {{"4 no keys, mask",                       2, 2, 2,   5,   0,  8,  8, MASK(), BIAS(), CAUSAL, BOTTOM_RIGHT}},
    {{"4 no head_dim, modified",               2, 2, 2,   5,   7,  0,  8, BIAS(), .softcap = 3}},
    {{"4 no value_dim, modified",              2, 2, 2,   5,   7,  8,  0, BIAS(), .softcap = 3}},
    {{"4 no heads",                            2, 0, 0,   5,   7,  8,  8, STANDARD}},
    {{"4 nobody has keys",                     3, 2, 2,   5,   7,  8,  8, .lengths = true, .poison = true}, nobody_has_keys},
    {{"4 nobody has keys, few queries",        3, 2, 2,   5, 300,  8,  8, .lengths = true, .sinks = true, .poison = true}, nobody_has_keys},
    {{"4 a mask of no keys",                   1, 2, 2,   5,   7,  8,  8, MASK(.missing = 7)}},
    {{"4 ragged, no members",                  0, 2, 2,   5,   7,  8,  8, .ragged = true}},
    {{"4 ragged, no queries",                  3, 2, 2,   0,   7,  8,  8, .ragged = true}},
    {{"4 ragged, no keys",                     3, 2, 2,   5,   0,  8,  8, .ragged = true, .sinks = true}},
    {{"4 an empty past",                       2, 2, 2,   5,   7,  8,  8, .cache = CACHE_PAST, .past = 0}},
    {{"4 nothing new",                         2, 2, 2,   5,   0,  8,  8, .cache = CACHE_PAST, .past = 9}},
    {{"4 nothing new in place",                2, 2, 2,   5,   0,  8,  8, .cache = CACHE_IN_PLACE, .past = 9}},

    /* 6: masks of every shape (and all broadcasts below) */
    {{"6 short mask",                          2, 4, 2,  37, 131, 24, 24, MASK(.missing = 50, .per_cent = 20), .poison = true}},
    {{"6 short bias",                          2, 4, 2,  37, 131, 24, 24, BIAS(.missing = 3), .poison = true}},
    {{"6 short mask, few queries",             2, 4, 2,   3, 700, 24, 24, MASK(.missing = 200, .per_cent = 20), .poison = true}},
    {{"6 mask and bias",                       2, 4, 2,  37, 131, 24, 24, MASK(.missing = 5, .per_cent = 20, .broadcast = ONE_HEAD), BIAS(.per_cent = 20, .broadcast = ONE_BATCH)}},

    /* 7: what nobody looks at */
    {{"7 causal",                              2, 4, 2,  40, 150, 24, 24, CAUSAL, .poison = true}},
    {{"7 window",                              2, 4, 2,  40, 300, 24, 24, OFFSET(120), WINDOW(20, 20), .poison = true}},
    {{"7 lengths",                             5, 4, 2,  40, 150, 24, 24, .lengths = true, .poison = true}, lengths_of_all_kinds},
    {{"7 lengths of 64 bits",                  5, 4, 2,  40, 150, 24, 24, .lengths = true, .wide = true, .poison = true}, lengths_of_all_kinds},
    {{"7 lengths, few queries",                5, 8, 2,   2, 640, 24, 24, .lengths = true, .poison = true}, lengths_of_all_kinds},
    {{"7 mask of keys",                        2, 4, 2,  40, 150, 24, 24, MASK(.per_cent = 40, .broadcast = ONE_HEAD | ONE_QUERY), .poison = true}},
    {{"7 bias of keys",                        2, 4, 2,  40, 150, 24, 24, BIAS(.per_cent = 40, .broadcast = ONE_HEAD | ONE_QUERY), .poison = true}},
    {{"7 mask of keys, few queries",           2, 4, 2,   4, 650, 24, 24, MASK(.per_cent = 40, .broadcast = ONE_HEAD | ONE_QUERY), .poison = true}},
    {{"7 ragged",                              5, 4, 2,  40, 150, 24, 24, .ragged = true, .poison = true}},
    {{"7 ragged, causal, wide",                9, 4, 2,  70, 130, 24, 24, .ragged = true, CAUSAL, BOTTOM_RIGHT, .poison = true, .wide = true}},
    {{"7 ragged, ALiBi, sinks",                9, 4, 2,  70, 130, 24, 24, .ragged = true, STANDARD, .sinks = true, .softcap = 4, WINDOW(40, 3), .poison = true, .by_member = true}},

    /* 8: the order of scale, softcap, bias, ALiBi, mask */
    {{"8 everything",                          2, 4, 2,  40, 150, 24, 24, CAUSAL, BOTTOM_RIGHT, WINDOW(100, 0), SCALE(2), .softcap = 3, STANDARD, .sinks = true,
      MASK(.per_cent = 20), BIAS(.per_cent = 10)}},
    {{"8 everything, few queries",             2, 4, 2,   7, 550, 24, 24, CAUSAL, BOTTOM_RIGHT, WINDOW(500, 0), SCALE(2), .softcap = 3, STANDARD, .sinks = true,
      MASK(.per_cent = 20), BIAS(.per_cent = 10)}},
    {{"8 softcap, then a large bias",          1, 2, 2,  40, 150, 24, 24, SCALE(3), .softcap = 1, BIAS()}},
    {{"8 negative scale, softcap",             1, 2, 2,  40, 150, 24, 24, SCALE(-3), .softcap = 2}},
    {{"8 scale of 0, bias",                    1, 2, 2,  40, 150, 24, 24, SCALE(0), BIAS()}},
    {{"8 softcap and softcap's scores",        1, 2, 2,  40, 150, 24, 24, .softcap = 2, BIAS(), MASK(.per_cent = 20), .form = CLATTN_SCORES_SOFTCAP, CAUSAL}},
    {{"8 scores after all",                    1, 2, 2,  40, 150, 24, 24, .softcap = 2, BIAS(), MASK(.per_cent = 20), .form = CLATTN_SCORES_BIAS, CAUSAL}},
    {{"8 scores after nothing",                1, 2, 2,  40, 150, 24, 24, .form = CLATTN_SCORES_BIAS}},
    {{"8 scores after a length",               3, 2, 2,  40, 150, 24, 24, .form = CLATTN_SCORES_BIAS, .lengths = true}},
    {{"8 raw scores of padding",               3, 2, 2,  40, 150, 24, 24, .softcap = 2, .lengths = true, .poison = true}},
    {{"8 scores in f16",                       2, 2, 2,  40, 150, 24, 24, F16, .narrow = true, .softcap = 2, BIAS(), .form = CLATTN_SCORES_BIAS}},
    {{"8 scores of f16 in f32",                2, 2, 2,  40, 150, 24, 24, F16, .softcap = 2, BIAS(), .form = CLATTN_SCORES_SOFTCAP}},

    /* 9: the log-sum-exp */
    {{"9 sinks",                               2, 4, 2,  40, 150, 24, 24, .sinks = true}},
    {{"9 sinks by member",                     3, 4, 2,  40, 150, 24, 24, .sinks = true, .by_member = true, MASK(.whole_rows = true)}},
    {{"9 sinks, few queries",                  3, 4, 2,   4, 650, 24, 24, .sinks = true, .by_member = true, MASK(.whole_rows = true)}},
    {{"9 a sink of nothing",                   2, 4, 2,  40, 150, 24, 24, .sinks = true, MASK(.whole_rows = true)}, no_sink},
    {{"9 a NaN sink",                          2, 4, 2,  40, 150, 24, 24, .sinks = true, MASK(.whole_rows = true)}, nan_sink},
    {{"9 a NaN sink, few queries",             2, 4, 2,   4, 650, 24, 24, .sinks = true, MASK(.whole_rows = true)}, nan_sink},
    {{"9 an infinite sink",                    2, 4, 2,  40, 150, 24, 24, .sinks = true, MASK(.whole_rows = true)}, infinite_sink},
    {{"9 an infinite sink, few queries",       2, 4, 2,   4, 650, 24, 24, .sinks = true, MASK(.whole_rows = true)}, infinite_sink},
    {{"9 large sinks",                         2, 4, 2,  40, 150, 24, 24, .sinks = true}, large_sinks},

    /* 10: range */
    {{"10 f16, scores past 65504",             1, 2, 2,  40, 150, 64, 64, F16, .amplitude = 8000}},
    {{"10 f16, scores past 65504, scaled",     1, 2, 2,  40, 150, 64, 64, F16, .amplitude = 8000, SCALE(1e-4)}},
    {{"10 f16, small numbers",                 1, 2, 2,  40, 150, 24, 24, F16, .amplitude = 1e-6, SCALE(1e5)}},
    {{"10 bf16, large numbers",                1, 2, 2,  40, 150, 24, 24, BF16, .amplitude = 1e30, SCALE(1e-30)}},
    {{"10 logits of 1e4, masked",              1, 2, 2,  40, 150, 64, 64, .amplitude = 1e4, MASK(.per_cent = 50)}},
    {{"10 the same keys",                      1, 2, 2,  40, 150, 64, 64, MASK(.per_cent = 50)}, same_keys},
    {{"10 the same keys, few queries",         1, 2, 2,   4, 650, 64, 64}, same_keys},

    /* types */
    {{"f16",                                   2, 4, 2,  41, 157, 40, 24, F16}},
    {{"bf16",                                  2, 4, 2,  41, 157, 40, 24, BF16}},
    {{"f64",                                   2, 4, 2,  41, 157, 40, 24, F64}},
    {{"f16, few queries",                      2, 8, 2,   3, 700, 40, 24, F16}},
    {{"bf16, few queries",                     2, 8, 2,   3, 700, 40, 24, BF16}},
    {{"f64, few queries",                      2, 8, 2,   3, 700, 40, 24, F64}},
    {{"f16, everything",                       2, 4, 2,  40, 150, 24, 24, F16, CAUSAL, BOTTOM_RIGHT, SCALE(2), .softcap = 3, STANDARD, .sinks = true,
      MASK(.per_cent = 20), BIAS(.per_cent = 10, .narrow = true), .poison = true}},
    {{"bf16, everything",                      2, 4, 2,  40, 150, 24, 24, BF16, CAUSAL, BOTTOM_RIGHT, SCALE(2), .softcap = 3, STANDARD, .sinks = true,
      MASK(.per_cent = 20), BIAS(.per_cent = 10, .narrow = true), .poison = true}},
    {{"f64, everything",                       2, 4, 2,  40, 150, 24, 24, F64, CAUSAL, BOTTOM_RIGHT, SCALE(2), .softcap = 3, STANDARD, .sinks = true,
      MASK(.per_cent = 20), BIAS(.per_cent = 10, .narrow = true), .poison = true}},
    {{"f64, softcap below a float's",          2, 4, 2,  40, 150, 24, 24, F64, .softcap = 1e-50}},
    {{"f64, bias in f32",                      2, 4, 2,  40, 150, 24, 24, F64, BIAS(.per_cent = 10)}},
    {{"f64, scores in f32",                    2, 4, 2,  40, 150, 24, 24, F64}},
    {{"f64, scores in f64",                    2, 4, 2,  40, 150, 24, 24, F64, .narrow = true, .form = CLATTN_SCORES_BIAS, CAUSAL}},
    {{"f16, ragged",                           5, 4, 2,  40, 150, 24, 24, F16, .ragged = true, .poison = true}},
    {{"bf16, lengths",                         5, 4, 2,  40, 150, 24, 24, BF16, .lengths = true, .poison = true}, lengths_of_all_kinds},

    /* heads of MLA */
    {{"heads of 192 and 128",                  1, 4, 1,  33,  70, 192, 128, CAUSAL, BOTTOM_RIGHT}},
    {{"heads of 576 and 512",                  1, 4, 1,   9,  70, 576, 512, .softcap = 20}},

    /* caches */
    {{"past",                                  2, 4, 2,  21,  21, 24, 24, CAUSAL, PAST(0), .cache = CACHE_PAST, .past = 60}},
    {{"past, not returned",                    2, 4, 2,  21,  21, 24, 24, CAUSAL, BOTTOM_RIGHT, .cache = CACHE_PAST_ONLY, .past = 60}},
    {{"past, other lengths, window",           2, 4, 2,  21,  33, 24, 24, PAST(0), WINDOW(20, 4), .cache = CACHE_PAST, .past = 60, .poison = true}},
    {{"past, mask, bias",                      2, 4, 2,  21,  21, 24, 24, MASK(.per_cent = 30, .missing = 4), BIAS(), .cache = CACHE_PAST, .past = 60}},
    {{"in place",                              4, 4, 2,   5,   5, 24, 24, CAUSAL, PAST(0), .cache = CACHE_IN_PLACE, .past = 60, .poison = true}},
    {{"in place, long",                        4, 4, 2,   1,   1, 24, 24, CAUSAL, PAST(0), .cache = CACHE_IN_PLACE, .past = 600, .poison = true}},
    {{"in place, bottom-right, wide",          4, 4, 2,   5,   9, 24, 24, CAUSAL, BOTTOM_RIGHT, .cache = CACHE_IN_PLACE, .past = 60, .poison = true, .wide = true}},
    {{"in place, past, other lengths",         4, 4, 2,   9,   5, 24, 24, CAUSAL, PAST(0), .cache = CACHE_IN_PLACE, .past = 60, .poison = true}},
    {{"in place, mask, ALiBi, sinks",          4, 4, 2,   5,   5, 24, 24, MASK(.per_cent = 20), STANDARD, PAST(0), .sinks = true, .cache = CACHE_IN_PLACE, .past = 60}},
    {{"in place, f16",                         4, 4, 2,   5,   5, 24, 24, F16, CAUSAL, PAST(0), .cache = CACHE_IN_PLACE, .past = 60, .poison = true}},
    {{"past, bf16",                            2, 4, 2,  21,  21, 24, 24, BF16, CAUSAL, PAST(0), .cache = CACHE_PAST, .past = 60}},
    {{"past, f64",                             2, 4, 2,  21,  21, 24, 24, F64, CAUSAL, PAST(0), .cache = CACHE_PAST, .past = 60}},

    /* rotary */
    {{"rotary half",                           2, 4, 2,  21,  21, 24, 24, .rotary = CLATTN_ROTARY_HALF, .pairs = 12}},
    {{"rotary interleaved",                    2, 4, 2,  21,  21, 24, 24, .rotary = CLATTN_ROTARY_INTERLEAVED, .pairs = 12}},
    {{"rotary, partial",                       2, 4, 2,  21,  33, 24, 24, .rotary = CLATTN_ROTARY_HALF, .pairs = 5}},
    {{"rotary, partial, interleaved",          2, 4, 2,  33,  21, 24, 24, .rotary = CLATTN_ROTARY_INTERLEAVED, .pairs = 5}},
    {{"rotary, past_len, no mask",             2, 4, 2,  21,  21, 24, 24, PAST(7), .rotary = CLATTN_ROTARY_HALF, .pairs = 12}},
    {{"rotary, past_len",                      2, 4, 2,  21,  21, 24, 24, CAUSAL, PAST(7), .rotary = CLATTN_ROTARY_HALF, .pairs = 12}},
    {{"rotary, past",                          2, 4, 2,  21,  21, 24, 24, CAUSAL, PAST(0), .rotary = CLATTN_ROTARY_HALF, .pairs = 12, .cache = CACHE_PAST, .past = 40}},
    {{"rotary, past, not returned",            2, 4, 2,  21,  21, 24, 24, CAUSAL, PAST(0), .rotary = CLATTN_ROTARY_HALF, .pairs = 12, .cache = CACHE_PAST_ONLY, .past = 40}},
    {{"rotary in place",                       4, 4, 2,   5,   5, 24, 24, CAUSAL, PAST(0), .rotary = CLATTN_ROTARY_INTERLEAVED, .pairs = 9, .cache = CACHE_IN_PLACE, .past = 40, .poison = true}},
    {{"rotary in place, tables by member",     4, 4, 2,   1,   1, 24, 24, CAUSAL, PAST(0), .rotary = CLATTN_ROTARY_HALF, .pairs = 9, .cache = CACHE_IN_PLACE, .past = 40, .by_member = true}},
    {{"rotary, f16",                           2, 4, 2,  21,  21, 24, 24, F16, CAUSAL, PAST(0), .rotary = CLATTN_ROTARY_HALF, .pairs = 12, .cache = CACHE_PAST, .past = 40}},
    {{"rotary, f64",                           2, 4, 2,  21,  21, 24, 24, F64, .rotary = CLATTN_ROTARY_HALF, .pairs = 12}},
};
/* clang-format on */

static attention_problem make(const option_case *o, uint64_t stream) {
    rng r = rng_make(stream);
    attention_problem p = attention_problem_draw(&o->c, &r);
    if (o->edit) o->edit(&p);
    attention_problem_solve(&p);
    return p;
}

static void check_outputs(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    attention_results r = attention_run(context, p, LAYOUT_BHLD, algorithm, attention_outputs(p, algorithm));
    attention_assert_close(&r, p, where);
    attention_results_free(&r);
}

/* From a case that is drawn on: programs are built for the first cases alone, see support.c. */
START_TEST(every_case_on_every_row) {
    const size_t n = (size_t)(test_seed() % COUNT(cases) + (uint64_t)_i) % COUNT(cases);
    if (!test_draws(n, COUNT(cases))) return;
    attention_problem p = make(&cases[n], n);
    attention_on_every_row(&p, check_outputs);
    attention_on_every_device(&p, check_outputs);
    attention_problem_free(&p);
}
END_TEST

static bool is_staged(const clattn__row *row) { return row->role == CLATTN__ROLE_SCORES || row->role == CLATTN__ROLE_WEIGHTED_VALUES; }

/* Leave the rows of fragments alone in the role of fused attention. In those of the stages they are the only ones that take the type. */
static void force_fragments(clattn_context *context) {
    force_none(context);
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++)
        if (row->role == CLATTN__ROLE_ATTENTION && !clattn__row_macro(row, "MMA", 0)) ck_assert(clattn__row_ban(context, row, NULL));
}

/* Where a layout has two rows for a stage, the second serves. */
static void force_second(clattn_context *context, int layout) {
    for (const clattn__row *row = clattn__rows; row + 1 < clattn__rows + clattn__row_count; row++)
        if (is_staged(row) && row[1].role == row->role && clattn__row_macro(row, "MMA", 0) == layout &&
            clattn__row_macro(row + 1, "MMA", 0) == layout)
            ck_assert(clattn__row_ban(context, row, NULL));
}

/* The largest heads that rows of a layout take. */
static int largest_head(int layout) {
    int largest = 0;
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++)
        if (clattn__row_macro(row, "MMA", 0) == layout && clattn__row_macro(row, "HEAD_DIM_LIMIT", 0) > largest)
            largest = clattn__row_macro(row, "HEAD_DIM_LIMIT", 0);
    return largest;
}

/* An algorithm, and what its rows of fragments are called. */
typedef struct by_fragments {
    clattn_algorithm algorithm;
    const char *rows[2];
} by_fragments;

static void check_fragments(const by_fragments *by, const attention_problem *p, layout l, const char *name, int fragments, bool second) {
    const bool runs = p->c.batch && p->c.heads_q && p->c.len_q && p->keys && p->c.value_dim;
    emulate_layout(fragments);
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        if (!context || !context->device.has_gpu_family || context->device.has_cpu_family) continue;
        char where[160];
        snprintf(where, sizeof where, "%s on %s by fragments of layout %d", name, test_device_name(d), fragments);
        force_fragments(context);
        if (second) force_second(context, fragments);
        attention_results r = attention_run(context, p, l, by->algorithm, attention_outputs(p, by->algorithm));
        attention_assert_close(&r, p, where);
        for (int n = 0; n < 2 && runs; n++) ck_assert_msg(strstr(r.row, by->rows[n]), "%s: %s", where, r.row);
        attention_results_free(&r);
        force_none(context);
    }
    emulate_layout(0);
}

/* The f32 cases again by the rows for matrix units, as they are emulated; in some of them heads are larger. A compilation takes
 * seconds: a run takes NVIDIA's layout and one other, drawn by the seed, each in one type. CLATTN_TEST_LAYOUTS=1 takes all. */
START_TEST(every_case_by_fragments) {
    static const by_fragments by = {CLATTN_ALGORITHM_FUSED, {"attention_mma", ""}};
    const option_case *o = &cases[_i];
    if (o->c.dtype || o->c.head_dim > 64 || o->c.value_dim > 64 || o->c.amplitude > 1) return; /* f32 alone holds those numbers */
    const bool all = getenv("CLATTN_TEST_LAYOUTS") != NULL, wide = o->c.head_dim == 24 && !o->c.rotary;
    for (int layout = MMA_NVIDIA; layout <= MMA_XE16; layout++) {
        if (!all && layout != MMA_NVIDIA && layout != MMA_CDNA + (int)(test_seed() % (MMA_XE16 - MMA_NVIDIA))) continue;
        option_case typed = *o;
        if (wide && largest_head(layout) > 64) {
            const bool largest = _i % 4 == 0 && largest_head(layout) == 256;
            typed.c.head_dim = largest ? 200 : 100;
            typed.c.value_dim = 120;
        }
        typed.c.dtype = (all ? (uint64_t)(_i + layout) : test_seed() / 4) % 2 ? CLATTN_F16 : CLATTN_BF16;
        attention_problem p = make(&typed, (uint64_t)_i);
        check_fragments(&by, &p, LAYOUT_BHLD, o->c.name, layout, false);
        attention_problem_free(&p);
    }
}
END_TEST

/* The same by the stages' rows, with tensors in all layouts; a run takes one layout of fragments, one row of it and one type. */
START_TEST(every_case_by_staged_fragments) {
    static const by_fragments by = {CLATTN_ALGORITHM_STAGED, {"scores_mma", "weighted_mma"}};
    const option_case *o = &cases[_i];
    const bool all = getenv("CLATTN_TEST_LAYOUTS") != NULL;
    if (o->c.dtype || o->c.ragged || o->c.amplitude > 1) return;
    for (int fragments = MMA_NVIDIA; fragments <= MMA_XE16; fragments++) {
        const uint64_t draw = all ? (uint64_t)(_i + fragments) : test_seed() / MMA_XE16;
        if (!all && fragments != MMA_NVIDIA + (int)(test_seed() % MMA_XE16)) continue;
        option_case typed = *o;
        typed.c.dtype = draw % 2 ? CLATTN_F16 : CLATTN_BF16;
        if (_i % 3 == 0 && !o->c.rotary) typed.c.head_dim += 40, typed.c.value_dim += 112;
        attention_problem p = make(&typed, (uint64_t)_i);
        check_fragments(&by, &p, (layout)(_i % LAYOUT_COUNT), o->c.name, fragments, draw / 2 % 2);
        attention_problem_free(&p);
    }
}
END_TEST

/* The same cases in bf16 by the native rows of tiles: by the processor's where it has some, and emulated. */
START_TEST(every_case_by_tiles) {
    option_case o = cases[_i];
    if (!test_draws((size_t)_i, COUNT(cases))) return;
    if (o.c.dtype || o.c.amplitude > 1) return; /* f32 alone holds those numbers */
    o.c.dtype = CLATTN_BF16;
    if (_i % 2) o.c.head_dim += 64, o.c.value_dim += 40;
    if (o.c.head_dim > 256 || o.c.value_dim > 256) return;
    attention_problem p = make(&o, (uint64_t)_i);
    const clattn__params none = {0};
    int rows = 0;
    for (size_t d = 0; d < test_device_count(); d++) {
        clattn_context *context = test_context(d);
        for (const clattn__row *row = clattn__rows; context && row < clattn__rows + clattn__row_count; row++) {
            if (row->family != CLATTN__FAMILY_NATIVE || row->role != CLATTN__ROLE_ATTENTION || !row_may_serve(context, row)) continue;
            char where[160];
            snprintf(where, sizeof where, "%s on %s by %s", o.c.name, test_device_name(d), row->name);
            force_row(context, row, &none);
            attention_results r = attention_run(context, &p, LAYOUT_BHLD, CLATTN_ALGORITHM_FUSED, WANT_LSE);
            attention_assert_close(&r, &p, where);
            if (o.c.batch && o.c.heads_q && o.c.len_q) ck_assert_msg(strstr(r.row, row->name), "%s: %s", where, r.row);
            attention_results_free(&r);
            force_none(context);
            rows++;
        }
    }
    attention_problem_free(&p);
    ck_assert_msg(rows > 0 || getenv("CLATTN_TEST_DEVICES"), "no row of tiles was run");
}
END_TEST

/* Written apart, oracle and naive computation agree. */
START_TEST(oracle_and_naive_agree) {
    attention_problem p = make(&cases[_i], (uint64_t)_i);
    const double limit = p.c.dtype == CLATTN_F16 ? 4e-3 : p.c.dtype == CLATTN_BF16 ? 2e-2 : 1e-4;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        if (!p.expected[id].oracle) continue;
        const verdict v = judge_values(p.expected[id].naive, &p.expected[id]);
        ck_assert_msg(v.ok && (v.error < limit || p.c.amplitude > 1), "%s, %s: %g %s", p.c.name,
                      clattn_tensor_name((clattn_tensor_id)id), v.error, v.text);
    }
    attention_problem_free(&p);
}
END_TEST

/* Long rows have a closed form where all keys weigh the same: out is their mean, less what the sink takes. Kernels in f64 are judged
 * by the oracle, whose error must not grow with the number of keys. */
START_TEST(oracle_of_long_rows) {
    const attention_case c = {"f64, keys that weigh the same", 1, 8, 8, 1, 5003, 5, 5, F64, SCALE(0), .sinks = true};
    rng r = rng_make(30000);
    attention_problem p = attention_problem_draw(&c, &r);
    for (int64_t n = 0; n < attention_count(&p, CLATTN_TENSOR_V); n++) p.data[CLATTN_TENSOR_V][n] = 1;
    attention_problem_solve(&p);
    const double *weights = p.expected[CLATTN_TENSOR_WEIGHTS].oracle, *out = p.expected[CLATTN_TENSOR_OUT].oracle;
    for (int64_t h = 0; h < c.heads_q; h++) {
        const double sum = (double)c.len_kv + exp(p.data[CLATTN_TENSOR_SINKS][h]);
        const double weight = weights[h * c.len_kv] * sum, mean = out[h * c.value_dim] * sum / (double)c.len_kv;
        ck_assert_msg(fabs(weight - 1) <= 4 * DBL_EPSILON && fabs(mean - 1) <= 4 * DBL_EPSILON,
                      "head %lld: a weight is %g and out %g too large (seed %llu)", (long long)h, weight - 1, mean - 1,
                      (unsigned long long)test_seed());
    }
    attention_problem_free(&p);
}
END_TEST

/* ---- alignments and windows --------------------------------------------------------------------------------------- */

/* Window bounds of nothing, of one, about the length, and none: with every alignment, for three shapes. */
static attention_case window_case(int n) {
    static const int64_t shapes[][2] = {{37, 37}, {20, 53}, {53, 20}};
    const int64_t *shape = shapes[n % 3], keys = shape[1], bounds[] = {-1, 0, 1, keys - 2, keys - 1, keys, keys + 1};
    attention_case c = {"windows", 1, 2, 1, shape[0], shape[1], 8, 8};
    c.align = (clattn_align)(n / 3 % 4);
    c.position = c.align == CLATTN_ALIGN_PAST ? 11 : c.align == CLATTN_ALIGN_OFFSET ? -5 : 0;
    c.causal = n / 12 % 2;
    c.left = bounds[n / 24 % 7];
    c.right = bounds[n / 168 % 7];
    c.has_window = c.left != -1 || c.right != -1;
    if (!c.has_window) c.left = c.right = 0;
    if (!c.has_window && !c.causal) c.align = CLATTN_ALIGN_TOP_LEFT, c.position = 0;
    return c;
}

enum { WINDOW_CASES = 3 * 4 * 2 * 7 * 7, WINDOW_STEP = 24 };

START_TEST(windows_and_alignments) {
    rng r = rng_make(10000 + (uint64_t)_i);
    for (int n = _i; n < WINDOW_CASES; n += WINDOW_STEP) {
        const attention_case c = window_case(n);
        attention_problem p = attention_problem_make(&c, &r);
        attention_on_every_device(&p, check_outputs);
        attention_problem_free(&p);
    }
}
END_TEST

/* ---- broadcasts --------------------------------------------------------------------------------------------------- */

/* Dimensions of size 1 and strides of 0 are the same mask, and the same bias. */
static void check_broadcasts(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm,
                             const char *where) {
    (void)algorithm;
    attention_results by_ones = attention_run(context, p, LAYOUT_BHLD, CLATTN_ALGORITHM_FUSED, WANT_LSE);
    attention_assert_close(&by_ones, p, where);
    attention_results staged = attention_run(context, p, LAYOUT_PADDED, CLATTN_ALGORITHM_STAGED, WANT_LSE | WANT_MATRICES);
    attention_assert_close(&staged, p, where);
    attention_results_free(&staged);
    attention_results_free(&by_ones);
}

START_TEST(masks_of_every_shape) {
    attention_case c = {"masks of every shape", 2, 4, 2, 19, 83, 16, 16, MASK(.per_cent = 30), BIAS(.per_cent = 10)};
    c.mask.broadcast = _i;
    c.bias.broadcast = (_i * 5 + 3) % 16;
    c.mask.missing = _i % 3;
    rng r = rng_make(11000 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&c, &r);
    attention_on_every_device(&p, check_broadcasts);
    attention_problem_free(&p);
}
END_TEST

/* ---- promises ----------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const attention_case promise_cases[] = {
    {"everything", 3, 4, 2, 29, 140, 24, 16, CAUSAL, BOTTOM_RIGHT, WINDOW(100, 0), .softcap = 3, STANDARD, .sinks = true,
     MASK(.per_cent = 20), BIAS(.per_cent = 10), .lengths = true, .poison = true},
    {"everything, few queries", 3, 4, 2, 4, 2000, 24, 16, CAUSAL, BOTTOM_RIGHT, WINDOW(1900, 0), .softcap = 3, STANDARD, .sinks = true,
     MASK(.per_cent = 20), BIAS(.per_cent = 10), .lengths = true, .poison = true},
    {"lengths", 3, 4, 2, 29, 140, 24, 16, CAUSAL, BOTTOM_RIGHT, .lengths = true, .sinks = true, .poison = true},
    {"few queries", 3, 4, 2, 4, 1500, 24, 16},
    {"in place", 3, 4, 2, 4, 4, 24, 16, CAUSAL, PAST(0), .cache = CACHE_IN_PLACE, .past = 200, .rotary = CLATTN_ROTARY_HALF, .pairs = 7,
     .poison = true},
    {"past", 3, 4, 2, 29, 29, 24, 16, CAUSAL, PAST(0), .cache = CACHE_PAST, .past = 60, STANDARD},
    {"ragged", 5, 4, 2, 60, 140, 24, 16, .ragged = true, CAUSAL, BOTTOM_RIGHT, STANDARD, .sinks = true, .poison = true},
    {"f16", 3, 4, 2, 29, 140, 24, 16, F16, BIAS(.narrow = true), .lengths = true, .poison = true},
};
/* clang-format on */

/* Every layout, twice: bitwise the packed one. */
static void check_layouts(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    const int want = attention_outputs(p, algorithm);
    attention_results packed = attention_run(context, p, LAYOUT_BHLD, algorithm, want);
    attention_assert_close(&packed, p, where);
    for (layout l = LAYOUT_BHLD; l < LAYOUT_COUNT; l++) {
        attention_results r = attention_run(context, p, l, algorithm, want);
        char what[192];
        snprintf(what, sizeof what, "%s, %s, %s against bhld", where, p->c.name, layout_name(l));
        attention_assert_same(&r, &packed, p, what);
        attention_results_free(&r);
    }
    attention_results_free(&packed);
}

START_TEST(any_layout_is_bitwise_the_packed_one) {
    rng r = rng_make(12000 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&promise_cases[_i], &r);
    attention_on_every_row(&p, check_layouts);
    attention_problem_free(&p);
}
END_TEST

static void check_members(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    const int want = attention_outputs(p, algorithm);
    attention_results whole = attention_run(context, p, LAYOUT_BHLD, algorithm, want);
    for (int64_t b = 0; b < p->c.batch; b++) {
        const attention_problem member = attention_problem_member(p, b);
        attention_results alone = attention_run(context, &member, LAYOUT_BHLD, algorithm, want);
        char what[192];
        snprintf(what, sizeof what, "%s, %s, member %lld alone", where, p->c.name, (long long)b);
        attention_results of_whole = whole;
        for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
            if (whole.data[id]) of_whole.data[id] += b * attention_count(&member, (clattn_tensor_id)id);
        }
        attention_assert_same(&alone, &of_whole, &member, what);
        attention_results_free(&alone);
    }
    attention_results_free(&whole);
}

START_TEST(a_member_alone_equals_itself_in_a_batch) {
    if (promise_cases[_i].ragged) return; /* see ragged_members_alone */
    rng r = rng_make(12100 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&promise_cases[_i], &r);
    attention_on_every_row(&p, check_members);
    attention_problem_free(&p);
}
END_TEST

/* The rows of one member of a ragged batch, (1, heads, its rows, dim), newly allocated. */
static double *member_rows(const double *data, const clattn_tensor *t, const double *offsets, int64_t b) {
    const int64_t first = (int64_t)offsets[b], rows = (int64_t)offsets[b + 1] - first, dim = t->size[3];
    double *own = test_alloc((size_t)(t->size[1] * rows * dim), sizeof *own);
    for (int64_t h = 0; h < t->size[1]; h++) {
        memcpy(own + h * rows * dim, data + (h * t->size[2] + first) * dim, (size_t)(rows * dim) * sizeof *own);
    }
    return own;
}

static void check_ragged_members(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm,
                                 const char *where) {
    attention_results whole = attention_run(context, p, LAYOUT_BHLD, algorithm, WANT_LSE);
    const double *q_offsets = p->data[CLATTN_TENSOR_Q_OFFSETS], *kv_offsets = p->data[CLATTN_TENSOR_KV_OFFSETS];
    static const clattn_tensor_id ids[] = {CLATTN_TENSOR_Q, CLATTN_TENSOR_OUT, CLATTN_TENSOR_LSE, CLATTN_TENSOR_K,
                                           CLATTN_TENSOR_V};
    for (int64_t b = 0; b < p->c.batch; b++) {
        attention_problem member = *p;
        double q_own[2] = {0, q_offsets[b + 1] - q_offsets[b]}, kv_own[2] = {0, kv_offsets[b + 1] - kv_offsets[b]};
        attention_results of_whole = {.row = ""};
        for (size_t n = 0; n < COUNT(ids); n++) {
            clattn_tensor *t = attention_tensor(&member.desc, ids[n]);
            const double *offsets = n < 3 ? q_offsets : kv_offsets;
            if (whole.data[ids[n]]) of_whole.data[ids[n]] = member_rows(whole.data[ids[n]], t, offsets, b);
            if (p->data[ids[n]]) member.data[ids[n]] = member_rows(p->data[ids[n]], t, offsets, b);
            t->size[2] = (int64_t)(offsets[b + 1] - offsets[b]);
        }
        member.data[CLATTN_TENSOR_Q_OFFSETS] = q_own;
        member.data[CLATTN_TENSOR_KV_OFFSETS] = kv_own;
        member.desc.q_offsets.size[3] = member.desc.kv_offsets.size[3] = 2;
        attention_results alone = attention_run(context, &member, LAYOUT_BHLD, algorithm, WANT_LSE);
        char what[192];
        snprintf(what, sizeof what, "%s, ragged member %lld alone", where, (long long)b);
        attention_assert_same(&alone, &of_whole, &member, what);
        attention_results_free(&alone);
        attention_results_free(&of_whole);
        for (size_t n = 0; n < COUNT(ids); n++) free(member.data[ids[n]]);
    }
    attention_results_free(&whole);
}

START_TEST(ragged_members_alone) {
    static const attention_case c = {
        "ragged", 7, 4, 2, 110, 140, 24, 16, .ragged = true, CAUSAL, BOTTOM_RIGHT, STANDARD, .sinks = true, .poison = true};
    rng r = rng_make(12200);
    attention_problem p = attention_problem_make(&c, &r);
    attention_on_every_row(&p, check_ragged_members);
    attention_problem_free(&p);
}
END_TEST

/* Change one key and its value, everywhere: rows that do not look at it must not notice, bitwise. */
static void check_unseen(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    const int want = attention_outputs(p, algorithm);
    attention_results before = attention_run(context, p, LAYOUT_BHLD, algorithm, want & ~WANT_SCORES);
    const int64_t keys = p->desc.k.size[2];
    for (int64_t j = 0; j < keys; j += 1 + keys / 7) {
        attention_problem other = *p;
        static const clattn_tensor_id ids[] = {CLATTN_TENSOR_K, CLATTN_TENSOR_V};
        for (size_t n = 0; n < COUNT(ids); n++) {
            const int64_t count = attention_count(p, ids[n]), dim = attention_tensor(&other.desc, ids[n])->size[3];
            double *changed = test_alloc((size_t)count, sizeof *changed);
            for (int64_t e = 0; e < count; e++) changed[e] = e / dim % keys != j ? p->data[ids[n]][e] : j % 2 ? NAN : 7;
            other.data[ids[n]] = changed;
        }
        attention_results after = attention_run(context, &other, LAYOUT_BHLD, algorithm, want & ~WANT_SCORES);
        char what[192];
        snprintf(what, sizeof what, "%s, %s, key %lld changed", where, p->c.name, (long long)j);
        attention_assert_unseen(&before, &after, p, j, what);
        attention_results_free(&after);
        for (size_t n = 0; n < COUNT(ids); n++) free(other.data[ids[n]]);
    }
    attention_results_free(&before);
}

/* clang-format off */
static const attention_case unseen_cases[] = {
    {"causal, bottom-right", 2, 4, 2, 50, 130, 24, 24, CAUSAL, BOTTOM_RIGHT},
    {"causal, bottom-right, long queries", 2, 4, 2, 130, 50, 24, 24, CAUSAL, BOTTOM_RIGHT},
    {"causal, offset", 2, 4, 2, 50, 130, 24, 24, CAUSAL, OFFSET(33)},
    {"window", 2, 4, 2, 50, 130, 24, 24, BOTTOM_RIGHT, WINDOW(10, 3)},
    {"causal, few queries", 2, 4, 2, 12, 600, 24, 24, CAUSAL, OFFSET(300)},
    {"causal, ALiBi, softcap", 2, 4, 2, 50, 130, 24, 24, CAUSAL, BOTTOM_RIGHT, STANDARD, .softcap = 4},
    {"mask", 2, 4, 2, 50, 130, 24, 24, MASK(.per_cent = 50)},
    {"bias", 2, 4, 2, 50, 130, 24, 24, BIAS(.per_cent = 50)},
    {"lengths", 3, 4, 2, 50, 130, 24, 24, .lengths = true},
    {"causal, f16", 2, 4, 2, 50, 130, 24, 24, F16, CAUSAL, BOTTOM_RIGHT},
};
/* clang-format on */

START_TEST(unseen_keys_change_nothing) {
    rng r = rng_make(12300 + (uint64_t)_i);
    attention_problem p = attention_problem_make(&unseen_cases[_i], &r);
    attention_on_every_row(&p, check_unseen);
    attention_problem_free(&p);
}
END_TEST

/* One thread and two, bitwise; likewise groups one after another and at once. */
static clattn_context *open_with(const char *device, int threads, int work_groups) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = device;
    options.threads = threads;
    options.work_groups = work_groups;
    clattn_context *context;
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    return context;
}

START_TEST(threads_change_nothing) {
    clattn_context *one = open_with("native", 1, 0), *two = open_with("native", 2, 0);
    for (size_t n = 0; n < COUNT(cases); n++) {
        if (!test_draws(n, COUNT(cases))) continue;
        attention_problem p = make(&cases[n], n);
        for (clattn_algorithm a = CLATTN_ALGORITHM_STAGED; a <= CLATTN_ALGORITHM_SPLIT; a++) {
            const clattn_attention_desc desc = attention_desc(&p, LAYOUT_BHLD, attention_outputs(&p, a));
            if (clattn_supports_attention(one, &desc, OPTIONS(.algorithm = a)) == CLATTN_ERROR_UNSUPPORTED) continue;
            attention_results first = attention_run(one, &p, LAYOUT_BHLD, a, attention_outputs(&p, a));
            attention_results second = attention_run(two, &p, LAYOUT_BHLD, a, attention_outputs(&p, a));
            attention_assert_same(&first, &second, &p, p.c.name);
            attention_results_free(&first);
            attention_results_free(&second);
        }
        attention_problem_free(&p);
    }
    clattn_context_destroy(two);
    clattn_context_destroy(one);
}
END_TEST

/* ---- nothing is ignored ------------------------------------------------------------------------------------------- */

/* clang-format off */
#define PLAIN 2, 8, 2, 20, 60, 16, 16
static const attention_case plain_case = {"nothing", PLAIN};
static const attention_case causal_case = {"causal", PLAIN, CAUSAL};
static const struct {
    const attention_case *without;
    attention_case with;
} changes[] = {
    {&plain_case, {"causal", PLAIN, CAUSAL}},
    {&causal_case, {"bottom-right", PLAIN, CAUSAL, BOTTOM_RIGHT}},
    {&causal_case, {"past", PLAIN, CAUSAL, PAST(3)}},
    {&causal_case, {"offset", PLAIN, CAUSAL, OFFSET(-2)}},
    {&causal_case, {"causal and a window", PLAIN, CAUSAL, WINDOW(4, -1)}},
    {&plain_case, {"window", PLAIN, WINDOW(50, 10)}},
    {&plain_case, {"scale", PLAIN, SCALE(0.3)}},
    {&plain_case, {"softcap", PLAIN, .softcap = 3}},
    {&plain_case, {"alibi", PLAIN, STANDARD}},
    {&plain_case, {"slopes", PLAIN, GIVEN}},
    {&plain_case, {"mask", PLAIN, MASK(.per_cent = 10)}},
    {&plain_case, {"a short mask", PLAIN, MASK(.missing = 1)}},
    {&plain_case, {"bias", PLAIN, BIAS()}},
    {&plain_case, {"a short bias", PLAIN, BIAS(.missing = 1)}},
    {&plain_case, {"sinks", PLAIN, .sinks = true}},
    {&plain_case, {"rotary", PLAIN, .rotary = CLATTN_ROTARY_HALF, .pairs = 8}},
    {&plain_case, {"rotary, one pair", PLAIN, .rotary = CLATTN_ROTARY_INTERLEAVED, .pairs = 1}},
};
/* clang-format on */

/* The same numbers in both. */
static double *first_out(clattn_context *context, const attention_case *c, clattn_algorithm algorithm, int64_t *count) {
    rng r = rng_make(13000);
    attention_problem p = attention_problem_draw(c, &r);
    attention_results results = attention_run(context, &p, LAYOUT_BHLD, algorithm, WANT_LSE);
    double *out = results.data[CLATTN_TENSOR_OUT];
    *count = attention_count(&p, CLATTN_TENSOR_OUT);
    results.data[CLATTN_TENSOR_OUT] = NULL;
    attention_results_free(&results);
    attention_problem_free(&p);
    return out;
}

/* Whether the row that is forced serves the case: some are made for scores that no option modifies. */
static bool serves(clattn_context *context, const attention_case *c, clattn_algorithm algorithm) {
    rng r = rng_make(13000);
    attention_problem p = attention_problem_draw(c, &r);
    const clattn_attention_desc desc = attention_desc(&p, LAYOUT_BHLD, WANT_LSE);
    clattn_plan_options options = CLATTN_PLAN_OPTIONS_INIT;
    options.algorithm = algorithm;
    const clattn_status status = clattn_supports_attention(context, &desc, &options);
    attention_problem_free(&p);
    return !attention_is_modified(c) || status != CLATTN_ERROR_UNSUPPORTED;
}

static void check_change(clattn_context *context, const attention_problem *p, clattn_algorithm algorithm, const char *where) {
    for (size_t n = 0; n < COUNT(changes); n++) {
        int64_t count;
        if (!serves(context, &changes[n].with, algorithm)) continue;
        double *with = first_out(context, &changes[n].with, algorithm, &count);
        double *without = first_out(context, changes[n].without, algorithm, &count);
        int64_t same = 0;
        while (same < count && with[same] == without[same]) same++;
        ck_assert_msg(same < count, "%s: %s changes nothing", where, changes[n].with.name);
        free(without);
        free(with);
    }
    (void)p;
}

START_TEST(every_option_changes_the_result) {
    rng r = rng_make(13000);
    attention_problem p = attention_problem_draw(&plain_case, &r);
    attention_on_every_row(&p, check_change);
    attention_problem_free(&p);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("options");
    TCase *tests = tcase_create("options");
    tcase_add_loop_test(tests, oracle_and_naive_agree, 0, COUNT(cases));
    tcase_add_test(tests, oracle_of_long_rows);
    tcase_add_loop_test(tests, every_case_on_every_row, 0, COUNT(cases));
    tcase_add_loop_test(tests, every_case_by_tiles, 0, COUNT(cases));
    TCase *fragments = tcase_create("fragments");
    tcase_add_loop_test(fragments, every_case_by_fragments, 0, COUNT(cases));
    TCase *staged_fragments = tcase_create("staged_fragments");
    tcase_add_loop_test(staged_fragments, every_case_by_staged_fragments, 0, COUNT(cases));
    tcase_add_loop_test(tests, windows_and_alignments, 0, WINDOW_STEP);
    tcase_add_loop_test(tests, masks_of_every_shape, 0, 16);
    tcase_add_loop_test(tests, any_layout_is_bitwise_the_packed_one, 0, COUNT(promise_cases));
    tcase_add_loop_test(tests, a_member_alone_equals_itself_in_a_batch, 0, COUNT(promise_cases));
    tcase_add_test(tests, ragged_members_alone);
    tcase_add_loop_test(tests, unseen_keys_change_nothing, 0, COUNT(unseen_cases));
    tcase_add_test(tests, threads_change_nothing);
    tcase_add_test(tests, every_option_changes_the_result);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, fragments);
    suite_add_tcase(suite, staged_fragments);
    return run_device_suite(suite);
}
