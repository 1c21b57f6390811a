/* SPDX-License-Identifier: Apache-2.0 */
#include "display.h"

#include <string.h>

/* ---- UTF-8 --------------------------------------------------------------------------------------------------------- */

enum { REPLACEMENT = 0xfffd };

static size_t sequence_length(unsigned char first) {
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return 2;
    if (first >= 0xe0 && first < 0xf0) return 3;
    if (first >= 0xf0 && first < 0xf5) return 4;
    return 0;
}

size_t display_decode(const char *text, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = sequence_length(bytes[0]);
    *code = REPLACEMENT;
    if (length == 0) return 1;
    uint32_t value = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 1;
        value = value << 6 | (bytes[i] & 0x3fu);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 1;
    *code = value;
    return length;
}

bool display_valid(const char *text) {
    while (*text != '\0') {
        uint32_t code;
        size_t length = display_decode(text, &code);
        if (code == REPLACEMENT && length == 1) return false;
        text += length;
    }
    return true;
}

/* ---- width --------------------------------------------------------------------------------------------------------- */

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* Unicode 15, East_Asian_Width W and F; joined where what lies between is unassigned. */
static const code_range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},   {0x23f3, 0x23f3},
    {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},
    {0x26f2, 0x26f3},   {0x26f5, 0x26f5},   {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x4dbf},   {0x4e00, 0xa4c6},   {0xa960, 0xa97c},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},
    {0xfe30, 0xfe6b},   {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18cd5}, {0x1aff0, 0x1b2fb}, {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c},
    {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e},
    {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a},
    {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6df},
    {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff},
    {0x1fa70, 0x1faf8}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd},
};

/* Controls and marks that combine with the character before them, as far as words of a lesson may hold them. */
static const code_range narrow[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x093c, 0x093c}, {0x094d, 0x094d}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2064}, {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
};

static bool within(const code_range *ranges, size_t count, uint32_t code) {
    for (size_t i = 0; i < count && ranges[i].first <= code; i++)
        if (code <= ranges[i].last) return true;
    return false;
}

int display_code_width(uint32_t code) {
    if (within(narrow, sizeof narrow / sizeof *narrow, code)) return 0;
    return within(wide, sizeof wide / sizeof *wide, code) ? 2 : 1;
}

int display_width(const char *text) {
    int width = 0;
    while (*text != '\0') {
        uint32_t code;
        text += display_decode(text, &code);
        width += display_code_width(code);
    }
    return width;
}

bool display_blank(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

/* How many bytes of a text fit into `width` columns; *used: how many they take. */
static size_t fitting(const char *text, int width, int *used) {
    size_t bytes = 0;
    *used = 0;
    while (text[bytes] != '\0') {
        uint32_t code;
        size_t length = display_decode(text + bytes, &code);
        int columns = display_code_width(code);
        if (*used + columns > width) break;
        *used += columns;
        bytes += length;
    }
    return bytes;
}

void display_pad(FILE *out, const char *text, int width, bool right) {
    int used = display_width(text);
    bool cut = used > width;
    size_t bytes = cut ? fitting(text, width - 1, &used) : strlen(text);
    if (cut) used++;
    if (right) fprintf(out, "%*s", width - used, "");
    fprintf(out, "%.*s%s", (int)bytes, text, cut ? "…" : "");
    if (!right) fprintf(out, "%*s", width - used, "");
}

/* Characters that no line starts with, nor one ends before. */
static bool closes(uint32_t code) {
    static const uint32_t closing[] = {0x3001, 0x3002, 0xff0c, 0xff1a, 0xff1b, 0xff1f, 0xff01, 0xff09, 0x300d, 0x300f, 0x201d,
                                       0x2019, 0x300b, 0x2026, ',',    '.',    ':',    ';',    '?',    '!',    ')'};
    for (size_t i = 0; i < sizeof closing / sizeof *closing; i++)
        if (closing[i] == code) return true;
    return false;
}

static bool opens(uint32_t code) {
    return code == 0xff08 || code == 0x300c || code == 0x300e || code == 0x201c || code == 0x300a || code == '(';
}

/* The bytes of a text up to where a line may end: behind a word, or between characters of which one is wide. */
static size_t unbroken(const char *text, int *width) {
    size_t bytes = 0;
    uint32_t last = 0;
    *width = 0;
    while (text[bytes] != '\0' && text[bytes] != ' ') {
        uint32_t code;
        size_t length = display_decode(text + bytes, &code);
        bool between = last != 0 && (display_code_width(code) == 2 || display_code_width(last) == 2);
        if (between && !closes(code) && !opens(last)) break;
        *width += display_code_width(code);
        last = code;
        bytes += length;
    }
    return bytes;
}

void display_wrap(FILE *out, const char *text, int width, int first, int indent) {
    int column = first;
    bool blank = false, empty = true; /* a blank is owed; nothing on this line yet */
    while (*text != '\0') {
        if (*text == ' ') {
            blank = true;
            text++;
            continue;
        }
        int columns;
        size_t bytes = unbroken(text, &columns);
        if (!empty && column + blank + columns > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            empty = true;
        }
        if (blank && !empty) fputc(' ', out);
        column += columns + (blank && !empty);
        fprintf(out, "%.*s", (int)bytes, text);
        text += bytes;
        blank = empty = false;
    }
    fputc('\n', out);
}

size_t display_line(const char *text, int width, int *used) {
    size_t bytes = 0;
    *used = 0;
    for (;;) {
        const size_t blanks = strspn(text + bytes, " ");
        int columns;
        const size_t word = unbroken(text + bytes + blanks, &columns);
        if (word == 0 || *used + (int)blanks + columns > width) break;
        bytes += blanks + word;
        *used += (int)blanks + columns;
    }
    if (bytes > 0 || *text == '\0') return bytes;
    bytes = fitting(text, width, used);
    uint32_t code;
    return bytes > 0 ? bytes : display_decode(text, &code);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

void display_group(char *number, size_t size) {
    const size_t sign = *number == '-', digits = strspn(number + sign, "0123456789");
    if (strchr(number, 'e') != NULL) return;
    for (size_t from_end = 3; from_end < digits; from_end += 3) {
        char *at = number + sign + digits - from_end;
        if (strlen(number) + 2 > size) return;
        memmove(at + 1, at, strlen(at) + 1);
        *at = ',';
    }
}
