/* Heat maps: digits in the cells, colours behind them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three forms, the first that fits: cells with their numbers; cells of one column with a digit, tenths of the scale; and the
 * same for averages over blocks of more than 64 words, which is said.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "display.h"
#include "terminal.h"

enum { LABEL_MAX = 24, LABEL_MIN = 14, MAP_MAX = 64, NUMBER_SIZE = 32 };

typedef struct layout {
    terminal *terminal;
    const doc_matrix *matrix;
    int label, cell; /* widths in columns, with the blanks between */
} layout;

/* A label; without one the index, which says nothing when there is but one. */
static const char *label_text(const char *const *labels, int64_t index, int64_t count, char number[NUMBER_SIZE]) {
    if (labels != NULL) return labels[index];
    if (count == 1) return "";
    snprintf(number, NUMBER_SIZE, "%" PRId64, index);
    return number;
}

static bool is_masked(const doc_matrix *matrix, int64_t i, int64_t j) {
    return matrix->masked != NULL && matrix->masked[i * matrix->cols + j];
}

/* A number as it is printed; -0.00 is 0.00. What is masked in a ledger is not there. */
static void format_value(const doc_matrix *matrix, int64_t i, int64_t j, char text[NUMBER_SIZE]) {
    const int decimals = matrix->decimals;
    double value = matrix->values[i * matrix->cols + j];
    if (is_masked(matrix, i, j)) {
        snprintf(text, NUMBER_SIZE, "%s", matrix->is_ledger ? "–" : "·");
        return;
    }
    if (isinf(value)) {
        snprintf(text, NUMBER_SIZE, "%s", value > 0 ? "∞" : "−∞");
        return;
    }
    if (isnan(value)) {
        snprintf(text, NUMBER_SIZE, "NaN");
        return;
    }
    if (fabs(value) < 0.5 * pow(10, -decimals)) value = 0;
    snprintf(text, NUMBER_SIZE, fabs(value) < 1e7 ? "%.*f" : "%.*g", decimals, value);
}

/* 0 to 1 on the colour scale. */
static double scaled(const doc_matrix *matrix, double value) {
    double range = matrix->high - matrix->low;
    return range > 0 ? (value - matrix->low) / range : 0.5;
}

/* ---- with numbers -------------------------------------------------------------------------------------------------- */

static int widest_label(const char *const *labels, int64_t count) {
    char number[NUMBER_SIZE];
    int widest = 0;
    for (int64_t i = 0; i < count; i++) {
        int width = display_width(label_text(labels, i, count, number));
        if (width > widest) widest = width;
    }
    return widest;
}

static int widest_value(const doc_matrix *matrix) {
    char text[NUMBER_SIZE];
    int widest = 0;
    for (int64_t i = 0; i < matrix->rows; i++) {
        for (int64_t j = 0; j < matrix->cols; j++) {
            format_value(matrix, i, j, text);
            int width = display_width(text);
            if (width > widest) widest = width;
        }
    }
    return widest;
}

static int smallest(int a, int b) {
    return a < b ? a : b;
}

/* Whether the cells have room for their numbers; labels are cut where they must be. */
static bool fit(layout *layout) {
    const doc_matrix *matrix = layout->matrix;
    const int symbol = matrix->symbol != NULL ? display_width(matrix->symbol) : 0,
              cols = matrix->cols > 0 ? (int)matrix->cols : 1;
    const int value = widest_value(matrix), wanted = widest_label(matrix->col_labels, matrix->cols);
    int label = widest_label(matrix->row_labels, matrix->rows);
    if (symbol > label) label = symbol;
    if (TERMINAL_WIDTH - smallest(label, LABEL_MAX) - 2 < (value + 1) * cols) label = smallest(label, LABEL_MIN);
    layout->label = smallest(label, LABEL_MAX) + 2;
    layout->cell = smallest((value > wanted ? value : wanted) + 2, (TERMINAL_WIDTH - layout->label) / cols);
    return layout->cell >= value + 1;
}

static void print_head(const layout *layout) {
    const doc_matrix *matrix = layout->matrix;
    FILE *out = layout->terminal->out;
    char number[NUMBER_SIZE];
    terminal_role(layout->terminal, matrix->role);
    display_pad(out, matrix->symbol != NULL ? matrix->symbol : "", layout->label, false);
    terminal_reset(layout->terminal);
    for (int64_t j = 0; j < matrix->cols; j++) {
        display_pad(out, label_text(matrix->col_labels, j, matrix->cols, number), layout->cell - 1, true);
        fputc(' ', out);
    }
    fputc('\n', out);
}

