/* Parser and help of a command line, both from the command's table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_WIDTH = 80, HELP_COLUMN = 26, FIRST_CODE = 256 /* what getopt_long returns for the first option: no character */ };

/* ---- messages ---------------------------------------------------------------------------------------------------- */

int cli_fail(const char *command, int exit_code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "clattn %s: ", command);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return exit_code;
}

int cli_fail_status(const char *command, clattn_status status, const char *text) {
    size_t length = text != NULL ? strlen(text) : 0;
    while (length > 0 && text[length - 1] == '\n') length--;
    if (length == 0) return cli_fail(command, cli_exit_code(status), "%s", clattn_status_text(status));
    return cli_fail(command, cli_exit_code(status), "%.*s", (int)length, text);
}

void cli_note(const char *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "clattn %s: note: ", command);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

int cli_exit_code(clattn_status status) {
    switch (status) {
    case CLATTN_OK:
        return CLI_SUCCESS;
    case CLATTN_ERROR_ARGUMENT:
    case CLATTN_ERROR_SHAPE:
    case CLATTN_ERROR_HEADS:
    case CLATTN_ERROR_OVERFLOW:
    case CLATTN_ERROR_ALIAS:
        return CLI_USAGE;
    default:
        return CLI_FAILURE;
    }
}

/* Letters to insert, delete or exchange on the way from a to b; texts longer than the row are simply far. */
static size_t edit_distance(const char *a, const char *b) {
    size_t row[64];
    size_t length = strlen(b);
    if (length >= sizeof row / sizeof *row) return SIZE_MAX;
    for (size_t j = 0; j <= length; j++) row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[length];
}

const char *cli_nearest(const char *word, const char *const *names, size_t count) {
    const char *nearest = NULL;
    size_t least = strlen(word) / 3 + 1; /* farther than that is another word */
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, names[i]);
        if (distance < least || (distance == least && nearest == NULL)) {
            least = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

bool cli_read_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *value) {
    char *end = NULL;
    if (*text != '-' && *text != '+' && (*text < '0' || *text > '9')) return false; /* strtoll would skip blanks */
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < minimum || number > maximum) return false;
    *value = number;
    return true;
}

static bool read_real(const char *text, double *value) {
    char *end = NULL;
    if (*text == '\0' || strchr(" \t\n\v\f\r", *text) != NULL) return false;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

static int64_t integer_minimum(const cli_option *option) {
    return option->minimum == 0 && option->maximum == 0 ? INT64_MIN : option->minimum;
}

static int64_t integer_maximum(const cli_option *option) {
    return option->minimum == 0 && option->maximum == 0 ? INT64_MAX : option->maximum;
}

static int fail_integer(const cli_command *command, const cli_option *option, const char *text) {
    if (option->minimum == 0 && option->maximum == 0)
        return cli_fail(command->name, CLI_USAGE, "--%s wants an integer, not \"%s\"", option->name, text);
    if (option->maximum == INT64_MAX)
        return cli_fail(command->name, CLI_USAGE, "--%s wants an integer of at least %lld, not \"%s\"", option->name,
                        (long long)option->minimum, text);
    return cli_fail(command->name, CLI_USAGE, "--%s wants an integer from %lld to %lld, not \"%s\"", option->name,
                    (long long)option->minimum, (long long)option->maximum, text);
}

static int set_integers(const cli_command *command, const cli_option *option, const char *text, cli_integers *list) {
    const char *rest = text;
    while (rest != NULL) {
        char word[24] = "";
        size_t length = strcspn(rest, ",");
        if (list->count == CLI_MAX_INTEGERS)
            return cli_fail(command->name, CLI_USAGE, "--%s takes at most %d values", option->name, CLI_MAX_INTEGERS);
        if (length < sizeof word) memcpy(word, rest, length);
        if (!cli_read_integer(word, integer_minimum(option), integer_maximum(option), &list->values[list->count]))
            return fail_integer(command, option, text);
        list->count++;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return CLI_SUCCESS;
}

static int set_choice(const cli_command *command, const cli_option *option, const char *text, cli_integer *choice) {
    size_t length = strlen(text);
    int64_t index = 0;
    for (const char *word = option->argument; *word != '\0'; index++) {
        size_t word_length = strcspn(word, "|");
        if (length == word_length && strncmp(word, text, length) == 0) {
            *choice = (cli_integer){true, index};
            return CLI_SUCCESS;
        }
        word += word_length + (word[word_length] == '|');
    }
    return cli_fail(command->name, CLI_USAGE, "--%s wants %s, not \"%s\"", option->name, option->argument, text);
}

static int set_align(const cli_command *command, const cli_option *option, const char *text, cli_align *align) {
    static const struct {
        const char *name;
        clattn_align align;
    } names[] = {
        {"top-left", CLATTN_ALIGN_TOP_LEFT},
        {"bottom-right", CLATTN_ALIGN_BOTTOM_RIGHT},
        {"past", CLATTN_ALIGN_PAST},
    };
    align->given = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].name) == 0) {
            align->align = names[i].align;
            return CLI_SUCCESS;
        }
    }
    align->align = CLATTN_ALIGN_OFFSET;
    if (cli_read_integer(text, INT64_MIN, INT64_MAX, &align->offset)) return CLI_SUCCESS;
    return cli_fail(command->name, CLI_USAGE, "--%s wants top-left, bottom-right, past or an integer, not \"%s\"", option->name,
                    text);
}

