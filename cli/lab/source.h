/* A student's file, and what can be read in it without a compiler.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_LAB_SOURCE_H
#define CLATTN_CLI_LAB_SOURCE_H

#include "contract.h"

enum { LAB_MAX_SOURCE = 64 << 10 };

typedef struct lab_source {
    const char *path;
    char *text;
    size_t length;
    lab_grid grid;
    int include_line, asm_line; /* the first line with #include or inline assembly; 0: none */
} lab_source;

/* Read the file. On failure `why` holds a sentence, and there is nothing to free. */
bool lab_source_read(lab_source *, const char *path, char *why, size_t why_size);
void lab_source_free(lab_source *);

/* Fill source->grid from the line "// lab: local 16 16 tile 64 64", or from the step where there is none. On failure *line is
 * the line and `why` a sentence. */
bool lab_source_grid(lab_source *, const lab_step *, int *line, char *why, size_t why_size);

/* The first line that holds the word and is not a comment's; 0: none. */
int lab_source_find(const lab_source *, const char *word);
/* A copy of a line, without the white space around it; "" where there is no such line. */
void lab_source_line(const lab_source *, int line, char *text, size_t size);

#endif
