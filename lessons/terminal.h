/* A document on a terminal, or as plain text: at most 80 columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_TERMINAL_H
#define CLATTN_LESSONS_TERMINAL_H

#include <stdio.h>

#include "doc.h"

enum { TERMINAL_WIDTH = 80 };

typedef enum terminal_colors { TERMINAL_PLAIN, TERMINAL_256, TERMINAL_TRUE } terminal_colors;

typedef struct terminal {
    FILE *out;
    terminal_colors colors;
    doc_language language;
    bool step;    /* wait for a key between steps */
    int at;       /* the step that is shown */
    int captions; /* those printed, which are numbered */
} terminal;

/* The colours that a stream takes: none unless it is a terminal, or with NO_COLOR; `forced` takes them anyway. */
terminal_colors terminal_find_colors(FILE *, bool forced);
/* False: the reader asked to stop. */
bool terminal_print(terminal *, const doc *);

/* ---- between its parts --------------------------------------------------------------------------------------------- */

const char *terminal_say(const terminal *, const char *zh, const char *en);
/* Escape sequences; nothing when plain. */
void terminal_bold(const terminal *);
void terminal_reset(const terminal *);
/* Text in the colour of a role. */
void terminal_role(const terminal *, doc_role);
/* Background of viridis at `part` from 0 to 1, and text that can be read on it. */
void terminal_heat(const terminal *, double part);
/* Go on to a step, after a key when stepping. False: stop. */
bool terminal_reach(terminal *, int step);
/* What a step does, numbered in the order in which steps are told. */
void terminal_caption(terminal *, const char *text, int indent);
/* A mark of its own for each series. */
const char *terminal_mark(size_t series);

bool terminal_matrix(terminal *, const doc_block *);
void terminal_plot(const terminal *, const doc_block *);
void terminal_space(const terminal *, const doc_block *);
void terminal_graph(const terminal *, const doc_block *);
void terminal_table(const terminal *, size_t rows, size_t cols, const char *const *head, const char *const *cells);

#endif