static void print_row(const layout *layout, int64_t i) {
    const doc_matrix *matrix = layout->matrix;
    FILE *out = layout->terminal->out;
    char text[NUMBER_SIZE];
    display_pad(out, label_text(matrix->row_labels, i, matrix->rows, text), layout->label - 2, false);
    fputs("  ", out);
    for (int64_t j = 0; j < matrix->cols; j++) {
        format_value(matrix, i, j, text);
        double value = matrix->values[i * matrix->cols + j];
        if (!matrix->is_ledger && !is_masked(matrix, i, j) && !isnan(value))
            terminal_heat(layout->terminal, scaled(matrix, value));
        display_pad(out, text, layout->cell - 1, true);
        fputc(' ', out);
        terminal_reset(layout->terminal);
    }
    fputc('\n', out);
}

/* ---- a digit a cell ------------------------------------------------------------------------------------------------ */

/* The mean over cells [i0, i1) x [j0, j1) that are not masked; NaN where all are. */
static double block_mean(const doc_matrix *matrix, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = i0; i < i1; i++) {
        for (int64_t j = j0; j < j1; j++) {
            if (is_masked(matrix, i, j)) continue;
            sum += matrix->values[i * matrix->cols + j];
            count++;
        }
    }
    return count > 0 ? sum / (double)count : NAN;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void print_digits(const layout *layout) {
    const doc_matrix *matrix = layout->matrix;
    const terminal *terminal = layout->terminal;
    const int64_t tall = (matrix->rows + MAP_MAX - 1) / MAP_MAX, broad = (matrix->cols + MAP_MAX - 1) / MAP_MAX;
    const int cell = matrix->cols <= MAP_MAX / 2 ? 2 : 1;
    char number[NUMBER_SIZE];
    for (int64_t i = 0; i < matrix->rows; i += tall) {
        display_pad(terminal->out, label_text(matrix->row_labels, i, matrix->rows, number), layout->label - 2, false);
        fputs("  ", terminal->out);
        for (int64_t j = 0; j < matrix->cols; j += broad) {
            double part =
                scaled(matrix, block_mean(matrix, i, smaller(i + tall, matrix->rows), j, smaller(j + broad, matrix->cols)));
            if (!isnan(part)) terminal_heat(terminal, part);
            const char digit = isnan(part) ? '.' : (char)('0' + (part < 0 ? 0 : part >= 1 ? 9 : (int)(part * 10)));
            fprintf(terminal->out, "%*c", cell, digit);
            terminal_reset(terminal);
        }
        fputc('\n', terminal->out);
    }
    fprintf(terminal->out, "  %s",
            terminal_say(terminal, "每格一位数字：在色标上的十分位", "one digit a cell: tenths of the scale"));
    if (tall > 1 || broad > 1) {
        fputs(terminal_say(terminal, "；", "; "), terminal->out);
        fprintf(terminal->out, terminal_say(terminal, "每格是 %d × %d 个值的平均", "each is the average of %d x %d values"),
                (int)tall, (int)broad);
    }
    fputc('\n', terminal->out);
}

/* ---- all ----------------------------------------------------------------------------------------------------------- */

/* The scale and what rows and columns are. */
static void print_scale(const terminal *terminal, const doc_matrix *matrix) {
    if (matrix->is_ledger) return;
    fprintf(terminal->out, "  %s %.*f ", terminal_say(terminal, "色标", "scale"), matrix->decimals, matrix->low);
    if (terminal->colors != TERMINAL_PLAIN && matrix->low < matrix->high) {
        for (int i = 0; i < 16; i++) {
            terminal_heat(terminal, i / 15.0);
            fputc(' ', terminal->out);
        }
        terminal_reset(terminal);
    } else
        fputs(terminal_say(terminal, "至", "to"), terminal->out);
    fprintf(terminal->out, " %.*f", matrix->decimals, matrix->high);
    if (matrix->row_axis != NULL && matrix->col_axis != NULL)
        fprintf(terminal->out, terminal_say(terminal, "；行：%s，列：%s", "; rows: %s, columns: %s"), matrix->row_axis,
                matrix->col_axis);
    fputc('\n', terminal->out);
}

/* A row is shown when its last cell is reached. */
static bool print_rows(const layout *layout, const doc_block *block) {
    const doc_matrix *matrix = layout->matrix;
    const int64_t steps = matrix->growth == DOC_BY_CELL ? matrix->cols : 1;
    print_head(layout);
    for (int64_t i = 0; i < matrix->rows; i++) {
        if (!terminal_reach(layout->terminal, doc_cell_step(block, i, matrix->cols - 1))) return false;
        for (int64_t s = 0; matrix->captions != NULL && s < steps; s++)
            terminal_caption(layout->terminal, matrix->captions[i * steps + s], 2);
        print_row(layout, i);
    }
    return true;
}

bool terminal_matrix(terminal *terminal, const doc_block *block) {
    layout layout = {.terminal = terminal, .matrix = block->matrix};
    if (block->matrix->cols <= MAP_MAX && fit(&layout)) {
        if (!print_rows(&layout, block)) return false;
    } else {
        layout.label = TERMINAL_WIDTH - MAP_MAX;
        print_digits(&layout);
    }
    print_scale(terminal, block->matrix);
    return true;
}
