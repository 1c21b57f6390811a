/* Decoding with a cache of keys and values: a prompt at once, then word by word. One plan serves every word: how full the cache is,
 * it learns when it runs. In the end each output is held against one pass over the whole text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <clattn/clattn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS_Q = 4, HEADS_KV = 2, DIM = 16, PROMPT = 5, WORDS = 12, CAPACITY = 64 };

/* What a model would compute from its words: here any numbers. (heads, len, dim), len of WORDS. */
static float q[HEADS_Q][WORDS][DIM], k[HEADS_KV][WORDS][DIM], v[HEADS_KV][WORDS][DIM];
static float cosines[CAPACITY][DIM / 2], sines[CAPACITY][DIM / 2];
static float cache_k[HEADS_KV][CAPACITY][DIM], cache_v[HEADS_KV][CAPACITY][DIM];
static float out[HEADS_Q][WORDS][DIM], whole[HEADS_Q][WORDS][DIM];

static void fill(float *x, int count) {
    for (int n = 0; n < count; n++) x[n] = (float)rand() / (float)RAND_MAX - 0.5f;
}

static void fill_tables(void) {
    for (int position = 0; position < CAPACITY; position++)
        for (int pair = 0; pair < DIM / 2; pair++) {
            const double angle = position * pow(10000, -2.0 * pair / DIM);
            cosines[position][pair] = (float)cos(angle);
            sines[position][pair] = (float)sin(angle);
        }
}

/* `len` words of the text above: rows of a head are DIM apart, heads WORDS * DIM. */
static clattn_tensor words(int heads, int len) {
    clattn_tensor tensor = clattn_tensor_bhld(CLATTN_F32, 1, heads, len, DIM);
    tensor.stride[1] = WORDS * DIM;
    return tensor;
}

static clattn_status make_plan(clattn_context *context, int len, int has_cache, clattn_plan **plan) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.out = words(HEADS_Q, len);
    desc.k = desc.v = words(HEADS_KV, len);
    desc.rotary = CLATTN_ROTARY_HALF;
    desc.rotary_cos = desc.rotary_sin = clattn_tensor_matrix(CLATTN_F32, CAPACITY, DIM / 2);
    desc.options.causal = 1;
    if (has_cache) {
        desc.present_k = desc.present_v = clattn_tensor_bhld(CLATTN_F32, 1, HEADS_KV, CAPACITY, DIM);
        desc.past_lengths = clattn_tensor_bhld(CLATTN_I64, 1, 1, 1, 1);
        desc.options.align = CLATTN_ALIGN_PAST;
    }
    return clattn_plan_create_attention(context, &desc, NULL, plan);
}

/* The words from `first` on, after as many in the cache. */
static clattn_status run(clattn_plan *plan, int64_t first, float *to, int has_cache) {
    const clattn_arg args[] = {
        {CLATTN_TENSOR_Q, q[0][first], 0},
        {CLATTN_TENSOR_K, k[0][first], 0},
        {CLATTN_TENSOR_V, v[0][first], 0},
        {CLATTN_TENSOR_OUT, to + first * DIM, 0},
        {CLATTN_TENSOR_ROTARY_COS, cosines, sizeof cosines},
        {CLATTN_TENSOR_ROTARY_SIN, sines, sizeof sines},
        {CLATTN_TENSOR_PRESENT_K, cache_k, sizeof cache_k},
        {CLATTN_TENSOR_PRESENT_V, cache_v, sizeof cache_v},
        {CLATTN_TENSOR_PAST_LENGTHS, &first, sizeof first},
    };
    return clattn_plan_run(plan, args, has_cache ? 9 : 6);
}

static clattn_status decode(clattn_context *context) {
    clattn_plan *prompt = NULL, *word = NULL, *text = NULL;
    clattn_status status = make_plan(context, PROMPT, 1, &prompt);
    if (status == CLATTN_OK) status = make_plan(context, 1, 1, &word);
    if (status == CLATTN_OK) status = make_plan(context, WORDS, 0, &text);
    if (status == CLATTN_OK) status = run(prompt, 0, out[0][0], 1);
    for (int first = PROMPT; first < WORDS && status == CLATTN_OK; first++) status = run(word, first, out[0][0], 1);
    if (status == CLATTN_OK) status = run(text, 0, whole[0][0], 0);
    clattn_plan_destroy(text);
    clattn_plan_destroy(word);
    clattn_plan_destroy(prompt);
    return status;
}

int main(void) {
    clattn_context *context;
    char error[512] = "";
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.error = error;
    options.error_size = sizeof error;
    if (clattn_context_create(&options, &context) != CLATTN_OK) return fprintf(stderr, "%s\n", error), 1;
    fill(q[0][0], HEADS_Q * WORDS * DIM);
    fill(k[0][0], HEADS_KV * WORDS * DIM);
    fill(v[0][0], HEADS_KV * WORDS * DIM);
    fill_tables();

    const clattn_status status = decode(context);
    if (status != CLATTN_OK) clattn_context_error(context, error, sizeof error);
    clattn_context_destroy(context);
    if (status != CLATTN_OK) return fprintf(stderr, "%s\n", error), 1;

    float largest = 0;
    for (int n = 0; n < HEADS_Q * WORDS * DIM; n++) largest = fmaxf(largest, fabsf(out[0][0][n] - whole[0][0][n]));
    printf("%d words, %d of them one by one: they differ from one pass by %.1e at most\n", WORDS, WORDS - PROMPT, largest);
    return largest < 1e-5f ? 0 : 1;
}
