/* Plots, points in space and dependency pictures in characters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "display.h"
#include "terminal.h"

enum { PLOT_COLS = 64, PLOT_ROWS = 14, BAR_COLS = 32, CATEGORY_COLS = 16, TABLE_ROWS = 12, SPACE_NAMES = 24 };

const char *terminal_mark(size_t series) {
    static const char *const marks[] = {"●", "▲", "■", "◆", "○", "△", "□", "◇"};
    return marks[series % (sizeof marks / sizeof *marks)];
}

/* ---- a canvas of characters ---------------------------------------------------------------------------------------- */

typedef struct canvas {
    char cells[PLOT_ROWS][PLOT_COLS][5]; /* UTF-8; "" after a wide one */
    int roles[PLOT_ROWS][PLOT_COLS];
} canvas;

static void canvas_clear(canvas *canvas) {
    for (int r = 0; r < PLOT_ROWS; r++)
        for (int c = 0; c < PLOT_COLS; c++) {
            strcpy(canvas->cells[r][c], " ");
            canvas->roles[r][c] = DOC_ROLE_PLAIN;
        }
}

static void canvas_put(canvas *canvas, int row, int col, const char *text, doc_role role) {
    while (*text != '\0' && row >= 0 && row < PLOT_ROWS && col >= 0) {
        uint32_t code;
        size_t length = display_decode(text, &code);
        int width = display_code_width(code);
        if (col + width > PLOT_COLS) return;
        if (width > 0) {
            if (canvas->cells[row][col][0] == '\0') strcpy(canvas->cells[row][col - 1], " "); /* half of a wide one is left */
            if (col + width < PLOT_COLS && canvas->cells[row][col + width][0] == '\0')
                strcpy(canvas->cells[row][col + width], " ");
            memcpy(canvas->cells[row][col], text, length);
            canvas->cells[row][col][length] = '\0';
            canvas->roles[row][col] = role;
            if (width == 2) canvas->cells[row][col + 1][0] = '\0';
        }
        text += length;
        col += width;
    }
}

/* Names of rows stand left of the axis, which has a gap where `gap` is; below 0: none. */
static void canvas_print(const terminal *terminal, const canvas *canvas, const char *const names[PLOT_ROWS], int gap) {
    for (int r = 0; r < PLOT_ROWS; r++) {
        display_pad(terminal->out, names != NULL && names[r] != NULL ? names[r] : "", 11, true);
        fputs(r == gap ? " ┊" : " │", terminal->out);
        int end = PLOT_COLS;
        while (end > 0 && strcmp(canvas->cells[r][end - 1], " ") == 0) end--;
        for (int c = 0; c < end; c++) {
            if (canvas->roles[r][c] != DOC_ROLE_PLAIN) terminal_role(terminal, canvas->roles[r][c]);
            fputs(canvas->cells[r][c], terminal->out);
            if (canvas->roles[r][c] != DOC_ROLE_PLAIN) terminal_reset(terminal);
        }
        fputc('\n', terminal->out);
    }
}

/* ---- lines --------------------------------------------------------------------------------------------------------- */

/* A logarithmic axis never reaches 0: where there is one, it stands below a gap in the axis. */
enum { GAP = 2 };

typedef struct scale {
    bool logarithmic;
    double low, high; /* as they are placed */
    int gap;          /* rows between 0 and the rest of a logarithmic axis: GAP, or 0 where nothing is 0 */
} scale;

static double placed(const scale *scale, double value) {
    return scale->logarithmic ? log(value) : value;
}

static void widen(scale *scale, double value) {
    double at = placed(scale, value);
    if (!isfinite(at)) return;
    if (at < scale->low) scale->low = at;
    if (at > scale->high) scale->high = at;
}

static bool has_zero(const doc_plot *plot) {
    for (size_t s = 0; s < plot->series_count; s++)
        for (size_t i = 0; i < plot->series[s].count; i++)
            if (plot->series[s].y[i] == 0) return true;
    return false;
}

