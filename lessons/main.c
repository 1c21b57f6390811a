/* clattn lesson: the command line of the course.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/json.h"
#include "course_pages.h"
#include "display.h"
#include "doc_json.h"
#include "lesson.h"
#include "lessons.h"
#include "symbols.h"
#include "terminal.h"

typedef struct lesson_options {
    const char *device, *json, *html;
    cli_integer language, color;
    bool step;
    lesson_parameters parameters;
} lesson_options;

enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* clang-format off */
#define LANGUAGE_OPTION                                                                                                  \
    {"lang", "zh|en", "language; by default the locale's, or English", CLI_CHOICE, offsetof(lesson_options, language)}
#define PARAMETER(name_, argument_, help_, kind_, member_, ...)                                                          \
    {name_, argument_, help_, kind_, offsetof(lesson_options, parameters) + offsetof(lesson_parameters, member_), __VA_ARGS__}

static const cli_option list_options[] = {
    LANGUAGE_OPTION,
    {NULL},
};

static const cli_option run_options[] = {
    LANGUAGE_OPTION,
    {"device", "DEVICE", "auto, gpu, cpu, native, opencl, opencl:P:D or reference", CLI_TEXT, offsetof(lesson_options, device)},
    {"step", NULL, "wait for a key between steps", CLI_FLAG, offsetof(lesson_options, step)},
    {"color", "auto|always|never", "auto: on a terminal, unless NO_COLOR is set", CLI_CHOICE, offsetof(lesson_options, color)},
    {"json", "FILE|-", "all numbers, and what is shown, as JSON", CLI_TEXT, offsetof(lesson_options, json)},
    {"html", "FILE|FOLDER", "a page to play with in a browser; of the whole course, a folder of them", CLI_TEXT,
     offsetof(lesson_options, html)},
    PARAMETER("text", "WORDS", "your own words; their vectors are drawn at random", CLI_TEXT, text),
    PARAMETER("lengths", "N,...", "lengths of the experiment", CLI_INTEGERS, lengths, .minimum = 1, .maximum = 4096),
    PARAMETER("seed", "N", "of the random numbers", CLI_INTEGER, seed, .minimum = 0, .maximum = UINT32_MAX),
    PARAMETER("pairs", "N", "pairs of sentences that are averaged", CLI_INTEGER, pairs, .minimum = 1, .maximum = 1000),
    PARAMETER("forget-bias", "B", "of the LSTM whose forget gate is held open", CLI_REAL, forget_bias),
    PARAMETER("dim", "N", "width of the vectors of the experiment", CLI_INTEGER, dim, .minimum = 1, .maximum = 1024),
    {NULL},
};
/* clang-format on */

static const char list_details[] = "This lists the lessons. `clattn lesson NAME` runs one, `clattn lesson all` the whole "
                                   "course; `clattn lesson NAME --help` lists the options; `clattn lesson symbols` says what "
                                   "each letter in the formulas means.";
static const char run_details[] =
    "A lesson takes those of --text, --lengths, --seed, --pairs, --forget-bias and --dim that it has a use for, and "
    "refuses the others.";

/* ---- language ------------------------------------------------------------------------------------------------------ */

static doc_language find_language(cli_integer asked) {
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    if (asked.given) return (doc_language)asked.value;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL && *value != '\0') return strncmp(value, "zh", 2) == 0 ? DOC_ZH : DOC_EN;
    }
    return DOC_EN;
}

/* ---- list ---------------------------------------------------------------------------------------------------------- */

