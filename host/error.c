/* What a context says: the last error of each thread, and the log.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "internal.h"

/* ---- errors -------------------------------------------------------------------------------------------------------- */

/* Threads that fail at once must not read one another's texts. A thread that ended leaves its entry to the next of its id. */
typedef struct clattn__error {
    struct clattn__error *next;
    pthread_t thread;
    char *text;
    bool unlogged; /* a refusal is this thread's answer now, no error */
} error_entry;

void clattn__errors_free(clattn_context *context) {
    while (context->errors) {
        error_entry *entry = context->errors;
        context->errors = entry->next;
        free(entry->text);
        free(entry);
    }
}

/* Under context->lock; NULL when the calling thread has none. */
static error_entry *own_error(clattn_context *context) {
    error_entry *entry = context->errors;
    while (entry && !pthread_equal(entry->thread, pthread_self())) entry = entry->next;
    return entry;
}

/* Under context->lock; NULL without memory. */
static error_entry *make_error(clattn_context *context) {
    error_entry *entry = own_error(context);
    if (!entry && (entry = calloc(1, sizeof *entry))) {
        entry->thread = pthread_self();
        entry->next = context->errors;
        context->errors = entry;
    }
    return entry;
}

static void set_error(clattn_context *context, char *text) {
    pthread_mutex_lock(&context->lock);
    error_entry *entry = make_error(context);
    if (entry) {
        free(entry->text);
        entry->text = text;
    } else {
        free(text);
    }
    pthread_mutex_unlock(&context->lock);
}

static bool is_logged(clattn_context *context) {
    pthread_mutex_lock(&context->lock);
    const error_entry *entry = own_error(context);
    const bool logged = !entry || !entry->unlogged;
    pthread_mutex_unlock(&context->lock);
    return logged;
}

void clattn__errors_unlogged(clattn_context *context, bool unlogged) {
    pthread_mutex_lock(&context->lock);
    error_entry *entry = make_error(context);
    if (entry) entry->unlogged = unlogged;
    pthread_mutex_unlock(&context->lock);
}

const char *clattn__last_error(clattn_context *context) {
    pthread_mutex_lock(&context->lock);
    const error_entry *entry = own_error(context);
    const char *text = entry && entry->text ? entry->text : "";
    pthread_mutex_unlock(&context->lock);
    return text;
}

size_t clattn_context_error(clattn_context *context, char *text, size_t size) {
    return clattn__text_copy(context ? clattn__last_error(context) : NULL, text, size);
}

clattn_status clattn__fail(clattn_context *context, clattn_status status, const char *format, ...) {
    if (!context) return status;
    clattn__text text = {0};
    va_list list;
    va_start(list, format);
    clattn__text_add_list(&text, format, list);
    va_end(list);
    if (context->log && text.data && is_logged(context)) context->log(context->log_user, CLATTN_LOG_ERROR, text.data);
    set_error(context, text.data);
    return status;
}

/* ---- log ----------------------------------------------------------------------------------------------------------- */

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
