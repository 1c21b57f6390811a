/* Files in the user's cache directory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "list.h"

/* Some 400 programs of PoCL, whose binaries of 200 to 400 KiB are the largest that we know. */
enum { MOST_BYTES = 128 << 20 };

static const char *const kinds[CLATTN__CACHE_KINDS] = {
    [CLATTN__CACHE_KERNEL] = "kernel",
    [CLATTN__CACHE_SELF_CHECK] = "self-check",
};

/* ---- where ---------------------------------------------------------------------------------------------------------- */

bool clattn__cache_open(clattn__file_cache *cache, const char *directory) {
    clattn__text path = {0};
    const char *own = directory ? directory : getenv("CLATTN_CACHE_DIR");
    *cache = (clattn__file_cache){.most_bytes = MOST_BYTES, .kernels = clattn__is_on(CLATTN__KERNEL_CACHE)};
    if (own && !*own)
        cache->why_not = directory ? "cache_dir is empty" : "$CLATTN_CACHE_DIR is empty";
    else if (own)
        clattn__text_add(&path, "%s", own);
    else if (!clattn__text_add_xdg(&path, "XDG_CACHE_HOME", ".cache"))
        cache->why_not = "none of $CLATTN_CACHE_DIR, $XDG_CACHE_HOME and $HOME names a directory";
    cache->directory = path.data;
    return !path.failed;
}

void clattn__cache_close(clattn__file_cache *cache) {
    free(cache->directory);
    *cache = (clattn__file_cache){0};
}

/* What a directory that is not there yet lets be made, its nearest ancestor says. */
int clattn__cache_obstacle(const clattn__file_cache *cache) {
    const char *directory = cache->directory;
    if (!directory) return ENOENT;
    for (size_t length = strlen(directory);;) {
        clattn__text path = {0};
        clattn__text_add(&path, "%s%.*s/.", directory[0] == '/' ? "" : "./", (int)length, directory);
        const int obstacle = path.failed ? ENOMEM : access(path.data, W_OK | X_OK) == 0 ? 0 : errno;
        clattn__text_free(&path);
        if (obstacle != ENOENT || length == 0) return obstacle;
        while (length > 0 && directory[length - 1] != '/') length--;
        while (length > 0 && directory[length - 1] == '/') length--;
    }
}

int clattn__make_directories(char *path) {
    for (char *at = path + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST) return errno;
    }
    return 0;
}

/* ---- entries --------------------------------------------------------------------------------------------------------
 * "clattn 1 " and a checksum of all behind this line; the key; the data. */

enum { HEADER = 9 + 16 + 1 };

static void write_header(const char *rest, size_t size, char header[HEADER + 1]) {
    snprintf(header, HEADER + 1, "clattn 1 %016llx\n", (unsigned long long)clattn__hash(CLATTN__HASH_START, rest, size));
}

const char *clattn__cache_entry(const char *bytes, size_t size, const char *key, size_t *length) {
    const size_t key_length = strlen(key), start = HEADER + key_length + 1;
    char header[HEADER + 1];
    if (size < start) return NULL;
    write_header(bytes + HEADER, size - HEADER, header);
    if (memcmp(bytes, header, HEADER) != 0 || memcmp(bytes + HEADER, key, key_length) != 0 || bytes[start - 1] != '\n')
        return NULL;
    *length = size - start;
    return bytes + start;
}

/* A whole file, for the caller to free. */
static char *make_entry(const char *key, const void *data, size_t length, size_t *size) {
    const size_t key_length = strlen(key), start = HEADER + key_length + 1;
    char header[HEADER + 1];
    char *bytes = malloc(start + length + 1);
    if (!bytes) return NULL;
    memcpy(bytes + HEADER, key, key_length);
    bytes[start - 1] = '\n';
    if (length) memcpy(bytes + start, data, length);
    *size = start + length;
    write_header(bytes + HEADER, *size - HEADER, header);
    memcpy(bytes, header, HEADER);
    return bytes;
}

