/* The cache: entries come back whole or not at all, whatever happened to their files, and compiled kernels with them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Started as "test_cache attend DEVICE", it is a process that attends once, for the tests of several; as "test_cache start", it
 * measures how long such a process takes to its first result.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

#ifdef CLATTN_TESTS_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

static char folder[] = "/tmp/clattn-cache-XXXXXX"; /* what $CLATTN_CACHE_DIR names */

/* ---- the folder ----------------------------------------------------------------------------------------------------- */

static clattn__file_cache open_cache(const char *directory) {
    clattn__file_cache cache;
    ck_assert(clattn__cache_open(&cache, directory));
    return cache;
}

static bool clear_folder(void) {
    clattn__file_cache cache;
    const bool clear = clattn__cache_open(&cache, folder) && clattn__cache_clear(&cache) == 0;
    clattn__cache_close(&cache);
    return clear;
}

/* Every test begins with nothing there. */
static void empty_folder(void) {
    ck_assert(clear_folder());
}

static size_t count_files(void) {
    DIR *directory = opendir(folder);
    size_t count = 0;
    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* The only file whose name starts so. */
static void find_file(const char *start, char *path, size_t size) {
    DIR *directory = opendir(folder);
    int found = 0;
    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) {
        if (strncmp(entry->d_name, start, strlen(start)) != 0) continue;
        snprintf(path, size, "%s/%s", folder, entry->d_name);
        found++;
    }
    closedir(directory);
    ck_assert_int_eq(found, 1);
}

/* NULL where there is none. */
static char *load_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    char *bytes = NULL;
    if (file && fstat(fileno(file), &status) == 0) {
        *size = (size_t)status.st_size;
        bytes = test_alloc(*size + 1, 1);
        if (fread(bytes, 1, *size, file) != *size) exit(EXIT_FAILURE);
    }
    if (file) fclose(file);
    return bytes;
}

/* As another program might: in place, not by renaming. */
static bool save_file(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    const bool written = file && fwrite(bytes, 1, size, file) == size;
    return file && fclose(file) == 0 && written;
}

static char *read_file(const char *path, size_t *size) {
    char *bytes = load_file(path, size);
    ck_assert_msg(bytes != NULL, "there is no %s", path);
    return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size) {
    ck_assert_msg(save_file(path, bytes, size), "%s cannot be written", path);
}

/* ---- entries -------------------------------------------------------------------------------------------------------- */

static const clattn__cache_kind kind = CLATTN__CACHE_KERNEL;
static const char key[] = "a device | a kernel", data[] = "\0data\n\xff of some length";

static void put(const clattn__file_cache *cache, const char *of) {
    ck_assert_int_eq(clattn__cache_write(cache, kind, of, data, sizeof data), 0);
}

/* Whether an entry is there, which then is as it was put. */
static bool get(const clattn__file_cache *cache, const char *of) {
    size_t length = 0;
    char *bytes = clattn__cache_read(cache, kind, of, &length);
    if (bytes) {
        ck_assert_uint_eq(length, sizeof data);
        ck_assert_int_eq(memcmp(bytes, data, length), 0);
        ck_assert_int_eq(bytes[length], 0);
    }
    free(bytes);
    return bytes != NULL;
}

START_TEST(an_entry_is_its_keys) {
    clattn__file_cache cache = open_cache(folder);
    empty_folder();
    ck_assert(!get(&cache, key));
    put(&cache, key);
    ck_assert(get(&cache, key));
    ck_assert(!get(&cache, "another device | a kernel"));
    size_t length;
    ck_assert_ptr_null(clattn__cache_read(&cache, CLATTN__CACHE_SELF_CHECK, key, &length));

    /* Two keys of one hash: the file of the other is none of this one's. */
    char path[512], other[512];
    find_file("kernel-", path, sizeof path);
    snprintf(other, sizeof other, "%s", path);
    ck_assert_int_eq(clattn__cache_clear(&cache), 0);
    put(&cache, "another device | a kernel");
    find_file("kernel-", path, sizeof path);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert(!get(&cache, key));

    ck_assert_int_eq(clattn__cache_write(&cache, kind, key, NULL, 0), 0);
    char *nothing = clattn__cache_read(&cache, kind, key, &length);
    ck_assert_ptr_nonnull(nothing);
    ck_assert_uint_eq(length, 0);
    free(nothing);
    clattn__cache_close(&cache);
}
END_TEST

