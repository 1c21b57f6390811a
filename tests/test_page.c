/* Pages: texts that are markup stay texts, numbers keep their values, maps that are too large become means.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lessons/arena.h"
#include "lessons/doc.h"
#include "lessons/page/page.h"
#include "lessons/page/page_average.h"
#include "support.h"

typedef struct fixture {
    arena arena;
    jmp_buf escape;
    doc doc;
} fixture;

static void begin(fixture *f) {
    memset(f, 0, sizeof *f);
    f->arena.escape = &f->escape;
    f->doc =
        (doc){.arena = &f->arena, .language = DOC_EN, .name = "test", .title = "a <b> & c", .device = "none", .minutes = 1};
}

/* ---- averages ----------------------------------------------------------------------------------------------------- */

static doc_matrix *add_matrix(fixture *f, rng *random, int64_t rows, int64_t cols, bool mask) {
    doc_matrix *matrix = doc_add_matrix(&f->doc, "m", "m", rows, cols);
    double *values = ARENA_NEW(&f->arena, double, rows *cols);
    bool *masked = ARENA_NEW(&f->arena, bool, rows *cols);
    for (int64_t i = 0; i < rows * cols; i++) {
        values[i] = rng_normal(random);
        masked[i] = mask && i % cols > i / cols;
    }
    matrix->values = values;
    matrix->masked = mask ? masked : NULL;
    return matrix;
}

/* Each cell is the mean of what is not masked in its block; masked, when there is nothing. */
static void check_average(rng *random, int64_t rows, int64_t cols, bool mask) {
    fixture f;
    begin(&f);
    if (setjmp(f.escape) != 0) ck_abort_msg("out of memory");
    const doc_matrix *from = add_matrix(&f, random, rows, cols, mask);
    const doc averaged = page_average(&f.doc);
    const doc_matrix *to = averaged.first->matrix;
    ck_assert_ptr_eq(f.doc.first->matrix, from); /* the document is as it was */
    ck_assert_int_le(to->rows, PAGE_MAP_MAX);
    ck_assert_int_le(to->cols, PAGE_MAP_MAX);
    for (int64_t i = 0; i < to->rows; i++)
        for (int64_t j = 0; j < to->cols; j++) {
            const int64_t high = to->averaged[0], wide = to->averaged[1];
            double sum = 0;
            int count = 0;
            for (int64_t a = i * high; a < (i + 1) * high && a < rows; a++)
                for (int64_t b = j * wide; b < (j + 1) * wide && b < cols; b++)
                    if (!mask || b <= a) {
                        sum += from->values[a * cols + b];
                        count++;
                    }
            ck_assert_int_eq(to->masked != NULL && to->masked[i * to->cols + j], count == 0);
            if (count > 0) ck_assert_double_eq_tol(to->values[i * to->cols + j], sum / count, 1e-9);
        }
    arena_free(&f.arena);
}

START_TEST(large_maps_are_averaged) {
    rng random = rng_make(1);
    check_average(&random, PAGE_MAP_MAX + 1, 3, false);
    check_average(&random, 3, PAGE_MAP_MAX + 1, false);
    check_average(&random, 1 + rng_below(&random, 300), 2 * PAGE_MAP_MAX + rng_below(&random, 200), false);
    check_average(&random, 200, 200, true);
}
END_TEST

START_TEST(small_maps_stay) {
    rng random = rng_make(2);
    fixture f;
    begin(&f);
    if (setjmp(f.escape) != 0) ck_abort_msg("out of memory");
    const doc_matrix *matrix = add_matrix(&f, &random, PAGE_MAP_MAX, PAGE_MAP_MAX, true);
    const doc averaged = page_average(&f.doc);
    ck_assert_ptr_eq(averaged.first->matrix, matrix);
    arena_free(&f.arena);
}
END_TEST

/* ---- text --------------------------------------------------------------------------------------------------------- */

#ifdef CLATTN_HAVE_CJSON
#include <cjson/cJSON.h>

static char *print(const doc *doc, const page_course *course) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    ck_assert(page_print(file, doc, course));
    ck_assert_int_eq(fclose(file), 0);
    return text;
}

