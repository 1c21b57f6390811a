/* A lesson as a document: blocks in the order in which they are read, each with an id that does not change.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is shown, never how: the terminal (terminal.h), JSON (doc_json.h) and pages are made from the same document. It is in
 * one language. A function that takes `zh, en` formats the one that the document is in with the arguments that follow.
 *
 * Steps: a document starts at step 0, and doc_step begins the next. What is added is revealed at the step that is current; a
 * matrix may grow by rows or by cells, and then takes a step for each of them.
 */
#ifndef CLATTN_LESSONS_DOC_H
#define CLATTN_LESSONS_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

typedef enum doc_language { DOC_ZH, DOC_EN } doc_language;

/* What a matrix or a series is. The same role has the same colour and mark everywhere. */
#define DOC_ROLES(ROLE)                                                                                                        \
    ROLE(PLAIN, "plain")                                                                                                       \
    ROLE(X, "x")                                                                                                               \
    ROLE(Q, "q")                                                                                                               \
    ROLE(K, "k")                                                                                                               \
    ROLE(V, "v")                                                                                                               \
    ROLE(SCORES, "scores")                                                                                                     \
    ROLE(WEIGHTS, "weights")                                                                                                   \
    ROLE(OUT, "out")                                                                                                           \
    ROLE(RECURRENCE, "recurrence")                                                                                             \
    ROLE(LSTM, "lstm")

typedef enum doc_role {
#define DOC_X(id, name) DOC_ROLE_##id,
    DOC_ROLES(DOC_X)
#undef DOC_X
        DOC_ROLE_COUNT
} doc_role;

const char *doc_role_name(doc_role role);

/* ---- matrices ------------------------------------------------------------------------------------------------------ */

/* How cell (i, j) of a matrix comes from others: what a page shows with numbers when the cell is pointed at. */
#define DOC_RULES(X)                                                                                                           \
    X(GIVEN, "given")               /* chosen or drawn */                                                                      \
    X(PRODUCT, "product")           /* factor * row i of left · column j of right */                                          \
    X(PRODUCT_ROWS, "product_rows") /* factor * row i of left · row j of right */                                             \
    X(SOFTMAX, "softmax")           /* exp(left(i, j)) / sum over row i */                                                     \
    X(SUM, "sum")                   /* left(i, j) + right(i, j) */                                                             \
    X(TANH, "tanh")                 /* tanh(left(i, j)) */                                                                     \
    X(RECURRENCE, "recurrence")     /* from row i - 1 of itself and row i of left */                                           \
    X(DIFFERENCE, "difference")     /* left(i, j) - right(i, j) */                                                             \
    X(LOG, "log")                   /* log(left(i, j)) */

typedef enum doc_rule {
#define DOC_X(id, name) DOC_RULE_##id,
    DOC_RULES(DOC_X)
#undef DOC_X
        DOC_RULE_COUNT
} doc_rule;

const char *doc_rule_name(doc_rule rule);

typedef enum doc_growth { DOC_WHOLE, DOC_BY_ROW, DOC_BY_CELL } doc_growth;

typedef struct doc_matrix {
    const char *symbol; /* "Q" */
    doc_role role;
    int64_t rows, cols;
    const double *values; /* rows x cols */
    const bool *masked;   /* rows x cols: cells that are no number; NULL: none */
    const bool *top;      /* rows x cols: the largest of its row (doc_tell_apart); NULL: not told */
    const char *const *row_labels, *const *col_labels; /* NULL: numbers */
    const char *row_axis, *col_axis;                   /* "queries"; NULL: nothing to say */
    double low, high;                                  /* ends of the colour scale */
    const char *scale_group;                           /* of the matrices that share the scale; NULL: it is its own */
    bool is_ledger;                                    /* its columns are different things: no colours, no scale */
    int decimals;
    doc_rule rule;
    const char *left, *right; /* ids of the blocks that the rule names */
    double factor;
    doc_growth growth;
    const char *const *captions; /* of each step of growth; NULL: none */
    int64_t averaged[2];         /* rows and columns of which each cell is the mean; 0: none, a cell is itself */
} doc_matrix;

