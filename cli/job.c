/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "cli/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/axes.h"
#include "cli/json.h"
#include "cli/output.h"

/* ---- files of the table ------------------------------------------------------------------------------------------ */

const char *job_path(const job *job, const cli_option *option) {
    if (option->axes == NULL) return NULL;
    return *(const char *const *)((const char *)job->options + option->offset);
}

const char *job_axes(const job *job, const cli_option *option) {
    return axes_list(option->axes, job->heads_q > 0);
}

int job_form(const job *job) {
    return axes_form(job_axes(job, job->leader), job->inputs[job->leader->tensor].header.rank);
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

/* What an output's file holds. */
static npy_dtype file_type(const job *job, const cli_option *option) {
    return option->elements == CLI_SINGLE ? NPY_F4 : job->file_type;
}

void job_output(job *job, clattn_tensor_id id, int64_t batch, int64_t heads, int64_t len, int64_t dim) {
    for (const cli_option *option = job->command->options; option->name != NULL; option++) {
        if (!option->output || option->tensor != id || job_path(job, option) == NULL) continue;
        npy_dtype type = option->elements == CLI_SINGLE ? NPY_F4 : job->type;
        job->tensors[id] = clattn_tensor_bhld(npy_dtype_element(type), batch, heads, len, dim);
    }
}

/* A tensor's memory; NULL: none yet. */
static void *memory_of(const job *job, clattn_tensor_id id) {
    return job->inputs[id].data != NULL ? job->inputs[id].data : job->outputs[id];
}

/* Memory for the tensors that have none. Their sizes were checked when the plan was made. */
static int allocate_outputs(job *job) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        const clattn_tensor *tensor = &job->tensors[id];
        if (tensor->dtype == CLATTN_ABSENT || memory_of(job, (clattn_tensor_id)id) != NULL) continue;
        const int64_t *size = tensor->size;
        size_t bytes = (size_t)(size[0] * size[1] * size[2] * size[3]) * npy_dtype_size(npy_dtype_of(tensor->dtype));
        job->outputs[id] = npy_allocate(bytes);
        if (job->outputs[id] == NULL)
            return cli_fail(job->command->name, CLI_FAILURE, "out of memory: %s takes %zu bytes",
                            clattn_tensor_name((clattn_tensor_id)id), bytes);
    }
    return CLI_SUCCESS;
}

/* ---- texts of the library ---------------------------------------------------------------------------------------- */

static char *context_text(clattn_context *context, size_t (*get)(clattn_context *, char *, size_t)) {
    size_t size = get(context, NULL, 0) + 1;
    char *text = malloc(size);
    if (text != NULL) get(context, text, size);
    return text;
}

static char *plan_text(const clattn_plan *plan) {
    size_t size = clattn_plan_explain(plan, NULL, 0) + 1;
    char *text = malloc(size);
    if (text != NULL) clattn_plan_explain(plan, text, size);
    return text;
}

static int fail_status(const job *job, clattn_status status) {
    char *detail = context_text(job->context, clattn_context_error);
    int exit_code = cli_fail_status(job->command->name, status, detail);
    free(detail);
    return exit_code;
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

int job_open(job *job) {
    char error[2048] = "";
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = job->options->device;
    options.threads = (int)job->options->threads.value;
    options.error = error;
    options.error_size = sizeof error;
    clattn_status status = clattn_context_create(&options, &job->context);
    return status == CLATTN_OK ? CLI_SUCCESS : cli_fail_status(job->command->name, status, error);
}

clattn_plan_options job_plan_options(const job_options *options) {
    clattn_plan_options plan = CLATTN_PLAN_OPTIONS_INIT;
    plan.split_devices = options->split_devices;
    return plan;
}

static double now_milliseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static int run_plan(job *job) {
    clattn_arg args[CLATTN_TENSOR_COUNT];
    size_t count = 0;
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++)
        if (job->tensors[id].dtype != CLATTN_ABSENT)
            args[count++] = (clattn_arg){(clattn_tensor_id)id, memory_of(job, (clattn_tensor_id)id)};
    double start = now_milliseconds();
    clattn_status status = clattn_plan_run(job->plan, args, count);
    job->milliseconds = now_milliseconds() - start;
    return status == CLATTN_OK ? CLI_SUCCESS : fail_status(job, status);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* On stdout, or on stderr where the JSON has stdout for itself. */
static int explain(const job *job) {
    FILE *stream = job->options->json != NULL && strcmp(job->options->json, "-") == 0 ? stderr : stdout;
    char *device = context_text(job->context, clattn_context_explain), *plan = plan_text(job->plan);
    bool complete = device != NULL && plan != NULL;
    if (complete) fprintf(stream, "%s%s", device, plan);
    free(device);
    free(plan);
    return complete ? CLI_SUCCESS : cli_fail(job->command->name, CLI_FAILURE, "out of memory");
}

static void write_tensor(const job *job, const cli_option *option, FILE *file) {
    int rank;
    int64_t shape[NPY_MAX_RANK] = {0};
    const clattn_tensor *tensor = &job->tensors[option->tensor];
    const char *axes = axes_alternative(job_axes(job, option), job_form(job), &rank);
    for (int d = 0; d < rank; d++) shape[d] = tensor->size[axes_index(axes[d])] * (axes_merges(axes[d]) ? tensor->size[1] : 1);
    npy_write(file, file_type(job, option), rank, shape, npy_dtype_of(tensor->dtype), memory_of(job, option->tensor));
}

#ifdef CLATTN_HAVE_CJSON
static cJSON *shapes_json(const job *job) {
    cJSON *shapes = cJSON_CreateObject();
    for (const cli_option *option = job->command->options; option->name != NULL; option++) {
        if (job_path(job, option) == NULL) continue;
        cJSON *shape = cJSON_AddArrayToObject(shapes, option->name);
        for (int i = 0; i < 4; i++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)job->tensors[option->tensor].size[i]));
    }
    return shapes;
}

