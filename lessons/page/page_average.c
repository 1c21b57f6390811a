/* SPDX-License-Identifier: Apache-2.0 */
#include "page_average.h"

static int64_t block_size(int64_t count) {
    return (count + PAGE_MAP_MAX - 1) / PAGE_MAP_MAX;
}

static int64_t block_count(int64_t count, int64_t size) {
    return (count + size - 1) / size;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* "first … last" of each block. */
static const char *const *block_labels(arena *arena, const char *const *labels, int64_t count, int64_t size) {
    if (size == 1) return labels;
    const int64_t blocks = block_count(count, size);
    const char **out = ARENA_NEW(arena, const char *, blocks);
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t first = i * size, last = least(first + size, count) - 1;
        out[i] = labels != NULL ? arena_format(arena, "%s … %s", labels[first], labels[last])
                                : arena_format(arena, "%lld–%lld", (long long)first, (long long)last);
    }
    return out;
}

/* The mean of what is a number in a block. False: nothing is. */
static bool block_mean(const doc_matrix *from, const doc_matrix *to, int64_t row, int64_t col, double *mean) {
    const int64_t first_row = row * to->averaged[0], last_row = least(first_row + to->averaged[0], from->rows);
    const int64_t first_col = col * to->averaged[1], last_col = least(first_col + to->averaged[1], from->cols);
    int64_t count = 0;
    *mean = 0;
    for (int64_t i = first_row; i < last_row; i++)
        for (int64_t j = first_col; j < last_col; j++) {
            if (from->masked != NULL && from->masked[i * from->cols + j]) continue;
            *mean += from->values[i * from->cols + j];
            count++;
        }
    if (count > 0) *mean /= (double)count;
    return count > 0;
}

static doc_matrix *average(arena *arena, const doc_matrix *from) {
    doc_matrix *to = ARENA_NEW(arena, doc_matrix, 1);
    *to = *from;
    to->averaged[0] = block_size(from->rows);
    to->averaged[1] = block_size(from->cols);
    to->rows = block_count(from->rows, to->averaged[0]);
    to->cols = block_count(from->cols, to->averaged[1]);
    to->row_labels = block_labels(arena, from->row_labels, from->rows, to->averaged[0]);
    to->col_labels = block_labels(arena, from->col_labels, from->cols, to->averaged[1]);
    to->rule = DOC_RULE_GIVEN;
    to->left = to->right = NULL;
    to->captions = NULL;
    to->top = NULL;
    double *values = ARENA_NEW(arena, double, to->rows * to->cols);
    bool *masked = ARENA_NEW(arena, bool, to->rows * to->cols);
    for (int64_t i = 0; i < to->rows * to->cols; i++) masked[i] = !block_mean(from, to, i / to->cols, i % to->cols, &values[i]);
    to->values = values;
    to->masked = from->masked != NULL ? masked : NULL;
    return to;
}

doc page_average(const doc *whole) {
    doc copy = *whole;
    doc_block **link = &copy.first;
    for (const doc_block *block = whole->first; block != NULL; block = block->next) {
        doc_block *own = ARENA_NEW(whole->arena, doc_block, 1);
        *own = *block;
        *link = copy.last = own;
        link = &own->next;
        if (block->kind == DOC_MATRIX && (block->matrix->rows > PAGE_MAP_MAX || block->matrix->cols > PAGE_MAP_MAX))
            own->matrix = average(whole->arena, block->matrix);
    }
    return copy;
}
