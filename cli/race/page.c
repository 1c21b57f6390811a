/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#ifdef CLATTN_HAVE_CJSON

#include <math.h>
#include <setjmp.h>

#include "bench/stats.h"
#include "lessons/lesson.h"
#include "lessons/page/page.h"

static const char *attention_name(const doc *doc) {
    return doc_text(doc, "注意力", "attention");
}

static const char *recurrence_name(const doc *doc) {
    return doc_text(doc, "循环", "recurrence");
}

static race_language language_of(const doc *doc) {
    return doc->language == DOC_ZH ? RACE_ZH : RACE_EN;
}

/* The text in the document's memory. */
static const char *keep(const doc *doc, clattn__text *text) {
    const char *kept = arena_copy(doc->arena, text->data != NULL ? text->data : "");
    clattn__text_free(text);
    return kept;
}

static const char *outcome(const doc *doc, const race_pair *pair) {
    clattn__text text = {0};
    race_outcome(pair, language_of(doc), &text);
    return keep(doc, &text);
}

static const char *why(const doc *doc, const race_pair *pair) {
    clattn__text text = {0};
    race_why(pair, language_of(doc), &text);
    return keep(doc, &text);
}

static const char *turn(const doc *doc, const race_results *results, race_contrast which) {
    clattn__text text = {0};
    race_turn(results, which, language_of(doc), &text);
    return keep(doc, &text);
}

/* ---- lanes --------------------------------------------------------------------------------------------------------- */

static const double REPLAY_MS = 6000;

/* One digit is enough to be told, and to be kept to. */
static double slowed_by(double slower_ms) {
    const double factor = REPLAY_MS / slower_ms, unit = pow(10, floor(log10(factor)));
    return fmax(1, round(factor / unit)) * unit;
}

static const char *note_of(const doc *doc, const race_runner *runner) {
    char percent[RACE_PERCENT];
    const char *noise =
        runner->point.noise > BENCH_NOISY_ABOVE
            ? doc_text(doc, "噪声 %s %%", "noise %s %%", race_percent(runner->point.noise, language_of(doc), percent))
            : NULL;
    if (!isfinite(runner->busy)) return noise;
    const char *busy = doc_text(doc, "设备忙 %.0f %%", "busy %.0f %%", 100 * fmin(1, runner->busy));
    return noise != NULL ? doc_text(doc, "%s，%s", "%s, %s", busy, noise) : busy;
}

static doc_lane lane_of(const doc *doc, const race_pair *pair, bool is_recurrence) {
    const race_runner *runner = is_recurrence ? &pair->recurrence : &pair->attention;
    return (doc_lane){
        .name = is_recurrence ? doc_text(doc, "循环：逐词走", "The recurrence, word by word")
                              : doc_text(doc, "注意力：一次到", "Attention, at once"),
        .note = note_of(doc, runner),
        .role = is_recurrence ? DOC_ROLE_RECURRENCE : DOC_ROLE_WEIGHTS,
        .one_by_one = is_recurrence,
        .steps = runner->point.chain,
        .ms = runner->point.ms,
    };
}

static void add_lanes(doc *doc, const race_results *results) {
    const race_pair *pair = race_headline(results);
    doc_lane *lanes = ARENA_NEW(doc->arena, doc_lane, 2);
    char parts[RACE_PARTS], stages[RACE_PARTS];
    race_chain_parts(pair, language_of(doc), parts);
    race_stage_parts(pair, language_of(doc), stages);
    lanes[0] = lane_of(doc, pair, true);
    lanes[1] = lane_of(doc, pair, false);
    *doc_add_lanes(
        doc, "lanes",
        doc_text(doc, "%lld 个词，%d 个计算单元，不带投影",
                 pair->units == 1 ? "%lld words, %d unit, core against core" : "%lld words, %d units, core against core",
                 (long long)pair->length, pair->units)) =
        (doc_lanes){.words = pair->length, .slowed = slowed_by(fmax(lanes[0].ms, lanes[1].ms)), .count = 2, .lanes = lanes};
    doc_summary(
        doc,
        "%lld 个词：循环用 %.3g 毫秒，%lld 步%s一步等一步；注意力用 %.3g 毫秒，%lld 步%s，所有的词一起到。谁快：%s。"
        "循环的词在它的时间里均匀地画出。",
        "%lld words: the recurrence took %.3g ms for %lld steps%s that wait for one another; attention took %.3g ms "
        "for %lld%s, and all its words arrive together. Faster: %s. The recurrence's words are shown evenly spaced over "
        "its time.",
        (long long)pair->length, pair->recurrence.point.ms, (long long)pair->recurrence.point.chain, parts,
        pair->attention.point.ms, (long long)pair->attention.point.chain, stages, outcome(doc, pair));
}

