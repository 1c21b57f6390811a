/* What is measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tune.h"

/* Lengths and heads of each scale. "long" and "short" lie in different classes of tuning.c. */
typedef struct scale_sizes {
    int64_t long_len, short_len, decode_keys, heads, width;
} scale_sizes;

static const scale_sizes sizes[][2] = {
    /*                  thorough                       quick */
    [TUNE_SCALE_GPU] = {{4096, 128, 16384, 16, 2048}, {2048, 128, 8192, 16, 2048}},
    [TUNE_SCALE_CPU] = {{1024, 128, 8192, 4, 512}, {512, 128, 4096, 2, 512}},
    [TUNE_SCALE_TINY] = {{257, 17, 257, 1, 257}, {257, 17, 257, 1, 257}},
};

typedef enum length { LONG, SHORT, DECODE } length;
typedef enum sight { FULL, CAUSAL, WINDOW } sight;
typedef enum scores { PLAIN, MODIFIED } scores;

/* Keys to the left of a query's in a window, a quarter of a length or less; and what modifies scores: of softcap, biases and
 * slopes the one that needs no memory, since the kernels, and the key, tell no more than that there is one. */
enum { WINDOW_LEFT = 127 };
static const double SOFTCAP = 20;

/* A line: operation, role, what of its options, whether quick measures it. The most wanted first. */
typedef struct line {
    int op;
    clattn__role role;
    clattn_algorithm algorithm;
    clattn_recurrence_form recurrence;
    bench_op problem;
    length length;
    int64_t head_dim;
    sight sight;
    scores scores;
    clattn_dtype dtype;
    bool quick;
} line;

enum { ALL, ATTENTION, DECODING, PROJECT, STAGED, RECURRENCE };
const char tune_ops[] = "all|attention|decode|project|staged|recurrence";

#define ATTEND(op, role, algorithm, length, dim, sight, scores, dtype, quick)                                                  \
    {                                                                                                                          \
        op, CLATTN__ROLE_##role, CLATTN_ALGORITHM_##algorithm, 0, BENCH_OP_ATTENTION, length, dim, sight, scores,              \
            CLATTN_##dtype, quick                                                                                              \
    }
#define RECUR(role, form, cell)                                                                                                \
    { RECURRENCE, CLATTN__ROLE_##role, 0, CLATTN_RECURRENCE_##form, BENCH_OP_##cell, SHORT }

static const line lines[] = {
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 64, FULL, PLAIN, F32, true),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 64, CAUSAL, PLAIN, F32, true),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, FULL, PLAIN, F16, true),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, CAUSAL, PLAIN, F16, true),
    ATTEND(DECODING, ATTENTION_SPLIT, SPLIT, DECODE, 128, FULL, PLAIN, F16, true),
    {PROJECT, CLATTN__ROLE_PROJECT, 0, 0, BENCH_OP_PROJECT, LONG, .quick = true},
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, FULL, PLAIN, F32, true),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, CAUSAL, PLAIN, F32, true),
    ATTEND(DECODING, ATTENTION_SPLIT, SPLIT, DECODE, 64, FULL, PLAIN, F32, true),
    ATTEND(ATTENTION, ATTENTION, FUSED, SHORT, 64, FULL, PLAIN, F32, true),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 64, WINDOW, PLAIN, F32, true),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 64, FULL, MODIFIED, F32, true),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 64, FULL, PLAIN, F16, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 64, CAUSAL, PLAIN, F16, false),
    ATTEND(DECODING, ATTENTION_SPLIT, SPLIT, DECODE, 128, FULL, PLAIN, F32, false),
    ATTEND(DECODING, ATTENTION_SPLIT, SPLIT, DECODE, 64, FULL, PLAIN, F16, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, SHORT, 64, CAUSAL, PLAIN, F32, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, SHORT, 128, FULL, PLAIN, F32, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, SHORT, 128, CAUSAL, PLAIN, F32, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, SHORT, 128, FULL, PLAIN, F16, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, SHORT, 128, CAUSAL, PLAIN, F16, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, FULL, PLAIN, BF16, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, CAUSAL, PLAIN, BF16, false),
    ATTEND(DECODING, ATTENTION_SPLIT, SPLIT, DECODE, 128, FULL, PLAIN, BF16, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 64, CAUSAL, MODIFIED, F32, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, WINDOW, PLAIN, F32, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, FULL, MODIFIED, F32, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, CAUSAL, MODIFIED, F32, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, WINDOW, PLAIN, F16, false),
    ATTEND(ATTENTION, ATTENTION, FUSED, LONG, 128, CAUSAL, MODIFIED, F16, false),
    ATTEND(DECODING, ATTENTION_SPLIT, SPLIT, DECODE, 128, WINDOW, PLAIN, F32, false),
    ATTEND(DECODING, ATTENTION_SPLIT, SPLIT, DECODE, 128, FULL, MODIFIED, F32, false),
    ATTEND(DECODING, ATTENTION_SPLIT, SPLIT, DECODE, 128, FULL, MODIFIED, F16, false),
    {PROJECT, CLATTN__ROLE_PROJECT, 0, 0, BENCH_OP_PROJECT, SHORT},
    {PROJECT, CLATTN__ROLE_PROJECT, 0, 0, BENCH_OP_PROJECT, DECODE},
    ATTEND(STAGED, SCORES, STAGED, LONG, 64, FULL, PLAIN, F32, false),
    ATTEND(STAGED, WEIGHTED_VALUES, STAGED, LONG, 64, FULL, PLAIN, F32, false),
    RECUR(RNN_LOOP, PERSISTENT, RNN),
    RECUR(RNN_STEP, STEPS, RNN),
    RECUR(LSTM_LOOP, PERSISTENT, LSTM),
    RECUR(LSTM_STEP, STEPS, LSTM),
};

static tune_shape shape_of(const line *l, const scale_sizes *s) {
    tune_shape made = {l->role, {l->algorithm, l->recurrence}, {.op = l->problem, .batch = 1, .dtype = l->dtype}};
    bench_shape *shape = &made.shape;
    const int64_t lengths[] = {[LONG] = s->long_len, [SHORT] = s->short_len, [DECODE] = 1};
    shape->len_q = lengths[l->length];
    shape->len_kv = l->length == DECODE ? s->decode_keys : shape->len_q;
    shape->heads_q = shape->heads_kv = s->heads;
    shape->head_dim = shape->value_dim = l->head_dim;
    shape->causal = l->sight == CAUSAL;
    if (l->sight == WINDOW) {
        shape->has_window = 1;
        shape->window_left = WINDOW_LEFT;
        shape->align = CLATTN_ALIGN_BOTTOM_RIGHT;
    }
    if (l->scores == MODIFIED) shape->softcap = SOFTCAP;
    shape->hidden = s->width;
    shape->d_in = l->op == PROJECT ? s->width : 0;
    return made;
}

size_t tune_shapes(int op, bool quick, tune_scale scale, tune_shape shapes[TUNE_MOST_SHAPES]) {
    size_t count = 0;
    for (size_t n = 0; n < sizeof lines / sizeof *lines; n++)
        if ((op == ALL || op == lines[n].op) && (lines[n].quick || !quick || op == STAGED || op == RECURRENCE))
            shapes[count++] = shape_of(&lines[n], &sizes[scale][quick]);
    return count;
}