/* What a browser takes for the data: from the element's start to the first end of a script. */
static cJSON *read_data(const char *page) {
    static const char start[] = "<script type=\"application/json\" id=\"data\">";
    const char *from = strstr(page, start);
    ck_assert_ptr_nonnull(from);
    from += strlen(start);
    const char *end = strcasestr(from, "</script");
    ck_assert_ptr_nonnull(end);
    char *text = strndup(from, (size_t)(end - from));
    ck_assert_ptr_null(strchr(text, '<'));
    cJSON *data = cJSON_Parse(text);
    ck_assert_msg(data != NULL, "no JSON: %.80s", text);
    free(text);
    return data;
}

static const cJSON *block(const cJSON *data, int index) {
    const cJSON *lesson = cJSON_GetObjectItem(data, "lesson");
    return cJSON_GetArrayItem(cJSON_GetObjectItem(lesson, "blocks"), index);
}

START_TEST(markup_stays_text) {
    static const char *const texts[] = {"</script><script>x()</script>",
                                        "<!-- <script>",
                                        "]]>",
                                        "\\u003c/script>",
                                        "{{DATA}} {{STYLE}}",
                                        "\"quoted\" 'too' & amp;",
                                        "\xe2\x80\xa8 a line \xe2\x80\xa9"};
    fixture f;
    begin(&f);
    if (setjmp(f.escape) != 0) ck_abort_msg("out of memory");
    for (size_t i = 0; i < COUNT(texts); i++) doc_say(&f.doc, "%s", "%s", texts[i]);
    char *page = print(&f.doc, NULL);
    cJSON *data = read_data(page);
    for (size_t i = 0; i < COUNT(texts); i++)
        ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(block(data, (int)i), "text")), texts[i]);
    ck_assert_ptr_nonnull(strstr(page, "<title>a &lt;b&gt; &amp; c"));
    cJSON_Delete(data);
    free(page);
    arena_free(&f.arena);
}
END_TEST

START_TEST(numbers_keep_their_values) {
    const double values[] = {0, 1.0 / 3, -1e9, 1e-30, INFINITY, -INFINITY, NAN};
    static const char *const names[] = {NULL, NULL, NULL, NULL, "∞", "−∞", "NaN"};
    fixture f;
    begin(&f);
    if (setjmp(f.escape) != 0) ck_abort_msg("out of memory");
    doc_add_matrix(&f.doc, "m", "m", 1, COUNT(values))->values = values;
    char *page = print(&f.doc, NULL);
    cJSON *data = read_data(page);
    const cJSON *rows = cJSON_GetObjectItem(cJSON_GetObjectItem(block(data, 0), "matrix"), "values");
    for (size_t i = 0; i < COUNT(values); i++) {
        const cJSON *item = cJSON_GetArrayItem(cJSON_GetArrayItem(rows, 0), (int)i);
        if (names[i] != NULL)
            ck_assert_str_eq(cJSON_GetStringValue(item), names[i]);
        else
            ck_assert_double_le(fabs(cJSON_GetNumberValue(item) - values[i]), 1e-6 * fabs(values[i]));
    }
    cJSON_Delete(data);
    free(page);
    arena_free(&f.arena);
}
END_TEST

START_TEST(a_course_names_its_lessons) {
    const page_entry entries[] = {{"one", "One", "Why?", 3}, {"two", "Two </script>", NULL, 4}};
    const page_course course = {"Course", "none", DOC_EN, COUNT(entries), entries};
    fixture f;
    begin(&f);
    if (setjmp(f.escape) != 0) ck_abort_msg("out of memory");
    char *page = print(&f.doc, &course);
    cJSON *data = read_data(page);
    const cJSON *lessons = cJSON_GetObjectItem(cJSON_GetObjectItem(data, "course"), "lessons");
    ck_assert_int_eq(cJSON_GetArraySize(lessons), COUNT(entries));
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(lessons, 1), "title")), "Two </script>");
    cJSON_Delete(data);
    free(page);
    arena_free(&f.arena);
}
END_TEST
#endif

int main(void) {
    Suite *suite = suite_create("page");
    TCase *tests = tcase_create("page");
    tcase_add_test(tests, large_maps_are_averaged);
    tcase_add_test(tests, small_maps_stay);
#ifdef CLATTN_HAVE_CJSON
    tcase_add_test(tests, markup_stays_text);
    tcase_add_test(tests, numbers_keep_their_values);
    tcase_add_test(tests, a_course_names_its_lessons);
#endif
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
