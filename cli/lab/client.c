/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/clock.h"

extern char **environ;

enum { MAX_VARIABLES = 64, TERM_SECONDS = 2, SLICE_MS = 100 };

static volatile sig_atomic_t stopped;

static void on_stop(int number) {
    (void)number;
    stopped = 1;
}

void lab_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool lab_is_stopped(void) {
    return stopped != 0;
}

const char *lab_oclgrind(void) {
    static const char *const places[] = {
        "/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/local/lib/oclgrind/liboclgrind-rt-icd.so",
        "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so", "/usr/lib64/oclgrind/liboclgrind-rt-icd.so"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], R_OK) == 0) return places[i];
    return NULL;
}

/* ---- the environment ----------------------------------------------------------------------------------------------- */

/* A worker sees what drivers and sanitizers need, and nothing else of the user's. */
static bool is_passed_on(const char *variable) {
    static const char *const beginnings[] = {
        "PATH=",  "LANG", "LC_",  "LD_LIBRARY_PATH=", "OCL_ICD_",       "OPENCL_",       "POCL_", "CUDA_",
        "NVIDIA", "ROC",  "HSA_", "ASAN_OPTIONS=",    "UBSAN_OPTIONS=", "LSAN_OPTIONS=", "OMP_"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0) return true;
    return false;
}

typedef struct environment {
    char *variables[MAX_VARIABLES + 1];
    char own[8][512];
    size_t count, own_count;
} environment;

static void set_own(environment *env, const char *name, const char *value, const char *suffix) {
    const size_t length = strlen(name);
    for (size_t i = 0; i < env->count; i++) /* in place of the user's */
        if (strncmp(env->variables[i], name, length) == 0 && env->variables[i][length] == '=')
            env->variables[i--] = env->variables[--env->count];
    snprintf(env->own[env->own_count], sizeof env->own[0], "%s=%s%s", name, value, suffix);
    env->variables[env->count++] = env->own[env->own_count++];
}

static void make_environment(environment *env, const lab_client *client, lab_kind_of_worker kind) {
    for (char **variable = environ; *variable != NULL && env->count < MAX_VARIABLES - 8; variable++)
        if (is_passed_on(*variable)) env->variables[env->count++] = *variable;
    set_own(env, "HOME", client->scratch, "");
    set_own(env, "TMPDIR", client->scratch, "");
    set_own(env, "POCL_CACHE_DIR", client->scratch, "/pocl");
    if (kind == LAB_SIMULATED) {
        set_own(env, "OCL_ICD_VENDORS", lab_oclgrind(), "");
        set_own(env, "OCLGRIND_DATA_RACES", "1", "");
        set_own(env, "OCLGRIND_UNINITIALIZED", "1", "");
        set_own(env, "OCLGRIND_MAX_ERRORS", "20000", ""); /* the first kind must not crowd out the others */
        set_own(env, "OCLGRIND_LOG", client->scratch, "/oclgrind.log");
    }
    env->variables[env->count] = NULL;
}

/* ---- start --------------------------------------------------------------------------------------------------------- */

static bool make_scratch(lab_client *client) {
    const char *folder = getenv("TMPDIR");
    snprintf(client->scratch, sizeof client->scratch, "%s/clattn-lab-XXXXXX",
             folder != NULL && *folder == '/' ? folder : "/tmp");
    if (mkdtemp(client->scratch) == NULL) client->scratch[0] = 0;
    snprintf(client->printed, sizeof client->printed, "%s/printed", client->scratch);
    return client->scratch[0] != 0;
}

