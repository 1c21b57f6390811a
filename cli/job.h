/* A command that reads .npy files, runs one plan on them and writes .npy files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The command's options are a struct that starts with a job_options, and its table names the files with JOB_FILE: which tensor
 * each one is and which axes its dimensions are (axes.h). The first file of the table leads: its rank picks
 * the same alternative for all others that offer as many, and outputs take its element type.
 *
 *     int exit_code = job_load(&job);
 *     ... job_output(&job, ...) for each output, job_open(&job), clattn_plan_create_...(job.context, &desc, ..., &job.plan)
 *     exit_code = job_finish(&job, status);
 *     job_close(&job);
 *
 * Each function says on stderr what is wrong and returns the exit code. Files are written in job_finish, all or none.
 */
#ifndef CLATTN_CLI_JOB_H
#define CLATTN_CLI_JOB_H

#include "cli/npy.h"
#include "cli/options.h"

typedef struct job_options {
    const char *paths[CLATTN_TENSOR_COUNT]; /* NULL: not given */
    const char *device;
    cli_integer threads;
    bool explain;
    const char *json;
} job_options;

/* clang-format off */
#define JOB_FILE(name_, id_, axes_, help_, ...)                                                                          \
    {name_, "FILE", help_, CLI_TEXT, offsetof(job_options, paths) + CLATTN_TENSOR_##id_ * sizeof(const char *),          \
     .tensor = CLATTN_TENSOR_##id_, .axes = axes_, __VA_ARGS__}
#define JOB_REQUIRED .required = true
#define JOB_OUTPUT .output = true

/* What every job takes. */
#define JOB_OPTIONS                                                                                                      \
    {"device", "D", "auto, gpu, cpu, native, opencl, opencl:P:D or reference (default: $CLATTN_DEVICE, else auto)",      \
     CLI_TEXT, offsetof(job_options, device)},                                                                           \
    {"threads", "N", "native threads (default: as OpenMP says)",                                                         \
     CLI_INTEGER, offsetof(job_options, threads), .minimum = 1, .maximum = 65536},                                       \
    {"explain", NULL, "print which device and kernels run, and why", CLI_FLAG, offsetof(job_options, explain)},          \
    {"json", "FILE|-", "write what ran, and how long it took, as JSON", CLI_TEXT, offsetof(job_options, json)}
/* clang-format on */

typedef struct job {
    const cli_command *command;
    const job_options *options;
    npy_array inputs[CLATTN_TENSOR_COUNT];
    float *outputs[CLATTN_TENSOR_COUNT];
    clattn_tensor tensors[CLATTN_TENSOR_COUNT]; /* absent unless a file is given */
    const cli_option *leader;
    clattn_context *context;
    clattn_plan *plan;
    double milliseconds; /* of the run */
} job;

/* Read the inputs. */
int job_load(job *job);
/* Declare an output's shape; nothing happens when its file was not asked for. */
void job_output(job *job, clattn_tensor_id id, int64_t batch, int64_t heads, int64_t len, int64_t dim);
/* Make the context. */
int job_open(job *job);
/* Run the plan, whose creation ended with `status`, and write the outputs. */
int job_finish(job *job, clattn_status status);
void job_close(job *job);

#endif
