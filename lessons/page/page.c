/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/html.h"
#include "page_average.h"
#include "page_files.h"
#include "symbols.h"
#include "third_party/d3.h"

const char *page_question(const doc *doc) {
    for (const doc_block *block = doc->first; block != NULL; block = block->next)
        if (block->kind == DOC_QUESTION) return block->text;
    return NULL;
}

#ifdef CLATTN_HAVE_CJSON
#include "doc_json.h"

/* ---- data ---------------------------------------------------------------------------------------------------------- */

/* The name of what is no finite number: JSON has no number for it. */
static bool name_number(cJSON *item) {
    const char *name = isnan(item->valuedouble) ? "NaN" : item->valuedouble > 0 ? "∞" : "−∞";
    char *copy = cJSON_malloc(strlen(name) + 1);
    if (copy == NULL) return false;
    item->type = (item->type & ~0xff) | cJSON_String;
    item->valuestring = strcpy(copy, name);
    return true;
}

/* Seven digits are what single precision has. */
static bool shorten_numbers(cJSON *item) {
    for (; item != NULL; item = item->next) {
        char text[32];
        if (cJSON_IsNumber(item) && !isfinite(item->valuedouble)) {
            if (!name_number(item)) return false;
        } else if (cJSON_IsNumber(item)) {
            snprintf(text, sizeof text, "%.7g", item->valuedouble);
            item->valuedouble = strtod(text, NULL);
        }
        if (!shorten_numbers(item->child)) return false;
    }
    return true;
}

enum { LARGE_MAP = 1024, SPARE_DECIMALS = 2 };

/* The numbers of a large map become whole multiples of its "unit", two decimals below what a cell shows: half the size. */
static bool scale_map(cJSON *matrix) {
    const cJSON *values = cJSON_GetObjectItem(matrix, "values");
    if (cJSON_GetArraySize(values) * cJSON_GetArraySize(cJSON_GetArrayItem(values, 0)) < LARGE_MAP) return true;
    const double decimals = cJSON_GetNumberValue(cJSON_GetObjectItem(matrix, "decimals"));
    const double per_unit = pow(10, decimals + SPARE_DECIMALS);
    cJSON *row, *item;
    cJSON_ArrayForEach(row, values) {
        cJSON_ArrayForEach(item, row) {
            if (cJSON_IsNumber(item)) cJSON_SetNumberValue(item, rint(item->valuedouble * per_unit));
        }
    }
    return cJSON_AddNumberToObject(matrix, "unit", 1 / per_unit) != NULL;
}

static bool scale_maps(cJSON *document) {
    const cJSON *block;
    cJSON_ArrayForEach(block, cJSON_GetObjectItem(document, "blocks")) {
        cJSON *matrix = cJSON_GetObjectItem(block, "matrix");
        if (matrix != NULL && !scale_map(matrix)) return false;
    }
    return true;
}

static bool put_entry(cJSON *array, const page_entry *entry) {
    cJSON *object = cJSON_CreateObject();
    if (object == NULL || !cJSON_AddItemToArray(array, object)) {
        cJSON_Delete(object);
        return false;
    }
    return cJSON_AddStringToObject(object, "name", entry->name) != NULL &&
           cJSON_AddStringToObject(object, "title", entry->title) != NULL &&
           cJSON_AddStringToObject(object, "question", entry->question != NULL ? entry->question : "") != NULL &&
           cJSON_AddNumberToObject(object, "minutes", entry->minutes) != NULL;
}

static bool put_symbols(cJSON *object, doc_language language) {
    cJSON *list = cJSON_AddArrayToObject(object, "symbols");
    bool whole = list != NULL;
    for (const lesson_symbol *symbol = lesson_symbols; whole && symbol->symbol != NULL; symbol++) {
        cJSON *entry = cJSON_CreateObject();
        whole = entry != NULL && cJSON_AddItemToArray(list, entry);
        if (!whole) cJSON_Delete(entry);
        whole = whole && cJSON_AddStringToObject(entry, "symbol", symbol->symbol) != NULL &&
                cJSON_AddStringToObject(entry, "meaning", language == DOC_ZH ? symbol->zh : symbol->en) != NULL &&
                cJSON_AddStringToObject(entry, "lesson", symbol->lesson) != NULL;
    }
    return whole;
}