/* A linear axis of values has its 0, so that heights can be compared. */
static scale find_scale(const doc_plot *plot, const doc_axis *axis, bool y) {
    scale scale = {.logarithmic = axis->logarithmic, .low = INFINITY, .high = -INFINITY};
    if (y && axis->logarithmic && has_zero(plot)) scale.gap = GAP;
    if (axis->low != axis->high) {
        scale.low = placed(&scale, axis->low);
        scale.high = placed(&scale, axis->high);
        return scale;
    }
    for (size_t s = 0; s < plot->series_count; s++)
        for (size_t i = 0; i < plot->series[s].count; i++) {
            widen(&scale, y ? plot->series[s].y[i] : plot->series[s].x[i]);
            if (y && plot->mark == DOC_BARS && plot->series[s].high != NULL) widen(&scale, plot->series[s].high[i]);
        }
    if (y && !axis->logarithmic) widen(&scale, 0);
    if (!(scale.low <= scale.high)) scale.low = scale.high = 0;
    if (scale.low == scale.high) { /* a point stands in the middle */
        scale.low -= 1;
        scale.high += 1;
    }
    return scale;
}

/* 0 to last. */
static double position(const scale *scale, double value, int last) {
    if (scale->gap > 0 && value == 0) return 0;
    return scale->gap + (placed(scale, value) - scale->low) / (scale->high - scale->low) * (last - scale->gap);
}

static void draw_series(canvas *canvas, const doc_series *series, size_t index, const scale *x, const scale *y) {
    for (size_t i = 0; i + 1 < series->count; i++) {
        double c0 = position(x, series->x[i], PLOT_COLS - 1), c1 = position(x, series->x[i + 1], PLOT_COLS - 1);
        double r0 = position(y, series->y[i], PLOT_ROWS - 1), r1 = position(y, series->y[i + 1], PLOT_ROWS - 1);
        if (!isfinite(c0) || !isfinite(c1) || !isfinite(r0) || !isfinite(r1)) continue;
        for (int c = (int)ceil(c0); c <= (int)c1; c++) {
            double part = c1 > c0 ? (c - c0) / (c1 - c0) : 0;
            canvas_put(canvas, PLOT_ROWS - 1 - (int)lround(r0 + part * (r1 - r0)), c, "·", series->role);
        }
    }
    for (size_t i = 0; i < series->count; i++) {
        double c = position(x, series->x[i], PLOT_COLS - 1), r = position(y, series->y[i], PLOT_ROWS - 1);
        if (isfinite(c) && isfinite(r))
            canvas_put(canvas, PLOT_ROWS - 1 - (int)lround(r), (int)lround(c), terminal_mark(index), series->role);
    }
}

/* The end of an axis in at most ten characters. */
static void format_end(char *text, size_t size, double value) {
    if (fabs(value - rint(value)) < 1e-9 * fabs(value)) value = rint(value); /* a logarithm and back */
    snprintf(text, size, fabs(value) < 1e8 && value == rint(value) ? "%.0f" : "%.4g", value);
    display_group(text, size);
}

static double unplaced(const scale *scale, double at) {
    return scale->logarithmic ? exp(at) : at;
}

static void print_legend(const terminal *terminal, const doc_plot *plot) {
    for (size_t s = 0; s < plot->series_count; s++) {
        fputs("  ", terminal->out);
        terminal_role(terminal, plot->series[s].role);
        fputs(terminal_mark(s), terminal->out);
        terminal_reset(terminal);
        fputc(' ', terminal->out);
        display_wrap(terminal->out, plot->series[s].name, TERMINAL_WIDTH, 4, 4);
    }
}

static void draw_lines(const terminal *terminal, const doc_plot *plot) {
    canvas canvas;
    char low[32], high[32];
    const char *names[PLOT_ROWS] = {NULL};
    const scale x = find_scale(plot, &plot->x, false), y = find_scale(plot, &plot->y, true);
    canvas_clear(&canvas);
    for (size_t s = 0; s < plot->series_count; s++) draw_series(&canvas, &plot->series[s], s, &x, &y);
    fprintf(terminal->out, "  %s%s\n", plot->y.label,
            plot->y.logarithmic ? terminal_say(terminal, "（对数轴）", " (log axis)") : "");
    format_end(high, sizeof high, unplaced(&y, y.high));
    format_end(low, sizeof low, unplaced(&y, y.low));
    names[0] = high;
    names[PLOT_ROWS - 1] = "0";
    names[PLOT_ROWS - 1 - y.gap] = low;
    canvas_print(terminal, &canvas, names, y.gap > 0 ? PLOT_ROWS - y.gap : -1);
    fprintf(terminal->out, "%12s└", "");
    for (int c = 0; c < PLOT_COLS; c++) fputs("─", terminal->out);
    format_end(low, sizeof low, unplaced(&x, x.low));
    format_end(high, sizeof high, unplaced(&x, x.high));
    int room = PLOT_COLS - (int)strlen(low) - (int)strlen(high) - 2;
    const char *note = plot->x.logarithmic ? terminal_say(terminal, "（对数轴）", " (log axis)") : "";
    int label = display_width(plot->x.label) + display_width(note);
    fprintf(terminal->out, "\n%13s%s %s%s%*s %s\n", "", low, plot->x.label, note, room > label ? room - label : 0, "", high);
    print_legend(terminal, plot);
}

