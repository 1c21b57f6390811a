/* Tuning's files: read, judged, taken over line by line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tuning_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"

/* ---- one file -------------------------------------------------------------------------------------------------------- */

typedef struct document {
    char schema[64], kernels[64];
    clattn__tuning_device device;
    const char *choices; /* where they begin in the text */
} document;

void clattn__tuning_file_device(clattn__json *json, clattn__tuning_device *device) {
    const struct {
        const char *name;
        char *text;
        size_t size;
    } members[] = {{"name", device->name, sizeof device->name},
                   {"platform", device->platform, sizeof device->platform},
                   {"driver", device->driver, sizeof device->driver},
                   {"vendor", device->vendor, sizeof device->vendor},
                   {"architecture", device->architecture, sizeof device->architecture},
                   {"type", device->type, sizeof device->type},
                   {"kernels", device->kernels, sizeof device->kernels}};
    const size_t count = sizeof members / sizeof *members;
    for (bool more = clattn__json_open(json, '{'); more; more = clattn__json_more(json, '}')) {
        char name[32];
        size_t n = 0;
        clattn__json_name(json, name, sizeof name);
        while (n < count && strcmp(members[n].name, name) != 0) n++;
        if (n < count)
            clattn__json_text(json, members[n].text, members[n].size);
        else
            clattn__json_skip(json);
    }
}

static bool read_document(clattn__json *json, document *d) {
    for (bool more = clattn__json_open(json, '{'); more; more = clattn__json_more(json, '}')) {
        char name[32];
        clattn__json_name(json, name, sizeof name);
        if (strcmp(name, "schema") == 0) {
            clattn__json_text(json, d->schema, sizeof d->schema);
        } else if (strcmp(name, "kernels") == 0) {
            clattn__json_text(json, d->kernels, sizeof d->kernels);
        } else if (strcmp(name, "device") == 0) {
            clattn__tuning_file_device(json, &d->device);
        } else {
            if (strcmp(name, "choices") == 0) d->choices = json->at;
            clattn__json_skip(json);
        }
    }
    return clattn__json_end(json);
}

static void read_choice(clattn__json *json, clattn__tuned *line) {
    for (bool more = clattn__json_open(json, '{'); more; more = clattn__json_more(json, '}')) {
        char name[32];
        clattn__json_name(json, name, sizeof name);
        if (strcmp(name, "key") == 0)
            clattn__json_text(json, line->key, sizeof line->key);
        else if (strcmp(name, "row") == 0)
            clattn__json_text(json, line->row, sizeof line->row);
        else if (strcmp(name, "default") == 0)
            clattn__json_text(json, line->other, sizeof line->other);
        else if (strcmp(name, "ratio") == 0)
            clattn__json_number(json, &line->ratio);
        else if (strcmp(name, "noise") == 0)
            clattn__json_number(json, &line->noise);
        else
            clattn__json_skip(json);
    }
    if (!json->problem && (!line->key[0] || !line->row[0])) json->problem = "a choice has no key or no row";
}

static bool add_line(clattn__tuning_files *files, const clattn__tuned *line) {
    clattn__tuned *lines = clattn__list_room(files->lines, files->count, &files->capacity, sizeof *lines);
    if (!lines) return false;
    files->lines = lines;
    files->lines[files->count++] = *line;
    return true;
}

static const char *keep_name(clattn__tuning_files *files, const char *name) {
    char **names = realloc(files->names, (files->name_count + 1) * sizeof *names);
    if (names) files->names = names;
    char *copy = names ? malloc(strlen(name) + 1) : NULL;
    if (copy) files->names[files->name_count++] = strcpy(copy, name);
    return copy;
}

static bool refuse(clattn__tuning_files *files, const char *name, const char *why) {
    clattn__text_add(&files->problems, "tuning file %s is left out: %s\n", name, why);
    return false;
}

/* That another device is best served by its own default says nothing of this one. */
static bool is_of_no_use(const clattn__tuned *line) {
    return line->level != CLATTN__TUNING_DEVICE && strcmp(line->row, line->other) == 0;
}

/* Lines of a file, or none: a file with a fault does not count in part. */
static bool take_choices(clattn__tuning_files *files, const document *d, clattn__tuned line) {
    const size_t before = files->count;
    clattn__json json = clattn__json_of(d->choices);
    bool added = true;
    for (bool more = clattn__json_open(&json, '['); more && added; more = clattn__json_more(&json, ']')) {
        clattn__tuned next = line;
        read_choice(&json, &next);
        if (json.problem || is_of_no_use(&next)) continue;
        added = add_line(files, &next);
    }
    if (json.problem || !added) files->count = before;
    if (json.problem) return refuse(files, line.file, json.problem);
    return added || refuse(files, line.file, "there is no memory for it");
}

