/* `clattn race`: a minute for a class: two lanes, more units, longer sentences, three sentences.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/pin.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "lessons/display.h"
#include "page.h"
#include "race.h"

typedef struct race_options {
    const char *device, *json, *html;
    cli_integer lang, len, seconds;
} race_options;

static const double LANE_SECONDS = 4, UNIT_SECONDS = 2;
enum { DEFAULT_LENGTH = 128, DEFAULT_SECONDS = 60, LONGEST = 8192 };

static const cli_option options_table[] = {
    {"device", "DEVICE", "auto, gpu, cpu, native, opencl or opencl:P:D", CLI_TEXT, offsetof(race_options, device)},
    {"len", "N", "words of the first race (128)", CLI_INTEGER, offsetof(race_options, len), .minimum = 2, .maximum = LONGEST},
    {"seconds", "N", "no longer length is begun after so many (60)", CLI_INTEGER, offsetof(race_options, seconds), .minimum = 1,
     .maximum = 3600},
    {"lang", "zh|en", "language; by default the locale's, or English", CLI_CHOICE, offsetof(race_options, lang)},
    {"json", "FILE|-", "all figures as JSON", CLI_TEXT, offsetof(race_options, json)},
    {"html", "FILE|-", "the race as a page to replay in a browser", CLI_TEXT, offsetof(race_options, html)},
    {NULL},
};

static const cli_command command = {
    .name = "race",
    .summary = "A recurrence that walks word by word beside attention that arrives at once, on one device, 512 wide.",
    .options = options_table,
    .details =
        "Both are measured by the benchmark's code first, then replayed on one axis of time; then the same words on 1, 2, ... "
        "all "
        "units, and longer sentences until the picture turns. The recurrence's words are shown evenly spaced over its time.",
};

/* ---- JSON ---------------------------------------------------------------------------------------------------------- */

#ifdef CLATTN_HAVE_CJSON

static void add_runner(cJSON *object, const char *name, const race_runner *runner) {
    cJSON *side = cJSON_AddObjectToObject(object, name);
    cJSON_AddNumberToObject(side, "ms", runner->point.ms);
    cJSON_AddNumberToObject(side, "ms_q1", runner->low);
    cJSON_AddNumberToObject(side, "ms_q3", runner->high);
    cJSON_AddNumberToObject(side, "noise", runner->point.noise);
    cJSON_AddNumberToObject(side, "flops", runner->point.flops);
    cJSON_AddNumberToObject(side, "dependent_steps", (double)runner->point.chain);
    if (isfinite(runner->busy)) cJSON_AddNumberToObject(side, "device_busy", runner->busy);
}

static void add_pairs(cJSON *root, const char *name, const race_pair *pairs, size_t count) {
    static const char *const winners[] = {"unclear", "attention", "recurrence"};
    cJSON *list = cJSON_AddArrayToObject(root, name);
    for (size_t i = 0; i < count; i++) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddNumberToObject(object, "words", (double)pairs[i].length);
        cJSON_AddNumberToObject(object, "units", pairs[i].units);
        add_runner(object, "attention", &pairs[i].attention);
        add_runner(object, "recurrence", &pairs[i].recurrence);
        cJSON_AddStringToObject(object, "faster", winners[race_winner(&pairs[i])]);
        cJSON_AddItemToArray(list, object);
    }
}

static void add_crossing(cJSON *root, const char *name, const race_results *results, race_contrast which) {
    const bench_contrast contrast = race_contrast_of(results, which, RACE_EN);
    const double crossing = bench_crossing(&contrast, 1, 1);
    if (crossing > 0)
        cJSON_AddNumberToObject(root, name, crossing);
    else
        cJSON_AddNullToObject(root, name);
}

static cJSON *results_json(const race_results *results, const clattn__text *sentences) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "clattn-race-1");
    cJSON_AddStringToObject(root, "version", clattn_version());
    cJSON_AddStringToObject(root, "device", results->device->info.id);
    cJSON_AddStringToObject(root, "device_name", results->device->info.name);
    cJSON_AddNumberToObject(root, "width", (double)results->width);
    add_pairs(root, "units", results->units, results->unit_count);
    add_pairs(root, "core", results->lengths[RACE_CORE], results->length_count);
    add_pairs(root, "layer", results->lengths[RACE_LAYER], results->length_count);
    add_crossing(root, "core_crossing", results, RACE_CORE);
    add_crossing(root, "layer_crossing", results, RACE_LAYER);
    cJSON *list = cJSON_AddArrayToObject(root, "sentences");
    for (int i = 0; i < RACE_SENTENCES; i++) cJSON_AddItemToArray(list, cJSON_CreateString(sentences[i].data));
    return root;
}

static int write_files(const race_results *results, race_language language, const clattn__text *sentences,
                       const race_options *options) {
    output_set outputs = {0};
    if (options->json != NULL && !json_write(&outputs, options->json, results_json(results, sentences)))
        return cli_fail(command.name, CLI_USAGE, "--json: %s", outputs.error);
    if (options->html != NULL && !race_page_write(&outputs, options->html, results, language, sentences))
        return cli_fail(command.name, CLI_USAGE, "--html: %s", outputs.error);
    return output_commit(&outputs) ? CLI_SUCCESS : cli_fail(command.name, CLI_FAILURE, "%s", outputs.error);
}

#else

static int write_files(const race_results *results, race_language language, const clattn__text *sentences,
                       const race_options *options) {
    (void)results, (void)language, (void)sentences, (void)options;
    return CLI_SUCCESS; /* neither was asked for: race_main has refused it */
}

