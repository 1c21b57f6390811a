/* SPDX-License-Identifier: Apache-2.0 */
#include "doc.h"

#include <math.h>

#include <string.h>

const char *doc_role_name(doc_role role) {
    static const char *const names[] = {
#define DOC_X(id, name) name,
        DOC_ROLES(DOC_X)
#undef DOC_X
    };
    return names[role];
}

const char *doc_rule_name(doc_rule rule) {
    static const char *const names[] = {
#define DOC_X(id, name) name,
        DOC_RULES(DOC_X)
#undef DOC_X
    };
    return names[rule];
}

const char *doc_kind_name(doc_kind kind) {
    static const char *const names[] = {
#define DOC_X(id, name) name,
        DOC_KINDS(DOC_X)
#undef DOC_X
    };
    return names[kind];
}

/* Format zh or en, whichever the document is in, into `text`. */
#define DOC_FORMAT(doc_, text)                                                                                                 \
    do {                                                                                                                       \
        va_list args;                                                                                                          \
        va_start(args, en);                                                                                                    \
        (text) = arena_vformat((doc_)->arena, (doc_)->language == DOC_ZH ? zh : en, args);                                     \
        va_end(args);                                                                                                          \
    } while (0)

const char *doc_text(const doc *doc, const char *zh, const char *en, ...) {
    const char *text;
    DOC_FORMAT(doc, text);
    return text;
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

static doc_block *add(doc *doc, doc_kind kind, const char *id) {
    doc_block *block = ARENA_NEW(doc->arena, doc_block, 1);
    block->kind = kind;
    block->id = id;
    block->step = doc->step;
    if (doc->last != NULL)
        doc->last->next = block;
    else
        doc->first = block;
    doc->last = block;
    return block;
}

static doc_block *add_words(doc *doc, doc_kind kind, const char *text) {
    doc_block *block = add(doc, kind, arena_format(doc->arena, "%s-%d", doc_kind_name(kind), ++doc->words));
    block->text = text;
    return block;
}

void doc_heading(doc *doc, const char *zh, const char *en) {
    add_words(doc, DOC_HEADING, doc->language == DOC_ZH ? zh : en);
}

void doc_say(doc *doc, const char *zh, const char *en, ...) {
    const char *text;
    DOC_FORMAT(doc, text);
    add_words(doc, DOC_PARAGRAPH, text);
}

void doc_formula(doc *doc, const char *formula) {
    add_words(doc, DOC_FORMULA, formula);
}

void doc_ask(doc *doc, const char *question, const char *answer) {
    add_words(doc, DOC_QUESTION, question)->answer = answer;
}

void doc_correct(doc *doc, const char *belief, const char *fact) {
    add_words(doc, DOC_MISCONCEPTION, belief)->answer = fact;
}

void doc_step(doc *doc, const char *zh, const char *en, ...) {
    const char *text;
    DOC_FORMAT(doc, text);
    doc->step++;
    add_words(doc, DOC_CAPTION, text);
}

/* ---- figures ------------------------------------------------------------------------------------------------------- */

static doc_block *add_figure(doc *doc, doc_kind kind, const char *id, const char *title) {
    doc_block *block = add(doc, kind, id);
    block->title = title;
    return block;
}

doc_matrix *doc_add_matrix(doc *doc, const char *id, const char *title, int64_t rows, int64_t cols) {
    doc_matrix *matrix = ARENA_NEW(doc->arena, doc_matrix, 1);
    add_figure(doc, DOC_MATRIX, id, title)->matrix = matrix;
    matrix->rows = rows;
    matrix->cols = cols;
    matrix->decimals = 2;
    matrix->factor = 1;
    return matrix;
}

doc_plot *doc_add_plot(doc *doc, const char *id, const char *title) {
    doc_plot *plot = ARENA_NEW(doc->arena, doc_plot, 1);
    add_figure(doc, DOC_PLOT, id, title)->plot = plot;
    plot->decimals = 3;
    return plot;
}

doc_space *doc_add_space(doc *doc, const char *id, const char *title) {
    doc_space *space = ARENA_NEW(doc->arena, doc_space, 1);
    add_figure(doc, DOC_SPACE, id, title)->space = space;
    return space;
}

doc_graph *doc_add_graph(doc *doc, const char *id, const char *title) {
    doc_graph *graph = ARENA_NEW(doc->arena, doc_graph, 1);
    add_figure(doc, DOC_GRAPH, id, title)->graph = graph;
    return graph;
}

doc_lanes *doc_add_lanes(doc *doc, const char *id, const char *title) {
    doc_lanes *lanes = ARENA_NEW(doc->arena, doc_lanes, 1);
    add_figure(doc, DOC_LANES, id, title)->lanes = lanes;
    return lanes;
}

void doc_add_table(doc *doc, const char *id, const char *title, size_t rows, size_t cols, const char *const *head,
                   const char *const *cells) {
    doc_table *table = ARENA_NEW(doc->arena, doc_table, 1);
    add_figure(doc, DOC_TABLE, id, title)->table = table;
    table->rows = rows;
    table->cols = cols;
    table->head = arena_grow(doc->arena, head, cols * sizeof *head, cols * sizeof *head);
    table->cells = arena_grow(doc->arena, cells, rows * cols * sizeof *cells, rows * cols * sizeof *cells);
}

void doc_summary(doc *doc, const char *zh, const char *en, ...) {
    DOC_FORMAT(doc, doc->last->summary);
}

void doc_add_series(doc *doc, doc_plot *plot, const char *name, doc_role role, size_t count, const double *x, const double *y) {
    size_t bytes = count * sizeof *x;
    plot->series[plot->series_count++] = (doc_series){
        .name = name,
        .role = role,
        .count = count,
        .x = arena_grow(doc->arena, x, bytes, bytes),
        .y = arena_grow(doc->arena, y, bytes, bytes),
    };
}

void doc_add_spread(doc *doc, doc_plot *plot, const double *low, const double *high) {
    doc_series *series = &plot->series[plot->series_count - 1];
    const size_t bytes = series->count * sizeof *low;
    series->low = arena_grow(doc->arena, low, bytes, bytes);
    series->high = arena_grow(doc->arena, high, bytes, bytes);
}

/* Where a matrix is least and greatest. */
static const char *describe_matrix(const doc *doc, const doc_matrix *matrix) {
    const int64_t count = matrix->rows * matrix->cols;
    int64_t least = -1, greatest = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(matrix->values[i]) || (matrix->masked != NULL && matrix->masked[i])) continue;
        if (least < 0 || matrix->values[i] < matrix->values[least]) least = i;
        if (greatest < 0 || matrix->values[i] > matrix->values[greatest]) greatest = i;
    }
    if (least < 0)
        return doc_text(doc, "%lld 行 %lld 列，没有一个有限的数。", "%lld rows, %lld columns, no number that is finite.",
                        (long long)matrix->rows, (long long)matrix->cols);
    return doc_text(doc, "%lld 行 %lld 列，从 %.*f 到 %.*f。", "%lld rows, %lld columns, from %.*f to %.*f.",
                    (long long)matrix->rows, (long long)matrix->cols, matrix->decimals, matrix->values[least], matrix->decimals,
                    matrix->values[greatest]);
}