static int list_main(int argc, char **argv) {
    static const cli_command command = {
        .name = "lesson",
        .summary = "The course, from the recurrence that forgets to the attention that looks back.",
        .options = list_options,
        .details = list_details,
    };
    lesson_options options = {0};
    int exit_code, minutes = 0;
    if (cli_parse(&command, argc, argv, &options, &exit_code) < 0) return exit_code;
    const bool zh = find_language(options.language) == DOC_ZH;
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) {
        minutes += entry->minutes;
        printf("  %-15s %2d %s  ", entry->name, entry->minutes, zh ? "分钟" : "min");
        display_wrap(stdout, zh ? entry->zh : entry->en, TERMINAL_WIDTH, 26, 26);
    }
    printf(zh ? "\n  clattn lesson 名字   上一课；all：全部，约 %d 分钟；symbols：符号表\n"
              : "\n  clattn lesson NAME   run one; all: the whole course, %d min; symbols: what letters mean\n",
           minutes);
    return CLI_SUCCESS;
}

/* ---- symbols ------------------------------------------------------------------------------------------------------- */

static int symbols_main(int argc, char **argv) {
    static const cli_command command = {
        .name = "lesson symbols",
        .summary = "What each letter in the formulas means, and the lesson in which it appears first.",
        .options = list_options,
    };
    enum { SYMBOL_WIDTH = 18, LESSON_WIDTH = 16, INDENT = 2 + SYMBOL_WIDTH + LESSON_WIDTH };
    lesson_options options = {0};
    int exit_code;
    if (cli_parse(&command, argc, argv, &options, &exit_code) < 0) return exit_code;
    const bool zh = find_language(options.language) == DOC_ZH;
    for (const lesson_symbol *symbol = lesson_symbols; symbol->symbol != NULL; symbol++) {
        fputs("  ", stdout);
        display_pad(stdout, symbol->symbol, SYMBOL_WIDTH, false);
        display_pad(stdout, symbol->lesson, LESSON_WIDTH, false);
        display_wrap(stdout, zh ? symbol->zh : symbol->en, TERMINAL_WIDTH, INDENT, INDENT);
    }
    return CLI_SUCCESS;
}

/* ---- names and parameters ------------------------------------------------------------------------------------------ */

static int fail_name(const char *name) {
    const char *names[64];
    size_t count = 0;
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) names[count++] = entry->name;
    const char *nearest = cli_nearest(name, names, count);
    if (nearest != NULL) return cli_fail("lesson", CLI_USAGE, "there is no lesson \"%s\"; did you mean %s?", name, nearest);
    return cli_fail("lesson", CLI_USAGE, "there is no lesson \"%s\"; clattn lesson lists them", name);
}

/* Which parameters were given. */
static unsigned given_parameters(const lesson_parameters *parameters) {
    const bool given[LESSON_PARAMETER_COUNT] = {
        [LESSON_INDEX_LENGTHS] = parameters->lengths.count > 0,
        [LESSON_INDEX_SEED] = parameters->seed.given,
        [LESSON_INDEX_PAIRS] = parameters->pairs.given,
        [LESSON_INDEX_FORGET_BIAS] = parameters->forget_bias.given,
        [LESSON_INDEX_DIM] = parameters->dim.given,
        [LESSON_INDEX_TEXT] = parameters->text != NULL,
    };
    unsigned set = 0;
    for (int i = 0; i < LESSON_PARAMETER_COUNT; i++) set |= given[i] ? 1u << i : 0;
    return set;
}

static const char *const parameter_names[] = {
#define LESSON_X(id, name) name,
    LESSON_PARAMETERS(LESSON_X)
#undef LESSON_X
};

static int check_parameters(const char *command, const lesson_entry *entry, const lesson_parameters *parameters) {
    const unsigned refused = given_parameters(parameters) & ~entry->parameters;
    char taken[128] = "";
    if (refused == 0) return CLI_SUCCESS;
    int first = 0;
    while ((refused >> first & 1) == 0) first++;
    for (int i = 0; i < LESSON_PARAMETER_COUNT; i++) {
        size_t used = strlen(taken);
        if ((entry->parameters >> i & 1) != 0)
            snprintf(taken + used, sizeof taken - used, "%s--%s", used > 0 ? ", " : "", parameter_names[i]);
    }
    if (*taken == '\0')
        return cli_fail(command, CLI_USAGE, "--%s has no effect here: this lesson has no parameters", parameter_names[first]);
    return cli_fail(command, CLI_USAGE, "--%s has no effect here: this lesson takes %s", parameter_names[first], taken);
}