static int set_value(const cli_command *command, const cli_option *option, const char *text, void *value) {
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)value = true;
        return CLI_SUCCESS;
    case CLI_TEXT:
        if (*text == '\0') return cli_fail(command->name, CLI_USAGE, "--%s is given an empty text", option->name);
        *(const char **)value = text;
        return CLI_SUCCESS;
    case CLI_INTEGER: {
        cli_integer *integer = value;
        integer->given = cli_read_integer(text, integer_minimum(option), integer_maximum(option), &integer->value);
        return integer->given ? CLI_SUCCESS : fail_integer(command, option, text);
    }
    case CLI_INTEGERS:
        return set_integers(command, option, text, value);
    case CLI_REAL: {
        cli_real *real = value;
        real->given = read_real(text, &real->value);
        if (real->given) return CLI_SUCCESS;
        return cli_fail(command->name, CLI_USAGE, "--%s wants a finite number, not \"%s\"", option->name, text);
    }
    case CLI_CHOICE:
        return set_choice(command, option, text, value);
    case CLI_ALIGN:
        return set_align(command, option, text, value);
    }
    return CLI_USAGE;
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

static size_t option_count(const cli_command *command) {
    size_t count = 0;
    while (command->options != NULL && command->options[count].name != NULL) count++;
    return count;
}

/* Words of `text` from column `column` on, later lines indented to `indent`. */
static void print_wrapped(const char *text, size_t column, size_t indent) {
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column > indent && column + 1 + length > HELP_WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)length, text);
        column += length;
        text += length + strspn(text + length, " ");
    }
    putchar('\n');
}

static void print_option(const char *name, const char *argument, const char *help) {
    int width = printf("  --%s%s%s", name, argument != NULL ? " " : "", argument != NULL ? argument : "");
    if (width + 2 > HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", HELP_COLUMN - width, "");
    print_wrapped(help, HELP_COLUMN, HELP_COLUMN);
}

static void print_help(const cli_command *command) {
    size_t count = option_count(command);
    char usage[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const cli_option *option = &command->options[i];
        if (option->required && used < sizeof usage)
            used += (size_t)snprintf(usage + used, sizeof usage - used, "--%s %s ", option->name, option->argument);
    }
    if (used < sizeof usage)
        snprintf(usage + used, sizeof usage - used, "[option ...] %s", command->operands != NULL ? command->operands : "");
    int indent = printf("usage: clattn %s ", command->name);
    print_wrapped(usage, (size_t)indent, (size_t)indent);
    printf("\n%s\n\n", command->summary);
    for (size_t i = 0; i < count; i++)
        print_option(command->options[i].name, command->options[i].argument, command->options[i].help);
    print_option("help", NULL, "show this");
    if (command->details == NULL) return;
    putchar('\n');
    print_wrapped(command->details, 0, 0);
}

/* ---- parser ------------------------------------------------------------------------------------------------------ */

/* getopt_long refused argv[index]: find out why and say it. */
static int fail_option(const cli_command *command, const char *word, const char *const *names, size_t count) {
    if (optopt > 0 && optopt < FIRST_CODE)
        return cli_fail(command->name, CLI_USAGE, "there is no option -%c: options start with two dashes, see clattn %s --help",
                        optopt, command->name);
    if (optopt >= FIRST_CODE) return cli_fail(command->name, CLI_USAGE, "--%s takes no argument", names[optopt - FIRST_CODE]);
    char name[64] = "";
    size_t length = strcspn(word + 2, "=");
    const char *matches[2];
    size_t match_count = 0;
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word + 2);
    for (size_t i = 0; i < count && match_count < 2; i++) {
        if (strncmp(names[i], name, strlen(name)) == 0) matches[match_count++] = names[i];
    }
    if (match_count == 2)
        return cli_fail(command->name, CLI_USAGE, "--%s is ambiguous: --%s or --%s?", name, matches[0], matches[1]);
    const char *nearest = cli_nearest(name, names, count);
    if (nearest != NULL)
        return cli_fail(command->name, CLI_USAGE, "there is no option --%s; did you mean --%s?", name, nearest);
    return cli_fail(command->name, CLI_USAGE, "there is no option --%s; see clattn %s --help", name, command->name);
}

