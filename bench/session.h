/* One run of the benchmark: its options, its devices, what it has found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_SESSION_H
#define CLATTN_BENCH_SESSION_H

#include "args.h"
#include "candidate.h"
#include "peer_torch.h"
#include "record.h"
#include "sampler.h"
#include "verdict.h"

typedef struct bench_session {
    bench_args args;
    uint64_t seed;
    char os[256];
    clattn_context *reference;
    bench_device devices[BENCH_MAX_UNITS]; /* the same device with 1, 2, ... of its units, opened when first asked for */
    size_t device_count;
    bench_torch *torch; /* started when first asked for */
    bench_records records;
    int groups;                /* measured so far */
    clattn__text verdict;      /* a sentence or more a line */
    clattn__text remarks;      /* what was left out, and why; what is not to be trusted */
    double start_ms, limit_ms; /* of the whole run; limit 0: none */
    bool progress;             /* stderr is a terminal */
    bool failed;               /* something was wrong or cannot be trusted */
} bench_session;

bool bench_session_open(bench_session *, const bench_args *, bench_error *);
void bench_session_close(bench_session *);

/* The device with so many of its units (0: all); NULL with the error set. Valid until the session closes. */
bench_device *bench_session_device(bench_session *, int units, bench_error *);
/* What there is of the chosen device's units: 1, 2, 4, ... and all. Returns how many numbers. */
size_t bench_session_units(bench_session *, int units[BENCH_MAX_UNITS], bench_error *);

/* The units asked for; one and all by default. Returns how many numbers. */
size_t bench_session_asked_units(const bench_session *, int units[BENCH_MAX_UNITS]);

/* The shape that the options ask for, at one length. */
bench_shape bench_session_shape(const bench_session *, bench_op, int64_t len);
/* The lengths asked for, or the default ones; returns how many. */
size_t bench_session_lengths(const bench_session *, const int64_t *defaults, size_t count, int64_t lengths[BENCH_MAX_LENGTHS]);

/* Seconds left of the run's limit. */
double bench_session_seconds_left(const bench_session *);
/* Seconds that the next length will take: as long as the last one, whose records begin at `first`, and its runs so many times
 * as long, at least so often. Attention's work grows with the square of the length. */
double bench_session_expect(const bench_session *, size_t first, double last_s, double growth);
/* Whether there is time for a length, with so much kept for what follows; a remark says when there is not. */
bool bench_session_has_time(bench_session *, int64_t length, double expected_s, double reserve_s);
void bench_session_progress(const bench_session *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A remark: one line, kept once. */
void bench_session_remark(bench_session *, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