#endif

/* ---- the minute ---------------------------------------------------------------------------------------------------- */

/* A length takes about as long as the last and, where the runs are long, four times as long. */
static bool has_time_for_next(const bench_session *session, double last_s) {
    return bench_session_seconds_left(session) > 2 * last_s;
}

/* Up from below the first race's length, so that the picture has a beginning, until both have turned. */
static bool sweep(bench_session *session, race_results *results, int64_t first, bench_error *error) {
    const int64_t from = first / 8 > 0 ? first / 8 : 1;
    double last_s = 0;
    for (int64_t length = from; length <= LONGEST; length *= length < first ? 8 : 2) {
        const double before = bench_session_seconds_left(session);
        const bool over = length > first && race_has_turned(results, RACE_CORE) && race_has_turned(results, RACE_LAYER);
        if (over || (length > first && !has_time_for_next(session, last_s))) break;
        if (!race_measure_length(session, results, length, error)) return false;
        last_s = before - bench_session_seconds_left(session);
    }
    return true;
}

static bool is_stdout(const char *path) {
    return path != NULL && strcmp(path, "-") == 0;
}

/* Whether standard output is a file's. */
static bool is_quiet(const race_options *options) {
    return is_stdout(options->json) || is_stdout(options->html);
}

static int present(const race_results *results, const race_options *options, race_language language) {
    const bool quiet = is_quiet(options);
    clattn__text sentences[RACE_SENTENCES] = {{0}};
    race_sentences(results, language, sentences);
    if (!quiet) race_print_lengths(results, language);
    if (!quiet) printf("\n");
    for (int i = 0; i < RACE_SENTENCES && !quiet; i++) {
        printf("%d. ", i + 1);
        display_wrap(stdout, sentences[i].data, RACE_COLUMNS, 3, 3);
    }
    const int exit_code = write_files(results, language, sentences, options);
    if (exit_code == CLI_SUCCESS && options->html != NULL && !quiet) printf("\n%s\n", options->html);
    for (int i = 0; i < RACE_SENTENCES; i++) clattn__text_free(&sentences[i]);
    return exit_code;
}

/* The same race again on one unit and more: a class sees which lane moves. */
static void show_units(const race_results *results, race_language language, bool is_moving) {
    const race_pair *headline = race_headline(results);
    race_replay(headline, language, LANE_SECONDS, is_moving);
    for (size_t i = 0; i < results->unit_count; i++) {
        if (&results->units[i] == headline) continue;
        printf("\n");
        race_replay(&results->units[i], language, UNIT_SECONDS, is_moving);
    }
    race_print_units(results, language);
    fflush(stdout);
}

static void print_head(const race_results *results, race_language language) {
    static const char *const heads[] = {"在%s上。两边同样宽：%lld 个数。", "On %s. Both sides are %lld numbers wide."};
    clattn__text where = {0}, head = {0};
    race_where(results, language, &where);
    clattn__text_add(&head, heads[language], where.data != NULL ? where.data : "", (long long)results->width);
    race_print_wrapped(head.data != NULL ? head.data : "", 0);
    printf("\n");
    clattn__text_free(&where);
    clattn__text_free(&head);
}

static int run(bench_session *session, const race_options *options, bench_error *error) {
    const race_language language = race_find_language(options->lang);
    const bool quiet = is_quiet(options);
    const int64_t first = options->len.given ? options->len.value : DEFAULT_LENGTH;
    static race_results results;
    results.device = bench_session_device(session, 0, error);
    if (results.device == NULL) return cli_fail(command.name, CLI_FAILURE, "%s", error->text);
    results.os = session->os;
    results.width = bench_session_shape(session, BENCH_OP_RNN, first).hidden;
    if (!race_measure_units(session, &results, first, error)) return cli_fail(command.name, CLI_FAILURE, "%s", error->text);
    if (!quiet) print_head(&results, language);
    if (!quiet) show_units(&results, language, isatty(STDOUT_FILENO) != 0);
    if (!sweep(session, &results, first, error)) return cli_fail(command.name, CLI_FAILURE, "%s", error->text);
    const int exit_code = present(&results, options, language);
    if (session->failed && session->remarks.data != NULL)
        return cli_fail(command.name, CLI_FAILURE, "%s", session->remarks.data);
    return exit_code;
}

int race_main(int argc, char **argv) {
    race_options options = {0};
    bench_session session;
    bench_error error = {""};
    int exit_code = CLI_SUCCESS;
    bench_pin(argc, argv, NULL);
    if (cli_parse(&command, argc, argv, &options, &exit_code) < 0) return exit_code;
    if ((options.json != NULL || options.html != NULL) && json_missing() != NULL)
        return cli_fail(command.name, CLI_USAGE, "--%s: %s", options.json != NULL ? "json" : "html", json_missing());
    if (options.json != NULL && options.html != NULL && output_same_file(options.json, options.html))
        return cli_fail(command.name, CLI_USAGE, "--json and --html name the same file");
    bench_args args = {.device = options.device, .quick = true};
    if (!bench_session_open(&session, &args, &error))
        exit_code = cli_fail(command.name, CLI_USAGE, "%s", error.text);
    else {
        session.limit_ms = 1e3 * (double)(options.seconds.given ? options.seconds.value : DEFAULT_SECONDS);
        exit_code = run(&session, &options, &error);
    }
    bench_session_close(&session);
    return exit_code;
}
