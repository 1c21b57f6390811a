/* clattn rnn and clattn lstm: the recurrence, on .npy files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "cli/commands.h"
#include "cli/job.h"

typedef struct recurrence_options {
    job_options job;
    cli_real forget_bias;
    cli_integer algorithm; /* as clattn_recurrence_form counts */
} recurrence_options;

/* G is the number of gates. */
/* clang-format off */
#define RECURRENCE_FILES                                                                                                 \
    JOB_FILE("x", X, "ld|bld", "the words: (steps, dim) or (batch, steps, dim)", JOB_REQUIRED),                          \
    JOB_FILE("w-in", W_IN, "rc", "(G * hidden, dim)", JOB_REQUIRED),                                                     \
    JOB_FILE("w-h", W_H, "rc", "(G * hidden, hidden)", JOB_REQUIRED),                                                    \
    JOB_FILE("bias", BIAS, "c", "(G * hidden,)"),                                                                        \
    JOB_FILE("h0", H_0, "d|bd", "first state: (hidden,) or (batch, hidden); default: zeros"),                            \
    JOB_FILE("out", OUT, "ld|bld", "every state, with x's type and number of dimensions", JOB_OUTPUT, JOB_REQUIRED),     \
    JOB_FILE("h-n", H_N, "d|bd", "the last state", JOB_OUTPUT)

#define ALGORITHM_OPTION                                                                                                 \
    {"algorithm", "auto|persistent|loop", "one kernel that loops inside, or one launch a step",                          \
     CLI_CHOICE, offsetof(recurrence_options, algorithm)}
/* clang-format on */

static const cli_option rnn_table[] = {
    RECURRENCE_FILES,
    ALGORITHM_OPTION,
    JOB_OPTIONS,
    {NULL},
};

static const cli_option lstm_table[] = {
    RECURRENCE_FILES,
    JOB_FILE("c0", C_0, "d|bd", "first cell; default: zeros"),
    JOB_FILE("c-n", C_N, "d|bd", "the last cell", JOB_OUTPUT),
    {"forget-bias", "B", "added to the forget gate's sum (default: 0)", CLI_REAL, offsetof(recurrence_options, forget_bias)},
    ALGORITHM_OPTION,
    JOB_OPTIONS,
    {NULL},
};

static const cli_command rnn_command = {
    .name = "rnn",
    .summary = "The recurrence h = tanh(W_h h + W_in x + bias), word by word, on NumPy files.",
    .options = rnn_table,
    .details = "G = 1.",
};

static const cli_command lstm_command = {
    .name = "lstm",
    .summary = "The LSTM, word by word, on NumPy files.",
    .options = lstm_table,
    .details = "G = 4: the rows of the weights are the gates i, o, f, c in ONNX's order.",
};

static int recur(job *job, const recurrence_options *options, clattn_cell cell) {
    int exit_code = job_load(job);
    if (exit_code != CLI_SUCCESS) return exit_code;

    clattn_tensor *tensors = job->tensors;
    const int64_t *x = tensors[CLATTN_TENSOR_X].size;
    int64_t hidden = tensors[CLATTN_TENSOR_W_H].size[3];
    job_output(job, CLATTN_TENSOR_OUT, x[0], 1, x[2], hidden);
    job_output(job, CLATTN_TENSOR_H_N, x[0], 1, 1, hidden);
    job_output(job, CLATTN_TENSOR_C_N, x[0], 1, 1, hidden);

    clattn_recurrence_desc desc = CLATTN_RECURRENCE_DESC_INIT;
    desc.cell = cell;
    desc.x = tensors[CLATTN_TENSOR_X];
    desc.w_in = tensors[CLATTN_TENSOR_W_IN];
    desc.w_h = tensors[CLATTN_TENSOR_W_H];
    desc.bias = tensors[CLATTN_TENSOR_BIAS];
    desc.h_0 = tensors[CLATTN_TENSOR_H_0];
    desc.c_0 = tensors[CLATTN_TENSOR_C_0];
    desc.out = tensors[CLATTN_TENSOR_OUT];
    desc.h_n = tensors[CLATTN_TENSOR_H_N];
    desc.c_n = tensors[CLATTN_TENSOR_C_N];
    desc.forget_bias = options->forget_bias.value;
    clattn_plan_options plan_options = job_plan_options(job->options);
    plan_options.recurrence = (clattn_recurrence_form)options->algorithm.value;
    return job_finish(job, clattn_plan_create_recurrence(job->context, &desc, &plan_options, &job->plan));
}

static int recurrence_main(int argc, char **argv, const cli_command *command, clattn_cell cell) {
    recurrence_options options = {0};
    int exit_code;
    if (cli_parse(command, argc, argv, &options, &exit_code) < 0) return exit_code;
    if (!isfinite((float)options.forget_bias.value))
        return cli_fail(command->name, CLI_USAGE, "--forget-bias %g is too large for float32", options.forget_bias.value);
    job job = {.command = command, .options = &options.job};
    exit_code = recur(&job, &options, cell);
    job_close(&job);
    return exit_code;
}

int rnn_main(int argc, char **argv) {
    return recurrence_main(argc, argv, &rnn_command, CLATTN_CELL_RNN);
}

int lstm_main(int argc, char **argv) {
    return recurrence_main(argc, argv, &lstm_command, CLATTN_CELL_LSTM);
}
