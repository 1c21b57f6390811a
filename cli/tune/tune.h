/* `clattn tune`: which kernel row is the fastest for which kind of problem, on this device.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   shapes.c   what is measured: kinds of problems, of sizes that suit the device
 *   choose.c   gain or keep: which of some candidates, the first of which is the library's own choice
 *   measure.c  the rows of a kind of problem as candidates, each verified first
 *   store.c    the user's file of the device: merged, written, removed
 *   main.c     the command
 */
#ifndef CLATTN_TUNE_TUNE_H
#define CLATTN_TUNE_TUNE_H

#include "bench/candidate.h"
#include "bench/sampler.h"
#include "cli/options.h"
#include "host/tuning.h"

/* ---- shapes.c ------------------------------------------------------------------------------------------------------ */

enum { TUNE_MOST_SHAPES = 64 };

/* A problem, and whose rows are tried in it. */
typedef struct tune_shape {
    clattn__role role;
    bench_variant variant;
    bench_shape shape;
} tune_shape;

typedef enum tune_scale {
    TUNE_SCALE_GPU,
    TUNE_SCALE_CPU,
    TUNE_SCALE_TINY, /* for tests: the kinds of problems that quick has, in the smallest sizes that are of these kinds */
} tune_scale;

extern const char tune_ops[]; /* "all|attention|...", as an option's argument */

/* The shapes of an operation (its number in tune_ops), the most wanted first; returns how many. */
size_t tune_shapes(int op, bool quick, tune_scale, tune_shape shapes[TUNE_MOST_SHAPES]);

/* ---- choose.c ------------------------------------------------------------------------------------------------------ */

enum { TUNE_MOST_ROWS = 32 };

typedef struct tune_choice {
    size_t chosen;       /* candidate; 0: the library's own choice is kept */
    double ratio, noise; /* of the last measurement: the time of candidate 0 by that of the chosen one; their noise together */
    double ms[TUNE_MOST_ROWS];   /* median of the first measurement; of one that was far behind the best, its fastest run */
    bool behind[TUNE_MOST_ROWS]; /* that it was */
    const char *reason;          /* in words */
} tune_choice;

/* Times candidates in turns. The fastest is chosen if it is faster than candidate 0 beyond noise, and is so again when the two
 * are measured anew by themselves; else candidate 0 is kept. */
bool tune_choose(bench_candidate *candidates, size_t count, const bench_sampling *, tune_choice *, bench_error *);

/* ---- measure.c ----------------------------------------------------------------------------------------------------- */

/* What was found for a kind of problem. */
typedef struct tune_result {
    char key[CLATTN__TUNING_KEY], shape[96], verified[128];
    const clattn__row *rows[TUNE_MOST_ROWS]; /* the library's own choice first */
    size_t count;
    tune_choice choice;
} tune_result;

typedef struct tune_session {
    bench_device device;
    clattn_context *reference;
    tune_scale scale;
    bool quick, progress; /* stderr is a terminal */
    uint64_t seed;
    double start_ms, most_seconds; /* 0: no limit; what would begin past it is left out */
    unsigned long most_builds;     /* programs, likewise */
    clattn__text remarks;          /* what was left out, and why; a line each */
    bool wrong;                    /* a row computed something else than the reference */
    tune_result results[TUNE_MOST_SHAPES];
    size_t count;
} tune_session;

/* Programs that quick may build. */
enum { TUNE_QUICK_BUILDS = 60 };

bool tune_session_open(tune_session *, const char *device, bool quick, bench_error *);
void tune_session_close(tune_session *);
/* Whether a row is worth its program in a hurry: where the library's own choice is meant for the device, only others that are,
 * too. */
bool tune_is_promising(const clattn__row *row, const clattn__row *own, const clattn__device *);
/* Measure a shape into session->results. What cannot be measured is a remark. */
bool tune_measure(tune_session *, const tune_shape *, bench_error *);
/* A line of remarks, kept once. */
void tune_remark(tune_session *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tune_progress(const tune_session *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- store.c ------------------------------------------------------------------------------------------------------- */

/* The path of a device's file; empty where the user has no directory for it. The caller frees. */
clattn__text tune_path(const clattn__device *);
/* Write the session's results: into the device's file, over what that already has of the same kernels (NULL: not), and as
 * `json`
 * ("-": standard output; NULL: not). */
bool tune_store(const tune_session *, const char *path, const char *json, bench_error *);
/* Remove a device's file; *there says whether there was one. */
bool tune_clear(const char *path, bool *there, bench_error *);

#endif
