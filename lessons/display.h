/* Text on a terminal: UTF-8 and how many columns it takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The C library's wcwidth depends on a locale that the machine may not have; this does not.
 */
#ifndef CLATTN_LESSONS_DISPLAY_H
#define CLATTN_LESSONS_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The character at the start of a text that does not end there, and its length in bytes; U+FFFD for a byte that starts none. */
size_t display_decode(const char *text, uint32_t *code);
/* Whether all of it is UTF-8. */
bool display_valid(const char *text);
/* 2 for what East Asian fonts draw wide, 0 for what stands on the character before it and for controls, else 1. */
int display_code_width(uint32_t code);
int display_width(const char *text);
bool display_blank(char byte);

/* The text in exactly `width` columns: filled with blanks on the right (or, `right`, on the left), or cut with an ellipsis. */
void display_pad(FILE *out, const char *text, int width, bool right);
/* How many bytes of a text make a line of at most `width` columns, and how many columns they take: up to where display_wrap
 * would break, or where a word is longer than the line, within the word. At least one character of what is not empty. */
size_t display_line(const char *text, int width, int *used);
/* Commas between the thousands of a number that has no exponent, in place; `size` is what there is room for. */
void display_group(char *number, size_t size);
/* Words of a text within `width` columns, the first line after `first` columns that are already written, later ones after
 * `indent` blanks; ends with a newline. Breaks at blanks and between wide characters, but not before closing punctuation. */
void display_wrap(FILE *out, const char *text, int width, int first, int indent);

#endif
