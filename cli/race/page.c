/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#ifdef CLATTN_HAVE_CJSON

#include <math.h>
#include <setjmp.h>

#include "lessons/page/page.h"

enum { MOMENTS = 16, LANES = 2, UNIT_COLUMNS = 4 };

/* A row a moment: how many words each side has by then. It grows row by row, on one axis of time. */
static void add_race(doc *doc, const race_pair *pair) {
    arena *arena = doc->arena;
    const double slower_ms = fmax(pair->attention.point.ms, pair->recurrence.point.ms);
    doc_matrix *matrix = doc_add_matrix(
        doc, "race",
        doc_text(doc, "%lld 个词：到这一刻完成了几个", "%lld words: how many are done by then", (long long)pair->length),
        MOMENTS + 1, LANES);
    double *values = ARENA_NEW(arena, double, (MOMENTS + 1) * LANES);
    const char **rows = ARENA_NEW(arena, const char *, MOMENTS + 1), **captions = ARENA_NEW(arena, const char *, MOMENTS + 1);
    const char **columns = ARENA_NEW(arena, const char *, LANES);
    columns[0] = doc_text(doc, "循环", "recurrence");
    columns[1] = doc_text(doc, "注意力", "attention");
    for (int i = 0; i <= MOMENTS; i++) {
        const double ms = slower_ms * i / MOMENTS;
        const race_state recurrence = race_state_at(pair, true, ms), attention = race_state_at(pair, false, ms);
        values[LANES * i] = (double)recurrence.words;
        values[LANES * i + 1] = (double)attention.words;
        rows[i] = arena_format(arena, "%.3g ms", ms);
        captions[i] = doc_text(doc, "%.3g 毫秒：循环 %lld 个词，%lld 步；注意力 %lld 个词，%lld 步",
                               "%.3g ms: the recurrence has %lld words and %lld steps, attention %lld words and %lld steps", ms,
                               (long long)recurrence.words, (long long)recurrence.steps, (long long)attention.words,
                               (long long)attention.steps);
    }
    matrix->symbol = doc_text(doc, "词", "words");
    matrix->values = values;
    matrix->row_labels = rows;
    matrix->col_labels = columns;
    matrix->row_axis = doc_text(doc, "时间", "time");
    matrix->high = (double)pair->length;
    matrix->decimals = 0;
    doc_summary(doc, "循环用 %.3g 毫秒，一个词一个词地完成（画得均匀）；注意力用 %.3g 毫秒，所有词同时完成。",
                "The recurrence takes %.3g ms and has its words one by one (drawn evenly); attention takes %.3g ms and has all "
                "at once.",
                pair->recurrence.point.ms, pair->attention.point.ms);
    doc_grow(doc, matrix, DOC_BY_ROW, captions);
}

static void add_units(doc *doc, const race_results *results) {
    arena *arena = doc->arena;
    const char *const head[UNIT_COLUMNS] = {doc_text(doc, "计算单元", "units"), doc_text(doc, "注意力 ms", "attention ms"),
                                            doc_text(doc, "循环 ms", "recurrence ms"), doc_text(doc, "噪声 %%", "noise %%")};
    const char **cells = ARENA_NEW(arena, const char *, results->unit_count *UNIT_COLUMNS);
    for (size_t i = 0; i < results->unit_count; i++) {
        const race_pair *pair = &results->units[i];
        cells[UNIT_COLUMNS * i] = arena_format(arena, "%d", pair->units);
        cells[UNIT_COLUMNS * i + 1] = arena_format(arena, "%.3g", pair->attention.point.ms);
        cells[UNIT_COLUMNS * i + 2] = arena_format(arena, "%.3g", pair->recurrence.point.ms);
        cells[UNIT_COLUMNS * i + 3] =
            arena_format(arena, "%.0f", 100 * fmax(pair->attention.point.noise, pair->recurrence.point.noise));
    }
    doc_add_table(doc, "units", doc_text(doc, "同样的词，更多计算单元", "The same words on more units"), results->unit_count,
                  UNIT_COLUMNS, head, cells);
    doc_summary(doc, "核心对核心，中位数；噪声是四分位距与中位数之比。",
                "Core against core, medians; noise is the interquartile range over the median.");
}

