/* Contexts: their life, and what they say of themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "self_check.h"
#include "tuning.h"

static const struct {
    const char *name, *problem;
} switches[CLATTN__SWITCHES] = {
    [CLATTN__SELF_CHECK] = {"CLATTN_SELF_CHECK", "$CLATTN_SELF_CHECK is neither 0 nor 1"},
    [CLATTN__KERNEL_CACHE] = {"CLATTN_KERNEL_CACHE", "$CLATTN_KERNEL_CACHE is neither 0 nor 1"},
    [CLATTN__TUNING] = {"CLATTN_TUNING", "$CLATTN_TUNING is neither 0 nor 1"},
};

static const char *switch_value(clattn__switch s) {
    const char *value = getenv(switches[s].name);
    return value && *value ? value : "1";
}

bool clattn__is_on(clattn__switch s) {
    return strcmp(switch_value(s), "0") != 0;
}

/* What is wrong with the environment, or NULL. */
static const char *switch_problem(void) {
    for (int s = 0; s < CLATTN__SWITCHES; s++)
        if (clattn__is_on(s) && strcmp(switch_value(s), "1") != 0) return switches[s].problem;
    return NULL;
}

clattn_context *clattn__context_new(const clattn_context_options *options) {
    clattn_context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    if (pthread_mutex_init(&context->lock, NULL) != 0) {
        free(context);
        return NULL;
    }
    if (!clattn__cache_open(&context->cache, options->cache_dir)) {
        pthread_mutex_destroy(&context->lock);
        free(context);
        return NULL;
    }
    context->threads = options->threads;
    context->work_groups = options->work_groups;
    context->log = options->log;
    context->log_user = options->log_user;
    return context;
}

void clattn__context_close(clattn_context *context) {
    while (context->peer_count > 0) clattn_context_destroy(context->peers[--context->peer_count]);
    free(context->peers);
    context->peers = NULL;
    if (context->backend && context->backend->context_destroy) context->backend->context_destroy(context);
    context->backend = NULL;
    context->state = NULL;
    context->device = (clattn__device){0};
    clattn__row_bans_lift(context);
    clattn__self_checks_close(context);
    clattn__tuning_close(context);
}

void clattn_context_destroy(clattn_context *context) {
    if (!context) return;
    clattn__context_close(context);
    clattn__errors_free(context);
    pthread_mutex_destroy(&context->lock);
    clattn__cache_close(&context->cache);
    clattn__text_free(&context->why);
    free(context);
}

clattn_status clattn__context_options(const clattn_context_options *given, clattn_context_options *options) {
    const char *problem = switch_problem();
    *options = (clattn_context_options)CLATTN_CONTEXT_OPTIONS_INIT;
    if (!given) return problem ? CLATTN_ERROR_ARGUMENT : CLATTN_OK;
    clattn_status status = clattn__read_struct(NULL, "options", options, sizeof *options, given);
    if (status == CLATTN_ERROR_UNSUPPORTED && given->error && given->error_size) /* a larger struct: these fields are in it */
        clattn__text_copy("options: a field past those that this library knows is set", given->error, given->error_size);
    if (status == CLATTN_OK && problem) {
        if (options->error && options->error_size) clattn__text_copy(problem, options->error, options->error_size);
        status = CLATTN_ERROR_ARGUMENT;
    }
    return status;
}

/* The error text that outlives a failed context is the caller's buffer. */
clattn_status clattn__context_give_up(clattn_context *context, const clattn_context_options *options, clattn_status status,
                                      const char *text) {
    if (!text && context) text = clattn__last_error(context);
    if (!text || !*text) text = clattn_status_text(status);
    if (options->error && options->error_size) clattn__text_copy(text, options->error, options->error_size);
    clattn_context_destroy(context);
    return status;
}

static void explain_cache(clattn_context *context) {
    const clattn__file_cache *cache = &context->cache;
    if (!context->backend->keep) return;
    const int obstacle = clattn__cache_obstacle(cache);
    if (!cache->kernels)
        clattn__text_add(&context->why, "compiled kernels are not kept: $%s is 0\n", switches[CLATTN__KERNEL_CACHE].name);
    else if (!cache->directory)
        clattn__text_add(&context->why, "compiled kernels are not kept: %s\n", cache->why_not);
    else if (obstacle)
        clattn__text_add(&context->why, "compiled kernels are not kept: %s: %s\n", cache->directory, strerror(obstacle));
    else
        clattn__text_add(&context->why, "compiled kernels are kept in %s\n", cache->directory);
}

void clattn__context_explain(clattn_context *context) {
    for (size_t n = 0; n < context->peer_count; n++)
        clattn__text_add(&context->why, "beside it, for plans with split_devices: %s (%s)\n", context->peers[n]->device.info.id,
                         context->peers[n]->device.info.name);
    explain_cache(context);
}

size_t clattn_context_explain(clattn_context *context, char *text, size_t size) {
    return clattn__text_copy(context ? context->why.data : NULL, text, size);
}

clattn_status clattn_context_device(clattn_context *context, clattn_device_info *info) {
    if (!context) return CLATTN_ERROR_ARGUMENT;
    return clattn__write_struct(context, "info", info, &context->device.info, sizeof context->device.info);
}
