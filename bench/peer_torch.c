/* SPDX-License-Identifier: Apache-2.0 */
#include "peer_torch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "pin.h"

extern char **environ;

const char *const bench_torch_backends[] = {"flash", "cudnn", "efficient", "math", NULL};

/* No answer for so long is none. The first waits for torch to be imported. */
enum { ANSWER_LIMIT_MS = 20000 };

struct bench_torch {
    pid_t process; /* 0: none */
    int to, from;
    char version[192]; /* what it says of itself */
    char why[256];     /* why it does not serve; "" while it does */
    int plans;         /* made so far: their numbers */
};

typedef struct torch_plan {
    bench_torch *torch;
    int number;
} torch_plan;

/* ---- the pipe ------------------------------------------------------------------------------------------------------ */

static bool broken(bench_torch *torch, bench_error *error, const char *what) {
    snprintf(torch->why, sizeof torch->why, "python3 with torch %s", what);
    return bench_fail(error, "%s", torch->why);
}

static bool put(bench_torch *torch, const void *data, size_t bytes, bench_error *error) {
    const char *at = data;
    while (bytes > 0) {
        const ssize_t written = write(torch->to, at, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return broken(torch, error, "has ended");
        at += written, bytes -= (size_t)written;
    }
    return true;
}

static bool get(bench_torch *torch, void *data, size_t bytes, bench_error *error) {
    char *at = data;
    while (bytes > 0) {
        struct pollfd ready = {.fd = torch->from, .events = POLLIN};
        const int events = poll(&ready, 1, ANSWER_LIMIT_MS);
        if (events < 0 && errno == EINTR) continue;
        if (events <= 0) return broken(torch, error, "does not answer");
        const ssize_t taken = read(torch->from, at, bytes);
        if (taken < 0 && errno == EINTR) continue;
        if (taken <= 0) return broken(torch, error, "has ended");
        at += taken, bytes -= (size_t)taken;
    }
    return true;
}

/* The answer's line after "ok "; false with the reason when it is another. */
static bool get_answer(bench_torch *torch, char *line, size_t size, bench_error *error) {
    size_t length = 0;
    for (char c = 0; c != '\n';) {
        if (!get(torch, &c, 1, error)) return false;
        if (length + 1 < size && c != '\n') line[length++] = c;
    }
    line[length] = 0;
    if (strncmp(line, "no ", 3) == 0) return bench_fail(error, "%s", line + 3);
    if (strncmp(line, "ok", 2) != 0) return broken(torch, error, "answers what is no answer");
    memmove(line, line + 2 + (line[2] == ' '), strlen(line + 2 + (line[2] == ' ')) + 1);
    return true;
}

static bool ask(bench_torch *torch, const char *command, char *line, size_t size, bench_error *error) {
    if (torch->why[0]) return bench_fail(error, "%s", torch->why);
    return put(torch, command, strlen(command), error) && get_answer(torch, line, size, error);
}

/* ---- the process --------------------------------------------------------------------------------------------------- */

static bool spawn(bench_torch *torch, int input[2], int output[2]) {
    posix_spawn_file_actions_t actions;
    char *arguments[] = {"python3", "-c", (char *)bench_file_peer_torch_py, NULL};
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    bool right = posix_spawn_file_actions_adddup2(&actions, input[0], 0) == 0 &&
                 posix_spawn_file_actions_adddup2(&actions, output[1], 1) == 0 &&
                 posix_spawn_file_actions_addclose(&actions, input[1]) == 0 &&
                 posix_spawn_file_actions_addclose(&actions, output[0]) == 0 &&
                 posix_spawnp(&torch->process, "python3", &actions, NULL, arguments, environ) == 0;
    if (!right) torch->process = 0;
    posix_spawn_file_actions_destroy(&actions);
    return right;
}

static void start(bench_torch *torch) {
    int input[2], output[2];
    snprintf(torch->why, sizeof torch->why, "python3 does not start");
    if (pipe(input) != 0) return;
    if (pipe(output) != 0) {
        close(input[0]);
        close(input[1]);
        return;
    }
    bench_affinity saved;
    bench_pin_widen(&saved); /* which it inherits */
    if (spawn(torch, input, output)) torch->why[0] = 0;
    bench_pin_restore(&saved);
    close(input[0]);
    close(output[1]);
    torch->to = input[1];
    torch->from = output[0];
}

bench_torch *bench_torch_open(const bench_device *device) {
    bench_torch *torch = calloc(1, sizeof *torch);
    if (!torch) return NULL;
    torch->to = torch->from = -1;
    start(torch);
    char command[sizeof device->info.name + 16];
    bench_error error;
    snprintf(command, sizeof command, "device %s\n", device->info.name);
    if (!ask(torch, command, torch->version, sizeof torch->version, &error))
        snprintf(torch->why, sizeof torch->why, "%.255s", error.text);
    return torch;
}

void bench_torch_close(bench_torch *torch) {
    if (!torch) return;
    if (torch->to >= 0) close(torch->to);
    if (torch->from >= 0) close(torch->from);
    if (torch->process > 0) {
        if (torch->why[0]) kill(torch->process, SIGKILL); /* it may never come to the end of its input */
        while (waitpid(torch->process, NULL, 0) < 0 && errno == EINTR) continue;
    }
    free(torch);
}

/* ---- problems and plans -------------------------------------------------------------------------------------------- */

bool bench_torch_suits(const bench_shape *shape) {
    const clattn_dtype dtype = bench_shape_dtype(shape);
    return shape->op == BENCH_OP_ATTENTION && dtype != CLATTN_F64 && !shape->has_window &&
           (!shape->causal || (shape->len_q == shape->len_kv && shape->align != CLATTN_ALIGN_OFFSET));
}

bool bench_torch_load(bench_torch *torch, const bench_problem *problem, bench_error *error) {
    const bench_shape *s = &problem->shape;
    char command[256], line[256];
    if (torch->why[0]) return bench_fail(error, "%s", torch->why);
    snprintf(command, sizeof command,
             "load %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d\n",
             clattn_dtype_name(bench_shape_dtype(s)), s->batch, s->heads_q, s->heads_kv, s->len_q, s->len_kv, s->head_dim,
             s->value_dim, s->causal);
    if (!put(torch, command, strlen(command), error)) return false;
    for (size_t i = 0; i + 1 < problem->arg_count; i++)
        if (!put(torch, problem->args[i].data, problem->args[i].bytes, error)) return false;
    return get_answer(torch, line, sizeof line, error);
}

static bool ask_plan(bench_candidate *candidate, const char *verb, char *line, size_t size, bench_error *error) {
    const torch_plan *plan = candidate->state;
    char command[64];
    snprintf(command, sizeof command, "%s %d\n", verb, plan->number);
    return ask(plan->torch, command, line, size, error);
}

static bool run(bench_candidate *candidate, bench_time *time, bench_error *error) {
    const torch_plan *plan = candidate->state;
    char line[256];
    if (!ask_plan(candidate, "run", line, sizeof line, error)) return false;
    if (sscanf(line, "%lf %lf", &time->wall_ms, &time->event_ms) == 2) return true;
    return broken(plan->torch, error, "answers what is no time");
}

static bool fetch(bench_candidate *candidate, bench_error *error) {
    const torch_plan *plan = candidate->state;
    const clattn_arg *out = bench_problem_output_arg(candidate->problem);
    char line[256];
    if (!ask_plan(candidate, "fetch", line, sizeof line, error)) return false;
    if (strtoull(line, NULL, 10) != out->bytes) return broken(plan->torch, error, "has an output of another size");
    return get(plan->torch, out->data, out->bytes, error);
}

static void release(bench_candidate *candidate) {
    char line[256];
    bench_error error;
    ask_plan(candidate, "drop", line, sizeof line, &error);
    free(candidate->state);
}

static const bench_candidate_class torch_class = {.run = run, .fetch = fetch, .release = release};

/* Bytes of what an implementation keeps beside inputs and output: of "math" the whole matrix of scores, the others' are small. */
static int64_t workspace_of(const bench_shape *s, const char *backend) {
    return strcmp(backend, "math") == 0 ? s->batch * s->heads_q * s->len_q * s->len_kv * (int64_t)sizeof(float) : -1;
}

bool bench_candidate_torch(bench_candidate *candidate, bench_device *device, bench_problem *problem, bench_torch *torch,
                           const char *backend, bench_error *error) {
    *candidate = (bench_candidate){.device = device,
                                   .problem = problem,
                                   .contrast = "peers",
                                   .launches = -1,
                                   .dependent_steps = -1,
                                   .workspace_bytes = workspace_of(&problem->shape, backend),
                                   .peak = BENCH_LIMIT_NONE};
    char command[64], line[256];
    snprintf(candidate->path, sizeof candidate->path, "torch %s", backend);
    snprintf(candidate->note, sizeof candidate->note, "%s", torch->version);
    torch_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return bench_fail(error, "out of memory");
    *plan = (torch_plan){torch, ++torch->plans};
    snprintf(command, sizeof command, "plan %d %s\n", plan->number, backend);
    bench_error why;
    if (!ask(torch, command, line, sizeof line, &why)) {
        free(plan);
        return bench_fail(error, "%s: %.900s", candidate->path, why.text);
    }
    candidate->state = plan;
    candidate->class = &torch_class;
    return true;
}
