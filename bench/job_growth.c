/* `clattn bench attention --growth`: time and memory as powers of the length, full and causal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "group.h"
#include "growth.h"
#include "jobs.h"

static bench_shape shape_at(const bench_session *session, int64_t length, int causal) {
    bench_shape shape = bench_session_shape(session, BENCH_OP_ATTENTION, length);
    if (causal && !shape.causal) shape.causal = 1, shape.align = CLATTN_ALIGN_BOTTOM_RIGHT;
    return shape;
}

enum { MASKS = 2 };

/* Full and causal in turns; causal alone where that was asked for. */
static bool measure_length(bench_session *session, bench_device *device, int64_t length, bench_error *error) {
    clattn_algorithm only = (clattn_algorithm)bench_args_or(session->args.algorithm, CLATTN_ALGORITHM_AUTO);
    bench_problem problems[MASKS] = {{{0}}};
    bench_group group = {.session = session};
    bool right = true;
    size_t first;
    if (only == CLATTN_ALGORITHM_AUTO) only = CLATTN_ALGORITHM_FUSED;
    for (int causal = session->args.causal.given; right && causal < MASKS; causal++) {
        const bench_shape shape = shape_at(session, length, causal);
        right = bench_problem_create(&problems[causal], &shape, session->seed, error);
        problems[causal].hurried = true;
        if (right) bench_group_add_plan(&group, "growth", device, &problems[causal], (bench_variant){.algorithm = only});
    }
    bench_session_progress(session, "growth: sampling length %" PRId64, length);
    right = right && bench_group_measure(&group, false, &first, error);
    bench_group_free(&group);
    for (int i = 0; i < MASKS; i++) bench_problem_free(&problems[i]);
    return right;
}

/* ---- from records to exponents -------------------------------------------------------------------------------------- */

typedef struct series {
    const char *causal;
    bench_record *records[BENCH_MAX_LENGTHS]; /* lengths rising as they were asked for */
    double lengths[BENCH_MAX_LENGTHS], ms[BENCH_MAX_LENGTHS], bytes[BENCH_MAX_LENGTHS];
    size_t count;
} series;

static series series_of(bench_records *records, const char *causal) {
    series s = {.causal = causal};
    for (size_t i = 0; i < records->count && s.count < BENCH_MAX_LENGTHS; i++) {
        bench_record *record = &records->items[i];
        if (strcmp(bench_text(record, BENCH_CAUSAL), causal) != 0 || bench_flag(record, BENCH_ABOVE_PEAK)) continue;
        s.records[s.count] = record;
        s.lengths[s.count] = (double)bench_count(record, BENCH_LEN_Q);
        s.ms[s.count] = bench_real(record, BENCH_MS_MEDIAN);
        s.bytes[s.count++] = bench_real(record, BENCH_BYTES) + (double)bench_count(record, BENCH_WORKSPACE_BYTES);
    }
    return s;
}

static void write_growth(const series *s, const bench_growth *time, const bench_growth *memory) {
    for (size_t i = 0; i < s->count; i++) {
        bench_set_real(s->records[i], BENCH_GROWTH_EXPONENT, time->exponent);
        bench_set_real(s->records[i], BENCH_GROWTH_ERROR, time->error);
        bench_set_real(s->records[i], BENCH_GROWTH_MEMORY, memory->exponent);
    }
}

/* `left_out` lengths were not measured for want of time. */
static void conclude(bench_session *session, const char *causal, size_t left_out) {
    const series s = series_of(&session->records, causal);
    if (s.count == 0) return;
    const char *mask = strcmp(causal, "none") == 0 ? "full" : "causal", *path = bench_text(s.records[0], BENCH_PATH);
    if (s.count < 3) {
        clattn__text_add(&session->verdict, "Growth, %s, %s: no exponent from %zu length%s.\n", path, mask, s.count,
                         s.count > 1 ? "s" : "");
        return;
    }
    const bench_growth time = bench_growth_fit(s.lengths, s.ms, s.count),
                       memory = bench_growth_fit(s.lengths, s.bytes, s.count);
    char cut[64] = "";
    if (left_out > 0) snprintf(cut, sizeof cut, " (%zu longer left out: the limit of seconds)", left_out);
    write_growth(&s, &time, &memory);
    clattn__text_add(
        &session->verdict,
        "Growth, %s, %s: time = c N^p with p = %.3f +- %.3f (95 %%), memory with p = %.3f, over %zu lengths N from %.0f to "
        "%.0f%s.\n",
        path, mask, time.exponent, time.error, memory.exponent, s.count, s.lengths[0], s.lengths[s.count - 1], cut);
}

static void conclude_all(bench_session *session, size_t left_out) {
    const char *seen[MASKS];
    size_t count = 0;
    for (size_t i = 0; i < session->records.count; i++) {
        const char *causal = bench_text(&session->records.items[i], BENCH_CAUSAL);
        bool known = false;
        for (size_t n = 0; n < count; n++) known |= strcmp(seen[n], causal) == 0;
        if (known || count == MASKS) continue;
        seen[count++] = causal;
        conclude(session, causal, left_out);
    }
}

bool bench_job_growth(bench_session *session, bench_error *error) {
    static const int64_t defaults[] = {512, 1024, 2048, 4096, 8192, 16384, 32768};
    int64_t lengths[BENCH_MAX_LENGTHS];
    const size_t count = bench_session_lengths(session, defaults, session->args.quick ? 4 : 7, lengths);
    bench_device *device =
        bench_session_device(session, session->args.threads.count ? (int)session->args.threads.values[0] : 1, error);
    double expected_s = 0;
    size_t done = 0;
    if (!device) return false;
    for (; done < count; done++) {
        if (done > 0 && !bench_session_has_time(session, lengths[done], expected_s, 0)) break;
        const size_t first = session->records.count;
        const double start = bench_now_ms();
        if (!measure_length(session, device, lengths[done], error)) return false;
        const double growth = done + 1 < count ? (double)lengths[done + 1] / (double)lengths[done] : 1;
        expected_s = bench_session_expect(session, first, (bench_now_ms() - start) * 1e-3, growth);
    }
    conclude_all(session, count - done);
    return true;
}
