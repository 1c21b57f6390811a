/* `clattn lab STEP --kernel FILE`: a student's kernel, checked and timed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "report.h"

enum { DEFAULT_LIMIT_S = 10, WATCH_MS = 200 };

typedef struct lab_values {
    const char *kernel, *device, *json;
    bool watch, no_oclgrind, no_timing;
    cli_integer limit, seed, lang;
} lab_values;

static const cli_option options_table[] = {
    {"kernel", "FILE", "the kernel, in OpenCL C", CLI_TEXT, offsetof(lab_values, kernel), .required = true},
    {"device", "NAME", "opencl:P:D as clattn devices has it; else the first GPU, else the first OpenCL device", CLI_TEXT,
     offsetof(lab_values, device)},
    {"watch", NULL, "run again whenever the file is saved, until Ctrl-C", CLI_FLAG, offsetof(lab_values, watch)},
    {"json", "FILE|-", "the verdict as JSON", CLI_TEXT, offsetof(lab_values, json)},
    {"limit", "SECONDS", "for a launch (default 10); a build has 10, or more where this is more", CLI_INTEGER,
     offsetof(lab_values, limit), .minimum = 1, .maximum = 600},
    {"no-timing", NULL, "stop when the kernel is right", CLI_FLAG, offsetof(lab_values, no_timing)},
    {"no-oclgrind", NULL, "leave the simulator out", CLI_FLAG, offsetof(lab_values, no_oclgrind)},
    {"seed", "N", "of the inputs, to repeat a run (default: a new one)", CLI_INTEGER, offsetof(lab_values, seed), .minimum = 0,
     .maximum = INT64_MAX},
    {"lang", "zh|en", "language; by default the locale's, or English", CLI_CHOICE, offsetof(lab_values, lang)},
    {NULL},
};

static const cli_command command = {
    .name = "lab",
    .summary = "Check a kernel of yours against the contract of a step of attention, and time it beside the library's.",
    .options = options_table,
    .operands = "STEP",
    .operand_count = 1,
    .details =
        "STEP is softmax, scores, weighted-values, mask, project or attention. The contracts stand in docs/lab.md, kernels to "
        "start from in lessons/lab. The exit code is 0 when the verdict is \"correct\" and the time can be believed.",
};

static int worker_main(int argc, char **argv) {
    return argc == 3 ? lab_worker_main(argv[2]) : cli_fail(command.name, CLI_USAGE, "--worker is the program's own");
}

static void say_nothing(const char *stage, const char *words) {
    (void)stage, (void)words;
}

static void say_line(const char *stage, const char *words) {
    printf("  %s: %s\n", stage, words);
    fflush(stdout);
}

static int unknown_step(const char *name) {
    const char *names[16], *nearest;
    for (size_t i = 0; i < lab_step_count; i++) names[i] = lab_steps[i].name;
    nearest = cli_nearest(name, names, lab_step_count);
    if (nearest != NULL) return cli_fail(command.name, CLI_USAGE, "there is no step %s; did you mean %s?", name, nearest);
    return cli_fail(command.name, CLI_USAGE, "there is no step %s; see clattn lab --help", name);
}

/* One run, all of it shown; the exit code says whether the kernel passed. */
static int run_once(const lab_step *step, const lab_options *options) {
    const bool quiet = options->json != NULL && strcmp(options->json, "-") == 0;
    static lab_run run; /* larger than a stack likes */
    char why[512];
    run = (lab_run){.step = step, .options = options, .random = {options->seed}, .say = quiet ? say_nothing : say_line};
    if (!lab_source_read(&run.source, options->kernel, why, sizeof why)) return cli_fail(command.name, CLI_USAGE, "%s", why);
    lab_run_all(&run);
    const bool undecided = run.result.verdict == LAB_UNDECIDED;
    int exit_code = lab_passed(&run.result) ? CLI_SUCCESS : CLI_FAILURE;
    if (undecided) cli_fail(command.name, CLI_FAILURE, "%s", run.result.detail);
    if (!quiet && !undecided) lab_report_print(&run);
    if (options->json != NULL) {
        const int json_code = lab_report_json(&run);
        if (json_code != CLI_SUCCESS) exit_code = json_code;
    }
    lab_source_free(&run.source);
    return exit_code;
}

/* ---- watching ------------------------------------------------------------------------------------------------------ */

static bool is_newer(const struct stat *a, const struct stat *b) {
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec || a->st_ino != b->st_ino ||
           a->st_size != b->st_size;
}

/* Editors replace files: one that is away for a moment is no change. */
static void wait_for_change(const char *path, struct stat *seen) {
    struct stat now;
    while (!lab_is_stopped()) {
        if (stat(path, &now) == 0 && is_newer(&now, seen)) break;
        poll(NULL, 0, WATCH_MS);
    }
}

static int watch(const lab_step *step, lab_options *options) {
    int exit_code = CLI_SUCCESS;
    while (!lab_is_stopped()) {
        struct stat seen = {0};
        if (stat(options->kernel, &seen) != 0) return cli_fail(command.name, CLI_USAGE, "%s is gone", options->kernel);
        exit_code = run_once(step, options);
        if (lab_is_stopped()) break;
        printf(lab_words("watching %s\n\n"), options->kernel);
        fflush(stdout);
        wait_for_change(options->kernel, &seen);
        options->seed++;
    }
    return exit_code;
}

/* The first of the locale's variables that is set names it. */
static bool is_chinese(cli_integer asked) {
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    if (asked.given) return asked.value == 0;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL && *value != 0) return strncmp(value, "zh", 2) == 0;
    }
    return false;
}

int lab_main(int argc, char **argv) {
    lab_values values = {0};
    int exit_code = CLI_SUCCESS;
    if (argc > 1 && strcmp(argv[1], "--worker") == 0) return worker_main(argc, argv);
    const int operand = cli_parse(&command, argc, argv, &values, &exit_code);
    if (operand < 0) return exit_code;
    const lab_step *step = lab_step_find(argv[operand]);
    if (step == NULL) return unknown_step(argv[operand]);
    if (values.json != NULL && json_missing() != NULL) return cli_fail(command.name, CLI_USAGE, "--json: %s", json_missing());
    if (values.device != NULL && strncmp(values.device, "opencl", 6) != 0)
        return cli_fail(command.name, CLI_USAGE, "a kernel needs an OpenCL device, opencl:P:D, not %s", values.device);
    lab_options options = {.kernel = values.kernel,
                           .device = values.device != NULL ? values.device : "opencl",
                           .json = values.json,
                           .watch = values.watch,
                           .no_oclgrind = values.no_oclgrind,
                           .no_timing = values.no_timing,
                           .limit_s = values.limit.given ? (double)values.limit.value : DEFAULT_LIMIT_S,
                           .seed = (uint64_t)values.seed.value};
    if (!values.seed.given && getrandom(&options.seed, sizeof options.seed, 0) != sizeof options.seed)
        return cli_fail(command.name, CLI_FAILURE, "no random numbers");
    options.seed &= INT64_MAX; /* what --seed takes */
    lab_speak_chinese(is_chinese(values.lang));
    lab_catch_signals();
    return options.watch ? watch(step, &options) : run_once(step, &options);
}