static void add_lengths(doc *doc, const race_results *results, race_contrast which, const char *id, const char *title) {
    double lengths[RACE_MAX_LENGTHS], attention[RACE_MAX_LENGTHS], recurrence[RACE_MAX_LENGTHS];
    const size_t count = results->length_count;
    for (size_t i = 0; i < count; i++) {
        lengths[i] = (double)results->lengths[which][i].length;
        attention[i] = results->lengths[which][i].attention.point.ms;
        recurrence[i] = results->lengths[which][i].recurrence.point.ms;
    }
    doc_plot *plot = doc_add_plot(doc, id, title);
    plot->x = (doc_axis){.label = doc_text(doc, "词数", "words"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "时间（ms）", "time (ms)"), .logarithmic = true};
    plot->decimals = 3;
    doc_add_series(doc, plot, doc_text(doc, "循环", "recurrence"), DOC_ROLE_RECURRENCE, count, lengths, recurrence);
    doc_add_series(doc, plot, doc_text(doc, "注意力", "attention"), DOC_ROLE_WEIGHTS, count, lengths, attention);
    doc_summary(doc, "%g 个词时循环用 %.3g 毫秒，注意力用 %.3g 毫秒；%g 个词时是 %.3g 和 %.3g。",
                "At %g words the recurrence takes %.3g ms and attention %.3g ms; at %g words %.3g and %.3g.", lengths[0],
                recurrence[0], attention[0], lengths[count - 1], recurrence[count - 1], attention[count - 1]);
}

static void compose(doc *doc, const race_results *results, const clattn__text *sentences) {
    doc_ask(doc,
            doc_text(doc, "一个词一个词地走，还是所有词同时到？谁先完成？句子变长以后呢？",
                     "Word by word, or all words at once: who is done first? And when the sentence grows?"),
            sentences[2].data);
    add_race(doc, &results->units[results->unit_count - 1]);
    doc_step(doc, "更多计算单元", "More units");
    add_units(doc, results);
    doc_say(doc, "%s", "%s", sentences[1].data);
    doc_step(doc, "更长的句子", "Longer sentences");
    add_lengths(doc, results, RACE_CORE, "core",
                doc_text(doc, "核心对核心：不带投影的注意力，与只有循环本身",
                         "Core against core: attention without projections, the loop alone"));
    add_lengths(doc, results, RACE_LAYER, "layer",
                doc_text(doc, "整层对整层：两边都带投影", "Layer against layer: projections on both sides"));
    doc_heading(doc, "记住三句话", "Three sentences to remember");
    for (int i = 0; i < RACE_SENTENCES; i++) doc_say(doc, "%d. %s", "%d. %s", i + 1, sentences[i].data);
    doc_correct(doc, doc_text(doc, "注意力总是更快。", "Attention is always faster."), sentences[2].data);
}

bool race_page_write(output_set *set, const char *path, const race_results *results, race_language language,
                     const clattn__text *sentences) {
    const clattn_device_info *info = &results->device->info;
    jmp_buf out_of_memory;
    arena memory = {.escape = &out_of_memory};
    FILE *file = output_open(set, path);
    if (file == NULL) return false;
    bool right = false;
    if (setjmp(out_of_memory) == 0) {
        doc page = {.arena = &memory, .language = (doc_language)language, .name = "race", .minutes = 1};
        page.title = doc_text(&page, "赛跑：一个接一个，还是同时", "The race: one after another, or all at once");
        page.device = arena_format(&memory, "%s (%s)", info->id, info->name);
        compose(&page, results, sentences);
        right = page_print(file, &page, NULL);
    }
    arena_free(&memory);
    if (right) return true;
    output_discard(set);
    snprintf(set->error, sizeof set->error, "out of memory for %.400s", path);
    return false;
}

#endif
