/* What the letters in the course mean: one symbol for a quantity, one quantity for a symbol.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_SYMBOLS_H
#define CLATTN_LESSONS_SYMBOLS_H

typedef struct lesson_symbol {
    const char *symbol, *lesson; /* in which it appears first */
    const char *zh, *en;
} lesson_symbol;

/* In the order in which they appear; ends at a NULL symbol. */
extern const lesson_symbol lesson_symbols[];

#endif
