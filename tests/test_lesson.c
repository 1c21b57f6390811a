/* The course: NumPy's random numbers, every figure of the lessons on every device, documents that say what they compute, text
 * in columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lessons/compute.h"
#include "lessons/display.h"
#include "lessons/doc_json.h"
#include "lessons/lesson.h"
#include "lessons/symbols.h"
#include "lessons/terminal.h"
#include "support.h"

static const lesson_parameters defaults;

/* Run a lesson; fail with its own words. */
static void run_lesson(lesson *lesson, const lesson_entry *entry, clattn_context *context, doc_language language,
                       const lesson_parameters *parameters) {
    bool right = lesson_run(lesson, entry, context, language, parameters);
    ck_assert_msg(right, "%s: %s", entry->name, lesson->error);
}

static clattn_context *native_context(void) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context = NULL;
    options.device = "native";
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    return context;
}

/* ---- random ------------------------------------------------------------------------------------------------------- */

/* RandomState(42), as NumPy prints them with all digits. */
START_TEST(random_numbers_are_numpys) {
    static const double uniform[] = {0.3745401188473625, 0.9507143064099162, 0.7319939418114051, 0.5986584841970366};
    static const double normal[] = {0.4967141530112327, -0.13826430117118466, 0.6476885381006925, 1.5230298564080254,
                                    -0.23415337472333597};
    numpy_random random;
    numpy_seed(&random, 42);
    for (size_t i = 0; i < COUNT(uniform); i++) ck_assert_double_eq(numpy_rand(&random), uniform[i]);
    numpy_seed(&random, 42);
    for (size_t i = 0; i < COUNT(normal); i++) ck_assert_double_eq(numpy_randn(&random), normal[i]);
}
END_TEST

/* The 10000th word of MT19937 from seed 5489 is the published check of an implementation. */
START_TEST(random_words_are_the_generators) {
    numpy_random random;
    numpy_seed(&random, 5489);
    double last = 0;
    for (int i = 0; i < 5000; i++) last = numpy_rand(&random); /* two words each */
    ck_assert_uint_eq((uint64_t)(last * 9007199254740992.0) & 0x3ffffff, UINT64_C(4123659995) >> 6);
}
END_TEST

START_TEST(rounding_is_numpys) {
    ck_assert_double_eq(numpy_round2(0.125), 0.12); /* to even */
    ck_assert_double_eq(numpy_round2(0.135), 0.14);
    ck_assert_double_eq(numpy_round2(-1.005), -1.0); /* 100 x is -100.49999999999999 */
}
END_TEST

/* ---- figures ------------------------------------------------------------------------------------------------------- */

#ifdef CLATTN_HAVE_CJSON

/* All figures of a course, and how far they are from those they should be. */
typedef struct comparison {
    const lesson *lessons;
    size_t lesson_count, compared;
    double largest;
    const char *device;
} comparison;

static const figure *find_figure(const comparison *c, const char *path) {
    for (size_t i = 0; i < c->lesson_count; i++) {
        const figure *figure = figures_find(&c->lessons[i].figures, path);
        if (figure != NULL) return figure;
    }
    return NULL;
}

static void compare_value(comparison *c, const char *path, const figure *figure, int64_t index, const cJSON *wanted) {
    c->compared++;
    ck_assert_msg(index < figure->size[0] * figure->size[1], "%s: %s has no value %lld", c->device, path, (long long)index);
    if (cJSON_IsString(wanted)) {
        ck_assert_ptr_nonnull(figure->texts);
        ck_assert_str_eq(figure->texts[index], wanted->valuestring);
        return;
    }
    ck_assert_ptr_nonnull(figure->numbers);
    double error = fabs(figure->numbers[index] - wanted->valuedouble);
    ck_assert_msg(error <= 1e-5, "%s: %s[%lld] is %.9g, not %.9g", c->device, path, (long long)index, figure->numbers[index],
                  wanted->valuedouble);
    c->largest = fmax(c->largest, error);
}

static void compare_figure(comparison *c, const char *path, const cJSON *wanted) {
    const figure *figure = find_figure(c, path);
    ck_assert_msg(figure != NULL, "%s: there is no figure %s", c->device, path);
    const cJSON *row, *value;
    int64_t index = 0;
    if (!cJSON_IsArray(wanted)) {
        compare_value(c, path, figure, 0, wanted);
        return;
    }
    cJSON_ArrayForEach(row, wanted) {
        if (!cJSON_IsArray(row))
            compare_value(c, path, figure, index++, row);
        else
            cJSON_ArrayForEach(value, row) compare_value(c, path, figure, index++, value);
    }
    ck_assert_int_eq(index, figure->size[0] * figure->size[1]);
}

static void compare_tree(comparison *c, const char *path, const cJSON *wanted) {
    if (!cJSON_IsObject(wanted)) {
        compare_figure(c, path, wanted);
        return;
    }
    const cJSON *child;
    cJSON_ArrayForEach(child, wanted) {
        char below[256];
        snprintf(below, sizeof below, "%s%s%s", path, *path != '\0' ? "/" : "", child->string);
        compare_tree(c, below, child);
    }
}

static cJSON *read_json(const char *path) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    static char text[1 << 16];
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    cJSON *json = cJSON_Parse(text);
    ck_assert_ptr_nonnull(json);
    return json;
}

/* Of the devices that are there, `until` the one of that number. */
static size_t devices_there(size_t until) {
    size_t there = 0;
    for (size_t n = 0; n < until; n++) there += test_context(n) != NULL;
    return there;
}

START_TEST(figures_are_those_of_the_documents) {
    clattn_context *context = test_context((size_t)_i);
    if (context == NULL || !test_draws(devices_there((size_t)_i), devices_there(test_device_count()))) return; /* skipped, or not drawn */
    cJSON *wanted = read_json(CLATTN_TEST_DATA "/lesson_figures.json");
    lesson lessons[32];
    comparison c = {.lessons = lessons, .device = test_device_name((size_t)_i)};
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++)
        run_lesson(&lessons[c.lesson_count++], entry, context, DOC_EN, &defaults);
    compare_tree(&c, "", wanted);
    ck_assert_uint_ge(c.compared, 300);
    printf("%s: %zu figures, the largest error %.1e\n", c.device, c.compared, c.largest);
    for (size_t i = 0; i < c.lesson_count; i++) lesson_free(&lessons[i]);
    cJSON_Delete(wanted);
}
END_TEST

START_TEST(a_document_is_json) {
    clattn_context *context = native_context();
    lesson lesson;
    lesson_parameters parameters = {.text = "</script> \"quoted\" \\ 词"};
    run_lesson(&lesson, lesson_find("word-vectors"), context, DOC_ZH, &parameters);
    cJSON *tree = doc_json(&lesson.doc);
    char *text = cJSON_Print(tree);
    cJSON *read = cJSON_Parse(text);
    ck_assert_int_eq(cJSON_Compare(tree, read, true), 1);
    ck_assert_int_eq(cJSON_GetObjectItem(read, "steps")->valueint, lesson.doc.step);
    const cJSON *block;
    int matrices = 0;
    cJSON_ArrayForEach(block, cJSON_GetObjectItem(read, "blocks")) {
        const cJSON *matrix = cJSON_GetObjectItem(block, "matrix");
        if (matrix == NULL) continue;
        matrices++;
        ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(matrix, "values")),
                         cJSON_GetObjectItem(matrix, "rows")->valueint);
        ck_assert(cJSON_IsString(cJSON_GetObjectItem(block, "summary")));
    }
    ck_assert_int_gt(matrices, 5);
    cJSON_Delete(read);
    cJSON_free(text);
    cJSON_Delete(tree);
    lesson_free(&lesson);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(figures_are_nested_by_path) {
    jmp_buf escape;
    arena arena = {.escape = &escape};
    ck_assert_int_eq(setjmp(escape), 0);
    figures figures = {.arena = &arena};
    figures_at(&figures, "a/b", 32, 0.5);
    figures_number(&figures, "a/c", NAN);
    figures_texts(&figures, "d", 2, (const char *const[]){"x", "y"});
    cJSON *root = cJSON_CreateObject();
    ck_assert(figures_json(root, &figures));
    char *text = cJSON_PrintUnformatted(root);
    ck_assert_str_eq(text, "{\"a\":{\"b\":{\"32\":0.5},\"c\":null},\"d\":[\"x\",\"y\"]}");
    cJSON_free(text);
    cJSON_Delete(root);
    arena_free(&arena);
}
END_TEST

#endif

/* ---- documents ----------------------------------------------------------------------------------------------------- */

static const doc_block *find_block(const doc *doc, const char *id) {
    const doc_block *block = doc->first;
    while (block != NULL && strcmp(block->id, id) != 0) block = block->next;
    return block;
}

static double cell(const doc_matrix *m, int64_t i, int64_t j) {
    return m->values[i * m->cols + j];
}

