/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/html.h"
#include "clock.h"
#include "files.h"
#include "pin.h"
#include "table.h"
#include "third_party/d3.h"

/* Scripts run only with this: whatever else came into the page does not. */
typedef struct nonce {
    char text[40];
} nonce;

static nonce make_nonce(void) {
    unsigned char bytes[16] = {0};
    nonce result;
    FILE *file = fopen("/dev/urandom", "rb");
    size_t got = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) fclose(file);
    if (got < sizeof bytes) {
        double now = bench_now_ms();
        memcpy(bytes, &now, sizeof now);
    }
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(result.text + 2 * i, 3, "%02x", bytes[i]);
    return result;
}

/* One element a line of text. */
static void print_lines(FILE *file, const char *element, const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        fprintf(file, "<%s>", element);
        for (size_t i = 0; i < length; i++) html_escape(file, (char[]){text[i], 0});
        fprintf(file, "</%s>\n", element);
        text += length + (text[length] == '\n');
    }
}

static void print_device(FILE *file, const bench_session *session) {
    const bench_device *device = &session->devices[0];
    html_escape(file, device->info.name);
    fprintf(file, " (%s), %d of %d %ss, %s, ", device->info.id, device->units, device->all_units, device->unit_name,
            bench_pin_explain());
    html_escape(file, session->os);
    fprintf(file, ", seed %" PRIu64 ", clattn %s", session->seed, clattn_version());
}

/* CSV inside a script element: its text ends at "</", which no field needs. */
static void print_data(FILE *file, const bench_records *records) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return;
    bench_print_csv(memory, records);
    if (fclose(memory) == 0)
        for (size_t i = 0; i < size; i++)
            if (text[i] != '<') fputc(text[i], file);
    free(text);
}

typedef struct report {
    const bench_session *session;
    nonce nonce;
} report;

static void print_part(FILE *file, const char *name, size_t length, const void *user) {
    const report *report = user;
    const bench_session *session = report->session;
    const struct {
        const char *name, *text;
    } files[] = {{"CSS", bench_file_report_css}, {"D3", d3_file_d3_min_js}, {"SCRIPT", bench_file_report_js}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i].name) == length && strncmp(files[i].name, name, length) == 0) fputs(files[i].text, file);
    if (length == 5 && strncmp(name, "NONCE", 5) == 0) fputs(report->nonce.text, file);
    if (length == 6 && strncmp(name, "DEVICE", 6) == 0) print_device(file, session);
    if (length == 7 && strncmp(name, "VERDICT", 7) == 0) print_lines(file, "p", session->verdict.data);
    if (length == 7 && strncmp(name, "REMARKS", 7) == 0) print_lines(file, "li", session->remarks.data);
    if (length == 8 && strncmp(name, "FORMULAS", 8) == 0) html_escape(file, bench_formulas);
    if (length == 4 && strncmp(name, "DATA", 4) == 0) print_data(file, &session->records);
}

void bench_print_report(FILE *file, const bench_session *session) {
    html_fill(file, bench_file_report_html, print_part, &(report){session, make_nonce()});
}
