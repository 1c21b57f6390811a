/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/clock.h"
#include "host/internal.h"
#include "host/opencl/loader.h"

const char *lab_verdict_text(lab_verdict verdict) {
    static const char *const texts[] = {
#define LAB_X(name, words) words,
        LAB_VERDICTS(LAB_X)
#undef LAB_X
    };
    return texts[verdict];
}

bool lab_judge(lab_run *run, lab_verdict verdict, const char *stage, const char *format, ...) {
    va_list list;
    if (run->result.verdict != LAB_CORRECT) return false;
    run->result.verdict = verdict;
    snprintf(run->result.stage, sizeof run->result.stage, "%s", stage);
    va_start(list, format);
    vsnprintf(run->result.detail, sizeof run->result.detail, lab_words(format), list);
    va_end(list);
    return false;
}

bool lab_passed(const lab_result *result) {
    return result->verdict == LAB_CORRECT && (!result->timing.is_measured || result->timing.is_believed);
}

void lab_warn(lab_run *run, const char *format, ...) {
    const size_t used = strlen(run->result.warnings);
    char line[256];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, lab_words(format), list);
    va_end(list);
    if (strstr(run->result.warnings, line) != NULL) return; /* said already */
    snprintf(run->result.warnings + used, sizeof run->result.warnings - used, "%s", line);
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

lab_request lab_request_of(const lab_run *run, lab_op op, const lab_trial *trial) {
    lab_request request = {
        .op = op, .step = (uint32_t)(run->step - lab_steps), .layout = run->layout, .grid = run->source.grid};
    snprintf(request.device, sizeof request.device, "%s", run->result.id[0] != 0 ? run->result.id : run->options->device);
    if (trial == NULL) return request;
    request.slot = trial->slot;
    request.shape = trial->shape;
    memcpy(request.buffers, trial->buffers, sizeof request.buffers);
    return request;
}

/* The name of the n-th buffer. */
static const char *buffer_name(const lab_step *step, uint32_t n) {
    for (size_t i = 0; i < lab_argument_count(step); i++)
        if (step->arguments[i].kind <= LAB_OUTPUT && n-- == 0) return step->arguments[i].name;
    return "?";
}

/* How the worker ended is the parent's own knowledge; where it strayed to, the worker's word. */
bool lab_judge_death(lab_run *run, const char *stage, const lab_request *request, const lab_reply *reply) {
    const int number = WIFSIGNALED(run->worker.end) ? WTERMSIG(run->worker.end) : 0;
    if (number != SIGSEGV && number != SIGBUS)
        return lab_judge(run, LAB_CRASH, stage,
                         number != 0 ? "the process that ran it was ended by signal %d (%s)"
                                     : "the process that ran it is gone",
                         number, number != 0 ? strsignal(number) : "");
    if (reply->op != LAB_OP_CRASH || reply->offset == INT64_MIN || reply->argument >= LAB_MAX_BUFFERS)
        return lab_judge(run, LAB_OUT_OF_BOUNDS, stage, "reads or writes memory that is far from any of its buffers");
    const long long element = (long long)(reply->offset / (int64_t)sizeof(float)) - (reply->offset < 0);
    return lab_judge(run, LAB_OUT_OF_BOUNDS, stage,
                     reply->is_write ? "writes element %lld of %s, which has %llu" : "reads element %lld of %s, which has %llu",
                     element, buffer_name(run->step, reply->argument),
                     (unsigned long long)(request->buffers[reply->argument].bytes / sizeof(float)));
}

bool lab_ask(lab_run *run, const char *stage, const lab_request *request, lab_reply *reply) {
    if (request->op >= LAB_OP_PREPARE) lab_shape_text(run->step, &request->shape, run->result.shape, sizeof run->result.shape);
    switch (lab_client_ask(&run->worker, request, reply, run->options->limit_s)) {
    case LAB_ANSWERED:
        if (!reply->failed) return true;
        return lab_judge(run, request->op == LAB_OP_LAUNCH ? LAB_WRONG_CONTRACT : LAB_UNDECIDED, stage,
                         "the device refuses: %s", reply->text);
    case LAB_TIMED_OUT:
        return lab_judge(run, LAB_HANG, stage, "is still running after %g s", run->options->limit_s);
    case LAB_STOPPED:
        return lab_judge(run, LAB_UNDECIDED, stage, "stopped");
    default:
        return lab_judge_death(run, stage, request, reply);
    }
}

