/* A command that reads .npy files, runs one plan on them and writes .npy files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The command's options are a struct that starts with a job_options, and its table names the files with JOB_FILE: which tensor
 * each one is and which axes its dimensions are (axes.h). The first file of the table leads: its rank picks the same
 * alternative for all others that offer as many, other files' floats are converted to its type, and outputs take it.
 *
 *     int exit_code = job_load(&job);
 *     ... job_output(&job, ...) for each output, clattn_plan_create_...(job.context, &desc, ..., &job.plan)
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
    bool split_devices, explain;
    const char *json;
    bool bf16; /* files of uint16 hold bfloat16 */
} job_options;

/* clang-format off */
#define JOB_FILE(name_, id_, axes_, help_, ...)                                                                          \
    {name_, "FILE", help_, CLI_TEXT, offsetof(job_options, paths) + CLATTN_TENSOR_##id_ * sizeof(const char *),          \
     .tensor = CLATTN_TENSOR_##id_, .axes = axes_, __VA_ARGS__}
/* Several files, for one tensor. */
#define JOB_FILES(name_, id_, axes_, help_, ...)                                                                         \
    {name_, "FILE,...", help_, CLI_TEXT, offsetof(job_options, paths) + CLATTN_TENSOR_##id_ * sizeof(const char *),      \
     .tensor = CLATTN_TENSOR_##id_, .axes = axes_, .list = true, __VA_ARGS__}
#define JOB_REQUIRED .required = true
#define JOB_OUTPUT .output = true
#define JOB_ELEMENTS(kind) .elements = CLI_##kind

/* What every job takes. */
#define JOB_OPTIONS                                                                                                      \
    {"device", "D", "auto, gpu, cpu, native, opencl, opencl:P:D, opencl:P:all or reference (default: $CLATTN_DEVICE, else auto)", \
     CLI_TEXT, offsetof(job_options, device)},                                                                           \
    {"split-devices", NULL, "cut the work over all devices of --device opencl:P:all",                                    \
     CLI_FLAG, offsetof(job_options, split_devices)},                                                                    \
    {"threads", "N", "native threads (default: as OpenMP says)",                                                         \
     CLI_INTEGER, offsetof(job_options, threads), .minimum = 1, .maximum = 65536},                                       \
    {"bf16", NULL, "files of uint16 hold bfloat16", CLI_FLAG, offsetof(job_options, bf16)},                              \
    {"explain", NULL, "print which device and kernels run, and why", CLI_FLAG, offsetof(job_options, explain)},          \
    {"json", "FILE|-", "write what ran, and how long it took, as JSON", CLI_TEXT, offsetof(job_options, json)}
/* clang-format on */

typedef struct job {
    const cli_command *command;
    const job_options *options;
    bool halves, doubles;      /* the operator takes f16 and bf16, and f64, as they are; else they are computed in f32 */
    int64_t heads_q, heads_kv; /* where files have heads and width in one dimension; 0: they do not */
    npy_array inputs[CLATTN_TENSOR_COUNT];
    int64_t parts[CLATTN_TENSOR_COUNT]; /* files that an input was made of */
    void *outputs[CLATTN_TENSOR_COUNT];
    clattn_tensor tensors[CLATTN_TENSOR_COUNT]; /* absent unless a file is given; those without memory get some */
    const cli_option *leader;
    npy_dtype file_type, type; /* the leader's in its file and in memory */
    clattn_context *context;
    clattn_plan *plan;
    double milliseconds; /* of the run */
} job;

/* Read the inputs and make the context. */
int job_load(job *job);
/* What the options say of how to compute. */
clattn_plan_options job_plan_options(const job_options *options);
/* Declare an output's shape; nothing happens when its file was not asked for. */
void job_output(job *job, clattn_tensor_id id, int64_t batch, int64_t heads, int64_t len, int64_t dim);
/* Run the plan, whose creation ended with `status`. */
int job_run(job *job, clattn_status status);
/* Write the outputs. */
int job_write(job *job);
/* Both. */
int job_finish(job *job, clattn_status status);
void job_close(job *job);

/* ---- for job_load's own use -------------------------------------------------------------------------------------- */

int job_open(job *job);
/* The file of an option, or NULL. */
const char *job_path(const job *job, const cli_option *option);
/* The alternatives that an option offers in this job, and the one that the leader's rank picks (axes.h). */
const char *job_axes(const job *job, const cli_option *option);
int job_form(const job *job);

#endif
