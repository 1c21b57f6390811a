/* What the lab says, in the class's language.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The English words stand where they are said; words.c holds the Chinese for each. A format keeps its conversions, in their
 * order.
 */
#ifndef CLATTN_CLI_LAB_WORDS_H
#define CLATTN_CLI_LAB_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* For the whole process, which speaks one language. */
void lab_speak_chinese(bool is_chinese);

/* The words in that language; those that words.c does not have, as they are. */
const char *lab_words(const char *english) __attribute__((format_arg(1)));

typedef struct lab_translation {
    const char *english, *chinese;
} lab_translation;
extern const lab_translation lab_translations[];
extern const size_t lab_translation_count;

#endif