static cJSON *run_json(const job *job) {
    clattn_plan_info info = {sizeof info};
    clattn_plan_get_info(job->plan, &info);
    char *device = context_text(job->context, clattn_context_explain), *plan = plan_text(job->plan);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "clattn-run-1");
    cJSON_AddStringToObject(root, "version", clattn_version());
    cJSON_AddStringToObject(root, "op", info.op);
    cJSON_AddStringToObject(root, "algorithm", info.algorithm);
    cJSON_AddStringToObject(root, "row", info.row);
    cJSON_AddStringToObject(root, "device", info.device);
    cJSON_AddNumberToObject(root, "ms", job->milliseconds);
    cJSON_AddNumberToObject(root, "workspace_bytes", (double)info.workspace_bytes);
    cJSON_AddNumberToObject(root, "launches", (double)info.launches);
    cJSON_AddNumberToObject(root, "dependent_steps", (double)info.dependent_steps);
    cJSON_AddNumberToObject(root, "flops", info.flops);
    cJSON_AddNumberToObject(root, "bytes", info.bytes);
    cJSON_AddItemToObject(root, "shapes", shapes_json(job));
    cJSON_AddStringToObject(root, "why_device", device != NULL ? device : "");
    cJSON_AddStringToObject(root, "why_plan", plan != NULL ? plan : "");
    free(device);
    free(plan);
    return root;
}
#endif

int job_write(job *job) {
    output_set outputs = {0};
    for (const cli_option *option = job->command->options; option->name != NULL; option++) {
        if (!option->output || job_path(job, option) == NULL) continue;
        FILE *file = output_open(&outputs, job_path(job, option));
        if (file == NULL) return cli_fail(job->command->name, CLI_USAGE, "--%s: %s", option->name, outputs.error);
        write_tensor(job, option, file);
    }
#ifdef CLATTN_HAVE_CJSON
    if (job->options->json != NULL && !json_write(&outputs, job->options->json, run_json(job)))
        return cli_fail(job->command->name, CLI_USAGE, "--json: %s", outputs.error);
#endif
    if (output_commit(&outputs)) return CLI_SUCCESS;
    return cli_fail(job->command->name, CLI_FAILURE, "%s", outputs.error);
}

int job_run(job *job, clattn_status status) {
    int exit_code = status == CLATTN_OK ? CLI_SUCCESS : fail_status(job, status);
    if (exit_code == CLI_SUCCESS) exit_code = allocate_outputs(job);
    if (exit_code == CLI_SUCCESS && job->options->explain) exit_code = explain(job);
    return exit_code == CLI_SUCCESS ? run_plan(job) : exit_code;
}

int job_finish(job *job, clattn_status status) {
    int exit_code = job_run(job, status);
    return exit_code == CLI_SUCCESS ? job_write(job) : exit_code;
}

void job_close(job *job) {
    clattn_plan_destroy(job->plan);
    clattn_context_destroy(job->context);
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        npy_free(&job->inputs[id]);
        free(job->outputs[id]);
    }
}