bool lab_launch(lab_run *run, const char *stage, lab_trial *trial, uint32_t slot, double *ms) {
    lab_reply reply;
    if (!lab_trial_place(trial, run->worker.memory, slot, run->layout))
        return lab_judge(run, LAB_UNDECIDED, stage, "the shape does not fit the shared memory");
    lab_request request = lab_request_of(run, LAB_OP_PREPARE, trial);
    if (!lab_ask(run, stage, &request, &reply)) return false;
    request.op = LAB_OP_LAUNCH;
    const double start = bench_now_ms();
    if (!lab_ask(run, stage, &request, &reply)) return false;
    if (ms != NULL) *ms = bench_now_ms() - start;
    request.op = LAB_OP_COLLECT;
    return lab_ask(run, stage, &request, &reply);
}

bool lab_check(lab_run *run, const char *stage, const lab_trial *trial) {
    lab_result *result = &run->result;
    char stray[256];
    lab_trial_find_stray(trial, run->worker.memory, stray, sizeof stray);
    if (stray[0] != 0) return lab_judge(run, LAB_OUT_OF_BOUNDS, stage, "%s", stray);
    const lab_errors errors = lab_trial_compare(trial, lab_trial_output(trial, run->worker.memory));
    if (errors.wrong == 0) return true;
    if (result->verdict != LAB_CORRECT) return false;
    result->has_errors = true;
    result->errors = errors;
    lab_find_cause(run, trial, &errors, result->cause, sizeof result->cause);
    return lab_judge(run, LAB_WRONG, stage, "%zu of %zu elements are wrong", errors.wrong, errors.checked);
}

/* ---- shapes -------------------------------------------------------------------------------------------------------- */

static bool make_trial(lab_run *run, lab_trial *trial, const lab_shape *shape, const char *stage) {
    if (lab_trial_make(trial, run->step, shape, &run->random) && lab_trial_expect(trial, run->reference, 0, shape->m))
        return true;
    return lab_judge(run, LAB_UNDECIDED, stage, "out of memory");
}

/* Wrong results that are others at the next launch are a race's. */
static void look_for_race(lab_run *run, const char *stage, lab_trial *trial, const float *before) {
    lab_result *result = &run->result;
    const size_t bytes = (size_t)trial->shape.m * (size_t)trial->shape.n * sizeof(float);
    const lab_verdict verdict = result->verdict;
    if (verdict != LAB_WRONG) return;
    result->verdict = LAB_CORRECT; /* what goes wrong now is told if it is worse */
    if (!lab_launch(run, stage, trial, 1, NULL)) return;
    result->verdict = verdict;
    if (memcmp(before, lab_trial_output(trial, run->worker.memory), bytes) == 0) return;
    result->verdict = LAB_UNSTABLE;
    snprintf(result->cause, sizeof result->cause, "%s",
             lab_words("a race: the same input gives another output from launch to launch"));
}

/* The same input again, elsewhere; then another input, which an output of the first does not fit. */
static bool try_again(lab_run *run, const char *stage, lab_trial *first) {
    lab_trial second = {0};
    bool right = lab_launch(run, stage, first, 1, NULL);
    if (right && !lab_check(run, stage, first)) {
        run->result.verdict = run->result.verdict == LAB_WRONG ? LAB_UNSTABLE : run->result.verdict;
        snprintf(run->result.cause, sizeof run->result.cause, "%s",
                 lab_words("a race: right at the first launch, wrong at the second with the same input"));
        return false;
    }
    right = right && make_trial(run, &second, &first->shape, stage) && lab_launch(run, stage, &second, 2, NULL);
    if (right && !lab_check(run, stage, &second)) {
        const lab_errors replayed = lab_trial_compare(first, lab_trial_output(&second, run->worker.memory));
        if (replayed.wrong == 0)
            snprintf(run->result.cause, sizeof run->result.cause, "%s",
                     lab_words("these are the results of an earlier launch, on other inputs: replayed"));
        right = false;
    }
    lab_trial_free(&second);
    return right;
}

static bool try_shape(lab_run *run, const char *stage, const lab_shape *shape) {
    const size_t bytes = (size_t)shape->m * (size_t)shape->n * sizeof(float);
    float *before = malloc(bytes);
    lab_trial trial;
    bool right = make_trial(run, &trial, shape, stage) && before != NULL && lab_launch(run, stage, &trial, 0, NULL);
    if (right) {
        memcpy(before, lab_trial_output(&trial, run->worker.memory), bytes);
        right = lab_check(run, stage, &trial);
        if (!right) look_for_race(run, stage, &trial, before);
    }
    right = right && try_again(run, stage, &trial);
    lab_trial_free(&trial);
    free(before);
    return right;
}

static bool try_one_group(lab_run *run) {
    const lab_shape shape = lab_one_group(run->step, &run->source.grid);
    return try_shape(run, "one work-group", &shape);
}

static bool try_table(lab_run *run) {
    const lab_shape *shapes = run->step->shapes;
    for (; run->result.shapes_passed < run->result.shapes; run->result.shapes_passed++)
        if (!try_shape(run, "shapes", &shapes[run->result.shapes_passed])) return false;
    return true;
}

