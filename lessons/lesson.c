/* SPDX-License-Identifier: Apache-2.0 */
#include "lesson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "display.h"

/* ---- running ------------------------------------------------------------------------------------------------------- */

const lesson_entry *lesson_find(const char *name) {
    const lesson_entry *entry = lesson_table;
    while (entry->name != NULL && strcmp(entry->name, name) != 0) entry++;
    return entry->name != NULL ? entry : NULL;
}

void lesson_fail(lesson *lesson, int exit_code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(lesson->error, sizeof lesson->error, format, args);
    va_end(args);
    lesson->exit_code = exit_code;
    longjmp(lesson->escape, 1);
}

void lesson_device_text(doc_language language, const clattn_device_info *info, char *text, size_t size) {
    const bool zh = language == DOC_ZH;
    if (info->kind == CLATTN_DEVICE_NATIVE)
        snprintf(text, size, zh ? "处理器 %s" : "the processor, %s", info->name);
    else if (info->kind == CLATTN_DEVICE_REFERENCE)
        snprintf(text, size, "%s", zh ? "处理器，双精度的普通循环" : "the processor, by plain loops in double precision");
    else
        snprintf(text, size, zh ? "%s（OpenCL 设备 %s）" : "%s (OpenCL device %s)", info->name, info->id);
}

bool lesson_run(lesson *lesson, const lesson_entry *entry, clattn_context *context, doc_language language,
                const lesson_parameters *parameters) {
    memset(lesson, 0, sizeof *lesson);
    lesson->context = context;
    lesson->parameters = *parameters;
    lesson->exit_code = CLI_FAILURE; /* what it is when the arena gives up, which has no words of its own */
    snprintf(lesson->error, sizeof lesson->error, "out of memory");
    lesson->arena.escape = &lesson->escape;
    lesson->figures.arena = &lesson->arena;
    lesson->doc = (doc){.arena = &lesson->arena,
                        .language = language,
                        .name = entry->name,
                        .title = language == DOC_ZH ? entry->zh : entry->en,
                        .minutes = entry->minutes};
    if (setjmp(lesson->escape) != 0) return false;
    clattn_device_info info = CLATTN_DEVICE_INFO_INIT;
    if (clattn_context_device(context, &info) != CLATTN_OK)
        lesson_fail(lesson, CLI_FAILURE, "the device does not say its name");
    char *device = ARENA_NEW(&lesson->arena, char, LESSON_DEVICE_TEXT);
    lesson_device_text(language, &info, device, LESSON_DEVICE_TEXT);
    lesson->doc.device = device;
    entry->run(lesson);
    doc_tell_apart(&lesson->doc);
    return true;
}

void lesson_free(lesson *lesson) {
    arena_free(&lesson->arena);
}

/* ---- parameters ---------------------------------------------------------------------------------------------------- */

int64_t lesson_integer(cli_integer parameter, int64_t otherwise) {
    return parameter.given ? parameter.value : otherwise;
}

