/* `clattn tune`: options in, a file of the user's and a table out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pin.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "tune.h"

typedef struct tune_options {
    const char *device, *json;
    cli_integer op;
    bool quick, show, clear;
} tune_options;

static const cli_option options_table[] = {
    {"device", "DEVICE", "auto, gpu, cpu, native, opencl or opencl:P:D", CLI_TEXT, offsetof(tune_options, device)},
    {"op", tune_ops, "measure one operation (all)", CLI_CHOICE, offsetof(tune_options, op)},
    {"quick", NULL, "the most common kinds of problems, smaller, about a minute of them; at most 60 programs are built",
     CLI_FLAG, offsetof(tune_options, quick)},
    {"json", "FILE|-", "what was measured, as JSON too", CLI_TEXT, offsetof(tune_options, json)},
    {"show", NULL, "measure nothing: what counts on this device, and where it comes from", CLI_FLAG,
     offsetof(tune_options, show)},
    {"clear", NULL, "measure nothing: remove this device's file", CLI_FLAG, offsetof(tune_options, clear)},
    {NULL},
};

static const cli_command command = {
    .name = "tune",
    .summary = "Which kernels are the fastest on a device, for each kind of problem.",
    .options = options_table,
    .details =
        "Each kernel is verified before it is timed, in turns with the others. Where none is faster than the library's own "
        "choice beyond noise, and again in a second measurement, that choice is kept. What is found goes into a file "
        "in $CLATTN_CONFIG_DIR/tune, else $XDG_CONFIG_HOME/clattn/tune, else ~/.config/clattn/tune, which all programs of "
        "the library ask from then on; --explain shows it, and CLATTN_TUNING=0 turns it off. SIGINT and SIGTERM end it with "
        "what was "
        "found until then; the exit code is 128 and the signal's number.\n",
};

/* The device's file, or why there is none. */
static int find_path(const clattn__device *device, clattn__text *path) {
    *path = tune_path(device);
    if (path->data) return CLI_SUCCESS;
    return cli_fail(command.name, CLI_FAILURE,
                    "there is no directory for what is measured: none of CLATTN_CONFIG_DIR, XDG_CONFIG_HOME and HOME is set");
}

static void print_problems(const char *problems) {
    for (const char *line = problems; *line; line += strcspn(line, "\n") + 1)
        cli_note(command.name, "%.*s", (int)strcspn(line, "\n"), line);
}

/* ---- show, clear ----------------------------------------------------------------------------------------------------- */

static void print_line(const char *key, const char *row, const char *other, double ratio, double noise) {
    if (strcmp(row, other) == 0)
        printf("%-70s  %-20s  the default\n", key, row);
    else
        printf("%-70s  %-20s  %.2f times as fast as %s, noise %.1f %%\n", key, row, ratio, other, 1e2 * noise);
}

static void print_origin(const clattn__tuned *line, bool again) {
    clattn__text text = {0};
    clattn__tuned_origin(&text, line);
    printf("%s%s\n", again ? "\n" : "", text.data ? text.data : "");
    clattn__text_free(&text);
}

static int show(clattn_context *context) {
    size_t count;
    const char *problems;
    const clattn__tuned *lines = clattn__tuning_list(context, &count, &problems);
    print_problems(problems);
    if (!clattn__is_on(CLATTN__TUNING)) printf("measurements are left aside: $CLATTN_TUNING is 0\n");
    if (count == 0 && clattn__is_on(CLATTN__TUNING)) printf("nothing was measured for %s\n", context->device.info.id);
    for (size_t n = 0; n < count; n++) {
        const bool starts = n == 0 || lines[n].file != lines[n - 1].file;
        if (starts) print_origin(&lines[n], n > 0);
        print_line(lines[n].key, lines[n].row, lines[n].other, lines[n].ratio, lines[n].noise);
    }
    return CLI_SUCCESS;
}

static int clear(const clattn__device *device) {
    clattn__text path;
    bench_error error;
    bool there;
    int code = find_path(device, &path);
    if (code != CLI_SUCCESS) return code;
    if (tune_clear(path.data, &there, &error))
        printf("%s%s\n", there ? "removed " : "nothing is kept in ", path.data);
    else
        code = cli_fail(command.name, CLI_FAILURE, "%s", error.text);
    clattn__text_free(&path);
    return code;
}

static int without_measuring(const tune_options *options) {
    char text[512] = "";
    clattn_context *context = NULL;
    clattn_context_options settings = CLATTN_CONTEXT_OPTIONS_INIT;
    settings.device = options->device;
    settings.error = text;
    settings.error_size = sizeof text;
    const clattn_status status = clattn_context_create(&settings, &context);
    if (status != CLATTN_OK) return cli_fail_status(command.name, status, text);
    const int code = options->show ? show(context) : clear(&context->device);
    clattn_context_destroy(context);
    return code;
}

/* ---- measure --------------------------------------------------------------------------------------------------------- */