static double dot(const doc_matrix *left, int64_t i, const doc_matrix *right, int64_t j, bool rows) {
    double sum = 0;
    for (int64_t k = 0; k < left->cols; k++) sum += cell(left, i, k) * (rows ? cell(right, j, k) : cell(right, k, j));
    return sum;
}

/* What the rule says cell (i, j) is: the formula that a page shows for the cell. */
static double derived(const doc_matrix *m, const doc_matrix *left, const doc_matrix *right, int64_t i, int64_t j) {
    switch (m->rule) {
    case DOC_RULE_PRODUCT:
        return m->factor * dot(left, i, right, j, false);
    case DOC_RULE_PRODUCT_ROWS:
        return m->factor * dot(left, i, right, j, true);
    case DOC_RULE_SUM:
        return cell(left, i, j) + cell(right, i, j);
    case DOC_RULE_TANH:
        return tanh(cell(left, i, j));
    case DOC_RULE_LOG:
        return log(cell(left, i, j));
    default:
        return NAN;
    }
}

/* Softmax of a row of `left` whose maximum is subtracted; what is masked has weight 0. */
static double derived_softmax(const doc_matrix *left, int64_t i, int64_t j) {
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < left->cols; k++) max = fmax(max, cell(left, i, k));
    for (int64_t k = 0; k < left->cols; k++) sum += exp(cell(left, i, k) - max);
    return exp(cell(left, i, j) - max) / sum;
}

static int check_rule(const doc *doc, const doc_block *block) {
    const doc_matrix *m = block->matrix;
    if (m->rule == DOC_RULE_GIVEN) return 0;
    const doc_block *left = find_block(doc, m->left), *right = m->right != NULL ? find_block(doc, m->right) : NULL;
    ck_assert_msg(left != NULL && (m->right == NULL || right != NULL), "%s: %s is derived from blocks that are not there",
                  doc->name, block->id);
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t j = 0; j < m->cols; j++) {
            double wanted = m->rule == DOC_RULE_SOFTMAX ? derived_softmax(left->matrix, i, j)
                                                        : derived(m, left->matrix, right != NULL ? right->matrix : NULL, i, j);
            double got = cell(m, i, j);
            if (isnan(got)) continue; /* the two softmaxes that are wrong on purpose */
            ck_assert_msg(fabs(got - wanted) <= 1e-4 * (1 + fabs(wanted)), "%s: %s(%lld, %lld) is %g, its rule says %g",
                          doc->name, block->id, (long long)i, (long long)j, got, wanted);
        }
    }
    return 1;
}

/* Ids are unique, steps ascend, every figure has a title and words that say what it shows. */
static void check_blocks(const doc *doc, int counts[DOC_KIND_COUNT]) {
    int last = 0;
    for (const doc_block *block = doc->first; block != NULL; block = block->next) {
        counts[block->kind]++;
        ck_assert_ptr_eq(find_block(doc, block->id), block);
        ck_assert_msg(block->kind == DOC_MATRIX || block->step >= last, "%s: %s goes back", doc->name, block->id);
        last = block->step > last ? block->step : last;
        ck_assert_int_le(block->step, doc->step);
        if (block->text != NULL)
            ck_assert_msg(display_valid(block->text) && *block->text != '\0', "%s: %s", doc->name, block->id);
        else
            ck_assert(block->title != NULL && *doc_describe(doc, block) != '\0');
    }
}

START_TEST(lessons_ask_show_and_correct) {
    clattn_context *context = native_context();
    int derived_matrices = 0;
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) {
        int counts[2][DOC_KIND_COUNT] = {{0}};
        for (int language = DOC_ZH; language <= DOC_EN; language++) {
            lesson lesson;
            run_lesson(&lesson, entry, context, (doc_language)language, &defaults);
            check_blocks(&lesson.doc, counts[language]);
            for (const doc_block *block = lesson.doc.first; block != NULL; block = block->next)
                if (block->kind == DOC_MATRIX) derived_matrices += check_rule(&lesson.doc, block);
            lesson_free(&lesson);
        }
        for (int kind = 0; kind < DOC_KIND_COUNT; kind++) /* a remark of what was too slow may come or not */
            if (kind != DOC_PARAGRAPH)
                ck_assert_msg(counts[0][kind] == counts[1][kind], "%s: %s", entry->name, doc_kind_name(kind));
        ck_assert_msg(counts[0][DOC_QUESTION] == 1 && counts[0][DOC_MISCONCEPTION] == 1 && counts[0][DOC_FORMULA] >= 1, "%s",
                      entry->name);
        ck_assert_msg(counts[0][DOC_MATRIX] + counts[0][DOC_PLOT] > 0, "%s shows nothing", entry->name);
    }
    ck_assert_int_ge(derived_matrices, 40);
    clattn_context_destroy(context);
}
END_TEST

/* Whether a text has characters of Chinese. */
static bool is_chinese(const char *text) {
    while (text != NULL && *text != '\0') {
        uint32_t code;
        text += display_decode(text, &code);
        if (code >= 0x4e00 && code < 0xa000) return true;
    }
    return false;
}

START_TEST(each_language_is_its_own) {
    clattn_context *context = native_context();
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) {
        lesson zh, en;
        run_lesson(&zh, entry, context, DOC_ZH, &(lesson_parameters){0});
        run_lesson(&en, entry, context, DOC_EN, &(lesson_parameters){0});
        ck_assert(is_chinese(zh.doc.title) && !is_chinese(en.doc.title));
        for (const doc_block *block = zh.doc.first; block != NULL; block = block->next)
            if (block->kind != DOC_FORMULA && block->text != NULL)
                ck_assert_msg(is_chinese(block->text), "%s: %s", entry->name, block->text);
        const bool chinese_words = strstr("word-vectors heads mask", entry->name) != NULL; /* the sentence itself is Chinese */
        for (const doc_block *block = en.doc.first; block != NULL; block = block->next)
            ck_assert_msg(chinese_words ||
                              !(is_chinese(block->text) || is_chinese(block->answer) || is_chinese(block->summary)),
                          "%s: %s", entry->name, block->id);
        lesson_free(&zh);
        lesson_free(&en);
    }
    clattn_context_destroy(context);
}
END_TEST

/* Two matrices that grow together, and one by cells after them. */
START_TEST(growth_takes_steps) {
    static const double values[6] = {1, 2, 3, 4, 5, 6};
    jmp_buf escape;
    arena arena = {.escape = &escape};
    ck_assert_int_eq(setjmp(escape), 0);
    doc doc = {.arena = &arena, .language = DOC_EN};
    const doc_block *blocks[3];
    doc_step(&doc, "一", "one");
    for (int i = 0; i < 3; i++) {
        doc_matrix *matrix = doc_add_matrix(&doc, i == 0 ? "a" : i == 1 ? "b" : "c", "title", 3, 2);
        matrix->values = values;
        blocks[i] = doc.last;
        if (i == 1)
            doc_grow_together(&doc, matrix, DOC_BY_ROW);
        else
            doc_grow(&doc, matrix, i == 0 ? DOC_BY_ROW : DOC_BY_CELL, NULL);
    }
    ck_assert_int_eq(doc_cell_step(blocks[0], 0, 1), 2);
    ck_assert_int_eq(doc_cell_step(blocks[0], 2, 0), 4);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(doc_cell_step(blocks[1], i, 0), doc_cell_step(blocks[0], i, 0));
    ck_assert_int_eq(doc_cell_step(blocks[2], 0, 0), 5);
    ck_assert_int_eq(doc_cell_step(blocks[2], 2, 1), 10);
    ck_assert_int_eq(doc.step, 10);
    ck_assert_str_eq(doc_describe(&doc, blocks[0]), "3 rows, 2 columns, from 1.00 to 6.00.");
    arena_free(&arena);
}
END_TEST

/* ---- what the lessons claim ---------------------------------------------------------------------------------------- */

static double number(const lesson *lesson, const char *path) {
    const figure *figure = figures_find(&lesson->figures, path);
    ck_assert_msg(figure != NULL, "%s", path);
    return figure->numbers[0];
}

static void run_native(lesson *lesson, const char *name, clattn_context *context, const lesson_parameters *parameters) {
    run_lesson(lesson, lesson_find(name), context, DOC_EN, parameters);
}

static bool is_said(const doc *doc, const char *words) {
    for (const doc_block *block = doc->first; block != NULL; block = block->next)
        if ((block->text != NULL && strstr(block->text, words) != NULL) ||
            (block->summary != NULL && strstr(block->summary, words) != NULL))
            return true;
    return false;
}

/* A lesson as a terminal shows it. */
static char *printed(const char *name, clattn_context *context, doc_language language) {
    lesson lesson;
    char *text = NULL;
    size_t size = 0;
    run_lesson(&lesson, lesson_find(name), context, language, &defaults);
    terminal terminal = {.out = open_memstream(&text, &size)};
    ck_assert(terminal_print(&terminal, &lesson.doc));
    fclose(terminal.out);
    lesson_free(&lesson);
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n') *c = ' '; /* as if no line had been broken */
    return text;
}

