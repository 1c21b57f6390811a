/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pin.h"
#include "ratios.h"

const char bench_formulas[] =
    "FLOPs of attention: 2 (head_dim + value_dim) x visible pairs x heads x batch; of a product, 2 for each multiply-add. "
    "Peak: "
    "fp32 multiply-adds in registers, the best of runs taken in turns with the figures, on the same units. Bytes: inputs read "
    "once, outputs written once. ms: the median, without copies between host and device; noise: the interquartile range over "
    "the "
    "median. Chain: launches, or steps inside one, each of which waits for the one before. The recurrent loop alone is a "
    "recurrence on inputs of width 0: its input projection is only the bias.\n";

static const struct {
    const char *name, *title;
} contrasts[] = {
    {"limits", "Limits of the device"},
    {"copies", "Copies between host and device"},
    {"core", "Core against core: attention without projections, the recurrent loop alone"},
    {"layer", "Layer against layer: projections on both sides"},
    {"lstm", "LSTM: the layer beside attention's"},
    {"scaling", "Scaling: the same work on more units"},
    {"peers", "Attention and its peers"},
    {"growth", "Growth with the length"},
    {"project", "Projections"},
    {"recurrence", "Recurrences"},
};

enum { CONTRASTS = sizeof contrasts / sizeof *contrasts };

const char *bench_contrast_title(const char *contrast) {
    for (int i = 0; i < CONTRASTS; i++)
        if (strcmp(contrasts[i].name, contrast) == 0) return contrasts[i].title;
    return contrast;
}

/* ---- cells --------------------------------------------------------------------------------------------------------- */

typedef struct row_text {
    char path[64], length[16], units[16], cache[8], ms[16], noise[16], gflop[16], rate[16], peak[16], chain[16];
} row_text;

/* Four digits that matter. */
static void number(char *text, size_t size, double value) {
    if (!isfinite(value))
        snprintf(text, size, "-");
    else
        snprintf(text, size,
                 value >= 1000  ? "%.0f"
                 : value >= 100 ? "%.1f"
                 : value >= 10  ? "%.2f"
                 : value >= 0.1 ? "%.3f"
                                : "%.2g",
                 value);
}

static void count_or_dash(char *text, size_t size, const bench_record *record, bench_field field) {
    if (record->values[field].known)
        snprintf(text, size, "%" PRId64, bench_count(record, field));
    else
        snprintf(text, size, "-");
}

/* "attention fused, causal": clattn's own paths by their operator, others as they are called. */
static void describe(char *text, size_t size, const bench_record *r) {
    static const char ours[] = "clattn ";
    const char *path = bench_text(r, BENCH_PATH), *causal = bench_text(r, BENCH_CAUSAL);
    bool own = strncmp(path, ours, sizeof ours - 1) == 0;
    const char *window = bench_text(r, BENCH_WINDOW), *dtype = bench_text(r, BENCH_DTYPE);
    const bool windowed = window[0] && strcmp(window, "none") != 0, other = dtype[0] && strcmp(dtype, "f32") != 0;
    snprintf(text, size, "%s%s%s%s%s%s%s%s", own ? bench_text(r, BENCH_OP) : "", own ? " " : "", own ? path + sizeof ours - 1 : path,
             causal[0] && strcmp(causal, "none") != 0 ? ", causal" : "", windowed ? ", window " : "", windowed ? window : "",
             other ? ", " : "", other ? dtype : "");
}

static row_text make_row(const bench_record *r) {
    row_text row;
    describe(row.path, sizeof row.path, r);
    count_or_dash(row.length, sizeof row.length, r, BENCH_LEN_Q);
    count_or_dash(row.units, sizeof row.units, r, BENCH_THREADS);
    count_or_dash(row.chain, sizeof row.chain, r, BENCH_DEPENDENT_STEPS);
    snprintf(row.cache, sizeof row.cache, "%s", bench_text(r, BENCH_CACHE_STATE));
    number(row.ms, sizeof row.ms, bench_real(r, BENCH_MS_MEDIAN));
    snprintf(row.noise, sizeof row.noise, "%.1f%%%s", 100 * bench_real(r, BENCH_NOISE),
             bench_flag(r, BENCH_NOISY) ? " noisy" : "");
    number(row.gflop, sizeof row.gflop, bench_real(r, BENCH_FLOPS) * 1e-9);
    double bandwidth = bench_real(r, BENCH_GBYTES_PER_S);
    if (r->values[BENCH_GFLOPS].known)
        number(row.rate, sizeof row.rate, bench_real(r, BENCH_GFLOPS));
    else
        snprintf(row.rate, sizeof row.rate, "%.1f GB/s", bandwidth);
    if (r->values[BENCH_PERCENT_OF_PEAK].known)
        snprintf(row.peak, sizeof row.peak, "%.1f%s", bench_real(r, BENCH_PERCENT_OF_PEAK),
                 bench_flag(r, BENCH_ABOVE_PEAK) ? "!" : "");
    else
        snprintf(row.peak, sizeof row.peak, "-");
    return row;
}

