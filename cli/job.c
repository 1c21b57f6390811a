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

enum { ALIGNMENT = 64 };

/* ---- files of the table ------------------------------------------------------------------------------------------ */

static const char *path_of(const job *job, const cli_option *option) {
    return option->axes != NULL ? job->options->paths[option->tensor] : NULL;
}

static bool is_json(const job *job, const cli_option *option) {
    return option->offset == offsetof(job_options, json) && job->options->json != NULL;
}

/* The file that an option asks to be written, or NULL. */
static const char *output_path(const job *job, const cli_option *option) {
    if (is_json(job, option)) return strcmp(job->options->json, "-") != 0 ? job->options->json : NULL;
    return option->output ? path_of(job, option) : NULL;
}

/* No output may be an input or another output. */
static int check_paths(const job *job) {
    const cli_command *command = job->command;
    for (const cli_option *a = command->options; a->name != NULL; a++) {
        const char *path = path_of(job, a), *written = output_path(job, a);
        if (path != NULL && strcmp(path, "-") == 0)
            return cli_fail(command->name, CLI_USAGE, "--%s wants a file: arrays are not read or written through pipes",
                            a->name);
        if (written == NULL) continue;
        for (const cli_option *b = command->options; b->name != NULL; b++) {
            const char *other = output_path(job, b) != NULL ? output_path(job, b) : path_of(job, b);
            if (a == b || other == NULL || !output_same_file(written, other)) continue;
            return cli_fail(command->name, CLI_USAGE, "--%s and --%s name the same file, %s", a->name, b->name, written);
        }
    }
    return CLI_SUCCESS;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* The form that the leader's rank chose, for an option that offers as many. */
static int leading_form(const job *job) {
    return axes_form(job->leader->axes, job->inputs[job->leader->tensor].header.rank);
}

static int make_tensor(job *job, const cli_option *option) {
    const npy_header *header = &job->inputs[option->tensor].header;
    const char *path = path_of(job, option), *name = job->command->name;
    char shape[128], axes[256];
    int64_t stride[NPY_MAX_RANK];
    int rank, form = axes_form(option->axes, header->rank);
    if (form < 0)
        return cli_fail(name, CLI_USAGE, "--%s: %s has shape %s where %s is wanted", option->name, path,
                        npy_shape_text(header->rank, header->shape, shape, sizeof shape),
                        axes_text(option->axes, -1, axes, sizeof axes));
    if (strchr(option->axes, '|') != NULL && form != leading_form(job))
        return cli_fail(name, CLI_USAGE, "--%s: %s has shape %s where --%s makes it %s", option->name, path,
                        npy_shape_text(header->rank, header->shape, shape, sizeof shape), job->leader->name,
                        axes_text(option->axes, leading_form(job), axes, sizeof axes));
    const char *word = axes_alternative(option->axes, form, &rank);
    clattn_tensor *tensor = &job->tensors[option->tensor];
    *tensor = clattn_tensor_bhld(CLATTN_F32, 1, 1, 1, 1);
    npy_strides(header, stride);
    for (int d = 0; d < rank; d++) {
        tensor->size[axes_index(word[d])] = header->shape[d];
        tensor->stride[axes_index(word[d])] = stride[d];
    }
    return CLI_SUCCESS;
}

static int load_input(job *job, const cli_option *option) {
    char error[512];
    const char *path = path_of(job, option), *name = job->command->name;
    npy_array *array = &job->inputs[option->tensor];
    npy_status status = npy_read(path, array, error, sizeof error);
    if (status != NPY_OK)
        return cli_fail(name, status == NPY_INVALID ? CLI_USAGE : CLI_FAILURE, "--%s: %s", option->name, error);
    if (array->header.dtype != NPY_F4)
        cli_note(name, "--%s: %s holds %s and is computed in float32", option->name, path, npy_dtype_name(array->header.dtype));
    if (array->overflowed > 0)
        cli_note(name, "--%s: %zu numbers of %s are too large for float32 and became infinite", option->name, array->overflowed,
                 path);
    return make_tensor(job, option);
}

int job_load(job *job) {
    if (job->options->json != NULL && json_missing() != NULL)
        return cli_fail(job->command->name, CLI_USAGE, "--json: %s", json_missing());
    int exit_code = check_paths(job);
    job->leader = job->command->options;
    for (const cli_option *option = job->command->options; exit_code == CLI_SUCCESS && option->name != NULL; option++)
        if (path_of(job, option) != NULL && !option->output) exit_code = load_input(job, option);
    return exit_code;
}

void job_output(job *job, clattn_tensor_id id, int64_t batch, int64_t heads, int64_t len, int64_t dim) {
    if (job->options->paths[id] != NULL) job->tensors[id] = clattn_tensor_bhld(CLATTN_F32, batch, heads, len, dim);
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

/* Memory for the outputs. Their sizes were checked when the plan was made. */
static int allocate_outputs(job *job) {
    for (const cli_option *option = job->command->options; option->name != NULL; option++) {
        if (!option->output || path_of(job, option) == NULL) continue;
        const int64_t *size = job->tensors[option->tensor].size;
        size_t bytes = (size_t)(size[0] * size[1] * size[2] * size[3]) * sizeof(float);
        job->outputs[option->tensor] = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
        if (job->outputs[option->tensor] == NULL)
            return cli_fail(job->command->name, CLI_FAILURE, "out of memory: --%s takes %zu bytes", option->name, bytes);
    }
    return CLI_SUCCESS;
}

static double now_milliseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static int run(job *job) {
    clattn_arg args[CLATTN_TENSOR_COUNT];
    size_t count = 0;
    for (const cli_option *option = job->command->options; option->name != NULL; option++) {
        if (path_of(job, option) == NULL) continue;
        void *data = option->output ? job->outputs[option->tensor] : job->inputs[option->tensor].data;
        args[count++] = (clattn_arg){option->tensor, data};
    }
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
    const char *axes = axes_alternative(option->axes, leading_form(job), &rank);
    for (int d = 0; d < rank; d++) shape[d] = job->tensors[option->tensor].size[axes_index(axes[d])];
    npy_dtype dtype = option->tensor == CLATTN_TENSOR_LSE ? NPY_F4 : job->inputs[job->leader->tensor].header.dtype;
    npy_write(file, dtype, rank, shape, job->outputs[option->tensor]);
}

#ifdef CLATTN_HAVE_CJSON
static cJSON *shapes_json(const job *job) {
    cJSON *shapes = cJSON_CreateObject();
    for (const cli_option *option = job->command->options; option->name != NULL; option++) {
        if (path_of(job, option) == NULL) continue;
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

static int write_outputs(job *job) {
    output_set outputs = {0};
    for (const cli_option *option = job->command->options; option->name != NULL; option++) {
        if (!option->output || path_of(job, option) == NULL) continue;
        FILE *file = output_open(&outputs, path_of(job, option));
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

int job_finish(job *job, clattn_status status) {
    int exit_code = status == CLATTN_OK ? CLI_SUCCESS : fail_status(job, status);
    if (exit_code == CLI_SUCCESS) exit_code = allocate_outputs(job);
    if (exit_code == CLI_SUCCESS && job->options->explain) exit_code = explain(job);
    if (exit_code == CLI_SUCCESS) exit_code = run(job);
    if (exit_code == CLI_SUCCESS) exit_code = write_outputs(job);
    return exit_code;
}

void job_close(job *job) {
    clattn_plan_destroy(job->plan);
    clattn_context_destroy(job->context);
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++) {
        npy_free(&job->inputs[id]);
        free(job->outputs[id]);
    }
}
