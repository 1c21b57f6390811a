/* The largest of each row of a map, and as many digits as it takes to see which it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doc.h"

enum {
    MOST_DECIMALS = 7,
    MAP_DECIMALS = 4, /* at most, in all cells of a map */
    NUMBER_SIZE = 64,
    MOST_CELLS = 1024, /* that are written as numbers */
};

/* What rounding in another order may change of a number near 1, four times over. */
static const double ROUNDING = 4 * 1.1920929e-7;

bool doc_alike(double a, double b) {
    return a == b || fabs(a - b) <= ROUNDING * fmax(fabs(a), fabs(b));
}

static bool written_alike(double a, double b, int decimals) {
    char texts[2][NUMBER_SIZE];
    snprintf(texts[0], NUMBER_SIZE, "%.*f", decimals, a);
    snprintf(texts[1], NUMBER_SIZE, "%.*f", decimals, b);
    return strcmp(texts[0], texts[1]) == 0;
}

int doc_decimals_apart(double a, double b, int decimals) {
    while (decimals < MOST_DECIMALS && written_alike(a, b, decimals)) decimals++;
    return decimals;
}

/* ---- a row --------------------------------------------------------------------------------------------------------- */

typedef struct row {
    int64_t count;
    const double *values;
    const bool *masked; /* NULL: none */
    bool *top;
} row;

static bool is_live(const row *row, int64_t j) {
    return isfinite(row->values[j]) && (row->masked == NULL || !row->masked[j]);
}

/* Mark the largest; none where all are. */
static void mark_largest(const row *row) {
    double most = -INFINITY;
    int64_t live = 0, tops = 0;
    for (int64_t j = 0; j < row->count; j++)
        if (is_live(row, j) && row->values[j] > most) most = row->values[j];
    for (int64_t j = 0; j < row->count; j++) {
        live += is_live(row, j);
        row->top[j] = is_live(row, j) && doc_alike(row->values[j], most);
        tops += row->top[j];
    }
    for (int64_t j = 0; tops == live && j < row->count; j++) row->top[j] = false;
}

/* How many decimals, `usual` or more, it takes for the rest of a row to be written otherwise than its largest. */
static int decimals_needed(const row *row, int usual) {
    int64_t largest = 0;
    int needed = usual;
    while (largest < row->count && !row->top[largest]) largest++;
    if (largest == row->count) return usual;
    for (int64_t j = 0; j < row->count; j++)
        if (!row->top[j] && is_live(row, j)) needed = doc_decimals_apart(row->values[largest], row->values[j], needed);
    return needed;
}

/* ---- a document ---------------------------------------------------------------------------------------------------- */

static void tell_apart(arena *arena, doc_matrix *matrix) {
    const int64_t cells = matrix->rows * matrix->cols;
    bool *top = ARENA_NEW(arena, bool, cells);
    int needed = matrix->decimals;
    for (int64_t i = 0; i < matrix->rows; i++) {
        const int64_t first = i * matrix->cols;
        const row row = {matrix->cols, matrix->values + first, matrix->masked != NULL ? matrix->masked + first : NULL,
                         top + first};
        mark_largest(&row);
        needed = decimals_needed(&row, needed);
    }
    matrix->top = top;
    if (cells <= MOST_CELLS && matrix->decimals < MAP_DECIMALS)
        matrix->decimals = needed < MAP_DECIMALS ? needed : MAP_DECIMALS;
}

/* Where the question is who is looked at most. */
static bool has_tops(const doc_matrix *matrix) {
    return (matrix->role == DOC_ROLE_SCORES || matrix->role == DOC_ROLE_WEIGHTS) && matrix->cols > 1 && !matrix->is_ledger;
}

/* Maps that share a scale, and so are compared, have the decimals of the one that has most. */
static void share_decimals(const doc *doc, doc_matrix *matrix) {
    for (const doc_block *block = doc->first; block != NULL; block = block->next) {
        const doc_matrix *other = block->matrix;
        if (block->kind == DOC_MATRIX && has_tops(other) && other->scale_group != NULL &&
            strcmp(other->scale_group, matrix->scale_group) == 0 && other->decimals > matrix->decimals)
            matrix->decimals = other->decimals;
    }
}

void doc_tell_apart(doc *doc) {
    for (const doc_block *block = doc->first; block != NULL; block = block->next)
        if (block->kind == DOC_MATRIX && has_tops(block->matrix)) tell_apart(doc->arena, block->matrix);
    for (const doc_block *block = doc->first; block != NULL; block = block->next)
        if (block->kind == DOC_MATRIX && has_tops(block->matrix) && block->matrix->scale_group != NULL)
            share_decimals(doc, block->matrix);
}
