/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "remarks.h"

/* A default run ends in two to three minutes on two cores; a slow machine leaves lengths out instead of taking an hour. */
static const double LIMIT_S = 180, QUICK_LIMIT_S = 28;

static void describe_system(char *text, size_t size) {
    struct utsname system;
    if (uname(&system) == 0)
        snprintf(text, size, "%s %s %s", system.sysname, system.release, system.machine);
    else
        snprintf(text, size, "unknown");
}

bool bench_session_open(bench_session *session, const bench_args *args, bench_error *error) {
    *session = (bench_session){.args = *args, .seed = (uint64_t)bench_args_or(args->seed, 1), .start_ms = bench_now_ms()};
    session->progress = isatty(STDERR_FILENO) != 0;
    if (args->limit.given)
        session->limit_ms = 1e3 * (double)args->limit.value;
    else if (args->len.count == 0)
        session->limit_ms = 1e3 * (args->quick ? QUICK_LIMIT_S : LIMIT_S);
    describe_system(session->os, sizeof session->os);
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "reference";
    if (clattn_context_create(&options, &session->reference) != CLATTN_OK) return bench_fail(error, "no reference device");
    return bench_session_device(session, args->threads.count ? (int)args->threads.values[0] : 0, error) != NULL;
}

void bench_session_close(bench_session *session) {
    bench_torch_close(session->torch);
    for (size_t i = 0; i < session->device_count; i++) bench_device_close(&session->devices[i]);
    clattn_context_destroy(session->reference);
    bench_records_free(&session->records);
    clattn__text_free(&session->verdict);
    clattn__text_free(&session->remarks);
}

bench_device *bench_session_device(bench_session *session, int units, bench_error *error) {
    for (size_t i = 0; i < session->device_count; i++) {
        const bench_device *device = &session->devices[i];
        if (device->units == units || (units == 0 && device->units == device->all_units)) return &session->devices[i];
    }
    if (session->device_count == BENCH_MAX_UNITS) {
        bench_fail(error, "more than %d numbers of units", BENCH_MAX_UNITS);
        return NULL;
    }
    bench_device *device = &session->devices[session->device_count];
    if (!bench_device_open(device, session->args.device, units, error)) return NULL;
    session->device_count++;
    return device;
}

size_t bench_session_units(bench_session *session, int units[BENCH_MAX_UNITS], bench_error *error) {
    const bench_device *device = bench_session_device(session, 0, error);
    if (!device) return 0;
    size_t count = 0;
    for (int n = 1; n < device->all_units && count < BENCH_MAX_UNITS - 1; n *= 2) units[count++] = n;
    units[count++] = device->all_units;
    return count;
}

size_t bench_session_asked_units(const bench_session *session, int units[BENCH_MAX_UNITS]) {
    const cli_integers *asked = &session->args.threads;
    size_t count = 0;
    for (; count < asked->count && count < BENCH_MAX_UNITS; count++) units[count] = (int)asked->values[count];
    if (count > 0) return count;
    units[0] = 1;
    units[1] = session->devices[0].all_units;
    return units[1] > 1 ? 2 : 1;
}

bench_shape bench_session_shape(const bench_session *session, bench_op op, int64_t len) {
    const bench_args *args = &session->args;
    bench_shape shape = {
        .op = op,
        .batch = bench_args_or(args->batch, 1),
        .heads_q = bench_args_or(args->heads, args->growth ? 1 : 8), /* growth is the same for any number of heads */
        .len_q = len,
        .len_kv = bench_args_or(args->kv_len, len),
        .head_dim = bench_args_or(args->head_dim, 64),
        .causal = args->causal.given,
        .align = args->causal.align,
        .offset = args->causal.offset,
        .has_window = args->window.count == 2,
        .window_left = args->window.values[0],
        .window_right = args->window.values[1],
        .dtype = bench_args_dtype(args),
    };
    shape.heads_kv = bench_args_or(args->kv_heads, shape.heads_q);
    shape.value_dim = bench_args_or(args->value_dim, shape.head_dim);
    shape.d_in = shape.hidden = shape.heads_q * shape.head_dim;
    if (args->causal.align == CLATTN_ALIGN_PAST) shape.offset = shape.len_kv > len ? shape.len_kv - len : 0;
    return shape;
}

size_t bench_session_lengths(const bench_session *session, const int64_t *defaults, size_t count,
                             int64_t lengths[BENCH_MAX_LENGTHS]) {
    const cli_integers *asked = &session->args.len;
    if (asked->count > 0) defaults = asked->values, count = asked->count;
    if (count > BENCH_MAX_LENGTHS) count = BENCH_MAX_LENGTHS;
    for (size_t i = 0; i < count; i++) lengths[i] = defaults[i];
    return count;
}

double bench_session_seconds_left(const bench_session *session) {
    if (session->limit_ms <= 0) return INFINITY;
    return (session->limit_ms - (bench_now_ms() - session->start_ms)) / 1e3;
}

bool bench_session_has_time(bench_session *session, int64_t length, double expected_s, double reserve_s) {
    if (expected_s <= bench_session_seconds_left(session) - reserve_s) return true;
    bench_session_remark(session, "left out, length %" PRId64 " and longer: about %.0f s more; ask with --len", length,
                         expected_s);
    return false;
}

double bench_session_expect(const bench_session *session, size_t first, double last_s, double growth) {
    const double runs = BENCH_MIN_SAMPLES + 4; /* verification and warm-up */
    double ms = 0;
    for (size_t i = first; i < session->records.count; i++) ms += bench_real(&session->records.items[i], BENCH_MS_MEDIAN);
    return last_s + runs * ms * 1e-3 * (growth * growth - 1);
}

void bench_session_progress(const bench_session *session, const char *format, ...) {
    va_list list;
    va_start(list, format);
    bench_progress(session->progress, format, list);
    va_end(list);
}

void bench_session_remark(bench_session *session, const char *format, ...) {
    va_list list;
    va_start(list, format);
    bench_remark(&session->remarks, format, list);
    va_end(list);
}
