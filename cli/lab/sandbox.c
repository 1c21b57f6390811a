/* Landlock by its system calls, which older C libraries and headers do not know.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The numbers and structs are the kernel's ABI, Documentation/userspace-api/landlock.rst; what a header may lack is written out
 * here.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same on all architectures but alpha. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1 };

/* Rights to files, in the order of their bits. */
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    ALL_OF_1 = (1 << 13) - 1, /* and removing and making files of each kind */
    REFER = 1 << 13,          /* from ABI 2: rename from folder to folder. PoCL's cache does */
    TRUNCATE = 1 << 14,       /* from ABI 3 */
    IOCTL_DEV = 1 << 15,      /* from ABI 5 */
    OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV,
};
enum { NET_TCP = 3 /* bind, connect; from ABI 4 */, SCOPES = 3 /* abstract sockets, signals; from ABI 6 */ };

struct ruleset_attr {
    uint64_t handled_access_fs, handled_access_net, scoped;
};
struct path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

/* Patterns of paths. What drivers and their compilers read, */
static const char *const readable[] = {"/usr",  "/lib", "/lib32", "/lib64",      "/bin",         "/sbin",
                                       "/opt",  "/nix", "/gnu",   "/etc/OpenCL", "/etc/ld.so.*", "/etc/alternatives",
                                       "/proc", "/sys"};
/* and the devices that they need: those of graphics, and no disk. */
static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/dri",
                                      "/dev/kfd",  "/dev/dxg",  "/dev/nvidia*", "/dev/mali*",  "/dev/accel"};
static const char *const folders_in_variables[] = {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "LD_LIBRARY_PATH"};

/* ---- Landlock ------------------------------------------------------------------------------------------------------ */

static int landlock_version(void) {
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
}

static uint64_t rights_of(int version) {
    uint64_t rights = ALL_OF_1 | REFER;
    if (version >= 3) rights |= TRUNCATE;
    if (version >= 5) rights |= IOCTL_DEV;
    return rights;
}

/* What is not there needs no rule. */
static bool allow(int ruleset, const char *path, uint64_t access) {
    struct stat status;
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT || errno == EACCES || errno == ENOTDIR;
    if (fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode)) access &= OF_FILES;
    const struct path_beneath_attr rule = {access, fd};
    const bool right = syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) == 0;
    close(fd);
    return right;
}

static bool allow_pattern(int ruleset, const char *pattern, uint64_t access) {
    glob_t paths;
    bool right = true;
    const int code = glob(pattern, 0, NULL, &paths);
    if (code == GLOB_NOMATCH) return true;
    if (code != 0) return false;
    for (size_t i = 0; i < paths.gl_pathc && right; i++) right = allow(ruleset, paths.gl_pathv[i], access);
    globfree(&paths);
    return right;
}

/* A list of paths, "a:b:c". A loader's own files may lie there. */
static bool allow_list(int ruleset, const char *list, uint64_t access) {
    char path[1024];
    bool right = true;
    while (list != NULL && *list != 0 && right) {
        const size_t length = strcspn(list, ":");
        snprintf(path, sizeof path, "%.*s", (int)length, list);
        if (path[0] == '/') right = allow(ruleset, path, access);
        list += length + (list[length] == ':');
    }
    return right;
}

static bool allow_all(int ruleset, uint64_t rights, const char *scratch) {
    const uint64_t reading = (EXECUTE | READ_FILE | READ_DIR) & rights;
    const uint64_t using = (READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV) & rights;
    bool right = allow(ruleset, scratch, rights);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) right = right && allow_pattern(ruleset, devices[i], using);
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++)
        right = right && allow_pattern(ruleset, readable[i], reading);
    for (size_t i = 0; i < sizeof folders_in_variables / sizeof *folders_in_variables; i++)
        right = right && allow_list(ruleset, getenv(folders_in_variables[i]), reading);
    return right;
}

/* A ruleset in force; what it cannot forbid here, the text says. */
static bool enter_landlock(const char *scratch, char *text, size_t size) {
    const int version = landlock_version();
    if (version < 1) {
        snprintf(text, size, "this system's kernel has no Landlock, so a student's may read and write files as you may");
        return false;
    }
    if (version < 2) {
        snprintf(text, size, "Landlock 1 forbids the renames that drivers need, so it is not used");
        return false;
    }
    const uint64_t rights = rights_of(version);
    const struct ruleset_attr attr = {rights, version >= 4 ? NET_TCP : 0, version >= 6 ? SCOPES : 0};
    const size_t known = version >= 6 ? sizeof attr : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    const int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, known, 0);
    bool right = ruleset >= 0 && allow_all(ruleset, rights, scratch);
    right = right && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    if (!right) snprintf(text, size, "Landlock refuses: %s", strerror(errno));
    if (ruleset >= 0) close(ruleset);
    if (right && version < 3) {
        snprintf(text, size, "Landlock %d here does not keep files from being cut short", version);
        return false;
    }
    return right;
}

/* ---- limits -------------------------------------------------------------------------------------------------------- */

static bool set_limits(void) {
    static const struct {
        int resource;
        rlim_t limit;
    } limits[] = {{RLIMIT_CPU, 300}, {RLIMIT_FSIZE, 64 << 20}, {RLIMIT_CORE, 0}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].resource, &limit) != 0) return false;
        if (limit.rlim_max < limits[i].limit) continue; /* it is lower already */
        limit.rlim_cur = limit.rlim_max = limits[i].limit;
        if (setrlimit(limits[i].resource, &limit) != 0) return false;
    }
    return true;
}

bool lab_sandbox_enter(const char *scratch, char *text, size_t size) {
    text[0] = 0;
    const bool limited = set_limits(), unprivileged = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    if (!limited || !unprivileged) snprintf(text, size, "limits could not be set: %s", strerror(errno));
    return enter_landlock(scratch, text, size) && limited && unprivileged;
}
