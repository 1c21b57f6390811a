/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

enum { MAX_WORK_GROUP = 1024, MAX_TILE = 4096 };

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static bool refuse(lab_source *source, const char *why_not, char *why, size_t why_size) {
    snprintf(why, why_size, "%s: %s", source->path, why_not);
    lab_source_free(source);
    return false;
}

bool lab_source_read(lab_source *source, const char *path, char *why, size_t why_size) {
    *source = (lab_source){.path = path, .text = malloc(LAB_MAX_SOURCE + 1)};
    if (source->text == NULL) return refuse(source, "out of memory", why, why_size);
    errno = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return refuse(source, strerror(errno), why, why_size);
    source->length = fread(source->text, 1, LAB_MAX_SOURCE + 1, file);
    const int code = ferror(file) ? errno : 0;
    fclose(file);
    if (code != 0) return refuse(source, strerror(code), why, why_size);
    if (source->length > LAB_MAX_SOURCE) return refuse(source, "a kernel of more than 64 KiB", why, why_size);
    if (memchr(source->text, 0, source->length) != NULL)
        return refuse(source, "holds a NUL byte, so it is no text", why, why_size);
    source->text[source->length] = 0;
    source->include_line = lab_source_find(source, "include");
    source->asm_line = lab_source_find(source, "asm");
    if (source->asm_line == 0) source->asm_line = lab_source_find(source, "__asm");
    if (source->asm_line == 0) source->asm_line = lab_source_find(source, "__asm__");
    return true;
}

void lab_source_free(lab_source *source) {
    free(source->text);
    source->text = NULL;
}

/* ---- lines --------------------------------------------------------------------------------------------------------- */

static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end != NULL ? end + 1 : NULL;
}

static bool of_a_word(char letter) {
    return isalnum((unsigned char)letter) || letter == '_';
}

/* Whether the line holds the word before a comment begins. */
static bool line_has(const char *line, size_t length, const char *word) {
    const size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++) {
        if (line[i] == '/' && (line[i + 1] == '/' || line[i + 1] == '*')) return false;
        const bool begins = i == 0 || !of_a_word(line[i - 1]), ends = i + size == length || !of_a_word(line[i + size]);
        if (begins && ends && strncmp(line + i, word, size) == 0) return true;
    }
    return false;
}

int lab_source_find(const lab_source *source, const char *word) {
    int number = 1;
    for (const char *line = source->text; line != NULL; line = next_line(line), number++)
        if (line_has(line, strcspn(line, "\n"), word)) return number;
    return 0;
}

void lab_source_line(const lab_source *source, int number, char *text, size_t size) {
    const char *line = number > 0 ? source->text : NULL;
    for (int n = 1; n < number && line != NULL; n++) line = next_line(line);
    if (line == NULL) line = "";
    line += strspn(line, " \t");
    snprintf(text, size, "%.*s", (int)strcspn(line, "\r\n"), line);
}

/* ---- the grid ------------------------------------------------------------------------------------------------------ */

static const char *skip(const char *text, const char *letters) {
    return text + strspn(text, letters);
}

/* "local 16 16": a number for each dimension of the step. */
static const char *read_numbers(const char *text, int dimensions, int limit, int numbers[2]) {
    for (int d = 0; d < dimensions; d++) {
        char *end;
        text = skip(text, " \t=,");
        const long value = strtol(text, &end, 10);
        if (end == text || value < 1 || value > limit) return NULL;
        numbers[d] = (int)value;
        text = end;
    }
    return text;
}

static const char *read_entry(const char *text, int dimensions, lab_grid *grid) {
    if (strncmp(text, "local", 5) == 0) return read_numbers(text + 5, dimensions, MAX_WORK_GROUP, grid->local);
    if (strncmp(text, "tile", 4) == 0) return read_numbers(text + 4, dimensions, MAX_TILE, grid->tile);
    return NULL;
}

static bool read_directive(const char *text, int dimensions, lab_grid *grid) {
    while (text != NULL && *(text = skip(text, " \t,")) != 0 && *text != '\n' && *text != '\r')
        text = read_entry(text, dimensions, grid);
    return text != NULL && grid->local[0] * grid->local[1] <= MAX_WORK_GROUP;
}

/* What follows "// lab:" where a line begins so. */
static const char *directive_of(const char *line) {
    line = skip(line, " \t");
    if (strncmp(line, "//", 2) != 0) return NULL;
    line = skip(line + 2, " \t");
    return strncmp(line, "lab:", 4) == 0 ? line + 4 : NULL;
}

bool lab_source_grid(lab_source *source, const lab_step *step, int *line_number, char *why, size_t why_size) {
    source->grid = (lab_grid){{step->local[0], step->local[1]}, {step->tile[0], step->tile[1]}};
    *line_number = 1;
    for (const char *line = source->text; line != NULL; line = next_line(line), ++*line_number) {
        const char *directive = directive_of(line);
        if (directive == NULL) continue;
        if (read_directive(directive, step->dimensions, &source->grid)) return true;
        snprintf(
            why, why_size,
            lab_words("wants \"// lab: local %s tile %s\", a work-group of at most %d and a tile of at most %d a dimension"),
            step->dimensions == 2 ? "X Y" : "N", step->dimensions == 2 ? "COLUMNS ROWS" : "ROWS", MAX_WORK_GROUP, MAX_TILE);
        return false;
    }
    *line_number = 0;
    return true;
}
