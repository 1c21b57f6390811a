/* clattn attend: attention on .npy files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/attention_options.h"
#include "cli/commands.h"

/* What --scores writes: a clattn_scores_form, or the weights. */
enum { SCORES_SOFTMAX = CLATTN_SCORES_BIAS + 1 };

typedef struct attend_options {
    attention_options attention;
    cli_integer scores_mode;
    const char *cache_k, *cache_v;
    cli_integer heads_q, heads_kv;
    cli_integer rotary; /* clattn_rotary less 1 */
} attend_options;

/* clang-format off */
#define CACHE_FILE(name_, id_, field_, help_)                                                                            \
    {name_, "FILE", help_, CLI_TEXT, offsetof(attend_options, field_),                                                   \
     .tensor = CLATTN_TENSOR_##id_, .axes = "ld|hld|bhld;bhld", .packed = true}

static const cli_option options_table[] = {
    JOB_FILE("q", Q, "ld|hld|bhld;blq", "queries: (len, dim), (heads, len, dim) or (batch, heads, len, dim)", JOB_REQUIRED),
    JOB_FILE("k", K, "ld|hld|bhld;blg", "keys", JOB_REQUIRED),
    JOB_FILE("v", V, "ld|hld|bhld;blg", "values; their dim may be another", JOB_REQUIRED),
    JOB_FILE("out", OUT, "ld|hld|bhld;blq", "the result, with Q's type and number of dimensions", JOB_OUTPUT, JOB_REQUIRED),
    JOB_FILE("lse", LSE, "l|hl|bhl;bhl", "natural log of each row's sum of exp(score), float32", JOB_OUTPUT, JOB_ELEMENTS(SINGLE)),
    JOB_FILE("scores", SCORES, "lk|hlk|bhlk;bhlk", "the matrix of scores, (..., len, keys)", JOB_OUTPUT),
    {"scores-mode", "raw|softcap|bias|softmax", "which: scale * Q K^T (the default), after softcap, after bias and mask, or the "
     "weights", CLI_CHOICE, offsetof(attend_options, scores_mode)},
    JOB_FILE("weights", WEIGHTS, "lk|hlk|bhlk;bhlk", "the softmax, same shape", JOB_OUTPUT),
    {"q-heads", "H", "Q, K, V and the result are (batch, len, heads * dim), Q with H heads",
     CLI_INTEGER, offsetof(attend_options, heads_q), .minimum = 1, .maximum = INT32_MAX},
    {"kv-heads", "G", "heads of K and V there (default: H)",
     CLI_INTEGER, offsetof(attend_options, heads_kv), .minimum = 1, .maximum = INT32_MAX},
    ATTENTION_OPTIONS,
    JOB_FILE("past-k", PAST_K, "ld|hld|bhld;bhld", "keys before those of K"),
    JOB_FILE("past-v", PAST_V, "ld|hld|bhld;bhld", "values before those of V"),
    JOB_FILE("present-k", PRESENT_K, "ld|hld|bhld;bhld", "past keys, then K; or the cache afterwards", JOB_OUTPUT),
    JOB_FILE("present-v", PRESENT_V, "ld|hld|bhld;bhld", "past values, then V; or the cache afterwards", JOB_OUTPUT),
    JOB_FILE("past-lengths", PAST_LENGTHS, "b", "(batch,), integers: K and V go into a cache that holds so many keys already",
             JOB_ELEMENTS(COUNTS)),
    CACHE_FILE("cache-k", PRESENT_K, cache_k, "that cache: (..., capacity, dim)"),
    CACHE_FILE("cache-v", PRESENT_V, cache_v, "its values"),
    {"rotary", "half|interleaved", "turn Q and K by their positions: which elements make a pair",
     CLI_CHOICE, offsetof(attend_options, rotary)},
    JOB_FILE("rotary-cos", ROTARY_COS, "*ld|bld", "(positions, rotary dim / 2), batch before", JOB_ELEMENTS(SINGLE)),
    JOB_FILE("rotary-sin", ROTARY_SIN, "*ld|bld", "likewise", JOB_ELEMENTS(SINGLE)),
    JOB_FILE("q-offsets", Q_OFFSETS, "n", "(members + 1,), integers from 0: where each member of a ragged batch begins in Q",
             JOB_ELEMENTS(COUNTS)),
    JOB_FILE("kv-offsets", KV_OFFSETS, "n", "likewise in K and V", JOB_ELEMENTS(COUNTS)),
    JOB_OPTIONS,
    {NULL},
};
/* clang-format on */

static const cli_command command = {
    .name = "attend",
    .summary = "Attention, softmax(scale * Q K^T) V, on NumPy files.",
    .options = options_table,
    .details =
        "Files hold float16, float32, float64 (computed as such on native and reference, in float32 elsewhere) or bfloat16, "
        "in C or Fortran order. Q may have more heads than K and V, a multiple. A row whose keys are all masked gives "
        "zeros. docs/vocabularies.md translates ONNX's, FlashAttention's and PyTorch's arguments into these.",
};

/* ---- contradictions ---------------------------------------------------------------------------------------------- */

static int check_cache(const char *const *paths, const attend_options *options) {
    bool past_k = paths[CLATTN_TENSOR_PAST_K] != NULL, past_v = paths[CLATTN_TENSOR_PAST_V] != NULL;
    bool lengths = paths[CLATTN_TENSOR_PAST_LENGTHS] != NULL;
    if (past_k != past_v) return cli_fail("attend", CLI_USAGE, "--past-k and --past-v go together");
    if ((options->cache_k != NULL) != (options->cache_v != NULL))
        return cli_fail("attend", CLI_USAGE, "--cache-k and --cache-v go together");
    if (lengths != (options->cache_k != NULL))
        return cli_fail("attend", CLI_USAGE, "--past-lengths goes with --cache-k and --cache-v, the cache that it speaks of");
    if (lengths && past_k)
        return cli_fail("attend", CLI_USAGE, "--past-k is one way to have a cache and --past-lengths the other: give one");
    return CLI_SUCCESS;
}

static int check_options(const char *const *paths, const attend_options *options) {
    bool cos = paths[CLATTN_TENSOR_ROTARY_COS] != NULL, sin = paths[CLATTN_TENSOR_ROTARY_SIN] != NULL;
    if (options->heads_kv.given && !options->heads_q.given)
        return cli_fail("attend", CLI_USAGE, "--kv-heads is for --q-heads, which is not given");
    if (options->scores_mode.given && paths[CLATTN_TENSOR_SCORES] == NULL)
        return cli_fail("attend", CLI_USAGE, "--scores-mode is for --scores, which is not given");
    if (options->scores_mode.value == SCORES_SOFTMAX && paths[CLATTN_TENSOR_WEIGHTS] != NULL)
        return cli_fail("attend", CLI_USAGE, "--scores-mode softmax is what --weights writes: give one of them");
    if (cos != sin || cos != options->rotary.given)
        return cli_fail("attend", CLI_USAGE, "--rotary, --rotary-cos and --rotary-sin go together");
    if ((paths[CLATTN_TENSOR_Q_OFFSETS] != NULL) != (paths[CLATTN_TENSOR_KV_OFFSETS] != NULL))
        return cli_fail("attend", CLI_USAGE, "--q-offsets and --kv-offsets go together");
    return check_cache(paths, options);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* The result, in the layout of its file. */
static void declare_out(job *job, const int64_t *q, int64_t value_dim) {
    job_output(job, CLATTN_TENSOR_OUT, q[0], q[1], q[2], value_dim);
    clattn_tensor *out = &job->tensors[CLATTN_TENSOR_OUT];
    if (job->heads_q > 0) *out = clattn_tensor_blhd(out->dtype, q[0], q[1], q[2], value_dim);
}

/* Past and new keys and values together, both where one is asked for. Without a past there is an empty one. */
static void declare_present(job *job, const int64_t *k, const int64_t *v, int64_t len_kv) {
    const char *const *paths = job->options->paths;
    clattn_tensor *tensors = job->tensors;
    clattn_dtype dtype = tensors[CLATTN_TENSOR_K].dtype;
    if (paths[CLATTN_TENSOR_PRESENT_K] == NULL && paths[CLATTN_TENSOR_PRESENT_V] == NULL) return;
    tensors[CLATTN_TENSOR_PRESENT_K] = clattn_tensor_bhld(dtype, k[0], k[1], len_kv, k[3]);
    tensors[CLATTN_TENSOR_PRESENT_V] = clattn_tensor_bhld(dtype, v[0], v[1], len_kv, v[3]);
    if (tensors[CLATTN_TENSOR_PAST_K].dtype != CLATTN_ABSENT) return;
    tensors[CLATTN_TENSOR_PAST_K] = clattn_tensor_bhld(dtype, k[0], k[1], 0, k[3]);
    tensors[CLATTN_TENSOR_PAST_V] = clattn_tensor_bhld(dtype, v[0], v[1], 0, v[3]);
}

/* The outputs; returns len_kv as the library counts it. */
static int64_t declare_outputs(job *job, const attend_options *options) {
    clattn_tensor *tensors = job->tensors;
    const int64_t *q = tensors[CLATTN_TENSOR_Q].size, *k = tensors[CLATTN_TENSOR_K].size, *v = tensors[CLATTN_TENSOR_V].size;
    int64_t len_kv = k[2];
    if (options->cache_k != NULL)
        len_kv = tensors[CLATTN_TENSOR_PRESENT_K].size[2];
    else {
        if (tensors[CLATTN_TENSOR_PAST_K].dtype != CLATTN_ABSENT) len_kv += tensors[CLATTN_TENSOR_PAST_K].size[2];
        declare_present(job, k, v, len_kv);
    }
    declare_out(job, q, v[3]);
    job_output(job, CLATTN_TENSOR_LSE, q[0], q[1], q[2], 1);
    job_output(job, CLATTN_TENSOR_SCORES, q[0], q[1], q[2], len_kv);
    job_output(job, CLATTN_TENSOR_WEIGHTS, q[0], q[1], q[2], len_kv);
    return len_kv;
}

/* --scores and the weights change places: the file of the one then shows the other. */
static void exchange_scores(job *job) {
    clattn_tensor tensor = job->tensors[CLATTN_TENSOR_SCORES];
    void *memory = job->outputs[CLATTN_TENSOR_SCORES];
    job->tensors[CLATTN_TENSOR_SCORES] = job->tensors[CLATTN_TENSOR_WEIGHTS];
    job->outputs[CLATTN_TENSOR_SCORES] = job->outputs[CLATTN_TENSOR_WEIGHTS];
    job->tensors[CLATTN_TENSOR_WEIGHTS] = tensor;
    job->outputs[CLATTN_TENSOR_WEIGHTS] = memory;
}

static clattn_attention_desc make_desc(job *job, const attend_options *options, int64_t len_kv) {
    const clattn_tensor *tensors = job->tensors;
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = tensors[CLATTN_TENSOR_Q];
    desc.k = tensors[CLATTN_TENSOR_K];
    desc.v = tensors[CLATTN_TENSOR_V];
    desc.out = tensors[CLATTN_TENSOR_OUT];
    desc.lse = tensors[CLATTN_TENSOR_LSE];
    desc.scores = tensors[CLATTN_TENSOR_SCORES];
    desc.weights = tensors[CLATTN_TENSOR_WEIGHTS];
    desc.past_k = tensors[CLATTN_TENSOR_PAST_K];
    desc.past_v = tensors[CLATTN_TENSOR_PAST_V];
    desc.past_lengths = tensors[CLATTN_TENSOR_PAST_LENGTHS];
    desc.present_k = tensors[CLATTN_TENSOR_PRESENT_K];
    desc.present_v = tensors[CLATTN_TENSOR_PRESENT_V];
    desc.rotary_cos = tensors[CLATTN_TENSOR_ROTARY_COS];
    desc.rotary_sin = tensors[CLATTN_TENSOR_ROTARY_SIN];
    desc.q_offsets = tensors[CLATTN_TENSOR_Q_OFFSETS];
    desc.kv_offsets = tensors[CLATTN_TENSOR_KV_OFFSETS];
    if (options->rotary.given) desc.rotary = (clattn_rotary)(options->rotary.value + 1);
    desc.options = attention_options_desc(job, &options->attention, len_kv);
    if (options->scores_mode.value != SCORES_SOFTMAX) desc.options.scores_form = (clattn_scores_form)options->scores_mode.value;
    return desc;
}

static int attend(job *job, const attend_options *options) {
    int exit_code = job_load(job);
    if (exit_code != CLI_SUCCESS) return exit_code;
    bool softmax = options->scores_mode.value == SCORES_SOFTMAX;
    int64_t len_kv = declare_outputs(job, options);
    if (softmax) exchange_scores(job);
    const clattn_attention_desc desc = make_desc(job, options, len_kv);
    attention_options_note(job, &options->attention, &desc.options, desc.q.size[2], len_kv);
    const clattn_plan_options plan_options = attention_options_plan(&options->attention);
    exit_code = job_run(job, clattn_plan_create_attention(job->context, &desc, &plan_options, &job->plan));
    if (softmax) exchange_scores(job);
    return exit_code == CLI_SUCCESS ? job_write(job) : exit_code;
}

int attend_main(int argc, char **argv) {
    attend_options options = {0};
    int exit_code;
    if (cli_parse(&command, argc, argv, &options, &exit_code) < 0) return exit_code;
    job job = {.command = &command, .options = &options.attention.job, .halves = true, .doubles = true};
    job.heads_q = options.heads_q.value;
    job.heads_kv = options.heads_kv.given ? options.heads_kv.value : job.heads_q;
    exit_code = attention_options_resolve(&command, &options.attention);
    if (exit_code == CLI_SUCCESS) exit_code = check_options(job.options->paths, &options);
    if (exit_code == CLI_SUCCESS) exit_code = attend(&job, &options);
    job_close(&job);
    return exit_code;
}