static int fail_missing(const cli_command *command, const bool *given, size_t count) {
    char list[512] = "";
    size_t used = 0, missing = 0;
    for (size_t i = 0; i < count; i++) {
        if (!command->options[i].required || given[i]) continue;
        missing++;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s--%s", used > 0 ? ", " : "", command->options[i].name);
    }
    if (missing == 0) return CLI_SUCCESS;
    return cli_fail(command->name, CLI_USAGE, "%s %s missing; see clattn %s --help", list, missing == 1 ? "is" : "are",
                    command->name);
}

static int check_operands(const cli_command *command, int argc, char **argv) {
    int count = argc - optind;
    if (count == command->operand_count) return CLI_SUCCESS;
    if (command->operands == NULL)
        return cli_fail(command->name, CLI_USAGE, "\"%s\" belongs to no option; see clattn %s --help", argv[optind],
                        command->name);
    return cli_fail(command->name, CLI_USAGE, "wants %s after the options, not %d argument%s", command->operands, count,
                    count == 1 ? "" : "s");
}

int cli_parse(const cli_command *command, int argc, char **argv, void *values, int *exit_code) {
    struct option accepted[CLI_MAX_OPTIONS + 2] = {{0}};
    const char *names[CLI_MAX_OPTIONS + 1];
    bool given[CLI_MAX_OPTIONS] = {false};
    size_t count = option_count(command);
    for (size_t i = 0; i < count; i++) {
        names[i] = command->options[i].name;
        accepted[i] = (struct option){names[i], command->options[i].kind == CLI_FLAG ? no_argument : required_argument, NULL,
                                      FIRST_CODE + (int)i};
    }
    names[count] = "help";
    accepted[count] = (struct option){"help", no_argument, NULL, FIRST_CODE + (int)count};

    optind = 0; /* start afresh: what glibc, musl and the BSDs all understand */
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, ":", accepted, NULL);
        if (code == -1) break;
        size_t index = (size_t)(code - FIRST_CODE);
        *exit_code = CLI_SUCCESS;
        if (code == ':')
            *exit_code = cli_fail(command->name, CLI_USAGE, "--%s wants an argument", names[optopt - FIRST_CODE]);
        else if (code == '?')
            *exit_code = fail_option(command, argv[optind - 1], names, count + 1);
        else if (index == count)
            print_help(command);
        else if (given[index])
            *exit_code = cli_fail(command->name, CLI_USAGE, "--%s is given twice", names[index]);
        else
            *exit_code = set_value(command, &command->options[index], optarg, (char *)values + command->options[index].offset);
        if (*exit_code != CLI_SUCCESS || index == count) return -1;
        given[index] = true;
    }
    *exit_code = fail_missing(command, given, count);
    if (*exit_code == CLI_SUCCESS) *exit_code = check_operands(command, argc, argv);
    return *exit_code == CLI_SUCCESS ? optind : -1;
}