/* Leave those that a lesson of the course has no use for. */
static lesson_parameters narrow_parameters(const lesson_entry *entry, lesson_parameters parameters) {
    const unsigned refused = ~entry->parameters;
    if (refused & LESSON_LENGTHS) parameters.lengths.count = 0;
    if (refused & LESSON_SEED) parameters.seed.given = false;
    if (refused & LESSON_PAIRS) parameters.pairs.given = false;
    if (refused & LESSON_FORGET_BIAS) parameters.forget_bias.given = false;
    if (refused & LESSON_DIM) parameters.dim.given = false;
    if (refused & LESSON_TEXT) parameters.text = NULL;
    return parameters;
}

/* ---- running ------------------------------------------------------------------------------------------------------- */

/* The lessons of one call, which keep their documents until all is written. */
typedef struct course {
    const char *command;
    const lesson_options *options;
    const lesson_entry *first;
    size_t count;
    bool whole; /* all lessons, even of a course that has one */
    clattn_context *context;
    lesson *lessons;
    size_t done; /* to be freed */
} course;

static int open_device(course *course) {
    char error[2048] = "";
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = course->options->device;
    options.error = error;
    options.error_size = sizeof error;
    clattn_status status = clattn_context_create(&options, &course->context);
    return status == CLATTN_OK ? CLI_SUCCESS : cli_fail_status(course->command, status, error);
}

static terminal open_terminal(const lesson_options *options) {
    const bool never = options->color.value == COLOR_NEVER, always = options->color.value == COLOR_ALWAYS;
    return (terminal){
        .out = stdout,
        .colors = never ? TERMINAL_PLAIN : terminal_find_colors(stdout, always),
        .step = options->step,
    };
}

static int run_course(course *course) {
    const lesson_options *options = course->options;
    const bool shown = options->html == NULL && (options->json == NULL || strcmp(options->json, "-") != 0);
    const doc_language language = find_language(options->language);
    terminal terminal = open_terminal(options);
    bool going = true;
    for (size_t i = 0; i < course->count; i++) {
        lesson *lesson = &course->lessons[course->done++];
        const lesson_parameters parameters = narrow_parameters(&course->first[i], options->parameters);
        if (!lesson_run(lesson, &course->first[i], course->context, language, &parameters))
            return cli_fail(course->command, lesson->exit_code, "%s", lesson->error);
        if (shown && going && i > 0) putchar('\n');
        going = going && (!shown || terminal_print(&terminal, &lesson->doc));
        if (!going && options->json == NULL && options->html == NULL) break;
    }
    return CLI_SUCCESS;
}

#ifdef CLATTN_HAVE_CJSON
static cJSON *course_json(const course *course) {
    cJSON *root = cJSON_CreateObject();
    bool whole = cJSON_AddStringToObject(root, "schema", "clattn-lesson-1") != NULL &&
                 cJSON_AddStringToObject(root, "version", clattn_version()) != NULL;
    for (size_t i = 0; whole && i < course->done; i++) whole = figures_json(root, &course->lessons[i].figures);
    cJSON *documents = whole ? cJSON_AddArrayToObject(root, "lessons") : NULL;
    whole = whole && documents != NULL;
    for (size_t i = 0; whole && i < course->done; i++) {
        cJSON *document = doc_json(&course->lessons[i].doc);
        whole = document != NULL && cJSON_AddItemToArray(documents, document);
    }
    if (whole) return root;
    cJSON_Delete(root);
    return NULL;
}

static bool open_json(output_set *outputs, const course *course) {
    const char *path = course->options->json;
    return path == NULL || json_write(outputs, path, course_json(course));
}

