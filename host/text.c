/* Growing text for plans and errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static bool text_grow(clattn__text *text, size_t wanted) {
    if (wanted <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 128;
    while (capacity < wanted) capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (!data) return false;
    text->data = data;
    text->capacity = capacity;
    return true;
}

void clattn__text_add_list(clattn__text *text, const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    if (length < 0 || !text_grow(text, text->length + (size_t)length + 1)) {
        text->failed = true;
    } else {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void clattn__text_add(clattn__text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    clattn__text_add_list(text, format, list);
    va_end(list);
}

void clattn__text_free(clattn__text *text) {
    free(text->data);
    *text = (clattn__text){0};
}

/* Relative directories are none: XDG's rule. */
static const char *absolute_setting(const char *name) {
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

bool clattn__text_add_xdg(clattn__text *text, const char *variable, const char *below) {
    const char *xdg = absolute_setting(variable), *home = absolute_setting("HOME");
    if (xdg)
        clattn__text_add(text, "%s/clattn", xdg);
    else if (home)
        clattn__text_add(text, "%s/%s/clattn", home, below);
    return xdg || home;
}

uint64_t clattn__hash(uint64_t before, const char *bytes, size_t size) {
    for (size_t n = 0; n < size; n++) before = (before ^ (unsigned char)bytes[n]) * UINT64_C(0x100000001b3);
    return before;
}

size_t clattn__text_copy(const char *text, char *out, size_t size) {
    size_t length = text ? strlen(text) : 0;
    if (out && size) {
        size_t n = length < size - 1 ? length : size - 1;
        if (n) memcpy(out, text, n);
        out[n] = 0;
    }
    return length;
}
