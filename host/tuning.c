/* Tuning: keys, devices, and what is known in a context. (tuning_file.c: the files.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning_file.h"

/* ---- keys ---------------------------------------------------------------------------------------------------------- */

/* Sizes up to each bound are one class, and those past the last. */
static const i64 dim_classes[] = {64, 128, 256}, len_classes[] = {16, 256}, width_classes[] = {256, 1024};

static void add_class(clattn__text *key, const char *name, i64 size, const i64 *bounds, size_t count) {
    size_t n = 0;
    while (n < count && size > bounds[n]) n++;
    const i64 first = n ? bounds[n - 1] + 1 : 0;
    if (n < count)
        clattn__text_add(key, " %s %lld-%lld", name, (long long)first, (long long)bounds[n]);
    else
        clattn__text_add(key, " %s %lld+", name, (long long)first);
}

#define ADD_CLASS(key, name, size, bounds) add_class(key, name, size, bounds, sizeof bounds / sizeof *bounds)

static const char *sight_of(const attention_params *a) {
    if (a->keys.left >= 0) return "window";
    return a->keys.right >= 0 ? "causal" : "full";
}

static void add_attention(clattn__text *key, clattn__role role, const attention_params *a) {
    clattn__text_add(key, " %s", clattn_dtype_name((clattn_dtype)a->dtype));
    ADD_CLASS(key, "dim", a->head_dim > a->value_dim ? a->head_dim : a->value_dim, dim_classes);
    ADD_CLASS(key, "len_q", a->len_q, len_classes);
    ADD_CLASS(key, "len_kv", a->len_kv, len_classes);
    /* Of few queries, causality hides few keys. */
    if (role != CLATTN__ROLE_ATTENTION_SPLIT || a->keys.left >= 0) clattn__text_add(key, " %s", sight_of(a));
    if (a->modified) clattn__text_add(key, " modified");
}

static void add_project(clattn__text *key, clattn__role role, const project_params *p) {
    (void)role;
    if (p->dtype != DTYPE_F32) clattn__text_add(key, " %s", clattn_dtype_name((clattn_dtype)p->dtype));
    ADD_CLASS(key, "len", p->len, len_classes);
    ADD_CLASS(key, "depth", p->depth, width_classes);
    ADD_CLASS(key, "columns", p->columns, width_classes);
}

static void add_recurrence(clattn__text *key, clattn__role role, const recurrence_params *r) {
    (void)role;
    ADD_CLASS(key, "hidden", r->hidden, width_classes);
}

bool clattn__tuning_key(clattn__role role, const clattn__params *params, char out[CLATTN__TUNING_KEY]) {
    clattn__text key = {0};
    clattn__text_add(&key, "%s", clattn__roles[role].entry);
    switch (role) {
    case CLATTN__ROLE_ATTENTION:
    case CLATTN__ROLE_ATTENTION_SPLIT:
    case CLATTN__ROLE_SCORES:
    case CLATTN__ROLE_WEIGHTED_VALUES:
        if (params->attention.q_offsets.present) key.failed = true;
        add_attention(&key, role, &params->attention);
        break;
    case CLATTN__ROLE_PROJECT:
        add_project(&key, role, &params->project);
        break;
    case CLATTN__ROLE_RNN_STEP:
    case CLATTN__ROLE_RNN_LOOP:
    case CLATTN__ROLE_LSTM_STEP:
    case CLATTN__ROLE_LSTM_LOOP:
        add_recurrence(&key, role, &params->recurrence);
        break;
    default:
        key.failed = true; /* its rows take little of any time */
    }
    const bool made = !key.failed && key.length < CLATTN__TUNING_KEY;
    if (made) memcpy(out, key.data, key.length + 1);
    clattn__text_free(&key);
    return made;
}

/* ---- devices ------------------------------------------------------------------------------------------------------- */

static const char *type_of(clattn_device_kind kind) {
    switch (kind) {
    case CLATTN_DEVICE_NATIVE:
        return "native";
    case CLATTN_DEVICE_REFERENCE:
        return "reference";
    case CLATTN_DEVICE_OPENCL_CPU:
        return "opencl-cpu";
    case CLATTN_DEVICE_OPENCL_GPU:
        return "opencl-gpu";
    case CLATTN_DEVICE_OPENCL_OTHER:
        break;
    }
    return "opencl-other";
}

static const char *architecture_of(const clattn__device *device, char *text, size_t size) {
    if (!device->has_cpu_family && device->info.kind == CLATTN_DEVICE_OPENCL_GPU) return device->architecture;
    snprintf(text, size, "%d floats", device->vector_width);
    return text;
}

clattn__tuning_device clattn__tuning_device_of(const clattn__device *device) {
    clattn__tuning_device d = {0};
    char text[32];
    clattn__text_copy(device->info.name, d.name, sizeof d.name);
    clattn__text_copy(device->info.platform, d.platform, sizeof d.platform);
    clattn__text_copy(device->info.driver, d.driver, sizeof d.driver);
    clattn__text_copy(device->vendor, d.vendor, sizeof d.vendor);
    clattn__text_copy(architecture_of(device, text, sizeof text), d.architecture, sizeof d.architecture);
    clattn__text_copy(type_of(device->info.kind), d.type, sizeof d.type);
    snprintf(d.kernels, sizeof d.kernels, "%s%s%s%s", device->has_cpu_family ? "cpu" : "",
             device->has_cpu_family && device->has_gpu_family ? "+" : "", device->has_gpu_family ? "gpu" : "",
             device->has_clblast ? "+clblast" : "");
    return d;
}

