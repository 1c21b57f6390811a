/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pin.h"
#include "ratios.h"

const char bench_formulas[] =
    "FLOPs: attention 2 (head_dim + value_dim) visible pairs heads batch; layers and recurrences add 2 a multiply-add of every\n"
    "product. Peak: fp32 multiply-adds in registers, sampled in turns with the figures on the same units. Bytes: inputs read\n"
    "once, outputs written once. ms is the median; noise is the interquartile range over it. Copies are not in it.\n";

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
    char path[40], length[16], units[16], cache[8], ms[16], noise[16], gflop[16], rate[16], peak[16], chain[16];
} row_text;

/* Four digits that matter. */
static void number(char *text, size_t size, double value) {
    if (!isfinite(value)) snprintf(text, size, "-");
    else snprintf(text, size, value >= 1000 ? "%.0f" : value >= 100 ? "%.1f" : value >= 10 ? "%.2f" : value >= 0.1 ? "%.3f" : "%.2g",
                  value);
}

static void count_or_dash(char *text, size_t size, const bench_record *record, bench_field field) {
    if (record->values[field].known) snprintf(text, size, "%" PRId64, bench_count(record, field));
    else snprintf(text, size, "-");
}

static row_text make_row(const bench_record *r) {
    row_text row;
    const char *causal = bench_text(r, BENCH_CAUSAL);
    bool masked = causal[0] && strcmp(causal, "none") != 0;
    snprintf(row.path, sizeof row.path, "%s%s%s%s", strcmp(bench_text(r, BENCH_OP), "limit") ? bench_text(r, BENCH_OP) : "",
             strcmp(bench_text(r, BENCH_OP), "limit") ? " " : "", bench_text(r, BENCH_PATH), masked ? ", causal" : "");
    count_or_dash(row.length, sizeof row.length, r, BENCH_LEN_Q);
    count_or_dash(row.units, sizeof row.units, r, BENCH_THREADS);
    count_or_dash(row.chain, sizeof row.chain, r, BENCH_DEPENDENT_STEPS);
    snprintf(row.cache, sizeof row.cache, "%s", bench_text(r, BENCH_CACHE_STATE));
    number(row.ms, sizeof row.ms, bench_real(r, BENCH_MS_MEDIAN));
    snprintf(row.noise, sizeof row.noise, "%.1f%%%s", 100 * bench_real(r, BENCH_NOISE), bench_flag(r, BENCH_NOISY) ? " noisy" : "");
    number(row.gflop, sizeof row.gflop, bench_real(r, BENCH_FLOPS) * 1e-9);
    double bandwidth = bench_real(r, BENCH_GBYTES_PER_S);
    if (r->values[BENCH_GFLOPS].known) number(row.rate, sizeof row.rate, bench_real(r, BENCH_GFLOPS));
    else snprintf(row.rate, sizeof row.rate, "%.1f GB/s", bandwidth);
    if (r->values[BENCH_PERCENT_OF_PEAK].known)
        snprintf(row.peak, sizeof row.peak, "%.1f%s", bench_real(r, BENCH_PERCENT_OF_PEAK), bench_flag(r, BENCH_ABOVE_PEAK) ? "!" : "");
    else snprintf(row.peak, sizeof row.peak, "-");
    return row;
}

typedef struct style {
    const char *title, *head, *row, *heading; /* formats */
    const char *fence;
} style;

static const style plain = {
    .title = "\n%s\n",
    .head = "%-36s %6s %5s %-4s %9s %11s %8s %10s %6s %6s\n",
    .row = "%-36.36s %6s %5s %-4s %9s %11s %8s %10s %6s %6s\n",
    .heading = "\n%s\n",
};

static const style markdown = {
    .title = "\n**%s**\n\n",
    .head = "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n|---|--:|--:|---|--:|--:|--:|--:|--:|--:|\n",
    .row = "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
    .heading = "\n**%s**\n\n",
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
    fprintf(file, "%d of %d %ss, %s; fp32; inputs random normal, seed %" PRIu64 "; clattn %s; %s\n", device->units, device->all_units,
            device->unit_name, bench_pin_explain(), session->seed, clattn_version(), session->os);
}

static void print_all(FILE *file, const bench_session *session, const style *style) {
    print_device(file, session);
    for (int i = 0; i < CONTRASTS; i++) print_contrast(file, &session->records, contrasts[i].name, style);
    clattn__text ratios = {0};
    bench_ratios(&ratios, &session->records);
    if (ratios.data) fprintf(file, style->heading, "Ratios, sampled in turns"), fputs(ratios.data, file);
    if (session->verdict.data) fprintf(file, style->heading, "Verdict"), fputs(session->verdict.data, file);
    if (session->remarks.data) fprintf(file, style->heading, "Remarks"), fputs(session->remarks.data, file);
    fprintf(file, style->heading, "How it is counted");
    fputs(bench_formulas, file);
    clattn__text_free(&ratios);
}

void bench_print_table(FILE *file, const bench_session *session) { print_all(file, session, &plain); }
void bench_print_markdown(FILE *file, const bench_session *session) { print_all(file, session, &markdown); }