static void expect_said(const char *name, clattn_context *context, doc_language language, const char *words) {
    char *text = printed(name, context, language);
    ck_assert_msg(strstr(text, words) != NULL, "%s does not say %s: %s", name, words, text);
    free(text);
}

START_TEST(claims_hold) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "heads", context, &defaults);
    ck_assert_double_le(number(&l, "heads/difference_from_loop"), 1e-6);
    lesson_free(&l);
    run_native(&l, "softmax", context, &defaults);
    ck_assert_double_le(fabs(number(&l, "softmax/online") - number(&l, "softmax/whole")), 1e-5);
    ck_assert(isnan(number(&l, "softmax/naive")) && !isnan(number(&l, "softmax/safe")));
    ck_assert(isnan(figures_find(&l.figures, "softmax/one_maximum_for_all")->numbers[3]));
    lesson_free(&l);
    run_native(&l, "mask", context, &defaults);
    ck_assert_double_eq_tol(number(&l, "mask/all_hidden_finite"), 0.2, 1e-6);
    ck_assert_double_eq(number(&l, "mask/all_hidden_infinite"), 0);
    ck_assert(isnan(number(&l, "mask/all_hidden_by_formula")));
    lesson_free(&l);
    run_native(&l, "positions", context, &defaults);
    ck_assert_double_le(number(&l, "positions/difference_without"), 1e-5);
    ck_assert_double_ge(number(&l, "positions/difference_with"), 0.1);
    lesson_free(&l);
    run_native(&l, "memory", context, &defaults);
    ck_assert_double_eq(number(&l, "memory/shares_hold_at_length"), 768);
    ck_assert_double_eq_tol(number(&l, "memory/weights_share_percent/768"), 45, 0.5);
    ck_assert_double_ge(number(&l, "memory/staged_workspace_bytes/4096"), number(&l, "memory/weights_bytes/4096"));
    ck_assert_double_lt(number(&l, "memory/fused_workspace_bytes/4096"), 0.01 * number(&l, "memory/weights_bytes/4096"));
    ck_assert_double_ge(number(&l, "memory/staged_written_bytes/1024"), 0.99 * 4 * 1024 * 1024);
    ck_assert_double_le(number(&l, "memory/fused_written_bytes/1024"), number(&l, "memory/fused_workspace_bytes/1024"));
    lesson_free(&l);
    run_native(&l, "parameters", context, &defaults);
    ck_assert_double_eq(number(&l, "parameters/transformer_layer"), 12.0 * 512 * 512);
    lesson_free(&l);
    run_native(&l, "serial-steps", context, &defaults);
    ck_assert_double_ge(number(&l, "serial_steps/recurrence_steps/16"), 16);
    ck_assert_double_eq(number(&l, "serial_steps/attention_steps/16"), 3); /* scores, softmax, weighted values */
    ck_assert_double_ge(number(&l, "serial_steps/noise/16"), 0);
    ck_assert_double_eq_tol(number(&l, "serial_steps/arithmetic/16"), 2.0 * 16 / 256, 0.01); /* 4n²d against 2nd² */
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* The online softmax by its formulas, in double: what is kept after each tile. */
START_TEST(tiles_are_as_the_formulas_say) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "softmax", context, &defaults);
    const figure *scores = figures_find(&l.figures, "softmax/tile_scores"),
                 *values = figures_find(&l.figures, "softmax/tile_values");
    const figure *sums = figures_find(&l.figures, "softmax/tile_sums"),
                 *accs = figures_find(&l.figures, "softmax/tile_accumulators");
    const int64_t states = sums->size[0], tile = scores->size[1] / (states - 1);
    double max = -INFINITY, sum = 0, acc = 0;
    ck_assert_int_eq(states, 5);
    for (int64_t t = 0; t < states; t++) {
        ck_assert_double_eq_tol(sums->numbers[t], sum, 1e-5);
        ck_assert_double_eq_tol(accs->numbers[t], acc, 1e-5);
        for (int64_t j = t * tile; j < (t + 1) * tile && j < scores->size[1]; j++) {
            const double before = max;
            max = fmax(max, scores->numbers[j]);
            sum = sum * exp(before - max) + exp(scores->numbers[j] - max);
            acc = acc * exp(before - max) + exp(scores->numbers[j] - max) * values->numbers[j];
        }
    }
    ck_assert_double_eq_tol(number(&l, "softmax/whole"), acc / sum, 1e-5);
    const doc_matrix *tiles = find_block(&l.doc, "tiles")->matrix;
    ck_assert(cell(tiles, 0, 0) == -INFINITY && cell(tiles, 0, 2) == 0 && cell(tiles, 0, 3) == 0 && cell(tiles, 1, 1) == 0);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* What no operator computes: the two softmaxes that are wrong, and the row of the mask that is NaN. Sines are in the figures.
 */
START_TEST(what_lessons_compute_themselves_is_right) {
    static const struct {
        const char *path;
        double shift;
    } wrong[] = {{"softmax/naive", 0}, {"softmax/one_maximum_for_all", 102}};
    static const float scores[2][3] = {{100, 101, 102}, {-20, -19, -18}};
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "softmax", context, &defaults);
    for (size_t w = 0; w < COUNT(wrong); w++) {
        const figure *got = figures_find(&l.figures, wrong[w].path);
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < 3; j++) {
                float sum = 0; /* in single precision, whose limits are the point */
                for (int u = 0; u < 3; u++) sum += (float)exp(scores[i][u] - wrong[w].shift);
                const double wanted = (float)exp(scores[i][j] - wrong[w].shift) / sum, value = got->numbers[3 * i + j];
                ck_assert_msg(isnan(wanted) ? isnan(value) : fabs(value - wanted) <= 1e-5, "%s(%d, %d)", wrong[w].path, i, j);
            }
        }
    }
    lesson_free(&l);
    static const char *const confessing[] = {"softmax", "mask", "positions"};
    for (size_t i = 0; i < COUNT(confessing); i++) {
        for (int language = DOC_ZH; language <= DOC_EN; language++) {
            run_lesson(&l, lesson_find(confessing[i]), context, (doc_language)language, &defaults);
            ck_assert_msg(is_said(&l.doc, language == DOC_ZH ? "由本课自己算" : "computed by the lesson itself"), "%s",
                          confessing[i]);
            lesson_free(&l);
        }
    }
    clattn_context_destroy(context);
}
END_TEST

static double distance_of_rows(const figure *a, int64_t i, const figure *b, int64_t j) {
    double sum = 0;
    for (int64_t d = 0; d < a->size[1]; d++) sum += pow(a->numbers[i * a->size[1] + d] - b->numbers[j * b->size[1] + d], 2);
    return sqrt(sum);
}

/* What word-vectors says of its arrows, and alignment of its contexts. */
START_TEST(outputs_are_near_what_they_are_said_to_be) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "word-vectors", context, &defaults);
    const figure *z = figures_find(&l.figures, "word_vectors/Z"), *v = figures_find(&l.figures, "word_vectors/V");
    const figure *mean = figures_find(&l.figures, "word_vectors/mean_of_V");
    double farthest = 0, length = 0;
    for (int64_t d = 0; d < 3; d++) {
        double sum = 0;
        for (int64_t i = 0; i < 5; i++) sum += v->numbers[3 * i + d] / 5;
        ck_assert_double_eq_tol(mean->numbers[d], sum, 1e-5);
        length += sum * sum;
    }
    for (int64_t i = 0; i < 5; i++) farthest = fmax(farthest, distance_of_rows(z, i, mean, 0) / sqrt(length));
    ck_assert_double_eq_tol(number(&l, "word_vectors/farthest_from_mean"), farthest, 1e-5);
    ck_assert_double_lt(number(&l, "word_vectors/widest_angle"), 1);
    lesson_free(&l);
    run_native(&l, "word-vectors", context, &(lesson_parameters){.text = "a b c d e f", .seed = {true, 5}});
    ck_assert(is_said(&l.doc, "arrows are not parallel") != is_said(&l.doc, "arrows are nearly parallel"));
    lesson_free(&l);
    run_native(&l, "alignment", context, &defaults);
    const figure *contexts = figures_find(&l.figures, "alignment/context"),
                 *states = figures_find(&l.figures, "alignment/values");
    static const int64_t nearest[] = {1, 0, 2, 3};
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 4; j++)
            ck_assert_double_le(distance_of_rows(contexts, i, states, nearest[i]), distance_of_rows(contexts, i, states, j));
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

static double unevenness_of(const figure *weights, int64_t row) {
    const int64_t n = weights->size[1];
    double most = 0;
    for (int64_t j = 0; j < n; j++) most = fmax(most, fabs(weights->numbers[row * n + j] * (double)n - 1));
    return most;
}