/* Cut off anywhere, longer, or with any bit turned over. */
START_TEST(damage_is_noticed) {
    clattn__file_cache cache = open_cache(folder);
    char path[512];
    size_t size;
    empty_folder();
    put(&cache, key);
    find_file("kernel-", path, sizeof path);
    char *whole = read_file(path, &size);
    for (size_t length = 0; length < size; length++) {
        write_file(path, whole, length);
        ck_assert_msg(!get(&cache, key), "%zu of %zu bytes were believed", length, size);
    }
    write_file(path, whole, size + 1); /* and a 0 */
    ck_assert(!get(&cache, key));
    for (size_t bit = 0; bit < 8 * size; bit++) {
        whole[bit / 8] ^= (char)(1 << bit % 8);
        write_file(path, whole, size);
        ck_assert_msg(!get(&cache, key), "bit %zu was turned over and believed", bit);
        whole[bit / 8] ^= (char)(1 << bit % 8);
    }
    write_file(path, whole, size);
    ck_assert(get(&cache, key));
    free(whole);
    clattn__cache_close(&cache);
}
END_TEST

/* What others may write could be anybody's; what is no file is not waited for. */
START_TEST(files_of_others) {
    clattn__file_cache cache = open_cache(folder);
    char path[512];
    empty_folder();
    put(&cache, key);
    find_file("kernel-", path, sizeof path);
    ck_assert_int_eq(chmod(path, 0622), 0);
    ck_assert(!get(&cache, key));
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert(get(&cache, key));
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(path, 65534, 65534), 0);
        ck_assert(!get(&cache, key));
    } else {
        printf("another user's file: not run, it takes root to make one\n");
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!get(&cache, key));
    put(&cache, key);
    ck_assert(get(&cache, key));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert(!get(&cache, key));
    ck_assert_int_eq(clattn__cache_write(&cache, kind, key, data, sizeof data), EISDIR);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_uint_eq(count_files(), 0);
    clattn__cache_close(&cache);
}
END_TEST

/* ---- the directory -------------------------------------------------------------------------------------------------- */