/* ---- all ----------------------------------------------------------------------------------------------------------- */

/* Before a worker is asked: where there is no OpenCL at all, its words are the best. */
static bool has_opencl(lab_run *run) {
    clattn__opencl_api api;
    char why[256] = "";
    const bool right = clattn__opencl_load(&api, why, sizeof why);
    if (!right) return lab_judge(run, LAB_UNDECIDED, "start", "%s", why);
    clattn__opencl_unload(&api);
    return true;
}

static bool open_worker(lab_run *run) {
    lab_result *result = &run->result;
    lab_reply reply;
    char why[256];
    const clattn_context_options oracle = {.struct_size = sizeof oracle, .device = "reference"};
    if (clattn_context_create(&oracle, &run->reference) != CLATTN_OK)
        return lab_judge(run, LAB_UNDECIDED, "start", "no reference device");
    if (!lab_client_start(&run->worker, LAB_STUDENT, why, sizeof why)) return lab_judge(run, LAB_UNDECIDED, "start", "%s", why);
    const lab_request request = lab_request_of(run, LAB_OP_OPEN, NULL);
    if (!lab_ask(run, "start", &request, &reply)) {
        if (reply.failed && reply.text[0] != 0) snprintf(result->detail, sizeof result->detail, "%s", reply.text);
        return false;
    }
    snprintf(result->device, sizeof result->device, "%s", reply.text);
    snprintf(result->id, sizeof result->id, "opencl:%.0f:%.0f", reply.values[0], reply.values[1]);
    run->layout = reply.argument ? LAB_GUARDED : LAB_COPIED;
    snprintf(result->isolation, sizeof result->isolation, "%s", run->worker.memory);
    result->is_isolated = result->isolation[0] == 0;
    return true;
}

static void warn_of_source(lab_run *run) {
    if (run->result.is_isolated) return;
    if (run->source.include_line > 0)
        lab_warn(run, "line %d includes a file: isolation is partial, so it may be any that you can read\n",
                 run->source.include_line);
    if (run->source.asm_line > 0)
        lab_warn(run, "line %d is assembly: isolation is partial, so it may write any file that you can write\n",
                 run->source.asm_line);
}

static bool read_grid(lab_run *run) {
    char why[256];
    int line;
    if (lab_source_grid(&run->source, run->step, &line, why, sizeof why)) return true;
    run->result.line = line;
    return lab_judge(run, LAB_WRONG_CONTRACT, "contract", "%s", why);
}

/* In this order, until one says no. */
static const struct {
    const char *stage;
    bool (*run)(lab_run *);
} stages[] = {
    {"build", lab_build},       {"contract", lab_check_contract},
    {"oclgrind", lab_simulate}, {"one work-group", try_one_group},
    {"shapes", try_table},      {"time", lab_time},
};

static void say_stage(lab_run *run, const char *stage, bool right) {
    char words[512];
    const lab_result *result = &run->result;
    if (!right)
        snprintf(words, sizeof words, "%s", lab_words(lab_verdict_text(result->verdict)));
    else if (strcmp(stage, "shapes") == 0)
        snprintf(words, sizeof words, lab_words("%d of %d"), result->shapes_passed, result->shapes);
    else
        snprintf(words, sizeof words, "%s", lab_words(strcmp(stage, "oclgrind") == 0 ? result->simulator : "ok"));
    if (strcmp(stage, "time") == 0 && right && !result->timing.is_measured)
        snprintf(words, sizeof words, "%s", lab_words("left out"));
    run->say(lab_words(stage), words);
}

/* A student's printf; the file is the worker's, so it may be anything, or a link to nothing. */
static void keep_printed(lab_run *run) {
    const int fd = open(run->worker.printed, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t length = read(fd, run->result.printed, sizeof run->result.printed - 1);
    run->result.printed[length > 0 ? length : 0] = 0;
    close(fd);
}

static void say_isolation(lab_run *run) {
    char words[320];
    snprintf(words, sizeof words, lab_words("partial: %s"), run->result.isolation);
    run->say(lab_words("isolation"), run->result.is_isolated ? lab_words("full") : words);
}

void lab_run_all(lab_run *run) {
    while (run->result.shapes < LAB_MAX_SHAPES && run->step->shapes[run->result.shapes].m > 0) run->result.shapes++;
    bool right = has_opencl(run) && open_worker(run);
    if (right) warn_of_source(run);
    if (right) run->say(run->step->name, run->step->formula);
    if (right) say_isolation(run);
    right = right && read_grid(run);
    for (size_t i = 0; i < sizeof stages / sizeof *stages && right; i++) {
        right = stages[i].run(run);
        if (run->result.verdict != LAB_UNDECIDED) say_stage(run, stages[i].stage, right);
    }
    keep_printed(run);
    lab_client_stop(&run->worker);
    clattn_context_destroy(run->reference);
}