static clattn__text path_of(const clattn__file_cache *cache, clattn__cache_kind kind, const char *key) {
    clattn__text path = {0};
    const unsigned long long hash = clattn__hash(CLATTN__HASH_START, key, strlen(key));
    if (cache->directory) clattn__text_add(&path, "%s/%s-%016llx", cache->directory, kinds[kind], hash);
    if (path.failed) clattn__text_free(&path);
    return path;
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

/* Whether a file may be believed. */
static bool is_own_file(const clattn__file_cache *cache, const struct stat *status) {
    const bool own = status->st_uid == geteuid() || status->st_uid == 0;
    return own && S_ISREG(status->st_mode) && !(status->st_mode & (S_IWGRP | S_IWOTH)) && status->st_size >= 0 &&
           (uintmax_t)status->st_size <= cache->most_bytes;
}

/* The bytes of an open file, for the caller to free, with room for one more. */
static char *read_bytes(int file, size_t size) {
    char *bytes = malloc(size + 1);
    size_t got = 0;
    while (bytes && got < size) {
        const ssize_t count = read(file, bytes + got, size - got);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        got += (size_t)count;
    }
    if (got == size) return bytes;
    free(bytes);
    return NULL;
}

/* Its time of change says when a file was last used, to the hour: a cache that is read is not written all the time. */
static void mark_used(int file, const struct stat *status) {
    enum { HOUR = 3600 };
    if (time(NULL) - status->st_mtime > HOUR) (void)futimens(file, NULL); /* a cache that is read-only loses nothing */
}

char *clattn__cache_read(const clattn__file_cache *cache, clattn__cache_kind kind, const char *key, size_t *length) {
    clattn__text path = path_of(cache, kind, key);
    struct stat status;
    char *bytes = NULL;
    const int file = path.data ? open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1; /* a pipe would wait for its writer */
    clattn__text_free(&path);
    if (file < 0) return NULL;
    if (fstat(file, &status) == 0 && is_own_file(cache, &status)) bytes = read_bytes(file, (size_t)status.st_size);
    const char *data = bytes ? clattn__cache_entry(bytes, (size_t)status.st_size, key, length) : NULL;
    if (data) {
        mark_used(file, &status);
        memmove(bytes, data, *length);
        bytes[*length] = 0;
    } else {
        free(bytes);
        bytes = NULL;
    }
    close(file);
    return bytes;
}

/* ---- the files ------------------------------------------------------------------------------------------------------ */

enum { HASH_DIGITS = 16, TEMPORARY = 1 + 6 /* ".XXXXXX" */, MOST_NAME = 64 };

typedef struct kept_file {
    char name[MOST_NAME];
    clattn__cache_kind kind;
    struct timespec used;
    size_t bytes;
} kept_file;

typedef struct file_list {
    kept_file *files;
    size_t count, capacity;
} file_list;

/* Whether we named a file so, also one that was never finished. */
static bool is_kept_name(const char *name, clattn__cache_kind kind) {
    const size_t prefix = strlen(kinds[kind]);
    if (strncmp(name, kinds[kind], prefix) != 0 || name[prefix] != '-') return false;
    const char *hash = name + prefix + 1;
    if (strspn(hash, "0123456789abcdef") != HASH_DIGITS) return false;
    const char *rest = hash + HASH_DIGITS;
    return !*rest || (*rest == '.' && strlen(rest) == TEMPORARY);
}

static int list_add(file_list *list, const kept_file *file) {
    kept_file *files = clattn__list_room(list->files, list->count, &list->capacity, sizeof *files);
    if (!files) return ENOMEM;
    list->files = files;
    list->files[list->count++] = *file;
    return 0;
}

/* A file that goes while it is looked at is not there. */
static int list_file(int directory, const char *name, file_list *list) {
    struct stat status;
    for (int kind = 0; kind < CLATTN__CACHE_KINDS; kind++) {
        if (!is_kept_name(name, kind)) continue;
        if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
        if (!S_ISREG(status.st_mode)) return 0;
        kept_file file = {.kind = (clattn__cache_kind)kind, .used = status.st_mtim, .bytes = (size_t)status.st_size};
        memcpy(file.name, name, strlen(name) + 1); /* is_kept_name bounds it */
        return list_add(list, &file);
    }
    return 0;
}

/* On success *directory is open, for the caller to close; NULL where there is none, and then the list is empty. */
static int list_files(const clattn__file_cache *cache, DIR **directory, file_list *list) {
    *list = (file_list){0};
    *directory = cache->directory ? opendir(cache->directory) : NULL;
    if (!*directory) return !cache->directory || errno == ENOENT ? 0 : errno;
    int failure = 0;
    for (const struct dirent *entry; !failure && (errno = 0, entry = readdir(*directory));)
        failure = list_file(dirfd(*directory), entry->d_name, list);
    if (!failure) failure = errno;
    if (!failure) return 0;
    closedir(*directory);
    *directory = NULL;
    free(list->files);
    *list = (file_list){0};
    return failure;
}

static int by_use(const void *a, const void *b) {
    const struct timespec *x = &((const kept_file *)a)->used, *y = &((const kept_file *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* Remove what was not used for the longest time until the rest is no larger than allowed. 0, or the errno of the first that
 * stays; one that another process removed is gone, too. */
static int shrink(const clattn__file_cache *cache, size_t most) {
    DIR *directory;
    file_list list;
    size_t total = 0;
    int failure = list_files(cache, &directory, &list);
    if (failure || !directory) return failure;
    for (size_t n = 0; n < list.count; n++) total += list.files[n].bytes;
    if (list.count) qsort(list.files, list.count, sizeof *list.files, by_use);
    for (size_t n = 0; n < list.count && (total > most || most == 0); n++) {
        if (unlinkat(dirfd(directory), list.files[n].name, 0) != 0 && errno != ENOENT && !failure) failure = errno;
        total -= list.files[n].bytes;
    }
    closedir(directory);
    free(list.files);
    return failure;
}

int clattn__cache_count(const clattn__file_cache *cache, clattn__cache_total totals[CLATTN__CACHE_KINDS]) {
    DIR *directory;
    file_list list;
    memset(totals, 0, CLATTN__CACHE_KINDS * sizeof *totals);
    const int failure = list_files(cache, &directory, &list);
    if (failure || !directory) return failure;
    for (size_t n = 0; n < list.count; n++) {
        totals[list.files[n].kind].files++;
        totals[list.files[n].kind].bytes += list.files[n].bytes;
    }
    closedir(directory);
    free(list.files);
    return 0;
}

int clattn__cache_clear(const clattn__file_cache *cache) {
    return shrink(cache, 0);
}

/* ---- writing -------------------------------------------------------------------------------------------------------- */

static int write_bytes(int file, const char *bytes, size_t size) {
    size_t written = 0;
    int failure = 0;
    while (written < size && !failure) {
        const ssize_t count = write(file, bytes + written, size - written);
        if (count >= 0)
            written += (size_t)count;
        else if (errno != EINTR)
            failure = errno;
    }
    return close(file) != 0 && !failure ? errno : failure;
}

/* A file beside the one that it then replaces. */
static int replace_file(char *path, const char *bytes, size_t size) {
    clattn__text beside = {0};
    clattn__text_add(&beside, "%s.XXXXXX", path);
    int failure = beside.failed ? ENOMEM : clattn__make_directories(path);
    const int file = failure ? -1 : mkostemp(beside.data, O_CLOEXEC);
    if (!failure && file < 0) failure = errno;
    if (!failure) failure = write_bytes(file, bytes, size);
    if (!failure && rename(beside.data, path) != 0) failure = errno;
    if (failure && file >= 0) unlink(beside.data);
    clattn__text_free(&beside);
    return failure;
}

int clattn__cache_write(const clattn__file_cache *cache, clattn__cache_kind kind, const char *key, const void *data,
                        size_t length) {
    if (!cache->directory) return 0;
    if (length > cache->most_bytes / 2) return EFBIG; /* all others would go for it */
    size_t size = 0;
    clattn__text path = path_of(cache, kind, key);
    char *bytes = make_entry(key, data, length, &size);
    int failure = path.data && bytes ? replace_file(path.data, bytes, size) : ENOMEM;
    free(bytes);
    clattn__text_free(&path);
    if (!failure) (void)shrink(cache, cache->most_bytes); /* what does not go now goes at another time */
    return failure;
}
