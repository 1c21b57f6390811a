/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "terminal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "display.h"

/* ---- colours ------------------------------------------------------------------------------------------------------- */

terminal_colors terminal_find_colors(FILE *out, bool forced) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM"), *depth = getenv("COLORTERM");
    if (!forced) {
        if (no_color != NULL && *no_color != '\0') return TERMINAL_PLAIN;
        if (!isatty(fileno(out)) || term == NULL || strcmp(term, "dumb") == 0) return TERMINAL_PLAIN;
    }
    bool deep = depth != NULL && (strcmp(depth, "truecolor") == 0 || strcmp(depth, "24bit") == 0);
    return deep ? TERMINAL_TRUE : TERMINAL_256;
}

typedef struct rgb {
    int red, green, blue;
} rgb;

/* Nine samples of viridis (Smith, van der Walt 2015), between which is interpolated. */
static rgb viridis(double part) {
    static const rgb samples[] = {{68, 1, 84},    {71, 45, 123}, {59, 82, 139},  {44, 114, 142}, {33, 145, 140},
                                  {40, 174, 128}, {94, 201, 98}, {173, 220, 48}, {253, 231, 37}};
    enum { LAST = sizeof samples / sizeof *samples - 1 };
    double place = (part < 0 ? 0 : part > 1 ? 1 : part) * LAST;
    int below = place >= LAST ? LAST - 1 : (int)place;
    const rgb *a = &samples[below], *b = a + 1;
    place -= below;
    return (rgb){(int)(a->red + place * (b->red - a->red) + 0.5), (int)(a->green + place * (b->green - a->green) + 0.5),
                 (int)(a->blue + place * (b->blue - a->blue) + 0.5)};
}

/* The nearest of the 6 x 6 x 6 cube of 256 colours. */
static int cube_index(rgb color) {
    const int parts[] = {color.red, color.green, color.blue};
    int index = 0;
    for (int i = 0; i < 3; i++) index = index * 6 + (parts[i] < 48 ? 0 : parts[i] < 115 ? 1 : (parts[i] - 35) / 40);
    return 16 + index;
}

static void set_color(const terminal *terminal, int layer, rgb color) {
    if (terminal->colors == TERMINAL_TRUE)
        fprintf(terminal->out, "\033[%d;2;%d;%d;%dm", layer, color.red, color.green, color.blue);
    else if (terminal->colors == TERMINAL_256)
        fprintf(terminal->out, "\033[%d;5;%dm", layer, cube_index(color));
}

/* Relative luminance of sRGB, and the one on which black and white stand out alike, at 4.58 to 1 (WCAG 2.1). */
static double luminance(rgb color) {
    const double parts[] = {color.red / 255.0, color.green / 255.0, color.blue / 255.0}, weights[] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += weights[i] * (parts[i] <= 0.04045 ? parts[i] / 12.92 : pow((parts[i] + 0.055) / 1.055, 2.4));
    return sum;
}

static const double EVEN_LUMINANCE = 0.179;

/* What a terminal of 256 colours makes of it. */
static rgb seen(const terminal *terminal, rgb color) {
    static const int levels[] = {0, 95, 135, 175, 215, 255};
    if (terminal->colors != TERMINAL_256) return color;
    const int index = cube_index(color) - 16;
    return (rgb){levels[index / 36], levels[index / 6 % 6], levels[index % 6]};
}

enum { FOREGROUND = 38, BACKGROUND = 48 };

void terminal_heat(const terminal *terminal, double part) {
    static const rgb black = {0, 0, 0}, white = {255, 255, 255};
    const rgb color = viridis(part);
    set_color(terminal, BACKGROUND, color);
    set_color(terminal, FOREGROUND, luminance(seen(terminal, color)) > EVEN_LUMINANCE ? black : white);
}

/* Of Okabe and Ito's palette, lightened where it is too dark on black. */
void terminal_role(const terminal *terminal, doc_role role) {
    static const rgb colors[DOC_ROLE_COUNT] = {
        [DOC_ROLE_X] = {204, 121, 167},    [DOC_ROLE_Q] = {86, 180, 233},   [DOC_ROLE_K] = {230, 120, 40},
        [DOC_ROLE_V] = {0, 178, 128},      [DOC_ROLE_OUT] = {230, 190, 60}, [DOC_ROLE_RECURRENCE] = {204, 121, 167},
        [DOC_ROLE_LSTM] = {160, 140, 230},
    };
    const rgb *color = &colors[role];
    if (color->red + color->green + color->blue > 0) set_color(terminal, FOREGROUND, *color);
}

