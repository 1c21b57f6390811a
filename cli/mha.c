/* clattn mha and clattn project: the attention layer, and its first step alone, on .npy files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/attention_options.h"
#include "cli/commands.h"

typedef struct mha_options {
    attention_options attention;
    cli_integer heads, kv_heads;
    bool residual;
} mha_options;

/* clang-format off */
#define HEADS_OPTIONS                                                                                                    \
    {"heads", "H", "heads of the queries",                                                                               \
     CLI_INTEGER, offsetof(mha_options, heads), .required = true, .minimum = 1, .maximum = INT32_MAX},                   \
    {"kv-heads", "G", "heads of keys and values (default: H)",                                                           \
     CLI_INTEGER, offsetof(mha_options, kv_heads), .minimum = 1, .maximum = INT32_MAX}
/* clang-format on */

static int64_t kv_heads(const mha_options *options) {
    return options->kv_heads.given ? options->kv_heads.value : options->heads.value;
}

/* ---- mha --------------------------------------------------------------------------------------------------------- */

static const cli_option mha_table[] = {
    JOB_FILE("x", X, "ld|bld", "the words: (len, dim) or (batch, len, dim)", JOB_REQUIRED),
    JOB_FILE("x-kv", X_KV, "ld|bld", "the words that keys and values are made of (default: x)"),
    JOB_FILE("wq", W_Q, "rc", "(dim of x, heads * dim of a head)", JOB_REQUIRED),
    JOB_FILE("wk", W_K, "rc", "(dim, kv-heads * dim of a head)", JOB_REQUIRED),
    JOB_FILE("wv", W_V, "rc", "(dim, kv-heads * dim of a value)", JOB_REQUIRED),
    JOB_FILE("wo", W_O, "rc", "(heads * dim of a value, dim of the result); default: none"),
    JOB_FILE("bq", B_Q, "c", "biases, one number a column"),
    JOB_FILE("bk", B_K, "c", ""),
    JOB_FILE("bv", B_V, "c", ""),
    JOB_FILE("bo", B_O, "c", ""),
    JOB_FILE("out", OUT, "ld|bld", "the result, with x's type and number of dimensions", JOB_OUTPUT, JOB_REQUIRED),
    JOB_FILE("weights", WEIGHTS, "hld|bhld", "the softmax: (heads, len of x, len of x-kv), batch before", JOB_OUTPUT),
    HEADS_OPTIONS,
    {"residual", NULL, "add x to the result", CLI_FLAG, offsetof(mha_options, residual)},
    ATTENTION_OPTIONS,
    JOB_OPTIONS,
    {NULL},
};

static const cli_command mha_command = {
    .name = "mha",
    .summary = "Multi-head attention: project, attend, merge, project again, on NumPy files.",
    .options = mha_table,
    .details = "Q = X Wq + bq, K = X Wk + bk, V = X Wv + bv; column h * dim + d belongs to head h.",
};

static int mha(job *job, const mha_options *options) {
    int exit_code = job_load(job);
    if (exit_code != CLI_SUCCESS) return exit_code;

    clattn_tensor *tensors = job->tensors;
    clattn_tensor x_kv = tensors[tensors[CLATTN_TENSOR_X_KV].dtype != CLATTN_ABSENT ? CLATTN_TENSOR_X_KV : CLATTN_TENSOR_X];
    const int64_t *x = tensors[CLATTN_TENSOR_X].size;
    int64_t width = tensors[CLATTN_TENSOR_W_V].size[3] / kv_heads(options) * options->heads.value;
    if (tensors[CLATTN_TENSOR_W_O].dtype != CLATTN_ABSENT) width = tensors[CLATTN_TENSOR_W_O].size[3];
    job_output(job, CLATTN_TENSOR_OUT, x[0], 1, x[2], width);
    job_output(job, CLATTN_TENSOR_WEIGHTS, x[0], options->heads.value, x[2], x_kv.size[2]);

    clattn_mha_desc desc = CLATTN_MHA_DESC_INIT;
    desc.x = tensors[CLATTN_TENSOR_X];
    desc.x_kv = tensors[CLATTN_TENSOR_X_KV];
    desc.w_q = tensors[CLATTN_TENSOR_W_Q];
    desc.w_k = tensors[CLATTN_TENSOR_W_K];
    desc.w_v = tensors[CLATTN_TENSOR_W_V];
    desc.w_o = tensors[CLATTN_TENSOR_W_O];
    desc.b_q = tensors[CLATTN_TENSOR_B_Q];
    desc.b_k = tensors[CLATTN_TENSOR_B_K];
    desc.b_v = tensors[CLATTN_TENSOR_B_V];
    desc.b_o = tensors[CLATTN_TENSOR_B_O];
    desc.out = tensors[CLATTN_TENSOR_OUT];
    desc.weights = tensors[CLATTN_TENSOR_WEIGHTS];
    desc.heads_q = options->heads.value;
    desc.heads_kv = kv_heads(options);
    desc.residual = options->residual;
    desc.options = attention_options_desc(job, &options->attention, x_kv.size[2]);
    attention_options_note(job, &options->attention, &desc.options, desc.x.size[2], x_kv.size[2]);
    const clattn_plan_options plan_options = attention_options_plan(&options->attention);
    return job_finish(job, clattn_plan_create_mha(job->context, &desc, &plan_options, &job->plan));
}

int mha_main(int argc, char **argv) {
    mha_options options = {0};
    int exit_code;
    if (cli_parse(&mha_command, argc, argv, &options, &exit_code) < 0) return exit_code;
    job job = {.command = &mha_command, .options = &options.attention.job, .halves = true};
    exit_code = attention_options_resolve(&mha_command, &options.attention);
    if (exit_code == CLI_SUCCESS) exit_code = mha(&job, &options);
    job_close(&job);
    return exit_code;
}