/* ---- plots and tables ---------------------------------------------------------------------------------------------- */

static void add_pair_table(doc *doc, const char *id, const char *title, const char *head, const race_pair *pairs, size_t count,
                           bool by_units) {
    enum { COLUMNS = 4 };
    const char *const heads[COLUMNS] = {head, doc_text(doc, "注意力（毫秒）", "attention (ms)"),
                                        doc_text(doc, "循环（毫秒）", "recurrence (ms)"), doc_text(doc, "谁快", "faster")};
    const char **cells = ARENA_NEW(doc->arena, const char *, count *COLUMNS);
    for (size_t i = 0; i < count; i++) {
        const long long label = by_units ? pairs[i].units : pairs[i].length;
        cells[i * COLUMNS] = doc_text(doc, "%lld", "%lld", label);
        cells[i * COLUMNS + 1] = doc_text(doc, "%.3g", "%.3g", pairs[i].attention.point.ms);
        cells[i * COLUMNS + 2] = doc_text(doc, "%.3g", "%.3g", pairs[i].recurrence.point.ms);
        cells[i * COLUMNS + 3] = outcome(doc, &pairs[i]);
    }
    doc_add_table(doc, id, title, count, COLUMNS, heads, cells);
}

/* One side's times over x, and between which half of its runs lie. */
static void add_side(doc *doc, doc_plot *plot, const double *x, const race_pair *pairs, size_t count, bool is_recurrence) {
    double *ms = ARENA_NEW(doc->arena, double, count), *low = ARENA_NEW(doc->arena, double, count),
           *high = ARENA_NEW(doc->arena, double, count);
    for (size_t i = 0; i < count; i++) {
        const race_runner *runner = is_recurrence ? &pairs[i].recurrence : &pairs[i].attention;
        ms[i] = runner->point.ms;
        low[i] = runner->low;
        high[i] = runner->high;
    }
    doc_add_series(doc, plot, is_recurrence ? recurrence_name(doc) : attention_name(doc),
                   is_recurrence ? DOC_ROLE_RECURRENCE : DOC_ROLE_WEIGHTS, count, x, ms);
    doc_add_spread(doc, plot, low, high);
}

/* Both sides' times over x. */
static void add_pair_series(doc *doc, doc_plot *plot, const double *x, const race_pair *pairs, size_t count) {
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) least = fmin(least, fmin(pairs[i].attention.point.ms, pairs[i].recurrence.point.ms));
    plot->decimals = (int)fmin(6, fmax(0, 2 - floor(log10(least)))); /* three digits of the least */
    add_side(doc, plot, x, pairs, count, true);
    add_side(doc, plot, x, pairs, count, false);
}

static void add_units(doc *doc, const race_results *results, const clattn__text *sentence) {
    const size_t count = results->unit_count;
    double *x = ARENA_NEW(doc->arena, double, count);
    const char **names = ARENA_NEW(doc->arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        x[i] = (double)i;
        names[i] = doc_text(doc, "%d", "%d", results->units[i].units);
    }
    doc_step(doc, "同样的 %lld 个词，用更多计算单元（不带投影）", "The same %lld words on more units (core against core)",
             (long long)results->units[0].length);
    doc_plot *plot = doc_add_plot(doc, "units", doc_text(doc, "每种单元数用的时间", "Time on so many units"));
    plot->mark = DOC_BARS;
    plot->x.label = doc_text(doc, "单元", "units");
    plot->y.label = doc_text(doc, "毫秒", "ms");
    plot->categories = names;
    add_pair_series(doc, plot, x, results->units, count);
    doc_summary(doc, "%s", "%s", sentence->data);
    add_pair_table(doc, "units-table", doc_text(doc, "谁快，快多少", "Who is faster, and by how much"), plot->x.label,
                   results->units, count, true);
    doc_summary(
        doc, "取每边多次运行的中位数；标“噪声”的，四分位距超过中位数的 %.0f %%。",
        "Medians of several runs a side; where it says noise, the quartiles lie further apart than %.0f %% of the median.",
        100 * BENCH_NOISY_ABOVE);
}

/* What is asked of a contrast, and what its sides are. */
typedef struct contrast_words {
    const char *id, *table_id, *zh, *en;
} contrast_words;

