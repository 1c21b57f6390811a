/* SPDX-License-Identifier: Apache-2.0 */
#include "figures.h"

#include <inttypes.h>
#include <string.h>

static figure *add(figures *figures, const char *path, int rank, int64_t rows, int64_t cols) {
    figure *figure = ARENA_NEW(figures->arena, struct figure, 1);
    figure->path = arena_copy(figures->arena, path);
    figure->rank = rank;
    figure->size[0] = rows;
    figure->size[1] = cols;
    if (figures->last != NULL)
        figures->last->next = figure;
    else
        figures->first = figure;
    return figures->last = figure;
}

static void add_numbers(figures *figures, const char *path, int rank, int64_t rows, int64_t cols, const double *values) {
    size_t bytes = (size_t)(rows * cols) * sizeof *values;
    add(figures, path, rank, rows, cols)->numbers = arena_grow(figures->arena, values, bytes, bytes);
}

static void add_texts(figures *figures, const char *path, int rank, int64_t count, const char *const *texts) {
    figure *figure = add(figures, path, rank, count, 1);
    figure->texts = ARENA_NEW(figures->arena, const char *, count);
    for (int64_t i = 0; i < count; i++) figure->texts[i] = arena_copy(figures->arena, texts[i]);
}

void figures_number(figures *figures, const char *path, double value) {
    add_numbers(figures, path, 0, 1, 1, &value);
}

void figures_text(figures *figures, const char *path, const char *text) {
    add_texts(figures, path, 0, 1, &text);
}

void figures_array(figures *figures, const char *path, int64_t count, const double *values) {
    add_numbers(figures, path, 1, count, 1, values);
}

void figures_texts(figures *figures, const char *path, int64_t count, const char *const *texts) {
    add_texts(figures, path, 1, count, texts);
}

void figures_mat(figures *figures, const char *path, mat m) {
    add_numbers(figures, path, 2, m.rows, m.cols, mat_doubles(figures->arena, m));
}

void figures_at(figures *figures, const char *path, int64_t key, double value) {
    figures_number(figures, arena_format(figures->arena, "%s/%" PRId64, path, key), value);
}

const figure *figures_find(const figures *figures, const char *path) {
    const figure *figure = figures->first;
    while (figure != NULL && strcmp(figure->path, path) != 0) figure = figure->next;
    return figure;
}