/* ---- the numbers --------------------------------------------------------------------------------------------------- */

enum { VALUE_SIZE = 24 };

/* Of every series at the first one's x; of many, some in equal distances and the last. */
static void print_values(const terminal *terminal, const doc_plot *plot) {
    const doc_series *first = &plot->series[0];
    const size_t cols = plot->series_count + 1, stride = (first->count + TABLE_ROWS - 1) / TABLE_ROWS;
    char texts[(TABLE_ROWS + 1) * (DOC_MAX_SERIES + 1)][VALUE_SIZE];
    const char *cells[(TABLE_ROWS + 1) * (DOC_MAX_SERIES + 1)], *head[DOC_MAX_SERIES + 1] = {"x"};
    size_t rows = 0;
    for (size_t s = 0; s < plot->series_count; s++) head[s + 1] = terminal_mark(s);
    for (size_t i = 0; i < first->count; i += stride, rows++) {
        if (i + stride >= first->count) i = first->count - 1;
        for (size_t c = 0; c < cols; c++) {
            char *text = texts[rows * cols + c];
            if (c == 0)
                snprintf(text, VALUE_SIZE, "%.6g", first->x[i]);
            else if (i < plot->series[c - 1].count)
                snprintf(text, VALUE_SIZE, "%.*f", plot->decimals, plot->series[c - 1].y[i]);
            else
                *text = '\0';
            display_group(text, VALUE_SIZE);
            cells[rows * cols + c] = text;
        }
    }
    terminal_table(terminal, rows, cols, head, cells);
}

/* ---- bars ---------------------------------------------------------------------------------------------------------- */

/* One bar from 0, and where half of its runs lie: a whisker over it. */
static void draw_bar(const terminal *terminal, const doc_plot *plot, const doc_series *series, size_t i, double low,
                     double high) {
    const double part = BAR_COLS / (high - low);
    const int zero = (int)lround(-low * part), end = (int)lround((series->y[i] - low) * part);
    const int first = series->low != NULL ? (int)lround((series->low[i] - low) * part) : 0,
              last = series->high != NULL ? (int)lround((series->high[i] - low) * part) : -1;
    terminal_role(terminal, series->role);
    for (int c = 0; c <= BAR_COLS; c++) {
        const bool filled = c >= (zero < end ? zero : end) && c < (zero < end ? end : zero), spread = c >= first && c <= last;
        fputs(spread ? c == first ? "├" : c == last ? "┤" : "─" : filled ? "█" : " ", terminal->out);
    }
    terminal_reset(terminal);
    fprintf(terminal->out, " %.*f", plot->decimals, series->y[i]);
    if (series->low != NULL)
        fprintf(terminal->out, " (%.*f–%.*f)", plot->decimals, series->low[i], plot->decimals, series->high[i]);
    fputc('\n', terminal->out);
}

static void draw_bars(const terminal *terminal, const doc_plot *plot) {
    const scale y = find_scale(plot, &plot->y, true);
    fprintf(terminal->out, "  %s\n", plot->y.label);
    for (size_t i = 0; i < plot->series[0].count; i++) {
        for (size_t s = 0; s < plot->series_count; s++) {
            fputs("  ", terminal->out);
            display_pad(terminal->out, s == 0 ? plot->categories[i] : "", CATEGORY_COLS, false);
            fprintf(terminal->out, " %s ", terminal_mark(s));
            draw_bar(terminal, plot, &plot->series[s], i, y.low, y.high);
        }
    }
    if (plot->series[0].low != NULL)
        fprintf(terminal->out, "  %s\n",
                terminal_say(terminal, "├─┤：中间一半的运行落在这里", "├─┤: the middle half of the runs"));
    print_legend(terminal, plot);
}

void terminal_plot(const terminal *terminal, const doc_block *block) {
    const doc_plot *plot = block->plot;
    if (plot->mark == DOC_BARS) {
        draw_bars(terminal, plot);
        return;
    }
    draw_lines(terminal, plot);
    print_values(terminal, plot);
}

/* ---- points in space ----------------------------------------------------------------------------------------------- */

