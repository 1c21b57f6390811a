/* Tiny shapes on oclgrind: it sees every access, so it finds what a device lets pass.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What it says is read from its log: https://github.com/jrprice/Oclgrind. It has opinions of its own about some kernels, so
 * that a failure of the simulator itself is a remark and no verdict; and reads of memory that nothing has written are one, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

enum { MAX_LOG = 4 << 20 };
static const char stage[] = "oclgrind";

/* What the log may hold, worst first. */
static const struct {
    const char *words;
    lab_verdict verdict; /* CORRECT: a warning */
    const char *detail;
} findings[] = {
    {"Invalid write", LAB_OUT_OF_BOUNDS, "writes outside of a buffer"},
    {"Invalid read", LAB_OUT_OF_BOUNDS, "reads outside of a buffer"},
    {"Work-group divergence", LAB_HANG, "work-items of a group wait at different barriers, or some at none"},
    {"data race", LAB_RACE, "work-items use the same memory at once, without a barrier between"},
    {"ninitialized", LAB_CORRECT, "uses memory that nothing has written"},
};

/* The log's own words for where: "At line 12 (column 9) of input.cl". 0: not said. */
static int line_of(const char *finding) {
    const char *at = strstr(finding, "At line ");
    return at != NULL ? atoi(at + strlen("At line ")) : 0;
}

static char *read_log(const lab_client *simulator) {
    char path[512];
    char *log = malloc(MAX_LOG + 1);
    snprintf(path, sizeof path, "%s/oclgrind.log", simulator->scratch);
    FILE *file = log != NULL ? fopen(path, "r") : NULL;
    const size_t length = file != NULL ? fread(log, 1, MAX_LOG, file) : 0;
    if (file != NULL) fclose(file);
    if (log != NULL) log[length] = 0;
    return log;
}

static bool judge_log(lab_run *run, const lab_client *simulator) {
    char *log = read_log(simulator);
    bool right = true;
    for (size_t i = 0; i < sizeof findings / sizeof *findings && right && log != NULL; i++) {
        const char *found = strstr(log, findings[i].words);
        if (found == NULL) continue;
        if (findings[i].verdict == LAB_CORRECT) {
            lab_warn(run, "oclgrind: line %d %s\n", line_of(found), lab_words(findings[i].detail));
            continue;
        }
        run->result.line = line_of(found);
        if (findings[i].verdict == LAB_RACE)
            snprintf(run->result.cause, sizeof run->result.cause, "%s", lab_words("a missing barrier"));
        right = lab_judge(run, findings[i].verdict, stage, "%s", lab_words(findings[i].detail));
    }
    free(log);
    return right;
}

/* ---- launches ------------------------------------------------------------------------------------------------------ */

static bool ask(lab_run *run, lab_client *simulator, const lab_request *request) {
    lab_reply reply;
    return lab_client_ask(simulator, request, &reply, run->options->limit_s) == LAB_ANSWERED && !reply.failed;
}

/* False: the simulator could not. */
static bool launch(lab_run *run, lab_client *simulator, const lab_shape *shape) {
    static const lab_op ops[] = {LAB_OP_PREPARE, LAB_OP_LAUNCH, LAB_OP_COLLECT};
    lab_trial trial;
    bool right =
        lab_trial_make(&trial, run->step, shape, &run->random) && lab_trial_place(&trial, simulator->memory, 0, LAB_EXACT);
    for (size_t i = 0; i < sizeof ops / sizeof *ops && right; i++) {
        lab_request request = lab_request_of(run, ops[i], &trial);
        request.layout = LAB_EXACT;
        right = ask(run, simulator, &request);
    }
    lab_trial_free(&trial);
    return right;
}

static bool build(lab_run *run, lab_client *simulator) {
    lab_request request = lab_request_of(run, LAB_OP_OPEN, NULL);
    snprintf(request.device, sizeof request.device, "opencl");
    if (!ask(run, simulator, &request)) return false;
    memcpy(simulator->memory, run->source.text, run->source.length + 1);
    request.op = LAB_OP_BUILD;
    return ask(run, simulator, &request);
}

bool lab_simulate(lab_run *run) {
    lab_result *result = &run->result;
    lab_client simulator = {0};
    char why[sizeof result->simulator];
    snprintf(result->simulator, sizeof result->simulator, "%s", run->options->no_oclgrind ? "left out" : "not installed");
    if (run->options->no_oclgrind || lab_oclgrind() == NULL) return true;
    if (!lab_client_start(&simulator, LAB_SIMULATED, why, sizeof why)) {
        snprintf(result->simulator, sizeof result->simulator, "%s", why);
        return true;
    }
    bool right = build(run, &simulator), clean = true;
    for (int i = 0; i < LAB_TINY_SHAPES && right && clean; i++) {
        lab_shape_text(run->step, &run->step->tiny[i], result->shape, sizeof result->shape);
        right = launch(run, &simulator, &run->step->tiny[i]);
        clean = judge_log(run, &simulator);
    }
    snprintf(result->simulator, sizeof result->simulator, "%s",
             right ? "ok" : "no result: too slow, or a kernel that it does not know");
    lab_client_stop(&simulator);
    if (lab_is_stopped()) return lab_judge(run, LAB_UNDECIDED, stage, "stopped");
    return clean;
}