static const char *answer_of(const doc *doc) {
    const doc_block *block = doc->first;
    while (block->kind != DOC_QUESTION) block = block->next;
    return block->answer;
}

/* What word-vectors says of its weights, whatever was drawn, is what they are: of all words beneath the picture, of the first
 * in the answer. */
START_TEST(sentences_follow_from_numbers) {
    static const char *const texts[] = {NULL, "a", "a b", "The cat sat down", "I saw a red fox run by the old mill"};
    enum { SEEDS = 20 };
    int even = 0, uneven = 0;
    clattn_context *context = native_context();
    for (size_t t = 0; t < COUNT(texts); t++) {
        for (int seed = 1; seed <= SEEDS; seed++) {
            lesson l;
            run_native(&l, "word-vectors", context, &(lesson_parameters){.text = texts[t], .seed = {true, seed}});
            const figure *weights = figures_find(&l.figures, "word_vectors/weights");
            const int64_t n = weights->size[0];
            double worst = 0, largest = 0;
            for (int64_t i = 0; i < n; i++) worst = fmax(worst, unevenness_of(weights, i));
            for (int64_t j = 0; j < n; j++) largest = fmax(largest, weights->numbers[j]);
            even += n > 1 && worst <= 0.25;
            uneven += worst > 0.25;
            const char *answer = answer_of(&l.doc);
            ck_assert_msg(is_said(&l.doc, "all near the equal share") == (n > 1 && worst <= 0.25), "seed %d", seed);
            ck_assert_msg(is_said(&l.doc, "not all of them near") == (worst > 0.25), "seed %d", seed);
            ck_assert_msg((strncmp(answer, "Yes", 3) == 0) == (largest > 1.25 / (double)n), "seed %d: %s", seed, answer);
            ck_assert_msg((strstr(answer, "In this draw scores are") != NULL) == (n > 1 && worst <= 0.25), "seed %d: %s", seed,
                          answer);
            if (n > 1) ck_assert(is_said(&l.doc, "nearly parallel") == (number(&l, "word_vectors/widest_angle") < 5));
            if (is_said(&l.doc, "nearly the mean")) ck_assert_double_le(number(&l, "word_vectors/farthest_from_mean"), 0.25);
            lesson_free(&l);
        }
    }
    ck_assert(even > 0 && uneven > 0);
    clattn_context_destroy(context);
}
END_TEST

/* The same number has the same colour in a matrix and in its parts. */
START_TEST(parts_have_the_scale_of_the_whole) {
    static const char *const parts[] = {"q-0", "k-1", "v-0", "z-1", "merged"};
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "heads", context, &defaults);
    const doc_matrix *whole = find_block(&l.doc, "q")->matrix;
    for (size_t i = 0; i < COUNT(parts); i++) {
        const doc_matrix *part = find_block(&l.doc, parts[i])->matrix;
        ck_assert(part->low == whole->low && part->high == whole->high);
        ck_assert_str_eq(part->scale_group, whole->scale_group);
        for (int64_t c = 0; c < part->rows * part->cols; c++)
            ck_assert(part->values[c] >= part->low && part->values[c] <= part->high);
    }
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* Who wins can be predicted from what is there before the first step. */
START_TEST(what_is_asked_about_is_there) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "projection", context, &defaults);
    ck_assert_int_eq(find_block(&l.doc, "it")->step, 0);
    ck_assert_int_eq(find_block(&l.doc, "candidates")->step, 0);
    ck_assert_int_eq(find_block(&l.doc, "raw")->step, 1);
    lesson_free(&l);
    /* In alignment the diagonal is the brightest, as it says. */
    run_native(&l, "alignment", context, &defaults);
    const doc_matrix *self = find_block(&l.doc, "self")->matrix;
    for (int64_t i = 0; i < self->rows; i++)
        for (int64_t j = 0; j < self->cols; j++) ck_assert(j == i || cell(self, i, i) > cell(self, i, j));
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* Row by row of the encoding: whether the most alike is a neighbour. */
START_TEST(neighbours_are_said_to_be_alike_where_they_are) {
    clattn_context *context = native_context();
    for (int dim = 1; dim <= 24; dim++) {
        lesson l;
        run_native(&l, "positions", context, &(lesson_parameters){.dim = {true, dim}, .lengths = {1, {40}}});
        const doc_matrix *m = find_block(&l.doc, "encoding")->matrix;
        bool neighbours = true;
        for (int64_t i = 0; i < m->rows; i++) {
            int64_t nearest = -1;
            double least = INFINITY;
            for (int64_t j = 0; j < m->rows; j++) {
                double sum = 0;
                for (int64_t d = 0; d < m->cols; d++) sum += pow(cell(m, i, d) - cell(m, j, d), 2);
                if (j != i && sum < least) {
                    least = sum;
                    nearest = j;
                }
            }
            neighbours = neighbours && (nearest == i - 1 || nearest == i + 1);
        }
        ck_assert_msg(is_said(&l.doc, "Each row is most like a neighbour") == neighbours, "%d", dim);
        ck_assert_msg(is_said(&l.doc, "need not be neighbours") != neighbours, "%d", dim);
        lesson_free(&l);
    }
    clattn_context_destroy(context);
}
END_TEST

/* From where each axis starts, where it ends, and which way it goes. */
START_TEST(space_has_axes_on_a_terminal) {
    clattn_context *context = native_context();
    static const char *const said[] = {
        "z=10", "x=3", "y=8", "x comes towards you, y goes right, z up; from (0, 0, 0) at +", "z=11", "from (-1, -1, 0) at +"};
    for (size_t i = 0; i < COUNT(said); i++) expect_said("word-vectors", context, DOC_EN, said[i]);
    expect_said("word-vectors", context, DOC_ZH, "x 轴朝你来");
    clattn_context_destroy(context);
}
END_TEST

/* Numbers that are written alike are no tie: more digits tell them apart, in all cells of the map; those that single precision
 * does not tell apart are. */
START_TEST(ties_are_of_numbers_not_of_digits) {
    static const double values[] = {0.2082, 0.2112, 0.18, 0.2, 0.2 + 1e-9, 0.2, 0.5, 0.5, 0.1, NAN, 0.3, 0.31};
    jmp_buf escape;
    arena arena = {.escape = &escape};
    ck_assert_int_eq(setjmp(escape), 0);
    doc doc = {.arena = &arena, .language = DOC_EN};
    doc_matrix *m = doc_add_matrix(&doc, "a", "title", 4, 3);
    m->values = values;
    m->role = DOC_ROLE_WEIGHTS;
    doc_tell_apart(&doc);
    static const bool top[] = {false, true, false, false, false, false, true, true, false, false, false, true};
    for (int i = 0; i < 12; i++) ck_assert_msg(m->top[i] == top[i], "top %d", i);
    ck_assert_int_eq(m->decimals, 3); /* for 0.2082 and 0.2112, and so for all */
    static const double close[] = {0.3, 0.3 + 1e-6};
    doc_matrix *other = doc_add_matrix(&doc, "b", "title", 1, 2);
    other->values = close;
    other->role = DOC_ROLE_WEIGHTS;
    m->scale_group = "none";
    doc_tell_apart(&doc);
    ck_assert_int_eq(other->decimals, 4);
    ck_assert_int_eq(m->decimals, 3);
    m->scale_group = other->scale_group = "both";
    doc_tell_apart(&doc);
    ck_assert_int_eq(m->decimals, 4);
    ck_assert_int_eq(doc_decimals_apart(0.20289, 0.20317, 2), 4);
    ck_assert(doc_alike(1, 1 + 1e-7) && !doc_alike(1, 1 + 1e-6) && doc_alike(0, 0) && !doc_alike(0, 1e-30));
    arena_free(&arena);
    clattn_context *context = native_context();
    expect_said("word-vectors", context, DOC_EN, "“中国” looks most at “很” (0.211; “的” comes close with 0.208)");
    expect_said("word-vectors", context, DOC_EN, "0.1942  0.2082  0.1843  0.2112  0.2021");
    clattn_context_destroy(context);
}
END_TEST