/* Seen obliquely: the second axis goes to the right, the third up, the first comes forward. */
static void project(const double point[3], double *across, double *up) {
    *across = point[1] - 0.35 * point[0];
    *up = point[2] - 0.35 * point[0] - 0.1 * point[1];
}

typedef struct frame {
    double low[2], high[2];
} frame;

static void frame_point(frame *frame, const double point[3]) {
    double at[2];
    project(point, &at[0], &at[1]);
    for (int i = 0; i < 2; i++) {
        frame->low[i] = fmin(frame->low[i], at[i]);
        frame->high[i] = fmax(frame->high[i], at[i]);
    }
}

static void place(const frame *frame, const double point[3], int *row, int *col) {
    double at[2];
    project(point, &at[0], &at[1]);
    for (int i = 0; i < 2; i++)
        at[i] = frame->high[i] > frame->low[i] ? (at[i] - frame->low[i]) / (frame->high[i] - frame->low[i]) : 0.5;
    *col = (int)lround(at[0] * (PLOT_COLS - 12));
    *row = PLOT_ROWS - 1 - (int)lround(at[1] * (PLOT_ROWS - 1));
}

/* Dots between two points, the ends left out; where they end. */
static void draw_dots(canvas *canvas, const frame *frame, const double from[3], const double to[3], const char *dot,
                      int end[2]) {
    int r0, c0, r1, c1;
    place(frame, from, &r0, &c0);
    place(frame, to, &r1, &c1);
    const int steps = (int)fmax(abs(r1 - r0), abs(c1 - c0));
    for (int i = 1; i < steps; i++)
        canvas_put(canvas, r0 + (r1 - r0) * i / steps, c0 + (c1 - c0) * i / steps, dot, DOC_ROLE_PLAIN);
    end[0] = r1;
    end[1] = c1;
}

/* Where all axes begin, and where each ends: the least and the largest of the points, and 0. */
typedef struct box {
    double low[3], high[3];
} box;

static void widen_box(box *box, const double point[3]) {
    for (int d = 0; d < 3; d++) {
        box->low[d] = fmin(box->low[d], point[d]);
        box->high[d] = fmax(box->high[d], point[d]);
    }
}

static box find_box(const doc_space *space) {
    box box = {{0}, {0}};
    for (size_t i = 0; i < space->count; i++) {
        widen_box(&box, space->points[i].from);
        if (space->arrows) widen_box(&box, space->points[i].to);
    }
    for (int d = 0; d < 3; d++) { /* an axis goes on to a whole number */
        box.low[d] = floor(box.low[d]);
        box.high[d] = ceil(box.high[d]);
    }
    return box;
}

static void axis_end(const box *box, int axis, double end[3]) {
    for (int d = 0; d < 3; d++) end[d] = d == axis ? box->high[d] : box->low[d];
}

static void draw_axes(canvas *canvas, const frame *frame, const doc_space *space, const box *box) {
    static const char *const dots[] = {"/", "-", "|"};
    int at[2];
    for (int d = 0; d < 3; d++) {
        char name[48];
        double end[3];
        axis_end(box, d, end);
        draw_dots(canvas, frame, box->low, end, dots[d], at);
        snprintf(name, sizeof name, "%.16s=%.0f", space->axes[d] != NULL ? space->axes[d] : "", box->high[d]);
        canvas_put(canvas, at[0], at[1], name, DOC_ROLE_PLAIN);
    }
    place(frame, box->low, &at[0], &at[1]);
    canvas_put(canvas, at[0], at[1], "+", DOC_ROLE_PLAIN);
}

/* The point and its arrow; where its name belongs. */
static void draw_point(canvas *canvas, const frame *frame, const doc_point *point, bool arrow, int at[2]) {
    int start[2];
    place(frame, point->from, &start[0], &start[1]);
    at[0] = start[0];
    at[1] = start[1];
    if (arrow) draw_dots(canvas, frame, point->from, point->to, "·", at);
    canvas_put(canvas, start[0], start[1], "○", DOC_ROLE_X);
    if (arrow) canvas_put(canvas, at[0], at[1], "●", DOC_ROLE_OUT);
}

/* Whether nothing stands there. */
static bool is_free(const canvas *canvas, int row, int col, int width) {
    if (row < 0 || row >= PLOT_ROWS || col < 0 || col + width > PLOT_COLS) return false;
    for (int c = col; c < col + width; c++)
        if (strcmp(canvas->cells[row][c], " ") != 0) return false;
    return true;
}

