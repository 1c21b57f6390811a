/* Command lines: one table for each command, from which its parser and its help are made.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     typedef struct pad_options { const char *out; cli_integer width; bool quiet; } pad_options;
 *     static const cli_option options[] = {
 *         {"out", "FILE", "where to write", CLI_TEXT, offsetof(pad_options, out), .required = true},
 *         {"width", "N", "columns", CLI_INTEGER, offsetof(pad_options, width), .minimum = 1, .maximum = 999},
 *         {"quiet", NULL, "say nothing", CLI_FLAG, offsetof(pad_options, quiet)},
 *         {NULL},
 *     };
 *     static const cli_command command = {"pad", "pad a file", .options = options};
 *
 * `--help` belongs to every command and stands in no table. An option may be shortened as long as it stays unambiguous; given
 * twice it is refused. A mistake is one sentence on stderr that starts with "clattn COMMAND: ".
 */
#ifndef CLATTN_CLI_OPTIONS_H
#define CLATTN_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clattn/clattn.h"

/* Exit codes of the program. */
enum { CLI_SUCCESS = 0, CLI_FAILURE = 1 /* device, memory, disk */, CLI_USAGE = 2 /* bad options or input */ };

typedef enum cli_kind {
    CLI_FLAG,     /* bool */
    CLI_TEXT,     /* const char *, NULL when not given */
    CLI_INTEGER,  /* cli_integer, within [minimum, maximum] */
    CLI_INTEGERS, /* cli_integers, "16,64,256", each within [minimum, maximum] */
    CLI_REAL,     /* cli_real, finite */
    CLI_CHOICE,   /* cli_integer: which of the words of `argument`, "one|two|three" */
    CLI_ALIGN,    /* cli_align: top-left, bottom-right, past or an integer */
} cli_kind;

/* What a .npy file holds, as far as the command may choose. */
typedef enum cli_elements {
    CLI_LIKE_LEADER, /* floats of the type of the command's first file */
    CLI_SINGLE,      /* floats, computed and written in float32 */
    CLI_BIAS,        /* numbers, computed in the one or the other */
    CLI_BOOLEANS,
    CLI_COUNTS, /* integers */
} cli_elements;

enum { CLI_MAX_OPTIONS = 64, CLI_MAX_INTEGERS = 32 };

typedef struct cli_integer {
    bool given;
    int64_t value;
} cli_integer;

typedef struct cli_integers {
    size_t count; /* 0: not given */
    int64_t values[CLI_MAX_INTEGERS];
} cli_integers;

typedef struct cli_real {
    bool given;
    double value;
} cli_real;

typedef struct cli_align {
    bool given;
    clattn_align align;
    int64_t offset; /* for CLATTN_ALIGN_OFFSET */
} cli_align;

typedef struct cli_option {
    const char *name;     /* without its dashes */
    const char *argument; /* as the help shows it: "FILE", "N"; the words of a choice; NULL for a flag */
    const char *help;
    cli_kind kind;
    size_t offset; /* of the value, in the caller's struct */
    bool required;
    int64_t minimum, maximum; /* integers; both 0: any */
    clattn_tensor_id tensor;  /* a .npy file of this tensor: see job.h */
    const char *axes;         /* NULL: no tensor */
    bool output;              /* written, not read */
    bool packed;              /* its view has to be packed */
    bool list;                /* "A.npy,B.npy": parts, one behind another along the first dimension of the tensor */
    cli_elements elements;
} cli_option;

typedef struct cli_command {
    const char *name;          /* "attend", "bench attention" */
    const char *summary;       /* what it does, in a line */
    const cli_option *options; /* ends at a NULL name */
    const char *operands;      /* what follows the options, "A.json B.json"; NULL: nothing */
    int operand_count;         /* exactly so many */
    const char *details;       /* a paragraph below the options in the help; may be NULL */
} cli_command;

/* Fill `values`, a zeroed struct of the caller's, from argv[1] on. Returns the index of the first operand in argv (which is
 * reordered), or -1 when the command is over because help was printed or a mistake was named: *exit_code says which. */
int cli_parse(const cli_command *command, int argc, char **argv, void *values, int *exit_code);

/* "clattn COMMAND: sentence" on stderr; returns exit_code. */
int cli_fail(const char *command, int exit_code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for a remark that stops nothing. */
void cli_note(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A whole decimal integer within [minimum, maximum], and nothing after it. */
bool cli_read_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *value);

/* The name that `word` was probably meant to be, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *names, size_t count);

/* The program's exit code for a status of the library. */
int cli_exit_code(clattn_status status);
/* cli_fail with the library's own words for what went wrong; where it has none (NULL or ""), the status's text. */
int cli_fail_status(const char *command, clattn_status status, const char *text);

#endif