bool clattn__tuning_file_take(clattn__tuning_files *files, const char *name, bool built_in, const char *text,
                              const clattn__tuning_device *here) {
    document d = {0};
    char why[160];
    clattn__json json = clattn__json_of(text);
    if (!read_document(&json, &d)) {
        snprintf(why, sizeof why, "%s, at byte %zu", json.problem, (size_t)(json.at - json.text));
        return refuse(files, name, why);
    }
    if (strcmp(d.schema, CLATTN__TUNING_SCHEMA) != 0) {
        snprintf(why, sizeof why, "its schema is \"%s\", and this version reads " CLATTN__TUNING_SCHEMA, d.schema);
        return refuse(files, name, why);
    }
    if (!d.choices) return refuse(files, name, "it has no choices");
    const clattn__tuning_level level = clattn__tuning_level_of(&d.device, here);
    if (level == CLATTN__TUNING_NO_LEVEL) return true;
    if (!built_in && strcmp(d.kernels, clattn__kernels_hash) != 0)
        return refuse(files, name, "it was measured with other kernels than this version's; clattn tune measures again");
    const char *kept = keep_name(files, name);
    if (!kept) return refuse(files, name, "there is no memory for it");
    const bool other_driver = strcmp(d.device.driver, here->driver) != 0;
    const clattn__tuned line = {.level = level, .file = kept, .built_in = built_in, .other_driver = other_driver, .ratio = 1};
    return take_choices(files, &d, line);
}

void clattn__tuning_files_free(clattn__tuning_files *files) {
    while (files->name_count) free(files->names[--files->name_count]);
    free(files->names);
    free(files->lines);
    clattn__text_free(&files->problems);
    *files = (clattn__tuning_files){0};
}

/* ---- all files ------------------------------------------------------------------------------------------------------- */

static bool is_json(const char *name) {
    const size_t length = strlen(name);
    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static char *read_text(FILE *file, const char **why) {
    char *text = malloc(CLATTN__TUNING_MOST + 2);
    const size_t length = text ? fread(text, 1, CLATTN__TUNING_MOST + 1, file) : 0;
    *why = !text                             ? "there is no memory for it"
           : ferror(file)                    ? strerror(errno)
           : length > CLATTN__TUNING_MOST    ? "it has more than a megabyte"
           : memchr(text, 0, length) != NULL ? "a byte of it is 0"
                                             : NULL;
    if (text) text[length] = 0;
    if (!*why) return text;
    free(text);
    return NULL;
}

static void take_user_file(clattn__tuning_files *files, const char *path, const clattn__tuning_device *here) {
    const char *why = NULL;
    FILE *file = fopen(path, "rb");
    char *text = file ? read_text(file, &why) : NULL;
    if (!file) why = strerror(errno);
    if (file) fclose(file);
    if (text)
        clattn__tuning_file_take(files, path, false, text, here);
    else
        refuse(files, path, why);
    free(text);
}

static void take_directory(clattn__tuning_files *files, const char *path, const clattn__tuning_device *here) {
    DIR *directory = opendir(path);
    if (!directory) {
        if (errno != ENOENT && errno != ENOTDIR) refuse(files, path, strerror(errno));
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(directory))) { /* in any order: lines are sorted by file name afterwards */
        clattn__text file = {0};
        if (!is_json(entry->d_name)) continue;
        clattn__text_add(&file, "%s/%s", path, entry->d_name);
        if (!file.failed) take_user_file(files, file.data, here);
        clattn__text_free(&file);
    }
    closedir(directory);
}

/* Whether a file says so before its choices: those of what is compiled in, which a test knows to be whole, then need not be read. */
static bool begins_with_another_type(const char *text, const clattn__tuning_device *here) {
    clattn__json json = clattn__json_of(text);
    for (bool more = clattn__json_open(&json, '{'); more; more = clattn__json_more(&json, '}')) {
        char name[32];
        clattn__json_name(&json, name, sizeof name);
        if (strcmp(name, "choices") == 0) return false;
        if (strcmp(name, "device") == 0) {
            clattn__tuning_device device = {0};
            clattn__tuning_file_device(&json, &device);
            return !json.problem && clattn__tuning_level_of(&device, here) == CLATTN__TUNING_NO_LEVEL;
        }
        clattn__json_skip(&json);
    }
    return false;
}

void clattn__tuning_files_read(clattn__tuning_files *files, const clattn__tuning_device *here) {
    clattn__text path = clattn__tuning_directory();
    if (path.data) take_directory(files, path.data, here);
    clattn__text_free(&path);
    for (const clattn__tuned_file *file = clattn__tuned_files; file->name; file++)
        if (!begins_with_another_type(file->text, here)) clattn__tuning_file_take(files, file->name, true, file->text, here);
}

/* ---- names ----------------------------------------------------------------------------------------------------------- */

static uint64_t hash_add(uint64_t hash, const char *text) { /* and the end of each text, which no text has within */
    return clattn__hash(clattn__hash(hash, text, strlen(text)), "\xff", 1);
}

/* What people recognise, and a hash of all that makes it another device. */
void clattn__tuning_file(const clattn__tuning_device *device, char *name, size_t size) {
    char words[40];
    size_t length = 0;
    for (const char *at = device->name; *at && length + 1 < sizeof words; at++) {
        const char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            words[length++] = c;
        else if (length && words[length - 1] != '-')
            words[length++] = '-';
    }
    words[length] = 0;
    uint64_t hash = hash_add(CLATTN__HASH_START, device->name);
    hash = hash_add(hash_add(hash_add(hash, device->platform), device->type), device->kernels);
    snprintf(name, size, "%s%s%016llx.json", words, length && words[length - 1] != '-' ? "-" : "", (unsigned long long)hash);
}