START_TEST(where_files_go) {
    char xdg[64], home[64];
    snprintf(xdg, sizeof xdg, "%s/clattn", folder);
    snprintf(home, sizeof home, "%s/.cache/clattn", folder);
    const struct {
        const char *option, *own, *xdg, *home, *expected;
    } cases[] = {
        {"/a", "/b", "/c", "/d", "/a"},         {"", "/b", "/c", "/d", NULL},   {NULL, "/b", "/c", "/d", "/b"},
        {NULL, "b", "/c", "/d", "b"},           {NULL, "", "/c", "/d", NULL},   {NULL, NULL, folder, "/d", xdg},
        {NULL, NULL, "relative", folder, home}, {NULL, NULL, "", folder, home}, {NULL, NULL, NULL, folder, home},
        {NULL, NULL, NULL, "relative", NULL},   {NULL, NULL, NULL, NULL, NULL},
    };
    const char *const names[] = {"CLATTN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    char *before[COUNT(names)];
    for (size_t n = 0; n < COUNT(names); n++) {
        const char *value = getenv(names[n]);
        before[n] = value ? strdup(value) : NULL;
    }
    for (size_t n = 0; n < COUNT(cases); n++) {
        const char *const values[] = {cases[n].own, cases[n].xdg, cases[n].home};
        for (size_t v = 0; v < COUNT(names); v++) values[v] ? setenv(names[v], values[v], 1) : unsetenv(names[v]);
        clattn__file_cache cache = open_cache(cases[n].option);
        if (cases[n].expected)
            ck_assert_str_eq(cache.directory, cases[n].expected);
        else
            ck_assert_msg(!cache.directory && cache.why_not, "case %zu: %s", n, cache.directory);
        clattn__cache_close(&cache);
    }
    for (size_t n = 0; n < COUNT(names); n++) {
        before[n] ? setenv(names[n], before[n], 1) : unsetenv(names[n]);
        free(before[n]);
    }

    /* Directories are made when there is something to keep, and for this user alone. */
    struct stat status;
    empty_folder();
    clattn__file_cache cache = open_cache(home);
    ck_assert_int_eq(clattn__cache_obstacle(&cache), 0);
    ck_assert_int_ne(stat(home, &status), 0);
    put(&cache, key);
    ck_assert(get(&cache, key));
    ck_assert_int_eq(stat(home, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0700);
    ck_assert_int_eq(clattn__cache_clear(&cache), 0);
    clattn__cache_close(&cache);
    ck_assert_int_eq(rmdir(home), 0);
    home[strlen(folder) + strlen("/.cache")] = 0;
    ck_assert_int_eq(rmdir(home), 0);
}
END_TEST

START_TEST(nothing_is_kept) {
    clattn__file_cache cache = open_cache("");
    clattn__cache_total totals[CLATTN__CACHE_KINDS];
    put(&cache, key);
    ck_assert(!get(&cache, key));
    ck_assert_int_eq(clattn__cache_obstacle(&cache), ENOENT);
    ck_assert_int_eq(clattn__cache_count(&cache, totals), 0);
    ck_assert_uint_eq(totals[kind].files, 0);
    ck_assert_int_eq(clattn__cache_clear(&cache), 0);
    clattn__cache_close(&cache);

    cache = open_cache("/dev/null/nowhere");
    ck_assert_int_eq(clattn__cache_obstacle(&cache), ENOTDIR);
    ck_assert_int_eq(clattn__cache_write(&cache, kind, key, data, sizeof data), ENOTDIR);
    ck_assert(!get(&cache, key));
    ck_assert_int_eq(clattn__cache_count(&cache, totals), ENOTDIR);
    clattn__cache_close(&cache);
}
END_TEST

/* Run in a child that is not root: permissions do not stop root. */
static int as_nobody(int (*act)(const clattn__file_cache *), const clattn__file_cache *cache) {
    int status;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) _exit(geteuid() != 0 || setuid(65534) == 0 ? act(cache) : EXIT_FAILURE);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int obstacle(const clattn__file_cache *cache) {
    return clattn__cache_obstacle(cache);
}

static int write_entry(const clattn__file_cache *cache) {
    return clattn__cache_write(cache, kind, "new", data, sizeof data);
}

static int read_entry(const clattn__file_cache *cache) {
    size_t length = 0;
    char *bytes = clattn__cache_read(cache, kind, key, &length);
    const bool whole = bytes && length == sizeof data && memcmp(bytes, data, length) == 0;
    free(bytes);
    return whole ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* What an administrator put there serves. */
START_TEST(a_directory_that_is_read_only) {
    clattn__file_cache cache = open_cache(folder);
    char path[512];
    empty_folder();
    put(&cache, key);
    find_file("kernel-", path, sizeof path);
    ck_assert_int_eq(chmod(path, 0444), 0);
    ck_assert_int_eq(chmod(folder, 0555), 0);
    ck_assert_int_eq(as_nobody(obstacle, &cache), EACCES);
    ck_assert_int_eq(as_nobody(write_entry, &cache), EACCES);
    ck_assert_int_eq(as_nobody(read_entry, &cache), EXIT_SUCCESS);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert_uint_eq(count_files(), 1);
    clattn__cache_close(&cache);
}
END_TEST

/* A limit to the size of files stands for a disk that is full: writing begins and fails. */
START_TEST(a_full_disk) {
    clattn__file_cache cache = open_cache(folder);
    struct rlimit before, limit;
    char *large = test_alloc(1 << 16, 1);
    empty_folder();
    put(&cache, key);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1 << 10;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const int failure = clattn__cache_write(&cache, kind, key, large, 1 << 16);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(failure, EFBIG);
    ck_assert(get(&cache, key)); /* as it was */
    ck_assert_uint_eq(count_files(), 1);
    free(large);
    clattn__cache_close(&cache);
}
END_TEST

/* ---- size ----------------------------------------------------------------------------------------------------------- */

/* The file of an entry. */
static void find_entry(const char *of, char *path, size_t size) {
    DIR *directory = opendir(folder);
    bool found = false;
    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; !found && (entry = readdir(directory));) {
        size_t bytes, length;
        if (strncmp(entry->d_name, "kernel-", strlen("kernel-")) != 0) continue;
        snprintf(path, size, "%s/%s", folder, entry->d_name);
        char *file = read_file(path, &bytes);
        found = clattn__cache_entry(file, bytes, of, &length) != NULL;
        free(file);
    }
    closedir(directory);
    ck_assert_msg(found, "there is no entry of %s", of);
}

/* As if it had last been used so many hours ago. */
static void age(const char *of, int hours) {
    char path[512];
    struct timespec times[2];
    find_entry(of, path, sizeof path);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 3600 * hours;
    times[1] = times[0];
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(the_longest_unused_go) {
    clattn__file_cache cache = open_cache(folder);
    clattn__cache_total totals[CLATTN__CACHE_KINDS];
    const char *const keys[] = {"entry 0", "entry 1", "entry 2", "entry 3"};
    empty_folder();
    for (size_t n = 0; n < 3; n++) {
        put(&cache, keys[n]);
        age(keys[n], 10 - (int)n);
    }
    ck_assert_int_eq(clattn__cache_count(&cache, totals), 0);
    ck_assert_uint_eq(totals[kind].files, 3);
    ck_assert_uint_eq(totals[CLATTN__CACHE_SELF_CHECK].files, 0);
    cache.most_bytes = totals[kind].bytes; /* room for three */
    ck_assert(get(&cache, keys[0]));       /* used now */
    put(&cache, keys[3]);
    ck_assert(get(&cache, keys[0]) && !get(&cache, keys[1]) && get(&cache, keys[2]) && get(&cache, keys[3]));

    /* What no writer finished goes like the rest. */
    char path[512], rest[1024];
    age(keys[2], 5);
    snprintf(path, sizeof path, "%s/kernel-0123456789abcdef.AbCdEf", folder);
    memset(rest, 'x', sizeof rest);
    write_file(path, rest, 60);
    put(&cache, keys[1]);
    ck_assert(!get(&cache, keys[2]) && get(&cache, keys[1]));

    /* An entry that would drive out all others is not kept. */
    ck_assert_int_eq(clattn__cache_write(&cache, kind, keys[2], rest, cache.most_bytes / 2 + 1), EFBIG);
    ck_assert(get(&cache, keys[1]));
    clattn__cache_close(&cache);
}
END_TEST

/* Only what is ours goes. */
START_TEST(clearing) {
    clattn__file_cache cache = open_cache(folder);
    static const char *const others[] = {"kernel-", "kernel-0123", "kernel-0123456789abcdef.txt", "notes", "self-check-x"};
    char path[512];
    empty_folder();
    put(&cache, key);
    ck_assert_int_eq(clattn__cache_write(&cache, CLATTN__CACHE_SELF_CHECK, key, data, sizeof data), 0);
    for (size_t n = 0; n < COUNT(others); n++) {
        snprintf(path, sizeof path, "%s/%s", folder, others[n]);
        write_file(path, "mine", 4);
    }
    ck_assert_uint_eq(count_files(), COUNT(others) + 2);
    ck_assert_int_eq(clattn__cache_clear(&cache), 0);
    ck_assert_uint_eq(count_files(), COUNT(others));
    for (size_t n = 0; n < COUNT(others); n++) {
        snprintf(path, sizeof path, "%s/%s", folder, others[n]);
        ck_assert_int_eq(unlink(path), 0);
    }
    clattn__cache_close(&cache);
}
END_TEST

/* ---- processes ------------------------------------------------------------------------------------------------------ */

/* They replace an entry while others read it: whoever reads sees one version whole. */
START_TEST(processes_share_an_entry) {
    enum { WRITERS = 4, TIMES = 200, LENGTH = 20000 };
    clattn__file_cache cache = open_cache(folder);
    char *texts[WRITERS];
    empty_folder();
    for (int n = 0; n < WRITERS; n++) {
        texts[n] = test_alloc(LENGTH, 1);
        memset(texts[n], 'a' + n, LENGTH);
    }
    ck_assert_int_eq(clattn__cache_write(&cache, kind, key, texts[0], LENGTH), 0);
    for (int n = 0; n < WRITERS; n++) {
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child) continue;
        bool written = true;
        for (int time = 0; time < TIMES; time++) written &= clattn__cache_write(&cache, kind, key, texts[n], LENGTH) == 0;
        _exit(written ? 0 : 1);
    }
    for (int time = 0; time < TIMES; time++) {
        size_t length = 0;
        char *text = clattn__cache_read(&cache, kind, key, &length);
        ck_assert_ptr_nonnull(text);
        ck_assert_uint_eq(length, LENGTH);
        ck_assert_int_eq(memcmp(text, texts[text[0] - 'a'], LENGTH), 0);
        free(text);
    }
    for (int n = 0; n < WRITERS; n++) {
        int status;
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
        free(texts[n]);
    }
    ck_assert_uint_eq(count_files(), 1); /* nothing else is left there */
    clattn__cache_close(&cache);
}
END_TEST

/* ---- kernels -------------------------------------------------------------------------------------------------------- */

static struct { int built, loaded, refused; } seen; /* in the log */

static void watch(void *user, clattn_log_level level, const char *message) {
    (void)user, (void)level;
    seen.built += strncmp(message, "built ", 6) == 0;
    seen.loaded += strncmp(message, "loaded ", 7) == 0;
    seen.refused += strstr(message, "refuses") != NULL;
}

static clattn_context *open_device(const char *device, const char *cache_dir) {
    char why[512] = "";
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context = NULL;
    options.device = device;
    options.log = watch;
    options.cache_dir = cache_dir;
    options.error = why;
    options.error_size = sizeof why;
    if (clattn_context_create(&options, &context) != CLATTN_OK) printf("%s: %s\n", device, why);
    return context;
}

/* Whether it computes. */
static bool attend(clattn_context *context) {
    float out[6] = {0};
    clattn_plan *plan;
    if (small_attention(context, NULL, &plan, out) != CLATTN_OK) return false;
    clattn_plan_destroy(plan);
    return small_attention_is_right(out);
}

static const char *opencl; /* the first OpenCL device; NULL: there is none */

/* In a new context; what it built and loaded is then in `seen`. */
static void attend_anew(const char *cache_dir) {
    memset(&seen, 0, sizeof seen);
    clattn_context *context = open_device(opencl, cache_dir);
    ck_assert_ptr_nonnull(context);
    ck_assert_msg(attend(context), "%s", error_text(context));
    clattn_context_destroy(context);
}

static bool no_device(void) {
    if (!opencl) printf("not run: no OpenCL device\n");
    return !opencl;
}

/* Native rows are the library's own code, which another build changes without a word to any file: what the self-check finds of them
 * ends with the process. */
START_TEST(native_rows_are_judged_anew) {
    empty_folder();
    clattn_context *context = open_device("native", folder);
    ck_assert_ptr_nonnull(context);
    ck_assert_msg(attend(context), "%s", error_text(context));
    clattn_context_destroy(context);
    ck_assert_uint_eq(count_files(), 0);
}
END_TEST

START_TEST(kernels_are_kept) {
    if (no_device()) return;
    empty_folder();
    attend_anew(NULL);
    ck_assert_int_eq(seen.built, 1);
    ck_assert_int_eq(seen.loaded, 0);
    attend_anew(NULL);
    ck_assert_int_eq(seen.built, 0);
    ck_assert_int_eq(seen.loaded, 1);
}
END_TEST

/* A kernel whose file holds these bytes is built anew, and kept again. */
static void assert_rebuilt(const char *path, const char *bytes, size_t size, const char *what) {
    write_file(path, bytes, size);
    attend_anew(NULL);
    ck_assert_msg(seen.built == 1 && seen.loaded + seen.refused == 0, "%s was believed", what);
    attend_anew(NULL);
    ck_assert_msg(seen.loaded == 1, "%s was not replaced", what);
}

START_TEST(spoiled_kernels_are_built_anew) {
    char path[512];
    size_t size;
    if (no_device()) return;
    empty_folder();
    attend_anew(NULL);
    find_file("kernel-", path, sizeof path);
    char *whole = read_file(path, &size);
    rng r = rng_make(0);
    assert_rebuilt(path, whole, 0, "an empty file");
    assert_rebuilt(path, whole, size - 1, "one that lacks a byte");
    assert_rebuilt(path, whole, (size_t)rng_below(&r, (int64_t)size), "one that is cut off");
    for (int n = 0; n < 3; n++) {
        const int64_t bit = rng_below(&r, 8 * (int64_t)size);
        whole[bit / 8] ^= (char)(1 << bit % 8);
        assert_rebuilt(path, whole, size, "one with a bit turned over");
        whole[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(whole);
}
END_TEST

/* Whole entries: of another device under this one's name, and of bytes that no driver made. */
START_TEST(foreign_kernels_are_built_anew) {
    char path[512], other[512];
    size_t size;
    if (no_device()) return;
    empty_folder();
    attend_anew(NULL);
    find_file("kernel-", path, sizeof path);
    char *whole = read_file(path, &size); /* a header, the key, the binary */
    char *line = strchr(whole, '\n') + 1, *end = strchr(line, '\n');
    *end = 0;
    clattn__file_cache cache = open_cache(folder);
    const char *const binary = end + 1;
    const size_t length = size - (size_t)(binary - whole);

    char *foreign = strdup(line);
    foreign[strlen("clattn ")] ^= 1; /* of another version */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(clattn__cache_write(&cache, kind, foreign, binary, length), 0);
    find_file("kernel-", other, sizeof other);
    ck_assert_int_eq(rename(other, path), 0);
    attend_anew(NULL);
    ck_assert_int_eq(seen.built, 1);
    ck_assert_int_eq(seen.loaded + seen.refused, 0);

    ck_assert_int_eq(clattn__cache_write(&cache, kind, line, "no program", 10), 0);
    attend_anew(NULL);
    ck_assert_int_eq(seen.built, 1);
    ck_assert_int_eq(seen.refused, 1);
    attend_anew(NULL);
    ck_assert_int_eq(seen.loaded, 1);
    free(foreign);
    free(whole);
    clattn__cache_close(&cache);
}
END_TEST

static void assert_explains(const char *cache_dir, const char *words) {
    char text[2048];
    clattn_context *context = open_device(opencl, cache_dir);
    ck_assert_ptr_nonnull(context);
    clattn_context_explain(context, text, sizeof text);
    ck_assert_msg(strstr(text, words) != NULL, "\"%s\" is not in: %s", words, text);
    clattn_context_destroy(context);
}

START_TEST(without_a_cache) {
    if (no_device()) return;
    empty_folder();
    assert_explains(NULL, "kept in /tmp/clattn-cache-");
    const char *const nowhere[] = {"", "/dev/null/nowhere"}, *const words[] = {"cache_dir is empty", "Not a directory"};
    for (size_t n = 0; n < COUNT(nowhere); n++) {
        assert_explains(nowhere[n], words[n]);
        for (int time = 0; time < 2; time++) {
            attend_anew(nowhere[n]);
            ck_assert_int_eq(seen.built, 1);
        }
    }
    ck_assert_uint_eq(count_files(), 0);

    /* Kernels alone are left out; what is known of them is kept. */
    setenv("CLATTN_KERNEL_CACHE", "0", 1);
    assert_explains(NULL, "$CLATTN_KERNEL_CACHE is 0");
    attend_anew(NULL);
    ck_assert_int_eq(seen.built, 1);
    char path[512];
    find_file("self-check-", path, sizeof path);
    ck_assert_uint_eq(count_files(), 1);
    setenv("CLATTN_KERNEL_CACHE", "no", 1);
    ck_assert_ptr_null(open_device(opencl, NULL));
    unsetenv("CLATTN_KERNEL_CACHE");
}
END_TEST

/* ---- processes with kernels ------------------------------------------------------------------------------------------ */

/* Start this program anew. */
static pid_t start(const char *const arguments[], int output) {
    const pid_t child = fork();
    if (child != 0) return child;
    if (output >= 0) dup2(output, STDOUT_FILENO);
    execv("/proc/self/exe", (char *const *)arguments);
    _exit(127);
}

START_TEST(processes_build_at_once) {
    enum { PROCESSES = 3 };
    if (no_device()) return;
    empty_folder();
    const char *const arguments[] = {"test_cache", "attend", opencl, NULL};
    for (int n = 0; n < PROCESSES; n++) ck_assert_int_gt(start(arguments, -1), 0);
    for (int n = 0; n < PROCESSES; n++) {
        int status;
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(count_files(), 2); /* a kernel, and what is known */
    attend_anew(NULL);
    ck_assert_int_eq(seen.loaded, 1);
}
END_TEST

/* The process of "attend": a byte says when it has its result. */
static int attend_once(const char *device) {
    clattn_context *context = open_device(device, NULL);
    const bool right = context && attend(context);
    if (right && write(STDOUT_FILENO, "!", 1) != 1) return EXIT_FAILURE;
    clattn_context_destroy(context);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the start of a process ------------------------------------------------------------------------------------------ */

enum { NO_DEVICE = 77 /* ctest counts it as skipped */ };

#ifdef CLATTN_TESTS_OPENCL
static void must(cl_int code, const char *call) {
    if (code == CL_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", call, code);
    exit(EXIT_FAILURE);
}

static void save_binary(cl_program program, const char *path) {
    size_t size = 0;
    must(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL), "clGetProgramInfo");
    unsigned char *bytes = test_alloc(size, 1);
    must(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL), "clGetProgramInfo");
    if (!save_file(path, (const char *)bytes, size)) exit(EXIT_FAILURE);
    free(bytes);
}

static cl_program load_program(cl_context context, cl_device_id device, const char *path) {
    cl_int code, status;
    size_t size = 0;
    char *bytes = load_file(path, &size);
    if (!bytes) exit(EXIT_FAILURE);
    cl_program program = clCreateProgramWithBinary(context, 1, &device, &size,
                                                   (const unsigned char *[]){(unsigned char *)bytes}, &status, &code);
    must(code, "clCreateProgramWithBinary");
    must(status, "clCreateProgramWithBinary");
    free(bytes);
    return program;
}

/* What no program can do without, and one launch of the least kernel; its binary is kept in a file, as a cache would. */
static int bare_once(const char *path) {
    static const char *source = "kernel void one(global int *x) { *x = 1; }";
    const bool first = access(path, R_OK) != 0;
    cl_platform_id platform;
    cl_device_id device;
    cl_int code, value = 0;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) return NO_DEVICE;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return NO_DEVICE;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    must(code, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    must(code, "clCreateCommandQueue");
    cl_program program =
        first ? clCreateProgramWithSource(context, 1, &source, NULL, &code) : load_program(context, device, path);
    must(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "one", &code);
    must(code, "clCreateKernel");
    cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof value, NULL, &code);
    must(code, "clCreateBuffer");
    must(clSetKernelArg(kernel, 0, sizeof x, &x), "clSetKernelArg");
    must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &(size_t){1}, &(size_t){1}, 0, NULL, NULL), "clEnqueueNDRangeKernel");
    must(clEnqueueReadBuffer(queue, x, CL_TRUE, 0, sizeof value, &value, 0, NULL, NULL), "clEnqueueReadBuffer");
    if (value != 1 || write(STDOUT_FILENO, "!", 1) != 1) return EXIT_FAILURE;
    if (first) save_binary(program, path);
    clReleaseMemObject(x);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return EXIT_SUCCESS;
}

/* Milliseconds from a process's start to its result; *code is what it exits with. */
static double time_of(const char *mode, const char *argument, int *code) {
    const char *const arguments[] = {"test_cache", mode, argument, NULL};
    int ends[2], status = 0;
    char byte;
    struct timespec before, after;
    if (pipe(ends) != 0) return -1;
    clock_gettime(CLOCK_MONOTONIC, &before);
    const pid_t child = start(arguments, ends[1]);
    close(ends[1]);
    const bool come = child > 0 && read(ends[0], &byte, 1) == 1;
    clock_gettime(CLOCK_MONOTONIC, &after);
    close(ends[0]);
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) *code = WEXITSTATUS(status);
    return come ? 1e3 * (double)(after.tv_sec - before.tv_sec) + 1e-6 * (double)(after.tv_nsec - before.tv_nsec) : -1;
}

/* With what each left for its next start, a process of ours has its first result at most so much later than a bare one. The
 * least of many rounds counts, in turns: other processes can only add to both. */
static int compare_starts(void) {
    enum { ROUNDS = 40 };
    const double most_ms = 30;
    char binary[64];
    int code = EXIT_FAILURE;
    double bare = 0, ours = 0, first[2];
    snprintf(binary, sizeof binary, "%s/bare", folder);
    first[0] = time_of("bare", binary, &code);
    if (code) return code;
    first[1] = time_of("attend", "opencl:0:0", &code);
    if (code) return code;
    int round = 0;
    while (round < ROUNDS && (round < 5 || ours - bare > most_ms)) {
        const double b = time_of("bare", binary, &code), o = code ? -1 : time_of("attend", "opencl:0:0", &code);
        if (code || b < 0 || o < 0) return EXIT_FAILURE;
        bare = round == 0 || b < bare ? b : bare;
        ours = round == 0 || o < ours ? o : ours;
        round++;
    }
    printf("to the first result: bare %.1f ms, ours %.1f ms, %.1f more (at most %.0f); the least of %d; the first time %.0f "
           "and %.0f\n",
           bare, ours, ours - bare, most_ms, round, first[0], first[1]);
    if (unlink(binary) != 0) return EXIT_FAILURE;
    return ours - bare <= most_ms ? EXIT_SUCCESS : EXIT_FAILURE;
}
#else
static int bare_once(const char *path) {
    (void)path;
    return NO_DEVICE;
}

static int compare_starts(void) {
    return NO_DEVICE;
}
#endif

/* ---- the suite ------------------------------------------------------------------------------------------------------ */

static int test_all(void) {
    Suite *suite = suite_create("cache");
    TCase *tests = tcase_create("cache");
    clattn_context *context = open_device("opencl:0:0", NULL);
    if (context) opencl = "opencl:0:0";
    clattn_context_destroy(context);
    tcase_add_test(tests, an_entry_is_its_keys);
    tcase_add_test(tests, damage_is_noticed);
    tcase_add_test(tests, files_of_others);
    tcase_add_test(tests, where_files_go);
    tcase_add_test(tests, nothing_is_kept);
    tcase_add_test(tests, a_directory_that_is_read_only);
    tcase_add_test(tests, a_full_disk);
    tcase_add_test(tests, the_longest_unused_go);
    tcase_add_test(tests, clearing);
    tcase_add_test(tests, processes_share_an_entry);
    tcase_add_test(tests, native_rows_are_judged_anew);
    tcase_add_test(tests, kernels_are_kept);
    tcase_add_test(tests, spoiled_kernels_are_built_anew);
    tcase_add_test(tests, foreign_kernels_are_built_anew);
    tcase_add_test(tests, without_a_cache);
    tcase_add_test(tests, processes_build_at_once);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

int main(int argc, char **argv) {
    unsetenv("CLATTN_KERNEL_CACHE");
    unsetenv("CLATTN_SELF_CHECK");
    if (argc == 3 && strcmp(argv[1], "attend") == 0) return attend_once(argv[2]);
    if (argc == 3 && strcmp(argv[1], "bare") == 0) return bare_once(argv[2]);
    if (!mkdtemp(folder) || setenv("CLATTN_CACHE_DIR", folder, 1) != 0) {
        perror(folder);
        return EXIT_FAILURE;
    }
    const int status = argc == 2 && strcmp(argv[1], "start") == 0 ? compare_starts() : test_all();
    if (clear_folder() && rmdir(folder) == 0) return status;
    perror(folder);
    return EXIT_FAILURE;
}
