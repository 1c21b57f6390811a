/* The inputs of a job: .npy files become tensors of the types that the operator takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/axes.h"
#include "cli/job.h"
#include "cli/json.h"
#include "cli/output.h"

/* ---- files of the table ------------------------------------------------------------------------------------------ */

/* The file that an option asks to be written, or NULL. */
static const char *output_path(const job *job, const cli_option *option) {
    const char *path = job_path(job, option);
    if (option->output) return path;
    bool json = option->offset == offsetof(job_options, json) && job->options->json != NULL;
    return json && strcmp(job->options->json, "-") != 0 ? job->options->json : NULL;
}

enum { MAX_PATH = 4096 /* and more than that no system opens */ };

/* The first name of a list "a.npy,b.npy", into `path`; returns the rest, or NULL behind the last. */
static const char *next_path(const char *list, char path[MAX_PATH]) {
    size_t length = strcspn(list, ",");
    snprintf(path, MAX_PATH, "%.*s", (int)(length < MAX_PATH ? length : MAX_PATH - 1), list);
    return list[length] == ',' ? list + length + 1 : NULL;
}

/* Whether an option, a list or not, names the file. */
static bool names_file(const cli_option *option, const char *path, const char *file) {
    char word[MAX_PATH];
    if (!option->list) return output_same_file(path, file);
    while (path != NULL) {
        path = next_path(path, word);
        if (output_same_file(word, file)) return true;
    }
    return false;
}

