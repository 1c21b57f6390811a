/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "course_pages.h"

#ifdef CLATTN_HAVE_CJSON

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "page/page.h"

static bool fail(output_set *set, const char *problem, const char *path) {
    output_discard(set);
    snprintf(set->error, sizeof set->error, "%s %.400s", problem, path);
    return false;
}

/* NULL: the page of the course itself, which has no lesson. */
static bool write_page(output_set *set, const char *path, const lesson *lesson, const page_course *course) {
    FILE *file = output_open(set, path);
    if (file == NULL) return false;
    if (lesson != NULL ? page_print(file, &lesson->doc, course) : page_print_course(file, course)) return true;
    return fail(set, "out of memory for", path);
}

bool course_page_write(output_set *set, const char *path, const lesson *lesson) {
    return write_page(set, path, lesson, NULL);
}

static bool make_folder(output_set *set, const char *folder) {
    struct stat status;
    if (mkdir(folder, 0777) == 0 || (stat(folder, &status) == 0 && S_ISDIR(status.st_mode))) return true;
    if (errno == EEXIST) errno = ENOTDIR;
    snprintf(set->error, sizeof set->error, "cannot make the folder %s: %s", folder, strerror(errno));
    return false;
}

static bool write_in_folder(output_set *set, const char *folder, const char *name, const lesson *lesson,
                            const page_course *course) {
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s.html", folder, name) >= sizeof path)
        return fail(set, "the path is too long:", folder);
    return write_page(set, path, lesson, course);
}

bool course_pages_write(output_set *set, const char *folder, const lesson *lessons, size_t count) {
    page_entry *entries = calloc(count, sizeof *entries);
    if (entries == NULL) return fail(set, "out of memory for", folder);
    for (size_t i = 0; i < count; i++) {
        const doc *doc = &lessons[i].doc;
        entries[i] = (page_entry){doc->name, doc->title, page_question(doc), doc->minutes};
    }
    const doc *first = &lessons[0].doc;
    const page_course course = {
        .title = doc_text(first, "从会遗忘的循环，到能回头看的注意力",
                          "From the recurrence that forgets to the attention that looks back"),
        .device = first->device,
        .language = first->language,
        .count = count,
        .entries = entries,
    };
    bool written = make_folder(set, folder) && write_in_folder(set, folder, "index", NULL, &course);
    for (size_t i = 0; written && i < count; i++)
        written = write_in_folder(set, folder, lessons[i].doc.name, &lessons[i], &course);
    free(entries);
    return written;
}

#endif