static void print_results(const tune_session *session, const char *path) {
    size_t gained = 0;
    for (size_t n = 0; n < session->count; n++) {
        const tune_result *result = &session->results[n];
        const size_t chosen = result->choice.chosen;
        gained += chosen > 0;
        print_line(result->key, result->rows[chosen]->name, result->rows[0]->name, result->choice.ratio, result->choice.noise);
        if (chosen == 0) printf("    %s of %zu: %s\n", result->choice.reason, result->count, result->shape);
    }
    printf("\n%zu kinds of problems, %zu of them faster; %lu programs built\n", session->count, gained,
           session->device.context->builds);
    if (path)
        printf("kept in %s\n", path);
    else
        printf("nothing to keep: one row alone may serve each kind of problem\n");
    if (session->remarks.data) printf("\nRemarks\n%s", session->remarks.data);
}

static bool has_choices(const tune_session *session) {
    for (size_t n = 0; n < session->count; n++)
        if (session->results[n].count > 1) return true;
    return false;
}

/* What was found is kept at once: whoever interrupts loses one kind of problem, be it by a signal that is not to be caught.
 * *count receives how many there were to measure. */
static bool measure_all(tune_session *session, int op, const char *path, size_t *count, bench_error *error) {
    tune_shape shapes[TUNE_MOST_SHAPES];
    *count = tune_shapes(op, session->quick, session->scale, shapes);
    for (size_t n = 0; n < *count && !bench_ended_by(); n++) {
        if (!tune_measure(session, &shapes[n], error)) return bench_ended_by() != 0;
        if (has_choices(session) && !tune_store(session, path, NULL, error)) return false;
    }
    return true;
}

/* The shell's exit code of a program that a signal ended. */
static int tell_end(const tune_session *session, size_t count, const char *path) {
    const int which = bench_ended_by();
    return cli_fail(command.name, 128 + which, "ended by %s after %zu of %zu kinds of problems; %s%s",
                    which == SIGINT ? "SIGINT" : "SIGTERM", session->count, count,
                    path ? "they are kept in " : "there is nothing to keep", path ? path : "");
}

static int finish(const tune_session *session, const char *path, const tune_options *options) {
    bench_error error;
    int code = CLI_SUCCESS;
    if (session->count == 0 && bench_ended_by()) return CLI_SUCCESS;
    if (session->count == 0)
        return cli_fail(command.name, CLI_FAILURE, "nothing could be measured:\n%s",
                        session->remarks.data ? session->remarks.data : "");
    if (!has_choices(session)) path = NULL;
    if (!tune_store(session, path, options->json, &error)) code = cli_fail(command.name, CLI_FAILURE, "%s", error.text);
    if (code == CLI_SUCCESS && !(options->json && strcmp(options->json, "-") == 0))
        print_results(session, path);
    else if (session->remarks.data)
        fputs(session->remarks.data, stderr);
    return code == CLI_SUCCESS && session->wrong ? CLI_FAILURE : code;
}

static int measure(const tune_options *options) {
    static tune_session session; /* its results are too many for a stack */
    clattn__text path = {0};
    bench_error error;
    size_t count = 0;
    int code = CLI_SUCCESS;
    bench_end_on(SIGINT);
    bench_end_on(SIGTERM);
    if (!tune_session_open(&session, options->device, options->quick, &error))
        code = cli_fail(command.name, CLI_USAGE, "%s", error.text);
    else if (session.device.info.kind == CLATTN_DEVICE_REFERENCE)
        code = cli_fail(command.name, CLI_USAGE, "the reference has no kernels to choose from");
    else
        code = find_path(&session.device.context->device, &path);
    if (code == CLI_SUCCESS && !measure_all(&session, (int)options->op.value, path.data, &count, &error))
        code = cli_fail(command.name, CLI_FAILURE, "%s", error.text);
    tune_progress(&session, "%s", "");
    if (code == CLI_SUCCESS) code = finish(&session, path.data, options);
    if (code == CLI_SUCCESS && bench_ended_by()) code = tell_end(&session, count, has_choices(&session) ? path.data : NULL);
    clattn__text_free(&path);
    tune_session_close(&session);
    return code;
}

int tune_main(int argc, char **argv) {
    tune_options options = {0};
    int code;
    if (cli_parse(&command, argc, argv, &options, &code) < 0) return code;
    const bool measures = options.quick || options.op.given || options.json;
    if (options.show && options.clear) return cli_fail(command.name, CLI_USAGE, "--show and --clear are two wishes");
    if ((options.show || options.clear) && measures)
        return cli_fail(command.name, CLI_USAGE, "%s measures nothing: it goes with --device alone",
                        options.show ? "--show" : "--clear");
    if (options.show || options.clear) return without_measuring(&options);
    if (json_missing()) return cli_fail(command.name, CLI_USAGE, "%s", json_missing());
    bench_pin(argc, argv, NULL);
    return measure(&options);
}