/* No output may be an input or another output. */
static int check_paths(const job *job) {
    const cli_command *command = job->command;
    for (const cli_option *a = command->options; a->name != NULL; a++) {
        const char *path = job_path(job, a), *written = output_path(job, a);
        if (path != NULL && strcmp(path, "-") == 0)
            return cli_fail(command->name, CLI_USAGE, "--%s wants a file: arrays are not read or written through pipes",
                            a->name);
        if (written == NULL) continue;
        for (const cli_option *b = command->options; b->name != NULL; b++) {
            const char *other = output_path(job, b) != NULL ? output_path(job, b) : job_path(job, b);
            if (a == b || other == NULL || !names_file(b, other, written)) continue;
            return cli_fail(command->name, CLI_USAGE, "--%s and --%s name the same file, %s", a->name, b->name, written);
        }
    }
    return CLI_SUCCESS;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Whether elements of a file can be what an option takes. */
static bool fits(cli_elements elements, npy_dtype dtype) {
    switch (elements) {
    case CLI_LIKE_LEADER:
    case CLI_SINGLE:
        return npy_dtype_digits(dtype) > 0;
    case CLI_BIAS:
        return dtype != NPY_B1;
    case CLI_BOOLEANS:
        return npy_dtype_element(dtype) == CLATTN_BOOL;
    case CLI_COUNTS:
        return dtype == NPY_I4 || dtype == NPY_I8;
    }
    return false;
}

/* bool is a byte of 0 or 1; of a uint8 that has to be seen. */
static bool all_booleans(const npy_array *array) {
    const unsigned char *bytes = array->data;
    for (size_t i = 0; i < array->header.count; i++)
        if (bytes[i] > 1) return false;
    return true;
}

static int check_elements(const job *job, const cli_option *option, const char *path, const npy_array *array) {
    static const char *const wanted[] = {
        [CLI_LIKE_LEADER] = "float16, float32 or float64 is wanted",
        [CLI_SINGLE] = "float16, float32 or float64 is wanted",
        [CLI_BIAS] = "numbers are wanted; true and false go to --mask",
        [CLI_BOOLEANS] = "bool, or uint8 of 0 and 1, is wanted; numbers to add to the scores go to --bias",
        [CLI_COUNTS] = "int32 or int64 is wanted",
    };
    const char *name = job->command->name, *type = npy_dtype_name(array->header.dtype);
    if (!fits(option->elements, array->header.dtype))
        return cli_fail(name, CLI_USAGE, "--%s: %s holds %s where %s", option->name, path, type, wanted[option->elements]);
    if (array->header.dtype == NPY_BF16 && !job->options->bf16)
        return cli_fail(name, CLI_USAGE, "--%s: %s holds %s; if that is bfloat16, --bf16 says so", option->name, path, type);
    if (array->header.dtype == NPY_U1 && option->elements == CLI_BOOLEANS && !all_booleans(array))
        return cli_fail(name, CLI_USAGE, "--%s: %s holds %s with other values than 0 and 1", option->name, path, type);
    return CLI_SUCCESS;
}

static int read_file(const job *job, const cli_option *option, const char *path, npy_array *array) {
    char error[512];
    npy_status status = npy_read(path, array, error, sizeof error);
    if (status != NPY_OK)
        return cli_fail(job->command->name, status == NPY_INVALID ? CLI_USAGE : CLI_FAILURE, "--%s: %s", option->name, error);
    return check_elements(job, option, path, array);
}

static int fail_memory(const job *job, const cli_option *option) {
    return cli_fail(job->command->name, CLI_FAILURE, "--%s: out of memory", option->name);
}

static bool same_shape(const npy_header *a, const npy_header *b) {
    return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

/* Put a part behind those that are in `whole` already. */
static int append_part(const job *job, const cli_option *option, const char *path, npy_array *whole, npy_array *part) {
    char first[128], shape[128];
    const npy_header *header = &part->header;
    if (!npy_pack(part)) return fail_memory(job, option);
    if (whole->data == NULL) {
        *whole = *part;
        *part = (npy_array){0};
        return CLI_SUCCESS;
    }
    if (!same_shape(&whole->header, header))
        return cli_fail(job->command->name, CLI_USAGE, "--%s: %s has shape %s where the first part has %s", option->name, path,
                        npy_shape_text(header->rank, header->shape, shape, sizeof shape),
                        npy_shape_text(whole->header.rank, whole->header.shape, first, sizeof first));
    if (header->dtype != whole->header.dtype)
        return cli_fail(job->command->name, CLI_USAGE, "--%s: %s holds %s where the first part holds %s", option->name, path,
                        npy_dtype_name(header->dtype), npy_dtype_name(whole->header.dtype));
    size_t item = npy_dtype_size(header->dtype), count = whole->header.count + header->count;
    char *data = count <= SIZE_MAX / item ? npy_allocate(count * item) : NULL;
    if (data == NULL) return fail_memory(job, option);
    memcpy(data, whole->data, whole->header.count * item);
    memcpy(data + whole->header.count * item, part->data, header->count * item);
    free(whole->data);
    whole->data = data;
    whole->header.count = count; /* the shape stays that of one part */
    return CLI_SUCCESS;
}

static int read_list(job *job, const cli_option *option) {
    char path[MAX_PATH];
    const char *rest = job_path(job, option);
    int exit_code = CLI_SUCCESS;
    while (exit_code == CLI_SUCCESS && rest != NULL) {
        npy_array part = {0};
        rest = next_path(rest, path);
        exit_code = read_file(job, option, path, &part);
        if (exit_code == CLI_SUCCESS) exit_code = append_part(job, option, path, &job->inputs[option->tensor], &part);
        npy_free(&part);
        job->parts[option->tensor]++;
    }
    return exit_code;
}

static int read_input(job *job, const cli_option *option) {
    npy_array *array = &job->inputs[option->tensor];
    if (option->list) return read_list(job, option);
    int exit_code = read_file(job, option, job_path(job, option), array);
    job->parts[option->tensor] = 1;
    if (exit_code == CLI_SUCCESS && option->packed && !npy_pack(array)) return fail_memory(job, option);
    return exit_code;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* What the operator computes in: the leader's type where it is served, else float32. OpenCL kernels serve no float64. */
static int choose_type(job *job) {
    clattn_device_info device = CLATTN_DEVICE_INFO_INIT;
    clattn_status status = clattn_context_device(job->context, &device);
    if (status != CLATTN_OK) return cli_fail_status(job->command->name, status, NULL);
    bool doubles = job->doubles && (device.kind == CLATTN_DEVICE_NATIVE || device.kind == CLATTN_DEVICE_REFERENCE);
    job->file_type = job->inputs[job->leader->tensor].header.dtype;
    job->type = (job->file_type == NPY_F8 ? doubles : job->halves) ? job->file_type : NPY_F4;
    return CLI_SUCCESS;
}

static npy_dtype wanted_type(const job *job, const cli_option *option, npy_dtype dtype) {
    if (option->elements == CLI_BOOLEANS || option->elements == CLI_COUNTS) return dtype;
    if (option->elements == CLI_SINGLE) return NPY_F4;
    if (option->elements == CLI_BIAS) return dtype == job->type ? dtype : NPY_F4;
    return job->type;
}

static int retype(job *job, const cli_option *option) {
    npy_array *array = &job->inputs[option->tensor];
    const char *path = job_path(job, option), *name = job->command->name;
    size_t overflowed;
    npy_dtype from = array->header.dtype, to = wanted_type(job, option, from);
    if (!npy_retype(array, to, &overflowed)) return fail_memory(job, option);
    if (from != to && option->elements != CLI_SINGLE && npy_dtype_digits(to) < npy_dtype_digits(from))
        cli_note(name, "--%s: %s holds %s and is computed in %s", option->name, path, npy_dtype_name(from), npy_dtype_name(to));
    if (overflowed > 0)
        cli_note(name, "--%s: %zu numbers of %s are too large for %s and became infinite", option->name, overflowed, path,
                 npy_dtype_name(to));
    return CLI_SUCCESS;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* One dimension of heads * width, as two. */
static int split_heads(const job *job, const cli_option *option, char axis, clattn_tensor *tensor) {
    int64_t heads = axis == 'q' ? job->heads_q : job->heads_kv;
    if (tensor->size[3] % heads != 0)
        return cli_fail(job->command->name, CLI_USAGE, "--%s: %s has %lld columns, which are no multiple of %lld heads",
                        option->name, job_path(job, option), (long long)tensor->size[3], (long long)heads);
    tensor->size[1] = heads;
    tensor->size[3] /= heads;
    tensor->stride[1] = tensor->size[3] * tensor->stride[3];
    return CLI_SUCCESS;
}

static int fail_shape(const job *job, const cli_option *option, const char *list, int form) {
    const npy_header *header = &job->inputs[option->tensor].header;
    char shape[128], axes[512];
    npy_shape_text(header->rank, header->shape, shape, sizeof shape);
    axes_text(list, form, axes, sizeof axes);
    if (form < 0)
        return cli_fail(job->command->name, CLI_USAGE, "--%s: %s has shape %s where %s is wanted", option->name,
                        job_path(job, option), shape, axes);
    return cli_fail(job->command->name, CLI_USAGE, "--%s: %s has shape %s where --%s makes it %s", option->name,
                    job_path(job, option), shape, job->leader->name, axes);
}

static int make_tensor(job *job, const cli_option *option) {
    const npy_header *header = &job->inputs[option->tensor].header;
    const char *list = job_axes(job, option);
    int64_t stride[NPY_MAX_RANK];
    int rank, form = axes_form(list, header->rank);
    if (form < 0) return fail_shape(job, option, list, -1);
    if (!axes_single(list) && option->axes[0] != '*' && form != job_form(job))
        return fail_shape(job, option, list, job_form(job));
    const char *word = axes_alternative(list, form, &rank);
    clattn_tensor *tensor = &job->tensors[option->tensor];
    *tensor = clattn_tensor_bhld(npy_dtype_element(header->dtype), 1, 1, 1, 1);
    npy_strides(header, stride);
    for (int d = 0; d < rank; d++) {
        tensor->size[axes_index(word[d])] = header->shape[d];
        tensor->stride[axes_index(word[d])] = stride[d];
    }
    if (option->list) { /* part p of member b is member p * batch + b */
        const int64_t *size = tensor->size;
        *tensor = clattn_tensor_bhld(tensor->dtype, size[0] * job->parts[option->tensor], size[1], size[2], size[3]);
    }
    return rank > 0 && axes_merges(word[rank - 1]) ? split_heads(job, option, word[rank - 1], tensor) : CLI_SUCCESS;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int for_inputs(job *job, int (*act)(struct job *, const cli_option *)) {
    int exit_code = CLI_SUCCESS;
    for (const cli_option *option = job->command->options; exit_code == CLI_SUCCESS && option->name != NULL; option++)
        if (job_path(job, option) != NULL && !option->output) exit_code = act(job, option);
    return exit_code;
}

/* A --bf16 that finds nothing to tell about would have no effect. */
static int check_bf16(const job *job) {
    for (int id = 0; id < CLATTN_TENSOR_COUNT; id++)
        if (job->inputs[id].data != NULL && job->inputs[id].header.dtype == NPY_BF16) return CLI_SUCCESS;
    return cli_fail(job->command->name, CLI_USAGE, "--bf16 is given, and no file holds uint16");
}

int job_load(job *job) {
    if (job->options->json != NULL && json_missing() != NULL)
        return cli_fail(job->command->name, CLI_USAGE, "--json: %s", json_missing());
    int exit_code = check_paths(job);
    job->leader = job->command->options;
    if (exit_code == CLI_SUCCESS) exit_code = for_inputs(job, read_input);
    if (exit_code == CLI_SUCCESS && job->options->bf16) exit_code = check_bf16(job);
    if (exit_code == CLI_SUCCESS) exit_code = job_open(job);
    if (exit_code == CLI_SUCCESS) exit_code = choose_type(job);
    if (exit_code == CLI_SUCCESS) exit_code = for_inputs(job, retype);
    return exit_code == CLI_SUCCESS ? for_inputs(job, make_tensor) : exit_code;
}
