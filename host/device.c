/* Which device: list what is there, understand what is asked for, open it, say why.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "reference/reference.h"

/* ---- the list ------------------------------------------------------------------------------------------------------ */

/* The devices of this machine: native, reference, then OpenCL's. The caller frees. */
static clattn_status list_all(clattn__device **devices, size_t *count) {
    const clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn__device *opencl = NULL, *all = NULL;
    size_t opencl_count = 0;
    clattn_context *context = clattn__context_new(&options);
    clattn_status status = context ? CLATTN_OK : CLATTN_ERROR_MEMORY;
    if (status == CLATTN_OK) status = clattn__opencl_list(&opencl, &opencl_count);
    if (status == CLATTN_OK) all = calloc(2 + opencl_count, sizeof *all);
    if (status == CLATTN_OK && !all) status = CLATTN_ERROR_MEMORY;
    if (status == CLATTN_OK) status = clattn__native_open(context, NULL);
    if (status == CLATTN_OK) {
        all[0] = context->device;
        clattn__context_close(context);
        status = clattn__reference_open(context);
    }
    if (status == CLATTN_OK) {
        all[1] = context->device;
        if (opencl_count) memcpy(all + 2, opencl, opencl_count * sizeof *all);
        *devices = all;
        *count = 2 + opencl_count;
        all = NULL;
    }
    free(all);
    free(opencl);
    clattn_context_destroy(context);
    return status;
}

clattn_status clattn_device_list(clattn_device_info *list, size_t capacity, size_t *count) {
    if (!count || (!list && capacity)) return CLATTN_ERROR_ARGUMENT;
    clattn__device *devices;
    clattn_status status = list_all(&devices, count);
    if (status != CLATTN_OK) return status;
    const size_t stride = capacity ? list->struct_size : 0; /* the caller's, which may be another version's */
    for (size_t n = 0; n < *count && n < capacity && status == CLATTN_OK; n++) {
        void *entry = (char *)list + n * stride;
        memcpy(entry, &stride, sizeof stride);
        status = clattn__write_struct(NULL, "list", entry, &devices[n].info, sizeof devices[n].info);
    }
    free(devices);
    return status;
}

/* ---- what is asked for ---------------------------------------------------------------------------------------------- */

typedef enum wish_kind { WISH_AUTO, WISH_GPU, WISH_CPU, WISH_NATIVE, WISH_OPENCL, WISH_OPENCL_EXACT, WISH_REFERENCE } wish_kind;

typedef struct wish {
    wish_kind kind;
    int platform, device;
    char suffix[16]; /* native: the instruction-set level; opencl:P:D: the kernel family; "" when not given */
} wish;

static bool parse_index(const char **text, int *index) {
    if (**text != ':') return false;
    char *end;
    const long value = strtol(*text + 1, &end, 10);
    if ((*text)[1] < '0' || (*text)[1] > '9' || value > 9999) return false;
    *index = (int)value;
    *text = end;
    return true;
}

/* The number of a device, or ":all". */
static bool parse_device(const char **text, int *index) {
    static const char all[] = ":all";
    const size_t length = sizeof all - 1;
    if (strncmp(*text, all, length) != 0 || ((*text)[length] && (*text)[length] != ':')) return parse_index(text, index);
    *index = CLATTN__ALL_DEVICES;
    *text += length;
    return true;
}

/* ":word", or nothing. */
static bool parse_suffix(const char *text, wish *out) {
    if (!*text) return true;
    if (*text != ':' || strlen(text) < 2 || strlen(text) > sizeof out->suffix) return false;
    strcpy(out->suffix, text + 1);
    return true;
}

