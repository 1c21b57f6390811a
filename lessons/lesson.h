/* What a lesson is, and what it has at hand.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A lesson is a function that computes through the library's operators on the chosen device (compute.h) and fills a document
 * (doc.h) and figures (figures.h). It has no error path of its own: whatever goes wrong leaves it by lesson_fail.
 */
#ifndef CLATTN_LESSONS_LESSON_H
#define CLATTN_LESSONS_LESSON_H

#include "cli/options.h"
#include "doc.h"
#include "figures.h"
#include "mat.h"

/* The parameters of the plotted experiments, and the student's words: each lesson takes those that mean something to it. */
#define LESSON_PARAMETERS(X)                                                                                                   \
    X(LENGTHS, "lengths")                                                                                                      \
    X(SEED, "seed")                                                                                                            \
    X(PAIRS, "pairs")                                                                                                          \
    X(FORGET_BIAS, "forget-bias")                                                                                              \
    X(DIM, "dim")                                                                                                              \
    X(TEXT, "text")

enum lesson_parameter_index {
#define LESSON_X(id, name) LESSON_INDEX_##id,
    LESSON_PARAMETERS(LESSON_X)
#undef LESSON_X
        LESSON_PARAMETER_COUNT
};

enum lesson_parameter {
#define LESSON_X(id, name) LESSON_##id = 1 << LESSON_INDEX_##id,
    LESSON_PARAMETERS(LESSON_X)
#undef LESSON_X
};

typedef struct lesson_parameters {
    cli_integers lengths;
    cli_integer seed, pairs, dim;
    cli_real forget_bias;
    const char *text;
} lesson_parameters;

typedef struct lesson {
    arena arena;
    jmp_buf escape;
    clattn_context *context;
    lesson_parameters parameters;
    doc doc;
    figures figures;
    int exit_code; /* of what went wrong */
    char error[1024];
} lesson;

typedef struct lesson_entry {
    const char *name, *zh, *en; /* titles */
    int minutes;
    unsigned parameters; /* lesson_parameter, together */
    void (*run)(lesson *);
} lesson_entry;

/* In the order of the course; ends at a NULL name. */
extern const lesson_entry lesson_table[];
const lesson_entry *lesson_find(const char *name);

/* Run one on a context. True: doc and figures are there. False: exit_code and error say what went wrong. In both cases
 * lesson_free ends it. */
bool lesson_run(lesson *, const lesson_entry *, clattn_context *, doc_language language, const lesson_parameters *);
void lesson_free(lesson *);

/* What computes, in words, for those who have not met the names of devices. */
enum { LESSON_DEVICE_TEXT = 512 };
void lesson_device_text(doc_language, const clattn_device_info *, char *text, size_t size);

/* Leave the lesson. */
_Noreturn void lesson_fail(lesson *, int exit_code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The value of a parameter, or what it is when nobody said. */
int64_t lesson_integer(cli_integer parameter, int64_t otherwise);
/* Lengths likewise, ascending and without repetition. Returns how many. */
size_t lesson_lengths(const lesson *, const int64_t *otherwise, size_t count, int64_t lengths[CLI_MAX_INTEGERS]);

/* A word of a lesson, and what it means to those who read another language; NULL in its own. */
typedef struct lesson_word {
    const char *word, *zh, *en;
} lesson_word;

/* Words: the student's, split at blanks and between Chinese characters, or those of the lesson. */
typedef struct lesson_words {
    int64_t count;
    const char *const *at;
    const char *const *meanings; /* NULL: the reader knows them, or they are the student's */
    const char *const *labels;   /* where a picture has room: the word and what it means */
    bool own;                    /* the student's: their vectors are drawn */
} lesson_words;

lesson_words lesson_take_words(lesson *, const lesson_word *otherwise, int64_t count);
/* The lesson's words as a sentence, and each of them with what it means; nothing where the reader knows them. */
void lesson_introduce_words(lesson *, lesson_words, const char *zh, const char *en);
/* A word that is spoken of, in quotation marks; and one that the reader meets for the first time, with what it means. */
const char *lesson_quote(lesson *, const char *word);
const char *lesson_name_word(lesson *, lesson_words, int64_t index);
/* Another lesson, by its title, which pages make a link of, and its name. */
const char *lesson_refer(lesson *, const char *name);
/* A number of things, "1,769,472"; a number that may be tiny, "1.2×10⁻⁷". */
const char *lesson_count(lesson *, int64_t count);
const char *lesson_tiny(lesson *, double value);
/* Say where the vectors of the student's words come from; nothing for the lesson's own. */
void lesson_say_words(lesson *, lesson_words, uint32_t seed);

/* A matrix of the document with its values, and the scale from the least to the greatest of them. */
doc_matrix *lesson_show(lesson *, const char *id, const char *title, const char *symbol, doc_role role, mat values,
                        const char *const *row_labels, const char *const *col_labels);
/* Its cells follow from other blocks. */
void lesson_derive(doc_matrix *, doc_rule rule, const char *left, const char *right, double factor);
/* The scale of weights: 0 to 1. */
void lesson_scale(doc_matrix *, double low, double high);
/* One scale for the matrices with these ids, whose numbers are compared: the same number has the same colour in all of them. An
 * id that the document does not have is passed over; NULL ends them. */
void lesson_share_scale(lesson *, const char *id, ...) __attribute__((sentinel));
/* Cells above the diagonal are no numbers. */
void lesson_mask_causal(lesson *, doc_matrix *);

#endif
