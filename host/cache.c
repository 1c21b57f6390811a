/* Files in the user's cache directory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The path of a file; empty where there is no place for it. The directories of relative variables are none: XDG's rule. */
static clattn__text path_of(const char *name) {
    clattn__text path = {0};
    const char *own = setting("CLATTN_CACHE_DIR"), *xdg = setting("XDG_CACHE_HOME"), *home = setting("HOME");
    if (own)
        clattn__text_add(&path, "%s/%s", own, name);
    else if (xdg && xdg[0] == '/')
        clattn__text_add(&path, "%s/clattn/%s", xdg, name);
    else if (home && home[0] == '/')
        clattn__text_add(&path, "%s/.cache/clattn/%s", home, name);
    if (path.failed) clattn__text_free(&path);
    return path;
}

char *clattn__cache_read(const char *name, size_t most) {
    clattn__text path = path_of(name);
    FILE *file = path.data ? fopen(path.data, "rb") : NULL;
    clattn__text_free(&path);
    if (!file) return NULL;
    char *text = malloc(most + 2);
    const size_t length = text ? fread(text, 1, most + 1, file) : 0;
    const bool whole = text && length <= most && !ferror(file);
    fclose(file);
    if (!whole) {
        free(text);
        return NULL;
    }
    text[length] = 0;
    return text;
}

/* Every directory on the way to a file, for this user alone, as XDG asks. */
static bool make_directories(char *path) {
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        const bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = '/';
        if (!made) return false;
    }
    return true;
}

/* A file beside the one that it will replace. */
static bool write_new(int file, const char *text) {
    const size_t length = strlen(text);
    size_t written = 0;
    while (written < length) {
        const ssize_t count = write(file, text + written, length - written);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        written += (size_t)count;
    }
    return close(file) == 0 && written == length;
}

bool clattn__cache_write(const char *name, const char *text) {
    clattn__text path = path_of(name), beside = {0};
    bool written = false;
    if (path.data) clattn__text_add(&beside, "%s.XXXXXX", path.data);
    if (path.data && !beside.failed && make_directories(path.data)) {
        const int file = mkstemp(beside.data);
        written = file >= 0 && write_new(file, text) && rename(beside.data, path.data) == 0;
        if (file >= 0 && !written) unlink(beside.data);
    }
    clattn__text_free(&beside);
    clattn__text_free(&path);
    return written;
}
