/* What errors look like, and what usually makes them so.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A cause is named only where its signature fits: a guess that is wrong costs a student an hour.
 */
#include <stdio.h>

#include "run.h"

/* Of the sizes that a kernel may work in, the largest whose last, incomplete part begins at `first`; 0: none does. */
static int tile_of_tail(int first, int extent, const int *own, int own_count) {
    static const int usual[] = {64, 32, 16, 8, 4};
    for (int i = 0; i < own_count + (int)(sizeof usual / sizeof *usual); i++) {
        const int tile = i < own_count ? own[i] : usual[i - own_count];
        if (tile > 1 && first > 0 && first % tile == 0 && first + tile > extent && extent % tile != 0) return tile;
    }
    return 0;
}

static bool find_tail(const lab_run *run, const lab_trial *trial, const lab_errors *errors, char *text, size_t size) {
    const lab_grid *grid = &run->source.grid;
    const bool two = run->step->dimensions == 2;
    const int by_rows[] = {two ? grid->tile[1] : grid->tile[0], two ? grid->local[1] : grid->local[0]};
    const int by_columns[] = {two ? grid->tile[0] : grid->local[0], grid->local[0]};
    const int row_tile = tile_of_tail(errors->least_row, trial->shape.m, by_rows, 2);
    const int column_tile = tile_of_tail(errors->least_column, trial->shape.n, by_columns, 2);
    if (column_tile > 0)
        snprintf(text, size, lab_words("a tail: all is right up to column %d, where the last, incomplete part of %d begins"),
                 errors->least_column, column_tile);
    else if (row_tile > 0)
        snprintf(text, size, lab_words("a tail: all is right up to row %d, where the last, incomplete part of %d begins"),
                 errors->least_row, row_tile);
    return column_tile > 0 || row_tile > 0;
}

void lab_find_cause(const lab_run *run, const lab_trial *trial, const lab_errors *errors, char *text, size_t size) {
    text[0] = 0;
    if (errors->zero == errors->checked)
        snprintf(text, size, "%s", lab_words("every element is zero"));
    else if (find_tail(run, trial, errors, text, size))
        return;
    else if (trial->shape.data == LAB_LARGE && errors->not_a_number == errors->wrong)
        snprintf(text, size, "%s",
                 lab_words("a missing maximum: NaN with large scores only; subtract the row's maximum before exp"));
    else if (trial->shape.data == LAB_MASKED && errors->not_a_number == errors->wrong)
        snprintf(text, size, "%s", lab_words("NaN with masked scores only: -INFINITY minus -INFINITY, or 0 times INFINITY"));
    else if (errors->unwritten == errors->checked)
        snprintf(text, size, "%s", lab_words("nothing is written"));
    else if (errors->unwritten == errors->wrong)
        snprintf(text, size, "%s", lab_words("what is wrong was never written"));
}