/* Beside a point, where it covers nothing; on its right where there is no such place. */
static void draw_name(canvas *canvas, const int at[2], const char *name) {
    const int width = display_width(name), right = at[1] + 2, left = at[1] - 1 - width;
    const int places[][2] = {{at[0], right},    {at[0], left},     {at[0] - 1, right}, {at[0] + 1, right},
                             {at[0] - 1, left}, {at[0] + 1, left}, {at[0] - 2, right}, {at[0] + 2, right}};
    size_t n = 0;
    while (n < sizeof places / sizeof *places && !is_free(canvas, places[n][0], places[n][1], width)) n++;
    if (n == sizeof places / sizeof *places) n = 0;
    canvas_put(canvas, places[n][0], places[n][1], name, DOC_ROLE_PLAIN);
}

static void draw_points(canvas *canvas, const frame *frame, const doc_space *space) {
    int ends[SPACE_NAMES][2], at[2];
    for (size_t i = 0; i < space->count; i++)
        draw_point(canvas, frame, &space->points[i], space->arrows, i < SPACE_NAMES ? ends[i] : at);
    for (size_t i = 0; i < space->count && i < SPACE_NAMES; i++) draw_name(canvas, ends[i], space->points[i].label);
}

void terminal_space(const terminal *terminal, const doc_block *block) {
    const doc_space *space = block->space;
    const box box = find_box(space);
    frame frame = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
    canvas canvas;
    for (size_t i = 0; i < space->count; i++) {
        frame_point(&frame, space->points[i].from);
        if (space->arrows) frame_point(&frame, space->points[i].to);
    }
    frame_point(&frame, box.low);
    for (int d = 0; d < 3; d++) {
        double end[3];
        axis_end(&box, d, end);
        frame_point(&frame, end);
    }
    canvas_clear(&canvas);
    draw_axes(&canvas, &frame, space, &box);
    draw_points(&canvas, &frame, space);
    canvas_print(terminal, &canvas, NULL, -1);
    fprintf(terminal->out,
            terminal_say(terminal, "  斜着看：%s 轴朝你来，%s 轴向右，%s 轴向上；三根轴从 + 处的 (%.0f, %.0f, %.0f) 出发\n",
                         "  seen obliquely: %s comes towards you, %s goes right, %s up; from (%.0f, %.0f, %.0f) at +\n"),
            space->axes[0], space->axes[1], space->axes[2], box.low[0], box.low[1], box.low[2]);
    for (size_t i = 0; i < space->count; i++) {
        const doc_point *p = &space->points[i];
        fputs("  ", terminal->out);
        display_pad(terminal->out, p->label, 14, false);
        fprintf(terminal->out, " ○ (%.2f, %.2f, %.2f)", p->from[0], p->from[1], p->from[2]);
        if (space->arrows) fprintf(terminal->out, " → ● (%.2f, %.2f, %.2f)", p->to[0], p->to[1], p->to[2]);
        fputc('\n', terminal->out);
    }
}

/* ---- what waits for what ------------------------------------------------------------------------------------------- */

enum { GRAPH_COLUMN = 11, GRAPH_STEP = 5 };

/* A lane is a staircase: each node stands in the column of its step; what is there from the start is not drawn. */
static void print_lane(const terminal *terminal, const doc_graph *graph, int lane) {
    int last = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].lane == lane && graph->nodes[i].step > last) last = graph->nodes[i].step;
    fprintf(terminal->out, "  %s\n    ", graph->lanes[lane]);
    display_pad(terminal->out, terminal_say(terminal, "步：", "step:"), GRAPH_COLUMN - 4, false);
    for (int step = 1; step <= last; step++) fprintf(terminal->out, "%-*d", step < last ? GRAPH_STEP : 0, step);
    fputc('\n', terminal->out);
    for (size_t i = 0; i < graph->node_count; i++) {
        const doc_node *node = &graph->nodes[i];
        if (node->lane != lane || node->step == 0) continue;
        const int column = GRAPH_COLUMN + GRAPH_STEP * (node->step - 1), width = display_width(node->label);
        fprintf(terminal->out, "%*s", column, "");
        display_pad(terminal->out, node->label, width < TERMINAL_WIDTH - column ? width : TERMINAL_WIDTH - column, false);
        fputc('\n', terminal->out);
    }
}

void terminal_graph(const terminal *terminal, const doc_block *block) {
    for (int lane = 0; lane < block->graph->lane_count; lane++) print_lane(terminal, block->graph, lane);
}