typedef struct style {
    const char *title, *head, *row; /* formats */
    size_t width;                   /* of text; 0: as long as it is */
} style;

static const style plain = {
    .title = "\n%s\n",
    .head = "%-36s %6s %5s %-4s %9s %11s %8s %10s %6s %6s\n",
    .row = "%-36.36s %6s %5s %-4s %9s %11s %8s %10s %6s %6s\n",
    .width = 110,
};

static const style markdown = {
    .title = "\n**%s**\n\n",
    .head = "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n|---|--:|--:|---|--:|--:|--:|--:|--:|--:|\n",
    .row = "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
};

static void print_contrast(FILE *file, const bench_records *records, const char *contrast, const style *style) {
    bool begun = false;
    for (size_t i = 0; i < records->count; i++) {
        const bench_record *record = &records->items[i];
        if (strcmp(bench_text(record, BENCH_CONTRAST), contrast) != 0) continue;
        if (!begun) {
            fprintf(file, style->title, bench_contrast_title(contrast));
            fprintf(file, style->head, "what", "length", "units", "", "ms", "noise", "GFLOP", "GFLOP/s", "% peak", "chain");
            begun = true;
        }
        row_text t = make_row(record);
        fprintf(file, style->row, t.path, t.length, t.units, t.cache, t.ms, t.noise, t.gflop, t.rate, t.peak, t.chain);
    }
}

static void print_device(FILE *file, const bench_session *session) {
    const bench_device *device = &session->devices[0];
    const clattn_device_info *info = &device->info;
    fprintf(file, "%s: %s%s%s%s%s\n", info->id, info->name, info->platform[0] ? ", " : "", info->platform,
            info->driver[0] ? ", driver " : "", info->driver);
    fprintf(file, "%d of %d %ss, %s; fp32; inputs random normal, seed %" PRIu64 "; clattn %s; %s\n", device->units,
            device->all_units, device->unit_name, bench_pin_explain(), session->seed, clattn_version(), session->os);
    const bench_shape shape = bench_session_shape(session, BENCH_OP_MHA, 1);
    fprintf(file, "batch %" PRId64 ", %" PRId64 " query and %" PRId64 " key heads of %" PRId64 ", values of %" PRId64
                  "; layers and recurrences %" PRId64 " wide\n",
            shape.batch, shape.heads_q, shape.heads_kv, shape.head_dim, shape.value_dim, shape.d_in);
}

/* Paragraphs, a line each, broken between words where the style has a width. */
static void print_text(FILE *file, const char *text, size_t width) {
    size_t column = 0;
    while (*text) {
        size_t blank = *text == ' ' || *text == '\n', word = strcspn(text + blank, " \n");
        bool fresh = *text == '\n' || (blank && width && column + 1 + word > width);
        if (fresh)
            fputc('\n', file), column = 0;
        else if (blank)
            fputc(' ', file), column++;
        fwrite(text + blank, 1, word, file);
        column += word;
        text += blank + word;
    }
}

static void print_section(FILE *file, const style *style, const char *heading, const char *text) {
    if (!text) return;
    fprintf(file, style->title, heading);
    print_text(file, text, style->width);
}

static void print_all(FILE *file, const bench_session *session, const style *style) {
    print_device(file, session);
    for (int i = 0; i < CONTRASTS; i++) print_contrast(file, &session->records, contrasts[i].name, style);
    clattn__text ratios = {0};
    bench_ratios(&ratios, &session->records);
    print_section(file, style, "Ratios, sampled in turns", ratios.data);
    print_section(file, style, "Verdict", session->verdict.data);
    print_section(file, style, "Remarks", session->remarks.data);
    print_section(file, style, "How it is counted", bench_formulas);
    clattn__text_free(&ratios);
}

void bench_print_table(FILE *file, const bench_session *session) {
    print_all(file, session, &plain);
}
void bench_print_markdown(FILE *file, const bench_session *session) {
    print_all(file, session, &markdown);
}
