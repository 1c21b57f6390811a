/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* "a/b/" + name, from "a/b/c". NULL: out of memory. */
static char *beside(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    size_t directory = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    char *joined = malloc(directory + strlen(name) + 1);
    if (joined == NULL) return NULL;
    memcpy(joined, path, directory);
    strcpy(joined + directory, name);
    return joined;
}

/* A name beside the target that nothing has yet; NULL with errno set. */
static char *free_name(const char *target, const char *ending, FILE **stream) {
    for (int attempt = 0; attempt < 1000; attempt++) {
        char name[64];
        snprintf(name, sizeof name, ".clattn-%ld-%d.%s", (long)getpid(), attempt, ending);
        char *path = beside(target, name);
        if (path == NULL) return NULL;
        int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0) {
            *stream = fdopen(descriptor, "wb");
            if (*stream != NULL) return path;
            close(descriptor);
            unlink(path);
        }
        int error = errno;
        free(path);
        errno = error;
        if (descriptor >= 0 || error != EEXIST) return NULL;
    }
    return NULL;
}

/* The real path of the directory of a path, and its last part, joined: one text for each file, there or not. */
static char *canonical(const char *path) {
    char *real = realpath(path, NULL);
    if (real != NULL || errno != ENOENT) return real;
    char *copy = strdup(path);
    if (copy == NULL) return NULL;
    char *directory = realpath(dirname(copy), NULL);
    free(copy);
    copy = strdup(path);
    char *joined = NULL;
    if (directory != NULL && copy != NULL) {
        const char *name = basename(copy);
        joined = malloc(strlen(directory) + strlen(name) + 2);
        if (joined != NULL) sprintf(joined, "%s/%s", directory, name);
    }
    free(directory);
    free(copy);
    return joined;
}

bool output_same_file(const char *a, const char *b) {
    struct stat status_a, status_b;
    if (strcmp(a, b) == 0) return true;
    if (stat(a, &status_a) == 0 && stat(b, &status_b) == 0)
        return status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
    char *canonical_a = canonical(a), *canonical_b = canonical(b);
    bool same = canonical_a != NULL && canonical_b != NULL && strcmp(canonical_a, canonical_b) == 0;
    free(canonical_a);
    free(canonical_b);
    return same;
}

/* ---- the set ----------------------------------------------------------------------------------------------------- */

/* Say why, undo everything. errno explains it unless it is 0. */
static bool fail(output_set *set, const char *format, ...) {
    int error = errno;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(set->error, sizeof set->error, format, args);
    va_end(args);
    if (error != 0 && length >= 0 && (size_t)length < sizeof set->error)
        snprintf(set->error + length, sizeof set->error - (size_t)length, ": %s", strerror(error));
    output_discard(set);
    return false;
}

static void close_stream(output_file *file) {
    if (file->stream != NULL && file->stream != stdout) fclose(file->stream);
    file->stream = NULL;
}

static void release(output_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        output_file *file = &set->files[i];
        free(file->path);
        free(file->target);
        free(file->temporary);
        free(file->backup);
        *file = (output_file){0};
    }
    set->count = 0;
}

void output_discard(output_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        close_stream(&set->files[i]);
        if (set->files[i].temporary != NULL) unlink(set->files[i].temporary);
    }
    release(set);
}

/* Decide where to write: straight to the path, or to a temporary beside the file that it leads to. */
static bool open_target(output_file *file) {
    struct stat status;
    if (strcmp(file->path, "-") == 0) {
        file->stream = stdout;
        return true;
    }
    bool exists = stat(file->path, &status) == 0;
    if (!exists && (errno != ENOENT || file->path[0] == '\0')) return false;
    if (exists && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (exists && !S_ISREG(status.st_mode)) {
        file->stream = fopen(file->path, "wb");
        return file->stream != NULL;
    }
    if (exists && access(file->path, W_OK) != 0) return false; /* a rename would replace even a write-protected file */
    file->target = exists ? realpath(file->path, NULL) : strdup(file->path);
    if (file->target == NULL) return false;
    file->temporary = free_name(file->target, "tmp", &file->stream);
    return file->temporary != NULL;
}

FILE *output_open(output_set *set, const char *path) {
    errno = 0;
    if (set->count == OUTPUT_MAX_FILES) {
        fail(set, "more than %d files at once", OUTPUT_MAX_FILES);
        return NULL;
    }
    output_file *file = &set->files[set->count++];
    *file = (output_file){.path = strdup(path)};
    if (file->path != NULL && open_target(file)) return file->stream;
    fail(set, "cannot write %s", path);
    return NULL;
}

static bool flush(output_file *file) {
    bool written = fflush(file->stream) == 0 && !ferror(file->stream);
    if (!written && errno == 0 && fputc('\0', file->stream) != EOF) fflush(file->stream); /* an earlier write failed: why? */
    if (written && file->temporary != NULL) written = fsync(fileno(file->stream)) == 0;
    if (file->stream != stdout) {
        int error = errno;
        if (fclose(file->stream) != 0)
            written = false;
        else
            errno = error;
    }
    file->stream = NULL;
    return written;
}

/* Keep what the target is under a second name, so that a later failure can bring it back. Where the file system has no hard
 * links there is no backup; the rename itself is still all or nothing. */
static void keep_backup(output_file *file) {
    FILE *placeholder = NULL;
    char *name = free_name(file->target, "old", &placeholder);
    if (name == NULL) return;
    fclose(placeholder);
    unlink(name);
    if (link(file->target, name) == 0)
        file->backup = name;
    else
        free(name);
}

static bool rename_all(output_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        output_file *file = &set->files[i];
        if (file->temporary == NULL) continue;
        if (set->count > 1) keep_backup(file);
        if (rename(file->temporary, file->target) == 0) {
            free(file->temporary);
            file->temporary = NULL;
            continue;
        }
        int error = errno;
        if (file->backup != NULL) unlink(file->backup);
        for (size_t j = 0; j < i; j++) {
            const output_file *done = &set->files[j];
            if (done->backup != NULL)
                rename(done->backup, done->target);
            else if (done->target != NULL)
                unlink(done->target);
        }
        errno = error;
        return fail(set, "cannot write %s", file->path);
    }
    return true;
}

bool output_commit(output_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        errno = 0;
        if (!flush(&set->files[i])) return fail(set, "cannot write %s", set->files[i].path);
    }
    if (!rename_all(set)) return false;
    for (size_t i = 0; i < set->count; i++)
        if (set->files[i].backup != NULL) unlink(set->files[i].backup);
    release(set);
    return true;
}