/* ---- project ----------------------------------------------------------------------------------------------------- */

static const cli_option project_table[] = {
    JOB_FILE("x", X, "ld|bld", "the words: (len, dim) or (batch, len, dim)", JOB_REQUIRED),
    JOB_FILE("x-kv", X_KV, "ld|bld", "the words that keys and values are made of (default: x)"),
    JOB_FILE("wq", W_Q, "rc", "(dim of x, heads * dim of a head)"),
    JOB_FILE("wk", W_K, "rc", "(dim, kv-heads * dim of a head)"),
    JOB_FILE("wv", W_V, "rc", "(dim, kv-heads * dim of a value)"),
    JOB_FILE("bq", B_Q, "c", "biases, one number a column"),
    JOB_FILE("bk", B_K, "c", ""),
    JOB_FILE("bv", B_V, "c", ""),
    JOB_FILE("q", Q, "hld|bhld", "queries: (heads, len, dim of a head), batch before; needs --wq", JOB_OUTPUT),
    JOB_FILE("k", K, "hld|bhld", "keys; needs --wk", JOB_OUTPUT),
    JOB_FILE("v", V, "hld|bhld", "values; needs --wv", JOB_OUTPUT),
    HEADS_OPTIONS,
    JOB_OPTIONS,
    {NULL},
};

static const cli_command project_command = {
    .name = "project",
    .summary = "Queries, keys and values of attention from words and weights, on NumPy files.",
    .options = project_table,
    .details = "Q = X Wq + bq, K = X Wk + bk, V = X Wv + bv; column h * dim + d belongs to head h.",
};

static int project(job *job, const mha_options *options) {
    int exit_code = job_load(job);
    if (exit_code != CLI_SUCCESS) return exit_code;

    clattn_tensor *tensors = job->tensors;
    clattn_tensor x_kv = tensors[tensors[CLATTN_TENSOR_X_KV].dtype != CLATTN_ABSENT ? CLATTN_TENSOR_X_KV : CLATTN_TENSOR_X];
    const int64_t *x = tensors[CLATTN_TENSOR_X].size;
    int64_t heads = options->heads.value, group = kv_heads(options);
    job_output(job, CLATTN_TENSOR_Q, x[0], heads, x[2], tensors[CLATTN_TENSOR_W_Q].size[3] / heads);
    job_output(job, CLATTN_TENSOR_K, x[0], group, x_kv.size[2], tensors[CLATTN_TENSOR_W_K].size[3] / group);
    job_output(job, CLATTN_TENSOR_V, x[0], group, x_kv.size[2], tensors[CLATTN_TENSOR_W_V].size[3] / group);

    clattn_project_qkv_desc desc = CLATTN_PROJECT_QKV_DESC_INIT;
    desc.x = tensors[CLATTN_TENSOR_X];
    desc.x_kv = tensors[CLATTN_TENSOR_X_KV];
    desc.w_q = tensors[CLATTN_TENSOR_W_Q];
    desc.w_k = tensors[CLATTN_TENSOR_W_K];
    desc.w_v = tensors[CLATTN_TENSOR_W_V];
    desc.b_q = tensors[CLATTN_TENSOR_B_Q];
    desc.b_k = tensors[CLATTN_TENSOR_B_K];
    desc.b_v = tensors[CLATTN_TENSOR_B_V];
    desc.q = tensors[CLATTN_TENSOR_Q];
    desc.k = tensors[CLATTN_TENSOR_K];
    desc.v = tensors[CLATTN_TENSOR_V];
    const clattn_plan_options plan_options = job_plan_options(job->options);
    return job_finish(job, clattn_plan_create_project_qkv(job->context, &desc, &plan_options, &job->plan));
}

/* Each of Q, K and V is asked for together with its weight, or not at all. */
static int check_pairs(const char *const *paths) {
    static const struct {
        clattn_tensor_id output, weight, bias;
        const char *name;
    } pairs[] = {
        {CLATTN_TENSOR_Q, CLATTN_TENSOR_W_Q, CLATTN_TENSOR_B_Q, "q"},
        {CLATTN_TENSOR_K, CLATTN_TENSOR_W_K, CLATTN_TENSOR_B_K, "k"},
        {CLATTN_TENSOR_V, CLATTN_TENSOR_W_V, CLATTN_TENSOR_B_V, "v"},
    };
    int wanted = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *name = pairs[i].name;
        bool output = paths[pairs[i].output] != NULL, weight = paths[pairs[i].weight] != NULL;
        if (output && !weight) return cli_fail("project", CLI_USAGE, "--%s needs --w%s", name, name);
        if (!output && weight) return cli_fail("project", CLI_USAGE, "--w%s is given, and --%s is not", name, name);
        if (!output && paths[pairs[i].bias] != NULL)
            return cli_fail("project", CLI_USAGE, "--b%s is given, and --%s is not", name, name);
        wanted += output;
    }
    return wanted > 0 ? CLI_SUCCESS : cli_fail("project", CLI_USAGE, "none of --q, --k and --v is given");
}

int project_main(int argc, char **argv) {
    mha_options options = {0};
    int exit_code;
    if (cli_parse(&project_command, argc, argv, &options, &exit_code) < 0) return exit_code;
    job job = {.command = &project_command, .options = &options.attention.job, .halves = true};
    exit_code = check_pairs(job.options->paths);
    if (exit_code == CLI_SUCCESS) exit_code = project(&job, &options);
    job_close(&job);
    return exit_code;
}