static bool parse_wish(const char *text, wish *out) {
    static const struct {
        const char *name;
        wish_kind kind;
    } words[] = {{"auto", WISH_AUTO},     {"gpu", WISH_GPU},       {"cpu", WISH_CPU},
                 {"native", WISH_NATIVE}, {"opencl", WISH_OPENCL}, {"reference", WISH_REFERENCE}};
    *out = (wish){0};
    for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
        const size_t length = strlen(words[n].name);
        if (strncmp(text, words[n].name, length) != 0) continue;
        out->kind = words[n].kind;
        text += length;
        if (!*text) return true;
        if (out->kind == WISH_NATIVE) return parse_suffix(text, out);
        if (out->kind != WISH_OPENCL) return false;
        out->kind = WISH_OPENCL_EXACT;
        return parse_index(&text, &out->platform) && parse_device(&text, &out->device) && parse_suffix(text, out);
    }
    return false;
}

/* ---- opening -------------------------------------------------------------------------------------------------------- */

/* A device is in working order when a small attention can be planned on it. */
static clattn_status try_out(clattn_context *context) {
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = desc.k = desc.v = desc.out = clattn_tensor_bhld(CLATTN_F32, 1, 1, 64, 64);
    clattn_plan *plan;
    clattn_status status = clattn_plan_create_attention(context, &desc, NULL, &plan);
    if (status == CLATTN_OK) clattn_plan_destroy(plan);
    return status;
}

static double gpu_score(const clattn__device *device) {
    return (double)device->info.compute_units * (double)(device->info.clock_mhz ? device->info.clock_mhz : 1);
}

/* Open the best usable OpenCL device of a kind; what is passed over and why goes to context->why. */
static clattn_status open_best(clattn_context *context, clattn__device *devices, size_t count, clattn_device_kind kind) {
    for (;;) {
        clattn__device *best = NULL;
        for (clattn__device *d = devices; d < devices + count; d++)
            if (d->info.kind == kind && !d->info.problem[0] && (!best || gpu_score(d) > gpu_score(best))) best = d;
        if (!best) return CLATTN_ERROR_DEVICE;
        wish exact;
        if (!parse_wish(best->info.id, &exact)) return CLATTN_ERROR_INTERNAL;
        clattn_status status = clattn__opencl_open(context, exact.platform, exact.device, NULL);
        if (status == CLATTN_OK) status = try_out(context);
        if (status == CLATTN_OK) return CLATTN_OK;
        clattn__text_add(&context->why, "passed over %s (%s): %s\n", best->info.id, best->info.name,
                         clattn__last_error(context));
        clattn__context_close(context);
        strcpy(best->info.problem, "failed");
    }
}

static void list_problems(clattn_context *context, const clattn__device *devices, size_t count) {
    for (size_t n = 0; n < count; n++)
        if (devices[n].info.problem[0])
            clattn__text_add(&context->why, "passed over %s: %s\n", devices[n].info.id, devices[n].info.problem);
}

/* The same kernels serve both CPU paths; natively they need no launch and no build. */
static clattn_status open_cpu(clattn_context *context) {
    clattn_status status = clattn__native_open(context, NULL);
    if (status == CLATTN_OK)
        clattn__text_add(&context->why, "native: the CPU kernels compiled into the library, without launches and builds\n");
    return status;
}

static clattn_status open_searched(clattn_context *context, const wish *wish, clattn__device *devices, size_t count) {
    list_problems(context, devices, count);
    if (wish->kind == WISH_OPENCL) return open_best(context, devices, count, CLATTN_DEVICE_OPENCL_CPU);
    clattn_status status = open_best(context, devices, count, CLATTN_DEVICE_OPENCL_GPU);
    if (status == CLATTN_OK) {
        clattn__text_add(&context->why, "%s: the best GPU by compute units and clock\n", context->device.info.id);
    } else if (wish->kind == WISH_AUTO) {
        clattn__text_add(&context->why, "no usable GPU, so a CPU\n");
        status = open_cpu(context);
    }
    return status;
}

