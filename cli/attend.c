/* clattn attend: attention on .npy files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/attention_options.h"
#include "cli/commands.h"

static const cli_option options_table[] = {
    JOB_FILE("q", Q, "ld|hld|bhld", "queries: (len, dim), (heads, len, dim) or (batch, heads, len, dim)", JOB_REQUIRED),
    JOB_FILE("k", K, "ld|hld|bhld", "keys", JOB_REQUIRED),
    JOB_FILE("v", V, "ld|hld|bhld", "values; their dim may be another", JOB_REQUIRED),
    JOB_FILE("out", OUT, "ld|hld|bhld", "the result, with Q's type and number of dimensions", JOB_OUTPUT, JOB_REQUIRED),
    JOB_FILE("lse", LSE, "l|hl|bhl", "natural log of each row's sum of exp(score), float32", JOB_OUTPUT),
    JOB_FILE("scores", SCORES, "ld|hld|bhld", "scale * Q K^T before the mask: (..., len of Q, len of K)", JOB_OUTPUT),
    JOB_FILE("weights", WEIGHTS, "ld|hld|bhld", "the softmax, same shape", JOB_OUTPUT),
    ATTENTION_OPTIONS,
    JOB_OPTIONS,
    {NULL},
};

static const cli_command command = {
    .name = "attend",
    .summary = "Attention, softmax(scale * Q K^T) V, on NumPy files.",
    .options = options_table,
    .details = "Files hold float32 or float64 (computed in float32), in C or Fortran order. Q may have more "
               "heads than K and V, a multiple. A row whose keys are all masked gives zeros.",
};

static int attend(job *job, const attention_options *options) {
    int exit_code = attention_options_check(&command, options);
    if (exit_code == CLI_SUCCESS) exit_code = job_load(job);
    if (exit_code != CLI_SUCCESS) return exit_code;

    clattn_tensor *tensors = job->tensors;
    const int64_t *q = tensors[CLATTN_TENSOR_Q].size, *k = tensors[CLATTN_TENSOR_K].size, *v = tensors[CLATTN_TENSOR_V].size;
    job_output(job, CLATTN_TENSOR_OUT, q[0], q[1], q[2], v[3]);
    job_output(job, CLATTN_TENSOR_LSE, q[0], q[1], q[2], 1);
    job_output(job, CLATTN_TENSOR_SCORES, q[0], q[1], q[2], k[2]);
    job_output(job, CLATTN_TENSOR_WEIGHTS, q[0], q[1], q[2], k[2]);

    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = tensors[CLATTN_TENSOR_Q];
    desc.k = tensors[CLATTN_TENSOR_K];
    desc.v = tensors[CLATTN_TENSOR_V];
    desc.out = tensors[CLATTN_TENSOR_OUT];
    desc.lse = tensors[CLATTN_TENSOR_LSE];
    desc.scores = tensors[CLATTN_TENSOR_SCORES];
    desc.weights = tensors[CLATTN_TENSOR_WEIGHTS];
    desc.options = attention_options_desc(options);
    const clattn_plan_options plan_options = attention_options_plan(options);
    exit_code = job_open(job);
    if (exit_code != CLI_SUCCESS) return exit_code;
    return job_finish(job, clattn_plan_create_attention(job->context, &desc, &plan_options, &job->plan));
}

int attend_main(int argc, char **argv) {
    attention_options options = {0};
    int exit_code;
    if (cli_parse(&command, argc, argv, &options, &exit_code) < 0) return exit_code;
    job job = {.command = &command, .options = &options.job};
    exit_code = attend(&job, &options);
    job_close(&job);
    return exit_code;
}