static bool put_course(cJSON *root, const page_course *course) {
    cJSON *object = cJSON_AddObjectToObject(root, "course");
    cJSON *lessons = object != NULL ? cJSON_AddArrayToObject(object, "lessons") : NULL;
    bool whole = lessons != NULL && cJSON_AddStringToObject(object, "title", course->title) != NULL &&
                 cJSON_AddStringToObject(object, "device", course->device) != NULL;
    for (size_t i = 0; whole && i < course->count; i++) whole = put_entry(lessons, &course->entries[i]);
    return whole;
}

static bool put_document(cJSON *root, const doc *doc) {
    const struct doc averaged = page_average(doc);
    cJSON *document = doc_json(&averaged);
    if (document != NULL && shorten_numbers(document) && scale_maps(document) &&
        cJSON_AddItemToObject(root, "lesson", document))
        return true;
    cJSON_Delete(document);
    return false;
}

/* The text of the page's JSON; NULL without memory. Either of doc and course may be NULL. */
static char *data_text(doc_language language, const doc *doc, const page_course *course) {
    cJSON *root = cJSON_CreateObject();
    char *text = NULL;
    if (root != NULL && cJSON_AddStringToObject(root, "language", language == DOC_ZH ? "zh" : "en") != NULL &&
        (doc == NULL || put_document(root, doc)) && (course == NULL || put_course(root, course)) &&
        (doc != NULL || put_symbols(root, language)))
        text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

/* ---- the page ------------------------------------------------------------------------------------------------------ */

typedef struct page {
    FILE *file;
    const char *title;
    doc_language language;
    const char *data;
} page;

static void print_title(const page *page) {
    html_escape(page->file, page->title);
}

static void print_language(const page *page) {
    fputs(page->language == DOC_ZH ? "zh-Hans" : "en", page->file);
}

static void print_style(const page *page) {
    fputs(page_file_page_css, page->file);
}

static void print_style_hash(const page *page) {
    fputs(page_hash_page_css, page->file);
}

static const char *const scripts[][2] = {{d3_file_d3_min_js, d3_hash_d3_min_js},
#define PAGE_X(name) {page_file_##name, page_hash_##name},
                                         PAGE_SCRIPTS(PAGE_X)
#undef PAGE_X
};

enum { SCRIPT_COUNT = sizeof scripts / sizeof *scripts };

static void print_scripts(const page *page) {
    for (size_t i = 0; i < SCRIPT_COUNT; i++) fprintf(page->file, "<script>%s</script>\n", scripts[i][0]);
}

static void print_script_hashes(const page *page) {
    for (size_t i = 0; i < SCRIPT_COUNT; i++) fprintf(page->file, "%s%s", i > 0 ? " " : "", scripts[i][1]);
}

/* JSON in a script element: no "<" stands in it as itself, so that no text can end the element or open a comment in it. In JSON
 * it stands in strings alone, where it has another spelling. */
static void print_data(const page *page) {
    for (const char *at = page->data; *at != '\0'; at++) {
        if (*at == '<')
            fputs("\\u003c", page->file);
        else
            fputc(*at, page->file);
    }
}

static void print_part(FILE *file, const char *name, size_t length, const void *user) {
    const page *page = user;
    static const struct {
        const char *name;
        void (*print)(const struct page *);
    } parts[] = {
        {"TITLE", print_title},
        {"LANGUAGE", print_language},
        {"STYLE", print_style},
        {"STYLE_HASH", print_style_hash},
        {"SCRIPTS", print_scripts},
        {"DATA", print_data},
        {"SCRIPT_HASHES", print_script_hashes},
    };
    (void)file;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].name) == length && strncmp(parts[i].name, name, length) == 0) parts[i].print(page);
}

static bool print_page(FILE *file, const char *title, doc_language language, char *data) {
    if (data == NULL) return false;
    html_fill(file, page_file_page_html, print_part, &(page){file, title, language, data});
    cJSON_free(data);
    return true;
}

bool page_print(FILE *file, const doc *doc, const page_course *course) {
    return print_page(file, doc->title, doc->language, data_text(doc->language, doc, course));
}

bool page_print_course(FILE *file, const page_course *course) {
    return print_page(file, course->title, course->language, data_text(course->language, NULL, course));
}

#endif