static bool same(const char *a, const char *b) {
    return *a && strcmp(a, b) == 0;
}

clattn__tuning_level clattn__tuning_level_of(const clattn__tuning_device *measured, const clattn__tuning_device *here) {
    if (!same(measured->type, here->type) || !same(measured->kernels, here->kernels)) return CLATTN__TUNING_NO_LEVEL;
    if (same(measured->name, here->name) && same(measured->platform, here->platform)) return CLATTN__TUNING_DEVICE;
    const bool vendor = same(measured->vendor, here->vendor);
    if (vendor && same(measured->architecture, here->architecture)) return CLATTN__TUNING_ARCHITECTURE;
    return vendor ? CLATTN__TUNING_VENDOR : CLATTN__TUNING_TYPE;
}

void clattn__tuned_origin(clattn__text *text, const clattn__tuned *tuned) {
    static const char *const devices[] = {"this device", "a device of its architecture", "a device of its vendor",
                                          "a device of its type", "another device"};
    clattn__text_add(text, "measured on %s%s, %s", devices[tuned->level], tuned->other_driver ? " with another driver" : "",
                     tuned->file);
}

/* ---- what is known in a context -------------------------------------------------------------------------------------- */

struct clattn__tuning {
    clattn__tuning_files files;
    bool trying;
    const clattn__row *trial;
};

/* Nearer devices first, then the user's files; else as they were read. */
static int compare(const void *a, const void *b) {
    const clattn__tuned *x = a, *y = b;
    if (x->level != y->level) return x->level < y->level ? -1 : 1;
    if (x->built_in != y->built_in) return x->built_in ? 1 : -1;
    const int file = strcmp(x->file, y->file);
    return file ? file : strcmp(x->key, y->key);
}

/* Under context->lock; NULL: there is no memory. */
static struct clattn__tuning *state_of(clattn_context *context, bool read, bool *fresh) {
    if (context->tuning) return context->tuning;
    struct clattn__tuning *tuning = calloc(1, sizeof *tuning);
    if (tuning && read && clattn__is_on(CLATTN__TUNING)) {
        const clattn__tuning_device here = clattn__tuning_device_of(&context->device);
        clattn__tuning_files_read(&tuning->files, &here);
        if (tuning->files.count) qsort(tuning->files.lines, tuning->files.count, sizeof *tuning->files.lines, compare);
        *fresh = true;
    }
    context->tuning = tuning;
    return tuning;
}

/* Read the files where that has not been done; what is wrong with them is said once, without the lock: the log is the caller's.
 */
static struct clattn__tuning *open_tuning(clattn_context *context) {
    bool fresh = false;
    pthread_mutex_lock(&context->lock);
    struct clattn__tuning *tuning = state_of(context, true, &fresh);
    pthread_mutex_unlock(&context->lock);
    if (fresh && tuning->files.problems.length)
        clattn__log(context, CLATTN_LOG_WARNING, "%.*s", (int)tuning->files.problems.length - 1, tuning->files.problems.data);
    return tuning;
}

const clattn__tuned *clattn__tuning_find(clattn_context *context, const char *key) {
    const struct clattn__tuning *tuning = open_tuning(context);
    for (size_t n = 0; tuning && n < tuning->files.count; n++)
        if (strcmp(tuning->files.lines[n].key, key) == 0) return &tuning->files.lines[n];
    return NULL;
}

const clattn__tuned *clattn__tuning_list(clattn_context *context, size_t *count, const char **problems) {
    const struct clattn__tuning *tuning = open_tuning(context);
    *count = tuning ? tuning->files.count : 0;
    *problems = tuning && tuning->files.problems.data ? tuning->files.problems.data : "";
    return tuning ? tuning->files.lines : NULL;
}

void clattn__tuning_close(clattn_context *context) {
    if (context->tuning) clattn__tuning_files_free(&context->tuning->files);
    free(context->tuning);
    context->tuning = NULL;
}

bool clattn__tuning_try(clattn_context *context, const clattn__row *row) {
    bool fresh;
    pthread_mutex_lock(&context->lock);
    struct clattn__tuning *tuning = state_of(context, false, &fresh);
    if (tuning) {
        tuning->trying = true;
        tuning->trial = row;
    }
    pthread_mutex_unlock(&context->lock);
    return tuning != NULL;
}

bool clattn__tuning_trial(clattn_context *context, clattn__role role, const clattn__row **row) {
    pthread_mutex_lock(&context->lock);
    const struct clattn__tuning *tuning = context->tuning;
    const bool trying = tuning && tuning->trying;
    *row = trying && tuning->trial && tuning->trial->role == role ? tuning->trial : NULL;
    pthread_mutex_unlock(&context->lock);
    return trying;
}

/* ---- the environment ------------------------------------------------------------------------------------------------- */

clattn__text clattn__tuning_directory(void) {
    clattn__text path = {0};
    const char *own = getenv("CLATTN_CONFIG_DIR");
    if (own && *own)
        clattn__text_add(&path, "%s/tune", own);
    else if (clattn__text_add_xdg(&path, "XDG_CONFIG_HOME", ".config"))
        clattn__text_add(&path, "/tune");
    if (path.failed) clattn__text_free(&path);
    return path;
}