const char *doc_describe(const doc *doc, const doc_block *block) {
    if (block->summary != NULL) return block->summary;
    switch (block->kind) {
    case DOC_MATRIX:
        return describe_matrix(doc, block->matrix);
    case DOC_TABLE:
        return doc_text(doc, "%zu 行 %zu 列的表。", "A table of %zu rows and %zu columns.", block->table->rows,
                        block->table->cols);
    default:
        return block->title;
    }
}

/* ---- growth -------------------------------------------------------------------------------------------------------- */

int doc_growth_steps(const doc_matrix *matrix) {
    switch (matrix->growth) {
    case DOC_WHOLE:
        return 0;
    case DOC_BY_ROW:
        return (int)matrix->rows;
    case DOC_BY_CELL:
        return (int)(matrix->rows * matrix->cols);
    }
    return 0;
}

void doc_grow(doc *doc, doc_matrix *matrix, doc_growth growth, const char *const *captions) {
    matrix->growth = growth;
    int steps = doc_growth_steps(matrix);
    if (captions != NULL)
        matrix->captions = arena_grow(doc->arena, captions, (size_t)steps * sizeof *captions, (size_t)steps * sizeof *captions);
    doc->step += steps;
}

void doc_grow_together(doc *doc, doc_matrix *matrix, doc_growth growth) {
    matrix->growth = growth;
    doc->last->step = doc->step - doc_growth_steps(matrix);
}

int doc_cell_step(const doc_block *block, int64_t row, int64_t col) {
    const doc_matrix *matrix = block->matrix;
    if (matrix->growth == DOC_WHOLE) return block->step;
    return block->step + 1 + (int)(matrix->growth == DOC_BY_ROW ? row : row * matrix->cols + col);
}