/* ---- plots --------------------------------------------------------------------------------------------------------- */

typedef struct doc_series {
    const char *name;
    doc_role role;
    size_t count;
    const double *x, *y;
    const double *low, *high; /* of each y: where half of what was measured lies between; NULL: not measured */
} doc_series;

typedef enum doc_mark { DOC_LINE, DOC_BARS } doc_mark;

typedef struct doc_axis {
    const char *label; /* with its unit */
    bool logarithmic;
    double low, high; /* both 0: as the data */
} doc_axis;

enum { DOC_MAX_SERIES = 8 };

typedef struct doc_plot {
    doc_mark mark;
    doc_axis x, y;
    size_t series_count;
    doc_series series[DOC_MAX_SERIES];
    const char *const *categories; /* names of x = 0, 1, 2, ... of bars */
    int decimals;                  /* of y */
} doc_plot;

/* ---- tables, points, graphs ---------------------------------------------------------------------------------------- */

typedef struct doc_table {
    size_t rows, cols;
    const char *const *head;  /* cols */
    const char *const *cells; /* rows x cols */
} doc_table;

/* A word in space, and where it goes. */
typedef struct doc_point {
    const char *label;
    double from[3], to[3];
} doc_point;

typedef struct doc_space {
    size_t count;
    const doc_point *points;
    bool arrows; /* from `from` to `to`; else the points stay at `from` */
    const char *axes[3];
} doc_space;

/* What waits for what. Time goes to the right: a node stands in the column of its `step`, the earliest in which it can be
 * computed, and in the row of its `place`; at step 0 stands what is there from the start. Nodes of a row have the same label.
 */
typedef struct doc_node {
    const char *label;
    int lane, place, step;
} doc_node;

typedef struct doc_edge {
    size_t from, to;
} doc_edge;

typedef struct doc_graph {
    size_t node_count, edge_count;
    const doc_node *nodes;
    const doc_edge *edges;
    const char *const *lanes; /* names */
    int lane_count;
} doc_graph;

/* ---- lanes --------------------------------------------------------------------------------------------------------- */

/* Who has done how much of the same words when: a race that has been run, to be replayed. */
typedef struct doc_lane {
    const char *name, *note; /* note: what is to be known of the figure; NULL: nothing */
    doc_role role;
    bool one_by_one; /* words are done one by one, evenly; else all of them at the end */
    int64_t steps;   /* that wait for one another */
    double ms;
} doc_lane;

typedef struct doc_lanes {
    int64_t words;
    double slowed; /* how many times slower than it was it is replayed; below 1, faster */
    size_t count;
    const doc_lane *lanes;
} doc_lanes;

/* ---- blocks -------------------------------------------------------------------------------------------------------- */

#define DOC_KINDS(X)                                                                                                           \
    X(HEADING, "heading")                                                                                                      \
    X(PARAGRAPH, "paragraph")                                                                                                  \
    X(FORMULA, "formula")                                                                                                      \
    X(QUESTION, "question")           /* to predict before it plays; `answer` comes at the end */                              \
    X(MISCONCEPTION, "misconception") /* `text` is what many believe, `answer` what holds */                                   \
    X(CAPTION, "caption")             /* of a step */                                                                          \
    X(MATRIX, "matrix")                                                                                                        \
    X(PLOT, "plot")                                                                                                            \
    X(TABLE, "table")                                                                                                          \
    X(SPACE, "space")                                                                                                          \
    X(GRAPH, "graph")                                                                                                          \
    X(LANES, "lanes")

typedef enum doc_kind {
#define DOC_X(id, name) DOC_##id,
    DOC_KINDS(DOC_X)
#undef DOC_X
        DOC_KIND_COUNT
} doc_kind;

const char *doc_kind_name(doc_kind kind);