static bool open_pages(output_set *outputs, const course *course) {
    const char *path = course->options->html;
    if (path == NULL) return true;
    return course->whole ? course_pages_write(outputs, path, course->lessons, course->count)
                         : course_page_write(outputs, path, course->lessons);
}

/* Name what is to be opened, where nothing else is printed. */
static void say_page(const course *course) {
    const char *html = course->options->html, *json = course->options->json;
    if (html == NULL || strcmp(html, "-") == 0 || (json != NULL && strcmp(json, "-") == 0)) return;
    printf("%s%s\n", html, course->whole ? "/index.html" : "");
}

/* All files that were asked for, or none. */
static int write_files(const course *course) {
    output_set outputs = {0};
    if (!open_json(&outputs, course)) return cli_fail(course->command, CLI_USAGE, "--json: %s", outputs.error);
    if (!open_pages(&outputs, course)) return cli_fail(course->command, CLI_USAGE, "--html: %s", outputs.error);
    if (!output_commit(&outputs)) return cli_fail(course->command, CLI_FAILURE, "%s", outputs.error);
    say_page(course);
    return CLI_SUCCESS;
}
#else
static int write_files(const course *course) {
    (void)course; /* --json and --html were refused */
    return CLI_SUCCESS;
}
#endif

static int teach(course *course) {
    course->lessons = calloc(course->count, sizeof *course->lessons);
    if (course->lessons == NULL) return cli_fail(course->command, CLI_FAILURE, "out of memory");
    int exit_code = open_device(course);
    if (exit_code == CLI_SUCCESS) exit_code = run_course(course);
    if (exit_code == CLI_SUCCESS) exit_code = write_files(course);
    for (size_t i = 0; i < course->done; i++) lesson_free(&course->lessons[i]);
    free(course->lessons);
    clattn_context_destroy(course->context);
    return exit_code;
}

static size_t count_lessons(void) {
    size_t count = 0;
    while (lesson_table[count].name != NULL) count++;
    return count;
}

static int check_options(const char *command, const lesson_options *options) {
    if (options->json != NULL && json_missing() != NULL) return cli_fail(command, CLI_USAGE, "--json: %s", json_missing());
    if (options->html != NULL && json_missing() != NULL)
        return cli_fail(command, CLI_USAGE, "--html needs JSON, and %s", json_missing());
    if (options->html != NULL && options->step) return cli_fail(command, CLI_USAGE, "--step and --html do not go together");
    if (options->html != NULL && options->json != NULL && output_same_file(options->html, options->json))
        return cli_fail(command, CLI_USAGE, "--html and --json name the same file");
    if (options->step && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
        return cli_fail(command, CLI_USAGE, "--step waits for keys, and needs a terminal for input and output");
    return CLI_SUCCESS;
}

int clattn_lesson_main(int argc, char **argv) {
    if (argc < 2 || *argv[1] == '-') return list_main(argc, argv);
    if (strcmp(argv[1], "symbols") == 0) return symbols_main(argc - 1, argv + 1);
    const bool all = strcmp(argv[1], "all") == 0;
    const lesson_entry *entry = all ? lesson_table : lesson_find(argv[1]);
    if (entry == NULL) return fail_name(argv[1]);

    char name[64];
    snprintf(name, sizeof name, "lesson %s", argv[1]);
    const cli_command command = {
        .name = name, .summary = all ? "The whole course." : entry->en, .options = run_options, .details = run_details};
    lesson_options options = {0};
    int exit_code;
    if (cli_parse(&command, argc - 1, argv + 1, &options, &exit_code) < 0) return exit_code;
    exit_code = check_options(name, &options);
    if (exit_code == CLI_SUCCESS && !all) exit_code = check_parameters(name, entry, &options.parameters);
    if (exit_code != CLI_SUCCESS) return exit_code;
    course course = {.command = name, .options = &options, .first = entry, .count = all ? count_lessons() : 1, .whole = all};
    return teach(&course);
}
