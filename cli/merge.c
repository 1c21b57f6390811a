/* clattn merge: attention over all keys from attention over parts of them, on .npy files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/commands.h"
#include "cli/job.h"

/* clang-format off */
static const cli_option options_table[] = {
    JOB_FILES("out-parts", OUT_PARTS, "ld|hld|bhld", "the results over each part, each (len, dim), (heads, len, dim) or "
              "(batch, heads, len, dim)", JOB_REQUIRED),
    JOB_FILES("lse-parts", LSE_PARTS, "l|hl|bhl", "their lse, in the same order", JOB_REQUIRED, JOB_ELEMENTS(SINGLE)),
    JOB_FILE("sinks", SINKS, "*h|bh", "one more logit in each row's softmax, if the parts are without: (heads,) or (batch, heads)",
             JOB_ELEMENTS(SINGLE)),
    JOB_FILE("out", OUT, "ld|hld|bhld", "the result over all keys", JOB_OUTPUT, JOB_REQUIRED),
    JOB_FILE("lse", LSE, "l|hl|bhl", "its lse, float32", JOB_OUTPUT, JOB_ELEMENTS(SINGLE)),
    JOB_OPTIONS,
    {NULL},
};
/* clang-format on */

static const cli_command command = {
    .name = "merge",
    .summary = "Attention over all keys from attention over parts of them, on NumPy files.",
    .options = options_table,
    .details =
        "Each part is what clattn attend writes with --out and --lse on the same queries and some of the keys. A part without "
        "keys has lse -inf and is not read further.",
};

static int merge(job *job) {
    int exit_code = job_load(job);
    if (exit_code != CLI_SUCCESS) return exit_code;

    clattn_tensor *tensors = job->tensors;
    const int64_t *parts = job->parts, *size = tensors[CLATTN_TENSOR_OUT_PARTS].size;
    if (parts[CLATTN_TENSOR_OUT_PARTS] != parts[CLATTN_TENSOR_LSE_PARTS])
        return cli_fail(command.name, CLI_USAGE, "--out-parts names %lld files and --lse-parts %lld",
                        (long long)parts[CLATTN_TENSOR_OUT_PARTS], (long long)parts[CLATTN_TENSOR_LSE_PARTS]);
    int64_t batch = size[0] / parts[CLATTN_TENSOR_OUT_PARTS];
    job_output(job, CLATTN_TENSOR_OUT, batch, size[1], size[2], size[3]);
    job_output(job, CLATTN_TENSOR_LSE, batch, size[1], size[2], 1);

    clattn_merge_desc desc = CLATTN_MERGE_DESC_INIT;
    desc.out_parts = tensors[CLATTN_TENSOR_OUT_PARTS];
    desc.lse_parts = tensors[CLATTN_TENSOR_LSE_PARTS];
    desc.sinks = tensors[CLATTN_TENSOR_SINKS];
    desc.out = tensors[CLATTN_TENSOR_OUT];
    desc.lse = tensors[CLATTN_TENSOR_LSE];
    const clattn_plan_options plan_options = job_plan_options(job->options);
    return job_finish(job, clattn_plan_create_merge(job->context, &desc, &plan_options, &job->plan));
}

int merge_main(int argc, char **argv) {
    job_options options = {0};
    int exit_code;
    if (cli_parse(&command, argc, argv, &options, &exit_code) < 0) return exit_code;
    job job = {.command = &command, .options = &options, .halves = true};
    exit_code = merge(&job);
    job_close(&job);
    return exit_code;
}
