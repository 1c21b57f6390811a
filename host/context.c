/* Contexts: their life, and what they say of themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "internal.h"
#include "self_check.h"
#include "tuning.h"

clattn_context *clattn__context_new(const clattn_context_options *options) {
    clattn_context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    if (pthread_mutex_init(&context->lock, NULL) != 0) {
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
    clattn__text_free(&context->why);
    free(context);
}

clattn_status clattn__context_options(const clattn_context_options *given, clattn_context_options *options) {
    const char *problem = clattn__self_check_problem();
    if (!problem) problem = clattn__tuning_problem();
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

size_t clattn_context_explain(clattn_context *context, char *text, size_t size) {
    return clattn__text_copy(context ? context->why.data : NULL, text, size);
}

clattn_status clattn_context_device(clattn_context *context, clattn_device_info *info) {
    if (!context) return CLATTN_ERROR_ARGUMENT;
    return clattn__write_struct(context, "info", info, &context->device.info, sizeof context->device.info);
}