static const contrast_words contrasts[RACE_CONTRASTS] = {
    [RACE_CORE] = {"core", "core-table", "更长的句子，不带投影：不带投影的注意力，对不带 W_in·x 的循环",
                   "Longer sentences, core against core: attention without projections, the recurrent loop without W_in·x"},
    [RACE_LAYER] = {"layer", "layer-table", "更长的句子，带投影：两边都是整层",
                    "Longer sentences, layer against layer: projections on both sides"},
};

static void add_lengths(doc *doc, const race_results *results, race_contrast which) {
    const contrast_words *words = &contrasts[which];
    const race_pair *pairs = results->lengths[which];
    const size_t count = results->length_count;
    double *x = ARENA_NEW(doc->arena, double, count);
    for (size_t i = 0; i < count; i++) x[i] = (double)pairs[i].length;
    doc_step(doc, "%s", "%s", doc->language == DOC_ZH ? words->zh : words->en);
    doc_plot *plot = doc_add_plot(doc, words->id, doc_text(doc, "时间随词数的变化", "Time over the number of words"));
    plot->x = (doc_axis){.label = doc_text(doc, "词数", "words"), .logarithmic = true};
    plot->y = (doc_axis){.label = doc_text(doc, "毫秒", "ms"), .logarithmic = true};
    add_pair_series(doc, plot, x, pairs, count);
    doc_summary(doc, "输赢%s。", "The picture %s.", turn(doc, results, which));
    add_pair_table(doc, words->table_id, doc_text(doc, "谁快，快多少", "Who is faster, and by how much"), plot->x.label, pairs,
                   count, false);
    doc_summary(doc, "原因：%s；%s。", "Why: %s; %s.", why(doc, &pairs[0]), why(doc, &pairs[count - 1]));
}

/* ---- the document -------------------------------------------------------------------------------------------------- */

static doc compose(arena *arena, const race_results *results, race_language language, const clattn__text *sentences) {
    const race_pair *headline = race_headline(results), *core = results->lengths[RACE_CORE];
    doc doc = {.arena = arena, .language = language == RACE_ZH ? DOC_ZH : DOC_EN, .name = "race", .minutes = 3};
    doc.title = doc_text(&doc, "赛跑：逐词走，还是一次到", "The race: word by word, or all at once");
    clattn__text where = {0};
    race_where(results, language, &where);
    doc.device = keep(&doc, &where);
    doc_ask(
        &doc,
        doc_text(&doc, "两边同样宽（%lld），读同样的 %lld 个词。谁先到？词越来越多，还会一样吗？",
                 "Both sides are %lld wide and read the same %lld words. Which arrives first? And with more and more words?",
                 (long long)results->width, (long long)headline->length),
        doc_text(&doc, "在这台机器的 %d 个计算单元上，%lld 个词：%s。词更多时，不带投影，输赢%s。",
                 headline->units == 1
                     ? "On %d unit of this machine, at %lld words: %s. With more words, core against core the picture %s."
                     : "On %d units of this machine, at %lld words: %s. With more words, core against core the picture %s.",
                 headline->units, (long long)headline->length, outcome(&doc, headline), turn(&doc, results, RACE_CORE)));
    add_lanes(&doc, results);
    add_units(&doc, results, &sentences[1]);
    for (int which = 0; which < RACE_CONTRASTS; which++) add_lengths(&doc, results, (race_contrast)which);
    doc_step(&doc, "记住三句话", "Three sentences to remember");
    for (int i = 0; i < RACE_SENTENCES; i++) doc_say(&doc, "%d. %s", "%d. %s", i + 1, sentences[i].data);
    doc_correct(&doc, doc_text(&doc, "注意力更快，是因为它算得更少。", "Attention is faster because it computes less."),
                doc_text(&doc, "不带投影，%s；%s。", "Core against core, %s; %s.", why(&doc, &core[0]),
                         why(&doc, &core[results->length_count - 1])));
    return doc;
}

/* The arena's way out leads here. */
static bool print(arena *arena, FILE *file, const race_results *results, race_language language,
                  const clattn__text *sentences) {
    jmp_buf escape;
    arena->escape = &escape;
    if (setjmp(escape) != 0) return false;
    const doc doc = compose(arena, results, language, sentences);
    return page_print(file, &doc, NULL);
}

bool race_page_write(output_set *set, const char *path, const race_results *results, race_language language,
                     const clattn__text *sentences) {
    arena arena = {0};
    FILE *file = output_open(set, path);
    if (file == NULL) return false;
    const bool printed = print(&arena, file, results, language, sentences);
    arena_free(&arena);
    if (printed) return true;
    output_discard(set);
    snprintf(set->error, sizeof set->error, "out of memory for %.400s", path);
    return false;
}

#endif