START_TEST(scaling_is_as_it_says) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "scaling", context, &(lesson_parameters){.seed = {true, 7}, .dim = {true, 256}});
    ck_assert_double_eq_tol(number(&l, "scaling/variance/256"), 256, 40);
    ck_assert_double_lt(number(&l, "scaling/entropy_none/256"), number(&l, "scaling/entropy_sqrt/256"));
    ck_assert_double_lt(number(&l, "scaling/entropy_sqrt/256"), number(&l, "scaling/entropy_d/256"));
    /* The sum of A·(1 − A) tells saturation from an equal share, the largest weight alone does not. */
    ck_assert_double_lt(number(&l, "scaling/gradient_none/256"), 0.5 * number(&l, "scaling/gradient_sqrt/256"));
    ck_assert_double_gt(number(&l, "scaling/gradient_d/256"), 0.9 * (1 - 1.0 / 64));
    ck_assert_double_lt(number(&l, "scaling/gradient_sqrt/256"), number(&l, "scaling/gradient_d/256"));
    lesson_free(&l);
    run_native(&l, "initialisation", context, &defaults);
    const figure *gradient = figures_find(&l.figures, "initialisation/gradient");
    ck_assert_double_lt(gradient->numbers[gradient->size[0] - 1], 0.2 * gradient->numbers[0]);
    /* Too small learns slowly in every layer; too large rises with the layers, and dies in the last. */
    const figure *first = figures_find(&l.figures, "initialisation/reaching/1"),
                 *last = figures_find(&l.figures, "initialisation/reaching/6");
    ck_assert_double_lt(first->numbers[0], 0.2);
    ck_assert_double_lt(last->numbers[0], 0.2);
    ck_assert_double_eq(last->numbers[last->size[0] - 1], 0);
    ck_assert_double_gt(first->numbers[first->size[0] - 1], 1);
    ck_assert_double_eq(number(&l, "initialisation/draws"), 20); /* medians, within their quartiles */
    const figure *low = figures_find(&l.figures, "initialisation/reaching_q1/6"),
                 *high = figures_find(&l.figures, "initialisation/reaching_q3/6");
    for (int64_t s = 0; s < last->size[0]; s++)
        ck_assert(low->numbers[s] <= last->numbers[s] && last->numbers[s] <= high->numbers[s]);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* Half of the runs lie around the median that a bar shows. */
START_TEST(measured_bars_show_their_noise) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "head-dim", context, &(lesson_parameters){.lengths = {1, {16}}});
    static const char *const ids[] = {"rate", "time"};
    for (size_t b = 0; b < COUNT(ids); b++) {
        const doc_series *series = &find_block(&l.doc, ids[b])->plot->series[0];
        ck_assert(series->low != NULL && series->high != NULL);
        for (size_t i = 0; i < series->count; i++)
            ck_assert(0 < series->low[i] && series->low[i] <= series->y[i] && series->y[i] <= series->high[i]);
    }
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* ---- what the lessons compute themselves, against plain loops in double precision ----------------------------------- */

static double sigmoid(double z) {
    return 1 / (1 + exp(-z));
}

START_TEST(a_gate_is_a_weight) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "matmul", context, &defaults);
    if (setjmp(l.escape) != 0) ck_abort_msg("%s", l.error);
    mat z = mat_new(&l.arena, 3, 41);
    for (int i = 0; i < 3 * 41; i++) z.at[i] = (float)(i - 61) * 0.5f;
    const mat open = lesson_sigmoid(&l, z);
    for (int i = 0; i < 3 * 41; i++) ck_assert_double_eq_tol(open.at[i], sigmoid(z.at[i]), 1e-6);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

enum { CELLS = 8, LSTM_STEPS = 8, BELT = 24 };

/* h and c of an LSTM, rows of w in the experiment's order (forget, input, output, new) over [x, h]; gates: the means of i, o,
 * f. */
static void step_lstm(const double w[4 * CELLS][2 * CELLS], double bias, const double *x, double *h, double *c,
                      double gates[3]) {
    static const int shown[3] = {1, 2, 0};
    double z[4 * CELLS], next[CELLS];
    for (int n = 0; n < 4 * CELLS; n++) {
        z[n] = n < CELLS ? bias : 0;
        for (int d = 0; d < CELLS; d++) z[n] += w[n][d] * x[d] + w[n][CELLS + d] * h[d];
    }
    for (int g = 0; g < 3; g++) gates[g] = 0;
    for (int d = 0; d < CELLS; d++) {
        c[d] = sigmoid(z[d]) * c[d] + sigmoid(z[CELLS + d]) * tanh(z[3 * CELLS + d]);
        next[d] = sigmoid(z[2 * CELLS + d]) * tanh(c[d]);
        for (int g = 0; g < 3; g++) gates[g] += sigmoid(z[shown[g] * CELLS + d]) / CELLS;
    }
    memcpy(h, next, sizeof next);
}

/* The random numbers that a lesson draws before those that are wanted. */
static void skip_normals(numpy_random *random, int count) {
    for (int i = 0; i < count; i++) numpy_randn(random);
}

START_TEST(gates_are_those_of_the_cell) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "lstm-memory", context, &defaults);
    const figure *shown = figures_find(&l.figures, "lstm_memory/gates");
    numpy_random random;
    numpy_seed(&random, 3);
    skip_normals(&random, 2 * CELLS * CELLS);
    double w[4 * CELLS][2 * CELLS], h[CELLS] = {0}, c[CELLS] = {0}, x[CELLS], gates[3];
    for (int n = 0; n < 4 * CELLS; n++)
        for (int d = 0; d < 2 * CELLS; d++) w[n][d] = 0.3 * numpy_randn(&random);
    for (int model = 0; model < 3; model++)
        for (int length = 2; length <= 32; length *= 2) skip_normals(&random, 30 * (length + 2) * CELLS);
    skip_normals(&random, (BELT + 2) * CELLS);
    for (int t = 0; t < LSTM_STEPS; t++) {
        for (int d = 0; d < CELLS; d++) x[d] = numpy_randn(&random);
        step_lstm(w, 6, x, h, c, gates);
        for (int g = 0; g < 3; g++) ck_assert_double_eq_tol(shown->numbers[g * LSTM_STEPS + t], gates[g], 1e-5);
    }
    /* What forget gates keep is less than all, and less than what is measured: that is what the text explains. */
    const double kept = number(&l, "lstm_memory/kept");
    const figure *belt = figures_find(&l.figures, "lstm_memory/belt/lstm_forget_bias_6");
    ck_assert(kept > 0.5 && kept < 1 && belt->numbers[BELT - 1] > 1.05 * kept);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

enum { INIT_WORDS = 32, INIT_DIM = 8 };

/* Σ G ∘ softmax(X·W_q·(X·W_k)ᵀ/√d) */
static double loss_of(const double *x, const double *w_q, const double *w_k, const double *g) {
    double q[INIT_WORDS][INIT_DIM] = {{0}}, k[INIT_WORDS][INIT_DIM] = {{0}}, loss = 0;
    for (int i = 0; i < INIT_WORDS; i++)
        for (int d = 0; d < INIT_DIM; d++)
            for (int e = 0; e < INIT_DIM; e++) {
                q[i][d] += x[i * INIT_DIM + e] * w_q[e * INIT_DIM + d];
                k[i][d] += x[i * INIT_DIM + e] * w_k[e * INIT_DIM + d];
            }
    for (int i = 0; i < INIT_WORDS; i++) {
        double sum = 0, weighted = 0;
        for (int j = 0; j < INIT_WORDS; j++) {
            double score = 0;
            for (int d = 0; d < INIT_DIM; d++) score += q[i][d] * k[j][d];
            const double power = exp(score / sqrt(INIT_DIM));
            sum += power;
            weighted += power * g[i * INIT_WORDS + j];
        }
        loss += weighted / sum;
    }
    return loss;
}

/* The root of the mean square of the gradient at W_q, by differences. */
static double gradient_by_differences(double sigma) {
    const double h = 1e-5;
    double x[INIT_WORDS * INIT_DIM], w_q[INIT_DIM * INIT_DIM], w_k[INIT_DIM * INIT_DIM], g[INIT_WORDS * INIT_WORDS],
        squares = 0;
    numpy_random random;
    numpy_seed(&random, 42);
    for (size_t i = 0; i < COUNT(x); i++) x[i] = numpy_randn(&random);
    for (size_t i = 0; i < COUNT(w_q); i++) w_q[i] = sigma * numpy_randn(&random);
    for (size_t i = 0; i < COUNT(w_k); i++) w_k[i] = sigma * numpy_randn(&random);
    numpy_seed(&random, 42);
    for (size_t i = 0; i < COUNT(g); i++) g[i] = numpy_randn(&random);
    for (size_t i = 0; i < COUNT(w_q); i++) {
        const double at = w_q[i];
        w_q[i] = at + h;
        const double above = loss_of(x, w_q, w_k, g);
        w_q[i] = at - h;
        const double slope = (above - loss_of(x, w_q, w_k, g)) / (2 * h);
        w_q[i] = at;
        squares += slope * slope;
    }
    return sqrt(squares / COUNT(w_q));
}

START_TEST(the_gradient_is_the_slope) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "initialisation", context, &(lesson_parameters){.dim = {true, INIT_DIM}});
    const figure *sigma = figures_find(&l.figures, "initialisation/sigma"),
                 *first = figures_find(&l.figures, "initialisation/reaching_of_first_draw/1");
    const double usual = gradient_by_differences(1 / sqrt(INIT_DIM));
    for (int64_t s = 0; s < sigma->size[0]; s++)
        ck_assert_double_eq_tol(first->numbers[s] / (gradient_by_differences(sigma->numbers[s]) / usual), 1, 1e-3);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* ---- how it is said ------------------------------------------------------------------------------------------------ */

