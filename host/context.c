/* Contexts: life, errors, log.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

clattn_context *clattn__context_new(const clattn_context_options *options) {
    clattn_context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->banned = calloc(clattn__row_count, sizeof *context->banned);
    if (!context->banned || pthread_mutex_init(&context->lock, NULL) != 0) {
        free(context->banned);
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
    memset(context->banned, 0, clattn__row_count);
}

void clattn_context_destroy(clattn_context *context) {
    if (!context) return;
    clattn__context_close(context);
    pthread_mutex_destroy(&context->lock);
    clattn__text_free(&context->why);
    free(context->banned);
    free(context->error);
    free(context);
}

clattn_status clattn__context_options(const clattn_context_options *given, clattn_context_options *options) {
    if (!given) {
        *options = (clattn_context_options)CLATTN_CONTEXT_OPTIONS_INIT;
        return CLATTN_OK;
    }
    clattn_status status = clattn__read_struct(NULL, "options", options, sizeof *options, given);
    if (status == CLATTN_ERROR_UNSUPPORTED && given->error && given->error_size) /* a larger struct: these fields are in it */
        clattn__text_copy("options: a field past those that this library knows is set", given->error, given->error_size);
    return status;
}

/* The error text that outlives a failed context is the caller's buffer. */
clattn_status clattn__context_give_up(clattn_context *context, const clattn_context_options *options, clattn_status status,
                                      const char *text) {
    if (options->error && options->error_size) clattn__text_copy(text, options->error, options->error_size);
    clattn_context_destroy(context);
    return status;
}

size_t clattn_context_error(clattn_context *context, char *text, size_t size) {
    if (!context) return clattn__text_copy(NULL, text, size);
    pthread_mutex_lock(&context->lock);
    size_t length = clattn__text_copy(context->error, text, size);
    pthread_mutex_unlock(&context->lock);
    return length;
}

size_t clattn_context_explain(clattn_context *context, char *text, size_t size) {
    return clattn__text_copy(context ? context->why.data : NULL, text, size);
}

clattn_status clattn_context_device(clattn_context *context, clattn_device_info *info) {
    if (!context || !info) return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "context and info must not be NULL");
    *info = context->device.info;
    return CLATTN_OK;
}

/* ---- errors and log ------------------------------------------------------------------------------------------------ */

clattn_status clattn__fail(clattn_context *context, clattn_status status, const char *format, ...) {
    if (!context) return status;
    clattn__text text = {0};
    va_list list;
    va_start(list, format);
    clattn__text_add_list(&text, format, list);
    va_end(list);
    if (context->log && text.data) context->log(context->log_user, CLATTN_LOG_ERROR, text.data);
    pthread_mutex_lock(&context->lock);
    free(context->error);
    context->error = text.data;
    pthread_mutex_unlock(&context->lock);
    return status;
}

void clattn__log(clattn_context *context, clattn_log_level level, const char *format, ...) {
    if (!context->log) return;
    clattn__text text = {0};
    va_list list;
    va_start(list, format);
    clattn__text_add_list(&text, format, list);
    va_end(list);
    if (text.data) context->log(context->log_user, level, text.data);
    clattn__text_free(&text);
}