void terminal_bold(const terminal *terminal) {
    if (terminal->colors != TERMINAL_PLAIN) fputs("\033[1m", terminal->out);
}

void terminal_reset(const terminal *terminal) {
    if (terminal->colors != TERMINAL_PLAIN) fputs("\033[0m", terminal->out);
}

/* ---- stepping ------------------------------------------------------------------------------------------------------ */

const char *terminal_say(const terminal *terminal, const char *zh, const char *en) {
    return terminal->language == DOC_ZH ? zh : en;
}

/* A key, read without waiting for the end of a line; EOF when there is none to come. */
static int read_key(void) {
    struct termios saved, raw;
    bool set = tcgetattr(STDIN_FILENO, &saved) == 0;
    if (set) {
        raw = saved;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    unsigned char key;
    bool got = read(STDIN_FILENO, &key, 1) == 1;
    if (set) tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    return got ? key : EOF;
}

void terminal_caption(terminal *terminal, const char *text, int indent) {
    terminal->captions++;
    const int width = fprintf(terminal->out, "%*s[%d] ", indent, "", terminal->captions);
    display_wrap(terminal->out, text, TERMINAL_WIDTH, width, indent + 4);
}

bool terminal_reach(terminal *terminal, int step) {
    if (step <= terminal->at) return true;
    terminal->at = step;
    if (!terminal->step) return true;
    const char *prompt = terminal_say(terminal, "-- 按任意键继续，q 退出 --", "-- any key goes on, q stops --");
    fputs(prompt, terminal->out);
    fflush(terminal->out);
    int key = read_key();
    fprintf(terminal->out, "\r%*s\r", display_width(prompt), "");
    return key != 'q' && key != 'Q' && key != EOF;
}

/* ---- tables -------------------------------------------------------------------------------------------------------- */

enum { MAX_COLUMNS = 16 };

/* Whether all of a column are numbers, or nothing: those stand on the right. */
static bool is_numeric(size_t rows, size_t cols, size_t column, const char *const *cells) {
    for (size_t r = 0; r < rows; r++) {
        const char *cell = cells[r * cols + column];
        if (*cell != '\0' && strchr("0123456789+-.", *cell) == NULL) return false;
    }
    return true;
}

/* Columns are as wide as what stands in them; the widest gives way when the line is too long, and its cells take more lines. */
static void column_widths(size_t rows, size_t cols, const char *const *head, const char *const *cells, int *widths) {
    int total = 2 * (int)cols; /* two blanks before each */
    for (size_t c = 0; c < cols; c++) {
        widths[c] = display_width(head[c]);
        for (size_t r = 0; r < rows; r++) {
            int width = display_width(cells[r * cols + c]);
            if (width > widths[c]) widths[c] = width;
        }
        total += widths[c];
    }
    for (; total > TERMINAL_WIDTH; total--) {
        size_t widest = 0;
        for (size_t c = 1; c < cols; c++)
            if (widths[c] > widths[widest]) widest = c;
        widths[widest]--;
    }
}

/* One line of a row: as much of each cell as its column has room for. False when nothing is left. */
static bool print_row_line(const terminal *terminal, size_t cols, const char **rest, const int *widths, const bool *numeric) {
    bool going = false;
    for (size_t c = 0; c < cols; c++) {
        int used;
        const size_t bytes = display_line(rest[c], widths[c], &used);
        const int room = widths[c] > used ? widths[c] - used : 0;
        fprintf(terminal->out, "  %*s%.*s", numeric[c] ? room : 0, "", (int)bytes, rest[c]);
        if (!numeric[c] && c + 1 < cols) fprintf(terminal->out, "%*s", room, "");
        rest[c] += bytes;
        rest[c] += strspn(rest[c], " ");
        going = going || *rest[c] != '\0';
    }
    fputc('\n', terminal->out);
    return going;
}

static void print_row(const terminal *terminal, size_t cols, const char *const *cells, const int *widths, const bool *numeric) {
    const char *rest[MAX_COLUMNS];
    memcpy(rest, cells, cols * sizeof *rest);
    while (print_row_line(terminal, cols, rest, widths, numeric)) {
    }
}

void terminal_table(const terminal *terminal, size_t rows, size_t cols, const char *const *head, const char *const *cells) {
    int widths[MAX_COLUMNS];
    bool numeric[MAX_COLUMNS];
    assert(cols <= MAX_COLUMNS);
    column_widths(rows, cols, head, cells, widths);
    for (size_t c = 0; c < cols; c++) numeric[c] = is_numeric(rows, cols, c, cells);
    terminal_bold(terminal);
    print_row(terminal, cols, head, widths, numeric);
    terminal_reset(terminal);
    for (size_t r = 0; r < rows; r++) print_row(terminal, cols, cells + r * cols, widths, numeric);
}

/* ---- blocks -------------------------------------------------------------------------------------------------------- */

static void print_text(const terminal *terminal, const char *text, int indent) {
    fprintf(terminal->out, "%*s", indent, "");
    display_wrap(terminal->out, text, TERMINAL_WIDTH, indent, indent);
}

static void print_labelled(const terminal *terminal, const char *label, const char *text) {
    terminal_bold(terminal);
    fputs(label, terminal->out);
    terminal_reset(terminal);
    int width = display_width(label);
    display_wrap(terminal->out, text, TERMINAL_WIDTH, width, 2);
}

static void print_title(const terminal *terminal, const doc_block *block) {
    terminal_bold(terminal);
    print_text(terminal, block->title, 0);
    terminal_reset(terminal);
}

static bool print_figure(terminal *terminal, const doc_block *block) {
    bool going = true;
    print_title(terminal, block);
    switch (block->kind) {
    case DOC_MATRIX:
        going = terminal_matrix(terminal, block);
        break;
    case DOC_PLOT:
        terminal_plot(terminal, block);
        break;
    case DOC_TABLE:
        terminal_table(terminal, block->table->rows, block->table->cols, block->table->head, block->table->cells);
        break;
    case DOC_SPACE:
        terminal_space(terminal, block);
        break;
    case DOC_LANES: /* of the race, which moves on terminals by itself: what its summary says */
        break;
    default:
        terminal_graph(terminal, block);
        break;
    }
    if (going && block->summary != NULL) print_text(terminal, block->summary, 2);
    return going;
}

static bool print_block(terminal *terminal, const doc_block *block) {
    switch (block->kind) {
    case DOC_HEADING:
        terminal_bold(terminal);
        fprintf(terminal->out, "## %s\n", block->text);
        terminal_reset(terminal);
        return true;
    case DOC_PARAGRAPH:
        print_text(terminal, block->text, 0);
        return true;
    case DOC_FORMULA:
        fprintf(terminal->out, "    %s\n", block->text); /* as it is set: no longer than a line */
        return true;
    case DOC_QUESTION:
        print_labelled(terminal, terminal_say(terminal, "先猜一猜：", "Predict first: "), block->text);
        return true;
    case DOC_MISCONCEPTION:
        print_labelled(terminal, terminal_say(terminal, "有人以为：", "Some believe: "), block->text);
        print_labelled(terminal, terminal_say(terminal, "其实：", "In fact: "), block->answer);
        return true;
    case DOC_CAPTION:
        terminal_caption(terminal, block->text, 0);
        return true;
    default:
        return print_figure(terminal, block);
    }
}

static void print_answers(const terminal *terminal, const doc *doc) {
    for (const doc_block *block = doc->first; block != NULL; block = block->next) {
        if (block->kind != DOC_QUESTION) continue;
        fputc('\n', terminal->out);
        print_labelled(terminal, terminal_say(terminal, "答案：", "The answer: "), block->answer);
    }
}

bool terminal_print(terminal *terminal, const doc *doc) {
    terminal->at = terminal->captions = 0;
    terminal->language = doc->language;
    terminal_bold(terminal);
    fprintf(terminal->out, "# %s\n", doc->title);
    terminal_reset(terminal);
    print_text(terminal,
               arena_format(doc->arena, terminal_say(terminal, "约 %d 分钟；计算设备：%s", "about %d minutes; computed on %s"),
                            doc->minutes, doc->device),
               0);
    for (const doc_block *block = doc->first; block != NULL; block = block->next) {
        fputc('\n', terminal->out);
        if (!terminal_reach(terminal, block->step) || !print_block(terminal, block)) return false;
    }
    if (!terminal_reach(terminal, doc->step + 1)) return false;
    print_answers(terminal, doc);
    return true;
}