/* Words that are not of the reader's language come with what they mean. */
START_TEST(foreign_words_are_explained) {
    static const struct {
        const char *lesson;
        doc_language language;
        const char *word, *label;
    } cases[] = {
        {"word-vectors", DOC_EN, "“熊猫” (panda)", "熊猫 panda"},
        {"heads", DOC_EN, "“可爱” (cute)", "可爱 cute"},
        {"mask", DOC_EN, "“中国” (China)", "中国 China"},
        {"alignment", DOC_EN, "“profond” (deep)", "profond (deep)"},
        {"alignment", DOC_ZH, "“amusant”（有趣）", "amusant 有趣"},
        {"alignment", DOC_ZH, "“deep”（深）", "deep 深"},
        {"serial-steps", DOC_ZH, "“ball”（球）", "chased 追"},
        {"positions", DOC_ZH, "“man”（人）", "bites 咬"},
        {"qkv", DOC_ZH, "“is”（是）", "bright 明亮"},
        {"projection", DOC_ZH, "“ball”（球）", "chased 追"},
    };
    clattn_context *context = native_context();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = printed(cases[i].lesson, context, cases[i].language);
        ck_assert_msg(strstr(text, cases[i].word) != NULL, "%s: %s", cases[i].lesson, cases[i].word);
        ck_assert_msg(strstr(text, cases[i].label) != NULL, "%s: %s", cases[i].lesson, cases[i].label);
        free(text);
    }
    clattn_context_destroy(context);
}
END_TEST

static bool is_jargon(const char *text) {
    static const char *const names[] = {"w_q:", "head_", "native (", "nan", "x10^"};
    for (size_t i = 0; text != NULL && i < COUNT(names); i++)
        if (strstr(text, names[i]) != NULL) return true;
    /* 1.2e-07 */
    for (const char *e = text != NULL ? strchr(text, 'e') : NULL; e != NULL; e = strchr(e + 1, 'e'))
        if (e > text && e[-1] >= '0' && e[-1] <= '9' && (e[1] == '+' || e[1] == '-')) return true;
    /* an option that is not part of a command in quotation marks */
    for (const char *dashes = text != NULL ? strstr(text, " --") : NULL; dashes != NULL; dashes = strstr(dashes + 1, " --")) {
        const char *command = strstr(text, "“clattn ");
        if (command == NULL || command > dashes) return true;
    }
    return false;
}

START_TEST(lessons_speak_to_a_class) {
    clattn_context *context = native_context();
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) {
        for (int language = DOC_ZH; language <= DOC_EN; language++) {
            lesson lesson;
            run_lesson(&lesson, entry, context, (doc_language)language, &defaults);
            ck_assert_msg(!is_jargon(lesson.doc.device), "%s", lesson.doc.device);
            for (const doc_block *block = lesson.doc.first; block != NULL; block = block->next)
                ck_assert_msg(!is_jargon(block->text) && !is_jargon(block->answer) && !is_jargon(block->summary) &&
                                  !is_jargon(block->title),
                              "%s: %s: %s %s", entry->name, block->id, block->text != NULL ? block->text : block->summary,
                              block->answer != NULL ? block->answer : "");
            lesson_free(&lesson);
        }
    }
    ck_assert(is_jargon("by 1.2e-07 at most") && is_jargon("try --dim 256") && !is_jargon("run “clattn lesson x --dim 2”"));
    clattn_context_destroy(context);
}
END_TEST

/* Both sides' stages are those of the library's plans, and the page says which they are. */
START_TEST(steps_are_told_apart) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "serial-steps", context, &defaults);
    const int extra = (int)number(&l, "serial_steps/recurrence_steps/16") - 16;
    char words[2][64];
    snprintf(words[0], sizeof words[0], " %d + 16  ", extra);
    snprintf(words[1], sizeof words[1], "The recurrence: %d to prepare", extra);
    for (int i = 0; i < 2; i++) expect_said("serial-steps", context, DOC_EN, words[i]);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* W·h with h a column. */
START_TEST(the_state_is_a_column) {
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "rnn-step", context, &defaults);
    for (size_t i = 0; i < 5; i++) {
        static const char *const ids[] = {"h0", "carried", "x", "written", "h"};
        const doc_matrix *m = find_block(&l.doc, ids[i])->matrix;
        ck_assert_msg(m->rows == 2 && m->cols == 1, "%s", ids[i]);
    }
    ck_assert_str_eq(find_block(&l.doc, "carried")->matrix->left, "w_h");
    /* What is halved or squeezed looks so: one scale. */
    for (const doc_block *block = l.doc.first; block != NULL; block = block->next)
        if (block->kind == DOC_MATRIX) ck_assert(block->matrix->low == 0 && fabs(block->matrix->high - 1.4) < 1e-6);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* ---- symbols ------------------------------------------------------------------------------------------------------- */

enum { TOKEN_SIZE = 32 };

static bool is_letter(uint32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || code == 0x3c3 || code == 0x2113 || code == 0x3a3;
}

/* The next symbol of a formula, from *at on: letters, an index, and what makes it another symbol: "2i", "i(t)". An index that
 * is a number says of which head, and is left out. False: there is no further one. */
static bool next_symbol(const char **at, char token[TOKEN_SIZE]) {
    uint32_t code = 0;
    char last = 0;
    while (**at != '\0') {
        const size_t length = display_decode(*at, &code);
        if (is_letter(code)) break;
        last = **at;
        *at += length;
    }
    if (**at == '\0') return false;
    size_t size = 0;
    if (**at == 'i' && last == '2') token[size++] = last;
    while (**at != '\0' && size + 4 < TOKEN_SIZE) {
        const size_t length = display_decode(*at, &code);
        if (!is_letter(code)) break;
        memcpy(token + size, *at, length);
        size += length;
        *at += length;
    }
    if (**at == '_') {
        const bool number = (*at)[1] >= '0' && (*at)[1] <= '9';
        size_t index = 1;
        while (((*at)[index] >= '0' && (*at)[index] <= '9') || is_letter((unsigned char)(*at)[index])) index++;
        if (!number && size + index < TOKEN_SIZE) {
            memcpy(token + size, *at, index);
            size += index;
        }
        *at += index;
    }
    token[size] = '\0';
    const bool gate = strlen(token) == 1 && strchr("fio", *token) != NULL && strncmp(*at, "(t)", 3) == 0;
    if (gate) {
        strcat(token, "(t)");
        *at += strlen("(t)");
    }
    return true;
}

static bool holds_symbol(const char *text, const char *symbol) {
    char token[TOKEN_SIZE];
    while (text != NULL && next_symbol(&text, token))
        if (strcmp(token, symbol) == 0) return true;
    return false;
}

/* The texts of a block in which letters are symbols. */
static int formal_texts(const doc_block *block, const char *texts[1]) {
    texts[0] = block->kind == DOC_FORMULA ? block->text : block->kind == DOC_MATRIX ? block->matrix->symbol : NULL;
    return texts[0] != NULL;
}

static bool is_in_glossary(const char *token) {
    for (const lesson_symbol *symbol = lesson_symbols; symbol->symbol != NULL; symbol++)
        if (holds_symbol(symbol->symbol, token)) return true;
    return false;
}

/* Functions, and words. */
static bool is_known_word(const char *token) {
    static const char *const words[] = {"exp", "log",  "tanh", "cos",       "sin", "softmax", "max",
                                        "N",   "FLOP", "LSTM", "attention", "Σ",   "Σ_j"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(words[i], token) == 0) return true;
    return false;
}

START_TEST(symbols_are_explained) {
    clattn_context *context = native_context();
    int symbols = 0;
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) {
        lesson l;
        run_native(&l, entry->name, context, &defaults);
        for (const doc_block *block = l.doc.first; block != NULL; block = block->next) {
            const char *text[1];
            char token[TOKEN_SIZE];
            if (!formal_texts(block, text)) continue;
            while (next_symbol(&text[0], token)) {
                symbols++;
                ck_assert_msg(is_known_word(token) || is_in_glossary(token), "%s: %s has the symbol %s, which nothing explains",
                              entry->name, block->id, token);
            }
        }
        lesson_free(&l);
    }
    ck_assert_int_ge(symbols, 200);
    clattn_context_destroy(context);
}
END_TEST

/* Whether a lesson has a symbol: in a formula or beside a matrix, or anywhere if an index tells it from a word. */
static bool has_symbol(const doc *doc, const char *symbol) {
    const bool indexed = strchr(symbol, '_') != NULL;
    for (const doc_block *block = doc->first; block != NULL; block = block->next) {
        const char *text[1];
        if (formal_texts(block, text) && holds_symbol(text[0], symbol)) return true;
        if (indexed &&
            (holds_symbol(block->text, symbol) || holds_symbol(block->title, symbol) || holds_symbol(block->summary, symbol)))
            return true;
    }
    return false;
}