/* Replace the error of the open function, which becomes part of it, by one that lists what is there. */
static clattn_status no_such_device(clattn_context *context, const char *asked, const clattn__device *devices, size_t count) {
    clattn__text text = {0};
    /* The list first: what follows may be build logs, and a caller's buffer short. */
    clattn__text_add(&text, "device \"%s\" is not here; here are", asked);
    for (size_t n = 0; n < count; n++)
        if (!devices[n].info.problem[0]) clattn__text_add(&text, " %s", devices[n].info.id);
    if (*clattn__last_error(context)) clattn__text_add(&text, "\n%s", clattn__last_error(context));
    if (context->why.length) clattn__text_add(&text, "\n%.*s", (int)context->why.length - 1, context->why.data);
    clattn_status status = clattn__fail(context, CLATTN_ERROR_DEVICE, "%s", text.data ? text.data : asked);
    clattn__text_free(&text);
    return status;
}

/* Wishes that name a device, or a kind of which there is one. */
static clattn_status open_named(clattn_context *context, const wish *wish) {
    const char *suffix = wish->suffix[0] ? wish->suffix : NULL;
    switch (wish->kind) {
    case WISH_CPU: return open_cpu(context);
    case WISH_NATIVE: return clattn__native_open(context, suffix);
    case WISH_REFERENCE: return clattn__reference_open(context);
    case WISH_OPENCL_EXACT: return clattn__opencl_open(context, wish->platform, wish->device, suffix);
    case WISH_AUTO:
    case WISH_GPU:
    case WISH_OPENCL: break;
    }
    return CLATTN_ERROR_INTERNAL;
}

/* OpenCL's platforms are asked only in a search and after a failure: that takes tens of milliseconds. */
static clattn_status open_wish(clattn_context *context, const char *asked, const wish *wish) {
    const bool search = wish->kind == WISH_AUTO || wish->kind == WISH_GPU || wish->kind == WISH_OPENCL;
    clattn__device *devices = NULL;
    size_t count = 0;
    clattn_status status = search ? list_all(&devices, &count) : open_named(context, wish);
    if (search && status == CLATTN_OK) status = open_searched(context, wish, devices, count);
    if (status == CLATTN_ERROR_DEVICE && (devices || list_all(&devices, &count) == CLATTN_OK))
        status = no_such_device(context, asked, devices, count);
    free(devices);
    if (status == CLATTN_OK && !context->why.length) clattn__text_add(&context->why, "%s: asked for\n", context->device.info.id);
    if (status == CLATTN_OK) clattn__context_explain(context);
    return status;
}

/* An OpenMP runtime that cannot start a thread ends the process: a slip of the pen must not reach it. */
enum { LARGEST_TEAM = 4096 };

clattn_status clattn_context_create(const clattn_context_options *given, clattn_context **out) {
    if (!out) return CLATTN_ERROR_ARGUMENT;
    *out = NULL;
    clattn_context_options options;
    clattn_status status = clattn__context_options(given, &options);
    if (status != CLATTN_OK) return status;
    const bool set = options.device != NULL;
    const char *asked = set ? options.device : getenv("CLATTN_DEVICE");
    if (!asked || !*asked) asked = "auto";
    if (options.error && options.error_size) options.error[0] = 0;
    clattn_context *context = clattn__context_new(&options);
    if (!context) return clattn__context_give_up(NULL, &options, CLATTN_ERROR_MEMORY, "no memory for a context");
    wish wish;
    if (options.threads < 0 || options.work_groups < 0)
        status = clattn__fail(context, CLATTN_ERROR_ARGUMENT, "threads is %d and work_groups is %d; neither is negative",
                              options.threads, options.work_groups);
    else if (options.threads > LARGEST_TEAM)
        status = clattn__fail(context, CLATTN_ERROR_ARGUMENT, "threads is %d; it is at most %d", options.threads, LARGEST_TEAM);
    else if (!parse_wish(asked, &wish))
        status = clattn__fail(context, CLATTN_ERROR_ARGUMENT,
                              "%s \"%s\" is not understood; it is auto, gpu, cpu, native, opencl, opencl:P:D, opencl:P:all or reference",
                              set ? "device" : "$CLATTN_DEVICE", asked);
    else
        status = open_wish(context, asked, &wish);
    if (status != CLATTN_OK) return clattn__context_give_up(context, &options, status, NULL);
    *out = context;
    return CLATTN_OK;
}