static int compare_lengths(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

size_t lesson_lengths(const lesson *lesson, const int64_t *otherwise, size_t count, int64_t lengths[CLI_MAX_INTEGERS]) {
    const cli_integers *asked = &lesson->parameters.lengths;
    if (asked->count > 0) {
        otherwise = asked->values;
        count = asked->count;
    }
    memcpy(lengths, otherwise, count * sizeof *lengths);
    qsort(lengths, count, sizeof *lengths, compare_lengths);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || lengths[i] != lengths[kept - 1]) lengths[kept++] = lengths[i];
    return kept;
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

enum { MAX_WORDS = 256 };

/* The length in bytes of the word at the start of `text`: a wide character, or what comes up to a blank or a wide one. */
static size_t word_length(const char *text) {
    size_t length = 0;
    while (text[length] != '\0' && !display_blank(text[length])) {
        uint32_t code;
        size_t bytes = display_decode(text + length, &code);
        bool wide = display_code_width(code) == 2;
        if (wide && length > 0) break;
        length += bytes;
        if (wide) break;
    }
    return length;
}

/* A word and what it means, side by side; in brackets where both are of one script, and would read as two words. */
static const char *label_word(const lesson *lesson, const char *word, const char *meaning) {
    uint32_t code;
    display_decode(word, &code);
    if (meaning == NULL) return word;
    const bool one_script = lesson->doc.language == DOC_EN && display_code_width(code) == 1;
    return arena_format(lesson->doc.arena, one_script ? "%s (%s)" : "%s %s", word, meaning);
}

static lesson_words take_own_words(lesson *lesson, const lesson_word *own, int64_t count) {
    arena *arena = &lesson->arena;
    const char **at = ARENA_NEW(arena, const char *, count), **labels = ARENA_NEW(arena, const char *, count),
               **meanings = ARENA_NEW(arena, const char *, count);
    for (int64_t i = 0; i < count; i++) {
        at[i] = own[i].word;
        meanings[i] = lesson->doc.language == DOC_ZH ? own[i].zh : own[i].en;
        labels[i] = label_word(lesson, at[i], meanings[i]);
    }
    return (lesson_words){.count = count, .at = at, .meanings = meanings[0] != NULL ? meanings : NULL, .labels = labels};
}

lesson_words lesson_take_words(lesson *lesson, const lesson_word *otherwise, int64_t count) {
    const char *text = lesson->parameters.text;
    if (text == NULL) return take_own_words(lesson, otherwise, count);
    if (!display_valid(text)) lesson_fail(lesson, CLI_USAGE, "--text is not UTF-8");
    const char **words = ARENA_NEW(&lesson->arena, const char *, MAX_WORDS);
    count = 0;
    for (const char *c = text; *c != '\0'; c++)
        if ((*c > 0 && *c < ' ' && !display_blank(*c)) || *c == 0x7f)
            lesson_fail(lesson, CLI_USAGE, "--text has a control character in it");
    while (display_blank(*text)) text++;
    while (*text != '\0') {
        if (count == MAX_WORDS) lesson_fail(lesson, CLI_USAGE, "--text has more than %d words", MAX_WORDS);
        size_t length = word_length(text);
        words[count++] = arena_format(&lesson->arena, "%.*s", (int)length, text);
        text += length;
        while (display_blank(*text)) text++;
    }
    if (count == 0) lesson_fail(lesson, CLI_USAGE, "--text has no word in it");
    return (lesson_words){.count = count, .at = words, .labels = words, .own = true};
}

const char *lesson_quote(lesson *lesson, const char *word) {
    return arena_format(&lesson->arena, "“%s”", word);
}

const char *lesson_name_word(lesson *lesson, lesson_words words, int64_t index) {
    if (words.meanings == NULL) return lesson_quote(lesson, words.at[index]);
    return doc_text(&lesson->doc, "“%s”（%s）", "“%s” (%s)", words.at[index], words.meanings[index]);
}

void lesson_introduce_words(lesson *lesson, lesson_words words, const char *zh, const char *en) {
    arena *arena = &lesson->arena;
    const char *sentence = words.at[0], *each = lesson_name_word(lesson, words, 0);
    if (words.meanings == NULL) return;
    for (int64_t i = 1; i < words.count; i++) {
        sentence = arena_format(arena, "%s %s", sentence, words.at[i]);
        each = doc_text(&lesson->doc, "%s、%s", "%s, %s", each, lesson_name_word(lesson, words, i));
    }
    doc_say(&lesson->doc, "例句“%s”：%s。逐词：%s。", "The sentence “%s” says: %s. Word by word: %s.", sentence,
            lesson->doc.language == DOC_ZH ? zh : en, each);
}

void lesson_say_words(lesson *lesson, lesson_words words, uint32_t seed) {
    if (!words.own) return;
    doc_say(&lesson->doc,
            "这是你自己的 %lld 个词。它们的词向量是用种子 %u 随机抽取的，没有经过训练：图里的形状是算出来的，词义不是。",
            "These are your own %lld words. Their vectors are drawn at random with seed %u and were never trained: the "
            "arithmetic is real, the meaning is not.",
            (long long)words.count, seed);
}

const char *lesson_refer(lesson *lesson, const char *name) {
    const lesson_entry *entry = lesson_find(name);
    return doc_text(&lesson->doc, "“%s”（%s）", "“%s” (%s)", lesson->doc.language == DOC_ZH ? entry->zh : entry->en, name);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

const char *lesson_count(lesson *lesson, int64_t count) {
    enum { SIZE = 32 };
    char *text = arena_alloc(&lesson->arena, SIZE);
    snprintf(text, SIZE, "%lld", (long long)count);
    display_group(text, SIZE);
    return text;
}

const char *lesson_tiny(lesson *lesson, double value) {
    static const char *const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    if (value == 0) return "0";
    char *text = arena_format(&lesson->arena, "%.1e", value), *e = strchr(text, 'e');
    const long power = strtol(e + 1, NULL, 10);
    *e = '\0';
    text = arena_format(&lesson->arena, "%s×10%s", text, power < 0 ? "⁻" : "");
    for (const char *c = arena_format(&lesson->arena, "%ld", labs(power)); *c != '\0'; c++)
        text = arena_format(&lesson->arena, "%s%s", text, digits[*c - '0']);
    return text;
}

/* ---- matrices ------------------------------------------------------------------------------------------------------ */

doc_matrix *lesson_show(lesson *lesson, const char *id, const char *title, const char *symbol, doc_role role, mat values,
                        const char *const *row_labels, const char *const *col_labels) {
    doc_matrix *matrix = doc_add_matrix(&lesson->doc, id, title, values.rows, values.cols);
    matrix->symbol = symbol;
    matrix->role = role;
    matrix->values = mat_doubles(&lesson->arena, values);
    matrix->row_labels = row_labels;
    matrix->col_labels = col_labels;
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < values.rows * values.cols; i++) {
        if (!isfinite(matrix->values[i])) continue;
        low = fmin(low, matrix->values[i]);
        high = fmax(high, matrix->values[i]);
    }
    if (low <= high) lesson_scale(matrix, low, high);
    return matrix;
}

void lesson_derive(doc_matrix *matrix, doc_rule rule, const char *left, const char *right, double factor) {
    matrix->rule = rule;
    matrix->left = left;
    matrix->right = right;
    matrix->factor = factor;
}

void lesson_scale(doc_matrix *matrix, double low, double high) {
    matrix->low = low;
    matrix->high = high;
}

static doc_matrix *find_matrix(const doc *doc, const char *id) {
    for (const doc_block *block = doc->first; block != NULL; block = block->next)
        if (block->kind == DOC_MATRIX && strcmp(block->id, id) == 0) return block->matrix;
    return NULL;
}

void lesson_share_scale(lesson *lesson, const char *id, ...) {
    enum { MOST = 16 };
    doc_matrix *shared[MOST];
    size_t count = 0;
    double low = INFINITY, high = -INFINITY;
    va_list ids;
    va_start(ids, id);
    for (const char *next = id; next != NULL && count < MOST; next = va_arg(ids, const char *)) {
        doc_matrix *matrix = find_matrix(&lesson->doc, next);
        if (matrix == NULL) continue;
        low = fmin(low, matrix->low);
        high = fmax(high, matrix->high);
        shared[count++] = matrix;
    }
    va_end(ids);
    for (size_t i = 0; i < count; i++) {
        lesson_scale(shared[i], low, high);
        shared[i]->scale_group = id;
    }
}

void lesson_mask_causal(lesson *lesson, doc_matrix *matrix) {
    bool *masked = ARENA_NEW(&lesson->arena, bool, matrix->rows * matrix->cols);
    for (int64_t i = 0; i < matrix->rows; i++)
        for (int64_t j = i + 1; j < matrix->cols; j++) masked[i * matrix->cols + j] = true;
    matrix->masked = masked;
}