START_TEST(symbols_appear_first_where_they_say) {
    clattn_context *context = native_context();
    lesson lessons[32];
    size_t count = 0;
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++)
        run_native(&lessons[count++], entry->name, context, &defaults);
    for (const lesson_symbol *entry = lesson_symbols; entry->symbol != NULL; entry++) {
        if (strcmp(entry->symbol, "Q_0, S_1") == 0) continue; /* of the index, not of the letters */
        ck_assert(is_chinese(entry->zh) && !is_chinese(entry->en) && lesson_find(entry->lesson) != NULL);
        const char *rest = entry->symbol;
        char token[TOKEN_SIZE];
        while (next_symbol(&rest, token)) {
            size_t first = 0;
            while (first < count && !has_symbol(&lessons[first].doc, token)) first++;
            ck_assert_msg(first < count, "no lesson has %s", token);
            const bool form_of_another = strcmp(token, entry->symbol) != 0; /* "x, X": one of them is enough */
            ck_assert_msg(strcmp(lessons[first].doc.name, entry->lesson) == 0 || form_of_another,
                          "%s appears first in %s, not in %s", token, lessons[first].doc.name, entry->lesson);
            ck_assert_msg(first >= (size_t)(lesson_find(entry->lesson) - lesson_table), "%s appears before %s, in %s", token,
                          entry->lesson, lessons[first].doc.name);
        }
    }
    for (size_t i = 0; i < count; i++) lesson_free(&lessons[i]);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(numbers_are_written_for_readers) {
    static const struct {
        int64_t count;
        const char *text;
    } counts[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {1769472, "1,769,472"}, {-12345, "-12,345"}};
    static const struct {
        double value;
        const char *text;
    } tiny[] = {{0, "0"}, {1.2e-7, "1.2×10⁻⁷"}, {9.96e-8, "1.0×10⁻⁷"}, {3e-12, "3.0×10⁻¹²"}, {-2.5e3, "-2.5×10³"}};
    clattn_context *context = native_context();
    lesson l;
    run_native(&l, "matmul", context, &defaults);
    for (size_t i = 0; i < COUNT(counts); i++) ck_assert_str_eq(lesson_count(&l, counts[i].count), counts[i].text);
    for (size_t i = 0; i < COUNT(tiny); i++) ck_assert_str_eq(lesson_tiny(&l, tiny[i].value), tiny[i].text);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* ---- parameters ---------------------------------------------------------------------------------------------------- */

START_TEST(parameters_change_the_experiment) {
    clattn_context *context = native_context();
    lesson l, other;
    const lesson_parameters parameters = {.lengths = {3, {64, 5, 5}}, .seed = {true, 3}, .pairs = {true, 7}, .dim = {true, 12}};
    run_native(&l, "rnn-bottleneck", context, &parameters);
    ck_assert_ptr_nonnull(figures_find(&l.figures, "rnn_bottleneck/mean_cosine_by_length/5"));
    ck_assert_ptr_nonnull(figures_find(&l.figures, "rnn_bottleneck/mean_cosine_by_length/64"));
    ck_assert_ptr_null(figures_find(&l.figures, "rnn_bottleneck/mean_cosine_by_length/2"));
    ck_assert_double_eq(number(&l, "rnn_bottleneck/pairs"), 7);
    lesson_free(&l);
    run_native(&l, "rnn-bottleneck", context, &defaults);
    ck_assert_double_gt(number(&l, "rnn_bottleneck/cosine_of_256_by_length/32"),
                        number(&l, "rnn_bottleneck/cosine_of_256_by_length/8"));
    lesson_free(&l);
    run_native(&l, "lstm-memory", context, &(lesson_parameters){.forget_bias = {true, 3}});
    run_native(&other, "lstm-memory", context, &defaults);
    ck_assert_double_eq(number(&l, "lstm_memory/rnn/32"), number(&other, "lstm_memory/rnn/32"));
    ck_assert_double_gt(number(&l, "lstm_memory/lstm_forget_bias_3/32"), number(&other, "lstm_memory/lstm_forget_bias_6/32"));
    lesson_free(&l);
    lesson_free(&other);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(words_are_the_students) {
    static const char *const wanted[] = {"I", "love", "注", "意", "力", "</script>", "é"};
    clattn_context *context = native_context();
    lesson l;
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) {
        if ((entry->parameters & LESSON_TEXT) == 0) continue;
        run_lesson(&l, entry, context, DOC_EN, &(lesson_parameters){.text = " I love注意力\t</script> é "});
        bool told = strcmp(entry->name, "serial-steps") == 0; /* which has no vectors */
        for (const doc_block *block = l.doc.first; block != NULL; block = block->next)
            told = told || (block->text != NULL && strstr(block->text, "drawn at random") != NULL);
        ck_assert_msg(told, "%s does not say where vectors come from", entry->name);
        lesson_free(&l);
    }
    run_native(&l, "word-vectors", context, &(lesson_parameters){.text = " I love注意力\t</script> é "});
    const figure *words = figures_find(&l.figures, "word_vectors/words");
    ck_assert_int_eq(words->size[0], COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++) ck_assert_str_eq(words->texts[i], wanted[i]);
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(words_that_are_none_are_refused) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"  \t ", "no word"}, {"a\xff", "UTF-8"}, {"\xed\xa0\x80", "UTF-8"}, {"\xc0\x80", "UTF-8"}, {"a\x1b[2Jb", "control"}};
    clattn_context *context = native_context();
    for (size_t i = 0; i < COUNT(bad); i++) {
        lesson l;
        bool right = lesson_run(&l, lesson_find("qkv"), context, DOC_EN, &(lesson_parameters){.text = bad[i].text});
        ck_assert_msg(!right && l.exit_code == CLI_USAGE && strstr(l.error, bad[i].says) != NULL, "%zu: %s", i, l.error);
        lesson_free(&l);
    }
    char many[257 * 2 + 1];
    for (int i = 0; i < 257; i++) memcpy(many + 2 * i, "a ", 3);
    lesson l;
    ck_assert(!lesson_run(&l, lesson_find("qkv"), context, DOC_EN, &(lesson_parameters){.text = many}));
    ck_assert_ptr_nonnull(strstr(l.error, "256"));
    lesson_free(&l);
    many[2 * 256] = '\0';
    run_native(&l, "word-vectors", context, &(lesson_parameters){.text = many});
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

START_TEST(experiments_that_are_too_large_are_refused) {
    clattn_context *context = native_context();
    lesson l;
    bool right = lesson_run(&l, lesson_find("rnn-bottleneck"), context, DOC_EN,
                            &(lesson_parameters){.lengths = {1, {4096}}, .pairs = {true, 1000}, .dim = {true, 1024}});
    ck_assert(!right);
    ck_assert_int_eq(l.exit_code, CLI_USAGE);
    ck_assert_ptr_nonnull(strstr(l.error, "too many"));
    lesson_free(&l);
    clattn_context_destroy(context);
}
END_TEST

/* ---- text in columns ----------------------------------------------------------------------------------------------- */

START_TEST(widths_are_those_of_a_terminal) {
    ck_assert_int_eq(display_width("abc"), 3);
    ck_assert_int_eq(display_width("注意力"), 6);
    ck_assert_int_eq(display_width("，。（"), 6);
    ck_assert_int_eq(display_width("e\xcc\x81"), 1); /* e and an accent that stands on it */
    ck_assert_int_eq(display_width("→·√"), 3);
    ck_assert_int_eq(display_width("😀"), 2);
    ck_assert_int_eq(display_width(""), 0);
}
END_TEST

/* What a function of display.h writes. */
static char *written(void (*write)(FILE *, const char *, int), const char *text, int width) {
    char *memory = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&memory, &size);
    ck_assert_ptr_nonnull(file);
    write(file, text, width);
    fclose(file);
    return memory;
}

static void pad_left(FILE *out, const char *text, int width) {
    display_pad(out, text, width, false);
}

static void pad_right(FILE *out, const char *text, int width) {
    display_pad(out, text, width, true);
}

static void wrap(FILE *out, const char *text, int width) {
    display_wrap(out, text, width, 0, 2);
}