/* Sealed in its size: a worker that shortened it would end the parent by a signal. */
static bool make_memory(lab_client *client) {
    client->memory_fd = memfd_create("clattn-lab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (client->memory_fd < 0 || ftruncate(client->memory_fd, (off_t)LAB_MEMORY_BYTES) != 0) return false;
    if (fcntl(client->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return false;
    void *memory = mmap(NULL, LAB_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, client->memory_fd, 0);
    if (memory != MAP_FAILED) client->memory = memory;
    return memory != MAP_FAILED;
}

/* In the child: these three descriptors and no other, no terminal, what it prints in a file, then the program again. */
static void become_worker(const lab_client *client, int requests, int replies, lab_kind_of_worker kind, char **variables) {
    char *const arguments[] = {"clattn", "lab", "--worker", kind == LAB_OURS_WORKER ? "ours" : "student", NULL};
    const int highest = 64, from[] = {requests, replies, client->memory_fd};
    const int nowhere = open("/dev/null", O_RDWR);
    const int printed = kind == LAB_STUDENT ? open(client->printed, O_CREAT | O_WRONLY | O_APPEND, 0600) : nowhere;
    int high[3];
    signal(SIGINT, SIG_IGN); /* the parent ends its workers */
    for (int i = 0; i < 3; i++) high[i] = fcntl(from[i], F_DUPFD, highest);
    for (int i = 0; i < 3; i++) dup2(i == STDOUT_FILENO && printed >= 0 ? printed : nowhere, i);
    for (int i = 0; i < 3; i++) dup2(high[i], LAB_REQUESTS + i);
    for (int fd = LAB_MEMORY + 1; fd < highest + 16; fd++) close(fd);
    execve("/proc/self/exe", arguments, variables);
    _exit(127);
}

static bool spawn(lab_client *client, lab_kind_of_worker kind) {
    int requests[2] = {-1, -1}, replies[2] = {-1, -1};
    environment env = {{0}};
    if (kind != LAB_OURS_WORKER) make_environment(&env, client, kind);
    bool right = pipe2(requests, O_CLOEXEC) == 0 && pipe2(replies, O_CLOEXEC) == 0;
    fflush(NULL);
    if (right) client->pid = fork();
    if (right && client->pid == 0)
        become_worker(client, requests[0], replies[1], kind, kind == LAB_OURS_WORKER ? environ : env.variables);
    right = right && client->pid > 0;
    if (requests[0] >= 0) close(requests[0]);
    if (replies[1] >= 0) close(replies[1]);
    client->to = requests[1];
    client->from = replies[0];
    if (!right) client->pid = 0;
    return right;
}

bool lab_client_start(lab_client *client, lab_kind_of_worker kind, char *why, size_t why_size) {
    *client = (lab_client){.to = -1, .from = -1, .memory_fd = -1};
    const bool right = make_memory(client) && (kind == LAB_OURS_WORKER || make_scratch(client)) && spawn(client, kind);
    if (right) return true;
    snprintf(why, why_size, "cannot start a worker: %s", strerror(errno));
    lab_client_stop(client);
    return false;
}

/* ---- end ----------------------------------------------------------------------------------------------------------- */

/* Whether the worker ends within so many seconds. */
static bool wait_for_end(lab_client *client, double seconds) {
    const double until = bench_now_ms() + seconds * 1e3;
    while (client->pid != 0) {
        if (waitpid(client->pid, &client->end, WNOHANG) == client->pid)
            client->pid = 0;
        else if (bench_now_ms() > until)
            return false;
        else
            poll(NULL, 0, 5);
    }
    return true;
}

/* First politely: a driver may have something to put away. */
static void end_worker(lab_client *client) {
    if (client->pid == 0) return;
    kill(client->pid, SIGTERM);
    if (wait_for_end(client, TERM_SECONDS)) return;
    kill(client->pid, SIGKILL);
    wait_for_end(client, 60);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status, (void)type, (void)where;
    return remove(path);
}

void lab_client_stop(lab_client *client) {
    if (client->to > 0) close(client->to);
    if (client->from > 0) close(client->from);
    end_worker(client);
    if (client->memory != NULL) munmap(client->memory, LAB_MEMORY_BYTES);
    if (client->memory_fd > 0) close(client->memory_fd);
    if (client->scratch[0] != 0) nftw(client->scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    *client = (lab_client){.to = -1, .from = -1, .memory_fd = -1};
}

/* ---- ask ----------------------------------------------------------------------------------------------------------- */

/* Read the whole reply, however it comes: a worker that writes half of one has no hold on the parent. Time is counted in
 * slices, each at most double: when the machine stops parent and worker for a while, that is not the worker's. */
static lab_answer read_reply(lab_client *client, lab_reply *reply, double seconds) {
    double left = seconds * 1e3;
    size_t got = 0;
    while (left > 0) {
        struct pollfd ready = {client->from, POLLIN, 0};
        const double start = bench_now_ms();
        if (lab_is_stopped()) return LAB_STOPPED;
        if (poll(&ready, 1, SLICE_MS) > 0) {
            const ssize_t more = read(client->from, (char *)reply + got, sizeof *reply - got);
            if (more < 0 && errno == EINTR) continue;
            if (more <= 0) return LAB_DIED;
            got += (size_t)more;
            if (got == sizeof *reply) return LAB_ANSWERED;
        }
        left -= fmin(bench_now_ms() - start, 2 * SLICE_MS);
    }
    return LAB_TIMED_OUT;
}

lab_answer lab_client_ask(lab_client *client, const lab_request *request, lab_reply *reply, double seconds) {
    *reply = (lab_reply){0};
    lab_answer answer = LAB_DIED;
    if (lab_write_all(client->to, request, sizeof *request)) answer = read_reply(client, reply, seconds);
    if (answer == LAB_ANSWERED && reply->op != request->op) answer = LAB_DIED; /* a crash, or nonsense */
    reply->text[sizeof reply->text - 1] = 0;
    if (answer == LAB_DIED) wait_for_end(client, 1);
    if (answer != LAB_ANSWERED) end_worker(client);
    return answer;
}