typedef struct doc_block {
    struct doc_block *next;
    doc_kind kind;
    const char *id;
    int step;            /* at which it is revealed */
    const char *title;   /* of figures */
    const char *text;    /* of words */
    const char *answer;  /* of questions and misconceptions */
    const char *summary; /* of figures: what they show, for those who do not see them */
    union {
        doc_matrix *matrix;
        doc_plot *plot;
        doc_table *table;
        doc_space *space;
        doc_graph *graph;
        doc_lanes *lanes;
    };
} doc_block;

typedef struct doc {
    arena *arena;
    doc_language language;
    const char *name, *title, *device;
    int minutes;
    doc_block *first, *last;
    int step;  /* the current one; at the end, the last */
    int words; /* blocks of words so far, which number their ids */
} doc;

/* Text in the document's language. */
const char *doc_text(const doc *, const char *zh, const char *en, ...)
    __attribute__((format(printf, 2, 4), format(printf, 3, 4)));

void doc_heading(doc *, const char *zh, const char *en);
void doc_say(doc *, const char *zh, const char *en, ...) __attribute__((format(printf, 2, 4), format(printf, 3, 4)));
/* A formula is the same in every language, and takes at most 76 columns. */
void doc_formula(doc *, const char *formula);
/* The texts of the next two are doc_text's. */
void doc_ask(doc *, const char *question, const char *answer);
void doc_correct(doc *, const char *belief, const char *fact);
/* Begin the next step, with a caption. */
void doc_step(doc *, const char *zh, const char *en, ...) __attribute__((format(printf, 2, 4), format(printf, 3, 4)));

/* Figures. Each returns what the caller fills; id and title are kept as they are. */
doc_matrix *doc_add_matrix(doc *, const char *id, const char *title, int64_t rows, int64_t cols);
doc_plot *doc_add_plot(doc *, const char *id, const char *title);
doc_space *doc_add_space(doc *, const char *id, const char *title);
doc_graph *doc_add_graph(doc *, const char *id, const char *title);
doc_lanes *doc_add_lanes(doc *, const char *id, const char *title);
/* At most 16 columns. Cells are texts of the arena, rows x cols. */
void doc_add_table(doc *, const char *id, const char *title, size_t rows, size_t cols, const char *const *head,
                   const char *const *cells);
/* Of the figure added last. */
void doc_summary(doc *, const char *zh, const char *en, ...) __attribute__((format(printf, 2, 4), format(printf, 3, 4)));

/* The summary of a figure, or where it has none of its own, one made of its numbers. */
const char *doc_describe(const doc *, const doc_block *);

/* A line of a plot. x and y are copied. */
void doc_add_series(doc *, doc_plot *, const char *name, doc_role role, size_t count, const double *x, const double *y);
/* Of the series added last; copied. */
void doc_add_spread(doc *, doc_plot *, const double *low, const double *high);
/* Let a matrix grow from the next step on; each row, or cell, takes one. captions may be NULL. */
void doc_grow(doc *, doc_matrix *, doc_growth growth, const char *const *captions);
/* Let it grow in step with the matrix that began to grow before it, which has as many steps. */
void doc_grow_together(doc *, doc_matrix *, doc_growth growth);
/* How many steps its growth takes. */
int doc_growth_steps(const doc_matrix *);
/* The step at which a cell of it is revealed. */
int doc_cell_step(const doc_block *, int64_t row, int64_t col);

/* ---- largest of rows ----------------------------------------------------------------------------------------------- */

/* Whether single precision does not tell two numbers apart. */
bool doc_alike(double a, double b);
/* How many decimals, `decimals` or more, it takes for two numbers that are not alike to be written differently. */
int doc_decimals_apart(double a, double b, int decimals);
/* In maps of scores and weights, mark the largest of each row, as the numbers are, not as they are written; and where others
 * are written like it, give the whole map more decimals, which tell them apart, four at most: cells of one map are written
 * alike, so that a row can be added up. Once, when the document is whole. */
void doc_tell_apart(doc *);

#endif