START_TEST(text_is_cut_and_filled) {
    static const struct {
        void (*write)(FILE *, const char *, int);
        const char *text;
        int width;
        const char *wanted;
    } cases[] = {
        {pad_left, "ab", 4, "ab  "},
        {pad_right, "ab", 4, "  ab"},
        {pad_left, "中国", 4, "中国"},
        {pad_left, "中国人", 5, "中国…"},
        {pad_left, "中国人", 4, "中… "},
        {wrap, "one two", 5, "one\n  two\n"},
        {wrap, "甲乙丙丁", 4, "甲乙\n  丙\n  丁\n"},
        {wrap, "甲乙，丙", 5, "甲\n  乙，\n  丙\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = written(cases[i].write, cases[i].text, cases[i].width);
        ck_assert_str_eq(text, cases[i].wanted);
        free(text);
    }
}
END_TEST

/* Every line of every lesson, with words of one's own, too. */
START_TEST(lessons_fit_eighty_columns) {
    clattn_context *context = native_context();
    const lesson_parameters words = {.text = "反对称张量 internationalisation 的 the quick brown fox jumps over the lazy dog "
                                             "又 一次 跳过 栅栏 supercalifragilistic"};
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) {
        for (int form = 0; form < 4; form++) {
            if (form >= 2 && (entry->parameters & LESSON_TEXT) == 0) continue;
            lesson lesson;
            char *memory = NULL;
            size_t size = 0;
            run_lesson(&lesson, entry, context, form % 2 == 0 ? DOC_ZH : DOC_EN, form >= 2 ? &words : &defaults);
            terminal terminal = {.out = open_memstream(&memory, &size)};
            ck_assert(terminal_print(&terminal, &lesson.doc));
            fclose(terminal.out);
            for (char *line = strtok(memory, "\n"); line != NULL; line = strtok(NULL, "\n")) {
                ck_assert_msg(display_width(line) <= TERMINAL_WIDTH, "%s: %s", entry->name, line);
                ck_assert_msg(strchr(line, '\033') == NULL, "%s is not plain", entry->name);
            }
            free(memory);
            lesson_free(&lesson);
        }
    }
    clattn_context_destroy(context);
}
END_TEST

START_TEST(captions_are_numbered_in_turn) {
    clattn_context *context = native_context();
    for (const lesson_entry *entry = lesson_table; entry->name != NULL; entry++) {
        lesson lesson;
        char *memory = NULL;
        size_t size = 0;
        int last = 0;
        run_lesson(&lesson, entry, context, DOC_EN, &defaults);
        terminal terminal = {.out = open_memstream(&memory, &size)};
        ck_assert(terminal_print(&terminal, &lesson.doc));
        fclose(terminal.out);
        for (char *line = strtok(memory, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            int number;
            if (sscanf(line, " [%d] ", &number) != 1) continue;
            ck_assert_msg(number == last + 1, "%s: after [%d] comes %s", entry->name, last, line);
            last = number;
        }
        ck_assert_msg(last > 0, "%s", entry->name);
        free(memory);
        lesson_free(&lesson);
    }
    clattn_context_destroy(context);
}
END_TEST

/* A document of one's own, as a terminal shows it. Inlined, gcc 12 takes what open_memstream sets for a pointer to its
 * variable. */
static __attribute__((noinline)) char *shown(doc *doc) {
    char *memory = NULL;
    size_t size = 0;
    terminal terminal = {.out = open_memstream(&memory, &size)};
    doc->title = doc->device = "";
    ck_assert(terminal_print(&terminal, doc));
    fclose(terminal.out);
    return memory;
}

START_TEST(zeros_stand_below_logarithmic_axes) {
    static const double x[] = {1, 2, 3}, y[] = {10, 0, 1000};
    for (int logarithmic = 0; logarithmic <= 1; logarithmic++) {
        jmp_buf escape;
        arena arena = {.escape = &escape};
        ck_assert_int_eq(setjmp(escape), 0);
        doc doc = {.arena = &arena, .language = DOC_EN};
        doc_plot *plot = doc_add_plot(&doc, "p", "p");
        plot->x.label = plot->y.label = "";
        plot->y.logarithmic = logarithmic == 1;
        doc_add_series(&doc, plot, "s", DOC_ROLE_PLAIN, COUNT(y), x, y);
        char *text = shown(&doc), *zero = strstr(text, " 0 │");
        ck_assert_msg(zero != NULL, "%s", text);
        const char *mark = strstr(zero, "●"), *end = strchr(zero, '\n');
        ck_assert_msg(mark != NULL && mark < end, "0 is not on its axis: %s", text);
        ck_assert_int_eq(strstr(text, "┊") != NULL, logarithmic);
        ck_assert_int_eq(strstr(text, " 10 │") != NULL, logarithmic); /* a linear axis begins at 0 */
        free(text);
        arena_free(&arena);
    }
}
END_TEST

START_TEST(tables_lose_nothing) {
    static const char *const head[] = {"a column with a long name", "另一列的名字也很长很长很长很长很长很长很长很长很长", "c"};
    static const char *const cells[] = {"more words than there is room for in a line of eighty columns",
                                        "supercalifragilistic and then some more of them", "over 100 %, noisy"};
    jmp_buf escape;
    arena arena = {.escape = &escape};
    ck_assert_int_eq(setjmp(escape), 0);
    doc doc = {.arena = &arena, .language = DOC_EN};
    doc_add_table(&doc, "t", "t", 1, 3, head, cells);
    char *text = shown(&doc);
    ck_assert_ptr_null(strstr(text, "…"));
    for (size_t i = 0; i < COUNT(cells); i++) {
        char *words = strdup(cells[i]), *rest = NULL;
        for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
            ck_assert_msg(strstr(text, word) != NULL, "%s is not in %s", word, text);
        free(words);
    }
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        ck_assert_int_le(display_width(line), TERMINAL_WIDTH);
    free(text);
    arena_free(&arena);
}
END_TEST

/* ---- the suite ----------------------------------------------------------------------------------------------------- */

static Suite *lesson_suite(void) {
    Suite *suite = suite_create("lesson");
    TCase *numbers = tcase_create("numbers");
    tcase_add_test(numbers, random_numbers_are_numpys);
    tcase_add_test(numbers, random_words_are_the_generators);
    tcase_add_test(numbers, rounding_is_numpys);
#ifdef CLATTN_HAVE_CJSON
    tcase_add_loop_test(numbers, figures_are_those_of_the_documents, 0, (int)test_device_count());
    tcase_add_test(numbers, a_document_is_json);
    tcase_add_test(numbers, figures_are_nested_by_path);
#endif
    suite_add_tcase(suite, numbers);
    TCase *documents = tcase_create("documents");
    tcase_add_test(documents, lessons_ask_show_and_correct);
    tcase_add_test(documents, each_language_is_its_own);
    tcase_add_test(documents, growth_takes_steps);
    tcase_add_test(documents, claims_hold);
    tcase_add_test(documents, tiles_are_as_the_formulas_say);
    tcase_add_test(documents, what_lessons_compute_themselves_is_right);
    tcase_add_test(documents, outputs_are_near_what_they_are_said_to_be);
    tcase_add_test(documents, sentences_follow_from_numbers);
    tcase_add_test(documents, parts_have_the_scale_of_the_whole);
    tcase_add_test(documents, what_is_asked_about_is_there);
    tcase_add_test(documents, neighbours_are_said_to_be_alike_where_they_are);
    tcase_add_test(documents, space_has_axes_on_a_terminal);
    tcase_add_test(documents, ties_are_of_numbers_not_of_digits);
    tcase_add_test(documents, scaling_is_as_it_says);
    tcase_add_test(documents, a_gate_is_a_weight);
    tcase_add_test(documents, gates_are_those_of_the_cell);
    tcase_add_test(documents, the_gradient_is_the_slope);
    tcase_add_test(documents, measured_bars_show_their_noise);
    suite_add_tcase(suite, documents);
    TCase *words = tcase_create("words");
    tcase_add_test(words, foreign_words_are_explained);
    tcase_add_test(words, lessons_speak_to_a_class);
    tcase_add_test(words, steps_are_told_apart);
    tcase_add_test(words, the_state_is_a_column);
    tcase_add_test(words, symbols_are_explained);
    tcase_add_test(words, symbols_appear_first_where_they_say);
    tcase_add_test(words, numbers_are_written_for_readers);
    suite_add_tcase(suite, words);
    TCase *parameters = tcase_create("parameters");
    tcase_add_test(parameters, parameters_change_the_experiment);
    tcase_add_test(parameters, words_are_the_students);
    tcase_add_test(parameters, words_that_are_none_are_refused);
    tcase_add_test(parameters, experiments_that_are_too_large_are_refused);
    suite_add_tcase(suite, parameters);
    TCase *text = tcase_create("text");
    tcase_add_test(text, widths_are_those_of_a_terminal);
    tcase_add_test(text, text_is_cut_and_filled);
    tcase_add_test(text, lessons_fit_eighty_columns);
    tcase_add_test(text, captions_are_numbered_in_turn);
    tcase_add_test(text, zeros_stand_below_logarithmic_axes);
    tcase_add_test(text, tables_lose_nothing);
    suite_add_tcase(suite, text);
    return suite;
}

int main(void) {
    return run_device_suite(lesson_suite());
}
