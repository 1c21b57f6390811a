/* Files that appear whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each file of a set is written under a temporary name beside its target. Committing the set flushes all of them to disk and
 * then renames them; should anything fail before or between, the targets are as they were and no temporary is left. A target
 * that exists and is no regular file (/dev/null, a pipe) is written directly; "-" is standard output.
 *
 *     output_set outputs = {0};
 *     FILE *file = output_open(&outputs, "figures.json");
 *     if (file != NULL) fprintf(file, ...);
 *     if (file == NULL || !output_commit(&outputs)) return cli_fail("bench", CLI_FAILURE, "%s", outputs.error);
 *
 * After a failure the set is empty again and `error` is a sentence.
 */
#ifndef CLATTN_CLI_OUTPUT_H
#define CLATTN_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct output_file {
    FILE *stream;
    char *path;      /* as the user wrote it */
    char *target;    /* links resolved; NULL: written directly */
    char *temporary; /* NULL: written directly */
    char *backup;    /* what the target was, while others are still to be renamed; NULL: nothing */
} output_file;

enum { OUTPUT_MAX_FILES = 32 };

typedef struct output_set {
    output_file files[OUTPUT_MAX_FILES];
    size_t count;
    char error[512];
} output_set;

/* Write errors need no check at every call: output_commit finds them. NULL on failure, with the whole set discarded. */
FILE *output_open(output_set *set, const char *path);
/* True: every file is in place. False: none is. */
bool output_commit(output_set *set);
/* Forget the files; temporaries are removed. An empty set is accepted. */
void output_discard(output_set *set);

/* Whether two paths name one file, through links too; also when it does not exist yet. */
bool output_same_file(const char *a, const char *b);

#endif
