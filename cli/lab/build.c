/* From a source to a kernel of the step's name and arguments.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "host/internal.h"
#include "run.h"

/* A short limit is for launches. */
static const double BUILD_LIMIT_S = 10;

/* ":3:5: ", as a compiler says where; NULL: the line has none. */
static const char *find_place(const char *text, size_t length, int *line) {
    for (const char *at = text; at < text + length; at++) {
        int column, used = 0;
        if (*at == ':' && sscanf(at, ":%d:%d:%n", line, &column, &used) == 2 && used > 0) return at;
    }
    return NULL;
}

static bool is_own_file(const lab_run *run, const char *path) {
    return strncmp(path, run->worker.scratch, strlen(run->worker.scratch)) == 0 || *path == '<' || *path == ':';
}

/* Drivers write the source into a file of their own, in the scratch folder or under no name at all: "error: /tmp/xyz.cl:3:5:
 * expected" becomes "error: my.cl:3:5: expected". Takes the first line number on the way. */
static void keep_log(lab_run *run, const char *log) {
    const char *name = strrchr(run->source.path, '/');
    clattn__text text = {0};
    name = name != NULL ? name + 1 : run->source.path;
    while (*log != 0) {
        const size_t length = strcspn(log, "\n");
        int line = 0;
        const char *place = find_place(log, length, &line), *path = place;
        if (place != NULL) {
            while (path > log && path[-1] != ' ') path--;
        }
        if (place != NULL && is_own_file(run, path)) {
            clattn__text_add(&text, "%.*s%s", (int)(path - log), log, name);
            if (run->result.line == 0) run->result.line = line;
        } else {
            place = log;
        }
        clattn__text_add(&text, "%.*s\n", (int)(log + length - place), place);
        log += length + (log[length] == '\n');
    }
    while (text.length > 0 && text.data[text.length - 1] == '\n') text.data[--text.length] = 0;
    snprintf(run->result.detail, sizeof run->result.detail, "%s", text.data != NULL ? text.data : "");
    clattn__text_free(&text);
}

bool lab_build(lab_run *run) {
    lab_reply reply;
    const lab_request request = lab_request_of(run, LAB_OP_BUILD, NULL);
    memcpy(run->worker.memory, run->source.text, run->source.length + 1);
    const double limit_s = fmax(run->options->limit_s, BUILD_LIMIT_S);
    const lab_answer answer = lab_client_ask(&run->worker, &request, &reply, limit_s);
    run->worker.memory[LAB_TEXT_BYTES - 1] = 0;
    if (answer == LAB_TIMED_OUT) return lab_judge(run, LAB_HANG, "build", "does not finish building in %g s", limit_s);
    if (answer == LAB_STOPPED) return lab_judge(run, LAB_UNDECIDED, "build", "stopped");
    if (answer == LAB_DIED) return lab_judge_death(run, "build", &request, &reply);
    if (!reply.failed) return true;
    lab_judge(run, LAB_BUILD_ERROR, "build", "%s", reply.text);
    if (run->worker.memory[0] != 0) keep_log(run, run->worker.memory);
    return false;
}

static bool refuse_contract(lab_run *run, const char *words) {
    char signature[512];
    lab_signature(run->step, signature, sizeof signature);
    run->result.line = lab_source_find(&run->source, run->step->kernel);
    return lab_judge(run, LAB_WRONG_CONTRACT, "contract", "%s; wanted is\n%s", words, signature);
}

/* The worker's list against the table; see describe_kernel in device.c. A driver that keeps no types says "?". */
bool lab_check_contract(lab_run *run) {
    const lab_step *step = run->step;
    const lab_grid *grid = &run->source.grid;
    const char *list = run->worker.memory;
    char words[256];
    int count = 0, group[2] = {0, 0}, used = 0;
    if (sscanf(list, "%d %d %d\n%n", &count, &group[0], &group[1], &used) != 3)
        return lab_judge(run, LAB_UNDECIDED, "contract", "the driver does not describe the kernel");
    if (count < 0) {
        snprintf(words, sizeof words, lab_words("there is no kernel called %s"), step->kernel);
        return refuse_contract(run, words);
    }
    if (count != (int)lab_argument_count(step)) {
        snprintf(words, sizeof words, lab_words("%s has %d arguments instead of %zu"), step->kernel, count,
                 lab_argument_count(step));
        return refuse_contract(run, words);
    }
    if (group[0] != 0 && (group[0] != grid->local[0] || (step->dimensions == 2 && group[1] != grid->local[1]))) {
        snprintf(words, sizeof words,
                 lab_words("reqd_work_group_size asks for %d x %d, and the work-group is %d x %d: see \"// lab: local\""),
                 group[0], group[1], grid->local[0], grid->local[1]);
        return lab_judge(run, LAB_WRONG_CONTRACT, "contract", "%s", words);
    }
    for (size_t i = 0; i < lab_argument_count(step); i++) {
        const lab_argument *argument = &step->arguments[i];
        const char *address = argument->kind <= LAB_OUTPUT ? "global" : "private";
        char found_address[16] = "", found_type[64] = "";
        list += used;
        if (sscanf(list, "%15s %63[^\n]\n%n", found_address, found_type, &used) != 2) break;
        if (found_type[0] == '?' ||
            (strcmp(found_type, lab_argument_type(argument)) == 0 && strcmp(found_address, address) == 0))
            continue;
        snprintf(words, sizeof words, lab_words("argument %zu, %s, is a %s %s instead of a %s %s"), i + 1, argument->name,
                 found_address, found_type, address, lab_argument_type(argument));
        return refuse_contract(run, words);
    }
    return true;
}
